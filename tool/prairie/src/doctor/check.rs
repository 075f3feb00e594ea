//! One thing that was looked at, what was found, and what to do about it.
// SPDX-License-Identifier: MIT

use serde::Serialize;

use crate::live::text::printable;
use crate::terminal;
use crate::trouble::Trouble;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Good,
    /// Worth knowing; nothing is in the way.
    Note,
    /// prairie does not, or would not, serve.
    Bad,
}

#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// What it is about: `library`, `program`, `process`, `environment`, `kernel`.
    pub about: &'static str,
    pub state: State,
    pub says: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    pub fn good(about: &'static str, says: impl Into<String>) -> Check {
        Check { about, state: State::Good, says: says.into(), fix: None }
    }

    pub fn note(about: &'static str, says: impl Into<String>) -> Check {
        Check { state: State::Note, ..Check::good(about, says) }
    }

    pub fn bad(about: &'static str, says: impl Into<String>) -> Check {
        Check { state: State::Bad, ..Check::good(about, says) }
    }

    pub fn of_trouble(about: &'static str, trouble: &Trouble) -> Check {
        let fix = trouble.hint_text().map(str::to_owned);
        Check { fix, ..Check::bad(about, trouble.to_string()) }
    }

    pub fn fix(mut self, fix: impl Into<String>) -> Check {
        self.fix = Some(fix.into());
        self
    }
}

/// In groups, each below what it is about. Words tell the state; colours only repeat it.
pub fn text(checks: &[Check]) -> String {
    let mut text = String::new();
    let mut about = "";
    for check in checks {
        if check.about != about {
            about = check.about;
            text += &format!("{}\n", terminal::bold(about));
        }
        let word = match check.state {
            State::Good => terminal::good("ok  "),
            State::Note => terminal::doubtful("note"),
            State::Bad => terminal::bad("NO  "),
        };
        text += &format!("  {word}  {}\n", printable(&check.says));
        if let Some(fix) = &check.fix {
            text += &format!("        fix: {}\n", printable(fix));
        }
    }
    text
}

pub fn is_all_well(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.state != State::Bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_listed_in_groups() {
        let checks = [
            Check::good("library", "one"),
            Check::bad("library", "two").fix("do this"),
            Check::note("kernel", "three"),
        ];
        let text = anstream::adapter::strip_str(&text(&checks)).to_string();
        assert_eq!(
            text,
            "library\n  ok    one\n  NO    two\n        fix: do this\nkernel\n  note  three\n"
        );
        assert!(!is_all_well(&checks) && is_all_well(&checks[..1]));
    }

    #[test]
    fn names_of_others_do_not_speak_to_the_terminal() {
        let check = Check::bad("process", "a\x1b[2J has").fix("start \x07b");
        assert!(text(&[check]).contains("a?[2J has\n        fix: start ?b\n"));
    }
}
