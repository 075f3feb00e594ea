//! Reads files that others have named or written. What is no regular file, as a pipe or a device, may be
//! waited for, or never end.
// SPDX-License-Identifier: MIT

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    // A device may do something when it is opened.
    require(&fs::metadata(path)?)?;
    // Nobody waits for the other end of a pipe that has come there meanwhile.
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    require(&file.metadata()?)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Also of a pipe, as the user who names it wants; but a device may never end.
pub fn read_at_most(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_all(File::open(path)?, bytes_max)
}

/// Of one that was opened without waiting.
pub fn read_open(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    require(&file.metadata()?)?;
    read_all(file, bytes_max)
}

/// Fails where there is more.
pub fn read_all(from: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let text = format!("it has more than {bytes_max} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

fn require(about: &fs::Metadata) -> io::Result<()> {
    match about.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(ErrorKind::InvalidData, "not a regular file")),
    }
}
