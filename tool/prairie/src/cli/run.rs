//! The options of `prairie run`.
// SPDX-License-Identifier: MIT

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Output;
use crate::trouble::{Result, Trouble};
use crate::units;

const EXAMPLES: &str = "\
Examples:
  prairie run -- sort -u big.txt
  prairie run --profile -- ./server --self-test
  prairie run --only-exe cc1 -- make -j8
  prairie run --max-rss 200M --fail -- python3 script.py
  prairie run --hardened --stats -- ./program
  prairie run --json -o %e.%p.json -- ./program    # program, process; %h: machine, %t: time

Exit code: the program's own; 128 + n if signal n ended it; 125 when prairie itself fails, or with
--fail a limit was passed; 126 when the program cannot be executed, 127 when it is not found.";

/// Run a program on prairie
///
/// The library is preloaded into the program and all that it starts. Input, output and exit code
/// pass through; at the end, a summary on standard error says what it used and who served it.
#[derive(Debug, Args)]
#[command(before_long_help = EXAMPLES)]
pub struct Run {
    /// Let every process print prairie's statistics at its end
    #[arg(long)]
    pub stats: bool,

    /// Tell the heap of processes of this name only, as of a program that a script starts
    #[arg(long, value_name = "NAME")]
    pub only_exe: Option<String>,

    /// Write a profile for `prairie prof` when a process ends, into the current folder
    #[arg(long)]
    pub profile: bool,

    /// Write one also each time so much was allocated, for `prairie prof --growth`
    #[arg(long, value_name = "SIZE", value_parser = interval)]
    pub profile_every: Option<u64>,

    /// Find misuse of the heap: every block is looked at when it comes and goes
    #[arg(long)]
    pub hardened: bool,

    /// Tell whether all processes together stayed within this at their peak, as 200M or 1.5G
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    pub max_rss: Option<u64>,

    /// End with code 125 when the program succeeds but a limit was passed
    #[arg(long, requires = "max_rss")]
    pub fail: bool,

    /// Preload this library instead of the libprairie.so that is found
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub library: Option<PathBuf>,

    #[command(flatten)]
    pub output: Output,

    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

fn interval(text: &str) -> Result<u64> {
    match units::parse_bytes(text)? {
        0 => Err(Trouble::new("it must be more than nothing")),
        bytes => Ok(bytes),
    }
}
