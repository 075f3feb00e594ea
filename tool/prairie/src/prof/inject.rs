//! Calls a function in another process, through ptrace, as a debugger does.
//!
//! The process's leading thread is stopped wherever it is, made to call the function on its own
//! stack, below what it may use without asking, and put back as it was. The function returns to
//! address 0, where nothing is: the fault tells that it is done, and nobody but us sees it. Other
//! threads run on meanwhile. A processor that keeps a second stack, of return addresses only (shadow
//! stacks of x86-64, guarded ones of Arm), faults at the return itself, which tells the same.
//!
//! If this tool ended before that, the kernel would let the thread go on, and the fault would end
//! the process: signals that end the tool have to wait.
// SPDX-License-Identifier: MIT

use std::io;

use crate::sys::{Pid, Undisturbed};

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn call(
    _: &Undisturbed,
    _pid: Pid,
    _function: u64,
    _arguments: &[Argument],
) -> io::Result<u64> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "attaching is written for x86-64 and aarch64; `prairie run --profile` writes the same profile",
    ))
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub use thread::call;

#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    Number(u64),
    /// The address of these bytes, which are put there.
    Bytes(&'a [u8]),
    /// The address of a word that holds the address of these bytes.
    PointerTo(&'a [u8]),
}

/// What a call needs of a processor's registers, and what it may spoil.
#[cfg(target_arch = "x86_64")]
mod registers {
    pub use libc::user_regs_struct as Registers;

    /// Below the stack pointer, where a function may write without asking.
    pub const RED_ZONE: u64 = 128;
    const NT_X86_XSTATE: usize = 0x202;
    /// Beside the general ones: vectors.
    pub const SPOILT: &[usize] = &[NT_X86_XSTATE];

    pub fn stack(registers: &Registers) -> u64 {
        registers.rsp
    }

    pub fn place(registers: &Registers) -> u64 {
        registers.rip
    }

    pub fn result(registers: &Registers) -> u64 {
        registers.rax
    }

    /// The call as the first instruction of the function sees it, which returns to address 0.
    /// `put` writes bytes below the stack pointer. What it returns is where they are.
    pub fn enter<E>(
        registers: &mut Registers,
        function: u64,
        values: [u64; 6],
        mut put: impl FnMut(&[u8]) -> Result<u64, E>,
    ) -> Result<(), E> {
        // The return address stands below a multiple of 16.
        registers.rsp = put(&[0; 16])? + 8;
        registers.rip = function;
        registers.rax = 0;
        // Else the kernel takes this for a system call that it has to begin again.
        registers.orig_rax = u64::MAX;
        [registers.rdi, registers.rsi, registers.rdx, registers.rcx, registers.r8, registers.r9] =
            values;
        Ok(())
    }
}

#[cfg(target_arch = "aarch64")]
mod registers {
    pub use libc::user_regs_struct as Registers;

    pub const RED_ZONE: u64 = 0;
    const NT_PRFPREG: usize = 2;
    const NT_ARM_SVE: usize = 0x405;
    /// Of these the first is there on every processor. The second comes last: it has all of the
    /// first, and setting the first would clear the rest of it.
    pub const SPOILT: &[usize] = &[NT_PRFPREG, NT_ARM_SVE];
    const LINK: usize = 30;
    /// What kind of branch the last instruction was: a function is entered by none.
    const BRANCH_TYPE: u64 = 3 << 10;

    pub fn stack(registers: &Registers) -> u64 {
        registers.sp
    }

    pub fn place(registers: &Registers) -> u64 {
        registers.pc
    }

    pub fn result(registers: &Registers) -> u64 {
        registers.regs[0]
    }

    /// A system call that was interrupted has been made ready to begin again by the kernel, before
    /// it stopped: what was read then leads back into it.
    pub fn enter<E>(
        registers: &mut Registers,
        function: u64,
        values: [u64; 6],
        mut put: impl FnMut(&[u8]) -> Result<u64, E>,
    ) -> Result<(), E> {
        registers.sp = put(&[])?;
        registers.pc = function;
        registers.pstate &= !BRANCH_TYPE;
        registers.regs[LINK] = 0;
        registers.regs[..6].copy_from_slice(&values);
        Ok(())
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod thread {
    use std::cell::Cell;
    use std::ffi::c_void;
    use std::fs::OpenOptions;
    use std::os::unix::fs::FileExt;
    use std::ptr;
    use std::time::{Duration, Instant};

    use super::registers::{RED_ZONE, Registers, SPOILT, enter, place, result, stack};
    use super::{Argument, Pid, Undisturbed, io};
    use crate::terminal;

    const NT_PRSTATUS: usize = 1;
    /// Room for the vector registers of any processor so far.
    const VECTOR_BYTES: usize = 32 << 10;
    const NOWHERE: u64 = 0;
    /// A set of signals, as the kernel has it: a bit for each, the first one for signal 1.
    type Mask = u64;
    const FAULT: Mask = 1 << (libc::SIGSEGV - 1);
    /// Why there is a fault: a return to another address than that in the second stack.
    const SEGV_CPERR: i32 = 10;
    /// Who waits in the kernel where nothing reaches it stops when it comes out of there.
    const PATIENCE: Duration = Duration::from_secs(5);
    const LOOK_EVERY: Duration = Duration::from_micros(500);

    /// By a thread of its own: when that ends, the kernel lets go of the process also if it has not
    /// stopped yet, and would then wait for us.
    pub fn call(
        _: &Undisturbed,
        pid: Pid,
        function: u64,
        arguments: &[Argument],
    ) -> io::Result<u64> {
        let attached = || call_attached(pid, function, arguments);
        let ended = std::thread::scope(|scope| scope.spawn(attached).join());
        ended.unwrap_or_else(|_| Err(io::Error::other("the thread that attaches failed")))
    }

    fn call_attached(pid: Pid, function: u64, arguments: &[Argument]) -> io::Result<u64> {
        let stopped = Stopped::seize(pid)?;
        let before = stopped.registers()?;
        let spoilt = stopped.spoilt()?;
        let mask = stopped.mask()?;
        // For a fault in a thread that blocks the signal, the kernel takes the handler away from the
        // whole process.
        stopped.set_mask(mask & !FAULT)?;
        let result = stopped.call(&before, function, arguments);
        // Whatever came of it, the thread goes on where it was. That comes first, and the rest is
        // tried in any case: a thread that is left at address 0 ends its process.
        let restored = stopped.set_registers(&before);
        let vectors = spoilt
            .iter()
            .try_for_each(|(set, bytes)| stopped.set(*set, bytes.as_ptr().cast(), bytes.len()));
        let unmasked = stopped.set_mask(mask);
        restored.and(vectors).and(unmasked)?;
        result
    }

    struct Stopped {
        pid: Pid,
        /// A signal that stops the process, which it gets when it is let go; 0: none.
        held: Cell<i32>,
    }

    impl Drop for Stopped {
        fn drop(&mut self) {
            let _ = request(libc::PTRACE_DETACH, self.pid, 0, self.held.get() as usize);
        }
    }

    impl Stopped {
        fn seize(pid: Pid) -> io::Result<Stopped> {
            request(libc::PTRACE_SEIZE, pid, 0, 0)?;
            let stopped = Stopped { pid, held: Cell::new(0) };
            request(libc::PTRACE_INTERRUPT, pid, 0, 0)?;
            let limit = Instant::now() + PATIENCE;
            while Instant::now() < limit {
                match stop_of(pid, libc::WNOHANG)? {
                    // Behind the signal stands the event: only the stop that was asked for has one.
                    Some(status) if status >> 16 == libc::PTRACE_EVENT_STOP => return Ok(stopped),
                    Some(status) => go_on(pid, stopped.passed(libc::WSTOPSIG(status)))?,
                    None => std::thread::sleep(LOOK_EVERY),
                }
            }
            let text = "it does not stop: it waits in the kernel, as for a disk or for a process \
                        that it makes, or it is frozen";
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        }

        fn call(
            &self,
            before: &Registers,
            function: u64,
            arguments: &[Argument],
        ) -> io::Result<u64> {
            let memory = OpenOptions::new()
                .read(true)
                .write(true)
                .open(format!("/proc/{}/mem", self.pid))?;
            let mut top = stack(before) - RED_ZONE;
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
            let mut registers = *before;
            enter(&mut registers, function, values, put)?;
            self.set_registers(&registers)?;
            self.run_to_nowhere(stack(&registers))
        }

        /// Signals that come meanwhile take their way.
        fn run_to_nowhere(&self, stack_at_entry: u64) -> io::Result<u64> {
            let mut signal = 0;
            loop {
                go_on(self.pid, signal)?;
                let status = wait(self.pid, PATIENCE, || terminal::say(&still_there(self.pid)))?;
                signal = libc::WSTOPSIG(status);
                if status >> 16 != 0 {
                    signal = 0;
                } else if signal == libc::SIGSEGV {
                    let registers = self.registers()?;
                    let is_at_return = || stack(&registers) == stack_at_entry;
                    if place(&registers) == NOWHERE
                        || (is_at_return() && self.why_signal()? == SEGV_CPERR)
                    {
                        return Ok(result(&registers));
                    }
                    return Err(io::Error::other("the function failed in there"));
                } else {
                    signal = self.passed(signal);
                }
            }
        }

        /// The signal that the thread gets now in place of this one. Those that stop the process come later:
        /// a thread that stopped then may hold a lock of the heap, for which ours would wait.
        fn passed(&self, signal: i32) -> i32 {
            match signal {
                libc::SIGSTOP | libc::SIGTSTP => {
                    self.held.set(signal);
                    0
                }
                libc::SIGCONT => {
                    self.held.set(0);
                    signal
                }
                _ => signal,
            }
        }

        /// The code of the signal at which the thread has stopped.
        fn why_signal(&self) -> io::Result<i32> {
            // SAFETY: a struct of numbers may be all zero; the kernel fills it.
            let mut about: libc::siginfo_t = unsafe { std::mem::zeroed() };
            request(libc::PTRACE_GETSIGINFO, self.pid, 0, (&raw mut about) as usize)?;
            Ok(about.si_code)
        }

        /// The signals that the thread blocks. One that waits in a system call with another mask for
        /// that time has its own one here, and sets the other when it begins the call again.
        fn mask(&self) -> io::Result<Mask> {
            let mut mask: Mask = 0;
            let place = (&raw mut mask) as usize;
            request(libc::PTRACE_GETSIGMASK, self.pid, size_of::<Mask>(), place)?;
            Ok(mask)
        }

        fn set_mask(&self, mask: Mask) -> io::Result<()> {
            let place = (&raw const mask) as usize;
            request(libc::PTRACE_SETSIGMASK, self.pid, size_of::<Mask>(), place)
        }

        fn registers(&self) -> io::Result<Registers> {
            // SAFETY: a struct of numbers may be all zero; the kernel fills no more than its size.
            let mut registers: Registers = unsafe { std::mem::zeroed() };
            let length =
                self.get(NT_PRSTATUS, (&raw mut registers).cast(), size_of_val(&registers))?;
            // Of a program of 32 bits there are fewer, and shorter ones.
            if length != size_of_val(&registers) {
                let text = "attaching is written for programs of 64 bits";
                return Err(io::Error::new(io::ErrorKind::Unsupported, text));
            }
            Ok(registers)
        }

        fn set_registers(&self, registers: &Registers) -> io::Result<()> {
            self.set(NT_PRSTATUS, (&raw const *registers).cast(), size_of_val(registers))
        }

        /// The first of them is there on every processor.
        fn spoilt(&self) -> io::Result<Vec<(usize, Vec<u8>)>> {
            let mut read = Vec::new();
            for set in SPOILT {
                match self.vectors(*set) {
                    Ok(bytes) => read.push((*set, bytes)),
                    Err(error) if read.is_empty() => return Err(error),
                    Err(_) => {}
                }
            }
            Ok(read)
        }

        fn vectors(&self, set: usize) -> io::Result<Vec<u8>> {
            let mut bytes = vec![0; VECTOR_BYTES];
            let length = self.get(set, bytes.as_mut_ptr().cast(), bytes.len())?;
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
        // SAFETY: data is a number, or points to what the caller has for these requests: an iovec, what is
        // known of a signal, or a set of signals, whose size is the address.
        let done =
            unsafe { libc::ptrace(what, pid, ptr::without_provenance::<c_void>(address), data) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn still_there(pid: Pid) -> String {
        format!(
            "process {pid} has not come back yet, as where a disk is slow; it is let go when it has, \
             and signals wait until then. If it is stopped: kill -CONT {pid}"
        )
    }

    /// Who is in the middle of a call may hold a lock, and cannot be put back before its end: where that
    /// takes long, `tell` says so.
    pub(super) fn wait(pid: Pid, patience: Duration, tell: impl FnOnce()) -> io::Result<i32> {
        let limit = Instant::now() + patience;
        while Instant::now() < limit {
            match stop_of(pid, libc::WNOHANG)? {
                Some(status) => return Ok(status),
                None => std::thread::sleep(LOOK_EVERY),
            }
        }
        tell();
        loop {
            if let Some(status) = stop_of(pid, 0)? {
                return Ok(status);
            }
        }
    }

    /// None: it has not stopped yet, and with these flags nobody waits.
    fn stop_of(pid: Pid, flags: i32) -> io::Result<Option<i32>> {
        let mut status = 0;
        loop {
            // SAFETY: a place for the answer.
            let found = unsafe { libc::waitpid(pid, &mut status, libc::__WALL | flags) };
            if found == 0 {
                return Ok(None);
            }
            if found == pid && libc::WIFSTOPPED(status) {
                return Ok(Some(status));
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

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use crate::compiled::compiled;
    use crate::proc::Status;

    /// For who has called vfork the kernel has no stop before its child is another program.
    #[test]
    fn who_does_not_stop_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let waits = "#include <unistd.h>\nint main(void) { if (vfork() == 0) for (;;) pause(); }\n";
        let Some(waits) = compiled(folder.path().join("waits"), waits, &[]) else { return };
        let mut parent = Command::new(waits).process_group(0).spawn().unwrap();
        let pid = parent.id() as Pid;
        let wait_for = |is_so: &dyn Fn() -> bool| {
            assert!((0..1000).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                is_so()
            }));
        };
        let children = format!("/proc/{pid}/task/{pid}/children");
        wait_for(&|| fs::read_to_string(&children).is_ok_and(|text| !text.is_empty()));
        let told = call(&Undisturbed::begin(), pid, 1, &[]).unwrap_err();
        wait_for(&|| Status::of(pid).and_then(|status| status.number("TracerPid")) == Some(0));
        // SAFETY: numbers; the parent has not been waited for.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
        parent.wait().unwrap();
        if told.kind() != io::ErrorKind::PermissionDenied {
            assert!(told.to_string().starts_with("it does not stop"), "{told}");
        }
    }

    /// What is called stops the process, and waits for another thread; or it returns as with a second
    /// stack. Prints where both are.
    const CALLED: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
siginfo_t about = { .si_signo = SIGSEGV, .si_code = 10 };
int pid;
static volatile int beats;
static int stops(void) {
    kill(pid, SIGSTOP);
    for (int limit = beats + 3; beats < limit;) usleep(1000);
    return 7;
}
int returns(void);
__asm__("returns: mov pid(%rip), %edi; mov %edi, %esi; mov $11, %edx; lea about(%rip), %r10;"
        "mov $297, %eax; syscall; ud2");
static void *beat(void *none) {
    for (;;) { beats++; usleep(1000); }
    return none;
}
int main(void) {
    pthread_t thread;
    pid = getpid();
    pthread_create(&thread, NULL, beat, NULL);
    printf("%lu %lu\n", (unsigned long)stops, (unsigned long)returns);
    fflush(stdout);
    for (;;) pause();
}
"#;

    /// A process of that program, and the two places.
    fn called() -> Option<(Child, u64, u64)> {
        let folder = tempfile::tempdir().unwrap();
        let program = compiled(folder.path().join("called"), CALLED, &["-pthread"])?;
        let mut child = Command::new(program).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (stops, returns) = line.trim().split_once(' ').unwrap();
        Some((child, stops.parse().unwrap(), returns.parse().unwrap()))
    }

    fn is_no(answer: &io::Result<u64>) -> bool {
        answer.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    #[test]
    fn a_signal_that_stops_the_process_comes_after_the_call() {
        let Some((mut child, stops, _)) = called() else { return };
        let pid = child.id() as Pid;
        let answer = std::thread::scope(|scope| {
            let calling = scope.spawn(|| call(&Undisturbed::begin(), pid, stops, &[]));
            let mut tries = 0..1000;
            while !calling.is_finished() && tries.next().is_some() {
                std::thread::sleep(Duration::from_millis(10));
            }
            if tries.next().is_none() {
                child.kill().unwrap();
            }
            calling.join().unwrap()
        });
        let mut tries = 0..1000;
        let is_stopped = || Status::of(pid).is_some_and(|status| status.is_of_stopped());
        while !is_no(&answer) && !is_stopped() && tries.next().is_some() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let is_stopped = is_stopped();
        child.kill().unwrap();
        child.wait().unwrap();
        if !is_no(&answer) {
            assert_eq!(answer.unwrap(), 7);
            assert!(is_stopped);
        }
    }

    #[test]
    fn a_return_that_a_second_stack_refuses_is_the_end_of_the_call() {
        let Some((mut child, _, returns)) = called() else { return };
        let pid = child.id() as Pid;
        let answer = call(&Undisturbed::begin(), pid, returns, &[]);
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        if !is_no(&answer) {
            // What the system call there returned.
            assert_eq!((answer.unwrap(), ended), (0, None));
        }
    }

    #[test]
    fn who_does_not_come_back_is_told_of() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id() as Pid;
        let mut is_told = false;
        let ended = thread::wait(pid, Duration::from_millis(5), || {
            is_told = true;
            // SAFETY: numbers; it has not been waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        });
        assert_eq!(ended.unwrap_err().to_string(), "the process has ended");
        assert!(is_told && child.wait().is_err());
        let mut child = Command::new("true").spawn().unwrap();
        let ended = thread::wait(child.id() as Pid, Duration::from_secs(60), || unreachable!());
        assert_eq!(ended.unwrap_err().to_string(), "the process has ended");
        let _ = child.wait();
    }

    /// A program of 32 bits that waits: its headers, and `pause` over and over.
    fn waiting_program() -> Vec<u8> {
        let halves = |values: &[u16]| values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let words = |values: &[u32]| values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let parts: [Vec<u8>; 7] = [
            b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec(),
            halves(&[2, 3]),
            words(&[1, 0x0804_8054, 52, 0, 0]),
            halves(&[52, 32, 1, 0, 0, 0]),
            words(&[1, 0, 0x0804_8000, 0x0804_8000, 93, 93, 5, 4096]),
            b"\xb8\x1d\0\0\0\xcd\x80".to_vec(),
            b"\xeb\xf7".to_vec(),
        ];
        parts.concat()
    }

    #[test]
    fn a_program_of_32_bits_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (draft, path) = (folder.path().join("draft"), folder.path().join("waits"));
        fs::write(&draft, waiting_program()).unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
        // By another process: what a child of another test still has open cannot be run.
        assert!(Command::new("cp").arg("-p").args([&draft, &path]).status().unwrap().success());
        let Ok(mut child) = Command::new(&path).spawn() else {
            return eprintln!("skipped: the kernel runs no programs of 32 bits");
        };
        let told = call(&Undisturbed::begin(), child.id() as Pid, 1, &[]).unwrap_err();
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        if told.kind() != io::ErrorKind::PermissionDenied {
            assert_eq!(told.to_string(), "attaching is written for programs of 64 bits");
            assert_eq!(ended, None);
        }
    }
}
