//! All that is known of a process at one moment; it can be written as JSON and read again.
// SPDX-License-Identifier: MIT

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::count::{self, Regions};
use super::figures::Figures;
use super::map::{self, Fault, Map};
use super::memory::OfProcess;
use super::process;
use super::strip::{self, Strip};
use crate::proc;
use crate::refusal;
use crate::sys::Pid;
use crate::trouble::{Result, Trouble};

/// Of the JSON: members are only ever added to a version.
pub const SCHEMA: u32 = 1;
pub const PRAIRIE: &str = "prairie";
/// How often a program is looked at in which no map was found: it may not have been loaded yet.
const TRIES: u32 = 50;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub schema: u32,
    /// Of the wall clock, since 1970.
    pub time_ms: u64,
    pub pid: Pid,
    pub name: String,
    /// Who serves it, as far as can be told.
    pub allocator: String,
    /// What the kernel counts for the whole process.
    pub resident: u64,
    pub swapped: u64,
    pub threads: u64,
    /// None: it is not on prairie, or may not be read; `why` says which.
    pub figures: Option<Figures>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strip: Option<Strip>,
}

/// Why there are no figures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl From<Trouble> for Why {
    fn from(trouble: Trouble) -> Why {
        Why { text: trouble.to_string(), hint: trouble.hint_text().map(str::to_owned) }
    }
}

/// A process that is looked at again and again: its map is read once for each program it runs.
pub struct Target {
    pub pid: Pid,
    /// Tells the process from a later one of the same number.
    started: Option<u64>,
    name: String,
    allocator: &'static str,
    /// What the kernel told the program at its start, which tells programs apart.
    program: Vec<u8>,
    map: Option<Map>,
    tries: u32,
    why: Option<Why>,
    /// The kernel, or the map, said no.
    is_refused: bool,
}

impl Target {
    /// Fails when there is no such process.
    pub fn new(pid: Pid) -> Result<Target> {
        let name = refusal::require(pid)?;
        let mut target = Target {
            pid,
            started: proc::started(pid),
            name,
            allocator: "unknown",
            program: proc::auxiliary(pid),
            map: None,
            tries: 0,
            why: None,
            is_refused: false,
        };
        target.find_map();
        Ok(target)
    }

    /// What tells the program that it ran at the last look from others.
    pub fn program(&self) -> &[u8] {
        &self.program
    }

    pub fn is_on_prairie(&self) -> bool {
        self.allocator == PRAIRIE
    }

    /// There are figures, but they cannot be had.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Whether this is still the process that was met, not one that got its number.
    pub fn is_there(&self) -> bool {
        self.started.is_some() && proc::started(self.pid) == self.started
    }

    /// Looks for the map, if it may run another program than at the last look, or a part of one.
    fn refresh(&mut self) {
        let program = proc::auxiliary(self.pid);
        if program != self.program {
            self.program = program;
            self.tries = 0;
            self.find_map();
        } else if self.map.is_none() && self.tries < TRIES {
            self.tries += 1;
            // At growing distances: most processes of a machine never come to run on prairie.
            if self.tries.is_power_of_two() {
                self.find_map();
            }
        }
    }

    fn find_map(&mut self) {
        self.name = proc::name(self.pid);
        (self.map, self.why, self.is_refused) = (None, None, false);
        let mappings = match proc::mappings(self.pid) {
            Ok(mappings) => mappings,
            Err(error) => {
                self.allocator = "unknown";
                self.why = Some(refusal::of_reading(self.pid, &error).into());
                self.is_refused = true;
                return;
            }
        };
        self.allocator = process::allocator_among(&mappings);
        match map::find(&OfProcess(proc::living(self.pid)), &mappings) {
            Ok(maps) => {
                self.map = maps.into_iter().next();
                if self.map.is_some() {
                    self.allocator = PRAIRIE;
                } else {
                    self.why = Some(self.without_map(mappings.is_empty()));
                }
            }
            Err(fault) => {
                self.why = Some(self.faulty(&fault));
                self.is_refused = true;
            }
        }
    }

    fn without_map(&self, is_empty: bool) -> Why {
        let who = format!("process {} ({})", self.pid, self.name);
        let (text, hint) = match self.allocator {
            _ if is_empty => (format!("{who} has no memory: it is of the kernel, or ends"), None),
            PRAIRIE => (
                format!("{who} is on a prairie that is older than this command"),
                Some("start it again with a newer libprairie.so".to_owned()),
            ),
            other => (
                format!("{who} is not on prairie: its allocator is {other}"),
                Some("start it as: prairie run -- PROGRAM".to_owned()),
            ),
        };
        Why { text, hint }
    }

    fn faulty(&self, fault: &Fault) -> Why {
        match fault {
            Fault::Read(error) => refusal::of_reading(self.pid, error).into(),
            Fault::Wrong(text) => {
                let text = format!("process {} ({}): {text}", self.pid, self.name);
                Why { text, hint: Some("use the prairie command of the same release".to_owned()) }
            }
        }
    }

    /// None: it has ended. `cells`: of the strip; 0: none is wanted.
    pub fn sample(&mut self, cells: usize) -> Option<Sample> {
        let kernel = process::kernel(self.pid).filter(|_| self.is_there())?;
        self.refresh();
        let memory = OfProcess(proc::living(self.pid));
        let counted = self.map.as_ref().map(|map| count::count(&memory, map));
        let (figures, regions, why) = match counted {
            Some(Ok((figures, regions))) => (Some(figures), regions, None),
            Some(Err(fault)) => {
                let why = self.faulty(&fault);
                self.is_refused = true;
                (None, Regions::new(), Some(why))
            }
            None => (None, Regions::new(), self.why.clone()),
        };
        // What failed because the process ended is no failure.
        process::kernel(self.pid)?;
        Some(Sample {
            schema: SCHEMA,
            time_ms: now_ms(),
            pid: self.pid,
            name: self.name.clone(),
            allocator: self.allocator.to_owned(),
            resident: kernel.resident,
            swapped: kernel.swapped,
            threads: kernel.threads,
            figures,
            why,
            strip: strip::look(self.pid, &regions, cells),
        })
    }
}

pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// Every process that is on prairie.
#[derive(Default)]
pub struct Host {
    /// In order of their numbers; all others, too: they may become another program.
    targets: BTreeMap<Pid, Target>,
}

impl Host {
    /// Samples of all of them; those of another name are passed by.
    pub fn samples(&mut self, name: Option<&str>) -> Vec<Sample> {
        let pids = process::all();
        self.targets.retain(|_, target| target.is_there());
        for pid in pids.into_iter().filter(|pid| !process::is_own(*pid)) {
            self.meet(pid);
        }
        self.targets.values_mut().for_each(Target::refresh);
        let on_prairie = self.targets.values_mut().filter(|target| target.is_on_prairie());
        let samples = on_prairie.filter_map(|target| target.sample(0));
        let is_wanted =
            |sample: &Sample| name.is_none_or(|name| process::is_called(&sample.name, name));
        samples.filter(is_wanted).collect()
    }

    fn meet(&mut self, pid: Pid) {
        if let Entry::Vacant(place) = self.targets.entry(pid)
            && let Ok(target) = Target::new(pid)
        {
            place.insert(target);
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::live::figures::{Arena, Class, Lock};
    use crate::sys;

    const MIB: u64 = 1 << 20;

    /// A process that was made up.
    pub fn made(pid: Pid) -> Sample {
        let class = |size: u64, blocks: u64, cached_blocks: u64, slabs: u64| Class {
            size,
            blocks,
            cached_blocks,
            allocated: size * blocks,
            cached: size * cached_blocks,
            slabs,
            slab_bytes: slabs * 16384,
            taken: blocks * 3,
            slabs_opened: slabs + 2,
        };
        let arena = |number: u64, name: &str| Arena {
            number,
            name: name.to_owned(),
            manual: number != 0,
            threads: 3 - number,
            active: (20 + number) * MIB,
            out_of_slabs: 18 * MIB,
            depots: MIB / 4,
            stocks: MIB / 16,
            lock: Lock { taken: 1000 - number, contended: 10, waits: 2 },
        };
        let figures = Figures {
            release: "1.2.3".to_owned(),
            allocated: 52 * MIB,
            active: 64 * MIB,
            resident: 69 * MIB,
            mapped: 70 * MIB,
            retained: 8 * MIB,
            dirty: 4 * MIB,
            cached: 2 * MIB,
            metadata: MIB,
            large_allocated: 23 * MIB,
            large_blocks: 17,
            large_taken: 400,
            threads: 5,
            purged: 100 * MIB,
            purges: 25,
            refills: 123_456,
            overflows: 654,
            depot_trades: 4321,
            run_leases: 999,
            run_returns: 888,
            arena_hops: 7,
            background_looks: 11,
            uptime_seconds: 3723,
            lock_arenas: Lock { taken: 1999, contended: 20, waits: 4 },
            lock_runs: Lock { taken: 99, contended: 2, waits: 1 },
            lock_meta: Lock { taken: 9, contended: 0, waits: 0 },
            limit_hard: 0,
            limit_soft: 512 * MIB,
            reserve: 0,
            hardened: false,
            moving: 0,
            classes: vec![class(64, 400_000, 1000, 1700), class(1024, 2000, 31, 512)],
            arenas: vec![arena(0, ""), arena(1, "images")],
        };
        Sample {
            schema: SCHEMA,
            time_ms: 1_700_000_000_000,
            pid,
            name: "web".to_owned(),
            allocator: PRAIRIE.to_owned(),
            resident: 81 * MIB,
            swapped: 0,
            threads: 6,
            figures: Some(figures),
            why: None,
            strip: Some(Strip {
                bytes: 72 * MIB,
                resident: 66 * MIB,
                swapped: 0,
                exact: true,
                cells: (0..64)
                    .map(|cell| if cell < 48 { 100 } else { 100 - 6 * (cell - 48) })
                    .collect(),
            }),
        }
    }

    /// One that is on another allocator.
    pub fn foreign(pid: Pid) -> Sample {
        Sample {
            allocator: "glibc".to_owned(),
            figures: None,
            strip: None,
            why: Some(Why {
                text: format!("process {pid} (web) is not on prairie: its allocator is glibc"),
                hint: Some("start it as: prairie run -- PROGRAM".to_owned()),
            }),
            ..made(pid)
        }
    }

    #[test]
    fn a_sample_is_the_same_after_json() {
        for sample in [made(7), foreign(8)] {
            let text = serde_json::to_string(&sample).unwrap();
            assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), sample);
        }
    }

    #[test]
    fn this_process_is_not_on_prairie() {
        let mut target = Target::new(sys::own_pid()).unwrap();
        let sample = target.sample(4).unwrap();
        assert_eq!(sample.figures, None);
        assert!(sample.why.unwrap().text.contains("is not on prairie: its allocator is"));
        assert!(sample.resident > 0 && sample.threads > 0);
    }

    #[test]
    fn a_process_that_got_the_number_of_another_is_another() {
        let pid = std::os::unix::process::parent_id() as Pid;
        let mut target = Target::new(pid).unwrap();
        assert!(target.sample(0).is_some());
        target.started = Some(u64::MAX);
        target.allocator = PRAIRIE;
        assert!(target.sample(0).is_none());
        let mut host = Host { targets: BTreeMap::from([(pid, target)]) };
        host.samples(None);
        assert_eq!(host.targets[&pid].started, proc::started(pid));
    }

    #[test]
    fn a_process_that_is_not_there_is_told() {
        let error = Target::new(Pid::MAX).err().unwrap();
        assert_eq!(error.to_string(), format!("there is no process {}", Pid::MAX));
    }
}
