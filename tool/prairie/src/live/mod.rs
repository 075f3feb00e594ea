//! Looks at processes that run, from outside: nothing is stopped, signalled or written to.
//!
//! - `memory` reads another process, `map` finds prairie's map in it, `count` counts the heap by it:
//!   `figures`
//! - `process` is what the kernel says of a process, `strip` which of the heap's pages are resident
//! - `sample` is all of it at one moment, which can be kept and read again
//! - `text`, `metrics` are two ways to write a sample; the third is its JSON
//! - `stats` and `exporter` are verbs
// SPDX-License-Identifier: MIT

pub mod count;
pub mod exporter;
pub mod figures;
pub mod map;
pub mod memory;
pub mod metrics;
pub mod process;
pub mod sample;
pub mod stats;
pub mod strip;
pub mod text;
