//! Above every table: when, where, with which allocators, and what is missing.
// SPDX-License-Identifier: MIT

use crate::allocator::Absent;

use super::{Block, Result};

pub fn blocks(result: &Result) -> Vec<Block> {
    let mut text = format!(
        "{}. {}. {}, all allocators in each round, order shuffled with seed {}.",
        result.date,
        result.machine.line(),
        result.rounds,
        result.seed
    );
    if result.quick {
        text += " Quick: fewer rounds and less work, good for a first look only.";
    }
    if result.instructions {
        text += " Time is the number of instructions, counted by callgrind.";
    }
    let mut blocks = vec![Block::Text(text), Block::List(allocators(result))];
    let mut notes = result.notes.clone();
    notes.extend(result.machine.warning().filter(|_| !result.instructions));
    if !notes.is_empty() {
        blocks.push(Block::List(notes));
    }
    blocks
}

fn allocators(result: &Result) -> Vec<String> {
    let present = result.analysis.allocators.iter().map(|allocator| {
        let mut text = format!("{}: {}", allocator.name, allocator.label);
        if let (Some(path), Some(sum)) = (&allocator.path, &allocator.sha256) {
            text += &format!(", {path}, sha256 {}", &sum[..12.min(sum.len())]);
        } else {
            text += ", no preload";
        }
        for (name, value) in &allocator.env {
            text += &format!(", {name}={value}");
        }
        text
    });
    let absent = result.absent_allocators.iter();
    let absent = absent.map(|absent| format!("{}: absent: {}", absent.name, absent.reason));
    present.chain(absent).collect()
}

/// Workloads that did not run, and cells that do not count.
pub fn missing(result: &Result) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut failures = Vec::new();
    for workload in result.item_indices() {
        for allocator in result.allocator_indices() {
            if let Some(failure) = result.analysis.failure(workload, allocator) {
                failures.push(format!(
                    "{} under {}: {} in {} {}: {}",
                    result.analysis.items[workload].workload.name,
                    result.name(allocator),
                    failure.outcome.text(),
                    failure.count,
                    if failure.count == 1 { "run" } else { "runs" },
                    failure.reason
                ));
            }
        }
    }
    if !failures.is_empty() {
        blocks.push(Block::Heading("Failures: these cells count nowhere".into()));
        blocks.push(Block::List(failures));
    }
    if !result.absent_workloads.is_empty() {
        let line = |absent: &Absent| format!("{}: {}", absent.name, absent.reason);
        blocks.push(Block::Heading("Workloads that could not run here".into()));
        blocks.push(Block::List(result.absent_workloads.iter().map(line).collect()));
    }
    blocks
}
