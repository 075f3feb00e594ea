//! `prairie prof`: what is read, shown and written, and a program that runs.
// SPDX-License-Identifier: MIT

mod support;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;
use support::{built_library, compiled, is_refusal, prairie, wait_for_end_of_first_thread};
use tempfile::TempDir;

/// Blocks so large that each is a sample; of a program that is not there, so that nothing has a name.
fn heap(blocks: &[(&str, u64)]) -> String {
    let mut text = "heap_v2/1\n  t*: 0: 0 [0: 0]\n".to_owned();
    for (stack, bytes) in blocks {
        text += &format!("@ {stack}\n  t*: 1: {bytes} [1: {bytes}]\n");
    }
    text + "\nMAPPED_LIBRARIES:\n00400000-00500000 r-xp 00000000 08:01 1  /no/such/program\n"
}

const MIB: u64 = 1 << 20;

/// Three profiles of one program, one after the other.
fn three() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, leak) in [("1.heap", 1), ("2.heap", 4), ("3.heap", 8)] {
        let blocks = [
            ("0x401011 0x402001 0x403001", leak * MIB),
            ("0x401021 0x402001 0x403001", 2 * MIB),
            ("0x401031 0x403001", 3 * MIB),
        ];
        fs::write(folder.path().join(name), heap(&blocks)).unwrap();
    }
    folder
}

fn shown(folder: &TempDir, arguments: &[&str]) -> String {
    let mut command = prairie();
    command.env("COLUMNS", "80").current_dir(folder.path()).arg("prof").args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

#[test]
fn every_view_of_a_profile() {
    let folder = three();
    insta::assert_snapshot!("prof-top", shown(&folder, &["3.heap"]));
    insta::assert_snapshot!("prof-cum", shown(&folder, &["--sort", "cum", "-n", "2", "3.heap"]));
    insta::assert_snapshot!("prof-tree", shown(&folder, &["--tree", "3.heap"]));
    insta::assert_snapshot!("prof-tree-ascii", shown(&folder, &["--tree", "--ascii", "3.heap"]));
    insta::assert_snapshot!("prof-collapsed", shown(&folder, &["--collapsed", "3.heap"]));
    insta::assert_snapshot!("prof-json", shown(&folder, &["--json", "3.heap"]));
    insta::assert_snapshot!("prof-library", shown(&folder, &["--by", "library", "3.heap"]));
    insta::assert_snapshot!("prof-focus", shown(&folder, &["--focus", "0x1010", "3.heap"]));
}

#[test]
fn several_profiles_are_differences_growth_or_a_sum() {
    let folder = three();
    insta::assert_snapshot!("prof-difference", shown(&folder, &["1.heap", "3.heap"]));
    insta::assert_snapshot!("prof-growth", shown(&folder, &["1.heap", "2.heap", "3.heap"]));
    insta::assert_snapshot!("prof-sum", shown(&folder, &["--sum", "1.heap", "3.heap"]));
    let lines = shown(&folder, &["--collapsed", "1.heap", "3.heap"]);
    assert!(lines.contains("program+0x1010 1048576 8388608\n"), "{lines}");
}

#[test]
fn what_is_written_is_read_again_and_not_lost() {
    let folder = three();
    shown(&folder, &["--pprof", "-o", "named.pb.gz", "1.heap", "3.heap"]);
    let again = shown(&folder, &["named.pb.gz"]);
    assert!(again.contains("7.00 MiB inuse_space"), "{again}");
    let mut command = prairie();
    command.current_dir(folder.path()).args(["prof", "--pprof", "-o", "named.pb.gz", "1.heap"]);
    command.assert().code(125).stderr(contains("named.pb.gz: the file is there already"));
    command.arg("--force").assert().success();
    assert!(shown(&folder, &["named.pb.gz"]).contains("6.00 MiB inuse_space"));
}

#[test]
fn a_view_in_a_file_is_as_on_standard_output() {
    let folder = three();
    for arguments in [&["--tree", "3.heap"][..], &["--tree", "--ascii", "3.heap"]] {
        shown(&folder, &[arguments, &["-q", "--force", "-o", "view"]].concat());
        let view = fs::read_to_string(folder.path().join("view")).unwrap();
        assert_eq!(view, shown(&folder, &[arguments, &["-q"]].concat()));
        assert_eq!(view.is_ascii(), arguments.contains(&"--ascii"), "{view}");
    }
}

#[test]
fn nothing_to_show_is_told() {
    let folder = three();
    let mut command = prairie();
    command.current_dir(folder.path()).args(["prof", "--focus", "nowhere", "1.heap"]);
    command.assert().code(125).stderr(
        contains("no stack with 'nowhere' in a name has any inuse_space")
            .and(contains("--value alloc_space shows")),
    );
}

#[test]
fn a_value_must_be_one_of_the_profiles() {
    let folder = three();
    let mut command = prairie();
    command.current_dir(folder.path()).args(["prof", "--value", "time", "1.heap"]);
    command.assert().code(125).stderr(
        contains("no value is called 'time'")
            .and(contains("alloc_objects, alloc_space, inuse_objects, inuse_space")),
    );
    let objects = shown(&folder, &["--value", "inuse_objects", "1.heap"]);
    assert!(objects.contains("3 inuse_objects in 3 stacks"), "{objects}");
}

#[test]
fn options_that_a_view_does_not_know_are_refused() {
    let folder = three();
    for arguments in [
        ["--pprof", "--value", "inuse_space"],
        ["--pprof", "--focus", "main"],
        ["--pprof", "--by", "line"],
        ["--pprof", "--sort", "cum"],
        ["--pprof", "--json", "--force"],
        ["--flame", "--json", "--force"],
        ["--tree", "--json", "--force"],
        ["--growth", "--json", "--force"],
        ["--collapsed", "--json", "--force"],
        ["--least", "nan", "--tree"],
        ["--least", "-1", "--tree"],
        ["--serve", "127.0.0.1:0", "--json"],
    ] {
        let mut command = prairie();
        command.current_dir(folder.path()).arg("prof").args(arguments).arg("1.heap");
        command.assert().code(125).stdout("");
    }
}

#[test]
fn growth_takes_more_than_one_profile() {
    let folder = three();
    for files in [&["1.heap"][..], &["--sum", "1.heap", "2.heap"]] {
        let mut command = prairie();
        command.current_dir(folder.path()).args(["prof", "--growth"]).args(files);
        command.assert().code(125).stderr(contains("two profiles or more"));
    }
    assert!(shown(&folder, &["--growth", "1.heap", "2.heap"]).contains("grew most"));
}

/// Functions that hold memory; with arguments it says the first one and waits. By the second it holds
/// many blocks, or has a handler for faults and blocks all signals, or its first thread ends.
const PROGRAM: &str = "
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *volatile kept[64];
__attribute__((noinline)) void keep_large(int i) { kept[i] = malloc(1 << 20); }
__attribute__((noinline)) void fill_all(void) { for (int i = 0; i < 32; i++) keep_large(i); }
void *volatile many[20000];
void fault(int signal) { _exit(signal); }
void block_signals(void)
{
    sigset_t all;
    signal(SIGSEGV, fault);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}
#include <pthread.h>
void *wait_for_end(void *word)
{
    while (read(0, word, 1) > 0);
    exit(0);
}
void leave(char *word)
{
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_end, word);
    puts(word);
    fflush(stdout);
    pthread_exit(NULL);
}
int main(int count, char **words)
{
    fill_all();
    if (count > 2 && strcmp(words[2], \"left\") == 0) leave(words[1]);
    if (count > 2 && strcmp(words[2], \"many\") == 0) for (int i = 0; i < 20000; i++) many[i] = malloc(1000);
    if (count > 2 && strcmp(words[2], \"blocked\") == 0) block_signals();
    if (count > 1) { puts(words[1]); fflush(stdout); while (read(0, words[0], 1) > 0); }
    return 0;
}
";

/// None, with the reason, where there is no compiler or no library.
fn program(folder: &Path) -> Option<PathBuf> {
    let flags = ["-g", "-O1", "-fno-omit-frame-pointer", "-pthread"];
    compiled(folder.join("program"), PROGRAM, &flags)
}

#[test]
fn a_run_is_profiled_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(library), Some(program)) = (built_library(), program(folder.path())) else { return };
    let mut command = prairie();
    command.current_dir(folder.path()).args(["run", "--profile", "--library"]).arg(library);
    let told = command.arg("--").arg(&program).assert().success();
    let told = String::from_utf8(told.get_output().stderr.clone()).unwrap();
    assert!(told.contains("by keep_large, called by fill_all"), "{told}");
    let next = told.lines().find_map(|line| line.strip_prefix("next: prairie prof ")).unwrap();
    let next = next.strip_prefix("--value alloc_space ").unwrap();
    let top = shown(&folder, &["--by", "line", next]);
    assert!(top.contains("keep_large") && top.contains("program.c:8"), "{top}");
    let json: Value = serde_json::from_str(&shown(&folder, &["--json", next])).unwrap();
    assert_eq!(json["functions"][0]["function"], "keep_large");
    let held = json["total"].as_f64().unwrap() / MIB as f64;
    assert!((20.0..50.0).contains(&held), "{held} MiB of 32");
}

#[test]
fn a_run_is_profiled_in_a_folder_of_any_name() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&folder).unwrap();
    let (Some(library), Some(program)) = (built_library(), program(above.path())) else { return };
    let mut command = prairie();
    command.current_dir(&folder).args(["run", "--profile", "--library"]).arg(library);
    command.arg("--").arg(&program).assert().success().stderr(contains("by keep_large"));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn the_interval_of_profiles_is_told() {
    let Some(library) = built_library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let every = |size: &str| {
        let mut command = prairie();
        command.current_dir(folder.path()).args(["run", "--profile-every", size, "--library"]);
        command.arg(&library).args(["--", "true"]).assert()
    };
    every("100M").success().stderr(contains("a profile each 64.0 MiB, the power of two below"));
    every("64M").success().stderr(contains("power of two").not());
    every("0").code(125).stderr(contains("it must be more than nothing"));
}

#[test]
fn profiles_of_a_run_show_its_growth() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(library), Some(program)) = (built_library(), program(folder.path())) else { return };
    let mut command = prairie();
    command.current_dir(folder.path()).args(["run", "--profile-every", "4M", "--library"]);
    let told = command.arg(library).arg("--").arg(&program).assert().success();
    let told = String::from_utf8(told.get_output().stderr.clone()).unwrap();
    let next = told.lines().find_map(|line| line.strip_prefix("next: prairie prof ")).unwrap();
    let words: Vec<&str> = next.split(' ').collect();
    assert!(words[0] == "--growth" && words.len() > 3, "{told}");
    let growth = shown(&folder, &words);
    assert!(growth.contains("keep_large") && growth.contains('█'), "{growth}");
}

/// The program above, on prairie with samples.
struct Running {
    child: Child,
    /// Left by tools that attached to an earlier process of its number.
    folders: Vec<OsString>,
}

/// When it has filled its heap.
fn running(library: &Path, program: &Path, conf: &str, holds: &str) -> Running {
    let mut child = Command::new(program)
        .args(["ready", holds])
        .env("LD_PRELOAD", library)
        .env("PRAIRIE_CONF", conf)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let folders = folders_of(child.id());
    Running { child, folders }
}

/// Folders of the tools that attach to this process.
fn folders_of(pid: u32) -> Vec<OsString> {
    let start = format!("prairie-{pid}-");
    let names = fs::read_dir("/tmp").unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with(&start)).collect()
}

/// It goes on as if nothing had been, and who attached to it has left no folder behind.
fn end(Running { mut child, folders }: Running) {
    let is_new = |name: &OsString| !folders.contains(name);
    assert_eq!(folders_of(child.id()).into_iter().find(is_new), None);
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_process_is_attached_to_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(library), Some(program)) = (built_library(), program(folder.path())) else { return };
    let running = running(&library, &program, "prof:true", "little");
    let pid = running.child.id().to_string();
    for _ in 0..3 {
        let output = prairie().args(["prof", "--pid", &pid]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if is_refusal(&said) {
            eprintln!("skipped: {said}");
            break;
        }
        assert!(output.status.success(), "{said}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("keep_large"));
        let sparse = ["prof", "--pid", &pid, "--value", "sparse_space"];
        prairie().args(sparse).assert().success().stdout(contains("sparse_space"));
    }
    prairie().args(["doctor", "--pid", &pid]).assert().success().stdout(contains("serves process"));
    end(running);
}

fn attach(pid: u32) -> Command {
    let mut command = support::tool();
    command.args(["prof", "--pid", &pid.to_string()]).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Ended at any moment: also while the process is made to call what writes the profile.
#[test]
fn a_process_outlives_a_tool_that_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(library), Some(program)) = (built_library(), program(folder.path())) else { return };
    let running = running(&library, &program, "prof:true,lg_prof_sample:8", "many");
    let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
    for (delay_ms, signal) in (1..=40).zip(signals.into_iter().cycle()) {
        let mut tool = attach(running.child.id()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay_ms));
        // SAFETY: two numbers; the tool has not been waited for.
        unsafe { libc::kill(tool.id() as i32, signal) };
        tool.wait().unwrap();
    }
    end(running);
}

/// The same for the tool that serves profiles, whose threads are several.
#[test]
fn a_process_outlives_a_server_that_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(library), Some(program)) = (built_library(), program(folder.path())) else { return };
    let running = running(&library, &program, "prof:true,lg_prof_sample:8", "many");
    for delay_ms in [2, 5, 10, 20, 40] {
        let mut server =
            attach(running.child.id()).args(["--serve", "127.0.0.1:0"]).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
        if is_refusal(&line) {
            eprintln!("skipped: {line}");
            server.wait().unwrap();
            break;
        }
        let mut stream = TcpStream::connect(port_of(&line)).unwrap();
        let asked = std::thread::spawn(move || {
            // Whatever comes of it: the server may end first.
            let _ = write!(stream, "GET /debug/pprof/heap HTTP/1.0\r\n\r\n");
            let _ = stream.read_to_end(&mut Vec::new());
        });
        std::thread::sleep(Duration::from_millis(delay_ms));
        // SAFETY: two numbers; the server has not been waited for.
        unsafe { libc::kill(server.id() as i32, libc::SIGTERM) };
        assert_eq!(server.wait().unwrap().code(), Some(0));
        asked.join().unwrap();
    }
    end(running);
}

/// What /proc says of a process's signals: which it blocks, and for which it has handlers.
fn signals_of(pid: u32) -> Vec<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let is_told = |line: &&str| line.starts_with("SigBlk:") || line.starts_with("SigCgt:");
    status.lines().filter(is_told).map(str::to_owned).collect()
}

#[test]
fn a_process_that_blocks_signals_keeps_its_handlers() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(library), Some(program)) = (built_library(), program(folder.path())) else { return };
    let running = running(&library, &program, "prof:true", "blocked");
    let before = signals_of(running.child.id());
    let output = attach(running.child.id()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || is_refusal(&said), "{said}");
    assert_eq!(signals_of(running.child.id()), before);
    end(running);
}

#[test]
fn a_process_whose_first_thread_has_ended_is_attached_to() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(library), Some(program)) = (built_library(), program(folder.path())) else { return };
    let running = running(&library, &program, "prof:true", "left");
    wait_for_end_of_first_thread(running.child.id());
    let pid = running.child.id().to_string();
    let output = prairie().args(["prof", "--pid", &pid]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let shows = String::from_utf8_lossy(&output.stdout).contains("keep_large");
    assert!(output.status.success() && shows || is_refusal(&said), "{said}");
    end(running);
}

#[test]
fn a_process_without_samples_is_told_how() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(library), Some(program)) = (built_library(), program(folder.path())) else { return };
    let running = running(&library, &program, "prof:false", "little");
    let pid = running.child.id().to_string();
    let output = prairie().args(["prof", "--pid", &pid]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    let is_told =
        said.contains("runs on prairie, unprofiled") && said.contains("prairie run --profile");
    assert!(is_told || is_refusal(&said), "{said}");
    end(running);
}

/// As Rust has it in a program: mallctl under the library's own name. Without symbols nobody finds it.
#[test]
fn a_program_with_prairie_within_is_attached_to_while_it_has_symbols() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = built_library() else { return };
    let archive = built.with_file_name("libprairie.a");
    let own = folder.path().join("libown.a");
    let renamed = Command::new("objcopy")
        .args(["--redefine-sym", "mallctl=prairie_mallctl"])
        .arg(&archive)
        .arg(&own)
        .status();
    if !renamed.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: there is no objcopy, or no {}", archive.display());
    }
    let own = own.to_str().unwrap();
    let flags = ["-g", "-O0", "-Wl,-u,malloc", "-Wl,-u,prairie_mallctl", own, "-pthread"];
    let Some(within) = compiled(folder.path().join("within"), PROGRAM, &flags) else { return };
    let said = |program: &Path| {
        let running = running(Path::new(""), program, "prof:true", "little");
        let output = attach(running.child.id()).output().unwrap();
        end(running);
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let (is_taken, told) = said(&within);
    assert!(is_taken || is_refusal(&told), "{told}");
    assert!(Command::new("strip").arg(&within).status().unwrap().success());
    let (is_taken, told) = said(&within);
    assert!(!is_taken && (told.contains("has prairie within, but no symbol") || is_refusal(&told)));
}

/// As an upgrade does it, to processes that run on with the old library.
#[test]
fn a_library_that_was_replaced_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(built), Some(program)) = (built_library(), program(folder.path())) else { return };
    let library = folder.path().join("libprairie.so.0");
    fs::copy(&built, &library).unwrap();
    let running = running(&library, &program, "prof:true", "little");
    fs::copy(&built, folder.path().join("new")).unwrap();
    fs::rename(folder.path().join("new"), &library).unwrap();
    let output = attach(running.child.id()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let is_told = said.contains("libprairie.so.0, which was deleted or replaced");
    assert!(output.status.success() || is_told || is_refusal(&said), "{said}");
    end(running);
}

#[test]
fn a_profile_that_could_not_be_written_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(library), Some(program)) = (built_library(), program(folder.path())) else { return };
    let running = running(&library, &program, "prof:true", "little");
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: numbers and a valid limit: the process can open no more files.
    let limited = unsafe {
        let pid = running.child.id() as i32;
        libc::prlimit(pid, libc::RLIMIT_NOFILE, &none, std::ptr::null_mut())
    };
    assert_eq!(limited, 0);
    let output = attach(running.child.id()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("could not write its profile") || is_refusal(&said), "{said}");
    end(running);
}

/// Who is root does in the process's `/tmp` what the process's user may do.
#[test]
fn root_takes_profiles_of_others() {
    // SAFETY: a number.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (Some(built), Some(program)) = (built_library(), program(folder.path())) else { return };
    let library = folder.path().join("libprairie.so.0");
    fs::copy(&built, &library).unwrap();
    let nobody = folder.path().join("as-nobody");
    let text = format!(
        "#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups {} \"$@\"\n",
        program.display()
    );
    support::make_program(&nobody, text);
    let running = running(&library, &nobody, "prof:true", "little");
    let output = attach(running.child.id()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || is_refusal(&said), "{said}");
    end(running);
}

/// Where a server says that it is.
fn port_of(line: &str) -> &str {
    line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap()
}

fn fetched(port: &str, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(port).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

#[test]
fn profiles_are_served() {
    let folder = three();
    let mut server = support::tool()
        .args(["prof", "--serve", "127.0.0.1:0", "3.heap"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let port = port_of(&line);
    let answer = fetched(port, "/debug/pprof/heap");
    let body = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert!(answer.starts_with(b"HTTP/1.1 200") || answer.starts_with(b"HTTP/1.0 200"));
    fs::write(folder.path().join("fetched.pb.gz"), &answer[body..]).unwrap();
    assert!(shown(&folder, &["fetched.pb.gz"]).contains("13.0 MiB inuse_space"));
    assert!(String::from_utf8_lossy(&fetched(port, "/")).contains("<svg"));
    assert!(String::from_utf8_lossy(&fetched(port, "/other")).contains(" 404 "));
    server.kill().unwrap();
    server.wait().unwrap();
}
