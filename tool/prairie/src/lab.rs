//! `prairie lab`: the front of the experiments in a checkout.
// SPDX-License-Identifier: MIT

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::cli::Lab;
use crate::output;
use crate::places;
use crate::terminal;
use crate::trouble::{About, Result, Trouble};

/// Grows when a field changes its meaning; fields that are only added leave it as it is.
const SCHEMA: u32 = 1;

pub fn run(options: &Lab) -> Result<i32> {
    let root = places::project().ok_or_else(|| {
        Trouble::new("prairie lab works inside a checkout of prairie").hint(
            "its sources have the experiments, in lab/; their folder must be yours or root's alone",
        )
    })?;
    let Some(first) = options.arguments.first() else { return list(options, &root) };
    let parts = parts(&root);
    let is_part = parts.iter().any(|part| Some(part.as_str()) == first.to_str());
    if !is_part && !first.to_string_lossy().starts_with('-') {
        let text = format!("no experiment is called '{}'", first.display());
        return Err(Trouble::new(text).hint(format!("there are {}", parts.join(", "))));
    }
    let script = root.join("dev/lab");
    let ended = Command::new(&script).args(&options.arguments).status().about(script.display())?;
    Ok(ended.code().unwrap_or(128 + ended.signal().unwrap_or(0)))
}

fn list(options: &Lab, root: &Path) -> Result<i32> {
    if options.output.json || options.output.output.is_some() {
        let of = |part: String| json!({ "about": about(root, &part), "name": part });
        let parts: Vec<Value> = parts(root).into_iter().map(of).collect();
        let text = format!("{:#}\n", json!({ "schema": SCHEMA, "parts": parts }));
        output::write(options.output.output.as_deref(), text.as_bytes(), options.output.force)?;
        return Ok(0);
    }
    let mut text = String::new();
    for part in parts(root) {
        text += &format!("{part:12} {}\n", about(root, &part));
    }
    terminal::show(&text)?;
    terminal::next("prairie lab trees --quick");
    Ok(0)
}

fn parts(root: &Path) -> Vec<String> {
    let folders = fs::read_dir(root.join("lab")).into_iter().flatten().flatten();
    let with_run = folders.filter(|folder| folder.path().join("run").is_file());
    let mut parts: Vec<String> =
        with_run.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect();
    parts.sort();
    parts
}

/// What make's help says of it.
fn about(root: &Path, part: &str) -> String {
    let text = fs::read_to_string(root.join("Makefile")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(&format!("lab-{part}:")));
    line.and_then(|line| line.split_once("## ")).map_or(String::new(), |(_, what)| what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_experiments_of_this_checkout_are_found() {
        let root = places::project_above(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let parts = parts(&root);
        assert!(parts.contains(&"trees".to_owned()), "{parts:?}");
        assert_eq!(about(&root, "trees"), "five balanced trees, one interface");
    }
}
