//! Figures of programs whose use of time and memory is known.
// SPDX-License-Identifier: MIT

mod support;

use serde_json::Value;
use support::{Suite, is_running, own_seconds};

const MIB: f64 = 1024.0 * 1024.0;

/// The single run of a workload under the C library's malloc.
fn measured(command: &[&str], keys: &str) -> Value {
    let words: Vec<String> = command.iter().map(|word| format!("{word:?}")).collect();
    let workload = format!("[[workload]]\nname = 'w'\ncommand = [{}]\n{keys}\n", words.join(","));
    let suite = Suite::new(&workload);
    suite.compare().args(["--allocators", "glibc", "--rounds", "1"]).assert().success();
    suite.runs().remove(0)
}

fn number(run: &Value, name: &str) -> f64 {
    run[name].as_f64().unwrap_or_else(|| panic!("{name} in {run}"))
}

#[test]
fn the_memory_of_all_processes_is_added() {
    let script = "
import os, time
(ready, tell), (wait, end) = os.pipe(), os.pipe()
for _ in range(3):
    if os.fork() == 0:
        os.close(end)
        block = bytearray(40 << 20)
        block[::4096] = b'x' * len(block[::4096])
        os.write(tell, b'x')
        os.close(tell)
        os.read(wait, 1)
        os._exit(0)
os.close(tell)
for _ in range(3):
    os.read(ready, 1)
time.sleep(3)
os.close(end)
for _ in range(3):
    os.wait()
";
    let run = measured(&["/usr/bin/env", "python3", "-c", script], "");
    let peak = number(&run, "peak_bytes") / MIB;
    assert!((120.0..220.0).contains(&peak), "peak {peak} MiB");
    assert!(number(&run, "processes_at_once") >= 4.0);
    // At least 120 MiB for 3 s, or half of that where looks are late; at most the peak all the time.
    let area = number(&run, "byte_seconds") / MIB;
    let wall = number(&run, "wall_s");
    assert!(area > 120.0 * 1.5, "{area} MiB s");
    assert!(area < peak * wall, "{area} MiB s in {wall} s");
}

#[test]
fn a_peak_between_two_looks_is_seen() {
    let script = "import mmap\nm = mmap.mmap(-1, 64 << 20)\nm.write(b'x' * (64 << 20))\nm.close()";
    let run = measured(&["/usr/bin/env", "python3", "-c", script], "");
    let peak = number(&run, "peak_bytes") / MIB;
    assert!((128.0..170.0).contains(&peak), "peak {peak} MiB");
}

#[test]
fn a_small_program_is_not_charged_for_the_tool() {
    let run = measured(&["true"], "");
    let peak = number(&run, "peak_bytes") / MIB;
    assert!((0.3..2.5).contains(&peak), "peak {peak} MiB");
}

#[test]
fn time_of_children_counts_also_of_orphans() {
    let burn = "import time\nwhile time.process_time() < 0.2: pass";
    let waited = format!("python3 -c '{burn}'");
    let run = measured(&["sh", "-c", &waited], "");
    let cpu = number(&run, "user_s") + number(&run, "system_s");
    assert!((0.2..2.0).contains(&cpu), "cpu {cpu} s");

    // Its parent is gone when it ends; the program itself waits for a file that it makes.
    let orphan = format!(
        "(python3 -c '{burn}'; touch {{dir}}/done) & while [ ! -e {{dir}}/done ]; do sleep 0.02; done"
    );
    let run = measured(&["sh", "-c", &format!("sh -c \"({orphan})\"")], "");
    let cpu = number(&run, "user_s") + number(&run, "system_s");
    assert!((0.2..2.0).contains(&cpu), "cpu {cpu} s");
}

#[test]
fn waiting_is_wall_time_and_no_cpu_time() {
    let run = measured(&["sleep", "0.25"], "");
    assert!((0.25..60.0).contains(&number(&run, "wall_s")), "{run}");
    assert!(number(&run, "user_s") + number(&run, "system_s") < 0.1, "{run}");
}

#[test]
fn page_faults_are_counted() {
    let script = "b = bytearray(16 << 20)\nb[::4096] = b'x' * 4096";
    let run = measured(&["/usr/bin/env", "python3", "-c", script], "");
    let few = measured(&["true"], "");
    assert!(number(&run, "minor_faults") > number(&few, "minor_faults") + 500.0);
}

#[test]
fn a_process_left_behind_is_found_and_ended() {
    let seconds = own_seconds(16180);
    let run = measured(&["sh", "-c", &format!("setsid sleep {seconds} & sleep 0.1")], "");
    assert_eq!(number(&run, "left_behind"), 1.0);
    assert!(!is_running(&seconds));
}

#[test]
fn setup_stdin_and_variables_reach_the_program() {
    let suite = Suite::new(
        "[[workload]]\nname = 'all'\n\
         setup = ['sh', '-c', 'echo $SCALE words > {shared}/in']\n\
         stdin = '{shared}/in'\nenv = { SCALE = '{scale}' }\n\
         command = ['sh', '-c', 'read line; test \"$line\" = \"100 words\" && pwd && ls {dir}']\n\
         check = ['sh', '-c', 'test $(cat {stdout}) = {root}']\n",
    );
    suite.compare().assert().success();
    assert_eq!(suite.runs().len(), 4);
}

#[test]
fn a_figure_replaces_the_clock() {
    let suite = Suite::new(
        "[[workload]]\nname = 'rate'\nfigure = 'rate'\nhigher_is_better = true\n\
         command = ['sh', '-c', 'test $VARIANT = one && echo rate 4 k/s > $PRAIRIE_FIGURES || echo rate 2 k/s > $PRAIRIE_FIGURES']\n",
    );
    suite.compare().args(["--rounds", "5"]).assert().success();
    let json = suite.json();
    let again =
        json["cells"].as_array().unwrap().iter().find(|c| c["allocator"] == "again").unwrap();
    assert_eq!(again["time"]["by_subject"]["value"], 2.0, "half the rate is twice the cost");
}

#[test]
fn instructions_are_counted_where_valgrind_is() {
    if std::process::Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("skipped: no valgrind");
        return;
    }
    let suite = Suite::new("[[workload]]\nname = 'w'\ncommand = ['echo', 'hello']\n");
    suite.compare().arg("--instructions").assert().success();
    let runs = suite.runs();
    assert_eq!(runs.len(), 2);
    let counts: Vec<f64> = runs.iter().map(|run| number(run, "instructions")).collect();
    assert!(counts.iter().all(|count| (20_000.0..20e6).contains(count)), "{counts:?}");
    assert!((counts[0] / counts[1] - 1.0).abs() < 0.02, "counts are exact: {counts:?}");
}
