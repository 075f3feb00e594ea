//! A folder in the `/tmp` of a process, as the process sees it, into which it writes a file for us.
//!
//! Whoever owns that `/tmp`, in a container perhaps, may put links, pipes and other folders in the
//! way. So the tool, though it may be root, does nothing there that the process may not do itself:
//! what it makes belongs to the process's user from the start. No link is followed, and the folder is
//! looked up only once.
// SPDX-License-Identifier: MIT

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use super::{attach, pprof};
use crate::proc;
use crate::refusal;
use crate::regular;
use crate::sys::{OnBehalf, Pid};
use crate::trouble::{Result, Trouble};

/// It makes a profile of pprof, which tells builds apart.
const FILE: &str = "heap.pb.gz";

pub struct Handover {
    /// The process's user and group.
    owner: (u32, u32),
    tmp: OwnedFd,
    folder: OwnedFd,
    name: String,
}

impl Handover {
    pub fn with(pid: Pid) -> Result<Handover> {
        let owner = proc::file_owner(pid).ok_or_else(|| refusal::no_process(pid))?;
        let root =
            File::open(attach::root(pid)).map_err(|error| refusal::of_reading(pid, &error))?;
        let name = format!("prairie-{pid}-{:016x}", rand::random::<u64>());
        Handover::below(root, owner, name).map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP => {
                Trouble::new(format!("process {pid}: its /tmp is a link, and is not followed"))
                    .hint("`prairie run --profile` writes the same profile")
            }
            error => Trouble::new(format!("process {pid}: its /tmp: {}", io::Error::from(error)))
                .hint("the profile is written there; `prairie run --profile` writes the same"),
        })
    }

    fn below(root: impl AsFd, owner: (u32, u32), name: String) -> Result<Handover, Errno> {
        let _process = OnBehalf::begin(owner.0, owner.1);
        let folder = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let tmp = openat(root, "tmp", folder | OFlags::PATH, Mode::empty())?;
        mkdirat(&tmp, &name, Mode::RWXU)?;
        match openat(&tmp, &name, folder, Mode::empty()) {
            Ok(folder) => Ok(Handover { owner, tmp, folder, name }),
            Err(error) => {
                let _ = unlinkat(&tmp, &name, AtFlags::REMOVEDIR);
                Err(error)
            }
        }
    }

    /// As the process names it.
    pub fn path(&self) -> String {
        format!("/tmp/{}/{FILE}", self.name)
    }

    pub fn read(&self) -> io::Result<Vec<u8>> {
        let _process = OnBehalf::begin(self.owner.0, self.owner.1);
        // Nobody waits for the other end of a pipe.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.folder, FILE, flags, Mode::empty())?;
        regular::read_open(File::from(file), pprof::BYTES_MAX)
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        let _process = OnBehalf::begin(self.owner.0, self.owner.1);
        let _ = unlinkat(&self.folder, FILE, AtFlags::empty());
        let _ = unlinkat(&self.tmp, &self.name, AtFlags::REMOVEDIR);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::{Path, PathBuf};

    use tempfile::TempDir;

    use super::*;

    const NOBODY: (u32, u32) = (65534, 65534);

    fn ourselves() -> (u32, u32) {
        proc::file_owner(std::process::id() as Pid).unwrap()
    }

    /// What a process may take for `/`, with a `/tmp` for all.
    fn root() -> TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("tmp")).unwrap();
        for (path, mode) in [(root.path().join("tmp"), 0o1777), (root.path().to_owned(), 0o755)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        root
    }

    fn below(root: &Path, owner: (u32, u32)) -> Result<Handover, Errno> {
        Handover::below(File::open(root).unwrap(), owner, "x".to_owned())
    }

    fn file_of(root: &TempDir) -> PathBuf {
        root.path().join("tmp/x").join(FILE)
    }

    #[test]
    fn what_was_written_is_read_and_nothing_is_left() {
        let root = root();
        let handover = below(root.path(), ourselves()).unwrap();
        assert_eq!(handover.path(), "/tmp/x/heap.pb.gz");
        fs::write(file_of(&root), "profile").unwrap();
        assert_eq!(handover.read().unwrap(), b"profile");
        drop(handover);
        assert_eq!(fs::read_dir(root.path().join("tmp")).unwrap().count(), 0);
    }

    #[test]
    fn no_link_is_followed() {
        let (root, host) = (root(), tempfile::tempdir().unwrap());
        let (tmp, secret) = (root.path().join("tmp"), host.path().join(FILE));
        fs::write(&secret, "secret").unwrap();
        // The folder is another one when the tool comes back.
        let handover = below(root.path(), ourselves()).unwrap();
        fs::rename(tmp.join("x"), tmp.join("y")).unwrap();
        symlink(host.path(), tmp.join("x")).unwrap();
        assert_eq!(handover.read().unwrap_err().kind(), ErrorKind::NotFound);
        symlink(&secret, tmp.join("y").join(FILE)).unwrap();
        assert_eq!(handover.read().unwrap_err().raw_os_error(), Some(libc::ELOOP));
        drop(handover);
        assert!(secret.exists() && tmp.join("x").exists());
        fs::remove_dir_all(&tmp).unwrap();
        symlink(host.path(), &tmp).unwrap();
        assert_eq!(below(root.path(), ourselves()).err(), Some(Errno::NOTDIR));
        assert_eq!(fs::read_dir(host.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_pipe_is_no_profile() {
        let root = root();
        let handover = below(root.path(), ourselves()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(file_of(&root)).status().unwrap();
        assert!(made.success());
        assert_eq!(handover.read().unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn root_does_what_the_process_may_do() {
        if ourselves() != (0, 0) {
            eprintln!("skipped: only root can act for others");
            return;
        }
        let root = root();
        let handover = below(root.path(), NOBODY).unwrap();
        let about = fs::metadata(root.path().join("tmp/x")).unwrap();
        assert_eq!((about.uid(), about.gid(), about.mode() & 0o7777), (65534, 65534, 0o700));
        drop(handover);
        let tmp = root.path().join("tmp");
        fs::set_permissions(tmp, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(below(root.path(), NOBODY).err(), Some(Errno::ACCESS));
        assert_eq!(ourselves(), (0, 0));
    }
}
