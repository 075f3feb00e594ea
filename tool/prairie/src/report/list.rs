//! What could be run: the answer to `prairie compare --list`.
// SPDX-License-Identifier: MIT

use crate::allocator::{Absent, Allocator};
use crate::bench::Item;
use crate::plan::Plan;

use super::{Block, Table};

pub fn blocks(plan: &Plan, allocators: &[Allocator], absent: &[Absent]) -> Vec<Block> {
    let columns = ["workload", "group", "rounds", "threads", "here", "stresses"];
    let here = plan.items.iter().map(|item| row(item, "yes"));
    let missing = plan.missing.iter().map(|(item, _)| row(item, "no"));
    let table = Table {
        columns: columns.map(str::to_owned).to_vec(),
        rows: here.chain(missing).collect(),
        text_columns: columns.len(),
    };
    let mut blocks = vec![Block::Heading("Workloads".into()), Block::Table(table)];
    if !plan.missing.is_empty() {
        blocks.push(Block::List(plan.absent().iter().map(reason).collect()));
    }
    let present = allocators.iter().map(|a| format!("{}: {}", a.name, a.label));
    blocks.push(Block::Heading("Allocators".into()));
    blocks.push(Block::List(present.chain(absent.iter().map(reason)).collect()));
    blocks
}

fn row(item: &Item, here: &str) -> Vec<String> {
    let workload = &item.workload;
    vec![
        workload.name.clone(),
        workload.group.clone(),
        item.rounds.to_string(),
        workload.threads.to_string(),
        here.to_owned(),
        workload.what.clone(),
    ]
}

fn reason(absent: &Absent) -> String {
    format!("{}: absent: {}", absent.name, absent.reason)
}
