//! `prairie run`: what passes through, and what is refused before anything runs.
// SPDX-License-Identifier: MIT

mod support;

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, Child, ChildStdout, Stdio};
use std::time::Duration;

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, is_empty};
use support::{becomes, built_library, copy_program, prairie};

/// None where prairie has not been built.
fn run() -> Option<Command> {
    let mut command = prairie();
    command.args(["run", "--library"]).arg(built_library()?);
    Some(command)
}

#[test]
fn exit_codes_and_signals_pass_through() {
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 137)] {
        let Some(mut command) = run() else { return };
        command.args(["--", "sh", "-c", script]).assert().code(code);
    }
}

/// A process that sends a signal may mean the tool only, as `kill` does; the terminal means all.
#[test]
fn signals_to_the_tool_alone_reach_the_program() {
    let Some(library) = built_library() else { return };
    for (name, signal) in [
        ("INT", libc::SIGINT),
        ("QUIT", libc::SIGQUIT),
        ("TERM", libc::SIGTERM),
        ("HUP", libc::SIGHUP),
        ("USR1", libc::SIGUSR1),
        ("USR2", libc::SIGUSR2),
    ] {
        let script = format!("trap 'exit 7' {name}; echo ready; sleep 20 & wait");
        let mut tool = started(&library, &["sh", "-c", &script], libc::SIG_DFL);
        let mut said = String::new();
        BufReader::new(tool.stdout.take().unwrap()).read_line(&mut said).unwrap();
        // SAFETY: two numbers; the tool has not been waited for.
        unsafe { libc::kill(tool.id() as i32, signal) };
        assert_eq!(tool.wait().unwrap().code(), Some(7), "{name}");
    }
}

/// Counts SIGTERM and SIGINT until there is a line of input.
const COUNTING: &str = "import os, signal, sys
counts = {signal.SIGTERM: 0, signal.SIGINT: 0}
def count(number, _):
    counts[number] += 1
for number in counts:
    signal.signal(number, count)
if sys.argv[1:] == ['alone']:
    os.setpgid(0, 0)
print(os.getpid(), flush=True)
sys.stdin.readline()
print(*counts.values())
";

/// The tool in a process group of its own, with a program that counts; what it says, and its process.
fn counting(library: &Path, words: &[&str]) -> (Child, BufReader<ChildStdout>, i32) {
    let words = [&["python3", "-c", COUNTING], words].concat();
    let mut command = to_start(library, &words, libc::SIG_DFL);
    let mut tool = command.process_group(0).stdin(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(tool.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    (tool, said, line.trim().parse().unwrap())
}

/// How often they came.
fn counted(mut tool: Child, mut said: BufReader<ChildStdout>) -> String {
    // What is to be passed on is passed on by then.
    std::thread::sleep(Duration::from_millis(300));
    tool.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(tool.wait().unwrap().code(), Some(0));
    line
}

fn send(to: i32, signal: i32) {
    // SAFETY: two numbers; the process, or the leader of the group, has not been waited for.
    assert_eq!(unsafe { libc::kill(to, signal) }, 0);
}

#[test]
fn a_signal_to_the_whole_group_comes_once() {
    let Some(library) = built_library() else { return };
    let (tool, said, _) = counting(&library, &[]);
    let group = -(tool.id() as i32);
    // The second one while the first one waits to be passed on.
    for signal in [libc::SIGTERM, libc::SIGINT] {
        send(group, signal);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(counted(tool, said), "1 1\n");
}

#[test]
fn a_signal_to_a_group_that_the_program_has_left_is_passed_on() {
    let Some(library) = built_library() else { return };
    let (tool, said, _) = counting(&library, &["alone"]);
    send(-(tool.id() as i32), libc::SIGTERM);
    assert_eq!(counted(tool, said), "1 0\n");
}

/// As where a service is stopped: all processes of its control group, one after the other.
#[test]
fn a_signal_to_each_process_comes_once() {
    let Some(library) = built_library() else { return };
    let (tool, said, program) = counting(&library, &[]);
    let pid = tool.id() as i32;
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let all = children.split_whitespace().map(|child| child.parse::<i32>().unwrap());
    let launcher = all.into_iter().find(|child| *child != program).unwrap();
    for to in [pid, launcher, program] {
        send(to, libc::SIGTERM);
    }
    // Who means the tool by its name or its arguments does not mean the launcher.
    for (file, name) in [("comm", "launcher\n"), ("cmdline", "launcher\0")] {
        let said = fs::read_to_string(format!("/proc/{launcher}/{file}")).unwrap();
        assert!(said.starts_with(name) && !said.contains("prairie"), "{said}");
    }
    assert_eq!(counted(tool, said), "1 0\n");
}

#[test]
fn a_signal_that_the_tool_has_got_alone_is_passed_on_after_one_to_all() {
    let Some(library) = built_library() else { return };
    let (tool, said, _) = counting(&library, &[]);
    let pid = tool.id() as i32;
    send(-pid, libc::SIGINT);
    std::thread::sleep(Duration::from_millis(200));
    send(pid, libc::SIGINT);
    assert_eq!(counted(tool, said), "0 2\n");
}

/// Who starts the tool may ignore the ends of children, or broken pipes, as services have them; the program
/// inherits that, as without the tool.
#[test]
fn signals_that_were_ignored_are_so_in_the_program() {
    let Some(library) = built_library() else { return };
    let words = ["grep", "SigIgn:", "/proc/self/status"];
    for (action, is_ignored) in [(libc::SIG_IGN, true), (libc::SIG_DFL, false)] {
        let output = started(&library, &words, action).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let text = String::from_utf8(output.stdout).unwrap();
        let mask = u64::from_str_radix(text.split_whitespace().last().unwrap(), 16).unwrap();
        for signal in [libc::SIGCHLD, libc::SIGPIPE] {
            assert_eq!(mask >> (signal - 1) & 1 == 1, is_ignored, "{signal}: {text}");
        }
    }
}

/// The tool with its terminal signals as in a foreground, and with this action for ends of children and
/// broken pipes.
fn started(library: &Path, words: &[&str], action: libc::sighandler_t) -> Child {
    to_start(library, words, action).spawn().unwrap()
}

fn to_start(library: &Path, words: &[&str], action: libc::sighandler_t) -> process::Command {
    let mut command = support::tool();
    command.args(["run", "--quiet", "--library"]).arg(library).arg("--").args(words);
    command.current_dir("/").stdout(Stdio::piped());
    let set_signals = move || {
        // SAFETY: numbers only, between fork and exec.
        unsafe {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            libc::signal(libc::SIGQUIT, libc::SIG_DFL);
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
            libc::signal(libc::SIGCHLD, action);
            libc::signal(libc::SIGPIPE, action);
        }
        Ok(())
    };
    // SAFETY: it makes system calls only.
    unsafe { command.pre_exec(set_signals) };
    command
}

#[test]
fn input_and_output_pass_through() {
    let Some(mut command) = run() else { return };
    command
        .args(["--quiet", "--", "sh", "-c", "cat; echo error >&2"])
        .write_stdin("some input\n")
        .assert()
        .success()
        .stdout("some input\n")
        .stderr("error\n");
}

#[test]
fn streams_that_were_closed_are_so_in_the_program() {
    let Some(library) = built_library() else { return };
    let list = "ls /proc/self/fd >&3";
    let script = format!(
        "exec 3>&1; '{}' run -q --library {} -- sh -c '{list}' <&- >&- 2>&-",
        env!("CARGO_BIN_EXE_prairie"),
        library.display()
    );
    let output = process::Command::new("sh").args(["-c", &script]).output().unwrap();
    let open = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && open.lines().any(|fd| fd == "3"), "{open}");
    // The folder itself is open in the first place that is free.
    let standard = open.lines().filter(|fd| ["0", "1", "2"].contains(fd)).count();
    assert_eq!(standard, 2, "{open}");
}

#[test]
fn the_summary_tells_who_served() {
    let Some(mut command) = run() else { return };
    command.args(["--", "sleep", "3"]).assert().success().stdout(is_empty()).stderr(
        contains("prairie: sleep: exit code 0")
            .and(contains(" s wall"))
            .and(contains("at its peak"))
            .and(contains("page faults"))
            .and(contains("by prairie"))
            .and(contains("seen in 1 process")),
    );
}

/// Numbers of processes there are those of others, whose memory is not the program's.
#[test]
fn with_the_proc_of_others_nothing_of_them_is_counted() {
    let (Some(library), Some(mut command)) = (built_library(), support::unshared()) else { return };
    command.args(["run", "--json", "--library"]).arg(library).args(["--", "sleep", "1"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((&told["processes_at_once"], &told["exit_code"]), (&0.into(), &0.into()), "{told}");
    assert!((1 << 18..64 << 20).contains(&told["peak_bytes"].as_u64().unwrap()), "{told}");
}

#[test]
fn a_program_runs_in_a_folder_that_was_removed() {
    let Some(library) = built_library() else { return };
    let script = "cd \"$(mktemp -d)\" && rmdir \"$PWD\" && exec \"$@\"";
    for (options, code) in [(&["--quiet"][..], 3), (&["--quiet", "--profile"], 125)] {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_prairie"), "run"]).args(options);
        command.arg("--library").arg(&library).args(["--", "sh", "-c", "exit 3"]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(code == 3 || said.contains("the current folder: No such file"), "{said}");
    }
}

/// Paths need not be text, and the loader takes no blank.
#[test]
fn a_library_in_a_folder_of_any_name_serves() {
    let Some(library) = built_library() else { return };
    let above = tempfile::tempdir().unwrap();
    for name in [&b"caf\xe9"[..], b"a b"] {
        let folder = above.path().join(OsStr::from_bytes(name));
        std::fs::create_dir(&folder).unwrap();
        let copy = folder.join("libprairie.so");
        copy_program(&library, &copy);
        let mut command = prairie();
        command.args(["run", "--library"]).arg(&copy).args(["--", "sleep", "3"]);
        command.assert().success().stderr(contains("seen in 1 process"));
    }
}

#[test]
fn a_heap_that_may_not_be_read_is_told() {
    let Some(library) = built_library() else { return };
    let mut command = support::tool();
    command.args(["run", "--library"]).arg(library).args(["--", "sleep", "1"]);
    support::refuse(&mut command, libc::SYS_process_vm_readv, libc::ENOSYS);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let why = "(sleep): this kernel, or a filter on system calls, has no way to read it";
    let line = said.lines().find(|line| line.starts_with("  heap     not seen: process "));
    assert!(line.is_some_and(|line| line.ends_with(why)), "{said}");
}

#[test]
fn a_process_that_drops_the_library_is_told() {
    let Some(library) = built_library() else { return };
    // A copy of its own: who opens the library meanwhile, as other tests do, could be this process.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("libprairie.so");
    std::fs::copy(library, &copy).unwrap();
    prairie()
        .args(["run", "--library"])
        .arg(&copy)
        .args(["--", "sh", "-c", "env -u LD_PRELOAD sleep 3; true"])
        .assert()
        .success()
        .stderr(contains("NOT served by prairie: sleep"));
}

#[test]
fn statistics_are_printed_when_asked_for() {
    let Some(mut command) = run() else { return };
    command
        .env("PRAIRIE_CONF", "arenas:1")
        .args(["--stats", "--", "printenv", "PRAIRIE_CONF"])
        .assert()
        .success()
        .stdout("arenas:1,stats_print:true\n")
        .stderr(contains("statistics of prairie"));
}

/// Not to the copy of the tool that proves the library, which would write a profile as well.
#[test]
fn settings_are_for_the_program_only() {
    let Some(mut command) = run() else { return };
    let folder = tempfile::tempdir().unwrap();
    command.current_dir(folder.path()).env("MALLOC_CONF", "prof:true,prof_final:true");
    command.args(["--", "true"]).assert().success();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_library_in_an_odd_place_is_preloaded() {
    let Some(library) = built_library() else { return };
    let folder = tempfile::Builder::new().prefix("odd place:").tempdir().unwrap();
    let copy = folder.path().join("libprairie.so");
    std::fs::copy(library, &copy).unwrap();
    let mut command = prairie();
    command.arg("run").arg("--library").arg(&copy);
    command.args(["--", "grep", "-o", "-m1", "odd place:", "/proc/self/maps"]);
    command.assert().success().stdout("odd place:\n");
}

#[test]
fn what_cannot_be_run_has_the_codes_of_env() {
    for (program, code, text) in [
        ("no-such-program", 127, "prairie: no-such-program: no such program in PATH"),
        ("/no/such/program", 127, "prairie: /no/such/program: No such file"),
        ("/etc/passwd", 126, "prairie: /etc/passwd: not an executable file"),
    ] {
        let Some(mut command) = run() else { return };
        command.args(["--", program]).assert().code(code).stderr(contains(text));
    }
}

#[test]
fn what_cannot_be_waited_for_is_not_started() {
    let Some(library) = built_library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("started");
    let mut command = support::tool();
    command.args(["run", "--library"]).arg(library).args(["--", "touch"]).arg(&file);
    support::refuse(&mut command, libc::SYS_pidfd_open, libc::EPERM);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.starts_with("prairie: pidfd_open (Linux 5.3 or later is needed): "), "{said}");
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(!file.exists());
}

#[test]
fn a_set_uid_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    copy_program("/bin/true", &path);
    // Only root can give a file away, so that others cannot make such a file.
    if std::os::unix::fs::chown(&path, Some(65534), None).is_err() {
        eprintln!("skipped: not root");
        return;
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let Some(mut command) = run() else { return };
    command
        .arg("--")
        .arg(&path)
        .assert()
        .code(125)
        .stderr(contains("is set-uid: the loader ignores LD_PRELOAD in it"));
}

#[test]
fn a_limit_of_memory_can_fail_a_run() {
    for (limit, fail, code, told) in [
        ("1G", true, 0, "is within --max-rss 1.00 GiB"),
        ("64K", false, 0, "is ABOVE --max-rss 64.0 KiB"),
        ("64K", true, 125, "is ABOVE --max-rss 64.0 KiB"),
    ] {
        let Some(mut command) = run() else { return };
        command.args(["--max-rss", limit]);
        if fail {
            command.arg("--fail");
        }
        command.args(["--", "sleep", "0.1"]).assert().code(code).stderr(contains(told));
    }
    // Why it failed is told, too, where nobody wants a summary or it is in a file.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("summary");
    let file = file.to_str().unwrap();
    for words in [&["-q"][..], &["-o", file], &["-q", "--json", "-o", file, "--force"]] {
        let Some(mut command) = run() else { return };
        command.args(["--max-rss", "64K", "--fail"]).args(words).args(["--", "sleep", "0.1"]);
        let told = contains("is ABOVE --max-rss 64.0 KiB\n");
        command.assert().code(125).stderr(predicates::str::starts_with("prairie: peak").and(told));
    }
    // The program's own failure is the news.
    let Some(mut command) = run() else { return };
    command.args(["--max-rss", "64K", "--fail", "--", "sh", "-c", "exit 3"]).assert().code(3);
}

/// A parent that ends leaves its children to the tool, which counts them, and lets them run on.
#[test]
fn processes_in_the_background_count_and_are_left_alone() {
    let Some(mut command) = run() else { return };
    let folder = tempfile::tempdir().unwrap();
    let python = "\
import os, time
def wait_for(name):
    end = time.time() + 60
    while time.time() < end and not os.path.exists(name): time.sleep(0.02)
x = bytearray(200 << 20)
open('large', 'w')
wait_for('ended')
open('alive', 'w')";
    std::fs::write(folder.path().join("background.py"), python).unwrap();
    let script = "(/usr/bin/python3 background.py >/dev/null 2>&1 &)
                  until [ -e large ]; do sleep 0.02; done; sleep 3";
    command.current_dir(folder.path()).args(["--max-rss", "100M", "--fail", "--"]);
    let told = command.args(["sh", "-c", script]).assert();
    std::fs::write(folder.path().join("ended"), "").unwrap();
    told.code(125).stderr(contains("is ABOVE --max-rss 100 MiB"));
    assert!(becomes(|| folder.path().join("alive").exists()), "it was ended");
}

/// Python makes processes by vfork: until they are another program they are in its memory.
#[test]
fn memory_that_a_child_borrows_counts_once() {
    let Some(mut command) = run() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let python = "import subprocess; x = bytearray(200 << 20); \
                  [subprocess.run(['/bin/true']) for _ in range(60)]";
    command.args(["--json", "-o"]).arg(&file).args(["--", "/usr/bin/python3", "-c", python]);
    command.assert().success();
    let value: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let peak = value["peak_bytes"].as_u64().unwrap() >> 20;
    assert!((200..260).contains(&peak), "{peak} MiB");
}

#[test]
fn the_heap_of_a_running_program_is_told() {
    let Some(mut command) = run() else { return };
    command
        .args(["--", "python3", "-c", "import time; x = bytearray(64 << 20); time.sleep(3)"])
        .assert()
        .success()
        .stderr(predicates::str::is_match("heap     6[0-9][.0-9]* MiB in use at the").unwrap());
}

/// A command of two processes that have 64 and 32 MiB, at once for so many seconds.
fn two_heaps(seconds: f32) -> String {
    let python = format!(
        "\
import os, time
(ready, tell), (wait, end) = os.pipe(), os.pipe()
pid = os.fork()
x = bytearray((64 if pid else 32) << 20)
os.close(tell if pid else end)
if pid:
    os.read(ready, 1)
    time.sleep({seconds})
    os.close(end)
    os.wait()
else:
    os.write(tell, b\"x\")
    os.read(wait, 1)"
    );
    format!("/usr/bin/python3 -c '{python}'")
}

/// All that a verdict has to say is in it, also of a program that has several processes.
#[test]
fn the_heaps_of_a_tree_add_up() {
    let Some(mut command) = run() else { return };
    let script = format!("{}; true", two_heaps(3.0));
    command.args(["--", "sh", "-c", &script]).assert().success().stderr(
        predicates::str::is_match("heap     9[6-9][.0-9]* MiB in use at the .* processes\n")
            .unwrap()
            .and(contains("; fragmentation "))
            .and(contains("  of them  python3 up to 6"))
            .and(contains(" blocks fetched, "))
            .and(contains("  finding  most is in large blocks: 9"))
            .and(contains("next: prairie compare -- sh -c ")),
    );
}

#[test]
fn the_heap_of_processes_of_one_name_is_told() {
    let Some(mut command) = run() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let script = format!("{}; sleep 3", two_heaps(0.7));
    command.args(["--only-exe", "sleep", "--json", "-o"]).arg(&file);
    command.args(["--", "sh", "-c", &script]).assert().success();
    let value: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let heap = &value["heap"];
    let processes = heap["of_process"].as_array().unwrap();
    assert_eq!((processes.len(), &processes[0]["name"]), (1, &"sleep".into()), "{heap}");
    assert!(heap["allocated"].as_u64().unwrap() < 1 << 20, "{heap}");
    assert!(heap["fetched"]["small"].as_u64().unwrap() > 10, "{heap}");
}

/// What a fork has of its parent it has not fetched itself.
#[test]
fn a_forked_process_does_not_count_what_its_parent_did() {
    let Some(mut command) = run() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let python = "import os, time; x = [str(i) * 50 for i in range(100000)]; time.sleep(3); \
                  pid = os.fork(); time.sleep(3); pid and os.wait()";
    command.env("PYTHONMALLOC", "malloc").args(["--json", "-o"]).arg(&file);
    command.args(["--", "/usr/bin/python3", "-c", python]).assert().success();
    let value: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let of = value["heap"]["of_process"].as_array().unwrap().iter();
    let mut fetched: Vec<u64> =
        of.map(|process| process["fetched"]["small"].as_u64().unwrap()).collect();
    fetched.sort_unstable();
    assert!(matches!(fetched[..], [0..10_000, 100_000..200_000]), "{fetched:?}");
}

#[test]
fn the_summary_is_json_too() {
    let Some(mut command) = run() else { return };
    let folder = tempfile::tempdir().unwrap();
    command.args(["--json", "-o"]).arg(folder.path().join("%e.json"));
    command.args(["--", "sh", "-c", "exit 4"]);
    let file = folder.path().join("sh.json");
    command.assert().code(4).stderr("");
    let value: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!((&value["schema"], &value["exit_code"]), (&1.into(), &4.into()));
    assert!(value["peak_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn a_file_that_is_there_is_told_before_anything_runs() {
    let Some(mut command) = run() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (file, made) = (folder.path().join("run.txt"), folder.path().join("made"));
    std::fs::write(&file, "mine").unwrap();
    command.arg("-o").arg(&file).args(["--", "touch"]).arg(&made);
    command.assert().code(125).stderr(contains("run.txt: the file is there already"));
    assert!(!made.exists());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_file_that_was_there_under_its_full_name_is_told_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sh.json");
    let script = "echo ran >> made; exit 3";
    for code in [3, 125] {
        let Some(mut command) = run() else { return };
        command
            .current_dir(folder.path())
            .args(["--json", "-o", "%e.json", "--", "sh", "-c", script]);
        command.assert().code(code);
        assert!(file.exists());
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("made")).unwrap(), "ran\n");
}

/// Whatever becomes of the file: the summary and the program's own code are not lost.
#[test]
fn a_summary_that_cannot_be_written_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.txt");
    for (program_code, code) in [(3, 3), (0, 125)] {
        let Some(mut command) = run() else { return };
        let script = format!("rm -f run.txt; mkdir run.txt; exit {program_code}");
        command.current_dir(folder.path()).arg("-o").arg(&file).args(["--", "sh", "-c", &script]);
        command.assert().code(code).stderr(
            contains(format!("prairie: sh: exit code {program_code}"))
                .and(contains("at its peak"))
                .and(contains("run.txt: ")),
        );
        std::fs::remove_dir(&file).unwrap();
    }
}

#[test]
fn hardened_mode_is_passed_on() {
    let Some(mut command) = run() else { return };
    command
        .args(["--hardened", "--", "printenv", "PRAIRIE_CONF"])
        .assert()
        .success()
        .stdout("hardened:true\n");
}

/// As of scripts that have nothing to say there.
#[test]
fn an_empty_variable_names_no_library() {
    if built_library().is_none() {
        return;
    }
    let mut command = prairie();
    command.env("PRAIRIE_LIBRARY", "").args(["run", "--", "true"]).assert().success();
}

/// A copy of the command, alone in a folder, with a home that is empty.
#[test]
fn the_command_brings_its_library_along() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("prairie");
    copy_program(env!("CARGO_BIN_EXE_prairie"), &copy);
    let started = || {
        let mut command = Command::new(&copy);
        command.current_dir("/").env_remove("PRAIRIE_LIBRARY").env_remove("LD_PRELOAD");
        command.env("HOME", folder.path()).env_remove("XDG_CACHE_HOME");
        command.args([
            "run",
            "--",
            "grep",
            "-o",
            "-m1",
            "libprairie-[0-9a-f]*.so",
            "/proc/self/maps",
        ]);
        command
    };
    let output = started().output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("no libprairie.so beside") {
        eprintln!("skipped: the command was built without a library");
        return;
    }
    let made = String::from_utf8(output.stdout).unwrap();
    let file = folder.path().join(".cache/prairie").join(made.trim());
    let about = std::fs::metadata(&file).unwrap();
    // It is there now; and what is damaged is mended before it gets into a program.
    started().assert().success();
    std::fs::write(&file, "damaged").unwrap();
    started().assert().success().stdout(made);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), about.len());
}
