//! The war's own pieces: the counter of calls, the page, and suites that somebody owns.
// SPDX-License-Identifier: MIT

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use predicates::str::contains;
use serde_json::{Value, json};
use support::{Suite, compiled, copy_program, make_program, script};

fn war(name: &str) -> PathBuf {
    script("bench/war").join(name)
}

/// None, and said: the program is not there.
fn output(command: &mut Command) -> Option<Output> {
    let output = command.output().ok();
    if output.is_none() {
        eprintln!("skipped: {} is missing", command.get_program().display());
    }
    output
}

/// 2000 calls each of reallocarray and of valloc and pvalloc, and what must hold of them.
const RARE: &str = "#include <malloc.h>\n#include <stdint.h>\n#include <stdlib.h>\n\
    int main(void) {\n\
        char *block = NULL;\n\
        for (int i = 1; i <= 2000; i++) {\n\
            if (!(block = reallocarray(block, (size_t)i, 2))) return 1;\n\
            char *page = i % 2 ? valloc(100) : pvalloc(100);\n\
            if (!page || (uintptr_t)page % 4096) return 2;\n\
            if (i % 2 == 0 && malloc_usable_size(page) < 4096) return 3;\n\
        }\n\
        return reallocarray(block, SIZE_MAX, 2) ? 4 : 0;\n\
    }\n";

#[test]
fn the_counter_counts_and_passes_on() {
    let workload = |name: &str, least: u64| {
        format!(
            "[[workload]]\nname = '{name}'\ncalls_at_least = {least}\n\
             command = ['sort', '{{root}}/suite.toml']\n"
        )
    };
    // Calls that are passed on as others.
    let rare = "[[workload]]\nname = 'rare'\ncalls_at_least = 4000\ncommand = ['{root}/rare']\n";
    // The shell calls last, and seldom.
    let shell = "[[workload]]\nname = 'shell'\ncalls_at_least = 4000\n\
                 command = ['sh', '-c', '{root}/rare; true']\n";
    let least = [workload("few", 5), workload("many", 1_000_000)].concat();
    let suite = Suite::new(&[&least, rare, shell].concat());
    let path = suite.path("suite.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, text.replace("rounds = 2", "rounds = 2\ncounter = 'libcalls.so'")).unwrap();
    let flags = ["-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o"];
    let mut cc = Command::new("cc");
    cc.args(flags).arg(suite.path("libcalls.so")).arg(war("calls.c")).arg("-ldl");
    let Some(made) = output(&mut cc) else { return };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    compiled(suite.path("rare"), RARE, &["-std=gnu17", "-O0"]).unwrap();

    suite
        .compare()
        .assert()
        .code(1)
        .stdout(contains("calls of malloc's family, fewer than 1000000"));
    let runs = suite.runs();
    let counting: Vec<&Value> = runs.iter().filter(|run| run["counts_calls"] == true).collect();
    assert_eq!(counting.len(), 8);
    for run in counting {
        assert!(run["figures"]["calls"]["value"].as_f64().unwrap() >= 5.0, "{run}");
        assert!(run["figures"]["live_peak"]["value"].as_f64().unwrap() > 0.0, "{run}");
        let expected = if run["workload"] == "many" { "not_served" } else { "right" };
        assert_eq!(run["outcome"], expected);
    }
    // Rounds are not run under the counter.
    assert!(
        runs.iter().filter(|run| run["counts_calls"].is_null()).all(|run| run["figures"].is_null())
    );
}

fn timed(allocator: &str, ms: f64, kb: u64, outcome: &str) -> Value {
    json!({
        "workload": "qjs-v8", "allocator": allocator, "round": 1, "outcome": outcome,
        "reason": "its output differs", "user_s": ms / 1e3, "system_s": 0.0, "wall_s": 2.0,
        "peak_bytes": kb * 1024, "byte_seconds": 1e6, "series": [[0.0, 1000], [1.0, 0]],
    })
}

/// The page's tables and data, made of these runs.
fn page(runs: &[Value], counted: &[Value]) -> Option<(String, Value)> {
    let folder = tempfile::tempdir().unwrap();
    let text = |runs: &[Value]| {
        json!({
            "date": "2026-01-01T00:00:00Z", "machine": {}, "quick": false, "runs": runs,
            "notes": ["jsc-v8: qjs-v8 has no result, so that it was not compared with this one"],
            "workloads": [{ "name": "qjs-v8", "suite": "own", "scale": 100 },
                          { "name": "qjs-parse", "suite": "war", "scale": 40 }],
            "allocators": [], "absent_allocators": [],
            "absent_workloads": [{ "name": "jsc-v8", "reason": "jsc: no such program" }],
        })
    };
    for (pass, runs) in [("time", runs), ("browse", runs), ("instructions", counted)] {
        fs::create_dir(folder.path().join(pass)).unwrap();
        fs::write(folder.path().join(pass).join("compare.json"), text(runs).to_string()).unwrap();
    }
    let made = output(Command::new("python3").arg(war("page.py")).arg(folder.path()))?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("war.html").contains("<svg") && read("qjs-v8.svg").starts_with("<svg"));
    Some((read("war.md"), serde_json::from_str(&read("war.json")).unwrap()))
}

#[test]
fn the_page_tells_losses_and_voids_and_what_is_no_difference() {
    let runs = [
        timed("glibc", 1000.0, 500, "right"),
        timed("glibc-again", 1020.0, 500, "right"),
        timed("prairie", 990.0, 600, "right"),
        timed("mimalloc2", 100.0, 100, "wrong"),
    ];
    let Some((tables, data)) = page(&runs, &[]) else { return };
    // 1 % faster, where the C library is 2 % from itself; and a fifth more memory.
    assert!(tables.contains("prairie even, time: qjs-v8 (-1.0 %, glibc)"), "{tables}");
    assert!(tables.contains("prairie behind, peak memory: qjs-v8 (+20.0 %, glibc)"), "{tables}");
    assert!(tables.contains("2.00 % apart in time"), "{tables}");
    assert!(tables.contains("each run with 40 % of the work"), "{tables}");
    // The wrong one was by far the best, and has no figure anywhere.
    assert!(tables.contains("| qjs-v8 | 990 | 1,000 | void | 1,020 |"), "{tables}");
    assert!(tables.contains("| qjs-v8 | 600 | **500** | void | 500 |"), "{tables}");
    assert!(tables.contains("- qjs-v8 under mimalloc2: wrong: its output differs"), "{tables}");
    assert!(tables.contains("- absent: jsc-v8: jsc: no such program"), "{tables}");
    assert!(tables.contains("- time: jsc-v8: qjs-v8 has no result, so that it was"), "{tables}");
    assert!(tables.contains("Suites of one's own run whole"), "{tables}");
    let rows = data["rows"].as_array().unwrap();
    let void = rows.iter().find(|row| row["allocator"] == "mimalloc2").unwrap();
    assert!(void["ms"].is_null() && void["kb"].is_null() && !void["void"].is_null());
    assert_eq!(data["series"].as_array().unwrap().len(), 3);
}

#[test]
fn without_the_c_library_twice_there_is_no_verdict() {
    let runs = [timed("glibc", 1000.0, 500, "right"), timed("prairie", 1.0, 5, "right")];
    let Some((tables, data)) = page(&runs, &[]) else { return };
    assert!(!tables.contains("prairie ahead"), "{tables}");
    let said = "no verdict, for glibc-again was not measured: peak memory, time";
    assert!(tables.contains(said), "{tables}");
    assert!(tables.contains("| qjs-v8 | 1 | 1,000 |"), "no figure is marked: {tables}");
    assert!(data["standing"].as_array().unwrap().iter().all(|found| found["verdict"] == "untold"));
}

#[test]
fn the_page_tells_how_far_controls_moved() {
    let control = |allocator: &str, ms: f64| {
        let mut run = timed(allocator, ms, 500, "right");
        run["workload"] = json!("node-v8");
        run
    };
    let more = [control("glibc-again", 1500.0), timed("glibc", 1000.0, 500, "right")];
    let runs = [control("glibc", 1000.0), control("prairie", 990.0), control("mimalloc2", 1020.0)];
    let Some((tables, _)) = page(&[&runs[..], &more].concat(), &[]) else { return };
    let said = "The control node-v8 moved by 2.0 % in time (mimalloc2) and by 0.0 % in peak memory";
    assert!(tables.contains(said), "{tables}");
}

#[test]
fn who_does_not_live_under_callgrind_keeps_its_other_figures() {
    let counted = |allocator: &str, outcome: &str| {
        let mut run = timed(allocator, 0.0, 1, outcome);
        run["instructions"] = json!(2_000_000);
        run["in_allocator"] = json!({ "instructions": 500_000, "calls": 1000 });
        run
    };
    let runs = [
        timed("glibc", 1000.0, 500, "right"),
        timed("glibc-again", 1010.0, 500, "right"),
        timed("snmalloc", 900.0, 600, "right"),
    ];
    let counts = [counted("glibc", "right"), counted("snmalloc", "crashed")];
    let Some((tables, _)) = page(&runs, &counts) else { return };
    assert!(tables.contains("| qjs-v8 | 1,000 | **900** | 1,010 |"), "{tables}");
    assert!(tables.contains("| qjs-v8 | 2 | void |"), "{tables}");
    assert!(tables.contains("| qjs-v8 | 25.0 | void |"), "{tables}");
    assert!(tables.contains("- qjs-v8 under snmalloc: crashed: its output differs"), "{tables}");
    // A wrong result is wrong everywhere.
    let counts = [counted("glibc", "right"), counted("snmalloc", "wrong")];
    let Some((tables, _)) = page(&runs, &counts) else { return };
    assert!(tables.contains("| qjs-v8 | 1,000 | void |"), "{tables}");
}

#[test]
fn only_rows_whose_calls_were_counted_are_sampled() {
    let folder = tempfile::tempdir().unwrap();
    let share = || {
        output(Command::new("python3").arg(war("share.py")).arg(folder.path())).map(|made| {
            let said = [made.stdout, made.stderr].concat();
            (made.status.success(), String::from_utf8(said).unwrap())
        })
    };
    let Some((is_right, said)) = share() else { return };
    assert!(!is_right && said.contains("is missing") && !said.contains("Traceback"), "{said}");
    let mut run = timed("glibc", 1.0, 1, "right");
    run["workload"] = json!("jsc-parse");
    let text = json!({
        "workloads": [{ "name": "jsc-parse" }], "allocators": [{ "name": "glibc" }], "runs": [run],
    });
    fs::create_dir(folder.path().join("time")).unwrap();
    fs::write(folder.path().join("time/compare.json"), text.to_string()).unwrap();
    let (is_right, said) = share().unwrap();
    assert!(is_right, "{said}");
    assert!(said.contains("jsc-parse glibc: not sampled: its calls were not counted"), "{said}");
    assert_eq!(fs::read_to_string(folder.path().join("share/share.json")).unwrap(), "[]\n");
}

/// Stand-ins for perf and node; the one of perf ends where the caller's settings reach it.
#[test]
fn samples_are_taken_without_the_callers_settings() {
    let folder = tempfile::tempdir().unwrap();
    let program = |name: &str, text: &str| {
        make_program(&folder.path().join(name), format!("#!/bin/sh\n{text}\n"));
    };
    program("node", "");
    let sample = "echo 'jsc 1234 malloc (/lib/libc.so.6)'";
    let is_right = "[ \"$A$MALLOC_ARENA_MAX\" = 1 ]";
    program("perf", &format!("case $1 in record) {is_right} ;; *) {sample} ;; esac"));
    let mut run = timed("glibc", 1.0, 1, "right");
    run["workload"] = json!("jsc-parse");
    run["counts_calls"] = json!(true);
    let allocator = json!({ "name": "glibc", "path": null, "env": { "A": "1" } });
    let text = json!({
        "workloads": [{ "name": "jsc-parse" }], "allocators": [allocator], "runs": [run],
    });
    fs::create_dir(folder.path().join("time")).unwrap();
    fs::write(folder.path().join("time/compare.json"), text.to_string()).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let mut share = Command::new("python3");
    share.arg(war("share.py")).arg(folder.path()).args(["--samples", "1"]);
    share.env("PATH", path).env("MALLOC_ARENA_MAX", "1");
    let Some(made) = output(&mut share) else { return };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn a_suite_of_ones_own_is_taken_from_its_list() {
    let folder = tempfile::tempdir().unwrap();
    let suite = folder.path().join("Sun Spider");
    fs::create_dir(&suite).unwrap();
    fs::write(suite.join("LIST"), "b\na.js\n").unwrap();
    fs::write(suite.join("a.js"), "").unwrap();
    let make = || {
        let mut command = Command::new("python3");
        output(command.arg(war("own.py")).arg(folder.path()).arg(folder.path().join("out")))
    };
    let Some(refused) = make() else { return };
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("b.js: LIST names it"));
    fs::write(suite.join("b.js"), "").unwrap();
    assert!(make().unwrap().status.success());
    let text = fs::read_to_string(folder.path().join("out/own.toml")).unwrap();
    let (first, second) = (text.find("b.js").unwrap(), text.find("a.js").unwrap());
    assert!(first < second && text.contains("name = \"jsc-sun-spider\""), "{text}");
    assert!(text.contains("same_as = \"qjs-sun-spider\"") && text.contains("timeout_s"), "{text}");
}

/// In a folder with nothing else, so that whatever it begins to do fails.
#[test]
fn a_pass_that_does_not_exist_is_told_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("dev")).unwrap();
    copy_program(script("dev/war"), &folder.path().join("dev/war"));
    for (passes, reason) in [
        ("tiem", "no pass is called 'tiem'"),
        ("time,../..", "no pass is called '../..'"),
        ("", "--passes is empty"),
    ] {
        let mut war = Command::new(folder.path().join("dev/war"));
        let done = war.args(["--passes", passes]).output().unwrap();
        let said = format!("dev/war: {reason}; there are: time instructions share browse\n");
        assert_eq!(String::from_utf8_lossy(&done.stderr), said);
        assert_eq!(done.status.code(), Some(2));
    }
}
