//! Settings in the environment that have no effect here: those of other allocators, for most of which
//! there is an option, and what MALLOC_CONF and PRAIRIE_CONF say in vain.
// SPDX-License-Identifier: MIT

use super::check::Check;
use crate::options;
use crate::proc;
use crate::sys::Pid;

const ABOUT: &str = "environment";

/// What does the same in prairie.
#[derive(Clone, Copy)]
enum Instead {
    Nothing,
    Always(&'static str),
    /// Where it is on: what is off there is off here.
    WhenOn(&'static str),
    WhenOff(&'static str),
    /// A star stands for the number.
    Number(&'static str),
    /// A star stands for the text.
    Text(&'static str),
}
use Instead::{Always, Nothing, Number, Text, WhenOff, WhenOn};

/// A setting of another allocator.
struct Foreign {
    name: &'static str,
    whose: &'static str,
    instead: Instead,
}

const fn foreign(name: &'static str, whose: &'static str, instead: Instead) -> Foreign {
    Foreign { name, whose, instead }
}

const GLIBC: &str = "the C library";
const MIMALLOC: &str = "mimalloc";
const TCMALLOC: &str = "tcmalloc";
const PREFIXED: &str = "a jemalloc with that prefix";

const ARENAS: Instead = Number("PRAIRIE_CONF=narenas:*");
const BY_ITSELF: Instead = Always("nothing to do: memory goes back by itself");
const JUNK: Instead = WhenOn("PRAIRIE_CONF=junk:true");
const CHECKS: Instead = WhenOn("preload a checking flavour (docs/errors.md)");
const STATS: Instead = WhenOn("PRAIRIE_CONF=stats_print:true");
const HUGE: Instead = WhenOn("PRAIRIE_CONF=thp:always is the nearest");

/// The tables of docs/switching.md, as far as they are about variables.
const VARIABLES: &[Foreign] = &[
    foreign("MALLOC_ARENA_MAX", GLIBC, ARENAS),
    foreign("MALLOC_ARENA_TEST", GLIBC, Nothing),
    foreign("MALLOC_TRIM_THRESHOLD_", GLIBC, BY_ITSELF),
    foreign("MALLOC_TOP_PAD_", GLIBC, Nothing),
    foreign("MALLOC_MMAP_THRESHOLD_", GLIBC, Nothing),
    foreign("MALLOC_MMAP_MAX_", GLIBC, Nothing),
    foreign("MALLOC_PERTURB_", GLIBC, JUNK),
    foreign("MALLOC_CHECK_", GLIBC, CHECKS),
    foreign("MALLOC_TRACE", GLIBC, Always("prairie run --profile")),
    foreign("_RJEM_MALLOC_CONF", PREFIXED, Text("MALLOC_CONF=*")),
    foreign("JE_MALLOC_CONF", PREFIXED, Text("MALLOC_CONF=*")),
    foreign("MIMALLOC_SHOW_STATS", MIMALLOC, STATS),
    foreign("MIMALLOC_VERBOSE", MIMALLOC, WhenOn("PRAIRIE_CONF=confirm_conf:true")),
    foreign("MIMALLOC_PURGE_DELAY", MIMALLOC, Number("PRAIRIE_CONF=dirty_decay_ms:*")),
    foreign("MIMALLOC_ALLOW_THP", MIMALLOC, WhenOff("PRAIRIE_CONF=thp:never")),
    foreign("MIMALLOC_ALLOW_LARGE_OS_PAGES", MIMALLOC, HUGE),
    foreign("MIMALLOC_RESERVE_HUGE_OS_PAGES", MIMALLOC, HUGE),
    foreign("TCMALLOC_HEAP_LIMIT_MB", TCMALLOC, Always("PRAIRIE_CONF=limit_hard:N, in bytes")),
    foreign(
        "TCMALLOC_RELEASE_RATE",
        TCMALLOC,
        Always("PRAIRIE_CONF=dirty_decay_ms:N, less for a higher rate, and -1 for 0"),
    ),
    foreign("TCMALLOC_AGGRESSIVE_DECOMMIT", TCMALLOC, WhenOn("PRAIRIE_CONF=dirty_decay_ms:0")),
    foreign(
        "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES",
        TCMALLOC,
        Always("PRAIRIE_CONF=tcache_max:N bounds the size of what threads keep"),
    ),
    foreign(
        "TCMALLOC_SAMPLE_PARAMETER",
        TCMALLOC,
        Always("PRAIRIE_CONF=lg_prof_sample:N, the logarithm of it"),
    ),
    foreign(
        "HEAP_PROFILE_ALLOCATION_INTERVAL",
        TCMALLOC,
        Always("PRAIRIE_CONF=lg_prof_interval:N, the logarithm of it"),
    ),
    foreign("MALLOCSTATS", TCMALLOC, STATS),
    foreign("HEAPPROFILE", TCMALLOC, Text("PRAIRIE_CONF=prof:true,prof_final:true,prof_prefix:*")),
    foreign("HEAPCHECK", TCMALLOC, WhenOn("PRAIRIE_CONF=prof:true,prof_leak_error:true")),
];

/// A variable of the C library that has many in it, between colons, of which those of malloc have this
/// prefix.
const TUNABLES: &str = "GLIBC_TUNABLES";
const OF_MALLOC: &str = "glibc.malloc.";
const MALLOC_TUNABLES: &[Foreign] = &[
    foreign("arena_max", GLIBC, ARENAS),
    foreign("trim_threshold", GLIBC, BY_ITSELF),
    foreign("perturb", GLIBC, JUNK),
    foreign("check", GLIBC, CHECKS),
    foreign("hugetlb", GLIBC, HUGE),
];

/// Of a process, or of this command, from which a program would inherit them.
pub fn look(pid: Option<Pid>) -> Vec<Check> {
    let variables = match pid {
        Some(pid) => proc::environment(pid),
        None => own(),
    };
    variables.iter().flat_map(|(name, value)| checks(name, value)).collect()
}

fn own() -> Vec<(String, String)> {
    let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect()
}

fn checks(name: &str, value: &str) -> Vec<Check> {
    if let Some(variable) = options::VARIABLES.iter().find(|variable| **variable == name) {
        return checks_of_options(variable, value);
    }
    if name == TUNABLES {
        return value.split(':').filter_map(check_of_tunable).collect();
    }
    let found = VARIABLES.iter().find(|one| one.name == name);
    found.and_then(|one| check(&format!("{name}={value}"), value, one)).into_iter().collect()
}

fn checks_of_options(variable: &'static str, value: &str) -> Vec<Check> {
    let (troubles, idle) = options::in_vain(variable, value);
    let mut checks: Vec<Check> = troubles
        .into_iter()
        .map(|text| Check::note(ABOUT, text).fix("`prairie options --all` lists what can be set"))
        .collect();
    if !idle.is_empty() {
        let keys = idle.join(", ");
        let text = format!("{variable}: understood, and without effect in prairie: {keys}");
        checks.push(
            Check::note(ABOUT, text).fix(format!("`prairie options {}` tells why", idle.join(" "))),
        );
    }
    checks
}

fn check_of_tunable(pair: &str) -> Option<Check> {
    let (name, value) = pair.strip_prefix(OF_MALLOC)?.split_once('=')?;
    let unknown = foreign("", GLIBC, Nothing);
    let found = MALLOC_TUNABLES.iter().find(|one| one.name == name).unwrap_or(&unknown);
    check(&format!("{pair} of {TUNABLES}"), value, found)
}

fn check(setting: &str, value: &str, foreign: &Foreign) -> Option<Check> {
    let is_off = matches!(value, "" | "0" | "f" | "false" | "n" | "no" | "off");
    let number = value.parse::<i64>().map_or("N", |_| value);
    let fix = match foreign.instead {
        Nothing => "nothing to do: take it out of the environment".to_owned(),
        Always(text) => text.to_owned(),
        WhenOn(text) if !is_off => text.to_owned(),
        WhenOff(text) if is_off && !value.is_empty() => text.to_owned(),
        WhenOn(_) | WhenOff(_) => return None,
        Number(text) => text.replace('*', number),
        Text(_) if value.is_empty() => return None,
        Text(text) => text.replace('*', value),
    };
    let text = format!("{setting} is for {}; prairie does not read it", foreign.whose);
    Some(Check::note(ABOUT, text).fix(fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fix(name: &str, value: &str) -> Option<String> {
        let mut checks = checks(name, value);
        assert!(checks.len() <= 1);
        checks.pop()?.fix
    }

    #[test]
    fn a_setting_of_another_allocator_is_named_with_what_does_the_same() {
        let check = &checks("MALLOC_ARENA_MAX", "2")[0];
        assert_eq!(check.says, "MALLOC_ARENA_MAX=2 is for the C library; prairie does not read it");
        assert_eq!(check.fix.as_deref(), Some("PRAIRIE_CONF=narenas:2"));
    }

    /// What comes out can be pasted.
    #[test]
    fn what_is_no_number_is_not_passed_on() {
        assert_eq!(fix("MALLOC_ARENA_MAX", "").as_deref(), Some("PRAIRIE_CONF=narenas:N"));
        assert_eq!(
            fix("MIMALLOC_PURGE_DELAY", "abc").as_deref(),
            Some("PRAIRIE_CONF=dirty_decay_ms:N")
        );
        assert_eq!(
            fix("MIMALLOC_PURGE_DELAY", "-1").as_deref(),
            Some("PRAIRIE_CONF=dirty_decay_ms:-1")
        );
        assert_eq!(fix("HEAPPROFILE", ""), None);
    }

    #[test]
    fn what_is_off_there_is_off_here() {
        for (name, value) in [
            ("MALLOC_PERTURB_", "0"),
            ("MALLOC_CHECK_", "0"),
            ("MALLOCSTATS", "0"),
            ("MIMALLOC_SHOW_STATS", "0"),
            ("MIMALLOC_VERBOSE", ""),
            ("MIMALLOC_ALLOW_THP", "1"),
            ("MIMALLOC_RESERVE_HUGE_OS_PAGES", "0"),
            ("TCMALLOC_AGGRESSIVE_DECOMMIT", "f"),
            ("HEAPCHECK", ""),
            ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=0"),
        ] {
            assert_eq!(fix(name, value), None, "{name}={value}");
        }
        assert_eq!(fix("MALLOC_PERTURB_", "165").as_deref(), Some("PRAIRIE_CONF=junk:true"));
        assert_eq!(fix("MIMALLOC_ALLOW_THP", "0").as_deref(), Some("PRAIRIE_CONF=thp:never"));
    }

    #[test]
    fn each_tunable_of_malloc_is_a_setting() {
        let checks = checks("GLIBC_TUNABLES", "glibc.malloc.arena_max=4:glibc.pthread.rseq=0");
        assert_eq!(checks.len(), 1);
        assert!(checks[0].says.starts_with("glibc.malloc.arena_max=4 of GLIBC_TUNABLES is for "));
        assert_eq!(checks[0].fix.as_deref(), Some("PRAIRIE_CONF=narenas:4"));
    }

    #[test]
    fn what_prairie_reads_is_no_stranger() {
        for name in ["MALLOC_CONF", "PRAIRIE_CONF", "PATH"] {
            assert!(checks(name, "narenas:2").is_empty(), "{name}");
        }
    }

    #[test]
    fn what_options_say_in_vain_is_told() {
        let checks = checks("MALLOC_CONF", "hpa:true,narenas:2,foo:1,muzzy_decay_ms:0");
        let said: Vec<&str> = checks.iter().map(|check| &*check.says).collect();
        assert_eq!(
            said,
            [
                "MALLOC_CONF: no option is called 'foo'",
                "MALLOC_CONF: understood, and without effect in prairie: muzzy_decay_ms, hpa"
            ]
        );
        let fix = "`prairie options muzzy_decay_ms hpa` tells why";
        assert_eq!(checks[1].fix.as_deref(), Some(fix));
    }

    /// Names of variables in the first column of the page's tables.
    fn variables_of_page() -> Vec<&'static str> {
        let page = include_str!("../../../../docs/switching.md");
        let page = page.split("\n## ").filter(|part| part.starts_with("From "));
        let is_upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let rows = page
            .flat_map(str::lines)
            .filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
        let words = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
        let names = words.map(|word| word.split('=').next().unwrap_or(word));
        names
            .filter(|name| name.len() > 5 && name.chars().all(is_upper))
            .filter(|name| !name.starts_with("M_"))
            .collect()
    }

    /// The page for who switches and this list have the same variables.
    #[test]
    fn the_page_about_switching_has_them() {
        let of_page = variables_of_page();
        for one in VARIABLES.iter().filter(|one| !matches!(one.instead, Nothing)) {
            let is_prefixed = one.whose == PREFIXED; // of which its text tells
            assert!(is_prefixed || of_page.contains(&one.name), "{}", one.name);
        }
        for name in of_page {
            let is_here = name == TUNABLES || VARIABLES.iter().any(|one| one.name == name);
            assert!(is_here, "{name}");
        }
    }
}
