//! `prairie stats`, `exporter` and `top` on processes that run: what they say, and that it is what
//! the library itself says.
// SPDX-License-Identifier: MIT

mod support;
#[path = "support/watched.rs"]
mod watched;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::{
    becomes, built_library, copy_program, is_refusal, prairie, wait_for_end_of_first_thread,
};
use watched::{AT_REST, Watched};

/// The exit code, standard output and standard error.
type Output = (i32, String, String);

fn output(arguments: &[&str]) -> Output {
    let output = prairie().env("COLUMNS", "100").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// `prairie stats` of a process that may still be loading: as soon as it is enough, or refused.
fn stats(pid: &str, is_enough: impl Fn(&Output) -> bool) -> Output {
    let mut stats = Output::default();
    becomes(|| {
        stats = output(&["stats", pid]);
        is_enough(&stats) || is_refusal(&stats.2)
    });
    stats
}

/// The loader has come to the C library.
fn has_allocator(stats: &Output) -> bool {
    stats.2.contains("its allocator is") && !stats.2.contains("its allocator is unknown")
}

/// Each sample by its name and labels, but for those of the process.
fn samples<'a>(lines: impl Iterator<Item = &'a str>, pid: u32) -> BTreeMap<String, u64> {
    let labels = format!("{{pid=\"{pid}\",name=\"watched\"");
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let name = name.replace(&format!("{labels},"), "{").replace(&format!("{labels}}}"), "");
        (name, value.parse().unwrap())
    };
    lines.filter(|line| !line.starts_with('#')).map(sample).collect()
}

const UPTIME: &str = "prairie_uptime_seconds";

fn agree(options: &str) {
    let Some(mut watched) = Watched::start(options) else { return };
    let pid = watched.pid();
    let before = watched.ask("metrics");
    let uptime_before = samples(before.iter().map(String::as_str), pid)[UPTIME];
    let (code, text, _) = output(&["stats", &pid.to_string(), "--openmetrics"]);
    assert_eq!(code, 0);
    let outside = samples(text.lines(), pid);
    let inside = watched.ask("metrics");
    assert_eq!(inside.last().unwrap(), "# EOF");
    let inside = samples(inside.iter().map(String::as_str), pid);
    assert!(inside.len() > 100, "{inside:?}");
    for (name, value) in &inside {
        // The library takes locks to count.
        let slack = match name.as_str() {
            name if name.starts_with("prairie_lock_taken") => 200,
            UPTIME => value - uptime_before,
            _ => 0,
        };
        let seen = outside.get(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert!(seen <= value && value - seen <= slack, "{name}: {seen} from outside, {value}");
    }
    let mut more: Vec<&String> =
        outside.keys().filter(|name| !inside.contains_key(*name)).collect();
    more.sort();
    let of_process =
        ["prairie_process_resident_bytes", "prairie_process_swapped_bytes", "prairie_up"];
    assert_eq!(more, of_process);
}

#[test]
fn every_metric_is_the_librarys_own() {
    agree(AT_REST);
}

#[test]
fn every_metric_of_a_hardened_process_is_the_librarys_own() {
    agree(&format!("{AT_REST},hardened:true"));
}

#[test]
fn the_heap_of_a_process_in_words_and_as_json() {
    let Some(mut watched) = Watched::start(AT_REST) else { return };
    let pid = watched.pid().to_string();
    let (code, text, narration) = output(&["stats", &pid, "--classes", "3"]);
    assert_eq!(code, 0);
    assert!(text.starts_with(&format!("watched (process {pid}) on prairie ")), "{text}");
    for word in ["4 threads", "allocated", "in slabs", "more classes", "in depots"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert_eq!(narration, format!("next: prairie top {pid}\n"));
    assert_eq!(output(&["stats", &pid, "--quiet"]).2, "");

    let json = || -> Value { serde_json::from_str(&output(&["stats", &pid, "--json"]).1).unwrap() };
    let (before, after) = (json(), {
        watched.ask("grow");
        json()
    });
    assert_eq!((&before["schema"], &before["allocator"]), (&1.into(), &"prairie".into()));
    let grown = |of: &str| {
        let figure = |sample: &Value| sample["figures"][of].as_u64().unwrap();
        figure(&after) - figure(&before)
    };
    assert_eq!((grown("allocated"), grown("large_blocks"), grown("threads")), (8 << 20, 1, 0));
    assert_eq!(before["figures"]["moving"], 0);
    assert!(after["strip"]["resident"].as_u64().unwrap() > 8 << 20);
}

#[test]
fn a_process_that_is_not_on_prairie() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = child.id().to_string();
    let (code, text, narration) = stats(&pid, has_allocator);
    let json: Value = serde_json::from_str(&output(&["stats", &pid, "--json"]).1).unwrap();
    let once = output(&["top", &pid, "--once"]);
    let exporter = output(&["exporter", &pid, "--once"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(code, 1);
    assert!(text.starts_with(&format!("sleep (process {pid}) on ")), "{text}");
    assert!(text.contains("resident"), "{text}");
    assert!(narration.contains("is not on prairie: its allocator is"), "{narration}");
    assert!(narration.contains("prairie run -- PROGRAM"), "{narration}");
    assert_eq!(json["figures"], Value::Null);
    assert!(json["why"]["text"].as_str().unwrap().contains("is not on prairie"));
    assert_eq!(once.0, 0);
    assert!(once.1.contains("resident"), "{once:?}");
    assert_eq!(exporter.0, 125);
    assert!(exporter.2.contains("is not on prairie"), "{exporter:?}");
}

/// What is said of it does not speak to the terminal, wherever it is said.
#[test]
fn a_process_whose_name_is_no_text() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("a\x1b[2Jb");
    copy_program("/usr/bin/sleep", &program);
    let mut sleep = Command::new(&program).arg("60").spawn().unwrap();
    let pid = sleep.id().to_string();
    let outputs = [stats(&pid, has_allocator), output(&["exporter", &pid, "--once"])];
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    let name = format!("a?[2Jb (process {pid}) on ");
    assert!(outputs[0].1.starts_with(&name), "{outputs:?}");
    for (_, text, narration) in outputs {
        assert!(narration.contains(&format!("process {pid} (a?[2Jb)")), "{narration}");
        assert!(!text.contains('\x1b') && !narration.contains('\x1b'), "{text}{narration}");
    }
}

/// As who may not: somebody else's process.
#[test]
fn a_process_of_another_user_is_refused_with_the_remedy() {
    let Some(watched) = Watched::start(AT_REST) else { return };
    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("prairie");
    copy_program(env!("CARGO_BIN_EXE_prairie"), &tool);
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let cache = folder.path().join("cache");
    std::fs::create_dir(&cache).unwrap();
    let _ = std::os::unix::fs::chown(&cache, Some(65534), Some(65534));
    let pid = watched.pid().to_string();
    let verbs: [&[&str]; 5] =
        [&["stats"], &["top"], &["exporter"], &["prof", "--pid"], &["doctor", "--pid"]];
    for verb in verbs {
        let arguments = [verb, &[pid.as_str()]].concat();
        let mut command = Command::new(&tool);
        command.env("XDG_CACHE_HOME", &cache);
        let Ok(output) = command.args(&arguments).current_dir("/").uid(65534).gid(65534).output()
        else {
            eprintln!("skipped: not root");
            return;
        };
        let narration = String::from_utf8(output.stderr).unwrap();
        let refusal = format!("process {pid} (watched) belongs to user 0: you may not read it");
        let remedy = format!("sudo {} {}", tool.display(), arguments.join(" "));
        assert_eq!(output.status.code(), Some(125), "{narration}");
        assert_eq!(narration, format!("prairie: {refusal}\n  {remedy}\n"));
    }
}

#[test]
fn a_file_is_overwritten_when_asked_only() {
    let Some(watched) = Watched::start(AT_REST) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.json");
    let path = path.to_str().unwrap();
    let pid = watched.pid().to_string();
    let arguments = ["stats", &pid, "--json", "-o", path];
    assert_eq!(output(&arguments).0, 0);
    let (code, _, narration) = output(&arguments);
    assert_eq!(code, 125);
    assert!(narration.contains("the file is there already\n  --force replaces it"), "{narration}");
    let (code, text, _) = output(&[&arguments[..], &["--force"]].concat());
    assert_eq!((code, text.as_str()), (0, ""));
    assert!(std::fs::read_to_string(path).unwrap().contains("\"allocated\""));
}

// ---- exporter ----

struct Exporter {
    child: Child,
    address: String,
}

impl Exporter {
    fn start(arguments: &[&str]) -> Exporter {
        Exporter::of(support::tool(), arguments)
    }

    fn of(mut command: Command, arguments: &[&str]) -> Exporter {
        command.arg("exporter").args(arguments).args(["--listen", "127.0.0.1:0"]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("prairie: serving http://").unwrap();
        let address = address.strip_suffix("/metrics").unwrap().to_owned();
        Exporter { child, address }
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "{request}\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn end(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

/// A test that fails leaves nobody behind.
impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn prometheus_is_served() {
    let Some(mut watched) = Watched::start(AT_REST) else { return };
    let pid = watched.pid();
    let exporter = Exporter::start(&[&pid.to_string()]);
    let answer = exporter.ask("GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("application/openmetrics-text; version=1.0.0"), "{answer}");
    assert!(answer.contains(&format!("prairie_up{{pid=\"{pid}\",name=\"watched\"}} 1\n")));
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    let pid_text = pid.to_string();
    let twice = output(&["exporter", &pid_text, &pid_text, "--once"]);
    assert_eq!(twice.1.matches("\nprairie_up{").count(), 1, "{}", twice.1);
    let older = exporter.ask("GET /metrics HTTP/1.1");
    assert!(older.contains("text/plain; version=0.0.4") && !older.contains("# EOF"), "{older}");
    assert!(older.contains("# TYPE prairie_purges_total counter\n"), "{older}");
    assert!(exporter.ask("GET / HTTP/1.1").contains("/metrics"));
    assert!(exporter.ask("GET /other HTTP/1.1").starts_with("HTTP/1.1 404 "));
    assert!(exporter.ask("DELETE /metrics HTTP/1.1").starts_with("HTTP/1.1 405 "));
    assert_eq!(watched.ask("nothing").len(), 0);
    drop(watched);
    let gone = exporter.ask("GET /metrics HTTP/1.1");
    assert!(gone.starts_with("HTTP/1.1 200 ") && !gone.contains("prairie_up{"), "{gone}");
    assert_eq!(exporter.end(), Some(0));
}

#[test]
fn all_processes_of_a_name_are_found() {
    let Some(watched) = Watched::start(AT_REST) else { return };
    let line = format!("prairie_up{{pid=\"{}\",name=\"watched\"}} 1\n", watched.pid());
    let named = output(&["exporter", "--all", "--name", "watched", "--once"]);
    assert_eq!(named.0, 0);
    assert!(named.1.contains(&line), "{}", named.1);
    assert!(!output(&["exporter", "--all", "--name", "nobody", "--once"]).1.contains("_up{"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prairie.prom");
    let file = output(&["exporter", "--all", "--once", "--textfile", path.to_str().unwrap()]);
    assert_eq!((file.0, file.1.as_str()), (0, ""));
    assert!(std::fs::read_to_string(&path).unwrap().contains(&line));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_cannot_be_written_now_is_told_and_written_later() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("metrics");
    let path = folder.join("prairie.prom");
    let mut exporter = support::tool();
    exporter.args(["exporter", "--all", "--name", "nobody", "--every", "0.05", "--textfile"]);
    exporter.arg(&path).stderr(Stdio::piped());
    let refused = exporter.output().unwrap();
    assert_eq!(refused.status.code(), Some(125));
    let said = format!("prairie: {}: no such folder\n", folder.display());
    assert_eq!(String::from_utf8(refused.stderr).unwrap(), said);
    std::fs::create_dir(&folder).unwrap();
    let mut exporter = exporter.spawn().unwrap();
    assert!(becomes(|| path.exists()));
    std::fs::rename(&folder, above.path().join("other")).unwrap();
    let mut line = String::new();
    BufReader::new(exporter.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.ends_with("prairie.prom: No such file or directory\n"), "{line}");
    std::fs::create_dir(&folder).unwrap();
    assert!(becomes(|| path.exists()));
    // SAFETY: two numbers; the exporter has not been waited for.
    unsafe { libc::kill(exporter.id() as i32, libc::SIGTERM) };
    assert_eq!(exporter.wait().unwrap().code(), Some(0));
}

/// More of them than there are descriptors for.
#[test]
fn who_connects_and_asks_for_nothing_ends_no_exporter() {
    let mut command = support::tool();
    let few = libc::rlimit { rlim_cur: 40, rlim_max: 40 };
    // SAFETY: a system call, and a struct that is there.
    let set_limit = move || match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &few) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    };
    // SAFETY: it makes that call only.
    unsafe { command.pre_exec(set_limit) };
    let exporter = Exporter::of(command, &["--all", "--name", "no such process"]);
    let connect = |_| TcpStream::connect(&exporter.address).unwrap();
    let idle: Vec<TcpStream> = (0..100).map(connect).collect();
    std::thread::sleep(std::time::Duration::from_millis(500));
    drop(idle);
    let answer = exporter.ask("GET /metrics HTTP/1.1");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(exporter.end(), Some(0));
}

/// As one that was seen before the loader had mapped the library.
#[test]
fn a_process_that_gets_the_library_later_is_found() {
    let Some(watched) = Watched::start(AT_REST) else { return };
    drop(watched);
    let library = built_library().unwrap();
    let python = "import ctypes, sys; sys.stdin.readline(); ctypes.CDLL(sys.argv[1]); \
                  print('loaded', flush=True); sys.stdin.readline()";
    let mut late = Command::new("/usr/bin/python3");
    late.args(["-c", python]).arg(library).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut late = late.spawn().unwrap();
    let line = format!("prairie_up{{pid=\"{}\",", late.id());
    let exporter = Exporter::start(&["--all"]);
    let in_one_piece = "GET /metrics HTTP/1.0"; // however many processes there are
    assert!(!exporter.ask(in_one_piece).contains(&line));
    writeln!(late.stdin.as_mut().unwrap()).unwrap();
    let mut said = String::new();
    BufReader::new(late.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "loaded\n");
    assert!(exporter.ask(in_one_piece).contains(&line));
    assert_eq!(exporter.end(), Some(0));
    drop(late.stdin.take());
    late.wait().unwrap();
}

/// Of a process whose first thread has ended the kernel shows no memory under its own number.
#[test]
fn a_process_whose_first_thread_has_ended_is_looked_at() {
    let Some(mut watched) = Watched::start(AT_REST) else { return };
    let pid = watched.pid().to_string();
    let whole = |text: &str| {
        let lines = text.lines().filter(|line| line.starts_with("prairie_allocated_bytes"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    watched.ask("leave");
    wait_for_end_of_first_thread(watched.pid());
    let (code, text, said) = output(&["stats", &pid, "--openmetrics"]);
    assert_eq!((code, whole(&text).len()), (0, 1), "{said}");
    let resident = text.lines().find(|line| line.starts_with("prairie_process_resident_bytes"));
    assert!(!resident.unwrap().ends_with(" 0"), "{text}");
    let named = output(&["exporter", &pid, "--once"]);
    assert_eq!((named.0, whole(&named.1)), (0, whole(&text)), "{}", named.2);
    let (code, text, said) = output(&["top", &pid, "--once"]);
    assert!(code == 0 && text.contains("on prairie") && text.contains("are resident"), "{said}");
    let (code, text, _) = output(&["doctor", "--pid", &pid]);
    assert!(code == 0 && text.contains("serves process"), "{text}");
}

/// The kernel keeps fifteen bytes of a name, and cuts the last letter of this one in two.
#[test]
fn a_process_whose_name_is_cut_within_a_letter() {
    let Some(library) = built_library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("программа");
    copy_program("/usr/bin/sleep", &program);
    let mut sleep = Command::new(&program).arg("60").env("LD_PRELOAD", library).spawn().unwrap();
    let pid = sleep.id().to_string();
    let stats = stats(&pid, |stats| stats.0 == 0);
    let named = output(&["exporter", "--all", "--name", "программа", "--once"]);
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    if is_refusal(&stats.2) {
        return eprintln!("skipped: {}", stats.2);
    }
    assert_eq!(stats.0, 0, "{}", stats.2);
    assert!(
        stats.1.starts_with(&format!("програм\u{fffd} (process {pid}) on prairie")),
        "{}",
        stats.1
    );
    let line = format!("prairie_up{{pid=\"{pid}\",name=\"програм\u{fffd}\"}} 1\n");
    assert!(named.1.contains(&line), "{}", named.1);
}

#[test]
fn an_address_that_is_taken_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, _, narration) = output(&["exporter", "--all", "--listen", &address]);
    assert_eq!(code, 125);
    assert!(narration.contains(&format!("prairie: {address}: ")), "{narration}");
    assert!(narration.contains("--listen ADDRESS:PORT"), "{narration}");
}

// ---- top ----

#[test]
fn a_table_without_a_terminal_and_a_record() {
    let Some(watched) = Watched::start(AT_REST) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web.rec");
    let path = path.to_str().unwrap();
    let pid = watched.pid().to_string();
    let (code, seen, _) = output(&["top", &pid, "--record", path]);
    assert_eq!(code, 0);
    assert!(seen.contains("4 threads") && seen.contains("in stocks"), "{seen}");
    let again = output(&["top", "--replay", path]);
    assert_eq!((again.0, again.1), (0, seen));
    let refused = output(&["top", &pid, "--record", path]);
    assert_eq!(refused.0, 125);
    assert!(refused.2.contains("is there already"), "{}", refused.2);
    let json: Value = serde_json::from_str(&output(&["top", &pid, "--json"]).1).unwrap();
    assert_eq!((&json["schema"], &json["samples"][0]["name"]), (&1.into(), &"watched".into()));
    let all = output(&["top", "--once"]).1;
    assert!(all.lines().any(|line| line.contains(&format!("{pid} watched"))), "{all}");
}

// ---- words ----

/// Standard output or, of a failure, standard error, with the code.
fn said(arguments: &[&str]) -> String {
    let (code, text, narration) = output(arguments);
    format!("{}exit code {code}", if code == 0 { text } else { narration })
}

#[test]
fn help() {
    for verb in ["stats", "exporter", "top"] {
        insta::assert_snapshot!(format!("help-{verb}"), said(&[verb, "--help"]));
    }
}

#[test]
fn mistakes() {
    for (name, arguments) in [
        ("stats-no-process", &["stats", "4194304"][..]),
        ("stats-no-number", &["stats", "web"]),
        ("stats-two-forms", &["stats", "1", "--json", "--openmetrics"]),
        ("exporter-nobody", &["exporter"]),
        ("exporter-name", &["exporter", "1", "--name", "web"]),
        ("top-every", &["top", "--every", "0"]),
        ("top-no-record", &["top", "--replay", "/etc/hostname"]),
        ("top-record-missing", &["top", "--replay", "/no/such/file"]),
        ("top-no-process", &["top", "4194304", "--once"]),
    ] {
        insta::assert_snapshot!(name, said(arguments));
    }
}
