//! The options of `prairie prof`.
// SPDX-License-Identifier: MIT

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum, ValueHint};

use super::Output;
use super::numbers::{pid, whole};
use crate::sys::Pid;
use crate::trouble::{Result, Trouble};

const EXAMPLES: &str = "\
Examples:
  prairie run --profile -- ./program             write a profile at the end
  prairie prof prairie.program.4711.0.f.pb.gz    who holds the memory
  prairie prof --flame -o heap.html FILE         a flame graph in a page of its own
  prairie prof before.pb.gz after.pb.gz          what has grown, and what has shrunk
  prairie prof --pid 4711 --tree                 of a program that runs, now
  prairie prof --pid 4711 --value sparse_space   who keeps sparse slabs
  prairie prof --pid 4711 --serve :6060          for pprof, Pyroscope, Parca and a browser
  prairie prof --pprof -o named.pb.gz FILE       with names in it, for go tool pprof

Exit code: 0; 125 when prairie itself fails.";

/// Show who holds the memory, from heap profiles
///
/// Reads profiles of prairie and of jemalloc (heap_v2), and of pprof. One is shown; of two the
/// difference; of more what grew. The names of functions come from the files of code themselves, or
/// from /usr/lib/debug.
#[derive(Debug, Clone, Args)]
#[command(
    before_long_help = EXAMPLES,
    override_usage = "prairie prof [OPTIONS] <FILE>...\n       prairie prof [OPTIONS] --pid <PID>",
    group(ArgGroup::new("view").args(["top", "tree", "growth", "flame", "collapsed", "pprof"]))
)]
pub struct Prof {
    /// Profiles, the earlier ones first; three and more that a shell's pattern has put into another
    /// order go by the numbers in their names
    #[arg(
        value_name = "FILE",
        required_unless_present = "pid",
        conflicts_with = "pid",
        value_hint = ValueHint::FilePath
    )]
    pub files: Vec<PathBuf>,

    /// Take one of a program that runs on prairie with prof:true
    #[arg(long, value_name = "PID", value_parser = pid, allow_negative_numbers = true)]
    pub pid: Option<Pid>,

    /// The functions that hold most (the default)
    #[arg(long, help_heading = "What to show")]
    pub top: bool,

    /// Who called whom
    #[arg(long, help_heading = "What to show", conflicts_with = "json")]
    pub tree: bool,

    /// What grew from profile to profile (the default with three and more)
    #[arg(long, help_heading = "What to show", conflicts_with = "json")]
    pub growth: bool,

    /// A page with a flame graph; of two profiles, red has grown and blue has shrunk
    #[arg(long, help_heading = "What to show", conflicts_with = "json")]
    pub flame: bool,

    /// A line for each stack, for other tools
    #[arg(long, help_heading = "What to show", conflicts_with = "json")]
    pub collapsed: bool,

    /// A profile for pprof, with names in it
    #[arg(
        long,
        help_heading = "What to show",
        conflicts_with_all = ["json", "value", "by", "sort", "focus"]
    )]
    pub pprof: bool,

    /// Answer requests for profiles at this address, as Go programs do; [HOST]:PORT
    #[arg(
        long,
        value_name = "ADDRESS",
        help_heading = "What to show",
        conflicts_with_all = ["view", "json"]
    )]
    pub serve: Option<String>,

    /// inuse_space, inuse_objects, alloc_space or alloc_objects; with --pid also sparse_space: room
    /// in slabs that nobody uses, by who holds the slabs [default: the profile's]
    #[arg(long, value_name = "NAME")]
    pub value: Option<String>,

    /// What is one row
    #[arg(long, value_enum, default_value_t = By::Function)]
    pub by: By,

    /// By what a function holds itself, or with all that it calls
    #[arg(long, value_enum, default_value_t = Sort::Flat)]
    pub sort: Sort,

    /// Only stacks with this text in the name of a function or file
    #[arg(long, value_name = "TEXT")]
    pub focus: Option<String>,

    /// Add the profiles up, as those of several processes
    #[arg(long)]
    pub sum: bool,

    /// Rows to print
    #[arg(short = 'n', long, value_name = "N", default_value = "30", value_parser = whole::<usize>,
        allow_negative_numbers = true)]
    pub limit: usize,

    /// Leave branches of the tree out that have less, in per cent
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = per_cent,
        allow_negative_numbers = true)]
    pub least: f64,

    /// Look for files of code below this folder first
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,

    #[command(flatten)]
    pub output: Output,
}

fn per_cent(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(part) if (0.0..=100.0).contains(&part) => Ok(part),
        _ => Err(Trouble::new("it must be a number from 0 to 100")),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    Function,
    Line,
    Library,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    Flat,
    Cum,
}
