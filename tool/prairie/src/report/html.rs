//! The whole result as one page: the verdict, pictures, tables that can be sorted, and the raw data.
// SPDX-License-Identifier: MIT

use crate::analysis::Metric;
use crate::record::Run;
use crate::stats::{Mean, Verdict};

use super::{Block, Result, Table, cells, chart, json, page, picture};

/// More pictures of memory over time tell less.
const CURVES_MAX: usize = 8;
/// Raw data beyond this is left out of the page, so that it stays below 2 MB.
const DATA_BYTES_MAX: usize = 1_200_000;

pub fn text(result: &Result, blocks: &[Block], runs: &[Run]) -> String {
    let (title, rest) = match blocks.split_first() {
        Some((Block::Heading(title), rest)) => (title.as_str(), rest),
        _ => ("Allocators compared", blocks),
    };
    let mut body = format!("<h1>{}</h1>\n", page::escaped(title));
    let lead = super::single::verdict(result);
    if let Some(lead) = &lead {
        body += &format!("<p class=\"lead\">{}</p>\n", page::escaped(lead));
    }
    body += &pictures(result, runs);
    let is_said =
        |block: &&Block| matches!(block, Block::Text(text) if Some(text) == lead.as_ref());
    body += &rest.iter().filter(|block| !is_said(block)).map(block).collect::<String>();
    if result.item_indices().len() == 1 && !result.instructions {
        body += "<h2>All figures</h2>\n";
        body += &page::table(&details(result));
        body += "<p>Intervals are of 95 %, by a bootstrap over rounds. “No significant difference” \
                 means that the interval of the ratio of medians contains 1.</p>\n";
    }
    body += &format!(
        "<h2>Again</h2>\n<p>The same order of runs: <code>{}</code></p>\n",
        page::escaped(&result.again)
    );
    body += &data(result, runs);
    page::html(title, &body)
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading(text) => format!("<h2>{}</h2>\n", page::escaped(text)),
        Block::Text(text) => format!("<p>{}</p>\n", page::escaped(text)),
        Block::List(lines) => {
            let lines = lines.iter().map(|line| format!("<li>{}</li>\n", page::escaped(line)));
            format!("<ul>\n{}</ul>\n", lines.collect::<String>())
        }
        Block::Table(table) => page::table(table),
    }
}

fn pictures(result: &Result, runs: &[Run]) -> String {
    let mut figures = Vec::new();
    if result.item_indices().len() == 1 {
        for (metric, caption) in [
            (Metric::Time, "Time: median of the rounds, and the middle half of them"),
            (Metric::Peak, "Peak memory of all processes together: median, and the middle half"),
        ] {
            if result.instructions && metric == Metric::Peak {
                continue;
            }
            figures.extend(chart::bars(result, 0, metric).map(|svg| (svg, caption.to_owned())));
        }
    }
    for workload in result.item_indices() {
        if figures.len() >= CURVES_MAX {
            break;
        }
        let name = &result.analysis.items[workload].workload.name;
        let caption =
            format!("{name}: resident memory over time, of the run nearest to the median");
        figures.extend(chart::curves(result, workload, runs).map(|svg| (svg, caption)));
    }
    if result.item_indices().len() > 1
        && let Ok(svg) = picture::svg(result)
    {
        figures.insert(0, (svg, "Time against memory, all workloads".to_owned()));
    }
    let figure = |(svg, caption): &(String, String)| {
        let caption = page::escaped(caption);
        format!("<figure class=\"drawn\">{svg}<figcaption>{caption}</figcaption></figure>\n")
    };
    let figures: String = figures.iter().map(figure).collect();
    if figures.is_empty() { figures } else { format!("<div class=\"figures\">\n{figures}</div>\n") }
}

/// Every metric under every allocator, with its means, medians and what may be claimed.
fn details(result: &Result) -> Table {
    let metrics = [
        ("wall", Metric::Wall),
        ("cpu", Metric::Cpu),
        ("peak memory", Metric::Peak),
        ("memory × time", Metric::Area),
        ("faults", Metric::Faults),
        ("switches", Metric::Switches),
    ];
    let baseline = result.name(result.baseline);
    let mut columns: Vec<String> = ["measured", "allocator"].map(str::to_owned).to_vec();
    columns.push(format!("against {baseline}"));
    columns.extend(
        ["n", "mean", "interval", "median", "lowest", "highest", "ratio"].map(str::to_owned),
    );
    let mut rows = Vec::new();
    for (name, metric) in metrics {
        for allocator in result.allocator_indices() {
            let values = result.analysis.values(0, allocator, metric);
            let Some(mean) = Mean::of(&values, result.seed) else { continue };
            let figure = |value: f64| cells::figure(result, 0, metric, value);
            let interval = match (mean.low, mean.high) {
                (Some(low), Some(high)) => format!("{} to {}", figure(low), figure(high)),
                _ => cells::NONE.to_owned(),
            };
            let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
            let highest = values.iter().copied().fold(0.0, f64::max);
            let median = result.analysis.middle(0, allocator, metric).map_or(0.0, |m| m.median);
            let ratio = result.analysis.ratio(0, allocator, result.baseline, metric);
            let (claim, ratio) = if allocator == result.baseline {
                (cells::NONE.to_owned(), "1".to_owned())
            } else {
                let verdict = ratio.map_or(Verdict::Unknown, |ratio| ratio.verdict());
                (claim(verdict).to_owned(), cells::ratio_with_interval(ratio))
            };
            let mut row = vec![name.to_owned(), result.name(allocator).to_owned(), claim];
            row.extend([values.len().to_string(), figure(mean.mean), interval]);
            row.extend([figure(median), figure(lowest), figure(highest), ratio]);
            rows.push(row);
        }
    }
    Table { columns, rows, text_columns: 3 }
}

fn claim(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Less => "less",
        Verdict::More => "more",
        Verdict::NoDifference => "no significant difference",
        Verdict::Unknown => "too few rounds",
    }
}

fn data(result: &Result, runs: &[Run]) -> String {
    let runs = chart::with_one_curve(runs);
    let mut text = json::text(result, &runs);
    let mut note = "";
    if text.len() > DATA_BYTES_MAX {
        text = json::text(result, &[]);
        note = "<p>The single runs are too many for this page: <code>--json FILE</code> writes them.</p>\n";
    }
    let button = page::download("all data", "compare.json", "application/json", &text);
    format!("<h2>Raw data</h2>\n{note}{button}")
}
