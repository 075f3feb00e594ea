//! Sees in the maps of running processes which library serves them.
// SPDX-License-Identifier: MIT

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::proc;
use crate::sys::Pid;

/// Ages at which a process is looked at. The loader maps libraries within the first millisecond or
/// two; a process that has not got the library at the last look counts as not served.
const LOOK_AGES_NS: [u64; 5] = [1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000];

/// Beginnings of the names of libraries that answer malloc.
const ALLOCATORS: &[&str] =
    &["libjemalloc", "libmimalloc", "libtcmalloc", "libsnmalloc", "librpmalloc", "libprairie"];

/// What was seen of all processes of one run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Seen {
    /// Processes that had the library mapped.
    pub served: u32,
    /// Names of processes that lived long enough and did not have it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_served: Vec<String>,
    /// Processes that ended before they could be looked at.
    pub too_short: u32,
    /// Other allocator libraries that processes had mapped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_allocators: Vec<String>,
}

/// What is known of one process. It may execute another program at any time, and so be served at
/// one look and not at the next: the last look counts.
struct Process {
    first_ns: u64,
    looks: usize,
    is_served: bool,
}

pub struct Witness {
    /// None: the C library's malloc is expected.
    library: Option<PathBuf>,
    processes: HashMap<Pid, Process>,
    main: Pid,
    main_is_not_served: bool,
    seen: Seen,
}

impl Witness {
    pub fn new(library: Option<&Path>, main: Pid) -> Witness {
        Witness {
            library: library.map(|path| path.canonicalize().unwrap_or(path.to_owned())),
            processes: HashMap::new(),
            main,
            main_is_not_served: false,
            seen: Seen::default(),
        }
    }

    pub fn look(&mut self, pids: &[Pid], now_ns: u64) {
        for pid in pids {
            let new = Process { first_ns: now_ns, looks: 0, is_served: false };
            let process = self.processes.entry(*pid).or_insert(new);
            let is_due = LOOK_AGES_NS
                .get(process.looks)
                .is_some_and(|age| now_ns - process.first_ns >= *age);
            if is_due {
                self.look_at(*pid);
            }
        }
    }

    fn look_at(&mut self, pid: Pid) {
        let files = proc::mapped_files(pid);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.looks += 1;
        // Nothing can be read of a process that has just ended: what was seen before stays.
        if files.is_empty() {
            return;
        }
        let library = self.library.as_deref();
        process.is_served = match library {
            Some(library) => files.iter().any(|file| Path::new(file) == library),
            None => true,
        };
        let is_last = process.looks == LOOK_AGES_NS.len();
        if is_last && !process.is_served {
            self.main_is_not_served |= pid == self.main;
            self.seen.not_served.push(proc::name(pid));
        }
        for file in files.iter().filter(|file| Some(Path::new(file)) != library) {
            let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
            let is_allocator = ALLOCATORS.iter().any(|start| name.starts_with(start));
            if is_allocator && !self.seen.other_allocators.iter().any(|known| *known == name) {
                self.seen.other_allocators.push(name.into_owned());
            }
        }
    }

    /// What was seen, and whether the program itself runs without the library.
    pub fn finish(mut self) -> (Seen, bool) {
        let served = self.processes.values().filter(|process| process.is_served);
        self.seen.served = served.count() as u32;
        let unseen = |process: &&Process| !process.is_served && process.looks < LOOK_AGES_NS.len();
        self.seen.too_short = self.processes.values().filter(unseen).count() as u32;
        self.seen.not_served.sort();
        self.seen.not_served.dedup();
        (self.seen, self.main_is_not_served)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE_NS: u64 = 1_000_000_000;

    fn look_often(witness: &mut Witness, pid: Pid) {
        for step in 0..10 {
            witness.look(&[pid], step * LATE_NS);
        }
    }

    #[test]
    fn a_library_that_is_not_mapped_is_told() {
        let own = std::process::id() as Pid;
        let mut witness = Witness::new(Some(Path::new("/no/such/library.so")), own);
        look_often(&mut witness, own);
        let (seen, main_is_not_served) = witness.finish();
        assert!(main_is_not_served);
        assert_eq!((seen.served, seen.not_served.len()), (0, 1));
    }

    #[test]
    fn a_library_that_is_mapped_is_seen() {
        let own = std::process::id() as Pid;
        let executable = std::env::current_exe().unwrap();
        let mut witness = Witness::new(Some(&executable), own);
        look_often(&mut witness, own);
        let (seen, main_is_not_served) = witness.finish();
        assert!(!main_is_not_served);
        assert_eq!((seen.served, seen.not_served.len(), seen.too_short), (1, 0, 0));
    }

    #[test]
    fn an_ended_process_is_looked_at_in_vain() {
        let mut witness = Witness::new(Some(Path::new("/no/such/library.so")), Pid::MAX);
        look_often(&mut witness, Pid::MAX);
        let (seen, main_is_not_served) = witness.finish();
        assert!(!main_is_not_served);
        assert_eq!((seen.served, seen.not_served.len()), (0, 0));
    }

    #[test]
    fn a_process_of_a_moment_is_no_evidence() {
        let own = std::process::id() as Pid;
        let mut witness = Witness::new(Some(Path::new("/no/such/library.so")), own);
        witness.look(&[own], 0);
        let (seen, main_is_not_served) = witness.finish();
        assert!(!main_is_not_served);
        assert_eq!((seen.served, seen.too_short), (0, 1));
    }
}
