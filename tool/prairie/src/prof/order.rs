//! The order of files whose names a shell's pattern has put into that of letters: 10 before 2.
// SPDX-License-Identifier: MIT

use std::path::{Path, PathBuf};

/// Three and more, which show growth: of two each may be the earlier one.
pub fn by_numbers(files: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = files.to_vec();
    let is_by_letters = files.is_sorted_by_key(|path| path.as_os_str())
        || files.is_sorted_by_key(|path| letters(path));
    if files.len() > 2 && is_by_letters {
        files.sort_by_cached_key(|path| parts(path));
    }
    files
}

/// What most locales look at first.
fn letters(path: &Path) -> String {
    let text = path.to_string_lossy().to_lowercase();
    text.chars().filter(|letter| letter.is_alphanumeric()).collect()
}

/// A word and the number behind it, again and again.
fn parts(path: &Path) -> Vec<(String, u128)> {
    let text = path.to_string_lossy();
    let mut parts = Vec::new();
    let mut rest = &*text;
    while !rest.is_empty() {
        let is_digit = |letter: char| letter.is_ascii_digit();
        let (word, behind) = rest.split_at(rest.find(is_digit).unwrap_or(rest.len()));
        let end = behind.find(|letter| !is_digit(letter)).unwrap_or(behind.len());
        let (number, behind) = behind.split_at(end);
        parts.push((word.to_owned(), number.parse().unwrap_or(0)));
        rest = behind;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pattern_named_is_ordered_by_numbers() {
        let ordered = |names: &str| {
            let files: Vec<PathBuf> = names.split(' ').map(PathBuf::from).collect();
            let words: Vec<String> =
                by_numbers(&files).iter().map(|path| path.display().to_string()).collect();
            words.join(" ")
        };
        for (named, wanted) in [
            (
                "p.7.0.i0.gz p.7.1.i1.gz p.7.10.f.gz p.7.2.i2.gz",
                "p.7.0.i0.gz p.7.1.i1.gz p.7.2.i2.gz p.7.10.f.gz",
            ),
            (
                "p.7.0.i0.gz p.7.10.f.gz p.7.1.i1.gz p.7.2.i2.gz",
                "p.7.0.i0.gz p.7.1.i1.gz p.7.2.i2.gz p.7.10.f.gz",
            ),
            ("1 10 9", "1 9 10"),
            ("a a1 a10 a9 b", "a a1 a9 a10 b"),
            // Somebody chose another order, or it is a difference.
            ("10 1 9", "10 1 9"),
            ("10 9", "10 9"),
        ] {
            assert_eq!(ordered(named), wanted);
        }
    }
}
