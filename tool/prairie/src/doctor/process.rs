//! A process that runs: is prairie in it, and if not, why not?
// SPDX-License-Identifier: MIT

use std::fs;
use std::path::{Path, PathBuf};

use super::check::Check;
use super::library::{others_before, others_before_one};
use super::program;
use crate::elf::{self, Loader};
use crate::live::map::{self, Fault};
use crate::live::memory::OfProcess;
use crate::proc::{self, Mapped};
use crate::refusal;
use crate::sys::Pid;
use crate::trouble::Result;
use crate::witness;

const ABOUT: &str = "process";
/// In the auxiliary vector: the program gained rights when it was started.
const AT_SECURE: u64 = 23;

/// Fails where the process may not be looked into: then nothing can be told.
pub fn look(pid: Pid, library: Option<&Path>) -> Result<Vec<Check>> {
    let name = proc::name(pid);
    let mappings = match proc::mappings(pid) {
        Ok(mappings) if !mappings.is_empty() => mappings,
        Ok(_) => {
            let text = format!(
                "process {pid} ({name}) has no memory of its own: a thread of the kernel, or it has ended"
            );
            return Ok(vec![Check::bad(ABOUT, text)]);
        }
        Err(error) => return Err(refusal::of_reading(pid, &error)),
    };
    let files = proc::files_of(&mappings);
    let (ours, others): (Vec<&String>, Vec<&String>) =
        files.iter().partition(|path| has_prairie(pid, path, &mappings));
    let mut checks = Vec::new();
    for path in &ours {
        checks.push(Check::good(ABOUT, format!("{name} has prairie in {path}")));
        if path.ends_with(" (deleted)") {
            let text = "that file has been replaced since; the process has the old one";
            checks.push(Check::note(ABOUT, text).fix("restart it for the new one"));
        }
    }
    if ours.is_empty() {
        checks.extend(why_not(pid, &name, library));
    }
    let others = others.into_iter().map(|path| file_name(path));
    let others: Vec<&str> = others.filter(|other| witness::is_allocator(other)).collect();
    for other in &others {
        checks.push(Check::note(
            ABOUT,
            format!("it has {other} too; whoever was loaded first answers"),
        ));
    }
    if !ours.is_empty() {
        checks.extend(before_ours(pid, &ours, !others.is_empty()));
    }
    Ok(checks)
}

/// Who answers malloc in a process that has prairie in it. A library that LD_PRELOAD names need not
/// have been loaded.
fn before_ours(pid: Pid, ours: &[&String], has_others: bool) -> Vec<Check> {
    let executable = proc::executable(pid);
    let is_ours = |file: PathBuf| ours.iter().any(|path| Path::new(path) == file);
    if fs::read_link(&executable).is_ok_and(is_ours) {
        return Vec::new();
    }
    let mut checks = program::of_contents(&executable).checks;
    let is_prairie =
        |name: &str| name.starts_with("libprairie") || ours.iter().any(|o| file_name(o) == name);
    let preload = preload_of(pid).filter(|_| has_others).unwrap_or_default();
    if let Some(other) = others_before_one(&preload, is_prairie).first() {
        let text = format!("{other} comes before prairie in LD_PRELOAD, and answers malloc");
        checks.push(Check::bad(ABOUT, text).fix("put libprairie.so in front"));
    }
    checks
}

/// By the note that prairie leaves in each file that it is in, whatever that is called; by the name
/// where memory may not be read.
fn has_prairie(pid: Pid, path: &str, mappings: &[Mapped]) -> bool {
    let of_file: Vec<Mapped> = mappings.iter().filter(|m| m.path == path).cloned().collect();
    match map::find(&OfProcess(proc::living(pid)), &of_file) {
        Ok(maps) if !maps.is_empty() => true,
        // The note is there, and its map is of another version.
        Err(Fault::Wrong(_)) => true,
        Ok(_) | Err(Fault::Read(_)) => file_name(path).starts_with("libprairie"),
    }
}

/// The likeliest cause first.
fn why_not(pid: Pid, name: &str, library: Option<&Path>) -> Vec<Check> {
    let missing = format!("{name} has no libprairie.so among its files");
    let bad = |why: &str, fix: &str| vec![Check::bad(ABOUT, format!("{missing}: {why}")).fix(fix)];
    match elf::read(&proc::executable(pid)).ok().flatten().map(|elf| elf.loader) {
        Some(Loader::None) => return bad("it is a static program", "link it with libprairie.a"),
        Some(Loader::Unread) => {
            let why = "it is a program of another word size or byte order";
            return bad(why, "use a library of the program's own architecture");
        }
        _ => {}
    }
    if is_secure(&proc::auxiliary(pid)) {
        return bad(
            "it gained rights when it was started (set-uid, capabilities), so the loader ignored LD_PRELOAD",
            "start it as the user that it becomes, or name the library in /etc/ld.so.preload",
        );
    }
    let Some(preload) = preload_of(pid) else {
        let path = library.unwrap_or(Path::new("/usr/local/lib/libprairie.so")).display();
        return bad(
            "LD_PRELOAD is not set in its environment (sudo, su and services begin with a clean one)",
            &format!("prairie run -- program; for a service Environment=LD_PRELOAD={path}"),
        );
    };
    let Some(told) = preload.split([':', ' ']).find(|path| path.contains("libprairie")) else {
        return bad(&format!("LD_PRELOAD is {preload}"), "add libprairie.so to it, in front");
    };
    if told.contains('/') && !as_seen_by(pid, told).exists() {
        return bad(
            &format!("{told} is not there where it runs (a container, or a chroot)"),
            &format!("mount it: docker run -v {told}:{told}:ro, or copy it into the image"),
        );
    }
    if let Some(other) = others_before(&preload).first() {
        return bad(&format!("{other} comes before it"), "put libprairie.so in front");
    }
    bad(
        &format!("LD_PRELOAD names {told}, and the loader refused it or the program took it out"),
        "look for lines of ld.so in its log; try LD_DEBUG=libs",
    )
}

/// A path as the process names it: in its container, and from the folder that it is in.
fn as_seen_by(pid: Pid, path: &str) -> PathBuf {
    let place = PathBuf::from(format!("/proc/{}", proc::living(pid)));
    match path.strip_prefix('/') {
        Some(rest) => place.join("root").join(rest.trim_start_matches('/')),
        None => place.join("cwd").join(path),
    }
}

fn preload_of(pid: Pid) -> Option<String> {
    let variables = proc::environment(pid);
    let (_, value) = variables.into_iter().find(|(name, _)| name == "LD_PRELOAD")?;
    Some(value).filter(|value| !value.is_empty())
}

/// Pairs of words: a kind and a value.
fn is_secure(auxiliary: &[u8]) -> bool {
    auxiliary.chunks_exact(16).any(|pair| {
        let word = |at: usize| u64::from_ne_bytes(pair[at..at + 8].try_into().expect("8 bytes"));
        word(0) == AT_SECURE && word(8) != 0
    })
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn said_of(command: &mut Command) -> Check {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // It answers once the loader is done.
        let mut byte = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
        let checks = look(child.id() as Pid, None).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        checks.into_iter().next().unwrap()
    }

    fn shell() -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo; read line"]).env_remove("LD_PRELOAD");
        command
    }

    #[test]
    fn a_process_without_the_variable_is_told_so() {
        let check = said_of(&mut shell());
        assert!(check.says.contains("LD_PRELOAD is not set"), "{check:?}");
    }

    #[test]
    fn a_path_that_is_not_there_is_told() {
        let check = said_of(shell().env("LD_PRELOAD", "/no/libprairie.so").stderr(Stdio::null()));
        assert!(check.says.contains("/no/libprairie.so is not there where it runs"), "{check:?}");
        assert!(check.fix.unwrap().contains("docker run -v /no/libprairie.so"));
    }

    #[test]
    fn rights_that_were_gained_are_seen() {
        let pair = |kind: u64, value: u64| [kind.to_ne_bytes(), value.to_ne_bytes()].concat();
        assert!(is_secure(&[pair(6, 4096), pair(23, 1)].concat()));
        assert!(!is_secure(&[pair(23, 0), pair(0, 0)].concat()));
    }

    #[test]
    fn who_is_not_there_is_told() {
        let refused = look(Pid::MAX, None).unwrap_err();
        assert_eq!(refused.to_string(), "there is no process 2147483647");
    }
}
