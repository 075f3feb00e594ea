//! Takes a profile of a process that runs: it is made to call `mallctl("prof.dump")`, which may be
//! called anywhere, even in the middle of another call.
// SPDX-License-Identifier: MIT

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use object::{Object, ObjectSegment, ObjectSymbol};

use super::inject::{self, Argument};
use super::profile::Profile;
use super::sparse;
use crate::live::sample::Target;
use crate::proc::{self, Mapped};
use crate::refusal;
use crate::sys::{Pid, Undisturbed};
use crate::trouble::{About, Result, Trouble};

/// Only prairie has this one.
const MARK: &str = "prairie_version";
const FUNCTION: &str = "mallctl";
/// It makes a profile of pprof, which tells builds apart.
const FILE: &str = "heap.pb.gz";

pub fn take(pid: Pid) -> Result<Profile> {
    refusal::require(pid)?;
    // Who ends the tool meanwhile ends it when the file in there is gone.
    let undisturbed = Undisturbed::begin();
    let function = function(pid)?;
    let about = fs::metadata(format!("/proc/{pid}")).about(format!("process {pid}"))?;
    let temporary = root(pid).join("tmp");
    let folder = tempfile::Builder::new().prefix(&format!("prairie-{pid}-")).tempdir_in(&temporary);
    let folder = folder.about(temporary.display())?;
    // The process writes into it, whoever we are.
    let _ = chown(folder.path(), Some(about.uid()), Some(about.gid()));
    let name = folder.path().file_name().unwrap_or_default();
    let inside = Path::new("/tmp").join(name).join(FILE);
    let path = format!("{}\0", inside.display());
    let arguments = [
        Argument::Bytes(b"prof.dump\0"),
        Argument::Number(0),
        Argument::Number(0),
        Argument::PointerTo(path.as_bytes()),
        Argument::Number(size_of::<usize>() as u64),
    ];
    let answer = inject::call(&undisturbed, pid, function, &arguments)
        .map_err(|error| refusal::of_attaching(pid, &error))?;
    match answer as i32 {
        0 => {
            let mut profile = super::read(&folder.path().join(FILE))?;
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
            Err(Trouble::new(format!("process {pid} writes a profile just now")).hint("try again"))
        }
        error => {
            Err(Trouble::new(format!("process {pid}: {}", io::Error::from_raw_os_error(error))))
        }
    }
}

/// Files as the process sees them, in its container.
pub fn root(pid: Pid) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/root"))
}

/// Where prairie's mallctl lies in the process.
fn function(pid: Pid) -> Result<u64> {
    let mappings = proc::mappings(pid).map_err(|error| refusal::of_reading(pid, &error))?;
    let is_library = |path: &str| path.rsplit('/').next().unwrap_or("").contains("prairie");
    let program = mappings.iter().find(|mapped| mapped.path.starts_with('/'));
    let paths = mappings.iter().map(|mapped| mapped.path.as_str()).filter(|path| is_library(path));
    for path in paths.chain(program.map(|mapped| mapped.path.as_str())) {
        let file = fs::read(root(pid).join(path.trim_start_matches('/')));
        if let Ok(bytes) = file
            && let Some(found) = in_file(&bytes, path, &mappings)
        {
            return Ok(found);
        }
    }
    Err(Trouble::new(format!("process {pid} does not run on prairie"))
        .hint(format!("`prairie doctor --pid {pid}` tells why")))
}

fn in_file(bytes: &[u8], path: &str, mappings: &[Mapped]) -> Option<u64> {
    let file = object::File::parse(bytes).ok()?;
    let find = |name: &str| {
        let mut all = file.dynamic_symbols().chain(file.symbols());
        all.find(|symbol| symbol.is_definition() && symbol.name() == Ok(name))
    };
    find(MARK)?;
    let linked = find(FUNCTION)?.address();
    let in_file = file.segments().find_map(|segment| {
        let (start, length) = segment.file_range();
        let within = linked.checked_sub(segment.address())?;
        (within < length).then_some(start + within)
    })?;
    let holds = |mapped: &&Mapped| {
        mapped.path == path && (mapped.offset..mapped.offset + mapped.length()).contains(&in_file)
    };
    mappings.iter().find(holds).map(|mapped| mapped.start + in_file - mapped.offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_prairie_is_refused() {
        let refused = take(std::process::id() as Pid).unwrap_err().to_string();
        assert!(refused.contains("does not run on prairie"), "{refused}");
        assert!(take(Pid::MAX).unwrap_err().to_string().starts_with("there is no process"));
    }
}
