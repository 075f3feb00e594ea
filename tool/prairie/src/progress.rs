//! Tells how far the rounds are: a bar on a terminal, a line now and then elsewhere.
// SPDX-License-Identifier: MIT

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::order::Step;
use crate::terminal;
use crate::units;

const LINE_EVERY: Duration = Duration::from_secs(20);

pub struct Progress {
    start: Instant,
    /// None: not a terminal.
    bar: Option<ProgressBar>,
    last_line: Option<Instant>,
    done: usize,
    total: usize,
    /// Seconds that a workload's runs took so far, and how many there were.
    spent: Vec<(f64, u32)>,
    /// Runs that are still to come, of each workload.
    left: Vec<u32>,
    quiet: bool,
}

impl Progress {
    pub fn new(steps: &[Step], workload_count: usize, quiet: bool) -> Progress {
        let mut left = vec![0; workload_count];
        steps.iter().for_each(|step| left[step.workload] += 1);
        let bar = (stderr().is_terminal() && !quiet).then(|| {
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len}  {wide_msg}");
            ProgressBar::new(steps.len() as u64).with_style(style.expect("a fixed template"))
        });
        Progress {
            start: Instant::now(),
            bar,
            last_line: None,
            done: 0,
            total: steps.len(),
            spent: vec![(0.0, 0); workload_count],
            left,
            quiet,
        }
    }

    pub fn begin(&mut self, step: &Step, workload: &str, allocator: &str) {
        let round = match step.round {
            0 => "warm-up".to_owned(),
            round => format!("round {round}"),
        };
        let rest = self.seconds_left().map(|s| format!(", about {} left", units::about(s)));
        let text = format!("{round}{}  {workload} / {allocator}", rest.unwrap_or_default());
        if let Some(bar) = &self.bar {
            bar.set_message(text);
            return;
        }
        let is_due = self.last_line.is_none_or(|last| last.elapsed() > LINE_EVERY);
        if is_due && !self.quiet {
            terminal::tell(&format!("run {} of {}: {text}", self.done + 1, self.total));
            self.last_line = Some(Instant::now());
        }
    }

    pub fn end(&mut self, step: &Step, seconds: f64) {
        let (sum, count) = &mut self.spent[step.workload];
        *sum += seconds;
        *count += 1;
        self.left[step.workload] -= 1;
        self.done += 1;
        if let Some(bar) = &self.bar {
            bar.set_position(self.done as u64);
        }
    }

    /// A line that stays.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| terminal::tell(text)),
            None => terminal::tell(text),
        }
    }

    pub fn finish(self) -> Duration {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
        self.start.elapsed()
    }

    /// From what each workload took; one that has not run yet is taken as an average one.
    fn seconds_left(&self) -> Option<f64> {
        let (sum, count) =
            self.spent.iter().fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        if count == 0 {
            return None;
        }
        let average = sum / f64::from(count);
        let each = |(sum, count): &(f64, u32)| match count {
            0 => average,
            _ => sum / f64::from(*count),
        };
        Some(self.spent.iter().zip(&self.left).map(|(s, left)| each(s) * f64::from(*left)).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_estimated_by_workload() {
        let step = |workload| Step { round: 1, workload, allocator: 0, counts_calls: false };
        let steps = [step(0), step(0), step(1), step(1)];
        let mut progress = Progress::new(&steps, 2, true);
        assert_eq!(progress.seconds_left(), None);
        progress.end(&step(0), 2.0);
        assert_eq!(progress.seconds_left(), Some(2.0 + 2.0 * 2.0));
        progress.end(&step(1), 10.0);
        assert_eq!(progress.seconds_left(), Some(2.0 + 10.0));
    }
}
