//! The tool's own failures: what went wrong, what to do about it, and the exit code that says so.
// SPDX-License-Identifier: MIT

use std::fmt::Display;

use crate::terminal;

/// Exit codes as in env(1): the tool failed, the program cannot be executed, it was not found.
pub const TOOL_FAILED: u8 = 125;
pub const NOT_EXECUTABLE: u8 = 126;
pub const NOT_FOUND: u8 = 127;
/// As a shell calls the end by SIGINT.
pub const INTERRUPTED: u8 = 130;

#[derive(Debug, Clone, thiserror::Error)]
#[error("{text}")]
pub struct Trouble {
    text: String,
    hint: Option<String>,
    code: u8,
}

pub type Result<T, E = Trouble> = std::result::Result<T, E>;

impl Trouble {
    pub fn new(text: impl Into<String>) -> Self {
        Trouble { text: without_numbers(text.into()), hint: None, code: TOOL_FAILED }
    }

    /// One line on what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub fn exit_code(&self) -> u8 {
        self.code
    }

    /// Somebody wants the tool to end: nothing has gone wrong.
    pub fn is_interruption(&self) -> bool {
        self.code == INTERRUPTED
    }

    /// What the user sees on standard error.
    pub fn print(&self) {
        terminal::tell(&format!("prairie: {}", self.text));
        if let Some(hint) = &self.hint {
            terminal::tell(&format!("  {hint}"));
        }
    }
}

/// Adds what was being done to an error of the system.
pub trait About<T> {
    fn about(self, what: impl Display) -> Result<T>;
}

impl<T, E: Display> About<T> for std::result::Result<T, E> {
    fn about(self, what: impl Display) -> Result<T> {
        self.map_err(|error| Trouble::new(format!("{what}: {error}")))
    }
}

/// The standard library puts the number of an error behind its words, which says nothing to users.
fn without_numbers(mut text: String) -> String {
    while let Some(start) = text.find(" (os error ")
        && let Some(length) = text[start..].find(')')
    {
        text.replace_range(start..=start + length, "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_words() {
        let error = std::fs::read("/no/such/file").about("/no/such/file").unwrap_err();
        assert_eq!(error.to_string(), "/no/such/file: No such file or directory");
        assert_eq!(Trouble::new("a (os error 1), b (os error 22)!").to_string(), "a, b!");
    }
}
