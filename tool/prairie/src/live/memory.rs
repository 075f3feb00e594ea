//! Reads the memory of a process that runs on.
// SPDX-License-Identifier: MIT

use std::io;

use crate::sys::Pid;

pub trait Memory {
    /// All of `into`, or a failure.
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()>;

    fn bytes(&self, address: u64, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// A number of at most eight bytes.
    fn number(&self, address: u64, count: usize) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes[..count])?;
        Ok(u64::from_le_bytes(bytes))
    }
}

pub struct OfProcess(pub Pid);

impl Memory for OfProcess {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            let rest = &mut into[done..];
            let here = libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() };
            let there = libc::iovec {
                iov_base: address.wrapping_add(done as u64) as *mut libc::c_void,
                iov_len: rest.len(),
            };
            // SAFETY: `here` is `rest`; the kernel only looks at where `there` points.
            let count = unsafe { libc::process_vm_readv(self.0, &here, 1, &there, 1, 0) };
            match count {
                ..0 => return Err(io::Error::last_os_error()),
                0 => return Err(io::Error::from_raw_os_error(libc::EFAULT)),
                _ => done += count as usize,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_be_read_where_it_has_memory() {
        let own = OfProcess(std::process::id() as Pid);
        let words = [0x0102_0304_u32, 7];
        assert_eq!(own.number(words.as_ptr() as u64, 8).unwrap(), 0x0000_0007_0102_0304);
        assert_eq!(own.number(words.as_ptr() as u64 + 4, 2).unwrap(), 7);
        assert_eq!(own.bytes(8, 16).unwrap_err().raw_os_error(), Some(libc::EFAULT));
        let gone = OfProcess(Pid::MAX).bytes(8, 16).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(libc::ESRCH));
    }
}
