//! What the kernel says of a process, and why it says no.
// SPDX-License-Identifier: MIT

use std::fs;
use std::io;

use crate::proc;
use crate::sys::{self, Pid};
use crate::trouble::Trouble;

/// A stretch of a process's address space that a file is mapped to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub offset: u64,
    pub readable: bool,
    pub executable: bool,
    pub file: String,
}

impl Mapping {
    pub fn begins_a_file(&self) -> bool {
        self.offset == 0 && self.readable && self.file.starts_with('/')
    }
}

/// Beginnings of file names, and who it is that serves a program that has such a file mapped.
const ALLOCATORS: &[(&str, &str)] = &[
    ("libprairie", "prairie"),
    ("libjemalloc", "jemalloc"),
    ("libmimalloc", "mimalloc"),
    ("libtcmalloc", "tcmalloc"),
    ("libsnmalloc", "snmalloc"),
    ("librpmalloc", "rpmalloc"),
    ("libscudo", "scudo"),
    ("libhoard", "hoard"),
    ("libhardened_malloc", "hardened_malloc"),
    ("ld-musl", "musl"),
    ("libc.so.6", "glibc"),
    ("libc-2", "glibc"),
];

/// Fails only where the kernel says no.
pub fn mappings(pid: Pid) -> io::Result<Vec<Mapping>> {
    let text = fs::read(format!("/proc/{pid}/maps"))?;
    Ok(mappings_in(&String::from_utf8_lossy(&text)))
}

fn mappings_in(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(mapping).collect()
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, _) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let (readable, executable) = (rights.starts_with('r'), rights.contains('x'));
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let file = words.nth(2).unwrap_or_default().trim_start().to_owned();
    let start = u64::from_str_radix(start, 16).ok()?;
    Some(Mapping { start, offset, readable, executable, file })
}

/// Who serves a program with these files, as far as names tell: the C library's allocator is named
/// only where no other one is there.
pub fn allocator_among(mappings: &[Mapping]) -> &'static str {
    let has = |start: &str| {
        let name_starts = |mapping: &Mapping| {
            mapping.file.rsplit('/').next().is_some_and(|name| name.starts_with(start))
        };
        mappings.iter().any(name_starts)
    };
    ALLOCATORS.iter().find(|(start, _)| has(start)).map_or("unknown", |(_, name)| *name)
}

/// What the kernel counts, in bytes but for the threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kernel {
    pub resident: u64,
    pub swapped: u64,
    pub threads: u64,
}

/// None: there is no such process, or it has ended.
pub fn kernel(pid: Pid) -> Option<Kernel> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kernel = kernel_in(&text);
    (!text.contains("\nState:\tZ")).then_some(kernel)
}

fn kernel_in(status: &str) -> Kernel {
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|rest| rest.split_ascii_whitespace().next());
        word.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0)
    };
    Kernel {
        resident: number("VmRSS:") * 1024,
        swapped: number("VmSwap:") * 1024,
        threads: number("Threads:"),
    }
}

/// Every process that there is now, in order.
pub fn all() -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut pids: Vec<Pid> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

// ---- why not ----

/// What decides whether one process may read another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rights {
    own_user: u32,
    user: u32,
    /// /proc/sys/kernel/yama/ptrace_scope; None: the kernel has no such rule.
    scope: Option<u32>,
}

/// The failure to read a process, with what to do about it.
pub fn refusal(pid: Pid, error: &io::Error) -> Trouble {
    let Some(user) = user_of(pid) else {
        return Trouble::new(format!("there is no process {pid}"));
    };
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    let scope = scope.and_then(|text| text.trim().parse().ok());
    // SAFETY: no argument, a number out.
    let rights = Rights { own_user: unsafe { libc::geteuid() }, user, scope };
    refused(pid, &proc::name(pid), error, rights)
}

fn user_of(pid: Pid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn refused(pid: Pid, name: &str, error: &io::Error, rights: Rights) -> Trouble {
    let who = format!("process {pid} ({name})");
    match (error.raw_os_error(), rights) {
        (Some(libc::ESRCH), _) => Trouble::new(format!("{who} has ended")),
        (Some(libc::ENOSYS), _) => {
            Trouble::new(format!("{who}: this kernel, or a filter on system calls, has no way to read it"))
                .hint("in a container: start it with --cap-add=SYS_PTRACE")
        }
        (Some(libc::EPERM | libc::EACCES), Rights { own_user, user, .. })
            if own_user != user && own_user != 0 =>
        {
            Trouble::new(format!("{who} belongs to user {user}: you may not read it"))
                .hint(format!("sudo prairie stats {pid}"))
        }
        (Some(libc::EPERM | libc::EACCES), Rights { scope: Some(3..), .. }) => Trouble::new(format!(
            "{who}: kernel.yama.ptrace_scope is 3: nobody may read a process until the next boot"
        ))
        .hint("its own output has the figures: start it with PRAIRIE_CONF=stats_print:true"),
        (Some(libc::EPERM | libc::EACCES), Rights { scope: Some(2), own_user, .. })
            if own_user != 0 =>
        {
            Trouble::new(format!("{who}: kernel.yama.ptrace_scope is 2: only root may read it"))
                .hint(format!("sudo prairie stats {pid}"))
        }
        (Some(libc::EPERM | libc::EACCES), Rights { scope: Some(1), own_user, .. })
            if own_user != 0 =>
        {
            Trouble::new(format!(
                "{who}: kernel.yama.ptrace_scope is 1: you may read only what you started"
            ))
            .hint(format!(
                "sudo prairie stats {pid}   or, for all: sudo sysctl kernel.yama.ptrace_scope=0"
            ))
        }
        (Some(libc::EPERM | libc::EACCES), Rights { own_user: 0, .. }) => {
            Trouble::new(format!("{who} may not be read, though you are root"))
                .hint("in a container: start it with --cap-add=SYS_PTRACE")
        }
        (Some(libc::EPERM | libc::EACCES), _) => Trouble::new(format!(
            "{who} may not be read: it is set-uid, has capabilities, or has asked not to be"
        ))
        .hint(format!("sudo prairie stats {pid}")),
        _ => Trouble::new(format!("{who}: {error}")),
    }
}

/// The process exists, and this is its name in messages.
pub fn require(pid: Pid) -> Result<String, Trouble> {
    if pid <= 0 || kernel(pid).is_none() {
        return Err(Trouble::new(format!("there is no process {pid}")));
    }
    Ok(proc::name(pid))
}

pub fn is_own(pid: Pid) -> bool {
    pid == sys::own_pid()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
00400000-00401000 r--p 00000000 08:01 1    /usr/bin/some program
00401000-00402000 r-xp 00001000 08:01 1    /usr/bin/some program
7f000000-7f001000 rw-p 00000000 00:00 0 
7f100000-7f101000 r--p 00000000 08:01 2    /opt/libprairie.so.0 (deleted)
7f200000-7f201000 r--p 00000000 08:01 3    /lib/libc.so.6
7f300000-7f301000 r-xp 00000000 00:00 0    [vdso]
";

    #[test]
    fn maps_are_read_with_blanks_in_names() {
        let mappings = mappings_in(MAPS);
        assert_eq!(mappings.len(), 6);
        assert_eq!(mappings[0].file, "/usr/bin/some program");
        assert_eq!((mappings[1].start, mappings[1].offset), (0x401000, 0x1000));
        assert!(mappings[1].executable && !mappings[0].executable);
        let heads: Vec<u64> =
            mappings.iter().filter(|m| m.begins_a_file()).map(|m| m.start).collect();
        assert_eq!(heads, [0x400000, 0x7f100000, 0x7f200000]);
    }

    #[test]
    fn the_allocator_is_told_by_its_file() {
        let mut mappings = mappings_in(MAPS);
        assert_eq!(allocator_among(&mappings), "prairie");
        mappings.remove(3);
        assert_eq!(allocator_among(&mappings), "glibc");
        mappings.remove(3);
        assert_eq!(allocator_among(&mappings), "unknown");
    }

    #[test]
    fn this_process_has_pages_and_threads() {
        let own = kernel(sys::own_pid()).unwrap();
        assert!(own.resident > 1 << 20 && own.threads >= 1);
        assert_eq!(kernel(Pid::MAX), None);
        assert!(all().contains(&sys::own_pid()));
    }

    #[test]
    fn each_refusal_has_its_remedy() {
        let said = |code: i32, own_user, user, scope| {
            let error = io::Error::from_raw_os_error(code);
            let trouble = refused(7, "web", &error, Rights { own_user, user, scope });
            (trouble.to_string(), trouble.hint_text().unwrap_or_default().to_owned())
        };
        for (code, own_user, user, scope, text, hint) in [
            (libc::EPERM, 1000, 0, Some(0), "belongs to user 0", "sudo prairie stats 7"),
            (
                libc::EPERM,
                1000,
                1000,
                Some(1),
                "ptrace_scope is 1",
                "sysctl kernel.yama.ptrace_scope=0",
            ),
            (libc::EPERM, 1000, 1000, Some(2), "only root", "sudo"),
            (libc::EPERM, 0, 1000, Some(3), "nobody", "stats_print:true"),
            (libc::EACCES, 1000, 1000, Some(0), "set-uid", "sudo"),
            (libc::EPERM, 0, 0, None, "though you are root", "--cap-add=SYS_PTRACE"),
            (libc::ENOSYS, 0, 0, None, "no way to read it", "--cap-add=SYS_PTRACE"),
            (libc::ESRCH, 0, 0, None, "has ended", ""),
        ] {
            let (said_text, said_hint) = said(code, own_user, user, scope);
            assert!(
                said_text.contains("process 7 (web)") && said_text.contains(text),
                "{said_text}"
            );
            assert!(said_hint.contains(hint), "{said_hint}");
        }
    }
}
