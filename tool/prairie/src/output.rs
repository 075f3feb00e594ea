//! Where data goes: to standard output, or into a file that is not overwritten by mistake.
// SPDX-License-Identifier: MIT

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::sys::Pid;
use crate::trouble::{About, Result, Trouble};

/// Writes a file. What is there already is replaced only if `force` says so.
pub fn write_file(path: &Path, bytes: &[u8], force: bool) -> Result<()> {
    create_file(path, force)?.write_all(bytes).about(path.display())
}

/// Asked before anything is run: whoever waited for the end must not lose what comes out.
pub fn require_writable(path: &Path, force: bool) -> Result<()> {
    if path.exists() && !force {
        return Err(is_there(path));
    }
    match path.parent().filter(|folder| *folder != Path::new("") && !folder.is_dir()) {
        Some(folder) => Err(Trouble::new(format!("{}: no such folder", folder.display()))),
        None => Ok(()),
    }
}

/// The name of a file of one run: `%e` is the program, `%p` its process, `%h` this machine, `%t` the
/// time in seconds since 1970, and `%%` a per cent sign.
pub fn name_of_run(path: &Path, program: &str, pid: Pid) -> PathBuf {
    let Some(text) = path.to_str().filter(|text| text.contains('%')) else {
        return path.to_owned();
    };
    let mut name = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            name.push(letter);
            continue;
        }
        match letters.next() {
            Some('e') => name += &program.replace('/', "_"),
            Some('p') => name += &pid.to_string(),
            Some('h') => name += &host(),
            Some('t') => name += &seconds_now().to_string(),
            Some('%') => name.push('%'),
            Some(other) => name.extend(['%', other]),
            None => name.push('%'),
        }
    }
    PathBuf::from(name)
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().replace('/', "_")
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

fn is_there(path: &Path) -> Trouble {
    Trouble::new(format!("{}: the file is there already", path.display()))
        .hint("--force replaces it, -o FILE names another")
}

/// An empty file, to be written bit by bit.
pub fn create_file(path: &Path, force: bool) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(is_there(path)),
        opened => opened.about(path.display()),
    }
}

/// Standard output. Whoever reads it may have seen enough: a closed pipe is no failure.
pub fn write_out(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done.about("standard output"),
    }
}

/// To the file if one is named, else to standard output.
pub fn write(path: Option<&Path>, bytes: &[u8], force: bool) -> Result<()> {
    match path {
        Some(path) if path != Path::new("-") => write_file(path, bytes, force),
        _ => write_out(bytes),
    }
}

/// As above, for what nobody reads on a terminal: there it goes to `default`. Returns that file.
pub fn write_document(
    path: Option<&Path>,
    default: &Path,
    bytes: &[u8],
    force: bool,
) -> Result<Option<PathBuf>> {
    if path.is_some() || !io::stdout().is_terminal() {
        write(path, bytes, force)?;
        return Ok(path.filter(|path| *path != Path::new("-")).map(Path::to_owned));
    }
    write_file(default, bytes, force)?;
    Ok(Some(default.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_tell_the_run() {
        let name = |text: &str| name_of_run(Path::new(text), "sort", 7).display().to_string();
        assert_eq!(name("out/%e.%p.json"), "out/sort.7.json");
        assert_eq!(name("100%%.%x%"), "100%.%x%");
        let (host, time) = (name("%h"), name("%t").parse::<u64>().unwrap());
        assert!(!host.is_empty() && !host.contains(['%', '/', '\n']), "{host}");
        assert!(time > 1_700_000_000);
    }

    #[test]
    fn a_file_is_replaced_only_by_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_file(&path, b"one", false).unwrap();
        let refused = write_file(&path, b"two", false).unwrap_err();
        assert!(refused.to_string().ends_with("file: the file is there already"), "{refused}");
        let refused = require_writable(&path, false).unwrap_err();
        assert!(refused.to_string().ends_with("file: the file is there already"), "{refused}");
        assert!(require_writable(&path, true).is_ok());
        let refused = require_writable(&folder.path().join("no/file"), true).unwrap_err();
        assert!(refused.to_string().ends_with("no: no such folder"), "{refused}");
        assert!(require_writable(Path::new("no-such-file"), false).is_ok());
        write_file(&path, b"3", true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"3");
    }
}
