//! What `prairie top --record` writes: a line that says so, and a line of JSON for each look.
// SPDX-License-Identifier: MIT

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::live::sample::{SCHEMA, Sample};
use crate::output;
use crate::trouble::{About, Result, Trouble};

/// Every process that was looked at, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Look {
    pub time_ms: u64,
    pub samples: Vec<Sample>,
}

/// A look by itself, as `--json` writes it.
#[derive(Serialize)]
pub struct Document<'a> {
    schema: u32,
    #[serde(flatten)]
    look: &'a Look,
}

impl Document<'_> {
    pub fn of(look: &Look) -> Document<'_> {
        Document { schema: SCHEMA, look }
    }
}

/// Of the first line.
const HEAD_BYTES_MAX: u64 = 4096;

#[derive(Serialize, Deserialize)]
struct Head {
    prairie_record: u32,
}

pub struct Recorder {
    path: PathBuf,
    file: File,
}

impl Recorder {
    pub fn create(path: &Path, force: bool) -> Result<Recorder> {
        let file = output::create_file_of("--record", path, force)?;
        let mut recorder = Recorder { path: path.to_owned(), file };
        recorder.line(&Head { prairie_record: SCHEMA })?;
        Ok(recorder)
    }

    pub fn add(&mut self, look: &Look) -> Result<()> {
        self.line(look)
    }

    /// A line at a time: whoever is killed leaves what can be read.
    fn line(&mut self, what: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(what).about("JSON")? + "\n";
        self.file.write_all(text.as_bytes()).about(self.path.display())
    }
}

/// At least one look.
pub fn read(path: &Path) -> Result<Vec<Look>> {
    let no_record = || {
        Trouble::new(format!("{} is no record of prairie top", path.display()))
            .hint("prairie top PID --record FILE makes one")
    };
    // What is no record may be of any length.
    let mut file = BufReader::new(File::open(path).about(path.display())?);
    let mut head = Vec::new();
    let mut first = (&mut file).take(HEAD_BYTES_MAX);
    first.read_until(b'\n', &mut head).about(path.display())?;
    let head: Head = serde_json::from_slice(&head).map_err(|_| no_record())?;
    if head.prairie_record != SCHEMA {
        return Err(Trouble::new(format!(
            "{} has version {}, and this command reads {SCHEMA}",
            path.display(),
            head.prairie_record
        )));
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).about(path.display())?;
    let mut looks: Vec<Look> = Vec::new();
    for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        match serde_json::from_slice(line) {
            Ok(look) => looks.push(look),
            // Whoever was killed, or had no room left, leaves a line without its end.
            Err(_) if !line.ends_with(b"\n") => {}
            Err(error) => {
                let place = format!("{}, line {}", path.display(), number + 2);
                return Err(Trouble::new(format!("{place}: {error}")));
            }
        }
    }
    if looks.is_empty() {
        Err(Trouble::new(format!("{} has no look", path.display())))
    } else {
        Ok(looks)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::live::sample::tests::{foreign, made};

    #[test]
    fn what_is_recorded_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let looks = [
            Look { time_ms: 1, samples: vec![made(7), foreign(8)] },
            Look { time_ms: 2, samples: vec![] },
        ];
        let mut recorder = Recorder::create(&path, false).unwrap();
        looks.iter().for_each(|look| recorder.add(look).unwrap());
        assert_eq!(read(&path).unwrap(), looks);
        let refused = Recorder::create(&path, false).err().unwrap();
        assert!(refused.to_string().ends_with("the file is there already"));
        let hint = "--force replaces it, --record FILE names another";
        assert_eq!(refused.hint_text(), Some(hint));
        assert!(Recorder::create(&path, true).is_ok());
        assert!(read(&path).unwrap_err().to_string().ends_with("has no look"));
    }

    #[test]
    fn a_last_line_that_was_cut_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let look = Look { time_ms: 1, samples: vec![made(7)] };
        let mut recorder = Recorder::create(&path, false).unwrap();
        recorder.add(&look).unwrap();
        recorder.add(&look).unwrap();
        let whole = fs::read(&path).unwrap();
        for (cut, looks) in [(1, 2), (2, 1), (100, 1)] {
            fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            assert_eq!(read(&path).unwrap(), vec![look.clone(); looks]);
        }
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let said = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&path).unwrap_err().to_string()
        };
        let endless = read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(endless, "/dev/zero is no record of prairie top");
        assert!(said("").ends_with("is no record of prairie top"));
        assert!(said("root:x:0:0\n").ends_with("is no record of prairie top"));
        assert!(said("{\"prairie_record\":9}\n").contains("has version 9"));
        assert!(said("{\"prairie_record\":1}\n{\"time\n").contains("line 2"));
    }
}
