//! Takes a profile of a process that runs: it is made to call `mallctl("prof.dump")`, which may be
//! called anywhere, even in the middle of another call.
// SPDX-License-Identifier: MIT

use std::io;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSegment, ObjectSymbol};

use super::handover::Handover;
use super::inject::{self, Argument};
use super::profile::Profile;
use super::sparse;
use crate::live::sample::Target;
use crate::live::text::printable;
use crate::proc::{self, Mapped, Status};
use crate::refusal;
use crate::regular;
use crate::sys::{Pid, Undisturbed};
use crate::trouble::{About, Result, Trouble};

/// Only prairie has this one.
const MARK: &str = "prairie_version";
/// A program of Rust has the first only.
const FUNCTIONS: [&str; 2] = ["prairie_mallctl", "mallctl"];
/// Behind the name of a file that is no longer there, or is another one by now.
const DELETED: &str = " (deleted)";

pub fn take(pid: Pid) -> Result<Profile> {
    refusal::require(pid)?;
    require_running(pid)?;
    // Who ends the tool meanwhile ends it when the file in there is gone.
    let undisturbed = Undisturbed::begin();
    let function = function(pid)?;
    let handover = Handover::with(pid)?;
    let path = format!("{}\0", handover.path());
    let arguments = [
        Argument::Bytes(b"prof.dump\0"),
        Argument::Number(0),
        Argument::Number(0),
        Argument::PointerTo(path.as_bytes()),
        Argument::Number(size_of::<usize>() as u64),
    ];
    let answer = inject::call(&undisturbed, proc::living(pid), function, &arguments)
        .map_err(|error| refusal::of_attaching(pid, &error))?;
    match answer as i32 {
        0 => {
            let bytes = handover.read().about(format!("the profile of process {pid}"))?;
            let mut profile = super::parse(&bytes)?;
            // An older prairie, or one that may not be read, tells nothing of its slabs.
            let sample = Target::new(pid).ok().and_then(|mut target| target.sample(0));
            if let Some(figures) = sample.and_then(|sample| sample.figures) {
                sparse::add(&mut profile, &figures.classes);
            }
            Ok(profile)
        }
        libc::ENOENT => Err(Trouble::new(format!("process {pid} runs on prairie, unprofiled"))
            .hint("start it with `prairie run --profile --`, or PRAIRIE_CONF=prof:true")),
        libc::EFAULT => {
            Err(Trouble::new(format!("process {pid} could not write its profile to its /tmp"))
                .hint("is there room, and may it write there? Or it writes another one just now"))
        }
        error => {
            Err(Trouble::new(format!("process {pid}: {}", io::Error::from_raw_os_error(error))))
        }
    }
}

/// A thread that is stopped may hold a lock of the heap, for which the one that is made to call would
/// wait as long as it is.
fn require_running(pid: Pid) -> Result<()> {
    let is_stopped = |status: &Status| status.is_of_stopped() && status.number("Threads") > Some(1);
    match Status::of(proc::living(pid)).filter(is_stopped) {
        Some(_) => Err(Trouble::new(format!("process {pid} is stopped"))
            .hint(format!("let it go on: kill -CONT {pid}"))),
        None => Ok(()),
    }
}

/// Files as the process sees them, in its container.
pub fn root(pid: Pid) -> PathBuf {
    PathBuf::from(format!("/proc/{}/root", proc::living(pid)))
}

/// Where prairie's mallctl lies in the process.
fn function(pid: Pid) -> Result<u64> {
    let mappings = proc::mappings(pid).map_err(|error| refusal::of_reading(pid, &error))?;
    let is_library = |path: &str| path.rsplit('/').next().unwrap_or("").contains("prairie");
    let program = mappings.iter().find(|mapped| mapped.is_file());
    let libraries = mappings.iter().filter(|mapped| is_library(&mapped.path));
    let mut gone = None;
    for mapped in libraries.chain(program) {
        match file(pid, mapped) {
            Some(bytes) => {
                if let Some(found) = in_file(&bytes, &mapped.path, &mappings) {
                    return Ok(found);
                }
            }
            None => gone = gone.or(mapped.path.strip_suffix(DELETED)),
        }
    }
    let is_on_prairie = || Target::new(pid).is_ok_and(|target| target.is_on_prairie());
    match gone {
        Some(path) => Err(replaced(pid, path)),
        None if is_on_prairie() => Err(Trouble::new(format!(
            "process {pid} has prairie within, but no symbol tells where its mallctl is"
        ))
        .hint("let it write the profile itself (prof.dump), or do not strip it")),
        None => Err(Trouble::new(format!("process {pid} does not run on prairie"))
            .hint(format!("`prairie doctor --pid {pid}` tells why"))),
    }
}

/// As it is mapped, whatever has become of its name: that the kernel shows to root only. Else as it
/// is named now.
fn file(pid: Pid, mapped: &Mapped) -> Option<Vec<u8>> {
    let folder = format!("/proc/{}/map_files", proc::living(pid));
    let range = format!("{folder}/{:x}-{:x}", mapped.start, mapped.limit);
    let named = || regular::read(&root(pid).join(mapped.path.trim_start_matches('/')));
    regular::read(Path::new(&range)).or_else(|_| named()).ok()
}

fn replaced(pid: Pid, path: &str) -> Trouble {
    Trouble::new(format!("process {pid} runs {}, which was deleted or replaced", printable(path)))
        .hint("only root can read the file that it still runs; or start the program anew")
}

fn in_file(bytes: &[u8], path: &str, mappings: &[Mapped]) -> Option<u64> {
    let file = object::File::parse(bytes).ok()?;
    let find = |name: &str| {
        let mut all = file.dynamic_symbols().chain(file.symbols());
        all.find(|symbol| symbol.is_definition() && symbol.name() == Ok(name))
    };
    find(MARK)?;
    let linked = FUNCTIONS.iter().find_map(|name| find(name))?.address();
    let in_file = file.segments().find_map(|segment| {
        let (start, length) = segment.file_range();
        let within = linked.checked_sub(segment.address())?;
        (within < length).then(|| start.checked_add(within)).flatten()
    })?;
    let mut ours = mappings.iter().filter(|mapped| mapped.path == path);
    ours.find_map(|mapped| {
        let within = in_file.checked_sub(mapped.offset)?;
        (within < mapped.length()).then(|| mapped.start + within)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::compiled::compiled;

    #[test]
    fn who_is_stopped_with_its_threads_is_refused() {
        let script = "import threading, time\n\
            threading.Thread(target=time.sleep, args=(60,)).start()\n\
            print(flush=True)\ntime.sleep(60)\n";
        let mut python = Command::new("python3");
        let mut child = python.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let pid = child.id() as Pid;
        let mut status = 0;
        // SAFETY: numbers, and a place for the answer.
        unsafe {
            libc::kill(pid, libc::SIGSTOP);
            libc::waitpid(pid, &mut status, libc::WUNTRACED);
        }
        let said = take(pid).unwrap_err();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(said.to_string(), format!("process {pid} is stopped"));
        assert_eq!(said.hint_text().unwrap(), format!("let it go on: kill -CONT {pid}"));
    }

    /// The file is the process's, which may have put anything there.
    #[test]
    fn a_place_that_no_file_has_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let text = "void prairie_version(void) { } void prairie_mallctl(void) { }";
        let made = compiled(folder.path().join("lib.so"), text, &["-shared", "-fPIC"]);
        let Some(library) = made else { return };
        let mut bytes = fs::read(library).unwrap();
        let mapped = |offset| Mapped {
            start: 1 << 20,
            limit: (1 << 20) + bytes.len() as u64,
            is_readable: true,
            is_code: true,
            offset,
            path: "/lib.so".into(),
        };
        let mappings = [mapped(u64::MAX), mapped(0)];
        assert!(in_file(&bytes, "/lib.so", &mappings).is_some());
        // The places in the file of all parts; 64 bits.
        let count = usize::from(u16::from_le_bytes([bytes[56], bytes[57]]));
        for entry in bytes[64..64 + 56 * count].chunks_exact_mut(56) {
            entry[8..16].copy_from_slice(&(u64::MAX - 1).to_le_bytes());
        }
        assert_eq!(in_file(&bytes, "/lib.so", &mappings), None);
    }

    #[test]
    fn a_process_without_prairie_is_refused() {
        let refused = take(std::process::id() as Pid).unwrap_err().to_string();
        assert!(refused.contains("does not run on prairie"), "{refused}");
        assert!(take(Pid::MAX).unwrap_err().to_string().starts_with("there is no process"));
    }
}
