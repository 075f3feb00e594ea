//! The folders and files that a run works with.
// SPDX-License-Identifier: MIT

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::Item;
use crate::live::text::printable;
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
        let text = end_of(&self.stderr).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        match text.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => format!(": {}", printable(line).chars().take(LONG).collect::<String>()),
            None => String::new(),
        }
    }
}

/// Some of it: a program may have written more than there is memory for.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    const BYTES: u64 = 1 << 16;
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
    let mut bytes = Vec::new();
    file.take(BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
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
    use super::*;

    #[test]
    fn the_last_words_are_short_and_do_not_speak_to_the_terminal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let stderr = path.join("stderr");
        let [dir, shared, stdout, figures] = [(); 4].map(|()| path.clone());
        let files = Files { dir, shared, stdout, stderr: stderr.clone(), figures };
        assert_eq!(files.last_words(), "");
        let text = format!("first\n\x1b[2Jlast{}\n \n", "!".repeat(300));
        fs::write(&stderr, &text).unwrap();
        assert_eq!(files.last_words(), format!(": ?[2Jlast{}", "!".repeat(192)));
        // As much as no machine has memory for, of which nothing is on the disk.
        let file = fs::File::options().write(true).open(&stderr).unwrap();
        file.set_len(1 << 42).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"\nend", 1 << 42).unwrap();
        assert_eq!(files.last_words(), ": end");
    }

    #[test]
    fn texts_that_differ_have_names_that_differ() {
        assert_eq!(in_plain("tree7"), "tree7");
        assert_eq!(in_plain("a.b/c"), "a_2e_b_2f_c");
        for other in ["a-b", "a_b", "a b", "a.b/c", "ab"] {
            assert_ne!(in_plain("a.b"), in_plain(other));
        }
    }
}
