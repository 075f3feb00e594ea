//! The options of `prairie doctor`.
// SPDX-License-Identifier: MIT

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Output;
use super::numbers::pid;
use crate::sys::Pid;

const EXAMPLES: &str = "\
Examples:
  prairie doctor                      can programs run on prairie here?
  prairie doctor -- ./program         would this one, and if not, why?
  prairie doctor --pid 4711           does this one, and if not, why?

Exit code: 0 when nothing is in the way; 1 when something is; 125 when prairie itself fails, or may
not read the process; 127 when there is no such program.";

/// Tell whether prairie serves a program, and if not why
///
/// Looks at the library, at the program's file or the running process, and at settings of the kernel,
/// and prints what to do about each thing that is in the way. The program is not run.
#[derive(Debug, Args)]
#[command(
    before_long_help = EXAMPLES,
    override_usage = "prairie doctor [OPTIONS] [-- <PROGRAM>...]\n       prairie doctor [OPTIONS] --pid <PID>"
)]
pub struct Doctor {
    /// Look at a process that runs
    #[arg(long, value_name = "PID", value_parser = pid, allow_negative_numbers = true)]
    pub pid: Option<Pid>,

    /// Use this library instead of the libprairie.so that is found
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub library: Option<PathBuf>,

    #[command(flatten)]
    pub output: Output,

    /// The program; its arguments do not matter
    #[arg(
        last = true,
        conflicts_with = "pid",
        value_name = "PROGRAM",
        value_hint = ValueHint::CommandWithArguments
    )]
    pub command: Vec<OsString>,
}
