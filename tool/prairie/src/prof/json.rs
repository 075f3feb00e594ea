//! Stacks as JSON.
// SPDX-License-Identifier: MIT

use serde_json::{Value, json};

use super::profile::ValueType;
use super::stacks::Stacks;
use super::top;
use crate::cli::Sort;

/// Grows when a field changes its meaning; fields that are only added leave it as it is.
const SCHEMA: u32 = 1;

pub fn text(stacks: &Stacks, title: &str, of: &ValueType, sort: Sort) -> String {
    let name = |name: &usize| {
        let name = &stacks.names[*name];
        json!({ "function": name.function, "place": name.place })
    };
    let functions: Vec<Value> = top::entries(stacks, sort)
        .iter()
        .map(|entry| {
            let mut value = name(&entry.name);
            value["flat"] = rounded(entry.flat);
            value["cum"] = rounded(entry.cum);
            value
        })
        .collect();
    let rows: Vec<Value> = stacks
        .rows
        .iter()
        .map(|row| {
            let stack: Vec<&str> =
                row.path.iter().map(|name| stacks.names[*name].function.as_str()).collect();
            let figures: Vec<Value> = row.figures.iter().map(|figure| rounded(*figure)).collect();
            json!({ "stack": stack, "figures": figures })
        })
        .collect();
    let totals: Vec<Value> =
        (0..stacks.count).map(|profile| rounded(stacks.total_of(profile))).collect();
    let value = json!({
        "schema": SCHEMA,
        "tool": concat!("prairie ", env!("CARGO_PKG_VERSION")),
        "title": title,
        "value": of.name,
        "unit": of.unit,
        "profiles": stacks.count,
        "total": rounded(stacks.total()),
        "totals": totals,
        "functions": functions,
        "stacks": rows,
    });
    format!("{value:#}\n")
}

/// Estimates are no better than whole bytes and blocks.
fn rounded(value: f64) -> Value {
    json!(value.round() as i64)
}
