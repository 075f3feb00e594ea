//! The library that lies within this command, put where the loader can find it.
// SPDX-License-Identifier: MIT

use std::env;
use std::fs::{self, DirBuilder};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::trouble::{About, Result, Trouble};
use crate::units;

/// Empty: it was built without.
static BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libprairie.so"));
/// Hexadecimal digits of the checksum in the name of a file.
const DIGITS: usize = 16;

/// A file with the library in it; None: there is none within. Once for each call of the command.
pub fn library() -> Result<Option<PathBuf>> {
    static PLACE: OnceLock<Result<PathBuf>> = OnceLock::new();
    if BYTES.is_empty() {
        return Ok(None);
    }
    PLACE.get_or_init(|| place(&folders(), BYTES)).clone().map(Some)
}

/// The user's own folders, the best first: a file that stays serves a program that outlives this
/// command and starts others.
fn folders() -> Vec<PathBuf> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = variable("XDG_CACHE_HOME").or(variable("HOME").map(|home| home.join(".cache")));
    let of_user = format!("prairie-{}", us());
    [
        cache.map(|folder| folder.join("prairie")),
        variable("XDG_RUNTIME_DIR").map(|folder| folder.join("prairie")),
        Some(env::temp_dir().join(&of_user)),
        Some(Path::new("/dev/shm").join(&of_user)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub fn us() -> u32 {
    // SAFETY: a call without arguments that cannot fail.
    unsafe { libc::geteuid() }
}

fn place(folders: &[PathBuf], bytes: &[u8]) -> Result<PathBuf> {
    let sum = units::hexadecimal(&Sha256::digest(bytes));
    let name = format!("libprairie-{}.so", &sum[..DIGITS]);
    let mut failure = Trouble::new("no folder to put the library into");
    for folder in folders {
        match in_folder(folder, &name, bytes) {
            Ok(path) => return Ok(path),
            Err(error) => failure = error,
        }
    }
    Err(failure.hint("set XDG_CACHE_HOME to a folder of yours, or name a library: --library FILE"))
}

fn in_folder(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).about(folder.display())?;
    let path = folder.join(name);
    // Whoever else could write there could get into programs.
    let about = fs::symlink_metadata(folder).about(folder.display())?;
    if !about.is_dir() || about.uid() != us() || about.mode() & 0o022 != 0 {
        return Err(Trouble::new(format!("{}: not a folder of ours alone", folder.display())));
    }
    if fs::read(&path).is_ok_and(|found| found == bytes) {
        return Ok(path);
    }
    // Two commands at once each write their own, and the last one's name stays.
    let mut file = tempfile::NamedTempFile::new_in(folder).about(folder.display())?;
    file.write_all(bytes).about(folder.display())?;
    file.persist(&path).about(path.display())?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_file_is_made_once_and_mended() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("a/prairie");
        let path = place(std::slice::from_ref(&cache), b"library").unwrap();
        assert!(path.starts_with(&cache), "{}", path.display());
        let made = fs::metadata(&path).unwrap().ino();
        assert_eq!(place(std::slice::from_ref(&cache), b"library").unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), made);
        fs::write(&path, b"damaged").unwrap();
        place(std::slice::from_ref(&cache), b"library").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"library");
        assert_ne!(place(std::slice::from_ref(&cache), b"another").unwrap(), path);
    }

    #[test]
    fn a_folder_of_others_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        DirBuilder::new().mode(0o777).create(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let own = folder.path().join("own");
        let path = place(&[PathBuf::from("/proc/no"), open.clone(), own.clone()], b"x").unwrap();
        assert!(path.starts_with(&own), "{}", path.display());
        let refused = place(&[open], b"x").unwrap_err().to_string();
        assert!(refused.ends_with("open: not a folder of ours alone"), "{refused}");
    }
}
