//! What a suite may demand of its rows: enough calls, the same result elsewhere, who takes part.
// SPDX-License-Identifier: MIT

mod support;

use std::fs;

use predicates::str::contains;
use support::Suite;

/// A program that says itself what a counter of calls would say.
const CALLS: &str = "[[workload]]\nname = 'calls'\ncalls_at_least = 100\n\
    command = ['sh', '-c', 'echo \"calls $CALLS\" >$PRAIRIE_FIGURES']\n";

/// The suite under two allocators which differ in what CALLS says; a counter is declared.
fn suite_of_calls(glibc: u32, again: u32, more: &str) -> Suite {
    let suite = Suite::new(CALLS);
    let path = suite.path("suite.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text
        .replace("rounds = 2", "rounds = 2\ncounter = 'counter.so'")
        .replace("VARIANT = \"one\" }", &format!("CALLS = \"{glibc}\" }}"))
        .replace("VARIANT = \"two\" }", &format!("CALLS = \"{again}\" }}\n{more}"));
    fs::write(path, text).unwrap();
    fs::write(suite.path("counter.so"), "").unwrap();
    suite
}

#[test]
fn a_row_with_too_few_calls_is_void() {
    let suite = suite_of_calls(100, 99, "");
    let reason = "NOT SERVED in 1 run: 99 calls of malloc's family, fewer than 100";
    suite.compare().assert().code(1).stdout(contains(reason));
    // The run that counts comes before the rounds, and takes the whole row out.
    assert_eq!(suite.outcomes("again"), ["not_served", "right", "right"]);
    assert_eq!(suite.outcomes("glibc"), ["right", "right", "right"]);
    let counting = suite.runs().into_iter().filter(|run| run["counts_calls"] == true);
    assert_eq!(counting.map(|run| run["round"] == 0).collect::<Vec<_>>(), [true, true]);
    let json = suite.json();
    let cell = json["cells"].as_array().unwrap().iter().find(|cell| cell["allocator"] == "again");
    assert!(cell.unwrap()["time"].is_null());
}

#[test]
fn a_heap_of_the_programs_own_need_not_call_malloc() {
    let suite = suite_of_calls(100, 3, "own_heap = true");
    suite.compare().assert().success();
    assert_eq!(suite.outcomes("again"), ["right", "right", "right"]);
}

#[test]
fn a_heap_of_the_programs_own_that_calls_malloc_often_is_not_in_use() {
    let own = "own_heap = true\ncalls_at_most = 10";
    let suite = suite_of_calls(100, 10, own);
    suite.compare().assert().success();
    let suite = suite_of_calls(100, 11, own);
    let reason = "NOT SERVED in 1 run: 11 calls of malloc's family, more than 10";
    suite.compare().assert().code(1).stdout(contains(reason));
    assert_eq!(suite.outcomes("again"), ["not_served", "right", "right"]);
}

#[test]
fn a_counter_that_is_not_there_makes_its_workloads_absent() {
    let suite = suite_of_calls(100, 100, "");
    fs::remove_file(suite.path("counter.so")).unwrap();
    suite.compare().assert().code(125).stderr(contains("counter.so"));
}

#[test]
fn an_output_may_have_to_be_the_same_elsewhere() {
    let workload = |name: &str, says: &str, more: &str| {
        format!("[[workload]]\nname = '{name}'\ncommand = ['echo', '{says}']\n{more}\n")
    };
    let suite = Suite::new(
        &[
            workload("first", "4", ""),
            workload("second", "4", "same_as = 'first'"),
            workload("third", "5", "same_as = 'first'"),
        ]
        .concat(),
    );
    suite.compare().assert().code(1).stdout(contains(
        "third under glibc: WRONG in 2 runs: its output differs from that of first",
    ));
    let runs = suite.runs();
    let wrong = runs.iter().filter(|run| run["outcome"] == "wrong");
    assert!(wrong.clone().all(|run| run["workload"] == "third"));
    assert_eq!(wrong.count(), 4);
    suite
        .compare()
        .args(["--workloads", "second"])
        .assert()
        .success()
        .stdout(contains("second: first has no result, so that it was not compared"));
}

#[test]
fn an_allocator_may_take_part_in_some_workloads_only() {
    let suite = Suite::new(
        "workloads = ['sec*']\n[[workload]]\nname = 'first'\ncommand = ['true']\n\
         [[workload]]\nname = 'second'\ncommand = ['true']\n",
    );
    suite.compare().assert().success();
    let of_again = suite.runs().into_iter().filter(|run| run["allocator"] == "again");
    assert!(of_again.clone().all(|run| run["workload"] == "second"));
    assert_eq!(of_again.count(), 2);
    assert_eq!(suite.outcomes("glibc").len(), 4);
}

#[test]
fn resident_memory_over_time_is_kept_on_demand() {
    let suite = Suite::new(
        "[[workload]]\nname = 'kept'\nseries = true\ncommand = ['sleep', '0.5']\n\
         [[workload]]\nname = 'other'\ncommand = ['true']\n",
    );
    suite.compare().assert().success();
    for run in suite.runs() {
        let series = run["series"].as_array();
        assert_eq!(series.is_some(), run["workload"] == "kept");
        let Some(series) = series else { continue };
        assert!(!series.is_empty(), "{series:?}");
        let highest = series.iter().filter_map(|point| point[1].as_u64()).max().unwrap();
        assert!(highest > 0 && highest <= run["peak_bytes"].as_u64().unwrap());
    }
}
