//! Reads what /proc says of a process. A process that has ended meanwhile reads as nothing.
// SPDX-License-Identifier: MIT

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use crate::sys::Pid;

/// A file of this name about the process, with its name in it perhaps, which need not be text: of a
/// long one the kernel keeps the first fifteen bytes, and cuts a letter in two.
pub fn text(pid: Pid, file: &str) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A thread that tells what there is of the process: of one whose first thread has ended while others
/// go on, /proc/PID shows no memory, no files and no environment. Else the process itself.
pub fn living(pid: Pid) -> Pid {
    match Status::of(pid) {
        Some(status) if status.is_of_ended_thread() && !status.is_of_ended() => {
            other_thread(pid).unwrap_or(pid)
        }
        _ => pid,
    }
}

fn other_thread(pid: Pid) -> Option<Pid> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let mut threads = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    threads.find(|thread| Status::of(*thread).is_some_and(|status| !status.is_of_ended_thread()))
}

/// Whether /proc numbers processes as system calls do. Else it is that of another PID namespace, and what
/// it tells is of others.
pub fn has_our_numbers() -> bool {
    match fs::read_link("/proc/self") {
        Ok(number) => number.to_str().is_some_and(|n| n.parse() == Ok(std::process::id())),
        // None of them is ours, or there is no /proc.
        Err(_) => !fs::exists("/proc/stat").unwrap_or(false),
    }
}

/// Resident pages, from a file that the kernel fills without taking the lock of the address space.
pub fn resident_pages(pid: Pid) -> Option<u64> {
    let of = |pid: Pid| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        text.split(' ').nth(1)?.parse().ok()
    };
    match of(pid)? {
        0 => of(living(pid)),
        pages => Some(pages),
    }
}

/// Children that the leading thread started. Nearly all children are, except in threaded servers.
pub fn children_of_leader(pid: Pid, into: &mut Vec<Pid>) {
    children_of_thread(pid, &pid.to_string(), into);
}

/// Children that other threads started.
pub fn children_of_other_threads(pid: Pid, into: &mut Vec<Pid>) {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return };
    let leader = pid.to_string();
    for thread in threads.flatten() {
        if let Some(name) = thread.file_name().to_str().filter(|name| *name != leader) {
            children_of_thread(pid, name, into);
        }
    }
}

fn children_of_thread(pid: Pid, thread: &str, into: &mut Vec<Pid>) {
    if let Ok(text) = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")) {
        into.extend(text.split_ascii_whitespace().filter_map(|word| word.parse::<Pid>().ok()));
    }
}

/// Whether the kernel lists children (CONFIG_PROC_CHILDREN).
pub fn lists_children() -> bool {
    let pid = std::process::id();
    fs::exists(format!("/proc/{pid}/task/{pid}/children")).unwrap_or(false)
}

/// Every process with its parent, for kernels that do not list children.
pub fn all_with_parents() -> Vec<(Pid, Pid)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: Pid| Some((pid, parent(pid)?))).collect()
}

/// The name of the program stands in brackets and may itself contain brackets and blanks.
pub fn parent(pid: Pid) -> Option<Pid> {
    text(pid, "stat")?.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// When the process started, in ticks since the machine did: numbers are given out again, and with this
/// one process is told from a later one.
pub fn started(pid: Pid) -> Option<u64> {
    text(pid, "stat")?.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// What the kernel told the program that a process runs when it started: another one for each
/// program, because addresses differ, and a copy of its parent's for a process that has only been
/// forked.
pub fn auxiliary(pid: Pid) -> Vec<u8> {
    let of = |pid: Pid| fs::read(format!("/proc/{pid}/auxv")).unwrap_or_default();
    let told = of(pid);
    if told.is_empty() { of(living(pid)) } else { told }
}

/// The names and values that the process was started with; none where they may not be read.
pub fn environment(pid: Pid) -> Vec<(String, String)> {
    let text = text(living(pid), "environ").unwrap_or_default();
    let pair = |one: &str| one.split_once('=').map(|(name, value)| (name.into(), value.into()));
    text.split('\0').filter_map(pair).collect()
}

/// Lines of a name and its value.
pub struct Status(String);

impl Status {
    pub fn of(pid: Pid) -> Option<Status> {
        text(pid, "status").map(Status)
    }

    fn words(&self, name: &str) -> impl DoubleEndedIterator<Item = &str> {
        let value = |line| str::strip_prefix(line, name)?.strip_prefix(':');
        let found = self.0.lines().find_map(value).unwrap_or_default();
        found.split_ascii_whitespace()
    }

    /// The first one of the value.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.words(name).next()?.parse().ok()
    }

    /// The process is there only until its parent asks how it ended.
    pub fn is_of_ended(&self) -> bool {
        self.is_of_ended_thread() && self.number("Threads").is_none_or(|threads| threads <= 1)
    }

    /// Of a process, its first one: others may go on.
    fn is_of_ended_thread(&self) -> bool {
        self.words("State").next() == Some("Z")
    }

    /// By a signal, as Ctrl-Z sends one.
    pub fn is_of_stopped(&self) -> bool {
        self.words("State").next() == Some("T")
    }
}

/// The user and the group with whose rights the process opens files.
pub fn file_owner(pid: Pid) -> Option<(u32, u32)> {
    let status = Status::of(pid)?;
    let last = |name: &str| status.words(name).next_back()?.parse().ok();
    Some((last("Uid")?, last("Gid")?))
}

/// A path to the executable file, whatever its name.
pub fn executable(pid: Pid) -> PathBuf {
    PathBuf::from(format!("/proc/{}/exe", living(pid)))
}

/// A part of an address space, as /proc/PID/maps tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
    pub start: u64,
    pub limit: u64,
    pub is_readable: bool,
    pub is_code: bool,
    pub offset: u64,
    /// A file, a word in brackets, or nothing.
    pub path: String,
}

impl Mapped {
    pub fn length(&self) -> u64 {
        self.limit - self.start
    }

    pub fn is_file(&self) -> bool {
        self.path.starts_with('/')
    }

    pub fn begins_a_file(&self) -> bool {
        self.offset == 0 && self.is_readable && self.is_file()
    }

    /// None: no such line.
    pub fn of(line: &str) -> Option<Mapped> {
        // The path comes last and may contain blanks.
        let mut words = line.splitn(6, ' ');
        let (start, limit) = words.next()?.split_once('-')?;
        let rights = words.next()?;
        let (is_readable, is_code) = (rights.starts_with('r'), rights.contains('x'));
        let offset = words.next()?;
        let path = words.nth(2).unwrap_or_default().trim().to_owned();
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, limit, offset) = (number(start)?, number(limit)?, number(offset)?);
        let mapped = Mapped { start, limit, is_readable, is_code, offset, path };
        (start < limit).then_some(mapped)
    }
}

/// The maps of one program. They read as nothing once the process has ended or has become another
/// program.
pub struct Maps {
    file: fs::File,
}

impl Maps {
    pub fn open(pid: Pid) -> io::Result<Maps> {
        Ok(Maps { file: fs::File::open(format!("/proc/{}/maps", living(pid)))? })
    }

    pub fn read(&mut self) -> io::Result<Vec<Mapped>> {
        let mut text = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).lines().filter_map(Mapped::of).collect())
    }

    /// The files that are mapped now, each once.
    pub fn files(&mut self) -> Vec<String> {
        files_of(&self.read().unwrap_or_default())
    }
}

/// Fails only where the kernel says no.
pub fn mappings(pid: Pid) -> io::Result<Vec<Mapped>> {
    Maps::open(pid)?.read()
}

/// The files among these mappings, each once.
pub fn files_of(mappings: &[Mapped]) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for mapped in mappings.iter().filter(|mapped| mapped.is_file()) {
        if !files.contains(&mapped.path) {
            files.push(mapped.path.clone());
        }
    }
    files
}

/// The name under which the kernel lists the process.
pub fn name(pid: Pid) -> String {
    text(pid, "comm").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_resident_and_has_a_parent() {
        let pid = std::process::id() as Pid;
        assert!(has_our_numbers() && resident_pages(pid).unwrap() > 100);
        let all = all_with_parents();
        let own = all.iter().find(|(child, _)| *child == pid).unwrap();
        assert_eq!(own.1, std::os::unix::process::parent_id() as Pid);
    }

    #[test]
    fn a_status_is_read_by_names() {
        let with_threads = |count: u32| Status(format!("State:\tZ (zombie)\nThreads:\t{count}\n"));
        assert!(with_threads(1).is_of_ended());
        let status = Status("Name:\tState: Z\nState:\tZ (zombie)\nUid:\t1\t2\t3\t4\n".into());
        assert!(status.is_of_ended() && !with_threads(2).is_of_ended());
        assert_eq!(
            (status.number("Uid"), status.number("Ui"), status.number("VmRSS")),
            (Some(1), None, None)
        );
        assert_eq!(status.words("Uid").next_back(), Some("4"));
        let own = Status::of(std::process::id() as Pid).unwrap();
        assert!(!own.is_of_ended() && !own.is_of_stopped());
        assert!(own.number("Threads").unwrap() >= 1);
    }

    #[test]
    fn a_process_started_before_its_children() {
        let own = started(std::process::id() as Pid).unwrap();
        assert!(own > 0 && own <= started(std::process::id() as Pid).unwrap());
        assert!(started(1).unwrap() <= own);
        assert_eq!(started(Pid::MAX), None);
    }

    #[test]
    fn an_ended_process_reads_as_nothing() {
        assert_eq!(resident_pages(Pid::MAX), None);
        assert!(Maps::open(Pid::MAX).is_err());
        assert!(auxiliary(Pid::MAX).is_empty());
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_is_there() {
        let script = format!(
            "import ctypes, threading, time\n\
             threading.Thread(target=time.sleep, args=(60,)).start()\n\
             ctypes.CDLL(None).syscall({}, 0)\n",
            libc::SYS_exit
        );
        let mut python = std::process::Command::new("python3");
        let mut child = python.args(["-c", &script]).env("MARK", "1").spawn().unwrap();
        let pid = child.id() as Pid;
        let mut tries = 0..1000;
        while !Status::of(pid).unwrap().is_of_ended_thread() && tries.next().is_some() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let status = Status::of(pid).unwrap();
        let thread = living(pid);
        let maps = mappings(pid).unwrap();
        let (pages, auxiliary) = (resident_pages(pid).unwrap(), auxiliary(pid));
        let is_marked = environment(pid).contains(&("MARK".to_owned(), "1".to_owned()));
        let program = fs::read_link(executable(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(status.is_of_ended_thread() && !status.is_of_ended());
        assert!(thread != pid && is_marked && program.is_ok());
        assert!(maps.len() > 5 && pages > 100 && !auxiliary.is_empty());
        assert_eq!(living(std::process::id() as Pid), std::process::id() as Pid);
    }

    #[test]
    fn a_mapping_is_read_with_its_path() {
        let line = "7f100000-7f101000 r-xp 00002000 08:01 2                  /lib/a b.so";
        let mapped = Mapped::of(line).unwrap();
        assert_eq!((mapped.start, mapped.offset, mapped.length()), (0x7f10_0000, 0x2000, 4096));
        assert!(mapped.is_code);
        assert_eq!(mapped.path, "/lib/a b.so");
        assert_eq!(Mapped::of("7f100000-7f101000 rw-p 00000000 00:00 0 ").unwrap().path, "");
        assert_eq!(Mapped::of("no line"), None);
        assert!(mappings(std::process::id() as Pid).unwrap().len() > 5);
    }

    #[test]
    fn files_are_listed_once_and_may_contain_blanks() {
        let maps = "00400000-00401000 r--p 00000000 08:01 1    /usr/bin/some program\n\
                    00500000-00501000 r-xp 00001000 08:01 1    /usr/bin/some program\n\
                    7f000000-7f001000 rw-p 00000000 00:00 0    [heap]\n\
                    7f080000-7f081000 rw-p 00000000 00:00 0    [anon:of /a/library]\n\
                    7f100000-7f101000 r--p 00000000 08:01 2    /lib/libc.so.6 (deleted)\n";
        let mappings: Vec<Mapped> = maps.lines().filter_map(Mapped::of).collect();
        assert_eq!(mappings.len(), 5);
        assert_eq!(files_of(&mappings), ["/usr/bin/some program", "/lib/libc.so.6 (deleted)"]);
        let heads = mappings.iter().filter(|mapped| mapped.begins_a_file());
        assert_eq!(heads.map(|head| head.start).collect::<Vec<_>>(), [0x40_0000, 0x7f10_0000]);
    }
}
