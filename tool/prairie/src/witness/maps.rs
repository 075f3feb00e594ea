//! What the maps of a process prove.
// SPDX-License-Identifier: MIT

use std::path::Path;

use super::Verdict;
use crate::elf::{self, Loader};
use crate::family;
use crate::proc;
use crate::sys::Pid;

pub fn judge(library: &Path, files: &[String], maps: &mut proc::Maps, pid: Pid) -> Verdict {
    let has_library = |files: &[String]| files.iter().any(|file| Path::new(file) == library);
    let has_c_library =
        |files: &[String]| files.iter().any(|file| family::is_c_library(&file_name(file)));
    if has_library(files) {
        return Verdict::Served;
    }
    if has_c_library(files) {
        // The maps are read piece by piece, while the loader goes on: who has the C library at the
        // first reading has the other at the second, if ever.
        let again = maps.files();
        return match () {
            () if has_library(&again) => Verdict::Served,
            () if has_c_library(&again) => Verdict::NotServed,
            () => Verdict::NotSeen,
        };
    }
    // Nobody preloads into a program that asks for no loader. The loader itself may be about to
    // load another.
    let is_loader = |file: &String| file_name(file).starts_with("ld-");
    let is_static =
        || matches!(elf::read(&proc::executable(pid)), Ok(Some(elf)) if elf.loader == Loader::None);
    if !files.is_empty() && !files.iter().any(is_loader) && is_static() {
        // Of this very program, and not of one that took its place meanwhile.
        return if maps.files().is_empty() { Verdict::NotSeen } else { Verdict::NotServed };
    }
    Verdict::NotSeen
}

/// Whether a library of this name answers malloc.
pub fn is_allocator(name: &str) -> bool {
    family::allocator_in(name).is_some()
}

pub fn file_name(file: &str) -> String {
    Path::new(file).file_name().unwrap_or_default().to_string_lossy().into_owned()
}
