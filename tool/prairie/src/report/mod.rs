//! What people read: blocks of text and tables, shown as Markdown or on the terminal.
// SPDX-License-Identifier: MIT

mod cells;
pub mod chart;
mod header;
pub mod html;
pub mod json;
pub mod list;
pub mod page;
pub mod picture;
pub mod render;
pub mod single;
pub mod suite;

use crate::allocator::Absent;
use crate::analysis::Analysis;
use crate::machine::Machine;
use crate::suite::Suite;

/// All that the result of one comparison consists of.
pub struct Result<'a> {
    pub analysis: &'a Analysis<'a>,
    pub suites: &'a [Suite],
    pub machine: &'a Machine,
    pub date: String,
    pub seed: u64,
    /// What to type to get these runs again.
    pub again: String,
    pub rounds: String,
    pub quick: bool,
    pub instructions: bool,
    /// Index of the allocator whose lead is told, and of the one whose figures are 1.
    pub subject: usize,
    pub baseline: usize,
    pub absent_allocators: &'a [Absent],
    pub absent_workloads: &'a [Absent],
    pub notes: Vec<String>,
}

impl Result<'_> {
    pub fn name(&self, allocator: usize) -> &str {
        &self.analysis.allocators[allocator].name
    }

    pub fn subject_name(&self) -> &str {
        self.name(self.subject)
    }

    fn allocator_indices(&self) -> std::ops::Range<usize> {
        0..self.analysis.allocators.len()
    }

    fn item_indices(&self) -> std::ops::Range<usize> {
        0..self.analysis.items.len()
    }
}

pub enum Block {
    Heading(String),
    Text(String),
    List(Vec<String>),
    Table(Table),
}

pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// So many columns are text, which stands on the left; figures stand on the right.
    pub text_columns: usize,
}
