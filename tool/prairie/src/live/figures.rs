//! What is counted of a heap.
// SPDX-License-Identifier: MIT

use serde::{Deserialize, Serialize};

/// Takes of a kind of lock so far; those that found it held; of these, those that slept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    pub taken: u64,
    pub contended: u64,
    pub waits: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    pub size: u64,
    pub blocks: u64,
    pub cached_blocks: u64,
    pub allocated: u64,
    pub cached: u64,
    pub slabs: u64,
    pub slab_bytes: u64,
    /// Blocks that came from slabs so far.
    pub taken: u64,
    pub slabs_opened: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arena {
    pub number: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub manual: bool,
    pub threads: u64,
    /// Pages of slabs and of its own large blocks.
    pub active: u64,
    /// In its slabs, that are not free there: held by the program, or ready in caches.
    pub out_of_slabs: u64,
    /// Ready in its depots.
    pub depots: u64,
    /// Free pages in its stocks.
    pub stocks: u64,
    pub lock: Lock,
}

/// Bytes, unless it is a number of something. The names are those of the metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    pub release: String,
    pub allocated: u64,
    pub active: u64,
    pub resident: u64,
    pub mapped: u64,
    pub retained: u64,
    pub dirty: u64,
    pub cached: u64,
    pub metadata: u64,
    pub large_allocated: u64,
    pub large_blocks: u64,
    pub large_taken: u64,
    pub threads: u64,
    pub purged: u64,
    pub purges: u64,
    pub refills: u64,
    pub overflows: u64,
    pub depot_trades: u64,
    pub run_leases: u64,
    pub run_returns: u64,
    pub arena_hops: u64,
    pub background_looks: u64,
    pub uptime_seconds: u64,
    pub lock_arenas: Lock,
    pub lock_runs: Lock,
    pub lock_meta: Lock,
    /// 0: there is none.
    pub limit_hard: u64,
    pub limit_soft: u64,
    /// What it holds now.
    pub reserve: u64,
    pub hardened: bool,
    /// Structs that changed each time they were copied: their figures are of several moments.
    pub moving: u32,
    pub classes: Vec<Class>,
    pub arenas: Vec<Arena>,
}
