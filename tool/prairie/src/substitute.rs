//! Fills in what stands in braces: {root}, {scale}, {dir}, {shared}, {stdout}.
// SPDX-License-Identifier: MIT

use std::path::Path;

/// The values for one run.
pub struct Values<'a> {
    /// A suite's author writes braces to be filled in; the words of a single program are its own.
    pub is_of_suite: bool,
    pub root: &'a Path,
    pub scale: u32,
    /// A fresh folder for each run.
    pub dir: &'a Path,
    /// One folder for all runs of a workload, filled by its setup.
    pub shared: &'a Path,
    /// The file that holds the run's standard output.
    pub stdout: &'a Path,
}

impl Values<'_> {
    pub fn fill(&self, text: &str) -> String {
        if !self.is_of_suite {
            return text.to_owned();
        }
        let path = |path: &Path| path.display().to_string();
        let mut text = text.to_owned();
        for (name, value) in [
            ("{root}", path(self.root)),
            ("{scale}", self.scale.to_string()),
            ("{dir}", path(self.dir)),
            ("{shared}", path(self.shared)),
            ("{stdout}", path(self.stdout)),
        ] {
            text = text.replace(name, &value);
        }
        text
    }

    pub fn fill_all(&self, words: &[String]) -> Vec<String> {
        words.iter().map(|word| self.fill(word)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::SUBSTITUTIONS;

    #[test]
    fn every_known_substitution_is_filled_in() {
        let mut values = Values {
            is_of_suite: true,
            root: Path::new("/r"),
            scale: 25,
            dir: Path::new("/d"),
            shared: Path::new("/s"),
            stdout: Path::new("/o"),
        };
        for name in SUBSTITUTIONS {
            let braced = format!("{{{name}}}");
            assert_ne!(values.fill(&braced), braced);
        }
        assert_eq!(values.fill("{root}/x {scale} {other}"), "/r/x 25 {other}");
        values.is_of_suite = false;
        assert_eq!(values.fill("{root}/x {scale}"), "{root}/x {scale}");
    }
}
