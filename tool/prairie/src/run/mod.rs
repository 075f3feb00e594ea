//! `prairie run`: one program on prairie, and a summary of what it used.
// SPDX-License-Identifier: MIT

mod conf;
mod heap;
mod summary;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cli::{self, Output};
use crate::environment;
use crate::interrupt::PassOn;
use crate::launcher::{Command, Launcher};
use crate::measure::{self, End, Job};
use crate::output;
use crate::owner;
use crate::places::{self, Loadable};
use crate::prof;
use crate::program;
use crate::sys;
use crate::terminal;
use crate::trouble::{About, Result, TOOL_FAILED, Trouble};

use conf::Profiles;
use heap::Looking;
use summary::Summary;

/// Returns the program's exit code.
pub fn run(options: &cli::Run, launcher: &mut Launcher) -> Result<i32> {
    let is_profiled = options.profile || options.profile_every.is_some();
    let folder = match std::env::current_dir() {
        // It was removed, or lies outside of what can be seen: a program can do without its name.
        Err(_) if !is_profiled => PathBuf::from("."),
        found => found.about("the current folder")?,
    };
    let name = Path::new(&options.command[0]).file_name().unwrap_or_default().to_string_lossy();
    if let Some(path) = &options.output.output {
        output::require_writable_by_run(path, &name, options.output.force)?;
    }
    let library = places::library(options.library.as_deref())?;
    let program = program::find(&options.command[0], &folder)?;
    program::require_preloadable(&program, &library)?;
    let loadable = Loadable::new(&library)?;
    let owners = owner::ask_prairie(&library, &loadable.path)?;
    let profiles = is_profiled.then(|| Profiles::of(&program, &folder)).transpose()?;

    let mut variables: environment::Variables = std::env::vars_os().collect();
    environment::set(&mut variables, "LD_PRELOAD", preload_list(&loadable.path));
    conf::interval_note(options).iter().for_each(|note| terminal::say(note));
    let pairs = conf::pairs(options, profiles.as_ref());
    if !pairs.is_empty() {
        let all = conf::with_pairs(std::env::var_os(conf::VARIABLE), &pairs);
        environment::set(&mut variables, conf::VARIABLE, all);
    }
    let command = Command {
        program: &program,
        arguments: options.command.iter().map(OsString::as_os_str).collect(),
        environment: variables.iter().map(|(n, v)| (n.as_os_str(), v.as_os_str())).collect(),
        folder: &folder,
        stdin: None,
        stdout: None,
        stderr: None,
        own_session: false,
    };
    sys::adopt_orphans();
    let job = Job { command, library: Some(&library), timeout: None };
    // Who wants no summary pays for no looks.
    let is_told = !terminal::is_quiet() || options.output.json || options.output.output.is_some();
    let mut looking =
        Looking::new(PassOn::on_signals(launcher)?, is_told, options.only_exe.clone());
    let measured = measure::run(launcher, &job, &mut looking)?;
    let (refusal, heap) = (looking.refusal(), looking.peak());

    let profiles = profiles.map(|profiles| profiles.written(measured.pid));
    let last = profiles.as_ref().and_then(|(own, _)| own.last());
    let summary = Summary {
        name: &name,
        version: owners.version.as_deref().unwrap_or("of unknown version"),
        library: &library,
        measured: &measured,
        finding: last.and_then(|path| prof::finding(path).ok()),
        heap,
        refusal,
        only: options.only_exe.as_deref(),
        profiles,
        max_rss: options.max_rss,
    };
    let told = tell(options, &summary);
    let code = match measured.end {
        End::Itself(ended) => ended.code(),
        End::TimedOut | End::Interrupted => unreachable!("nothing ends the program but itself"),
    };
    if let Err(trouble) = told {
        // The program's own failure is the news.
        if code == 0 {
            return Err(trouble);
        }
        trouble.print();
    }
    if !options.fail || code != 0 || !summary.is_over_limit() {
        return Ok(code);
    }
    if !is_summary_on_standard_error(options) {
        // Nobody would know why it failed.
        Trouble::new(summary.limit_text().unwrap_or_default()).print();
    }
    Ok(i32::from(TOOL_FAILED))
}

fn is_summary_on_standard_error(options: &cli::Run) -> bool {
    let Output { json, output, .. } = &options.output;
    output.is_none() && (*json || !terminal::is_quiet())
}

/// Standard output is the program's: what is said of it goes elsewhere.
fn tell(options: &cli::Run, summary: &Summary) -> Result<()> {
    let json = options.output.json.then(|| summary.json());
    match (&options.output.output, json) {
        (Some(path), json) => {
            let text = json.unwrap_or_else(|| summary.text() + "\n");
            let path = output::name_of_run(path, summary.name, summary.measured.pid);
            let written = output::write_file(&path, text.as_bytes(), options.output.force);
            if written.is_err() {
                terminal::tell(text.trim_end());
            }
            written?;
        }
        (None, Some(json)) => terminal::tell(json.trim_end()),
        (None, None) => {
            terminal::say(&summary.text());
            terminal::next(&summary.next(&terminal::shell_words(&options.command)));
        }
    }
    Ok(())
}

/// Ours before what the user preloads already.
fn preload_list(library: &Path) -> OsString {
    let mut list = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}
