//! The folders and files that a run works with.
// SPDX-License-Identifier: MIT

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::Item;
use crate::substitute::Values;
use crate::trouble::{About, Result};
use crate::units;

/// The files of one run.
pub struct Files {
    pub dir: PathBuf,
    pub shared: PathBuf,
    pub stdout: PathBuf,
    pub stderr: PathBuf,
    pub figures: PathBuf,
}

/// A part of a file's name, another one for each text.
fn in_plain(text: &str) -> String {
    let plain = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' => letter.to_string(),
        _ => format!("_{:x}_", u32::from(letter)),
    };
    text.chars().map(plain).collect()
}

impl Files {
    pub fn new(scratch: &Path, item: &Item) -> Result<Files> {
        let name = format!("shared-{}-{}", in_plain(&item.suite), in_plain(&item.workload.name));
        let files = Files {
            dir: scratch.join("run"),
            shared: scratch.join(name),
            stdout: scratch.join("stdout"),
            stderr: scratch.join("stderr"),
            figures: scratch.join("figures"),
        };
        files.remove();
        for folder in [&files.dir, &files.shared] {
            fs::create_dir_all(folder).about(folder.display())?;
        }
        Ok(files)
    }

    pub fn values<'a>(&'a self, item: &'a Item) -> Values<'a> {
        Values {
            is_of_suite: item.is_of_suite(),
            root: &item.root,
            scale: item.scale,
            dir: &self.dir,
            shared: &self.shared,
            stdout: &self.stdout,
        }
    }

    /// What is gone already needs no removing.
    pub fn remove(&self) {
        let _ = fs::remove_dir_all(&self.dir);
        for file in [&self.stdout, &self.stderr, &self.figures] {
            let _ = fs::remove_file(file);
        }
    }

    /// The last line that the program wrote to standard error, to be put behind a reason.
    pub fn last_words(&self) -> String {
        const LONG: usize = 200;
        let text = fs::read(&self.stderr).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        match text.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => format!(": {}", line.chars().take(LONG).collect::<String>()),
            None => String::new(),
        }
    }
}

pub fn checksum(path: &Path) -> Result<String> {
    const PIECE: usize = 1 << 16;
    let mut file = fs::File::open(path).about(path.display())?;
    let mut sum = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece).about(path.display())? {
            0 => break,
            count => sum.update(&piece[..count]),
        }
    }
    Ok(units::hexadecimal(&sum.finalize()))
}

#[cfg(test)]
mod tests {
    use super::in_plain;

    #[test]
    fn texts_that_differ_have_names_that_differ() {
        assert_eq!(in_plain("tree7"), "tree7");
        assert_eq!(in_plain("a.b/c"), "a_2e_b_2f_c");
        for other in ["a-b", "a_b", "a b", "a.b/c", "ab"] {
            assert_ne!(in_plain("a.b"), in_plain(other));
        }
    }
}
