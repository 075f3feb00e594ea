//! What is kept of each run: the raw data under every table.
// SPDX-License-Identifier: MIT

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::callgrind::InAllocator;
use crate::measure::Measured;
use crate::suite::{Clock, Workload};
use crate::witness::Seen;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Right,
    /// The result is not what it should be.
    Wrong,
    Crashed,
    TimedOut,
    /// Another allocator served it than the one to be measured.
    NotServed,
}

impl Outcome {
    pub fn text(self) -> &'static str {
        match self {
            Outcome::Right => "right",
            Outcome::Wrong => "WRONG",
            Outcome::Crashed => "CRASHED",
            Outcome::TimedOut => "TIMED OUT",
            Outcome::NotServed => "NOT SERVED",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reported {
    pub value: f64,
    pub unit: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Run {
    pub workload: usize,
    pub allocator: usize,
    /// From 1; 0 is a warm-up.
    pub round: u32,
    pub outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub exit_code: Option<i32>,
    #[serde(serialize_with = "shortened")]
    pub stdout_sha256: String,
    pub wall_s: f64,
    pub user_s: f64,
    pub system_s: f64,
    pub peak_bytes: u64,
    pub byte_seconds: f64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub voluntary_switches: u64,
    pub forced_switches: u64,
    /// Exact, from callgrind, when asked for; the clocks then mean nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// What of them the allocator spent, with all that it called, and how often it was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_allocator: Option<InAllocator>,
    /// A run for counting calls; its clocks mean nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub counts_calls: bool,
    /// Seconds, and resident bytes, when asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<(f64, u64)>,
    /// What the program wrote to $PRAIRIE_FIGURES.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, Reported>,
    pub processes_at_once: usize,
    #[serde(skip_serializing_if = "is_zero")]
    pub left_behind: usize,
    pub looks: u64,
    pub seen: Seen,
}

/// Enough to tell results apart.
fn shortened<S: Serializer>(sum: &str, serializer: S) -> Result<S::Ok, S::Error> {
    const DIGITS: usize = 16;
    serializer.serialize_str(sum.get(..DIGITS).unwrap_or(sum))
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Run {
    pub fn of(workload: usize, allocator: usize, round: u32, measured: &Measured) -> Run {
        let usage = &measured.usage;
        Run {
            workload,
            allocator,
            round,
            outcome: Outcome::Right,
            reason: None,
            exit_code: None,
            stdout_sha256: String::new(),
            wall_s: measured.wall_s,
            user_s: usage.user_s,
            system_s: usage.system_s,
            peak_bytes: measured.peak_bytes,
            byte_seconds: measured.byte_seconds,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            voluntary_switches: usage.voluntary_switches,
            forced_switches: usage.forced_switches,
            instructions: None,
            in_allocator: None,
            counts_calls: false,
            series: Vec::new(),
            figures: BTreeMap::new(),
            processes_at_once: measured.process_count_max,
            left_behind: measured.left_behind,
            looks: measured.look_count,
            seen: measured.seen.clone(),
        }
    }

    pub fn fail(&mut self, outcome: Outcome, reason: impl Into<String>) {
        if self.outcome == Outcome::Right {
            self.outcome = outcome;
            self.reason = Some(reason.into());
        }
    }

    /// What the workload calls its time, less being better; None if the program did not report it.
    pub fn cost(&self, workload: &Workload) -> Option<f64> {
        if let Some(instructions) = self.instructions {
            return Some(instructions as f64);
        }
        match (&workload.figure, workload.clock) {
            (Some(figure), _) => {
                let value = self.figures.get(&figure.name)?.value;
                Some(if figure.higher_is_better { 1.0 / value } else { value })
            }
            (None, Clock::Cpu) => Some(self.user_s + self.system_s),
            (None, Clock::Wall) => Some(self.wall_s),
        }
    }
}

/// The figure of the library that counts calls. Each process of a run has one, and they add up.
pub const CALLS: &str = "calls";

/// The lines `name value unit` of a file of figures; the first that is not one is the error. Of a name
/// that comes again the last one counts.
pub fn read_figures(text: &str) -> Result<BTreeMap<String, Reported>, String> {
    let mut figures = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_ascii_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        let value = words.next().and_then(|word| word.parse::<f64>().ok());
        let Some(value) = value.filter(|value| value.is_finite()) else {
            return Err(format!("PRAIRIE_FIGURES: '{line}' is not 'name value unit'"));
        };
        let unit = words.collect::<Vec<_>>().join(" ");
        let before = figures.get(CALLS).filter(|_| name == CALLS);
        let value = value + before.map_or(0.0, |before: &Reported| before.value);
        figures.insert(name, Reported { value, unit });
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_name_value_and_unit() {
        let figures = read_figures("rate 12.5 k/s\n\nlocks 3\n").unwrap();
        assert_eq!(figures["rate"], Reported { value: 12.5, unit: "k/s".into() });
        assert_eq!(figures["locks"], Reported { value: 3.0, unit: String::new() });
    }

    #[test]
    fn calls_of_several_processes_add_up() {
        let figures = read_figures("calls 3\nrate 1\ncalls 40\nrate 2\n").unwrap();
        assert_eq!((figures["calls"].value, figures["rate"].value), (43.0, 2.0));
    }

    #[test]
    fn a_line_that_is_no_figure_is_told() {
        for text in ["rate", "rate fast", "rate nan s"] {
            assert!(read_figures(text).unwrap_err().contains(text));
        }
    }
}
