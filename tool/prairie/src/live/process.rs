//! What the kernel says of a process.
// SPDX-License-Identifier: MIT

use std::fs;

use crate::family;
use crate::proc::{self, Mapped};
use crate::sys::{self, Pid};

/// Beginnings of the names of the C library's files, and who its allocator is.
const C_LIBRARIES: &[(&str, &str)] =
    &[("ld-musl", "musl"), ("libc.so.6", "glibc"), ("libc-2", "glibc")];

/// Of a process's name, as the kernel keeps it.
const NAME_BYTES: usize = 15;

/// Who serves a program with these files, as far as names tell: the C library's allocator is named
/// only where no other one is there.
pub fn allocator_among(mappings: &[Mapped]) -> &'static str {
    let names = || mappings.iter().filter_map(|mapping| mapping.path.rsplit('/').next());
    let in_c_library = |(start, _): &&(&str, &str)| names().any(|name| name.starts_with(start));
    let of_c_library = || C_LIBRARIES.iter().find(in_c_library).map(|(_, allocator)| *allocator);
    family::allocator_among(names()).or_else(of_c_library).unwrap_or("unknown")
}

/// What the kernel counts, in bytes but for the threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kernel {
    pub resident: u64,
    pub swapped: u64,
    pub threads: u64,
}

/// None: there is no such process, or it has ended.
pub fn kernel(pid: Pid) -> Option<Kernel> {
    proc::Status::of(pid).filter(|status| !status.is_of_ended())?;
    let status = proc::Status::of(proc::living(pid))?;
    let number = |name: &str| status.number(name).unwrap_or(0);
    Some(Kernel {
        resident: number("VmRSS") * 1024,
        swapped: number("VmSwap") * 1024,
        threads: number("Threads"),
    })
}

/// Every process that there is now, in order.
pub fn all() -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut pids: Vec<Pid> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

/// The kernel keeps fifteen bytes of a name, which may end within a letter.
pub fn is_called(name: &str, wanted: &str) -> bool {
    let kept = name.trim_end_matches(char::REPLACEMENT_CHARACTER);
    let is_cut = kept.len() < name.len() || name.len() == NAME_BYTES;
    name == wanted || (is_cut && wanted.len() > NAME_BYTES && wanted.starts_with(kept))
}

pub fn is_own(pid: Pid) -> bool {
    pid == sys::own_pid()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
00400000-00401000 r--p 00000000 08:01 1    /usr/bin/some program
00401000-00402000 r-xp 00001000 08:01 1    /usr/bin/some program
7f000000-7f001000 rw-p 00000000 00:00 0 
7f100000-7f101000 r--p 00000000 08:01 2    /opt/libprairie.so.0 (deleted)
7f200000-7f201000 r--p 00000000 08:01 3    /lib/libc.so.6
7f300000-7f301000 r-xp 00000000 00:00 0    [vdso]
";

    #[test]
    fn the_allocator_is_told_by_its_file() {
        let mut mappings: Vec<Mapped> = MAPS.lines().filter_map(Mapped::of).collect();
        assert_eq!(allocator_among(&mappings), "prairie");
        mappings.remove(3);
        assert_eq!(allocator_among(&mappings), "glibc");
        mappings.remove(3);
        assert_eq!(allocator_among(&mappings), "unknown");
    }

    #[test]
    fn names_are_cut_off_by_the_kernel() {
        assert!(is_called("sort", "sort") && !is_called("sort", "sorting"));
        assert!(is_called("a-very-long-nam", "a-very-long-name-indeed"));
        assert!(!is_called("a-very-long-nam", "another-very-long-name"));
        // Eight letters of two bytes each are one byte too many.
        assert!(is_called("програм\u{fffd}", "программа"));
        assert!(!is_called("програм\u{fffd}", "програм"));
    }

    #[test]
    fn this_process_has_pages_and_threads() {
        let own = kernel(sys::own_pid()).unwrap();
        assert!(own.resident > 1 << 20 && own.threads >= 1);
        assert_eq!(kernel(Pid::MAX), None);
        assert!(all().contains(&sys::own_pid()));
    }
}
