//! Hears from the kernel (inotify) that a file is opened, by whomever.
// SPDX-License-Identifier: MIT

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub struct Opens {
    /// None: nobody tells.
    events: Option<File>,
    count: u64,
}

impl Opens {
    /// Where the kernel cannot tell, nothing is known, and that is known.
    pub fn of(path: Option<&Path>) -> Opens {
        let mut opens = Opens { events: path.and_then(listen), count: 0 };
        // Some file systems say nothing, so one is tried.
        let is_opened = path.is_some_and(|path| File::open(path).is_ok());
        if !is_opened || opens.count().is_none_or(|count| count == 0) {
            opens.events = None;
        }
        opens.count = 0;
        opens
    }

    /// Grows with each time that the file was opened; several at once may count as one. None: it is
    /// not known.
    pub fn count(&mut self) -> Option<u64> {
        // Each event is smaller than this, as a file that is watched by itself has no name in it.
        let mut bytes = [0; 4096];
        let events = self.events.as_mut()?;
        while let Ok(1..) = events.read(&mut bytes) {
            self.count += 1;
        }
        Some(self.count)
    }
}

fn listen(path: &Path) -> Option<File> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: numbers and a string that ends; the descriptor belongs to nobody else.
    unsafe {
        let fd = libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC);
        if fd < 0 {
            return None;
        }
        let events = File::from_raw_fd(fd);
        (libc::inotify_add_watch(fd, path.as_ptr(), libc::IN_OPEN) >= 0).then_some(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_open_is_heard() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut opens = Opens::of(Some(file.path()));
        let Some(before) = opens.count() else { return };
        assert_eq!(before, 0);
        File::open(file.path()).unwrap();
        assert_eq!(opens.count(), Some(1));
        File::open(file.path()).unwrap();
        assert_eq!(opens.count(), Some(2));
        assert_eq!(opens.count(), Some(2));
    }

    #[test]
    fn nothing_is_known_of_a_file_that_is_not_there() {
        assert_eq!(Opens::of(Some(Path::new("/no/such/file"))).count(), None);
        assert_eq!(Opens::of(None).count(), None);
    }
}
