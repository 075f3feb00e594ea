//! The raw data: every run, and all that is needed to repeat or to re-compute the tables.
// SPDX-License-Identifier: MIT

use serde::Serialize;
use serde_json::{Value, json};

use crate::analysis::Metric;
use crate::record::Run;

use super::Result;

/// Grows when a field changes its meaning; fields that are only added leave it as it is.
const SCHEMA: u32 = 1;

pub fn text(result: &Result, runs: &[Run]) -> String {
    let analysis = result.analysis;
    let standing = |metric| plain(&analysis.standing(result.subject, metric));
    let value = json!({
        "schema": SCHEMA,
        "tool": concat!("prairie ", env!("CARGO_PKG_VERSION")),
        "date": result.date,
        "machine": result.machine,
        "seed": result.seed,
        "quick": result.quick,
        "instructions": result.instructions,
        "subject": result.subject_name(),
        "baseline": result.name(result.baseline),
        "allocators": analysis.allocators,
        "absent_allocators": result.absent_allocators,
        "suites": result.suites.iter().map(|suite| json!({
            "name": suite.name,
            "what": suite.what,
        })).collect::<Vec<_>>(),
        "workloads": analysis.items.iter().map(|item| {
            let mut value = plain(&item.workload);
            value["suite"] = json!(item.suite);
            value["rounds"] = json!(item.rounds);
            value["scale"] = json!(item.scale);
            value
        }).collect::<Vec<_>>(),
        "absent_workloads": result.absent_workloads,
        "notes": result.notes,
        "summary": {
            "overall": result.allocator_indices()
                .map(|a| plain(&analysis.overall(a, result.subject))).collect::<Vec<_>>(),
            "standing": [standing(Metric::Time), standing(Metric::Peak), standing(Metric::Area)],
        },
        "cells": result.item_indices().flat_map(|workload| {
            result.allocator_indices().map(move |allocator| cell(result, workload, allocator))
        }).collect::<Vec<_>>(),
        "runs": runs.iter().map(|run| {
            let mut value = plain(run);
            value["workload"] = json!(analysis.items[run.workload].workload.name);
            value["suite"] = json!(analysis.items[run.workload].suite);
            value["allocator"] = json!(result.name(run.allocator));
            value
        }).collect::<Vec<_>>(),
    });
    laid_out(&value)
}

/// One line for each element of a list, one for each other field: short, and kind to diffs.
fn laid_out(value: &Value) -> String {
    let fields = value.as_object().into_iter().flatten().map(|(name, value)| match value {
        Value::Array(elements) if !elements.is_empty() => {
            let lines: Vec<String> =
                elements.iter().map(|e| format!("    {}", rounded(e))).collect();
            format!("  \"{name}\": [\n{}\n  ]", lines.join(",\n"))
        }
        value => format!("  \"{name}\": {}", rounded(value)),
    });
    format!("{{\n{}\n}}\n", fields.collect::<Vec<_>>().join(",\n"))
}

/// Six significant digits are more than any clock deserves.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = format!("{:.5e}", number.as_f64().unwrap_or(0.0));
            json!(text.parse::<f64>().unwrap_or(0.0))
        }
        Value::Array(elements) => elements.iter().map(rounded).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), rounded(value))).collect()
        }
        other => other.clone(),
    }
}

fn cell(result: &Result, workload: usize, allocator: usize) -> Value {
    let analysis = result.analysis;
    let mut value = json!({
        "workload": analysis.items[workload].workload.name,
        "suite": analysis.items[workload].suite,
        "allocator": result.name(allocator),
        "failure": analysis.failure(workload, allocator),
    });
    for metric in [
        Metric::Time,
        Metric::Wall,
        Metric::Cpu,
        Metric::Peak,
        Metric::Area,
        Metric::Faults,
        Metric::Switches,
    ] {
        let name = plain(&metric);
        let mut middle = plain(&analysis.middle(workload, allocator, metric));
        if middle.is_object() && allocator != result.subject {
            let ratio = analysis.ratio(workload, allocator, result.subject, metric);
            middle["by_subject"] = plain(&ratio);
        }
        value[name.as_str().expect("a word")] = middle;
    }
    value
}

fn plain(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("plain data")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_json_with_a_line_for_each_run() {
        let value = json!({
            "seed": 7,
            "runs": [{ "wall_s": 0.123456789, "n": 1 }, { "wall_s": 123456789.0, "n": 2 }],
            "none": [],
        });
        let text = laid_out(&value);
        assert_eq!(text.lines().count(), 8, "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["runs"][0]["wall_s"], 0.123457);
        assert_eq!(read["runs"][1]["wall_s"], 123457000.0);
        assert_eq!(read["runs"][1]["n"], 2);
        assert_eq!(read["none"], json!([]));
    }
}
