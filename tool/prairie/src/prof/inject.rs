//! Calls a function in another process, through ptrace, as a debugger does.
//!
//! The process's leading thread is stopped wherever it is, made to call the function on its own
//! stack, below what it may use without asking (the red zone), and put back as it was. The function
//! returns to address 0, where nothing is: the fault tells that it is done, and nobody but us sees
//! it. Other threads run on meanwhile.
// SPDX-License-Identifier: MIT

use std::io;

use crate::sys::Pid;

#[cfg(target_arch = "x86_64")]
pub use x86_64::call;

#[cfg(not(target_arch = "x86_64"))]
pub fn call(_pid: Pid, _function: u64, _arguments: &[Argument]) -> io::Result<u64> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "so far this is written for x86-64 only"))
}

#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    Number(u64),
    /// The address of these bytes, which are put there.
    Bytes(&'a [u8]),
    /// The address of a word that holds the address of these bytes.
    PointerTo(&'a [u8]),
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::ffi::c_void;
    use std::fs::OpenOptions;
    use std::os::unix::fs::FileExt;
    use std::ptr;

    use super::{Argument, Pid, io};

    const RED_ZONE: u64 = 128;
    const NT_PRSTATUS: usize = 1;
    const NT_X86_XSTATE: usize = 0x202;
    /// Room for the vector registers of any processor so far.
    const XSTATE_BYTES: usize = 16 << 10;
    const NOWHERE: u64 = 0;

    pub fn call(pid: Pid, function: u64, arguments: &[Argument]) -> io::Result<u64> {
        let stopped = Stopped::seize(pid)?;
        let before: libc::user_regs_struct = stopped.registers()?;
        let vectors = stopped.vectors()?;
        let result = stopped.call(&before, function, arguments);
        // Whatever came of it, the thread goes on where it was.
        stopped.set(NT_X86_XSTATE, vectors.as_ptr().cast(), vectors.len())?;
        stopped.set_registers(&before)?;
        result
    }

    struct Stopped {
        pid: Pid,
    }

    impl Drop for Stopped {
        fn drop(&mut self) {
            let _ = request(libc::PTRACE_DETACH, self.pid, 0, 0);
        }
    }

    impl Stopped {
        fn seize(pid: Pid) -> io::Result<Stopped> {
            request(libc::PTRACE_SEIZE, pid, 0, 0)?;
            let stopped = Stopped { pid };
            request(libc::PTRACE_INTERRUPT, pid, 0, 0)?;
            loop {
                let status = wait(pid)?;
                // Behind the signal stands the event: only the stop that was asked for has one.
                if status >> 16 == libc::PTRACE_EVENT_STOP {
                    return Ok(stopped);
                }
                go_on(pid, libc::WSTOPSIG(status))?;
            }
        }

        fn call(
            &self,
            before: &libc::user_regs_struct,
            function: u64,
            arguments: &[Argument],
        ) -> io::Result<u64> {
            let memory = OpenOptions::new()
                .read(true)
                .write(true)
                .open(format!("/proc/{}/mem", self.pid))?;
            let mut top = before.rsp - RED_ZONE;
            let mut put = |bytes: &[u8]| {
                top = (top - bytes.len() as u64) & !15;
                memory.write_all_at(bytes, top).map(|()| top)
            };
            let mut values = [0; 6];
            for (value, argument) in values.iter_mut().zip(arguments) {
                *value = match argument {
                    Argument::Number(number) => *number,
                    Argument::Bytes(bytes) => put(bytes)?,
                    Argument::PointerTo(bytes) => {
                        let at = put(bytes)?;
                        put(&at.to_ne_bytes())?
                    }
                };
            }
            let return_address = (top & !15) - 8;
            memory.write_all_at(&NOWHERE.to_ne_bytes(), return_address)?;
            let mut registers = *before;
            registers.rip = function;
            registers.rsp = return_address;
            registers.rax = 0;
            // Else the kernel takes this for a system call that it has to begin again.
            registers.orig_rax = u64::MAX;
            [registers.rdi, registers.rsi, registers.rdx, registers.rcx] =
                [values[0], values[1], values[2], values[3]];
            [registers.r8, registers.r9] = [values[4], values[5]];
            self.set_registers(&registers)?;
            self.run_to_nowhere()
        }

        /// Signals that come meanwhile take their way.
        fn run_to_nowhere(&self) -> io::Result<u64> {
            let mut signal = 0;
            loop {
                go_on(self.pid, signal)?;
                let status = wait(self.pid)?;
                signal = libc::WSTOPSIG(status);
                if status >> 16 != 0 {
                    signal = 0;
                } else if signal == libc::SIGSEGV {
                    let registers = self.registers()?;
                    if registers.rip == NOWHERE {
                        return Ok(registers.rax);
                    }
                    return Err(io::Error::other("the function failed in there"));
                }
            }
        }

        fn registers(&self) -> io::Result<libc::user_regs_struct> {
            // SAFETY: a struct of numbers may be all zero; the kernel fills no more than its size.
            let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
            self.get(NT_PRSTATUS, (&raw mut registers).cast(), size_of_val(&registers))?;
            Ok(registers)
        }

        fn set_registers(&self, registers: &libc::user_regs_struct) -> io::Result<()> {
            self.set(NT_PRSTATUS, (&raw const *registers).cast(), size_of_val(registers))
        }

        fn vectors(&self) -> io::Result<Vec<u8>> {
            let mut bytes = vec![0; XSTATE_BYTES];
            let length = self.get(NT_X86_XSTATE, bytes.as_mut_ptr().cast(), bytes.len())?;
            bytes.truncate(length);
            Ok(bytes)
        }

        fn get(&self, set: usize, into: *mut c_void, length: usize) -> io::Result<usize> {
            let mut part = libc::iovec { iov_base: into, iov_len: length };
            request(libc::PTRACE_GETREGSET, self.pid, set, (&raw mut part) as usize)?;
            Ok(part.iov_len)
        }

        fn set(&self, set: usize, from: *const c_void, length: usize) -> io::Result<()> {
            let part = libc::iovec { iov_base: from.cast_mut(), iov_len: length };
            request(libc::PTRACE_SETREGSET, self.pid, set, (&raw const part) as usize)
        }
    }

    fn go_on(pid: Pid, signal: i32) -> io::Result<()> {
        request(libc::PTRACE_CONT, pid, 0, signal as usize)
    }

    fn request(what: libc::c_uint, pid: Pid, address: usize, data: usize) -> io::Result<()> {
        // SAFETY: data is a number, or points to an iovec of the caller for these requests.
        let done =
            unsafe { libc::ptrace(what, pid, ptr::without_provenance::<c_void>(address), data) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn wait(pid: Pid) -> io::Result<i32> {
        let mut status = 0;
        loop {
            // SAFETY: a place for the answer.
            let found = unsafe { libc::waitpid(pid, &mut status, libc::__WALL) };
            if found == pid && libc::WIFSTOPPED(status) {
                return Ok(status);
            }
            let error = io::Error::last_os_error();
            if found == pid {
                return Err(io::Error::other("the process has ended"));
            }
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}
