//! The heap of the program while it runs, looked at from outside: how large it was, and how full.
// SPDX-License-Identifier: MIT

use std::time::Duration;

use serde::Serialize;

use crate::interrupt::PassOn;
use crate::live::figures::{Class, Figures};
use crate::live::sample::Target;
use crate::measure::Watch;
use crate::sys::{self, Pid};
use crate::units;

/// Between two looks, and at least so many times what a look costs.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const LOOK_COST_FACTOR: u64 = 20;
/// Slabs that are emptier than this, and are so much memory, are worth a word.
const SPARSE: f64 = 0.7;
const SPARSE_BYTES: u64 = 1 << 20;

/// At the look at which most was in use.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Peak {
    /// Of how many: more was in use between two of them, perhaps.
    pub looks: u32,
    pub allocated: u64,
    /// Pages with such blocks.
    pub active: u64,
    pub cached: u64,
    pub dirty: u64,
    pub large_allocated: u64,
    /// The class whose slabs have most room that nobody uses: its size, what is in use, the slabs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparsest: Option<(u64, u64, u64)>,
}

pub struct Looking {
    passing: PassOn,
    is_wanted: bool,
    target: Option<Target>,
    next_ns: u64,
    looks: u32,
    peak: Option<Peak>,
}

impl Looking {
    pub fn new(passing: PassOn, is_wanted: bool) -> Looking {
        Looking { passing, is_wanted, target: None, next_ns: 0, looks: 0, peak: None }
    }

    /// None: it was never seen; it ended too soon, or may not be read.
    pub fn peak(self) -> Option<Peak> {
        self.peak.map(|peak| Peak { looks: self.looks, ..peak })
    }

    fn look(&mut self, pid: Pid, now_ns: u64) {
        // Before the loader is done there is nothing to be found.
        if !self.target.as_ref().is_some_and(Target::is_on_prairie) {
            self.target = Target::new(pid).ok();
        }
        let sample = self.target.as_mut().and_then(|target| target.sample(0));
        if let Some(figures) = sample.and_then(|sample| sample.figures) {
            self.looks += 1;
            if self.peak.as_ref().is_none_or(|peak| figures.allocated > peak.allocated) {
                self.peak = Some(Peak::of(&figures));
            }
        }
        let cost = sys::monotonic_ns() - now_ns;
        self.next_ns = now_ns + (LOOK_EVERY.as_nanos() as u64).max(cost * LOOK_COST_FACTOR);
    }
}

impl Watch for Looking {
    fn interrupted(&mut self, pid: Pid) -> bool {
        let now_ns = sys::monotonic_ns();
        if self.is_wanted && now_ns >= self.next_ns {
            self.look(pid, now_ns);
        }
        self.passing.interrupted(pid)
    }
}

impl Peak {
    fn of(figures: &Figures) -> Peak {
        let unused = |class: &&Class| class.slab_bytes.saturating_sub(class.allocated);
        let sparsest = figures.classes.iter().max_by_key(unused);
        Peak {
            looks: 0,
            allocated: figures.allocated,
            active: figures.active,
            cached: figures.cached,
            dirty: figures.dirty,
            large_allocated: figures.large_allocated,
            sparsest: sparsest.map(|class| (class.size, class.allocated, class.slab_bytes)),
        }
    }

    pub fn text(&self) -> String {
        let bytes = |value: u64| units::bytes(value as f64);
        let full = 100.0 * self.allocated as f64 / self.active.max(1) as f64;
        let at = match self.looks {
            1 => "at the only look".to_owned(),
            looks => format!("at the highest of {looks} looks"),
        };
        let (used, ready) = (bytes(self.allocated), bytes(self.cached));
        format!("{used} in use {at}, {full:.0} % of its pages; {ready} ready in caches")
    }

    /// Where memory lies that nobody can use, if it is worth a word.
    pub fn finding(&self) -> Option<String> {
        let (size, used, slabs) = self.sparsest?;
        let is_sparse = (used as f64) < SPARSE * slabs as f64 && slabs - used > SPARSE_BYTES;
        is_sparse.then(|| {
            format!(
                "slabs for blocks of {size} bytes are sparse: {} in use of {}",
                units::bytes(used as f64),
                units::bytes(slabs as f64)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peak(used: u64, slabs: u64) -> Peak {
        Peak {
            looks: 9,
            allocated: used,
            active: slabs,
            sparsest: Some((64, used, slabs)),
            ..Peak::default()
        }
    }

    #[test]
    fn the_peak_is_told_with_how_full_it_was() {
        let text = peak(3 << 20, 4 << 20).text();
        assert_eq!(
            text,
            "3.00 MiB in use at the highest of 9 looks, 75 % of its pages; 0 B ready in caches"
        );
    }

    #[test]
    fn sparse_slabs_are_a_finding_when_they_are_many() {
        let said = peak(1 << 20, 4 << 20).finding().unwrap();
        assert_eq!(said, "slabs for blocks of 64 bytes are sparse: 1.00 MiB in use of 4.00 MiB");
        assert_eq!(peak(3 << 20, 4 << 20).finding(), None);
        assert_eq!(peak(1 << 10, 4 << 10).finding(), None);
    }
}
