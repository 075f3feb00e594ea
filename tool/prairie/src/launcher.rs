//! A second process, forked before this one has grown, that starts the programs to measure.
//!
//! The kernel counts the memory that a process had before it executed its program into that
//! process's peak. Forked from here, a small program would seem to need what this tool needs; forked
//! from a process of a few hundred kilobytes, its peak is its own. The launcher hands its children
//! to this process (CLONE_PARENT), which therefore waits for them and reads their figures.
//!
//! Meanwhile it gets the signals that are sent to the whole process group, and tells of them: so the
//! tool knows which of its own the program has got as well.
// SPDX-License-Identifier: MIT

use std::ffi::{CStr, CString, OsStr};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::sys::{self, Pid};
use crate::trouble::{NOT_EXECUTABLE, Result, Trouble};

/// What to start. The environment is complete: nothing is inherited.
pub struct Command<'a> {
    pub program: &'a Path,
    pub arguments: Vec<&'a OsStr>,
    pub environment: Vec<(&'a OsStr, &'a OsStr)>,
    pub folder: &'a Path,
    /// None: this tool's own.
    pub stdin: Option<&'a Path>,
    pub stdout: Option<&'a Path>,
    pub stderr: Option<&'a Path>,
    /// It leads a session of its own, is out of the terminal's reach, and dies with this tool.
    pub own_session: bool,
}

pub struct Started {
    pub pid: Pid,
    /// When the program replaced the launcher's copy, on the monotonic clock.
    pub start_ns: u64,
}

pub struct Launcher {
    channel: UnixStream,
    pub pid: Pid,
}

const ANSWER_BYTES: usize = 16;
/// Who asks for signals, not for a program to start. Commands are never empty.
const SIGNALS_PLEASE: u64 = 0;
const SIGNALS_PATIENCE: Duration = Duration::from_secs(1);

/// Signals by which people end a program, or tell it something.
pub const TOLD_SIGNALS: [i32; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];
/// A name that nobody means who sends signals by names of programs, or by their arguments.
const NAME: &CStr = c"launcher";

impl Launcher {
    /// To be called first in main, while the process is small and has one thread.
    pub fn fork() -> io::Result<Launcher> {
        let (ours, theirs) = UnixStream::pair()?;
        // Where the ends of children are ignored, nobody can wait for them.
        // SAFETY: numbers only.
        let of_children = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        // SAFETY: there is one thread, so the child may go on as if nothing had happened.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(ours);
                serve(theirs, of_children);
                std::process::exit(0)
            }
            pid => Ok(Launcher { channel: ours, pid }),
        }
    }

    pub fn start(&mut self, command: &Command) -> Result<Started> {
        let lost = |error: io::Error| Trouble::new(format!("the launcher is gone: {error}"));
        let request = encode(command);
        self.channel.write_all(&(request.len() as u64).to_ne_bytes()).map_err(lost)?;
        self.channel.write_all(&request).map_err(lost)?;
        let mut answer = [0; ANSWER_BYTES];
        self.channel.read_exact(&mut answer).map_err(lost)?;
        let (time, rest) = answer.split_at(8);
        let (pid, error) = rest.split_at(4);
        let pid = Pid::from_ne_bytes(pid.try_into().expect("4 bytes"));
        let error = i32::from_ne_bytes(error.try_into().expect("4 bytes"));
        if error != 0 {
            if pid > 0 {
                sys::reap(pid, true);
            }
            let reason = io::Error::from_raw_os_error(error);
            let text = format!("{}: {reason}", command.program.display());
            return Err(Trouble::new(text).code(NOT_EXECUTABLE));
        }
        Ok(Started { pid, start_ns: u64::from_ne_bytes(time.try_into().expect("8 bytes")) })
    }
}

/// The launcher once no more programs are to be started: it has got what was sent to all processes of
/// the group, or of the control group, and hardly anything else.
pub struct Bystander {
    /// None: it has not answered.
    channel: Option<UnixStream>,
}

impl Bystander {
    pub fn new(launcher: &Launcher) -> io::Result<Bystander> {
        Ok(Bystander { channel: Some(launcher.channel.try_clone()?) })
    }

    /// Those of `TOLD_SIGNALS` that it has got since the last time: a bit for each, by its number.
    /// None where it does not answer.
    pub fn has_got(&mut self) -> u64 {
        let answer = self.channel.as_ref().map(Bystander::ask);
        match answer {
            Some(Ok(signals)) => signals,
            // A late answer would be taken for that of the next question.
            Some(Err(_)) => {
                self.channel = None;
                0
            }
            None => 0,
        }
    }

    fn ask(mut channel: &UnixStream) -> io::Result<u64> {
        let mut signals = [0; 8];
        channel.set_read_timeout(Some(SIGNALS_PATIENCE))?;
        channel.write_all(&SIGNALS_PLEASE.to_ne_bytes())?;
        channel.read_exact(&mut signals)?;
        channel.set_read_timeout(None)?;
        Ok(u64::from_ne_bytes(signals))
    }
}

/// The launcher ends when nobody can ask it any more, and leaves nothing behind.
impl Drop for Launcher {
    fn drop(&mut self) {
        let _ = self.channel.shutdown(std::net::Shutdown::Both);
        sys::reap(self.pid, true);
    }
}

/// Fields in order, each ended by a zero byte, which none of them can contain.
fn encode(command: &Command) -> Vec<u8> {
    let mut request = Vec::new();
    let mut field = |bytes: &[u8]| {
        request.extend_from_slice(bytes);
        request.push(0);
    };
    field(if command.own_session { b"own" } else { b"" });
    field(command.folder.as_os_str().as_bytes());
    for stream in [command.stdin, command.stdout, command.stderr] {
        field(stream.map_or(b"", |path| path.as_os_str().as_bytes()));
    }
    field(command.program.as_os_str().as_bytes());
    field(command.arguments.len().to_string().as_bytes());
    for argument in &command.arguments {
        field(argument.as_bytes());
    }
    for (name, value) in &command.environment {
        field(&[name.as_bytes(), b"=", value.as_bytes()].concat());
    }
    request
}

/// The launcher's life: one request after the other, until the tool has closed its end.
/// `of_children`: what is done about the ends of children, as whoever started the tool had it.
fn serve(mut channel: UnixStream, of_children: libc::sighandler_t) {
    // The program decides what a signal does: this process stays.
    let inherited = Inherited { of_children, blocked: sys::block_signals(&TOLD_SIGNALS) };
    // SAFETY: this copy of the tool does nothing but what stands here.
    unsafe { sys::rename_process(NAME) };
    let mut size = [0; 8];
    while channel.read_exact(&mut size).is_ok() {
        let answered = match u64::from_ne_bytes(size) {
            SIGNALS_PLEASE => channel.write_all(&signals_so_far().to_ne_bytes()),
            bytes => {
                let mut request = vec![0; bytes as usize];
                let heard = channel.read_exact(&mut request);
                heard.and_then(|()| channel.write_all(&launch(&request, &inherited)))
            }
        };
        if answered.is_err() {
            return;
        }
    }
}

/// What a program has as whoever started the tool had it.
struct Inherited {
    of_children: libc::sighandler_t,
    blocked: libc::sigset_t,
}

fn signals_so_far() -> u64 {
    std::iter::from_fn(|| sys::take_signal(&TOLD_SIGNALS)).fold(0, |all, one| all | 1 << one)
}

fn launch(request: &[u8], inherited: &Inherited) -> [u8; ANSWER_BYTES] {
    let (pid, time, error) = match launch_or_fail(&Request::decode(request), inherited) {
        Ok((pid, time, error)) => (pid, time, error),
        Err(error) => (0, 0, error.raw_os_error().unwrap_or(libc::EIO)),
    };
    let mut answer = [0; ANSWER_BYTES];
    answer[..8].copy_from_slice(&time.to_ne_bytes());
    answer[8..12].copy_from_slice(&pid.to_ne_bytes());
    answer[12..].copy_from_slice(&error.to_ne_bytes());
    answer
}

struct Request {
    own_session: bool,
    folder: CString,
    streams: [CString; 3],
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Request {
    fn decode(bytes: &[u8]) -> Request {
        let body = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        let mut fields =
            body.split(|byte| *byte == 0).map(|field| CString::new(field).expect("split at zeros"));
        let mut next = || fields.next().unwrap_or_default();
        let own_session = !next().is_empty();
        let (folder, streams, program) = (next(), [next(), next(), next()], next());
        let count = next().to_string_lossy().parse().unwrap_or(0);
        let arguments = (0..count).map(|_| next()).collect();
        Request { own_session, folder, streams, program, arguments, environment: fields.collect() }
    }
}

/// The new process, its starting time, and the error number if it could not become the program.
fn launch_or_fail(request: &Request, inherited: &Inherited) -> io::Result<(Pid, u64, i32)> {
    let pointers = |strings: &[CString]| {
        strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect::<Vec<_>>()
    };
    let arguments = pointers(&request.arguments);
    let environment = pointers(&request.environment);
    let (mut reader, writer) = pipe()?;
    // SAFETY: one thread; the child calls nothing but system calls before it becomes the program.
    // CLONE_PARENT makes it a child of this process's parent, the tool.
    let flags = libc::c_long::from(libc::CLONE_PARENT | libc::SIGCHLD);
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    if pid == 0 {
        unsafe {
            libc::signal(libc::SIGCHLD, inherited.of_children);
            libc::sigprocmask(libc::SIG_SETMASK, &inherited.blocked, std::ptr::null_mut());
            become_program(request, &arguments, &environment, writer.as_raw_fd())
        }
    }
    drop(writer);
    let mut report = Vec::new();
    reader.read_to_end(&mut report)?;
    let time = report.get(..8).map_or(0, |b| u64::from_ne_bytes(b.try_into().expect("8 bytes")));
    let error = report.get(8..12).map_or(0, |b| i32::from_ne_bytes(b.try_into().expect("4 bytes")));
    Ok((pid as Pid, time, error))
}

/// Both ends are closed by a successful exec, so that the reader sees it.
fn pipe() -> io::Result<(std::fs::File, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: a place for two descriptors, which then belong to nobody else.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((std::fs::File::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// # Safety
/// Only in the freshly made child. Both tables end with a null pointer.
unsafe fn become_program(
    request: &Request,
    arguments: &[*const libc::c_char],
    environment: &[*const libc::c_char],
    report: i32,
) -> ! {
    let say = |bytes: &[u8]| unsafe { libc::write(report, bytes.as_ptr().cast(), bytes.len()) };
    let mut fine = true;
    unsafe {
        if request.own_session {
            libc::setsid();
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        }
        // The standard library ignores this signal in every Rust program.
        libc::signal(libc::SIGPIPE, sys::of_broken_pipes());
        for (fd, path) in request.streams.iter().enumerate() {
            fine = fine && redirect(fd as i32, path);
        }
        fine = fine && libc::chdir(request.folder.as_ptr()) == 0;
        if !fine {
            say(&0u64.to_ne_bytes());
        } else {
            say(&sys::monotonic_ns().to_ne_bytes());
            libc::execve(request.program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
        }
        say(&(*libc::__errno_location()).to_ne_bytes());
        libc::_exit(127)
    }
}

/// An empty path leaves the stream as who started the tool had it. Standard input is read, the others are written.
unsafe fn redirect(fd: i32, path: &CString) -> bool {
    if path.is_empty() {
        if sys::was_closed(fd) {
            unsafe { libc::close(fd) };
        }
        return true;
    }
    let flags =
        if fd == 0 { libc::O_RDONLY } else { libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC };
    unsafe {
        let file = libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o644);
        file >= 0 && libc::dup2(file, fd) == fd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_way_to_the_launcher() {
        let odd = OsStr::from_bytes(b"a \xff=b");
        let command = Command {
            program: Path::new("/bin/true"),
            arguments: vec![OsStr::new("true"), OsStr::new(""), odd],
            environment: vec![(OsStr::new("A"), odd), (OsStr::new("B"), OsStr::new(""))],
            folder: Path::new("/tmp"),
            stdin: None,
            stdout: Some(Path::new("/out")),
            stderr: None,
            own_session: true,
        };
        let request = Request::decode(&encode(&command));
        assert!(request.own_session);
        assert_eq!(request.folder.as_bytes(), b"/tmp");
        assert_eq!(request.streams.each_ref().map(|s| s.as_bytes()), [&b""[..], b"/out", b""]);
        let arguments: Vec<_> = request.arguments.iter().map(|a| a.as_bytes()).collect();
        assert_eq!(arguments, [&b"true"[..], b"", b"a \xff=b"]);
        let environment: Vec<_> = request.environment.iter().map(|e| e.as_bytes()).collect();
        assert_eq!(environment, [&b"A=a \xff=b"[..], b"B="]);
    }
}
