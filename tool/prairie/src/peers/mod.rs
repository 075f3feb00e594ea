//! `prairie peers`: which allocators there are to compare with, and getting those that are missing.
// SPDX-License-Identifier: MIT

mod packages;

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::allocator::{self, Wish};
use crate::cli::{Peers, PeersVerb};
use crate::output;
use crate::places;
use crate::report::{Block, Table, render};
use crate::terminal;
use crate::trouble::{About, Result};

pub use packages::{Package, known};

/// Grows when a field changes its meaning; fields that are only added leave it as it is.
const SCHEMA: u32 = 1;

pub fn run(options: &Peers) -> Result<i32> {
    match &options.what {
        None => list(options),
        Some(PeersVerb::Fetch { names }) => fetch(names),
    }
}

fn list(options: &Peers) -> Result<i32> {
    let scratch =
        tempfile::Builder::new().prefix("prairie-").tempdir().about("a temporary folder")?;
    let root = places::project();
    let (found, absent) =
        allocator::gather(&Wish::default(), &[], root.as_deref(), scratch.path())?;
    let text = if options.output.json {
        let value = json!({ "schema": SCHEMA, "allocators": found, "absent": absent });
        format!("{value:#}\n")
    } else {
        let here = found.iter().map(|allocator| {
            let path = allocator.path.clone().unwrap_or_else(|| "no preload".to_owned());
            vec![allocator.name.clone(), allocator.label.clone(), path]
        });
        let columns = ["allocator", "version", "library"].map(str::to_owned).to_vec();
        let mut rows: Vec<Vec<String>> = here.collect();
        rows.extend(missing(&rows));
        let text_columns = columns.len();
        let mut blocks = vec![Block::Table(Table { columns, rows, text_columns })];
        if !absent.is_empty() {
            let reason = |a: &allocator::Absent| format!("{}: {}", a.name, a.reason);
            blocks.push(Block::List(absent.iter().map(reason).collect()));
        }
        render::terminal(&blocks)
    };
    output::write_text(options.output.output.as_deref(), &text, options.output.force)?;
    if !options.output.json {
        terminal::next("prairie compare -- your-program");
    }
    Ok(0)
}

/// Those that `fetch` would bring.
fn missing(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    let is_there = |package: &&Package| rows.iter().any(|row| row[0] == package.name);
    let row = |package: &Package| {
        let how = format!("not there: prairie peers fetch {}", package.name);
        vec![package.name.to_owned(), package.label.to_owned(), how]
    };
    known().iter().filter(|package| !is_there(package)).map(row).collect()
}

fn fetch(names: &[String]) -> Result<i32> {
    match places::project().filter(|root| root.join("dev/peers").is_file()) {
        Some(root) => build(&root, names),
        None => packages::fetch(names),
    }?;
    terminal::next("prairie compare -- your-program");
    Ok(0)
}

/// From the registry of crates, with the project's own recipes.
fn build(root: &Path, names: &[String]) -> Result<()> {
    let script = root.join("dev/peers");
    terminal::say(&format!("{} builds them from the registry of crates", script.display()));
    let done = Command::new(&script).args(names).status().about(script.display())?;
    match done.success() {
        true => Ok(()),
        false => Err(crate::trouble::Trouble::new("not all of them could be built")
            .hint("build/peers/NAME has the logs")),
    }
}
