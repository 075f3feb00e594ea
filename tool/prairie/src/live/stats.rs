//! `prairie stats`: the heap of one process, once.
// SPDX-License-Identifier: MIT

use super::metrics::{self, Form};
use super::sample::{Sample, Target, Why};
use super::text::{self, printable};
use crate::cli::Stats;
use crate::output;
use crate::terminal;
use crate::trouble::{About, Result, Trouble};

/// The process has an allocator that is not ours.
const NOT_ON_PRAIRIE: i32 = 1;
/// Of the strip that tells how much of the heap is resident.
const CELLS: usize = 64;

pub fn run(options: &Stats) -> Result<i32> {
    let mut target = Target::new(options.pid)?;
    let Some(sample) = target.sample(CELLS) else {
        return Err(Trouble::new(format!("process {} has ended", options.pid)));
    };
    if let Some(why) = sample.why.as_ref().filter(|_| target.is_refused()) {
        return Err(trouble(why));
    }
    let text = match (options.output.json, options.openmetrics) {
        (true, _) => serde_json::to_string_pretty(&sample).about("JSON")? + "\n",
        (_, true) => metrics::text(std::slice::from_ref(&sample), Form::OpenMetrics),
        _ => text::sample(&sample, options.classes),
    };
    let path = options.output.output.as_deref();
    output::write(path, text.as_bytes(), options.output.force)?;
    say_next(&sample);
    Ok(if sample.figures.is_none() { NOT_ON_PRAIRIE } else { 0 })
}

pub fn trouble(why: &Why) -> Trouble {
    let trouble = Trouble::new(printable(&why.text));
    match &why.hint {
        Some(hint) => trouble.hint(printable(hint)),
        None => trouble,
    }
}

fn say_next(sample: &Sample) {
    let Some(why) = &sample.why else {
        return terminal::next(&format!("prairie top {}", sample.pid));
    };
    terminal::say(&format!("prairie: {}", printable(&why.text)));
    if let Some(hint) = &why.hint {
        terminal::say(&format!("  {}", printable(hint)));
    }
}
