//! Programs and libraries of C that a test makes on the spot, for unit tests as well.
// SPDX-License-Identifier: MIT

use std::path::PathBuf;
use std::process::Command;

/// The file `made`, of this source, which lies beside it. None, with the reason, where there is no
/// compiler or not all that its flags ask for.
pub fn compiled(made: PathBuf, source: &str, flags: &[&str]) -> Option<PathBuf> {
    compiled_by("cc", made, source, flags)
}

pub fn compiled_by(compiler: &str, made: PathBuf, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let file = made.with_extension("c");
    std::fs::write(&file, source).unwrap();
    let ended = Command::new(compiler).arg("-o").args([&made, &file]).args(flags).output();
    let said = match ended {
        Ok(ended) if ended.status.success() => return Some(made),
        Ok(ended) => String::from_utf8_lossy(&ended.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let is_missing = ["cannot find", "No such file"].iter().any(|words| said.contains(words));
    assert!(is_missing, "{compiler} {flags:?}: {said}");
    eprintln!("skipped: {compiler} {flags:?}: {said}");
    None
}
