//! From raw runs to what can be said: cells, ratios, leads, and geometric means.
// SPDX-License-Identifier: MIT

use std::cell::RefCell;
use std::collections::HashMap;

use serde::Serialize;

use crate::allocator::Allocator;
use crate::bench::Item;
use crate::record::{Outcome, Run};
use crate::stats::{self, Middle, Ratio, Verdict};

/// A run that was looked at less often has no known memory over time: it ended within milliseconds.
const LOOKS_FOR_AN_AREA: u64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// The workload's own choice of a clock or a figure.
    Time,
    Wall,
    Cpu,
    Peak,
    /// Resident memory, summed over time.
    Area,
    Faults,
    Switches,
}

/// A run that failed, and how often that happened.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    pub outcome: Outcome,
    pub reason: String,
    pub count: usize,
}

/// All runs of one workload under one allocator.
struct Cell {
    /// In order of rounds, without warm-ups.
    runs: Vec<usize>,
    failure: Option<Failure>,
}

type Known = HashMap<(usize, usize, usize, Metric), Option<Ratio>>;

pub struct Analysis<'a> {
    pub allocators: &'a [Allocator],
    pub items: &'a [Item],
    runs: &'a [Run],
    cells: Vec<Vec<Cell>>,
    /// Of the bootstrap.
    seed: u64,
    /// Those whose memory is to be beaten; empty: all.
    memory_peers: Vec<String>,
    /// Ratios by workload, ours, theirs and metric: each takes thousands of draws, and is asked for
    /// by several tables.
    known: RefCell<Known>,
}

/// The best of the others on one workload, and how the subject compares.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Lead {
    pub peer: usize,
    /// Subject by peer: below 1, the subject is ahead.
    pub ratio: Ratio,
}

/// One allocator over all workloads, in relation to the subject: 1 is as good, above is worse.
#[derive(Debug, Clone, Serialize)]
pub struct Overall {
    pub allocator: String,
    pub time: Option<f64>,
    pub peak: Option<f64>,
    pub area: Option<f64>,
    /// Workloads on which both it and the subject were right.
    pub workload_count: usize,
    pub fastest_on: usize,
    pub leanest_on: usize,
    pub failed_on: usize,
}

/// How the subject stands against the best of the others on each workload.
#[derive(Debug, Clone, Serialize)]
pub struct Standing {
    pub metric: Metric,
    pub workload_count: usize,
    pub ahead_of_all: usize,
    /// Those of them where chance is ruled out.
    pub clearly_ahead_of_all: usize,
    pub clearly_behind_one: usize,
    /// Geometric mean over workloads of the subject by the best peer on each.
    pub against_best: Option<f64>,
    pub worst: Option<(String, f64)>,
}

impl<'a> Analysis<'a> {
    pub fn new(
        allocators: &'a [Allocator],
        items: &'a [Item],
        runs: &'a [Run],
        seed: u64,
    ) -> Analysis<'a> {
        let cell = |workload: usize, allocator: usize| {
            let of_cell = || {
                let all = runs.iter().enumerate();
                all.filter(move |(_, r)| r.workload == workload && r.allocator == allocator)
            };
            let mut counted: Vec<usize> =
                of_cell().filter(|(_, run)| run.round > 0).map(|(index, _)| index).collect();
            counted.sort_by_key(|index| runs[*index].round);
            Cell { runs: counted, failure: failure(of_cell().map(|(_, run)| run)) }
        };
        let row = |workload| (0..allocators.len()).map(|a| cell(workload, a)).collect();
        let cells = (0..items.len()).map(row).collect();
        let (memory_peers, known) = Default::default();
        Analysis { allocators, items, runs, cells, seed, memory_peers, known }
    }

    /// Leads in memory are then over these only: who spends time to save memory is another kind.
    pub fn with_memory_peers(mut self, names: &[String]) -> Analysis<'a> {
        self.memory_peers = names.to_vec();
        self
    }

    pub fn failure(&self, workload: usize, allocator: usize) -> Option<&Failure> {
        self.cells[workload][allocator].failure.as_ref()
    }

    /// Whether it ran, and never failed: who takes no part in a workload is not right on it.
    fn is_right(&self, workload: usize, allocator: usize) -> bool {
        let cell = &self.cells[workload][allocator];
        cell.failure.is_none() && !cell.runs.is_empty()
    }

    /// One figure for each round; empty when any run failed: nothing is claimed then.
    pub fn values(&self, workload: usize, allocator: usize, metric: Metric) -> Vec<f64> {
        let cell = &self.cells[workload][allocator];
        let is_too_short = |index: &usize| self.runs[*index].looks < LOOKS_FOR_AN_AREA;
        let has_no_area = metric == Metric::Area && cell.runs.iter().any(is_too_short);
        if cell.failure.is_some() || has_no_area {
            return Vec::new();
        }
        let definition = &self.items[workload].workload;
        let value = |index: &usize| {
            let run = &self.runs[*index];
            match metric {
                Metric::Time => run.cost(definition).unwrap_or(f64::NAN),
                Metric::Wall => run.wall_s,
                Metric::Cpu => run.user_s + run.system_s,
                Metric::Peak => run.peak_bytes as f64,
                Metric::Area => run.byte_seconds,
                Metric::Faults => (run.minor_faults + run.major_faults) as f64,
                Metric::Switches => (run.voluntary_switches + run.forced_switches) as f64,
            }
        };
        cell.runs.iter().map(value).collect()
    }

    pub fn middle(&self, workload: usize, allocator: usize, metric: Metric) -> Option<Middle> {
        Middle::of(&self.values(workload, allocator, metric))
    }

    /// Of the medians, one by the other, over the same rounds.
    pub fn ratio(&self, workload: usize, ours: usize, theirs: usize, m: Metric) -> Option<Ratio> {
        let key = (workload, ours, theirs, m);
        if let Some(ratio) = self.known.borrow().get(&key) {
            return *ratio;
        }
        let (a, b) = (self.values(workload, ours, m), self.values(workload, theirs, m));
        let is_paired = a.len() == b.len();
        let mut ratio = is_paired.then(|| Ratio::of_medians(&a, &b, self.seed)).flatten();
        if m == Metric::Time && self.runs.iter().any(|run| run.instructions.is_some()) {
            ratio = ratio.map(|ratio| Ratio::exact(ratio.value));
        }
        self.known.borrow_mut().insert(key, ratio);
        ratio
    }

    /// Whether only those that the user named are to be beaten in this.
    pub fn has_chosen_peers(&self, metric: Metric) -> bool {
        matches!(metric, Metric::Peak | Metric::Area) && !self.memory_peers.is_empty()
    }

    /// An allocator and its variants, name-something, are not each other's peers, and variants of one
    /// are not either.
    fn is_peer(&self, allocator: usize, subject: usize, metric: Metric) -> bool {
        let (name, of) = (&self.allocators[allocator].name, &self.allocators[subject].name);
        if self.has_chosen_peers(metric) && !self.memory_peers.contains(name) {
            return false;
        }
        let is_of = |name: &str, base: &str| {
            name.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        !self.allocators.iter().any(|base| is_of(name, &base.name) && is_of(of, &base.name))
    }

    fn medians(&self, workload: usize, metric: Metric) -> Vec<(usize, f64)> {
        (0..self.allocators.len())
            .filter_map(|a| Some((a, self.middle(workload, a, metric)?.median)))
            .collect()
    }

    /// The subject against the best of its peers on this workload.
    pub fn lead(&self, workload: usize, subject: usize, metric: Metric) -> Option<Lead> {
        let medians = self.medians(workload, metric);
        let peers = medians.into_iter().filter(|(a, _)| self.is_peer(*a, subject, metric));
        let (peer, _) = peers.min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Lead { peer, ratio: self.ratio(workload, subject, peer, metric)? })
    }

    fn best(&self, workload: usize, metric: Metric) -> Option<usize> {
        let medians = self.medians(workload, metric);
        Some(medians.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?.0)
    }

    pub fn overall(&self, allocator: usize, subject: usize) -> Overall {
        let workloads = || 0..self.items.len();
        let mean = |metric| {
            let value = |w| Some(self.ratio(w, allocator, subject, metric)?.value);
            stats::geometric_mean(&workloads().filter_map(value).collect::<Vec<_>>())
        };
        let best_on =
            |metric| workloads().filter(|w| self.best(*w, metric) == Some(allocator)).count();
        let is_shared = |w: &usize| self.is_right(*w, allocator) && self.is_right(*w, subject);
        Overall {
            allocator: self.allocators[allocator].name.clone(),
            time: mean(Metric::Time),
            peak: mean(Metric::Peak),
            area: mean(Metric::Area),
            workload_count: workloads().filter(is_shared).count(),
            fastest_on: best_on(Metric::Time),
            leanest_on: best_on(Metric::Peak),
            failed_on: workloads().filter(|w| self.failure(*w, allocator).is_some()).count(),
        }
    }

    pub fn standing(&self, subject: usize, metric: Metric) -> Standing {
        let lead = |w: usize| Some((w, self.lead(w, subject, metric)?));
        let leads: Vec<(usize, Lead)> = (0..self.items.len()).filter_map(lead).collect();
        let count =
            |test: fn(&Ratio) -> bool| leads.iter().filter(|(_, lead)| test(&lead.ratio)).count();
        let values: Vec<f64> = leads.iter().map(|(_, lead)| lead.ratio.value).collect();
        let worst = leads.iter().max_by(|a, b| a.1.ratio.value.total_cmp(&b.1.ratio.value));
        Standing {
            metric,
            workload_count: leads.len(),
            ahead_of_all: count(|ratio| ratio.value < 1.0),
            clearly_ahead_of_all: count(|ratio| ratio.verdict() == Verdict::Less),
            clearly_behind_one: count(|ratio| ratio.verdict() == Verdict::More),
            against_best: stats::geometric_mean(&values),
            worst: worst.map(|(w, lead)| (self.items[*w].workload.name.clone(), lead.ratio.value)),
        }
    }

    pub fn has_failures(&self) -> bool {
        self.cells.iter().flatten().any(|cell| cell.failure.is_some())
    }
}

/// The gravest failure of a cell's runs.
fn failure<'a>(runs: impl Iterator<Item = &'a Run> + Clone) -> Option<Failure> {
    let failed = runs.filter(|run| run.outcome != Outcome::Right);
    let count = failed.clone().count();
    let gravest = failed.max_by_key(|run| run.outcome)?;
    let reason = gravest.reason.clone().unwrap_or_default();
    Some(Failure { outcome: gravest.outcome, reason, count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use std::path::PathBuf;

    fn item(name: &str) -> Item {
        Item {
            suite: "s".into(),
            workload: fixture::workload(name),
            root: PathBuf::from("/"),
            rounds: 5,
            scale: 100,
            strict: true,
            counter: None,
        }
    }

    /// Times of (workload, allocator) in each of five rounds.
    fn runs(times: &[(usize, usize, f64)]) -> Vec<Run> {
        let mut runs = Vec::new();
        for (workload, allocator, time) in times {
            for round in 1..=5 {
                let mut run = fixture::run(*workload, *allocator, round);
                run.wall_s = time * (1.0 + 0.001 * f64::from(round));
                run.peak_bytes = (time * 1e6) as u64;
                runs.push(run);
            }
        }
        runs
    }

    fn three() -> Vec<Allocator> {
        ["glibc", "prairie", "other"].map(fixture::allocator).to_vec()
    }

    #[test]
    fn the_best_peer_is_chosen_for_each_workload() {
        let (allocators, items) = (three(), [item("a"), item("b")]);
        let runs =
            runs(&[(0, 0, 2.0), (0, 1, 1.0), (0, 2, 4.0), (1, 0, 9.0), (1, 1, 3.0), (1, 2, 2.0)]);
        let analysis = Analysis::new(&allocators, &items, &runs, 1);
        let lead = analysis.lead(0, 1, Metric::Time).unwrap();
        assert_eq!((lead.peer, lead.ratio.verdict()), (0, Verdict::Less));
        let lead = analysis.lead(1, 1, Metric::Time).unwrap();
        assert_eq!((lead.peer, lead.ratio.verdict()), (2, Verdict::More));
        let standing = analysis.standing(1, Metric::Time);
        assert_eq!((standing.ahead_of_all, standing.clearly_ahead_of_all), (1, 1));
        assert_eq!((standing.clearly_behind_one, standing.workload_count), (1, 2));
        assert_eq!(standing.worst.unwrap().0, "b");
        let mean = (0.5f64 * 1.5).sqrt();
        assert!((standing.against_best.unwrap() - mean).abs() < 1e-9);
    }

    #[test]
    fn geometric_means_are_relative_to_the_subject() {
        let (allocators, items) = (three(), [item("a"), item("b")]);
        let runs = runs(&[(0, 0, 2.0), (0, 1, 1.0), (1, 0, 8.0), (1, 1, 1.0), (0, 2, 1.0)]);
        let analysis = Analysis::new(&allocators, &items, &runs, 1);
        let overall = analysis.overall(0, 1);
        assert!((overall.time.unwrap() - 4.0).abs() < 1e-9);
        assert_eq!(analysis.overall(1, 1).time, Some(1.0));
        assert_eq!(analysis.overall(1, 1).workload_count, 2);
        // It took no part in the second.
        assert_eq!(analysis.overall(2, 1).workload_count, 1);
    }

    #[test]
    fn one_wrong_run_takes_the_whole_cell_out() {
        let (allocators, items) = (three(), [item("a")]);
        let mut runs = runs(&[(0, 0, 2.0), (0, 1, 3.0), (0, 2, 1.0)]);
        runs[11].fail(Outcome::Wrong, "different");
        let analysis = Analysis::new(&allocators, &items, &runs, 1);
        assert_eq!(analysis.failure(0, 2).unwrap().outcome, Outcome::Wrong);
        assert!(analysis.values(0, 2, Metric::Time).is_empty());
        // The wrong one was the fastest, and is not the peer to beat.
        assert_eq!(analysis.lead(0, 1, Metric::Time).unwrap().peer, 0);
        assert_eq!(analysis.overall(2, 1).fastest_on, 0);
        assert_eq!(analysis.overall(2, 1).failed_on, 1);
        assert!(analysis.has_failures());
    }

    #[test]
    fn a_failed_warm_up_counts_and_its_time_does_not() {
        let (allocators, items) = (three(), [item("a")]);
        let mut runs = runs(&[(0, 0, 2.0)]);
        runs.push(Run { wall_s: 100.0, ..fixture::run(0, 0, 0) });
        let values = Analysis::new(&allocators, &items, &runs, 1).values(0, 0, Metric::Time);
        assert_eq!(values.len(), 5);
        runs[5].fail(Outcome::Crashed, "signal");
        let analysis = Analysis::new(&allocators, &items, &runs, 1);
        assert!(analysis.failure(0, 0).is_some());
    }

    #[test]
    fn a_short_run_has_no_memory_over_time() {
        let (allocators, items) = (three(), [item("a")]);
        let mut runs = runs(&[(0, 0, 2.0)]);
        let area =
            |runs: &[Run]| Analysis::new(&allocators, &items, runs, 1).middle(0, 0, Metric::Area);
        assert!(area(&runs).is_some());
        runs[2].looks = 1;
        assert_eq!(area(&runs), None);
    }

    #[test]
    fn memory_may_be_compared_with_some_only() {
        let (allocators, items) = (three(), [item("a")]);
        let runs = runs(&[(0, 0, 1.0), (0, 1, 2.0), (0, 2, 3.0)]);
        let analysis = Analysis::new(&allocators, &items, &runs, 1);
        assert_eq!(analysis.lead(0, 1, Metric::Peak).unwrap().peer, 0);
        assert!(!analysis.has_chosen_peers(Metric::Peak));
        let analysis = analysis.with_memory_peers(&["other".to_owned()]);
        assert_eq!(analysis.lead(0, 1, Metric::Peak).unwrap().peer, 2);
        assert_eq!(analysis.lead(0, 1, Metric::Time).unwrap().peer, 0);
        assert!(analysis.has_chosen_peers(Metric::Peak) && analysis.has_chosen_peers(Metric::Area));
        assert!(!analysis.has_chosen_peers(Metric::Time));
    }

    #[test]
    fn variants_of_the_subject_are_not_its_peers() {
        let allocators = ["prairie", "prairie-thp", "other"].map(fixture::allocator);
        let items = [item("a")];
        let runs = runs(&[(0, 0, 2.0), (0, 1, 1.0), (0, 2, 3.0)]);
        let analysis = Analysis::new(&allocators, &items, &runs, 1);
        assert_eq!(analysis.lead(0, 0, Metric::Time).unwrap().peer, 2);
    }

    #[test]
    fn a_variants_peers_are_those_of_who_it_is_a_variant_of() {
        let allocators = ["prairie", "prairie-thp", "prairie-one", "other", "prairies"];
        let allocators = allocators.map(fixture::allocator);
        let items = [item("a")];
        let times = [(0, 0, 1.0), (0, 1, 2.0), (0, 2, 1.5), (0, 3, 4.0), (0, 4, 3.0)];
        let runs = runs(&times);
        let analysis = Analysis::new(&allocators, &items, &runs, 1);
        assert_eq!(analysis.lead(0, 1, Metric::Time).unwrap().peer, 4);
        assert_eq!(analysis.lead(0, 3, Metric::Time).unwrap().peer, 0);
    }
}
