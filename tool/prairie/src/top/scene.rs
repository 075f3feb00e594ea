//! What was seen: the last look, the one before it, and how allocated memory went on.
// SPDX-License-Identifier: MIT

use std::collections::{HashMap, VecDeque};

use super::record::Look;
use crate::live::figures::Figures;
use crate::live::sample::Sample;
use crate::sys::Pid;

/// So many looks are remembered.
pub const TRAIL_MAX: usize = 512;

#[derive(Default)]
pub struct Scene {
    pub now: Look,
    before: Look,
    trails: HashMap<Pid, VecDeque<u64>>,
}

/// By the second, between two looks; of counters that threads took with them when they ended, 0.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Bytes allocated, less those that were given back.
    pub growth: f64,
    pub purged: f64,
    /// Blocks from slabs, and large ones.
    pub taken: f64,
    pub refills: f64,
    pub leases: f64,
    pub contended: f64,
}

impl Scene {
    pub fn advance(&mut self, look: Look) {
        self.trails.retain(|pid, _| look.samples.iter().any(|sample| sample.pid == *pid));
        for sample in &look.samples {
            let trail = self.trails.entry(sample.pid).or_default();
            if trail.len() == TRAIL_MAX {
                trail.pop_front();
            }
            trail.push_back(sample.figures.as_ref().map_or(sample.resident, |f| f.allocated));
        }
        self.before = std::mem::replace(&mut self.now, look);
    }

    pub fn sample(&self, pid: Pid) -> Option<&Sample> {
        self.now.samples.iter().find(|sample| sample.pid == pid)
    }

    /// The last `count` values, the newest last.
    pub fn trail(&self, pid: Pid, count: usize) -> Vec<u64> {
        let Some(trail) = self.trails.get(&pid) else { return Vec::new() };
        trail.iter().skip(trail.len().saturating_sub(count)).copied().collect()
    }

    /// None: it was seen once.
    pub fn rates(&self, pid: Pid) -> Option<Rates> {
        let now = self.sample(pid)?.figures.as_ref()?;
        let before = self.before.samples.iter().find(|sample| sample.pid == pid)?;
        let before = before.figures.as_ref()?;
        let seconds = self.now.time_ms.saturating_sub(self.before.time_ms) as f64 / 1000.0;
        (seconds > 0.0).then(|| rates(before, now, seconds))
    }
}

fn rates(before: &Figures, now: &Figures, seconds: f64) -> Rates {
    let risen = |of: fn(&Figures) -> u64| of(now).saturating_sub(of(before)) as f64 / seconds;
    Rates {
        growth: (now.allocated as f64 - before.allocated as f64) / seconds,
        purged: risen(|f| f.purged),
        taken: risen(|f| f.large_taken + f.classes.iter().map(|class| class.taken).sum::<u64>()),
        refills: risen(|f| f.refills),
        leases: risen(|f| f.run_leases),
        contended: risen(|f| {
            f.lock_arenas.contended + f.lock_runs.contended + f.lock_meta.contended
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::sample::tests::made;

    #[test]
    fn rates_are_of_the_time_between() {
        let (first, mut second) = (made(7), made(7));
        let figures = second.figures.as_mut().unwrap();
        figures.allocated -= 1000;
        figures.refills += 500;
        figures.classes[0].taken += 60;
        figures.run_leases = 0;
        let mut scene = Scene::default();
        scene.advance(Look { time_ms: 1000, samples: vec![first] });
        assert_eq!(scene.rates(7), None);
        scene.advance(Look { time_ms: 3000, samples: vec![second] });
        let rates = scene.rates(7).unwrap();
        assert_eq!(
            (rates.growth, rates.refills, rates.taken, rates.leases),
            (-500.0, 250.0, 30.0, 0.0)
        );
        assert_eq!(scene.trail(7, 9), [52 << 20, (52 << 20) - 1000]);
        scene.advance(Look { time_ms: 4000, samples: vec![] });
        assert!(scene.trail(7, 9).is_empty());
    }
}
