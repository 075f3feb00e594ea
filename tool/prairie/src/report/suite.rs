//! The report on suites: a summary, the subject against the best of the others, a table a metric.
// SPDX-License-Identifier: MIT

use crate::analysis::{Metric, Standing};

use super::{Block, Result, Table, cells, header};

/// `full`: with a table for each metric.
pub fn blocks(result: &Result, full: bool) -> Vec<Block> {
    let names: Vec<&str> = result.suites.iter().map(|suite| suite.name.as_str()).collect();
    let mut blocks = vec![Block::Heading(format!("Allocators compared: {}", names.join(", ")))];
    blocks.extend(
        result
            .suites
            .iter()
            .filter(|s| !s.what.is_empty())
            .map(|suite| Block::Text(format!("{}: {}", suite.name, suite.what))),
    );
    blocks.extend(header::blocks(result));
    blocks.extend(summary(result));
    blocks.extend(leads(result));
    if full {
        blocks.extend(tables(result));
    }
    blocks.extend(header::missing(result));
    blocks
}

fn summary(result: &Result) -> Vec<Block> {
    let subject = result.subject_name();
    let mut columns = vec!["allocator", "time"];
    if !result.instructions {
        columns.extend(["peak memory", "memory × time"]);
    }
    columns.push("fastest on");
    if !result.instructions {
        columns.push("leanest on");
    }
    columns.extend(["workloads", "failed"]);
    let rows = result.allocator_indices().map(|allocator| {
        let overall = result.analysis.overall(allocator, result.subject);
        let mut row = vec![overall.allocator.clone(), cells::mean(overall.time)];
        if !result.instructions {
            row.extend([cells::mean(overall.peak), cells::mean(overall.area)]);
        }
        row.push(overall.fastest_on.to_string());
        if !result.instructions {
            row.push(overall.leanest_on.to_string());
        }
        row.extend([overall.workload_count.to_string(), overall.failed_on.to_string()]);
        row
    });
    let table = Table {
        rows: rows.collect(),
        columns: columns.into_iter().map(str::to_owned).collect(),
        text_columns: 1,
    };
    let mut standings = vec![standing(result, "time", Metric::Time)];
    if !result.instructions {
        standings.push(standing(result, "peak memory", Metric::Peak));
        standings.push(standing(result, "memory × time", Metric::Area));
    }
    vec![
        Block::Heading("Summary".into()),
        Block::Text(format!(
            "Geometric means over the workloads on which both were right, {subject} = 1; above 1 \
             is slower or larger than {subject}."
        )),
        Block::Table(table),
        Block::List(standings),
    ]
}

fn standing(result: &Result, name: &str, metric: Metric) -> String {
    let subject = result.subject_name();
    let standing: Standing = result.analysis.standing(result.subject, metric);
    let (all, best) = match result.analysis.has_chosen_peers(metric) {
        true => ("all memory peers", "the best memory peer"),
        false => ("all others", "the best other"),
    };
    let mut text = format!(
        "{subject}, {name}: ahead of {all} on {} of {} workloads (clearly on {}), clearly behind \
         {best} on {}",
        standing.ahead_of_all,
        standing.workload_count,
        standing.clearly_ahead_of_all,
        standing.clearly_behind_one
    );
    if let Some(mean) = standing.against_best {
        text += &format!("; {mean:.3} of {best} on each, by geometric mean");
    }
    if let Some((workload, ratio)) = standing.worst {
        text += &format!("; at worst {ratio:.2}, on {workload}");
    }
    text + "."
}

/// The subject against whoever is best on each workload.
fn leads(result: &Result) -> Vec<Block> {
    let subject = result.subject_name();
    let mut columns = vec!["workload".to_owned(), "fastest other".into(), "its time".into()];
    columns.extend([
        format!("{subject}'s"),
        if result.instructions { "ratio" } else { "ratio (95 % interval)" }.into(),
    ]);
    if !result.instructions {
        let leanest = match result.analysis.has_chosen_peers(Metric::Peak) {
            true => "leanest memory peer",
            false => "leanest other",
        };
        columns.extend([leanest.into(), "its peak".into()]);
        columns.extend([format!("{subject}'s"), "ratio".into()]);
    }
    let rows = result.item_indices().map(|workload| {
        let mut row = vec![result.analysis.items[workload].workload.name.clone()];
        row.extend(lead_cells(result, workload, Metric::Time));
        if !result.instructions {
            row.extend(lead_cells(result, workload, Metric::Peak));
        }
        row
    });
    let text = format!(
        "{subject} by the other's figure; below 1, {subject} is ahead. {}",
        cells::legend(result)
    );
    vec![
        Block::Heading(format!("{subject} against the best other on each workload")),
        Block::Text(text),
        Block::Table(Table { rows: rows.collect(), columns, text_columns: 1 }),
    ]
}

fn lead_cells(result: &Result, workload: usize, metric: Metric) -> [String; 4] {
    let own = cells::median(result, workload, result.subject, metric);
    let Some(lead) = result.analysis.lead(workload, result.subject, metric) else {
        return [cells::NONE.into(), cells::NONE.into(), own, cells::NONE.into()];
    };
    let ratio = match metric {
        Metric::Time => cells::ratio_with_interval(Some(lead.ratio)),
        _ => cells::ratio(Some(lead.ratio)),
    };
    let other = cells::median(result, workload, lead.peer, metric);
    [result.name(lead.peer).to_owned(), other, own, ratio]
}

fn tables(result: &Result) -> Vec<Block> {
    let subject = result.subject_name();
    let mut blocks = vec![
        Block::Heading("All figures".into()),
        Block::Text(format!(
            "{subject}: the median itself. Others: their medians by {subject}'s, so that above 1 is \
             worse than {subject}; the figure itself where {subject} has none."
        )),
    ];
    if result.instructions {
        blocks.extend(table(result, "Instructions", Metric::Time));
        return blocks;
    }
    let metrics = [
        ("Time", Metric::Time),
        ("Peak resident memory", Metric::Peak),
        ("Resident memory over time", Metric::Area),
        ("Page faults", Metric::Faults),
        ("Context switches", Metric::Switches),
    ];
    blocks.extend(metrics.into_iter().flat_map(|(title, metric)| table(result, title, metric)));
    blocks
}

/// The subject's own figure, then each allocator's by the subject's.
fn table(result: &Result, title: &str, metric: Metric) -> Vec<Block> {
    let subject = result.subject_name();
    let others: Vec<usize> = result.allocator_indices().filter(|a| *a != result.subject).collect();
    let mut columns = vec!["workload".to_owned()];
    if metric == Metric::Time {
        columns.push("measured".into());
    }
    let text_columns = columns.len();
    columns.push(subject.to_owned());
    columns.extend(others.iter().map(|other| format!("{} ×", result.name(*other))));
    let rows = result.item_indices().map(|workload| {
        let mut row = vec![result.analysis.items[workload].workload.name.clone()];
        if metric == Metric::Time {
            row.push(measured(result, workload));
        }
        row.push(cells::median(result, workload, result.subject, metric));
        row.extend(others.iter().map(|other| relative(result, workload, *other, metric)));
        row
    });
    vec![
        Block::Heading(title.to_owned()),
        Block::Table(Table { rows: rows.collect(), columns, text_columns }),
    ]
}

fn relative(result: &Result, workload: usize, other: usize, metric: Metric) -> String {
    if let Some(failure) = result.analysis.failure(workload, other) {
        return cells::failure(failure);
    }
    match result.analysis.ratio(workload, other, result.subject, metric) {
        Some(ratio) => cells::ratio(Some(ratio)),
        None => cells::median(result, workload, other, metric),
    }
}

/// What a workload's time is.
fn measured(result: &Result, workload: usize) -> String {
    let definition = &result.analysis.items[workload].workload;
    match (&definition.figure, result.instructions) {
        (_, true) => "instructions".to_owned(),
        (Some(figure), _) if figure.higher_is_better => format!("{} (more is better)", figure.name),
        (Some(figure), _) => figure.name.clone(),
        (None, _) => format!("{:?}", definition.clock).to_lowercase(),
    }
}
