//! Where data goes: to standard output, or into a file that is not overwritten by mistake.
// SPDX-License-Identifier: MIT

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crate::trouble::{About, Result, Trouble};

/// Writes a file. What is there already is replaced only if `force` says so.
pub fn write_file(path: &Path, bytes: &[u8], force: bool) -> Result<()> {
    create_file(path, force)?.write_all(bytes).about(path.display())
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
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let text = format!("{}: the file is there already", path.display());
            Err(Trouble::new(text).hint("--force replaces it, -o FILE names another"))
        }
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
    fn a_file_is_replaced_only_by_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_file(&path, b"one", false).unwrap();
        let refused = write_file(&path, b"two", false).unwrap_err();
        assert!(refused.to_string().ends_with("file: the file is there already"), "{refused}");
        write_file(&path, b"3", true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"3");
    }
}
