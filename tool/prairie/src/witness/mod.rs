//! Sees in the maps of running processes which library serves them.
//!
//! Only proof counts. The loader maps what is preloaded before anything that the program needs, so
//! a program with the library among its maps is served, and one that has the C library there and
//! not this one never will be. Whoever has neither has not come so far yet. A process becomes
//! another program when it likes: its auxiliary vector tells that it has, and what was seen before
//! is nothing then. What happens after the last look nobody sees; but the kernel tells each time
//! that the file of the library is opened, and who runs without it at the last look cannot have got
//! it since, if nobody has opened it.
// SPDX-License-Identifier: MIT

mod maps;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::opens::Opens;
use crate::proc;
use crate::sys::Pid;

pub use maps::is_allocator;
use maps::{file_name, judge};

/// Ages of a program at which its maps are read. The loader is done within the first millisecond or
/// two, where the machine has time for it; the later looks find libraries that are loaded late.
const LOOK_AGES_NS: [u64; 5] = [1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000];
/// Between the looks at a program of which nothing is known yet at that age.
const LOOK_EVERY_NS: u64 = 100_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Served,
    NotServed,
    /// It ended, or became another program, before it could be seen.
    #[default]
    NotSeen,
}

/// What was seen of all processes of one run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Seen {
    /// The program itself: the last one that the first process became.
    pub program: Verdict,
    /// Processes that had the library mapped.
    pub served: u32,
    /// Names of processes that did not have it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_served: Vec<String>,
    /// Processes of which neither is known: they ended, or became another program, before they
    /// could be seen.
    pub too_short: u32,
    /// Other allocator libraries that processes had mapped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_allocators: Vec<String>,
}

/// What is known of the program that a process runs.
#[derive(Default)]
struct Process {
    name: String,
    /// The auxiliary vector, which tells this program from those before it.
    auxiliary: Vec<u8>,
    first_ns: u64,
    looks: u32,
    verdict: Verdict,
    /// How often the library had been opened before this program was last seen to run.
    opens: u64,
}

impl Process {
    fn new(pid: Pid) -> Process {
        Process { name: proc::name(pid), ..Process::default() }
    }

    fn is_due(&self, now_ns: u64) -> bool {
        let late = || {
            let later = u64::from(self.looks) - LOOK_AGES_NS.len() as u64 + 1;
            LOOK_AGES_NS[LOOK_AGES_NS.len() - 1] + later * LOOK_EVERY_NS
        };
        let age_ns = match LOOK_AGES_NS.get(self.looks as usize) {
            Some(age_ns) => *age_ns,
            None if self.verdict == Verdict::NotSeen => late(),
            None => return false,
        };
        now_ns.saturating_sub(self.first_ns) >= age_ns
    }
}

pub struct Witness {
    /// None: the C library's malloc is expected, of which nothing has to be proved.
    library: Option<PathBuf>,
    opens: Opens,
    /// Those that have not ended, as far as is known.
    processes: HashMap<Pid, Process>,
    seen: Seen,
}

impl Witness {
    /// To be called before the program starts.
    pub fn new(library: Option<&Path>) -> Witness {
        let library = library.map(|path| path.canonicalize().unwrap_or(path.to_owned()));
        Witness {
            opens: Opens::of(library.as_deref()),
            // As maps tell it, which are read as text.
            library: library.map(|path| path.to_string_lossy().into_owned().into()),
            processes: HashMap::new(),
            seen: Seen::default(),
        }
    }

    pub fn look(&mut self, pids: &[Pid], now_ns: u64) {
        // Before the processes are looked at, so that nothing goes between.
        let opens = self.opens.count();
        for pid in pids {
            self.look_at(*pid, opens.unwrap_or(0), now_ns);
        }
        let is_listed = |pid: &Pid| pids.contains(pid);
        let unlisted: Vec<Pid> =
            self.processes.keys().copied().filter(|pid| !is_listed(pid)).collect();
        for pid in unlisted {
            if proc::auxiliary(pid).is_empty() {
                self.settle(pid);
            }
        }
    }

    fn look_at(&mut self, pid: Pid, opens: u64, now_ns: u64) {
        let auxiliary = proc::auxiliary(pid);
        let process = self.processes.entry(pid).or_insert_with(|| Process::new(pid));
        // Nothing can be read of a process that has just ended: what was seen before stays.
        if auxiliary.is_empty() {
            return;
        }
        if process.auxiliary != auxiliary {
            *process = Process { auxiliary, first_ns: now_ns, ..Process::new(pid) };
        }
        process.opens = opens;
        if process.is_due(now_ns) {
            process.looks += 1;
            self.read_maps(pid);
        }
    }

    fn read_maps(&mut self, pid: Pid) {
        let Ok(mut maps) = proc::Maps::open(pid) else { return };
        let files = maps.files();
        let library = self.library.as_deref();
        let verdict = match library {
            Some(library) => judge(library, &files, &mut maps, pid),
            None => Verdict::Served,
        };
        if let Some(process) = self.processes.get_mut(&pid)
            && verdict != Verdict::NotSeen
        {
            process.verdict = verdict;
        }
        for file in files.iter().filter(|file| Some(Path::new(file)) != library) {
            let name = file_name(file);
            if is_allocator(&name) && !self.seen.other_allocators.contains(&name) {
                self.seen.other_allocators.push(name);
            }
        }
    }

    /// A process has ended: what was known of it at the last look is all that will be.
    fn settle(&mut self, pid: Pid) -> Verdict {
        let Some(process) = self.processes.remove(&pid) else { return Verdict::NotSeen };
        let opens = self.opens.count();
        let verdict = match process.verdict {
            Verdict::Served => Verdict::Served,
            Verdict::NotServed if opens == Some(process.opens) => Verdict::NotServed,
            Verdict::NotSeen if opens == Some(0) => Verdict::NotServed,
            Verdict::NotServed | Verdict::NotSeen => Verdict::NotSeen,
        };
        match verdict {
            Verdict::Served => self.seen.served += 1,
            Verdict::NotServed => self.seen.not_served.push(process.name),
            Verdict::NotSeen => self.seen.too_short += 1,
        }
        verdict
    }

    /// The program has ended and can still be told by its number.
    pub fn program_ended(&mut self, pid: Pid) {
        self.processes.entry(pid).or_insert_with(|| Process::new(pid));
        self.seen.program = self.settle(pid);
        if self.library.is_none() {
            self.seen.program = Verdict::Served;
        }
    }

    /// What was seen, after everybody has ended.
    pub fn finish(mut self) -> Seen {
        let pids: Vec<Pid> = self.processes.keys().copied().collect();
        for pid in pids {
            self.settle(pid);
        }
        self.seen.not_served.sort();
        self.seen.not_served.dedup();
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    const LATE_NS: u64 = 1_000_000_000;

    fn look_often(witness: &mut Witness, pid: Pid) {
        for step in 0..10 {
            witness.look(&[pid], step * LATE_NS);
        }
    }

    /// A library that nobody needs, as no process here has it mapped.
    fn foreign_library() -> tempfile::NamedTempFile {
        tempfile::NamedTempFile::new().unwrap()
    }

    fn seen_of(mut witness: Witness, pid: Pid) -> Seen {
        witness.program_ended(pid);
        witness.finish()
    }

    #[test]
    fn a_library_that_is_not_mapped_is_told() {
        let own = std::process::id() as Pid;
        let library = foreign_library();
        let mut witness = Witness::new(Some(library.path()));
        look_often(&mut witness, own);
        let seen = seen_of(witness, own);
        assert_eq!((seen.program, seen.served), (Verdict::NotServed, 0));
        assert_eq!(seen.not_served.len(), 1);
    }

    #[test]
    fn a_library_that_is_mapped_is_seen() {
        let own = std::process::id() as Pid;
        let executable = std::env::current_exe().unwrap();
        let mut witness = Witness::new(Some(&executable));
        look_often(&mut witness, own);
        let seen = seen_of(witness, own);
        assert_eq!((seen.program, seen.served), (Verdict::Served, 1));
        assert_eq!((seen.not_served.len(), seen.too_short), (0, 0));
    }

    #[test]
    fn who_has_ended_before_the_first_look_is_not_seen() {
        let library = foreign_library();
        let mut witness = Witness::new(Some(library.path()));
        look_often(&mut witness, Pid::MAX);
        std::fs::read(library.path()).unwrap();
        let seen = seen_of(witness, Pid::MAX);
        assert_eq!((seen.program, seen.too_short), (Verdict::NotSeen, 1));
    }

    /// Nobody has opened the library: no look is needed.
    #[test]
    fn a_library_that_nobody_opens_serves_nobody() {
        let library = foreign_library();
        let witness = Witness::new(Some(library.path()));
        assert_eq!(seen_of(witness, Pid::MAX).program, Verdict::NotServed);
    }

    /// Somebody opens the library after the last look: it may have been a program that this one
    /// became.
    #[test]
    fn what_happens_after_the_last_look_is_not_seen() {
        let own = std::process::id() as Pid;
        let library = foreign_library();
        let mut witness = Witness::new(Some(library.path()));
        look_often(&mut witness, own);
        std::fs::read(library.path()).unwrap();
        assert_eq!(seen_of(witness, own).program, Verdict::NotSeen);
    }

    #[test]
    fn a_look_of_a_moment_is_no_evidence() {
        let own = std::process::id() as Pid;
        let library = foreign_library();
        let mut witness = Witness::new(Some(library.path()));
        witness.look(&[own], 0);
        std::fs::read(library.path()).unwrap();
        let seen = seen_of(witness, own);
        assert_eq!((seen.program, seen.served, seen.too_short), (Verdict::NotSeen, 0, 1));
    }

    /// A program that the kernel has made and that has not run yet, as on a machine without time
    /// for it.
    fn stopped(command: &mut Command) -> Child {
        // SAFETY: one system call, which stops the new process as soon as it is another program.
        unsafe {
            command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut status = 0;
        // SAFETY: a place for the answer.
        unsafe { libc::waitpid(child.id() as Pid, &mut status, libc::WUNTRACED) };
        assert!(libc::WIFSTOPPED(status), "{status:x}");
        child
    }

    fn go_on(child: &Child) {
        // SAFETY: numbers only.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, child.id() as Pid, 0, 0) };
    }

    /// `cat` echoes what it gets, so it has been loaded when it does.
    fn wait_for_echo(child: &mut Child) {
        use std::io::{Read, Write};
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    }

    #[test]
    fn a_program_that_has_not_been_loaded_is_judged_later() {
        let mappings = proc::mappings(std::process::id() as Pid).unwrap();
        let own = mappings.iter().find(|mapped| mapped.path.contains("libgcc_s")).unwrap();
        let library = PathBuf::from(&own.path);
        for preload in [library.as_path(), Path::new("")] {
            let mut witness = Witness::new(Some(&library));
            let mut child = stopped(Command::new("cat").env("LD_PRELOAD", preload));
            let pid = child.id() as Pid;
            look_often(&mut witness, pid);
            assert_eq!(witness.processes[&pid].verdict, Verdict::NotSeen);
            go_on(&child);
            wait_for_echo(&mut child);
            witness.look(&[pid], 20 * LATE_NS);
            let is_served = !preload.as_os_str().is_empty();
            let expected = if is_served { Verdict::Served } else { Verdict::NotServed };
            assert_eq!(witness.processes[&pid].verdict, expected);
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }

    #[test]
    fn another_program_in_the_same_process_is_judged_anew() {
        let library = foreign_library();
        let mut witness = Witness::new(Some(library.path()));
        let mut child = Command::new("sh")
            .args(["-c", "read line; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id() as Pid;
        std::thread::sleep(Duration::from_millis(100));
        look_often(&mut witness, pid);
        let before = witness.processes[&pid].auxiliary.clone();
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"go\n").unwrap();
        wait_for_echo(&mut child);
        witness.look(&[pid], 20 * LATE_NS);
        let process = &witness.processes[&pid];
        assert_ne!(process.auxiliary, before);
        assert_eq!((process.looks, process.verdict), (0, Verdict::NotSeen));
        assert_eq!(process.name, "cat");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
