//! Compares the results of all runs of a workload: who is right, and can that be told at all?
// SPDX-License-Identifier: MIT

use std::collections::BTreeMap;

use crate::allocator::Allocator;
use crate::record::{Outcome, Run};

/// A result: exit code, and checksum of standard output.
type Key = (Option<i32>, String);

/// Marks the runs whose result differs from the reference's. The reference is the first allocator
/// (the C library's malloc, if it takes part) when all of its runs agree.
///
/// Where its runs differ from each other, the output is no measure. With `strict` all runs are then
/// wrong; without it a note is returned, and exit codes alone are compared.
pub fn compare_outputs(
    runs: &mut [&mut Run],
    allocators: &[Allocator],
    strict: bool,
) -> Option<String> {
    let reference = reference(runs)?;
    let mut keys: BTreeMap<Key, usize> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.allocator == reference && is_candidate(run)) {
        *keys.entry(key(run)).or_default() += 1;
    }
    let name = &allocators[reference].name;
    if keys.len() == 1 {
        let expected = keys.into_keys().next().expect("one key");
        mark(runs, &expected, name);
        return None;
    }
    let text = format!("the output differs between runs under {name} itself");
    if strict {
        for run in runs.iter_mut() {
            run.fail(Outcome::Wrong, format!("{text}: no result can be checked"));
        }
        return Some(format!("{text}; give the workload a check of its own, or check = \"exit\""));
    }
    let codes: Vec<_> = keys.keys().map(|(code, _)| *code).collect();
    let code = codes[0];
    for run in runs.iter_mut().filter(|run| !codes.contains(&run.exit_code)) {
        let expected = code.map_or("none".to_owned(), |code| code.to_string());
        run.fail(Outcome::Wrong, format!("exit code differs: {expected} is right"));
    }
    Some(format!("{text} (a time, an address, chance?): only exit codes were compared"))
}

/// Marks the runs of a workload that promises the output of another one and has not got it. A note
/// tells when there was nothing to compare with.
pub fn compare_with(
    runs: &mut [Run],
    workload: usize,
    other: Option<usize>,
    name: &str,
) -> Option<String> {
    let right = runs.iter().find(|run| Some(run.workload) == other && is_candidate(run));
    let Some(expected) = right.map(key) else {
        return Some(format!("{name} has no result, so that it was not compared with this one"));
    };
    let of_workload = |run: &&mut Run| run.workload == workload && is_candidate(run);
    for run in runs.iter_mut().filter(of_workload) {
        if key(run) != expected {
            run.fail(Outcome::Wrong, format!("its output differs from that of {name}"));
        }
    }
    None
}

/// The first allocator that has results.
fn reference(runs: &[&mut Run]) -> Option<usize> {
    runs.iter().filter(|run| is_candidate(run)).map(|run| run.allocator).min()
}

/// Runs that failed otherwise have no result to compare.
fn is_candidate(run: &Run) -> bool {
    run.outcome == Outcome::Right
}

fn key(run: &Run) -> Key {
    (run.exit_code, run.stdout_sha256.clone())
}

fn mark(runs: &mut [&mut Run], expected: &Key, name: &str) {
    for run in runs.iter_mut().filter(|run| is_candidate(run)) {
        if run.exit_code != expected.0 {
            let codes = (run.exit_code.unwrap_or(-1), expected.0.unwrap_or(-1));
            run.fail(Outcome::Wrong, format!("exit code {}, under {name} {}", codes.0, codes.1));
        } else if run.stdout_sha256 != expected.1 {
            run.fail(Outcome::Wrong, format!("its output differs from that under {name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn judged(results: &[(usize, i32, &str)], strict: bool) -> (Vec<Outcome>, Option<String>) {
        let allocators = [fixture::allocator("glibc"), fixture::allocator("other")];
        let mut runs: Vec<Run> = results
            .iter()
            .map(|(allocator, code, output)| {
                let mut run = fixture::run(0, *allocator, 1);
                run.exit_code = Some(*code);
                run.stdout_sha256 = (*output).to_owned();
                run
            })
            .collect();
        let mut borrowed: Vec<&mut Run> = runs.iter_mut().collect();
        let note = compare_outputs(&mut borrowed, &allocators, strict);
        (runs.iter().map(|run| run.outcome).collect(), note)
    }

    #[test]
    fn a_different_output_is_wrong() {
        use Outcome::{Right, Wrong};
        let (outcomes, note) = judged(&[(0, 0, "a"), (1, 0, "b"), (0, 0, "a"), (1, 0, "a")], true);
        assert_eq!(outcomes, [Right, Wrong, Right, Right]);
        assert_eq!(note, None);
    }

    #[test]
    fn a_different_exit_code_is_wrong() {
        let (outcomes, _) = judged(&[(0, 3, "a"), (1, 0, "a")], false);
        assert_eq!(outcomes, [Outcome::Right, Outcome::Wrong]);
    }

    #[test]
    fn an_output_may_have_to_be_another_workloads() {
        let mut runs: Vec<Run> = [(0, "a"), (1, "a"), (1, "b"), (2, "c")]
            .map(|(workload, output)| {
                let mut run = fixture::run(workload, 0, 1);
                run.stdout_sha256 = output.to_owned();
                run
            })
            .to_vec();
        assert_eq!(compare_with(&mut runs, 1, Some(0), "first"), None);
        let outcomes: Vec<Outcome> = runs.iter().map(|run| run.outcome).collect();
        assert_eq!(outcomes, [Outcome::Right, Outcome::Right, Outcome::Wrong, Outcome::Right]);
        assert_eq!(runs[2].reason.as_deref(), Some("its output differs from that of first"));
        assert!(compare_with(&mut runs, 1, None, "first").unwrap().contains("no result"));
    }

    #[test]
    fn an_unsteady_output_proves_nothing() {
        let results = [(0, 0, "a"), (0, 0, "b"), (1, 0, "c")];
        let (outcomes, note) = judged(&results, true);
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Wrong));
        assert!(note.unwrap().contains("under glibc itself"));
        let (outcomes, note) = judged(&results, false);
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Right));
        assert!(note.unwrap().contains("only exit codes"));
    }

    #[test]
    fn unsteady_outputs_still_have_exit_codes() {
        let (outcomes, _) = judged(&[(0, 0, "a"), (0, 0, "b"), (1, 1, "c")], false);
        assert_eq!(outcomes, [Outcome::Right, Outcome::Right, Outcome::Wrong]);
    }
}
