//! Settings of other allocators that stand in the environment: prairie reads none of them, and has an
//! option for most.
// SPDX-License-Identifier: MIT

use super::check::Check;
use crate::proc;
use crate::sys::Pid;

const ABOUT: &str = "environment";

/// A variable of another allocator.
struct Foreign {
    name: &'static str,
    whose: &'static str,
    /// What to do instead; a star stands for the variable's value.
    instead: &'static str,
}

const fn foreign(name: &'static str, whose: &'static str, instead: &'static str) -> Foreign {
    Foreign { name, whose, instead }
}

const GLIBC: &str = "the C library";
const MIMALLOC: &str = "mimalloc";
const TCMALLOC: &str = "tcmalloc";
const PREFIXED: &str = "a jemalloc with that prefix";
const AS_MALLOC_CONF: &str = "MALLOC_CONF=*";
const NOTHING: &str = "nothing to do: take it out of the environment";

/// The tables of docs/switching.md, as far as they are about variables.
const FOREIGN: &[Foreign] = &[
    foreign("MALLOC_ARENA_MAX", GLIBC, "MALLOC_CONF=narenas:*"),
    foreign("MALLOC_ARENA_TEST", GLIBC, NOTHING),
    foreign("MALLOC_TRIM_THRESHOLD_", GLIBC, "nothing to do: memory goes back by itself"),
    foreign("MALLOC_TOP_PAD_", GLIBC, NOTHING),
    foreign("MALLOC_MMAP_THRESHOLD_", GLIBC, NOTHING),
    foreign("MALLOC_MMAP_MAX_", GLIBC, NOTHING),
    foreign("MALLOC_PERTURB_", GLIBC, "MALLOC_CONF=junk:true"),
    foreign("MALLOC_CHECK_", GLIBC, "preload a checking flavour (docs/errors.md)"),
    foreign("MALLOC_TRACE", GLIBC, "prairie run --profile"),
    foreign("_RJEM_MALLOC_CONF", PREFIXED, AS_MALLOC_CONF),
    foreign("JE_MALLOC_CONF", PREFIXED, AS_MALLOC_CONF),
    foreign("MIMALLOC_SHOW_STATS", MIMALLOC, "PRAIRIE_CONF=stats_print:true"),
    foreign("MIMALLOC_VERBOSE", MIMALLOC, "PRAIRIE_CONF=confirm_conf:true"),
    foreign("MIMALLOC_PURGE_DELAY", MIMALLOC, "PRAIRIE_CONF=dirty_decay_ms:*"),
    foreign("MIMALLOC_ALLOW_THP", MIMALLOC, "PRAIRIE_CONF=thp:never, if it is 0"),
    foreign("MIMALLOC_ALLOW_LARGE_OS_PAGES", MIMALLOC, "PRAIRIE_CONF=thp:always is the nearest"),
    foreign("MIMALLOC_RESERVE_HUGE_OS_PAGES", MIMALLOC, "PRAIRIE_CONF=thp:always is the nearest"),
    foreign("TCMALLOC_HEAP_LIMIT_MB", TCMALLOC, "PRAIRIE_CONF=limit_hard:N, in bytes"),
    foreign(
        "TCMALLOC_RELEASE_RATE",
        TCMALLOC,
        "PRAIRIE_CONF=dirty_decay_ms:N, less for a higher rate",
    ),
    foreign("TCMALLOC_AGGRESSIVE_DECOMMIT", TCMALLOC, "PRAIRIE_CONF=dirty_decay_ms:0"),
    foreign(
        "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES",
        TCMALLOC,
        "PRAIRIE_CONF=tcache_max:N bounds the size of what threads keep",
    ),
    foreign("TCMALLOC_SAMPLE_PARAMETER", TCMALLOC, "PRAIRIE_CONF=lg_prof_sample:N, a power of two"),
    foreign("MALLOCSTATS", TCMALLOC, "PRAIRIE_CONF=stats_print:true"),
    foreign("HEAPPROFILE", TCMALLOC, "PRAIRIE_CONF=prof:true,prof_final:true,prof_prefix:*"),
    foreign("HEAPCHECK", TCMALLOC, "PRAIRIE_CONF=prof:true,prof_leak_error:true"),
];

/// What only some of its words are about.
const TUNABLES: Foreign = foreign("GLIBC_TUNABLES", GLIBC, "for hugetlb=1 PRAIRIE_CONF=thp:always");
const TUNABLES_OF_MALLOC: &str = "glibc.malloc.";

/// Of a process, or of this command, from which a program would inherit them.
pub fn look(pid: Option<Pid>) -> Vec<Check> {
    let variables = match pid {
        Some(pid) => proc::environment(pid),
        None => own(),
    };
    variables.iter().filter_map(|(name, value)| check(name, value)).collect()
}

fn own() -> Vec<(String, String)> {
    let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect()
}

fn check(name: &str, value: &str) -> Option<Check> {
    let is_tunable = name == TUNABLES.name && value.contains(TUNABLES_OF_MALLOC);
    let found = FOREIGN.iter().find(|one| one.name == name);
    let Foreign { whose, instead, .. } = found.or(is_tunable.then_some(&TUNABLES))?;
    let text = format!("{name}={value} is for {whose}; prairie does not read it");
    Some(Check::note(ABOUT, text).fix(instead.replace('*', value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_of_another_allocator_is_named_with_what_does_the_same() {
        let check = check("MALLOC_ARENA_MAX", "2").unwrap();
        assert_eq!(check.says, "MALLOC_ARENA_MAX=2 is for the C library; prairie does not read it");
        assert_eq!(check.fix.as_deref(), Some("MALLOC_CONF=narenas:2"));
    }

    #[test]
    fn only_tunables_of_malloc_are_settings_of_an_allocator() {
        assert!(check("GLIBC_TUNABLES", "glibc.pthread.rseq=0").is_none());
        assert!(check("GLIBC_TUNABLES", "glibc.pthread.rseq=0:glibc.malloc.hugetlb=1").is_some());
    }

    #[test]
    fn what_prairie_reads_is_no_stranger() {
        for name in ["MALLOC_CONF", "PRAIRIE_CONF", "PATH"] {
            assert!(check(name, "narenas:2").is_none(), "{name}");
        }
    }

    /// Each variable stands in the page for who switches.
    #[test]
    fn the_page_about_switching_has_them() {
        let page = include_str!("../../../../docs/switching.md");
        for one in FOREIGN.iter().filter(|one| one.instead != NOTHING) {
            assert!(page.contains(one.name), "{}", one.name);
        }
    }
}
