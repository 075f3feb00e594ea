//! The heaps of the program's processes while they run, looked at from outside: how large they were
//! together, how full, and who had most.
// SPDX-License-Identifier: MIT

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use serde::Serialize;

use crate::interrupt::PassOn;
use crate::live::figures::Figures;
use crate::live::process;
use crate::live::sample::{Sample, Target};
use crate::live::text::{bytes, printable};
use crate::measure::Watch;
use crate::sys::{self, Pid};
use crate::units;

/// Between two looks, and at least so many times what a look takes of a processor's time. Until a
/// heap has been seen, looks are more frequent: the loader is done within a millisecond or two.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const FIRST_LOOKS_EVERY: Duration = Duration::from_millis(1);
const LOOK_COST_FACTOR: u64 = 20;
/// Slabs that are emptier than this, and are so much memory, are worth a word.
const SPARSE: f64 = 0.7;
const SPARSE_BYTES: u64 = 1 << 20;
/// Looks at which a process could not be read, before that is told: while it becomes another program it
/// cannot.
const REFUSALS: u32 = 3;
/// Names that are told of a tree of processes.
const NAMES_MAX: usize = 3;

/// All heaps together at the look at which most was in use, and what was counted until the last.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Peak {
    /// Of how many: more was in use between two of them, perhaps.
    pub looks: u32,
    /// Processes on prairie at that look.
    pub processes: u32,
    pub allocated: u64,
    /// Pages with such blocks.
    pub active: u64,
    pub cached: u64,
    pub dirty: u64,
    pub large_allocated: u64,
    /// The class whose slabs have most room that nobody uses: its size, what is in use, the slabs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparsest: Option<(u64, u64, u64)>,
    /// The class whose blocks are most memory: its size, what is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<(u64, u64)>,
    pub fetched: Fetched,
    /// Each process that was seen, the largest heap first.
    pub of_process: Vec<OfProcess>,
}

/// What the program got so far, as far as it is counted: blocks that left their slabs, without those
/// that wait in caches, and large ones. A block that a thread frees and takes again is still out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Fetched {
    pub small: u64,
    pub large: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfProcess {
    pub pid: Pid,
    pub name: String,
    /// At its own highest look.
    pub allocated: u64,
    pub fetched: Fetched,
}

impl Fetched {
    fn of(figures: &Figures) -> Fetched {
        let small =
            figures.classes.iter().map(|class| class.taken.saturating_sub(class.cached_blocks));
        Fetched { small: small.sum(), large: figures.large_taken }
    }

    fn and(self, other: Fetched) -> Fetched {
        Fetched { small: self.small + other.small, large: self.large + other.large }
    }

    fn without(self, other: Fetched) -> Fetched {
        Fetched {
            small: self.small.saturating_sub(other.small),
            large: self.large.saturating_sub(other.large),
        }
    }
}

/// A process whose heap is looked at.
struct Watched {
    target: Target,
    /// Empty: no heap of it was seen, or none of the programs that are looked at.
    name: String,
    program: Vec<u8>,
    /// By programs that it ran before.
    before: Fetched,
    /// By its parent, before it was forked.
    inherited: Option<Fetched>,
    last: Fetched,
    allocated_max: u64,
    /// Looks at which it could not be read.
    refusals: u32,
}

impl Watched {
    fn new(pid: Pid) -> Option<Watched> {
        let target = Target::new(pid).ok()?;
        Some(Watched {
            name: String::new(),
            program: target.program().to_owned(),
            target,
            before: Fetched::default(),
            inherited: None,
            last: Fetched::default(),
            allocated_max: 0,
            refusals: 0,
        })
    }

    fn sample(&mut self) -> Option<Sample> {
        let sample = self.target.sample(0)?;
        if self.target.program() != self.program {
            self.program = self.target.program().to_owned();
            self.before = self.fetched();
            (self.inherited, self.last) = (Some(Fetched::default()), Fetched::default());
        }
        Some(sample)
    }

    fn fetched(&self) -> Fetched {
        self.before.and(self.last.without(self.inherited.unwrap_or_default()))
    }

    /// What is told of it; None: no heap of it was seen.
    fn told(self, pid: Pid) -> Option<OfProcess> {
        let fetched = self.fetched();
        let Watched { name, allocated_max: allocated, .. } = self;
        (!name.is_empty()).then_some(OfProcess { pid, name, allocated, fetched })
    }
}

pub struct Looking {
    passing: PassOn,
    is_wanted: bool,
    only: Option<String>,
    watched: HashMap<Pid, Watched>,
    /// Processes that ended. A target is 20 KB, and a build may run tens of thousands.
    past: Vec<OfProcess>,
    /// Programs whose counts were seen, also of processes that ended.
    programs: HashSet<Vec<u8>>,
    next_ns: u64,
    looks: u32,
    peak: Option<Peak>,
    /// Why one that was there could not be read.
    refusal: Option<String>,
}

impl Looking {
    /// `only`: at processes of this name.
    pub fn new(passing: PassOn, is_wanted: bool, only: Option<String>) -> Looking {
        Looking {
            passing,
            is_wanted,
            only,
            watched: HashMap::new(),
            past: Vec::new(),
            programs: HashSet::new(),
            next_ns: 0,
            looks: 0,
            peak: None,
            refusal: None,
        }
    }

    /// Why a process could not be looked at; None: all could, or ended at once.
    pub fn refusal(&self) -> Option<String> {
        self.refusal.clone()
    }

    /// None: no heap was seen; all ended too soon, or may not be read.
    pub fn peak(self) -> Option<Peak> {
        let seen = self.watched.into_iter().filter_map(|(pid, watched)| watched.told(pid));
        let mut of_process: Vec<OfProcess> = self.past.into_iter().chain(seen).collect();
        of_process.sort_by_key(|process| (u64::MAX - process.allocated, process.pid));
        let fetched =
            of_process.iter().fold(Fetched::default(), |sum, process| sum.and(process.fetched));
        self.peak.map(|peak| Peak { looks: self.looks, fetched, of_process, ..peak })
    }

    fn look_at_all(&mut self, pids: &[Pid], now_ns: u64) {
        let before_ns = sys::thread_cpu_ns();
        self.let_go_of_ended();
        let mut sum = Sum::default();
        for pid in pids {
            if let Some(figures) = self.figures_of(*pid) {
                sum.add(&figures);
            }
        }
        if sum.peak.processes > 0 {
            self.looks += 1;
            if self.peak.as_ref().is_none_or(|peak| sum.peak.allocated > peak.allocated) {
                self.peak = Some(sum.finish());
            }
        }
        let cost = sys::thread_cpu_ns() - before_ns;
        let every = if self.peak.is_some() { LOOK_EVERY } else { FIRST_LOOKS_EVERY };
        self.next_ns = now_ns + (every.as_nanos() as u64).max(cost * LOOK_COST_FACTOR);
    }

    /// Their numbers may be given out again.
    fn let_go_of_ended(&mut self) {
        let ended = self.watched.extract_if(|_, watched| !watched.target.is_there());
        self.past.extend(ended.filter_map(|(pid, watched)| watched.told(pid)));
    }

    fn figures_of(&mut self, pid: Pid) -> Option<Figures> {
        let watched = match self.watched.entry(pid) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Watched::new(pid)?),
        };
        let sample = watched.sample()?;
        if self.only.as_ref().is_some_and(|only| !process::is_called(&sample.name, only)) {
            return None;
        }
        if watched.target.is_refused() {
            watched.refusals += 1;
            if watched.refusals >= REFUSALS {
                self.refusal = sample.why.map(|why| printable(&why.text));
            }
        }
        let figures = sample.figures?;
        let fetched = Fetched::of(&figures);
        if watched.inherited.is_none() {
            let inherited = self.parents_of(pid, fetched)?;
            self.watched.get_mut(&pid)?.inherited = Some(inherited);
        }
        let watched = self.watched.get_mut(&pid)?;
        watched.name = sample.name;
        watched.last = fetched;
        watched.allocated_max = watched.allocated_max.max(figures.allocated);
        if !self.programs.contains(&watched.program) {
            self.programs.insert(watched.program.clone());
        }
        Some(figures)
    }

    /// What a process had when it began. One with the program of another has been forked, and has
    /// its counts; None: it runs in the memory of the other, until it becomes another program.
    fn parents_of(&self, pid: Pid, fetched: Fetched) -> Option<Fetched> {
        let program = &self.watched.get(&pid)?.program;
        if !self.programs.contains(program) {
            return Some(Fetched::default());
        }
        let is_twin = |(other, its): &(&Pid, &Watched)| {
            **other != pid && its.inherited.is_some() && its.program == *program
        };
        let mut twins = self.watched.iter().filter(is_twin).map(|(pid, _)| *pid);
        (!twins.any(|other| sys::share_memory(pid, other))).then_some(fetched)
    }
}

impl Watch for Looking {
    fn look(&mut self, pids: &[Pid]) {
        let now_ns = sys::monotonic_ns();
        if self.is_wanted && now_ns >= self.next_ns {
            self.look_at_all(pids, now_ns);
        }
    }

    fn interrupted(&mut self, pid: Pid) -> bool {
        self.passing.interrupted(pid)
    }
}

/// Several heaps as one.
#[derive(Default)]
struct Sum {
    peak: Peak,
    /// Of each size of blocks what is in use, and the slabs.
    classes: BTreeMap<u64, (u64, u64)>,
}

impl Sum {
    fn add(&mut self, figures: &Figures) {
        let peak = &mut self.peak;
        peak.processes += 1;
        peak.allocated = peak.allocated.saturating_add(figures.allocated);
        peak.active = peak.active.saturating_add(figures.active);
        peak.cached = peak.cached.saturating_add(figures.cached);
        peak.dirty = peak.dirty.saturating_add(figures.dirty);
        peak.large_allocated = peak.large_allocated.saturating_add(figures.large_allocated);
        for class in &figures.classes {
            let (used, slabs) = self.classes.entry(class.size).or_default();
            *used = used.saturating_add(class.allocated);
            *slabs = slabs.saturating_add(class.slab_bytes);
        }
    }

    fn finish(self) -> Peak {
        let classes = || self.classes.iter().map(|(size, (used, slabs))| (*size, *used, *slabs));
        let sparsest = classes().max_by_key(|(_, used, slabs)| slabs.saturating_sub(*used));
        let largest =
            classes().max_by_key(|(_, used, _)| *used).map(|(size, used, _)| (size, used));
        Peak { sparsest, largest, ..self.peak }
    }
}

fn per_cent(part: u64, whole: u64) -> String {
    format!("{:.0} %", 100.0 * part as f64 / whole.max(1) as f64)
}

impl Peak {
    pub fn text(&self) -> String {
        let at = match self.looks {
            1 => "at the only look".to_owned(),
            looks => format!("at the highest of {looks} looks"),
        };
        let unused = self.active.saturating_sub(self.allocated);
        let several = match self.processes {
            0 | 1 => String::new(),
            count => format!("   {count} processes"),
        };
        format!(
            "{} in use {at}, {} more ready in caches; fragmentation {} of {}{several}",
            bytes(self.allocated),
            bytes(self.cached),
            per_cent(unused, self.active),
            bytes(self.active)
        )
    }

    pub fn fetched_text(&self) -> String {
        let Fetched { small, large } = self.fetched;
        format!(
            "{} blocks fetched, {} of them large; what caches hand out again is not counted",
            units::count((small + large) as f64),
            units::count(large as f64)
        )
    }

    /// Who had most, where there were several.
    pub fn processes_text(&self) -> Option<String> {
        if self.of_process.len() < 2 {
            return None;
        }
        // Of each name the largest heap, and how many there were.
        let mut names: Vec<(&str, u64, u32)> = Vec::new();
        for process in &self.of_process {
            match names.iter_mut().find(|(name, ..)| *name == process.name) {
                Some((_, _, count)) => *count += 1,
                None => names.push((&process.name, process.allocated, 1)),
            }
        }
        let one = |(name, allocated, count): &(&str, u64, u32)| match count {
            1 => format!("{name} {}", bytes(*allocated)),
            count => format!("{name} up to {} in {count} processes", bytes(*allocated)),
        };
        let mut text: Vec<String> = names.iter().take(NAMES_MAX).map(one).collect();
        if names.len() > NAMES_MAX {
            text.push(format!("{} more", names.len() - NAMES_MAX));
        }
        Some(text.join(", "))
    }

    /// Where memory lies that nobody can use, if it is worth a word; else where most is in use.
    pub fn finding(&self) -> Option<String> {
        if let Some((size, used, slabs)) = self.sparsest
            && (used as f64) < SPARSE * slabs as f64
            && slabs - used > SPARSE_BYTES
        {
            return Some(format!(
                "slabs for blocks of {size} bytes are sparse: {} in use of {}",
                bytes(used),
                bytes(slabs)
            ));
        }
        let large = self.large_allocated;
        let (what, used) = match self.largest {
            Some((size, used)) if used > large => (format!("blocks of {size} bytes"), used),
            _ => ("large blocks".to_owned(), large),
        };
        let share = per_cent(used, self.allocated);
        (used > 0).then(|| format!("most is in {what}: {}, {share} of what is in use", bytes(used)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::sample::tests::made;
    use std::process::{Child, Command, Stdio};

    fn peak(used: u64, slabs: u64) -> Peak {
        Peak {
            looks: 9,
            processes: 1,
            allocated: used,
            active: slabs,
            sparsest: Some((64, used, slabs)),
            largest: Some((64, used)),
            ..Peak::default()
        }
    }

    #[test]
    fn the_peak_is_told_with_its_fragmentation() {
        assert_eq!(
            peak(3 << 20, 4 << 20).text(),
            "3.00 MiB in use at the highest of 9 looks, 0 B more ready in caches; \
             fragmentation 25 % of 4.00 MiB"
        );
        assert!(Peak { processes: 3, ..peak(1, 1) }.text().ends_with("   3 processes"));
    }

    #[test]
    fn there_is_always_a_finding_and_sparse_slabs_come_first() {
        let said = peak(1 << 20, 4 << 20).finding().unwrap();
        assert_eq!(said, "slabs for blocks of 64 bytes are sparse: 1.00 MiB in use of 4.00 MiB");
        let said = |peak: Peak| peak.finding().unwrap();
        assert_eq!(
            said(peak(3 << 20, 4 << 20)),
            "most is in blocks of 64 bytes: 3.00 MiB, 100 % of what is in use"
        );
        let large = Peak { allocated: 8 << 20, large_allocated: 6 << 20, ..peak(1 << 10, 4 << 10) };
        assert_eq!(said(large), "most is in large blocks: 6.00 MiB, 75 % of what is in use");
        assert_eq!(Peak::default().finding(), None);
    }

    #[test]
    fn heaps_of_several_processes_add_up() {
        let figures = made(7).figures.unwrap();
        let mut sum = Sum::default();
        sum.add(&figures);
        sum.add(&figures);
        let peak = sum.finish();
        assert_eq!((peak.processes, peak.allocated), (2, 2 * figures.allocated));
        assert_eq!(peak.largest, Some((64, 2 * 64 * 400_000)));
        let fetched = Fetched::of(&figures);
        assert_eq!((fetched.small, fetched.large), (3 * 402_000 - 1031, 400));
        let text = Peak { fetched, ..peak }.fetched_text();
        assert!(text.starts_with("1.21 M blocks fetched, 400 of them large"), "{text}");
    }

    #[test]
    fn who_had_most_is_told_by_name() {
        let of = |pid: Pid, name: &str, allocated: u64| OfProcess {
            pid,
            name: name.to_owned(),
            allocated,
            fetched: Fetched::default(),
        };
        let mut peak = peak(1, 1);
        peak.of_process = vec![of(1, "python3", 3 << 20)];
        assert_eq!(peak.processes_text(), None);
        peak.of_process.extend([of(2, "sh", 2048), of(3, "sh", 1024), of(4, "sed", 1000)]);
        let text = "python3 3.00 MiB, sh up to 2.00 KiB in 2 processes, sed 1000 B";
        assert_eq!(peak.processes_text().unwrap(), text);
        peak.of_process.push(of(5, "ls", 10));
        assert_eq!(peak.processes_text().unwrap(), format!("{text}, 1 more"));
    }

    /// One that was forked has its parent's counts; one with a memory of its own is told from one
    /// that has only borrowed another's.
    #[test]
    fn who_shares_memory_is_told() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(sys::share_memory(sys::own_pid(), sys::own_pid()));
        assert!(!sys::share_memory(sys::own_pid(), child.id() as Pid));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    fn looking() -> Looking {
        Looking::new(PassOn::default(), true, None)
    }

    /// `cat`, as if its heap had been seen.
    fn watched_cat() -> (Child, Watched) {
        let child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let mut watched = Watched::new(child.id() as Pid).unwrap();
        watched.name = "cat".to_owned();
        watched.allocated_max = 7;
        watched.inherited = Some(Fetched { small: 1, large: 0 });
        watched.last = Fetched { small: 3, large: 1 };
        (child, watched)
    }

    fn end(mut child: Child) {
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn of_who_ended_only_what_is_told_is_kept() {
        let (child, watched) = watched_cat();
        let pid = child.id() as Pid;
        let mut looking = looking();
        looking.watched.insert(pid, watched);
        looking.look_at_all(&[], 0);
        assert!(looking.watched.contains_key(&pid) && looking.past.is_empty());
        end(child);
        looking.look_at_all(&[], 0);
        assert!(looking.watched.is_empty());
        let fetched = Fetched { small: 2, large: 1 };
        let told = OfProcess { pid, name: "cat".to_owned(), allocated: 7, fetched };
        assert_eq!(looking.past, std::slice::from_ref(&told));
        looking.peak = Some(peak(1, 1));
        assert_eq!(looking.peak().unwrap().of_process, [told]);
    }

    #[test]
    fn a_number_that_was_given_out_again_is_another_process() {
        let (child, watched) = watched_cat();
        end(child);
        let mut looking = looking();
        looking.watched.insert(sys::own_pid(), watched);
        looking.look_at_all(&[sys::own_pid()], 0);
        assert_eq!(looking.past.len(), 1);
        assert_eq!(looking.watched[&sys::own_pid()].target.pid, sys::own_pid());
    }

    #[test]
    fn a_forked_process_has_the_counts_of_a_parent_that_ended() {
        let (child, watched) = watched_cat();
        let pid = child.id() as Pid;
        let fetched = Fetched { small: 9, large: 0 };
        let mut looking = looking();
        let program = watched.program.clone();
        looking.watched.insert(pid, watched);
        assert_eq!(looking.parents_of(pid, fetched), Some(Fetched::default()));
        looking.programs.insert(program);
        assert_eq!(looking.parents_of(pid, fetched), Some(fetched));
        end(child);
    }
}
