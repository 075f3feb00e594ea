//! `prairie doctor`: is prairie active, would it be, and what is in the way?
// SPDX-License-Identifier: MIT

mod check;
mod group;
mod kernel;
mod library;
mod process;
mod program;
mod settings;

use serde_json::json;

use crate::cli::Doctor;
use crate::output;
use crate::refusal;
use crate::terminal;
use crate::trouble::Result;

/// Grows when a field changes its meaning; fields that are only added leave it as it is.
const SCHEMA: u32 = 1;
const IN_THE_WAY: i32 = 1;

pub fn run(options: &Doctor) -> Result<i32> {
    options.pid.map(refusal::require).transpose()?;
    let (mut checks, library) = library::look(options.library.as_deref());
    checks.extend(settings::look(options.pid));
    let mut is_linked = false;
    match (options.pid, options.command.first()) {
        (Some(pid), _) => checks.extend(process::look(pid, library.as_deref())?),
        (None, Some(name)) => {
            let looked = program::look(name, library.as_deref())?;
            checks.extend(looked.checks);
            is_linked = looked.is_linked;
        }
        (None, None) => {}
    }
    checks.extend(kernel::look(options.pid));
    let is_well = check::is_all_well(&checks);
    let verdict = verdict(options, is_well);
    let text = if options.output.json {
        let value = json!({
            "schema": SCHEMA,
            "tool": concat!("prairie ", env!("CARGO_PKG_VERSION")),
            "well": is_well,
            "verdict": verdict,
            "checks": checks,
        });
        format!("{value:#}\n")
    } else {
        format!("{}\n{}\n", check::text(&checks), terminal::bold(&verdict))
    };
    output::write_text(options.output.output.as_deref(), &text, options.output.force)?;
    if is_well && !options.output.json {
        say_next(options, is_linked);
    }
    Ok(if is_well { 0 } else { IN_THE_WAY })
}

fn verdict(options: &Doctor, is_well: bool) -> String {
    let name = options.command.first().map(|name| name.display().to_string());
    match (options.pid, name, is_well) {
        (Some(pid), _, true) => format!("prairie serves process {pid}."),
        (Some(pid), _, false) => format!("prairie does NOT serve process {pid}."),
        (None, Some(name), true) => format!("prairie would serve {name}."),
        (None, Some(name), false) => format!("prairie would NOT serve {name}."),
        (None, None, true) => "prairie can serve programs here.".to_owned(),
        (None, None, false) => "prairie can NOT serve programs here.".to_owned(),
    }
}

fn say_next(options: &Doctor, is_linked: bool) {
    let words = terminal::shell_words(&options.command);
    match (options.pid, options.command.is_empty()) {
        (Some(pid), _) => terminal::next(&format!("prairie top {pid}")),
        (None, false) if is_linked => terminal::next(&words),
        (None, false) => terminal::next(&format!("prairie run -- {words}")),
        (None, true) => terminal::next("prairie doctor -- your-program"),
    }
}
