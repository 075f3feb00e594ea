//! The order of runs: all allocators of a workload follow each other in each round, shuffled, so
//! that what the machine does meanwhile happens to all of them.
// SPDX-License-Identifier: MIT

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// From 1; 0 is a warm-up, which is checked but not counted.
    pub round: u32,
    pub workload: usize,
    pub allocator: usize,
    /// Its calls are counted, and its time is not.
    pub counts_calls: bool,
}

/// One for each pair, before all rounds.
pub fn counting(workloads: &[usize], allocator_count: usize) -> Vec<Step> {
    let step = |workload, allocator| Step { round: 0, workload, allocator, counts_calls: true };
    let of = |workload: &usize| {
        let workload = *workload;
        (0..allocator_count).map(move |allocator| step(workload, allocator))
    };
    workloads.iter().flat_map(of).collect()
}

/// `rounds` has an entry for each workload.
pub fn shuffled(rounds: &[u32], allocator_count: usize, warm_ups: u32, seed: u64) -> Vec<Step> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut steps = Vec::new();
    let round_count = rounds.iter().copied().max().unwrap_or(0);
    let numbers = (0..warm_ups).map(|_| 0).chain(1..=round_count);
    for round in numbers {
        let mut workloads: Vec<usize> = (0..rounds.len()).filter(|w| rounds[*w] >= round).collect();
        workloads.shuffle(&mut random);
        for workload in workloads {
            let mut allocators: Vec<usize> = (0..allocator_count).collect();
            allocators.shuffle(&mut random);
            let step = |allocator| Step { round, workload, allocator, counts_calls: false };
            steps.extend(allocators.into_iter().map(step));
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_round_has_every_pair_once() {
        let steps = shuffled(&[3, 3], 4, 1, 9);
        assert_eq!(steps.len(), 4 * 2 * 4);
        for round in 0..=3 {
            let of_round = steps.iter().filter(|step| step.round == round);
            let pairs: BTreeSet<_> = of_round.map(|step| (step.workload, step.allocator)).collect();
            assert_eq!(pairs.len(), 8);
        }
    }

    #[test]
    fn allocators_of_a_workload_follow_each_other() {
        for block in shuffled(&[2, 2, 2], 3, 0, 4).chunks(3) {
            assert!(block.iter().all(|step| step.workload == block[0].workload));
        }
    }

    #[test]
    fn the_seed_decides_the_order() {
        assert_eq!(shuffled(&[5, 5], 5, 0, 1), shuffled(&[5, 5], 5, 0, 1));
        assert_ne!(shuffled(&[5, 5], 5, 0, 1), shuffled(&[5, 5], 5, 0, 2));
        let steps = shuffled(&[20], 3, 0, 1);
        let firsts: BTreeSet<_> = steps.chunks(3).map(|round| round[0].allocator).collect();
        assert_eq!(firsts.len(), 3, "each allocator comes first at times");
    }

    #[test]
    fn workloads_have_rounds_of_their_own() {
        let steps = shuffled(&[1, 3], 1, 0, 1);
        assert_eq!(steps.iter().filter(|step| step.workload == 0).count(), 1);
        assert_eq!(steps.iter().filter(|step| step.workload == 1).count(), 3);
    }
}
