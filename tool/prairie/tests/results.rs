//! Results that are not right never count: wrong, crashed, too slow, not served, not steady.
// SPDX-License-Identifier: MIT

mod support;

use std::time::Instant;

use predicates::str::contains;
use support::{Suite, built_library, is_running, make_program, own_seconds, prairie};

#[test]
fn a_wrong_result_counts_nowhere() {
    let suite = Suite::new(
        "[[workload]]\nname = 'sum'\n\
         command = ['sh', '-c', 'if [ $VARIANT = two ]; then echo 5; else sleep 0.1; echo 4; fi']\n\
         time = 'wall'\n",
    );
    suite.compare().assert().code(1).stdout(contains(
        "sum under again: WRONG in 2 runs: its output differs from that under glibc",
    ));
    assert_eq!(suite.outcomes("again"), ["wrong", "wrong"]);
    assert_eq!(suite.outcomes("glibc"), ["right", "right"]);
    // It was the fastest by far, and is not listed as such.
    let overall = &suite.json()["summary"]["overall"];
    assert_eq!(overall[1]["allocator"], "again");
    assert_eq!(overall[1]["fastest_on"], 0);
    assert_eq!(overall[0]["fastest_on"], 1);
    let tables = std::fs::read_to_string(suite.path("compare.md")).unwrap();
    assert!(tables.contains("| WRONG |"), "{tables}");
}

#[test]
fn an_exit_code_is_a_result() {
    let suite = Suite::new(
        "[[workload]]\nname = 'code'\ncheck = 'exit'\n\
         command = ['sh', '-c', 'echo why >&2; test $VARIANT = one']\n",
    );
    suite.compare().assert().code(1).stdout(contains("WRONG in 2 runs: exit code 1: why"));
    assert_eq!(suite.outcomes("again"), ["wrong", "wrong"]);
    assert_eq!(suite.outcomes("glibc"), ["right", "right"]);
}

#[test]
fn a_check_of_its_own_reads_what_the_run_left() {
    let suite = Suite::new(
        "[[workload]]\nname = 'own'\n\
         command = ['sh', '-c', 'echo $VARIANT > {dir}/file; echo $$']\n\
         check = ['sh', '-c', 'test -s {stdout} && grep -q one {dir}/file || { echo bad >&2; false; }']\n",
    );
    suite
        .compare()
        .assert()
        .code(1)
        .stdout(contains("WRONG in 2 runs: its check: exit code 1: bad"));
    assert_eq!(suite.outcomes("again"), ["wrong", "wrong"]);
    assert_eq!(suite.outcomes("glibc"), ["right", "right"]);
}

#[test]
fn a_crash_is_told_with_its_signal() {
    let suite = Suite::new(
        "[[workload]]\nname = 'crash'\n\
         command = ['sh', '-c', 'test $VARIANT = one || kill -SEGV $$']\n",
    );
    suite.compare().assert().code(1).stdout(contains("CRASHED in 2 runs: killed by SIGSEGV"));
    assert_eq!(suite.outcomes("again"), ["crashed", "crashed"]);
}

#[test]
fn what_does_not_end_is_ended_with_all_its_processes() {
    let (program, leaver) = (own_seconds(31415), own_seconds(27182));
    let script = format!("test $VARIANT = one || {{ setsid sleep {leaver} & sleep {program}; }}");
    let suite = Suite::new(&format!(
        "[[workload]]\nname = 'slow'\ntimeout_s = 1\ncommand = ['sh', '-c', '{script}']\n"
    ));
    let start = Instant::now();
    suite.compare().assert().code(1).stdout(contains("TIMED OUT in 1 run: no end after 1 s"));
    assert!(start.elapsed().as_secs() < 60);
    // The second round is spared.
    assert_eq!(suite.outcomes("again"), ["timed_out"]);
    assert!(!is_running(&program), "the program runs on");
    assert!(!is_running(&leaver), "a process that left the program's group runs on");
}

#[test]
fn an_unsteady_output_is_no_check() {
    let suite = Suite::new("[[workload]]\nname = 'dice'\ncommand = ['sh', '-c', 'echo $$']\n");
    suite
        .compare()
        .assert()
        .code(1)
        .stdout(contains("WRONG in 2 runs: the output differs between runs under glibc itself"));
    // A program that somebody happens to run is compared all the same, with a note.
    prairie()
        .args(["compare", "--allocators", "glibc", "--rounds", "2", "--", "sh", "-c", "echo $$"])
        .assert()
        .success()
        .stdout(contains("differs between runs under glibc itself (a time, an address, chance?)"));
}

#[test]
fn a_library_whose_name_the_loader_would_split_takes_part() {
    let Some(library) = built_library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a b:c;d$e.so");
    std::fs::copy(library, &odd).unwrap();
    let with = format!("mine={}", odd.display());
    let mut command = prairie();
    command.args(["compare", "--with", &with, "--allocators", "glibc,mine", "--rounds", "1"]);
    command.args(["--", "true"]).assert().success().stdout(contains("mine"));
}

#[test]
fn a_library_that_does_not_answer_malloc_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    // A library that any program has, and that is no allocator.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let other = maps.lines().find(|line| line.contains("libgcc_s")).unwrap();
    let other = &other[other.find('/').unwrap()..];
    let library = folder.path().join("liballocator.so");
    std::fs::copy(other, &library).unwrap();
    prairie()
        .args(["compare", "--extra", &format!("mine={}", library.display()), "--", "true"])
        .assert()
        .code(125)
        .stderr(contains("--with mine: malloc is answered by"));
    prairie()
        .args(["run", "--library", library.to_str().unwrap(), "--", "true"])
        .assert()
        .code(125)
        .stderr(contains("malloc is answered by"));
}

#[test]
fn a_missing_figure_is_a_wrong_result() {
    let suite = Suite::new(
        "[[workload]]\nname = 'rate'\nfigure = 'rate'\nhigher_is_better = true\n\
         command = ['sh', '-c', 'test $VARIANT = one || echo rate 4 k/s > $PRAIRIE_FIGURES']\n",
    );
    suite.compare().assert().code(1).stdout(contains("it did not report the figure 'rate'"));
    assert_eq!(suite.outcomes("glibc"), ["wrong", "wrong"]);
    assert_eq!(suite.outcomes("again"), ["right", "right"]);
}

#[test]
fn a_figure_of_nothing_is_a_wrong_result() {
    let suite = Suite::new(
        "[[workload]]\nname = 'held'\nfigure = 'held'\n\
         command = ['sh', '-c', 'test $VARIANT = one || n=4; echo held ${n:-0} B > $PRAIRIE_FIGURES']\n",
    );
    suite.compare().assert().code(1).stdout(contains("its figure is no cost: 0 or below"));
    assert_eq!(suite.outcomes("glibc"), ["wrong", "wrong"]);
    assert_eq!(suite.outcomes("again"), ["right", "right"]);
}

/// It runs long enough to be looked at on a busy machine, but for glibc, where nobody needs to.
#[test]
fn a_run_that_drops_the_library_does_not_count() {
    let Some(library) = built_library() else { return };
    let script = "test -z $LD_PRELOAD || exec env -u LD_PRELOAD sleep 3";
    let suite =
        Suite::new(&format!("[[workload]]\nname = 'drop'\ncommand = ['sh', '-c', '{script}']\n"));
    suite
        .compare()
        .args(["--allocators", "prairie", "--rounds", "1", "--library"])
        .arg(library)
        .assert()
        .code(1)
        .stdout(contains("drop under prairie: NOT SERVED in 1 run"));
    assert_eq!(suite.outcomes("glibc"), ["right"]);
    assert_eq!(suite.outcomes("prairie"), ["not_served"]);
}

/// The outcome of one run under prairie, and who was seen to serve its program; None: prairie has
/// not been built.
fn proof_of(command: &str) -> Option<(String, String)> {
    let library = built_library()?;
    let suite = Suite::new(&format!("[[workload]]\nname = 'it'\ncommand = {command}\n"));
    suite
        .compare()
        .args(["--allocators", "prairie", "--rounds", "1", "--library"])
        .arg(library)
        .assert()
        .stdout(contains("it"));
    let run = suite.runs().into_iter().find(|run| run["allocator"] == "prairie").unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    Some((text(&run["outcome"]), text(&run["seen"]["program"])))
}

/// A script that takes longer than a process is looked at, and becomes the program only then.
#[test]
fn a_slow_launcher_is_not_the_program() {
    // Long enough to be looked at on a busy machine, but for glibc, where nobody needs to.
    let launcher = |program: &str| {
        format!("['sh', '-c', 'test -z $LD_PRELOAD && exit; sleep 0.4; {program}']")
    };
    let Some(proof) = proof_of(&launcher("exec sleep 3")) else { return };
    assert_eq!(proof, ("right".into(), "served".into()));
    let proof = proof_of(&launcher("unset LD_PRELOAD; exec sleep 3"));
    assert_eq!(proof.unwrap(), ("not_served".into(), "not_served".into()));
}

/// Too short to be looked at: nothing is proved against it.
#[test]
fn a_very_short_program_counts() {
    let Some((outcome, program)) = proof_of("['true']") else { return };
    assert_eq!(outcome, "right");
    assert_ne!(program, "not_served");
}

/// The loader, which would open the library, has no part in a static program, however short.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_static_program_is_not_served() {
    const ENTRY: u64 = 0x400078;
    let mut program = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
    let word = |program: &mut Vec<u8>, value: u64| program.extend(value.to_le_bytes());
    [ENTRY, 64, 0].into_iter().for_each(|value| word(&mut program, value));
    program.extend(b"\0\0\0\0\x40\0\x38\0\x01\0\0\0\0\0\0\0");
    // One segment, all of the file, to be read and executed.
    program.extend(b"\x01\0\0\0\x05\0\0\0");
    [0, 0x400000, 0x400000, 0x84, 0x84, 0x1000].into_iter().for_each(|v| word(&mut program, v));
    // mov $60, %eax; xor %edi, %edi; syscall
    program.extend(b"\xb8\x3c\0\0\0\x31\xff\x0f\x05\0\0\0");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("static");
    make_program(&path, program);
    let Some(proof) = proof_of(&format!("['{}']", path.display())) else { return };
    assert_eq!(proof, ("not_served".into(), "not_served".into()));
}
