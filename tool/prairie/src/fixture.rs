//! Made-up allocators, workloads and runs for unit tests.
// SPDX-License-Identifier: MIT

use std::collections::BTreeMap;

use crate::allocator::Allocator;
use crate::measure::{End, Measured};
use crate::record::Run;
use crate::suite::Workload;
use crate::sys::{Ended, Usage};
use crate::witness::Seen;

pub fn allocator(name: &str) -> Allocator {
    Allocator {
        name: name.into(),
        label: format!("{name} 1.0"),
        version: Some("1.0".into()),
        path: None,
        sha256: None,
        env: BTreeMap::new(),
        workloads: Vec::new(),
        own_heap: false,
        calls_at_most: None,
        library: None,
    }
}

pub fn workload(name: &str) -> Workload {
    Workload { name: name.into(), ..Workload::of_command(vec!["program".into()]) }
}

pub fn measured(end: End) -> Measured {
    Measured {
        pid: 1,
        end,
        wall_s: 1.0,
        usage: Usage { user_s: 1.0, ..Usage::default() },
        peak_bytes: 1 << 20,
        byte_seconds: 1e6,
        look_count: 100,
        process_count_max: 1,
        left_behind: 0,
        series: Vec::new(),
        seen: Seen::default(),
    }
}

pub fn run(workload: usize, allocator: usize, round: u32) -> Run {
    let measured = measured(End::Itself(Ended::Exited(0)));
    Run { exit_code: Some(0), ..Run::of(workload, allocator, round, &measured) }
}
