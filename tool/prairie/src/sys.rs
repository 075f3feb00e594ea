//! System calls that the standard library does not have.
// SPDX-License-Identifier: MIT

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

pub type Pid = libc::pid_t;

/// Nanoseconds of a clock that never jumps and that all processes share.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds for which this thread has had a processor: what its work costs, however long the
/// machine let it wait.
pub fn thread_cpu_ns() -> u64 {
    let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `used` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut used) };
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Exited(i32),
    Killed(i32),
}

impl Ended {
    /// 128 + n stands for signal n, as in a shell.
    pub fn code(self) -> i32 {
        match self {
            Ended::Exited(code) => code,
            Ended::Killed(signal) => 128 + signal,
        }
    }

    pub fn text(self) -> String {
        match self {
            Ended::Exited(code) => format!("exit code {code}"),
            Ended::Killed(signal) => format!("killed by {}", signal_name(signal)),
        }
    }
}

pub fn signal_name(signal: i32) -> String {
    const NAMES: &[(i32, &str)] = &[
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    match NAMES.iter().find(|(number, _)| *number == signal) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("signal {signal}"),
    }
}

/// What the kernel counted for a process that ended, and for those of its children it waited for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    pub user_s: f64,
    pub system_s: f64,
    /// The largest resident memory of any one of these processes.
    pub peak_bytes: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub voluntary_switches: u64,
    pub forced_switches: u64,
}

impl Usage {
    pub fn add(&mut self, other: &Usage) {
        self.user_s += other.user_s;
        self.system_s += other.system_s;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.voluntary_switches += other.voluntary_switches;
        self.forced_switches += other.forced_switches;
    }
}

pub struct Reaped {
    pub ended: Ended,
    pub usage: Usage,
}

/// A child that has ended: the one named, or any with -1. None: none has ended, or there is none.
pub fn reap(pid: Pid, block: bool) -> Option<Reaped> {
    let flags = if block { 0 } else { libc::WNOHANG };
    loop {
        let mut status = 0;
        // SAFETY: a struct of numbers may be all zero, and both places are valid for the answer.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let found = unsafe { libc::wait4(pid, &mut status, flags, &mut usage) };
        if found > 0 {
            return Some(Reaped { ended: ended_of(status), usage: usage_of(&usage) });
        }
        if found == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
}

fn ended_of(status: i32) -> Ended {
    if libc::WIFSIGNALED(status) {
        Ended::Killed(libc::WTERMSIG(status))
    } else {
        Ended::Exited(libc::WEXITSTATUS(status))
    }
}

fn usage_of(usage: &libc::rusage) -> Usage {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Usage {
        user_s: seconds(usage.ru_utime),
        system_s: seconds(usage.ru_stime),
        peak_bytes: usage.ru_maxrss as u64 * 1024,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        forced_switches: usage.ru_nivcsw as u64,
    }
}

/// A descriptor that becomes readable when the process ends.
pub fn open_process(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers; a descriptor that it returns belongs to nobody else.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Waits until `fd` is readable; false when the time is over or a signal came first.
pub fn readable_within(fd: &OwnedFd, timeout: Duration) -> bool {
    input_within(fd.as_raw_fd(), timeout) != 0
}

/// Waits for keys on the terminal of standard output, or a signal, as long as this; false when there
/// is no terminal any more. What looks for keys there afterwards may then never return.
pub fn terminal_lasts_for(timeout: Duration) -> bool {
    let gone = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
    input_within(libc::STDOUT_FILENO, timeout) & gone == 0
}

/// Waits for input; what has come of it. 0: the time is over, or a signal came first.
fn input_within(fd: RawFd, timeout: Duration) -> libc::c_short {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let time = libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: timeout.subsec_nanos() as libc::c_long,
    };
    // SAFETY: one valid entry, a valid time, no signal mask.
    unsafe { libc::ppoll(&mut poll, 1, &time, std::ptr::null()) };
    poll.revents
}

/// Sends a signal; a process that has ended meanwhile is no failure.
pub fn send_signal(pid: Pid, signal: i32) {
    // SAFETY: two numbers.
    unsafe { libc::kill(pid, signal) };
}

/// The signals by which a terminal, a user or the system ends a tool.
pub const ENDING_SIGNALS: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// While this lives, ending signals wait, as far as this thread is the one to get them.
pub struct Undisturbed {
    before: libc::sigset_t,
}

impl Undisturbed {
    pub fn begin() -> Undisturbed {
        Undisturbed { before: block_signals(&ENDING_SIGNALS) }
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        // SAFETY: the set that the kernel gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

/// While this lives, this thread does with files what this user may, and owns what it makes as that
/// user; only root can take that on, for others all stays as it was.
pub struct OnBehalf {
    before: (u32, u32),
    /// It is this thread's.
    _stays: std::marker::PhantomData<*const ()>,
}

impl OnBehalf {
    pub fn begin(user: u32, group: u32) -> OnBehalf {
        // SAFETY: numbers only. The group first: who is no longer root cannot change it.
        let group = unsafe { libc::setfsgid(group) } as u32;
        let user = unsafe { libc::setfsuid(user) } as u32;
        OnBehalf { before: (user, group), _stays: std::marker::PhantomData }
    }
}

impl Drop for OnBehalf {
    fn drop(&mut self) {
        // SAFETY: numbers only.
        unsafe { libc::setfsuid(self.before.0) };
        unsafe { libc::setfsgid(self.before.1) };
    }
}

/// Processes left behind by their parents become ours, so that they can be counted, and ended where
/// that is wanted; else they become somebody else's when this tool ends.
pub fn adopt_orphans() {
    // SAFETY: numbers only. A kernel without it leaves orphans to init, which costs figures only.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Whether two processes run in the same memory, as after vfork. False where the kernel does not say.
pub fn share_memory(one: Pid, other: Pid) -> bool {
    const KCMP_VM: libc::c_int = 1;
    // SAFETY: five numbers.
    unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) == 0 }
}

pub fn page_bytes() -> u64 {
    // SAFETY: a number in, a number out.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

pub fn own_pid() -> Pid {
    std::process::id() as Pid
}

/// What broken pipes did before the standard library had them ignored, which it does before main.
static PIPES_WERE_IGNORED: AtomicBool = AtomicBool::new(false);
/// Standard streams that were closed before it opened something else in their places: a bit for each.
static CLOSED_STREAMS: AtomicU8 = AtomicU8::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_START: extern "C" fn() = note_start;

extern "C" fn note_start() {
    PIPES_WERE_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    for stream in 0..=libc::STDERR_FILENO {
        // SAFETY: numbers.
        if unsafe { libc::fcntl(stream, libc::F_GETFD) } < 0 {
            CLOSED_STREAMS.fetch_or(1 << stream, Ordering::Relaxed);
        }
    }
}

/// Whether who started this tool had closed this one of the standard streams.
pub fn was_closed(stream: RawFd) -> bool {
    CLOSED_STREAMS.load(Ordering::Relaxed) & (1 << stream) != 0
}

/// As who started this tool had them, for what it starts.
pub fn of_broken_pipes() -> libc::sighandler_t {
    if PIPES_WERE_IGNORED.load(Ordering::Relaxed) { libc::SIG_IGN } else { libc::SIG_DFL }
}

pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: what is done is only asked for.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut old) == 0
            && old.sa_sigaction == libc::SIG_IGN
    }
}

/// Whether a process is in the process group of this one.
pub fn is_in_own_group(pid: Pid) -> bool {
    // SAFETY: numbers.
    unsafe { libc::getpgid(pid) == libc::getpgrp() }
}

/// These signals, for calls that take a set.
pub fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: a valid place, in which an empty set is made before signals are added.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        signals.iter().for_each(|signal| assert_eq!(libc::sigaddset(&mut set, *signal), 0));
        set
    }
}

/// This thread gets them no longer: they wait until they are taken. Returns what it blocked before.
pub fn block_signals(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: both sets are valid places.
    unsafe {
        let mut before = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, &set_of(signals), &mut before);
        before
    }
}

/// One of these signals, which are blocked, if it waits; it does not wait afterwards.
pub fn take_signal(signals: &[i32]) -> Option<i32> {
    let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid set, a valid time, and no place for more about the signal.
    let taken = unsafe { libc::sigtimedwait(&set_of(signals), std::ptr::null_mut(), &no_time) };
    (taken > 0).then_some(taken)
}

/// Lists of processes call this one so from now on, without its arguments, as far as they have room.
///
/// # Safety
/// Nobody reads this program's arguments any more.
pub unsafe fn rename_process(name: &CStr) {
    // SAFETY: a string that ends with zero.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    let about = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may contain anything, come the third field and those that follow.
    let behind_name = about.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut fields = behind_name.split_ascii_whitespace().map(str::parse::<usize>).skip(48 - 3);
    let (Some(Ok(start)), Some(Ok(limit))) = (fields.next(), fields.next()) else { return };
    let room = limit.saturating_sub(start);
    if start == 0 || room <= name.count_bytes() {
        return;
    }
    // SAFETY: there the kernel put the arguments, which nobody reads any more.
    let arguments = unsafe {
        std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut::<u8>(start), room)
    };
    arguments.fill(0);
    arguments[..name.count_bytes()].copy_from_slice(name.to_bytes());
}

/// The file that answers calls of `name` in this process.
pub fn owner_of(name: &CStr) -> Option<String> {
    // SAFETY: the loader's table is only read; `info` is valid for the answer.
    unsafe {
        let symbol = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        let mut info: libc::Dl_info = std::mem::zeroed();
        if symbol.is_null() || libc::dladdr(symbol, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        Some(CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned())
    }
}

/// The address of a function that the loader knows by `name`.
pub fn symbol(name: &CStr) -> Option<*mut libc::c_void> {
    // SAFETY: the loader's table is only read.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_is_blocked_waits_until_it_is_taken() {
        let signals = [libc::SIGUSR1, libc::SIGURG];
        let before = block_signals(&signals);
        // SAFETY: numbers; the signal is for this thread, which blocks it.
        unsafe { libc::raise(libc::SIGURG) };
        assert_eq!(take_signal(&[libc::SIGUSR1]), None);
        assert_eq!(take_signal(&signals), Some(libc::SIGURG));
        assert_eq!(take_signal(&signals), None);
        // SAFETY: the set that the kernel gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    }

    #[test]
    fn who_waits_uses_no_processor() {
        let (begin, begin_cpu) = (monotonic_ns(), thread_cpu_ns());
        std::thread::sleep(Duration::from_millis(100));
        let (time, cpu) = (monotonic_ns() - begin, thread_cpu_ns() - begin_cpu);
        assert!(time >= 100_000_000 && cpu < time / 10, "{time} {cpu}");
        let begin_cpu = thread_cpu_ns();
        while thread_cpu_ns() - begin_cpu < 1_000_000 {}
    }
}
