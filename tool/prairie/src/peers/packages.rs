//! Allocators in packages of distributions: where they lie when installed, and how to get them
//! without root.
// SPDX-License-Identifier: MIT

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::places;
use crate::program;
use crate::terminal;
use crate::trouble::{About, Result, Trouble};

pub struct Package {
    pub name: &'static str,
    pub label: &'static str,
    /// The library, under one of the names that it has had.
    pub files: &'static [&'static str],
    /// Debian's and Ubuntu's names of the package, the newest first.
    packages: &'static [&'static str],
}

const KNOWN: &[Package] = &[
    Package {
        name: "jemalloc",
        label: "jemalloc",
        files: &["libjemalloc.so.2"],
        packages: &["libjemalloc2"],
    },
    Package {
        name: "mimalloc3",
        label: "mimalloc",
        files: &["libmimalloc.so.3"],
        packages: &["libmimalloc3"],
    },
    Package {
        name: "mimalloc2",
        label: "mimalloc",
        files: &["libmimalloc.so.2", "libmimalloc.so.2.0"],
        packages: &["libmimalloc2.0", "libmimalloc2"],
    },
    Package {
        name: "gperftools",
        label: "gperftools",
        files: &["libtcmalloc_minimal.so.4"],
        packages: &["libtcmalloc-minimal4t64", "libtcmalloc-minimal4"],
    },
];

pub fn known() -> &'static [Package] {
    KNOWN
}

impl Package {
    /// Fetched, or installed.
    pub fn library(&self) -> Option<PathBuf> {
        let own = places::fetched().map(|folder| folder.join(self.name));
        let folders = own.into_iter().chain(places::system_folders());
        let in_folder = |folder: &PathBuf| {
            self.files.iter().find_map(|file| folder.join(file).canonicalize().ok())
        };
        folders.collect::<Vec<_>>().iter().find_map(in_folder)
    }
}

pub fn fetch(names: &[String]) -> Result<()> {
    let chosen = choose(names)?;
    for tool in ["apt-get", "dpkg-deb"] {
        if program::in_path(tool.as_ref()).is_none() {
            let all = "jemalloc, mimalloc and gperftools";
            return Err(Trouble::new(format!("no {tool} here: this is not Debian or Ubuntu"))
                .hint(format!("install {all} with your package manager; or --with NAME=FILE")));
        }
    }
    let into = places::fetched()
        .ok_or_else(|| Trouble::new("no folder to put them into").hint("set XDG_DATA_HOME"))?;
    let mut failed = Vec::new();
    for package in chosen {
        if names.is_empty() && package.library().is_some() {
            continue;
        }
        match package.packages.iter().find_map(|name| unpack(package, name, &into).transpose()) {
            Some(Ok(path)) => terminal::say(&format!("{}: {}", package.name, path.display())),
            Some(Err(error)) => return Err(error),
            None => failed.push(package.name),
        }
    }
    match (failed.is_empty(), names.is_empty()) {
        (true, _) => Ok(()),
        (false, true) => {
            terminal::say(&format!("this system's packages have no {}", failed.join(", ")));
            Ok(())
        }
        (false, false) => Err(Trouble::new(format!("no package for {}", failed.join(", ")))
            .hint("apt-get update may help; in a checkout of prairie they are built from sources")),
    }
}

fn choose(names: &[String]) -> Result<Vec<&'static Package>> {
    let find = |name: &String| {
        KNOWN.iter().find(|known| known.name == *name).ok_or_else(|| {
            let all: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
            Trouble::new(format!("no peer is called '{name}'"))
                .hint(format!("there are {}", all.join(", ")))
        })
    };
    match names {
        [] => Ok(KNOWN.iter().collect()),
        names => names.iter().map(find).collect(),
    }
}

/// None: there is no such package.
fn unpack(package: &Package, name: &str, into: &Path) -> Result<Option<PathBuf>> {
    let folder = tempfile::tempdir().about("a temporary folder")?;
    let quietly = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|ended| ended.success())
    };
    if !quietly("apt-get", &["download", name]) {
        return Ok(None);
    }
    let files = fs::read_dir(folder.path()).about("a temporary folder")?.flatten();
    let Some(archive) =
        files.map(|file| file.path()).find(|p| p.extension() == Some("deb".as_ref()))
    else {
        return Ok(None);
    };
    if !quietly("dpkg-deb", &["-x", &archive.display().to_string(), "unpacked"]) {
        return Err(Trouble::new(format!("{}: cannot be unpacked", archive.display())));
    }
    let Some(found) = find(&folder.path().join("unpacked"), package.files) else { return Ok(None) };
    let target = into.join(package.name);
    fs::create_dir_all(&target).about(target.display())?;
    let path = target.join(found.file_name().unwrap_or_default());
    put(&found, &path).about(path.display())?;
    Ok(Some(path))
}

/// As a whole, and in the place of one that is there: programs may run on that.
fn put(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or(Path::new("."));
    let readable = fs::Permissions::from_mode(0o644);
    let mut file = tempfile::Builder::new().permissions(readable).tempfile_in(folder)?;
    io::copy(&mut File::open(from)?, &mut file)?;
    file.persist(to)?;
    Ok(())
}

/// A file of one of these names somewhere below, as it is called there.
fn find(folder: &Path, names: &[&str]) -> Option<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if names.iter().any(|name| path.file_name() == Some(name.as_ref())) {
                return Some(path);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_chosen_by_name() {
        assert_eq!(choose(&[]).unwrap().len(), KNOWN.len());
        assert_eq!(choose(&["jemalloc".into()]).unwrap()[0].packages, ["libjemalloc2"]);
        let refused = choose(&["nomalloc".into()]).err().unwrap();
        assert_eq!(refused.to_string(), "no peer is called 'nomalloc'");
    }

    #[test]
    fn a_library_that_programs_run_on_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("new"), folder.path().join("lib.so"));
        fs::write(&to, "old").unwrap();
        fs::write(&from, "new").unwrap();
        let mapped = File::open(&to).unwrap();
        put(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"new");
        assert_eq!(io::read_to_string(mapped).unwrap(), "old");
    }

    #[test]
    fn a_library_is_found_wherever_it_was_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("usr/lib/x86_64-linux-gnu");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("libjemalloc.so.2"), "").unwrap();
        assert_eq!(find(folder.path(), KNOWN[0].files), Some(deep.join("libjemalloc.so.2")));
        assert_eq!(find(folder.path(), KNOWN[1].files), None);
    }
}
