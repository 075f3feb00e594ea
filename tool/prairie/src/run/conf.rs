//! The options that the library is started with: the user's, and what the command line adds.
// SPDX-License-Identifier: MIT

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::cli::Run;
use crate::sys::Pid;
use crate::trouble::{Result, Trouble};
use crate::units;

pub const VARIABLE: &str = "PRAIRIE_CONF";
/// The library cuts what is longer.
const PREFIX_BYTES_MAX: usize = 255;

/// What the options of the command line mean in the library's words.
pub fn pairs(options: &Run, profile: Option<&Profiles>) -> Vec<OsString> {
    let mut pairs: Vec<OsString> = Vec::new();
    if options.hardened {
        pairs.push("hardened:true".into());
    }
    if let Some(profile) = profile {
        pairs.extend(["prof:true", "prof_final:true", "prof_pprof:true"].map(OsString::from));
        let mut prefix = OsString::from("prof_prefix:");
        prefix.push(&profile.prefix);
        pairs.push(prefix);
    }
    if let Some(bytes) = options.profile_every {
        pairs.push(format!("lg_prof_interval:{}", bytes.ilog2()).into());
    }
    if options.stats {
        pairs.push("stats_print:true".into());
    }
    pairs
}

/// The library takes powers of two only: profiles come that often instead, and it is told.
pub fn interval_note(options: &Run) -> Option<String> {
    let bytes = options.profile_every.filter(|bytes| !bytes.is_power_of_two())?;
    let every = units::bytes((1u64 << bytes.ilog2()) as f64);
    Some(format!("--profile-every: a profile each {every}, the power of two below"))
}

/// The user's options come first: of a key that comes twice the last one counts.
pub fn with_pairs(conf: Option<OsString>, pairs: &[OsString]) -> OsString {
    let mut conf = conf.unwrap_or_default();
    for pair in pairs {
        if !conf.is_empty() {
            conf.push(",");
        }
        conf.push(pair);
    }
    conf
}

/// The profiles of one run: files with a prefix, a number of a process, and more.
pub struct Profiles {
    prefix: PathBuf,
    /// Those of earlier runs, whose processes may have had the same numbers.
    earlier: HashMap<String, Content>,
}

/// Tells whether a file has been written since: its inode, and the time of its last change.
#[derive(PartialEq, Eq)]
struct Content(u64, i64, i64);

impl Profiles {
    /// In `folder`, called after the program.
    pub fn of(program: &Path, folder: &Path) -> Result<Profiles> {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let prefix = folder.join(format!("prairie.{}", name.replace(',', "_")));
        let bytes = prefix.as_os_str().as_bytes();
        if bytes.contains(&b',') || bytes.len() > PREFIX_BYTES_MAX {
            let text = format!("{}: the library cannot be told this folder", folder.display());
            return Err(
                Trouble::new(text).hint("start it where the path is short and has no comma")
            );
        }
        let mut profiles = Profiles { prefix, earlier: HashMap::new() };
        profiles.earlier = profiles.there().collect();
        Ok(profiles)
    }

    /// All that are there now.
    fn there(&self) -> impl Iterator<Item = (String, Content)> {
        let folder = self.prefix.parent().unwrap_or(Path::new("."));
        fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            numbers(&name, &self.start())?;
            let about = entry.metadata().ok()?;
            Some((name, Content(about.ino(), about.mtime(), about.mtime_nsec())))
        })
    }

    /// How the names of its files begin.
    fn start(&self) -> String {
        self.prefix.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Those of a process, the earliest first; and how many all processes of the run have written.
    pub fn written(&self, pid: Pid) -> (Vec<PathBuf>, usize) {
        let mut own: Vec<(u64, PathBuf)> = Vec::new();
        let mut count = 0;
        for (name, content) in self.there() {
            let Some((of, number)) = numbers(&name, &self.start()) else { continue };
            if self.earlier.get(&name) == Some(&content) {
                continue;
            }
            count += 1;
            if of == pid {
                own.push((number, PathBuf::from(name)));
            }
        }
        own.sort();
        (own.into_iter().map(|(_, path)| path).collect(), count)
    }
}

/// `START.PROCESS.NUMBER.…`
fn numbers(name: &str, start: &str) -> Option<(Pid, u64)> {
    let mut parts = name.strip_prefix(start)?.strip_prefix('.')?.split('.');
    let pid = parts.next()?.parse().ok()?;
    let number = parts.next()?.parse().ok()?;
    name.ends_with(".pb.gz").then_some((pid, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_added_behind_the_users() {
        let pairs = ["a:1", "b:2"].map(OsString::from);
        assert_eq!(with_pairs(None, &pairs), "a:1,b:2");
        assert_eq!(with_pairs(Some("arenas:1".into()), &pairs), "arenas:1,a:1,b:2");
        assert_eq!(with_pairs(Some("".into()), &[]), "");
    }

    #[test]
    fn profiles_are_found_by_their_process() {
        let folder = tempfile::tempdir().unwrap();
        let profiles = Profiles::of(Path::new("/bin/sort"), folder.path()).unwrap();
        for name in [
            "prairie.sort.7.1.i1.pb.gz",
            "prairie.sort.7.0.i0.pb.gz",
            "prairie.sort.8.0.f.pb.gz",
            "prairie.sorted.7.0.f.pb.gz",
            "prairie.sort.7.html",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let (own, count) = profiles.written(7);
        let expected =
            ["prairie.sort.7.0.i0.pb.gz", "prairie.sort.7.1.i1.pb.gz"].map(PathBuf::from);
        assert_eq!((own, count), (expected.to_vec(), 3));
    }

    #[test]
    fn profiles_of_earlier_runs_are_not_this_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prairie.sort.7.0.f.pb.gz");
        fs::write(&path, "earlier").unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        let profiles = Profiles::of(Path::new("/bin/sort"), folder.path()).unwrap();
        assert_eq!(profiles.written(7), (Vec::new(), 0));
        // As the library writes it: the same file, cut off first.
        fs::write(&path, "now").unwrap();
        assert_eq!(profiles.written(7).1, 1);
    }

    #[test]
    fn a_comma_would_end_the_option() {
        assert!(Profiles::of(Path::new("/bin/sort"), Path::new("/a,b")).is_err());
        assert!(Profiles::of(Path::new("/bin/a,b"), Path::new("/a")).is_ok());
    }
}
