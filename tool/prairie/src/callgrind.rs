//! Counts instructions exactly, by running programs under valgrind's callgrind.
// SPDX-License-Identifier: MIT

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::program;
use crate::trouble::{Result, Trouble};

const FILE: &str = "callgrind.out";

/// Programs take about this much longer.
pub const SLOWDOWN: f64 = 100.0;

pub fn find() -> Result<PathBuf> {
    program::in_path(OsStr::new("valgrind")).ok_or_else(|| {
        Trouble::new("--instructions needs valgrind").hint("apt-get install valgrind")
    })
}

/// The words that stand before the program's own.
pub fn arguments(folder: &Path) -> Vec<String> {
    vec![
        "valgrind".into(),
        "--quiet".into(),
        "--tool=callgrind".into(),
        "--trace-children=yes".into(),
        format!("--callgrind-out-file={}/{FILE}.%p", folder.display()),
    ]
}

/// What the processes of a run left behind, together.
pub struct Counts {
    /// None: nothing was left.
    pub instructions: Option<u64>,
    /// Whether code of the library ran.
    pub ran_library: bool,
}

pub fn read(folder: &Path, library: Option<&Path>) -> Counts {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = files.filter(|file| file.file_name().to_string_lossy().starts_with(FILE));
    let mut counts = Counts { instructions: None, ran_library: library.is_none() };
    for file in files {
        let text = fs::read_to_string(file.path()).unwrap_or_default();
        if let Some(total) = total_in(&text) {
            counts.instructions = Some(counts.instructions.unwrap_or(0) + total);
        }
        counts.ran_library |= library.is_some_and(|library| is_object(&text, library));
    }
    counts
}

/// Objects are written once as `ob=(NUMBER) PATH`, or `cob=` where they are called first.
fn is_object(text: &str, library: &Path) -> bool {
    let library = library.to_string_lossy();
    let object = |line: &str| line.split_once("ob=(")?.1.split_once(") ").map(|o| o.1.to_owned());
    text.lines().filter_map(object).any(|object| object == library)
}

fn total_in(text: &str) -> Option<u64> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("totals:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_all_processes_are_added() {
        let folder = tempfile::tempdir().unwrap();
        let library = Some(Path::new("/lib/my malloc.so"));
        assert_eq!(read(folder.path(), None).instructions, None);
        fs::write(folder.path().join("callgrind.out.7"), "ob=(1) /lib/libc.so\ntotals: 40\n")
            .unwrap();
        fs::write(folder.path().join("other"), "ob=(1) /lib/my malloc.so\ntotals: 1\n").unwrap();
        assert!(!read(folder.path(), library).ran_library);
        fs::write(folder.path().join("callgrind.out.8"), "cob=(1) /lib/my malloc.so\ntotals: 2\n")
            .unwrap();
        let counts = read(folder.path(), library);
        assert_eq!(counts.instructions, Some(42));
        assert!(counts.ran_library);
    }
}
