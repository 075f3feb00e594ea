//! The report on one program: a row for each allocator.
// SPDX-License-Identifier: MIT

use crate::analysis::Metric;
use crate::stats::{Ratio, Verdict};

use super::{Block, Result, Table, cells, header};

pub fn blocks(result: &Result) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(format!(
        "Allocators compared on: {}",
        result.analysis.items[0].workload.command.join(" ")
    ))];
    blocks.extend(header::blocks(result));
    blocks.push(Block::Table(if result.instructions { counts(result) } else { table(result) }));
    if result.allocator_indices().len() > 1 {
        let baseline = result.name(result.baseline);
        let legend = cells::legend(result);
        blocks.push(Block::Text(format!("×: the medians by those of {baseline}. {legend}")));
    }
    blocks.extend(header::missing(result));
    blocks.extend(verdict(result).map(Block::Text));
    blocks
}

fn table(result: &Result) -> Table {
    let metrics = [
        ("wall", Metric::Wall, true),
        ("cpu", Metric::Cpu, true),
        ("peak memory", Metric::Peak, true),
        ("memory × time", Metric::Area, false),
        ("faults", Metric::Faults, false),
        ("switches", Metric::Switches, false),
    ];
    let mut columns = vec!["allocator".to_owned()];
    for (name, metric, with_ratio) in metrics {
        columns.push(name.into());
        if metric == Metric::Wall {
            columns.push("spread".into());
        }
        if with_ratio {
            columns.push("×".into());
        }
    }
    let rows = by_time(result).into_iter().map(|allocator| {
        let mut row = vec![result.name(allocator).to_owned()];
        for (_, metric, with_ratio) in metrics {
            row.push(cells::median(result, 0, allocator, metric));
            if metric == Metric::Wall {
                let middle = result.analysis.middle(0, allocator, metric);
                row.push(middle.map_or(cells::NONE.into(), |middle| cells::spread(&middle)));
            }
            if with_ratio {
                row.push(ratio_to_baseline(result, allocator, metric));
            }
        }
        row
    });
    let rows = rows.collect();
    Table { columns, rows, text_columns: 1 }
}

fn counts(result: &Result) -> Table {
    let rows = by_time(result).into_iter().map(|allocator| {
        vec![
            result.name(allocator).to_owned(),
            cells::median(result, 0, allocator, Metric::Time),
            ratio_to_baseline(result, allocator, Metric::Time),
        ]
    });
    let columns = ["allocator", "instructions", "×"].map(str::to_owned).to_vec();
    Table { columns, rows: rows.collect(), text_columns: 1 }
}

fn ratio_to_baseline(result: &Result, allocator: usize, metric: Metric) -> String {
    if allocator == result.baseline {
        return "1".to_owned();
    }
    cells::ratio(result.analysis.ratio(0, allocator, result.baseline, metric))
}

/// The fastest first; those that failed come last.
fn by_time(result: &Result) -> Vec<usize> {
    let mut order: Vec<usize> = result.allocator_indices().collect();
    let median = |allocator: &usize| {
        let middle = result.analysis.middle(0, *allocator, Metric::Time);
        middle.map_or(f64::INFINITY, |middle| middle.median)
    };
    order.sort_by(|a, b| median(a).total_cmp(&median(b)));
    order
}

/// The lead in one sentence, for whoever reads no tables.
pub fn verdict(result: &Result) -> Option<String> {
    let is_single = result.suites.is_empty();
    if !is_single || result.instructions || result.subject == result.baseline {
        return None;
    }
    let ratio = |metric| result.analysis.ratio(0, result.subject, result.baseline, metric);
    let (subject, baseline) = (result.subject_name(), result.name(result.baseline));
    sentence(subject, baseline, ratio(Metric::Wall)?, ratio(Metric::Peak)?)
}

/// What is no difference that can be claimed is not called the same either.
fn sentence(subject: &str, baseline: &str, wall: Ratio, peak: Ratio) -> Option<String> {
    let time = match wall.verdict() {
        Verdict::Less => {
            format!(
                "{} times faster than {baseline}",
                cells::ratio_with_interval(Some(wall.inverse()))
            )
        }
        Verdict::More => {
            format!("{} times slower than {baseline}", cells::ratio_with_interval(Some(wall)))
        }
        Verdict::NoDifference => {
            format!("neither clearly faster nor clearly slower than {baseline}")
        }
        Verdict::Unknown => return None,
    };
    let memory = match peak.verdict() {
        Verdict::NoDifference => "no clear difference in peak memory".to_owned(),
        _ => format!("{} of its peak memory", cells::ratio_with_interval(Some(peak))),
    };
    Some(format!("{subject} was {time}, with {memory}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_claimed_is_not_said() {
        let of = |ours: f64, spread: f64| {
            let rounds = |middle| (0..9).map(|i| middle + spread * f64::from(i % 3)).collect();
            let (ours, theirs): (Vec<f64>, Vec<f64>) = (rounds(ours), rounds(1.0));
            Ratio::of_medians(&ours, &theirs, 1).unwrap()
        };
        assert_eq!(
            sentence("prairie", "glibc", of(1.0, 0.1), of(1.0, 0.1)).unwrap(),
            "prairie was neither clearly faster nor clearly slower than glibc, \
             with no clear difference in peak memory."
        );
        assert_eq!(
            sentence("prairie", "glibc", of(0.5, 0.0), of(2.0, 0.0)).unwrap(),
            "prairie was 2.00 times faster than glibc, with 2.00 of its peak memory."
        );
    }
}
