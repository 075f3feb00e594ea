//! Why a process may not be looked into, and the exact remedy: the sentences of all verbs.
// SPDX-License-Identifier: MIT

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::live::text::printable;
use crate::proc::{self, Status};
use crate::sys::Pid;
use crate::terminal;
use crate::trouble::{Result, Trouble};

const NAME: &str = "prairie";
/// Of sudo's usual secure_path.
const SUDO_FINDS: &[&str] =
    &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// What decides whether one process may look into another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rights {
    own_user: u32,
    user: u32,
    /// /proc/sys/kernel/yama/ptrace_scope; None: the kernel has no such rule.
    scope: Option<u32>,
    /// The process that traces it already, which keeps others from stopping it, not from reading.
    tracer: Option<Pid>,
}

/// It was to be read: its maps, its memory.
pub fn of_reading(pid: Pid, error: &io::Error) -> Trouble {
    of(pid, error, false)
}

/// It was to be stopped and made to do something, as a debugger does.
pub fn of_attaching(pid: Pid, error: &io::Error) -> Trouble {
    of(pid, error, true)
}

pub fn no_process(pid: Pid) -> Trouble {
    Trouble::new(format!("there is no process {pid}"))
}

/// Who is told by a number is looked up, and read or ended, by it.
pub fn require_our_numbers() -> Result<()> {
    match proc::has_our_numbers() {
        true => Ok(()),
        false => {
            Err(Trouble::new("/proc is that of another PID namespace: numbers there are not ours")
                .hint("mount our own: mount -t proc proc /proc, or unshare --mount-proc"))
        }
    }
}

/// The process exists, and this is its name in messages.
pub fn require(pid: Pid) -> Result<String> {
    require_our_numbers()?;
    match Status::of(pid) {
        Some(status) if pid > 0 && !status.is_of_ended() => Ok(proc::name(pid)),
        _ => Err(no_process(pid)),
    }
}

fn of(pid: Pid, error: &io::Error, attaches: bool) -> Trouble {
    let Some(status) = Status::of(pid) else { return no_process(pid) };
    let number = |name: &str| u32::try_from(status.number(name)?).ok();
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    let rights = Rights {
        // SAFETY: no argument, a number out.
        own_user: unsafe { libc::geteuid() },
        user: number("Uid").unwrap_or(0),
        scope: scope.and_then(|text| text.trim().parse().ok()),
        tracer: number("TracerPid").filter(|pid| attaches && *pid != 0).map(|pid| pid as Pid),
    };
    refused(&format!("process {pid} ({})", name_of(pid)), error, rights, &with_sudo())
}

/// Whoever runs a process may have given it any name.
fn name_of(pid: Pid) -> String {
    printable(&proc::name(pid))
}

/// This very command, as root.
fn with_sudo() -> String {
    let mut words = vec![name_for_sudo(std::env::current_exe().ok())];
    words.extend(std::env::args_os().skip(1));
    format!("sudo {}", terminal::shell_words(&words))
}

/// sudo looks for commands in folders of its own only, not in the user's PATH.
fn name_for_sudo(executable: Option<PathBuf>) -> OsString {
    let is_found =
        |path: &Path| SUDO_FINDS.iter().any(|folder| path == Path::new(folder).join(NAME));
    executable.filter(|path| !is_found(path)).map_or_else(|| NAME.into(), PathBuf::into_os_string)
}

fn refused(who: &str, error: &io::Error, rights: Rights, sudo: &str) -> Trouble {
    let Rights { own_user, user, scope, tracer } = rights;
    let is_root = own_user == 0;
    let container = "in a container: start it with --cap-add=SYS_PTRACE";
    match (error.raw_os_error(), scope) {
        (Some(libc::ESRCH | libc::ENOENT), _) => Trouble::new(format!("{who} has ended")),
        (Some(libc::ENOSYS), _) => Trouble::new(format!(
            "{who}: this kernel, or a filter on system calls, has no way to read it"
        ))
        .hint(container),
        (Some(libc::EPERM | libc::EACCES), _) if tracer.is_some() => {
            let tracer = tracer.unwrap_or_default();
            let name = name_of(tracer);
            Trouble::new(format!("{who} is traced by process {tracer} ({name}), and only one may"))
                .hint(format!("end that one, or let it go: kill {tracer}"))
        }
        (Some(libc::EPERM | libc::EACCES), _) if !is_root && own_user != user => {
            Trouble::new(format!("{who} belongs to user {user}: you may not read it")).hint(sudo)
        }
        (Some(libc::EPERM | libc::EACCES), Some(3..)) => Trouble::new(format!(
            "{who}: kernel.yama.ptrace_scope is 3: nobody may read a process until the next boot"
        ))
        .hint("its own output has the figures: start it with PRAIRIE_CONF=stats_print:true"),
        (Some(libc::EPERM | libc::EACCES), Some(2)) if !is_root => {
            Trouble::new(format!("{who}: kernel.yama.ptrace_scope is 2: only root may read it"))
                .hint(sudo)
        }
        (Some(libc::EPERM | libc::EACCES), Some(1)) if !is_root => Trouble::new(format!(
            "{who}: kernel.yama.ptrace_scope is 1: you may read only what you started"
        ))
        .hint(format!("{sudo}   or, for all: sudo sysctl kernel.yama.ptrace_scope=0")),
        (Some(libc::EPERM | libc::EACCES), _) if is_root => {
            Trouble::new(format!("{who} may not be read, though you are root")).hint(container)
        }
        (Some(libc::EPERM | libc::EACCES), _) => Trouble::new(format!(
            "{who} may not be read: it is set-uid, has capabilities, or has asked not to be"
        ))
        .hint(sudo),
        _ => Trouble::new(format!("{who}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const OPEN: Rights = Rights { own_user: 1000, user: 1000, scope: Some(0), tracer: None };

    #[test]
    fn each_refusal_has_its_remedy() {
        let scope = |scope| Rights { scope: Some(scope), ..OPEN };
        let root = Rights { own_user: 0, scope: None, ..OPEN };
        for (code, rights, text, hint) in [
            (libc::EPERM, Rights { user: 0, ..OPEN }, "belongs to user 0", "sudo prairie top 7"),
            (libc::EPERM, scope(1), "ptrace_scope is 1", "sysctl kernel.yama.ptrace_scope=0"),
            (libc::EPERM, scope(2), "only root", "sudo prairie top 7"),
            (libc::EPERM, Rights { own_user: 0, ..scope(3) }, "nobody", "stats_print:true"),
            (libc::EACCES, OPEN, "set-uid", "sudo prairie top 7"),
            (libc::EPERM, root, "though you are root", "--cap-add=SYS_PTRACE"),
            (libc::EPERM, Rights { tracer: Some(1), ..root }, "is traced by process 1", "kill 1"),
            (libc::ENOSYS, root, "no way to read it", "--cap-add=SYS_PTRACE"),
            (libc::ESRCH, root, "has ended", ""),
        ] {
            let error = io::Error::from_raw_os_error(code);
            let trouble = refused("process 7 (web)", &error, rights, "sudo prairie top 7");
            let said = trouble.to_string();
            assert!(said.contains("process 7 (web)") && said.contains(text), "{said}");
            let told = trouble.hint_text().unwrap_or_default();
            assert!(told.contains(hint), "{said}: {told}");
        }
    }

    #[test]
    fn who_is_not_there_is_told_in_one_way() {
        let text = format!("there is no process {}", Pid::MAX);
        assert_eq!(require(Pid::MAX).unwrap_err().to_string(), text);
        assert_eq!(require(0).unwrap_err().to_string(), "there is no process 0");
        let error = io::Error::from_raw_os_error(libc::ENOENT);
        assert_eq!(of_attaching(Pid::MAX, &error).to_string(), text);
    }

    #[test]
    fn a_name_does_not_speak_to_the_terminal() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("a\x1b[2Jb");
        fs::copy("/bin/sleep", &program).unwrap();
        let mut sleep = Command::new(&program).arg("60").spawn().unwrap();
        let pid = sleep.id() as Pid;
        // Until it is that program it has the name of this one.
        let name = format!("/proc/{pid}/comm");
        while !fs::read(&name).unwrap().starts_with(b"a") {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let text = of_reading(pid, &io::Error::from_raw_os_error(libc::EPERM)).to_string();
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        assert!(text.starts_with(&format!("process {pid} (a?[2Jb)")), "{text}");
    }

    #[test]
    fn the_remedy_is_this_very_command() {
        let name = |path: &str| name_for_sudo(Some(PathBuf::from(path)));
        assert_eq!(name("/usr/local/bin/prairie"), "prairie");
        assert_eq!(name("/opt/tools/prairie"), "/opt/tools/prairie");
        assert_eq!(name("/usr/bin/prairie-new"), "/usr/bin/prairie-new");
        assert_eq!(name_for_sudo(None), "prairie");
        let own = terminal::shell_words(&[std::env::current_exe().unwrap().into_os_string()]);
        assert!(with_sudo().starts_with(&format!("sudo {own}")));
    }
}
