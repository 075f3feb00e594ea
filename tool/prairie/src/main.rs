//! The prairie command: runs programs on prairie, and compares allocators.
//!
//! From the bottom up:
//!
//! - the system: `sys` and `launcher` (calls that the standard library lacks), `proc`, `elf`, `program`,
//!   `regular` (files that others have named)
//! - one run: `tree` (its processes), `witness` (who serves them), `measure` (time and memory)
//! - what to compare: `places`, `embedded`, `owner`, `allocator`; `suite`, `substitute`, `plan`, `order`
//! - the rounds: `bench`, `record` (raw data), `judge` (right or wrong), `callgrind`, `progress`
//! - what it says: `stats`, `analysis`, `units`, `report`, `output`, `terminal`
//! - processes that run: `live` (their heaps, from outside), `refusal` (why not), `top`
//! - the verbs: `cli`, `run`, `compare`, `prof`, `doctor`, `options`,
//!   `peers`, `lab`, `manual`
// SPDX-License-Identifier: MIT

mod allocator;
mod analysis;
mod answering;
mod bench;
mod callgrind;
mod cli;
mod command_line;
mod compare;
#[cfg(test)]
#[path = "../tests/support/compiled.rs"]
mod compiled;
mod doctor;
mod elf;
mod embedded;
mod environment;
mod family;
#[cfg(test)]
mod fixture;
mod interrupt;
mod judge;
mod lab;
mod launcher;
mod live;
mod machine;
mod manual;
mod measure;
mod opens;
mod options;
mod order;
mod output;
mod owner;
mod peers;
mod places;
mod plan;
mod proc;
mod prof;
mod program;
mod progress;
mod record;
mod refusal;
mod regular;
mod report;
mod run;
mod stats;
mod substitute;
mod suite;
mod sys;
mod terminal;
mod top;
mod tree;
mod trouble;
mod units;
mod witness;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Verb};
use crate::launcher::Launcher;
use crate::trouble::{About, Result, TOOL_FAILED};

fn main() -> ExitCode {
    // This copy answers a question about the process as the loader made it.
    if std::env::args_os().nth(1).is_some_and(|verb| verb == owner::COMMAND) {
        owner::print();
        return ExitCode::SUCCESS;
    }
    let launcher = Launcher::fork();
    let code = parse().and_then(|cli| {
        let mut launcher = launcher.about("the launcher")?;
        terminal::set_up(&cli.common);
        dispatch(&cli.verb, &mut launcher)
    });
    match code {
        // 256 and above cannot happen: exit codes and 128 + signal are below.
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(TOOL_FAILED)),
        Err(error) => {
            error.print();
            ExitCode::from(error.exit_code())
        }
    }
}

/// Wrong options are a failure of the tool; clap's own code, 2, would be taken for the program's.
fn parse() -> Result<Cli> {
    match Cli::try_parse() {
        Ok(cli) => Ok(cli),
        // What was asked for, as help: data like any other.
        Err(asked) if !asked.use_stderr() => {
            terminal::was_shown(asked.print())?;
            std::process::exit(0)
        }
        Err(mut error) => {
            if let Some(tip) = where_the_program_stands(&error) {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
            let _ = error.print();
            std::process::exit(i32::from(TOOL_FAILED))
        }
    }
}

/// For who starts a program as with other tools: `prairie run sort -u`.
fn where_the_program_stands(error: &clap::Error) -> Option<String> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let verb =
        words.first()?.to_str().filter(|verb| ["run", "compare", "doctor"].contains(verb))?;
    let ContextValue::String(word) = error.get(ContextKind::InvalidArg)? else { return None };
    let is_program = error.kind() == ErrorKind::UnknownArgument && !word.starts_with('-');
    let shown = terminal::shell_words(&[word]);
    (is_program && words.iter().all(|word| word != "--"))
        .then(|| format!("a program stands behind '--': prairie {verb} -- {shown}"))
}

fn dispatch(verb: &Verb, launcher: &mut Launcher) -> Result<i32> {
    match verb {
        Verb::Run(options) => run::run(options, launcher),
        Verb::Compare(options) => compare::run(options, launcher),
        Verb::Top(options) => top::run(options),
        Verb::Stats(options) => live::stats::run(options),
        Verb::Exporter(options) => live::exporter::run(options),
        Verb::Prof(options) => prof::run(options),
        Verb::Doctor(options) => doctor::run(options),
        Verb::Options(options) => options::run(options),
        Verb::Peers(options) => peers::run(options),
        Verb::Lab(options) => lab::run(options),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "prairie", &mut script);
            terminal::show(&String::from_utf8_lossy(&script)).map(|()| 0)
        }
        Verb::Man(options) => manual::run(options),
    }
}
