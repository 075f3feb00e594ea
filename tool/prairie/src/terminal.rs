//! What people see: data on standard output, words about it on standard error, with or without
//! colours, in Unicode or ASCII.
// SPDX-License-Identifier: MIT

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use crate::cli::{Colour, Common};
use crate::sys;
use crate::trouble::{About, Result};

/// Without a terminal.
const COLUMNS: usize = 100;

// Set once, before anything is said.
static QUIET: AtomicBool = AtomicBool::new(false);
static VERBOSE: AtomicBool = AtomicBool::new(false);
static ASCII: AtomicBool = AtomicBool::new(false);

pub fn set_up(common: &Common) {
    QUIET.store(common.quiet, Ordering::Relaxed);
    VERBOSE.store(common.verbose, Ordering::Relaxed);
    ASCII.store(common.ascii, Ordering::Relaxed);
    match common.color {
        // NO_COLOR, CLICOLOR_FORCE and TERM=dumb are looked at there.
        Colour::Auto => ColorChoice::Auto.write_global(),
        Colour::Always => ColorChoice::AlwaysAnsi.write_global(),
        Colour::Never => ColorChoice::Never.write_global(),
    }
}

pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

pub fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

pub fn is_ascii() -> bool {
    ASCII.load(Ordering::Relaxed)
}

/// For what draws by itself on standard output.
pub fn has_colours() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// Words for standard error as they are, whatever was asked for. Where nobody can read them, nothing
/// else changes.
pub fn tell(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Data. Whoever reads it may have seen enough: a closed pipe is no failure.
pub fn show(text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    was_shown(out.write_all(in_letters(text).as_bytes()).and_then(|()| out.flush()))
}

/// As above, of data that somebody else has written.
pub fn was_shown(done: io::Result<()>) -> Result<()> {
    match done {
        // The standard library has opened a place for it where nobody reads.
        Ok(()) if sys::was_closed(libc::STDOUT_FILENO) => {
            Err(io::Error::from_raw_os_error(libc::EBADF)).about("standard output")
        }
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done.about("standard output"),
    }
}

/// As above, into a file.
pub fn show_in(file: File, text: &str) -> io::Result<()> {
    AutoStream::auto(file).write_all(in_letters(text).as_bytes())
}

/// Words about it, as a line, unless nobody wants any.
pub fn say(text: &str) {
    if !is_quiet() {
        let _ = writeln!(anstream::stderr().lock(), "{}", in_letters(text));
    }
}

/// More of them.
pub fn detail(text: &str) {
    if is_verbose() {
        say(text);
    }
}

/// The last line of a verb: what to type next.
pub fn next(command: &str) {
    say(&format!("{} {command}", styled(Style::new().dimmed(), "next:")));
}

/// As they can be pasted.
pub fn shell_words<T: AsRef<OsStr>>(words: &[T]) -> String {
    words.iter().map(|word| shell_word(word.as_ref())).collect::<Vec<_>>().join(" ")
}

fn shell_word(word: &OsStr) -> String {
    let speaks = |letter: char| letter.is_control() && !['\n', '\t'].contains(&letter);
    let Some(text) = word.to_str().filter(|text| !text.contains(speaks)) else {
        return in_escapes(word.as_bytes());
    };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=+,@%".contains(letter);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// What is no text, or would speak to the terminal.
fn in_escapes(word: &[u8]) -> String {
    let escaped = word.iter().map(|byte| match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
        b' '..=b'~' => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    });
    format!("$'{}'", escaped.collect::<String>())
}

pub fn columns() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let found = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    told.or(found).unwrap_or(COLUMNS).max(60)
}

pub fn bold(text: &str) -> String {
    styled(Style::new().bold(), text)
}

pub fn good(text: &str) -> String {
    styled(AnsiColor::Green.on_default(), text)
}

pub fn doubtful(text: &str) -> String {
    styled(AnsiColor::Yellow.on_default(), text)
}

pub fn bad(text: &str) -> String {
    styled(AnsiColor::Red.on_default().bold(), text)
}

/// Always with codes: they are taken out on the way where nobody wants them.
fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

fn in_letters(text: &str) -> String {
    if is_ascii() { ascii(text) } else { text.to_owned() }
}

fn ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '─' | '–' | '·' | '▁' => plain.push('-'),
            '│' => plain.push('|'),
            '├' => plain.push('+'),
            '└' => plain.push('`'),
            '≈' => plain.push('~'),
            '±' => plain += "+-",
            '×' => plain.push('x'),
            'µ' => plain.push('u'),
            '…' => plain.push('~'),
            '▂'..='▄' => plain.push('='),
            '▅'..='█' => plain.push('#'),
            letter => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawings_have_a_form_in_ascii() {
        assert_eq!(ascii("├─ 3 µs ± 1 …"), "+- 3 us +- 1 ~");
        assert!(ascii("─│└≈×·–▁▄█").is_ascii());
    }

    #[test]
    fn words_can_be_pasted() {
        assert_eq!(shell_words(&["a-b_c/d.e", "it's", ""]), r"a-b_c/d.e 'it'\''s' ''");
        assert_eq!(shell_words(&["a\n\tb"]), "'a\n\tb'");
        assert_eq!(shell_words(&["é", "a\x1b[2J'\\"]), r"'é' $'a\x1b[2J\'\\'");
        assert_eq!(shell_words(&[OsStr::from_bytes(b"caf\xe9 1")]), r"$'caf\xe9 1'");
    }

    #[test]
    fn colours_are_codes_around_the_text() {
        assert_eq!(bold("x"), "\u{1b}[1mx\u{1b}[0m");
    }
}
