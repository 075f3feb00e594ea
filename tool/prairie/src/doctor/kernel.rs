//! What the kernel and its settings mean for prairie here.
// SPDX-License-Identifier: MIT

use std::fs;

use super::check::Check;
use super::group;
use crate::machine;
use crate::sys::{self, Pid};
use crate::units;

const ABOUT: &str = "kernel";
/// The kernel's own default.
const MAPPINGS: u64 = 65_530;

pub fn look(pid: Option<Pid>) -> Vec<Check> {
    let machine = machine::describe();
    let release = &machine.kernel;
    let mut checks = vec![Check::good(ABOUT, format!("Linux {release}, {}", machine.architecture))];
    checks.push(page_size(sys::page_bytes()));
    checks.push(huge_pages(&machine.transparent_huge_pages));
    checks.extend(number("/proc/sys/vm/overcommit_memory").map(overcommit));
    checks.extend(number("/proc/sys/vm/max_map_count").map(mappings));
    let place = pid.map_or("self".to_owned(), |pid| pid.to_string());
    let limits = fs::read_to_string(format!("/proc/{place}/limits")).unwrap_or_default();
    checks.extend(address_space(&limits));
    checks.extend(group::look(pid).map(|found| found.check(ABOUT)));
    checks
}

fn page_size(bytes: u64) -> Check {
    let text = format!("pages of {}", units::bytes(bytes as f64));
    match bytes {
        4096 | 16384 | 65536 => Check::good(ABOUT, format!("{text}, found when a program starts")),
        _ => Check::note(ABOUT, format!("{text}: prairie is tested with 4, 16 and 64 KiB")),
    }
}

fn huge_pages(word: &str) -> Check {
    let text = format!("transparent huge pages: {word}");
    match word {
        "always" => Check::note(ABOUT, format!("{text}; other parts of a program may grow by them"))
            .fix("if resident memory is too high: thp:never, or madvise in /sys/kernel/mm/transparent_hugepage/enabled"),
        "never" => Check::note(ABOUT, format!("{text}; large heaps have more TLB misses"))
            .fix("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"),
        _ => Check::good(ABOUT, text),
    }
}

fn overcommit(mode: u64) -> Check {
    match mode {
        0 => Check::good(ABOUT, "overcommit: heuristic"),
        1 => Check::good(ABOUT, "overcommit: always"),
        _ => Check::note(ABOUT, "overcommit: strict (2); opened memory counts against the limit")
            .fix("nothing to do: what is only reserved does not count; retain:false gives the rest back"),
    }
}

fn mappings(most: u64) -> Check {
    let text = format!("up to {most} mappings for a process");
    if most >= MAPPINGS {
        return Check::good(ABOUT, text);
    }
    Check::note(ABOUT, text).fix(format!("sysctl vm.max_map_count={MAPPINGS}"))
}

fn address_space(limits: &str) -> Option<Check> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let soft = line.split_whitespace().next()?;
    let bytes: f64 = soft.parse().ok()?;
    let text = format!("the address space is limited to {} (ulimit -v)", units::bytes(bytes));
    Some(
        Check::note(ABOUT, text + "; a malloc and free then take a fifth longer")
            .fix("ulimit -v unlimited"),
    )
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[test]
    fn settings_are_judged() {
        assert_eq!(page_size(4096).state, State::Good);
        assert_eq!(page_size(8192).state, State::Note);
        assert_eq!(huge_pages("madvise").state, State::Good);
        assert!(huge_pages("always").fix.is_some());
        assert_eq!(overcommit(0).state, State::Good);
        assert_eq!(overcommit(2).state, State::Note);
        assert_eq!(mappings(1000).fix.unwrap(), "sysctl vm.max_map_count=65530");
    }

    #[test]
    fn a_limit_of_the_address_space_is_read() {
        let limits = "Max data size             unlimited            unlimited            bytes\n\
                      Max address space         1073741824           unlimited            bytes\n";
        assert!(address_space(limits).unwrap().says.contains("1.00 GiB"));
        let without = limits.replace("1073741824", "unlimited ");
        assert!(address_space(&without).is_none());
    }
}
