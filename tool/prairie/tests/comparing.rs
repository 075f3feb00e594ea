//! `prairie compare` as a command: order, files, lists, interruption.
// SPDX-License-Identifier: MIT

mod support;

use std::process::{Command, Stdio};

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use support::{Suite, becomes, compiled, own_seconds, prairie, unshared};

const TWO: &str = "[[workload]]\nname = 'first'\ngroup = 'easy'\nwhat = 'nothing'\ncommand = ['true']\n\
                   [[workload]]\nname = 'second'\ncommand = ['sh', '-c', 'echo $0', '{scale}']\n";

fn order(suite: &Suite, seed: &str) -> Vec<String> {
    suite.compare().args(["--rounds", "6", "--seed", seed]).assert().success();
    let name = |run: &serde_json::Value| format!("{} {}", run["workload"], run["allocator"]);
    suite.runs().iter().map(name).collect()
}

#[test]
fn the_seed_decides_the_order_and_is_printed() {
    let suite = Suite::new(TWO);
    let first = order(&suite, "7");
    assert_eq!(first.len(), 24);
    assert_eq!(first, order(&suite, "7"));
    assert_ne!(first, order(&suite, "8"));
    suite
        .compare()
        .args(["--seed", "4711"])
        .assert()
        .stdout(contains("shuffled with seed 4711"))
        .stderr(contains("8 runs, seed 4711"));
}

#[test]
fn tables_data_and_picture_are_written() {
    let suite = Suite::new(TWO);
    suite.compare().args(["--rounds", "5"]).assert().success().stdout(contains("Summary"));
    let tables = std::fs::read_to_string(suite.path("compare.md")).unwrap();
    for title in ["# Allocators compared: test", "## Time", "## Peak resident memory", "| second |"]
    {
        assert!(tables.contains(title), "{title} in {tables}");
    }
    let picture = std::fs::read_to_string(suite.path("compare.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("geometric mean"));
    let json = suite.json();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["runs"].as_array().unwrap().len(), 20);
    for key in ["kernel", "cpu", "cores", "transparent_huge_pages"] {
        assert!(!json["machine"][key].is_null(), "{key}");
    }
    assert_eq!(json["workloads"][1]["command"][3], "{scale}");
}

#[test]
fn memory_peers_are_not_called_all_others() {
    let suite = Suite::new(TWO);
    let mut command = suite.compare();
    command
        .args(["--rounds", "5"])
        .assert()
        .stdout(contains("memory: ahead of all others on").and(contains("memory peer").not()));
    command.args(["--memory-peers", "nobody,again"]).assert().success().stdout(
        contains("time: ahead of all others on")
            .and(contains("memory: ahead of all memory peers on"))
            .and(contains("memory × time: ahead of all memory peers on"))
            .and(contains("leanest memory peer"))
            .and(contains("Leads in memory are over these only: again\n")),
    );
}

/// What dev/bench hands to `prairie compare`, in a project whose peers are these.
fn handed_by_bench(peers: &[&str], arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    support::copy_program(support::script("dev/bench"), &place("dev/bench"));
    for name in ["dev/tool", "dev/setup", "bench/build.sh", "make"] {
        support::make_program(&place(name), "#!/bin/sh\n");
    }
    support::make_program(&place("build/tool/release/prairie"), "#!/bin/sh\necho \"$@\"\n");
    std::fs::write(place("bench/suites/one.toml"), "").unwrap();
    let peers: Vec<_> = peers.iter().map(|name| serde_json::json!({ "name": name })).collect();
    let peers = serde_json::to_string_pretty(&peers).unwrap();
    std::fs::write(place("build/peers/peers.json"), peers).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let mut bench = Command::new(folder.path().join("dev/bench"));
    let output = bench.args(arguments).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn dev_bench_says_only_what_its_caller_does_not() {
    let built = ["tcmalloc", "jemalloc", "rpmalloc"];
    let (suite, peers) = ("--suite bench/suites/one.toml", "--memory-peers jemalloc,rpmalloc");
    let out = "--out build/bench/results";
    for (arguments, handed) in [
        ("--seed 1", format!("compare {suite} {peers} {out} --seed 1")),
        ("--allocators glibc,prairie", format!("compare {suite} {out} --allocators glibc,prairie")),
        ("--allocators=glibc", format!("compare {suite} {out} --allocators=glibc")),
        ("--memory-peers glibc", format!("compare {suite} {out} --memory-peers glibc")),
        ("--out X", format!("compare {suite} {peers} --out X")),
        ("--suite a.toml", format!("compare {peers} {out} --suite a.toml")),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        assert_eq!(handed_by_bench(&built, &arguments), handed);
    }
    assert_eq!(handed_by_bench(&["tcmalloc"], &[]), format!("compare {suite} {out}"));
}

/// None, and said: there is no python3.
fn python(script: &str) -> Option<Command> {
    let has_python = Command::new("python3").arg("-V").output().is_ok();
    if !has_python {
        eprintln!("skipped: python3 is missing");
        return None;
    }
    let mut command = Command::new("python3");
    command.arg(support::script(script));
    Some(command)
}

#[test]
fn patterns_know_allocators_that_are_given_besides() {
    let Some(mut compare) = python("bench/micro/compare.py") else { return };
    let folder = tempfile::tempdir().unwrap();
    let micro = folder.path().join("micro");
    support::make_program(&micro, "#!/bin/sh\necho pair what it stresses\n");
    compare.arg("--micro").arg(&micro).args(["--extra", "mine=/bin/true"]);
    let output = compare.args(["--allocators", "mine,nobody"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("compare.py: no such allocator: nobody; there are: glibc "), "{said}");
    assert!(said.ends_with(" mine\n"), "{said}");
}

/// The stand-in for the workloads fails where the caller's settings reach it.
#[test]
fn a_day_is_drawn_without_the_callers_settings() {
    let Some(mut day) = python("bench/workloads/day.py") else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = "#!/bin/sh\n[ -z \"$MALLOC_ARENA_MAX\" ] && echo 0 1024 2048 >$7\n";
    support::make_program(&folder.path().join("workloads"), program);
    day.arg(folder.path().join("day.svg")).arg("c=").env("MALLOC_ARENA_MAX", "1");
    let output = day.env("WORKLOADS", folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(folder.path().join("day.svg").is_file());
}

#[test]
fn suites_have_names_of_their_own() {
    let (one, other) = (Suite::new(TWO), Suite::new(TWO));
    let mut command = one.compare();
    command.arg("--suite").arg(other.path("suite.toml"));
    command.assert().code(125).stderr(contains("two suites are called 'test'"));
}

#[test]
fn a_document_that_cannot_be_written_is_told_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let compare = |option: &str, path: &str| {
        let mut command = prairie();
        command.current_dir(folder.path()).args(["compare", "--allocators", "glibc"]);
        command.args(["--rounds", "1", "--json", "new/r.json", option, path]);
        command.args(["--", "touch", "made"]).assert()
    };
    for option in ["--html", "--markdown", "--svg", "--out"] {
        compare(option, "file/below/r").code(125).stderr(contains("file: not a folder"));
    }
    assert!(!folder.path().join("made").exists());
    compare("--html", "r.html").success();
    assert!(folder.path().join("made").exists());
}

/// What the program itself takes away cannot be told before it runs.
#[test]
fn a_document_that_fails_costs_no_other_and_no_tables() {
    let folder = tempfile::tempdir().unwrap();
    prairie()
        .current_dir(folder.path())
        .args(["compare", "--allocators", "glibc", "--rounds", "2", "--html", "r.html"])
        .args(["--json", "r.json", "--markdown", "r.md", "--", "mkdir", "-p", "r.html"])
        .assert()
        .code(125)
        .stdout(contains("Allocators compared on: mkdir").and(contains(" glibc ")))
        .stderr(contains("r.html: Is a directory").and(contains("wrote r.json")));
    assert!(folder.path().join("r.json").is_file() && folder.path().join("r.md").is_file());
}

#[test]
fn quick_means_fewer_rounds_and_less_work() {
    let suite = Suite::new(TWO);
    suite.compare().arg("--quick").assert().success();
    let json = suite.json();
    assert_eq!(json["workloads"][1]["rounds"], 3);
    assert_eq!(json["workloads"][1]["scale"], 25);
    assert_eq!(json["runs"].as_array().unwrap().len(), 12);
}

#[test]
fn the_scale_goes_before_that_of_quick() {
    let suite = Suite::new(TWO);
    suite.compare().args(["--quick", "--scale", "7"]).assert().success();
    let json = suite.json();
    assert_eq!(json["workloads"][1]["rounds"], 3);
    assert_eq!(json["workloads"][1]["scale"], 7);
    suite.compare().args(["--scale", "0"]).assert().failure().stderr(contains("--scale"));
    prairie()
        .args(["compare", "--scale", "7", "--", "true"])
        .assert()
        .failure()
        .stderr(contains("--suite"));
}

#[test]
fn workloads_are_chosen_by_pattern_and_group() {
    let suite = Suite::new(TWO);
    for (patterns, expected) in [("sec*", "second"), ("easy", "first")] {
        suite.compare().args(["--workloads", patterns]).assert().success();
        assert!(suite.runs().iter().all(|run| run["workload"] == expected));
    }
    suite
        .compare()
        .args(["--workloads", "third"])
        .assert()
        .code(125)
        .stderr(contains("--workloads matches nothing").and(contains("first, second")));
}

#[test]
fn what_is_absent_is_listed_with_its_reason() {
    let suite = Suite::new(&format!(
        "{TWO}[[workload]]\nname = 'third'\nneeds = ['no-such-program']\ncommand = ['true']\n\
         [[workload]]\nname = 'fourth'\nsetup = ['sh', '-c', 'echo full >&2; exit 4']\ncommand = ['true']\n"
    ));
    let absent = "third: absent: no-such-program: no such program in PATH";
    suite.compare().arg("--list").assert().success().stdout(
        contains(absent).and(contains("nothing")).and(contains("glibc")).and(contains("again")),
    );
    suite.compare().assert().success().stdout(
        contains("third: no-such-program: no such program in PATH")
            .and(contains("fourth: its setup failed: exit code 4: full")),
    );
    let json = suite.json();
    assert_eq!(json["workloads"].as_array().unwrap().len(), 2);
    assert_eq!(json["absent_workloads"].as_array().unwrap().len(), 2);
}

#[test]
fn a_single_program_gets_a_row_for_each_allocator() {
    prairie()
        .args(["compare", "--allocators", "glibc", "--rounds", "2", "--", "echo", "hello"])
        .assert()
        .success()
        .stdout(contains("Allocators compared on: echo hello").and(contains(" glibc ")))
        .stderr(contains("\nhello").not());
}

/// `{dir}` and its like are words of suites.
#[test]
fn the_words_of_a_single_program_are_its_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("{root}"), "").unwrap();
    prairie()
        .current_dir(folder.path())
        .args(["compare", "--allocators", "glibc", "--rounds", "1", "--check", "exit"])
        .args(["--stdin", "{root}", "--", "sh", "-c"])
        .args(["test \"$(echo $0 | tr a-z A-Z)\" = '{ROOT}{SCALE}{DIR}{SHARED}{STDOUT}'"])
        .arg("{root}{scale}{dir}{shared}{stdout}")
        .assert()
        .success();
}

/// Each run reads it anew, and a pipe is empty by then.
#[test]
fn standard_input_that_is_a_pipe_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
    prairie()
        .current_dir(folder.path())
        .timeout(std::time::Duration::from_secs(30))
        .args(["compare", "--allocators", "glibc", "--rounds", "1", "--stdin", "pipe", "--", "cat"])
        .assert()
        .code(125)
        .stderr(contains("pipe: it is a pipe, and each run reads it anew"));
}

/// Processes are ended by numbers that /proc tells.
#[test]
fn a_proc_with_other_numbers_is_refused() {
    for words in [
        &["compare", "--allocators", "glibc", "--", "true"][..],
        &["stats", "1"],
        &["top", "--once"],
        &["exporter", "--all", "--once"],
    ] {
        let Some(mut command) = unshared() else { return };
        let output = command.args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains("/proc is that of another PID namespace"), "{said}");
    }
}

#[test]
fn the_next_command_runs_the_same() {
    prairie()
        .args(["compare", "--allocators", "glibc", "--rounds", "2", "--seed", "5", "--"])
        .args(["sh", "-c", "echo 'a  b'"])
        .assert()
        .success()
        .stderr(contains(
            r"prairie compare -o report.html --allocators glibc --rounds 2 --seed 5 -- sh -c 'echo '\''a  b'\'''",
        ));
}

#[test]
fn settings_of_other_allocators_are_left_out_and_told() {
    prairie()
        .env("MALLOC_ARENA_MAX", "1")
        .args(["compare", "--allocators", "glibc", "--rounds", "1", "--"])
        .args(["sh", "-c", "test -z \"$MALLOC_ARENA_MAX\""])
        .args(["extra"])
        .assert()
        .success()
        .stdout(contains("Not passed on to the programs: MALLOC_ARENA_MAX"));
}

/// As Google's tcmalloc, which is another one without them.
#[test]
fn settings_that_a_peer_needs_reach_its_programs() {
    let Some(library) = support::built_library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("src/prairie.c", "");
    let needed = "glibc.malloc.check=0";
    let peer = format!(
        r#"[{{"name":"peer","path":"{}","env":{{"GLIBC_TUNABLES":"{needed}"}}}}]"#,
        library.display()
    );
    put("build/peers/peers.json", &peer);
    prairie()
        .current_dir(folder.path())
        .env("GLIBC_TUNABLES", "glibc.malloc.perturb=1")
        .args(["compare", "--allocators", "peer", "--rounds", "1", "--check", "exit", "--"])
        .args(["sh", "-c", &format!("test \"$GLIBC_TUNABLES\" = {needed}")])
        .assert()
        .success()
        .stdout(contains(format!("GLIBC_TUNABLES={needed}")));
}

#[test]
fn an_interrupt_ends_the_program_too_and_leaves_nothing() {
    for (number, signal) in (14142..).zip(["-INT", "-QUIT"]) {
        let seconds = own_seconds(number);
        let folder = tempfile::tempdir().unwrap();
        let mut child = support::tool()
            .args(["compare", "--quiet", "--allocators", "glibc", "--", "sleep", &seconds])
            .env("TMPDIR", folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(becomes(|| is_running_program(&seconds)), "it never started");
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert!(!is_running_program(&seconds), "the program runs on");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// Copies of libraries lie there while each is proved.
#[test]
fn an_interrupt_before_the_first_run_leaves_nothing() {
    let (made, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let slow = "#include <unistd.h>\n__attribute__((constructor)) void begin(void) { sleep(1); }\n";
    let made = compiled(made.path().join("slow.so"), slow, &["-shared", "-fPIC"]);
    let Some(library) = made else { return };
    let mut command = support::tool();
    command.args(["compare", "--allocators", "glibc", "--with"]);
    command.arg(format!("slow={}", library.display())).args(["--", "true"]);
    command.env("TMPDIR", folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let is_copied = |entry: std::fs::DirEntry| entry.path().join("libraries/slow").is_dir();
    let proving = || std::fs::read_dir(folder.path()).unwrap().flatten().any(is_copied);
    assert!(becomes(proving), "it was never proved");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*said), (Some(130), "prairie: interrupted\n"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_interrupt_costs_only_the_round_that_it_comes_in() {
    let seconds = own_seconds(17320);
    // The run after the first whole round and one run of the next never ends.
    let script = format!("echo >>runs; [ $(wc -l <runs) -lt 6 ] || exec sleep {seconds}");
    let suite = Suite::new(&format!(
        "[[workload]]\nname = 'ends'\ncheck = 'exit'\ncommand = ['true']\n\
         [[workload]]\nname = 'stays'\ncheck = 'exit'\ncommand = ['sh', '-c', '{script}']\n"
    ));
    let mut command = support::tool();
    command.args(["compare", "--allocators", "glibc,again", "--rounds", "5", "--warmup", "0"]);
    command.arg("--suite").arg(suite.path("suite.toml")).arg("--out").arg(suite.folder.path());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(becomes(|| is_running_program(&seconds)), "it never started");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.ends_with("prairie: interrupted\n"), "{said}");
    let tables = String::from_utf8_lossy(&output.stdout);
    assert!(tables.contains("Not all rounds were run: interrupted"), "{tables}");
    let rounds = suite.runs().into_iter().filter(|run| run["workload"] == "stays");
    let rounds: Vec<u64> = rounds.map(|run| run["round"].as_u64().unwrap()).collect();
    assert_eq!(rounds, [1, 1, 2, 2]);
}

#[test]
fn a_round_that_fails_costs_only_itself() {
    let suite = Suite::new(
        "[[workload]]\nname = 'goes'\ncheck = 'exit'\n\
         command = ['./program']\n\
         [[workload]]\nname = 'stays'\ncheck = 'exit'\ncommand = ['true']\n",
    );
    let script = "#!/bin/sh\necho >>runs\n[ $(wc -l <runs) -lt 3 ] || rm $0\n";
    support::make_program(&suite.path("program"), script);
    suite
        .compare()
        .args(["--rounds", "5"])
        .assert()
        .code(127)
        .stderr(contains("./program: No such"));
    let of_goer = suite.runs().into_iter().filter(|run| run["workload"] == "goes");
    assert_eq!(of_goer.count(), 2);
}

/// The tool has the word among its arguments as well; the program is `sleep`.
fn is_running_program(seconds: &str) -> bool {
    let program = format!("sleep\0{seconds}\0");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let commands = processes.filter_map(|p| std::fs::read(p.path().join("cmdline")).ok());
    commands.into_iter().any(|command| command.starts_with(program.as_bytes()))
}
