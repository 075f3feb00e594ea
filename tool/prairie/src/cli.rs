//! The command line: every option with the sentence that users read.
// SPDX-License-Identifier: MIT

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

use self::numbers::{above_zero, whole};
use crate::suite::TIMEOUT_MAX_S;
use crate::trouble::{Result, Trouble};

mod doctor;
mod everywhere;
mod live;
mod numbers;
mod prof;
mod run;
mod small;

pub use doctor::Doctor;
pub use everywhere::{Colour, Common, Output};
pub use live::{Exporter, Stats, Top};
pub use prof::{By, Prof, Sort};
pub use run::Run;
pub use small::{Lab, Man, Options, Peers, PeersVerb};

#[derive(Debug, Parser)]
#[command(name = "prairie", version, about, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,

    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    Run(Run),
    Compare(Box<Compare>),
    Top(Top),
    Stats(Stats),
    Exporter(Exporter),
    Prof(Box<Prof>),
    Doctor(Doctor),
    Options(Options),
    Peers(Peers),
    Lab(Lab),
    /// Print the completions of a shell
    Completions {
        shell: clap_complete::Shell,
    },
    Man(Man),
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  prairie compare -- sort -u big.txt
  prairie compare -o report.html -- python3 script.py
  prairie compare --with mine=./libmine.so --rounds 20 -- ./server --self-test
  prairie compare --suite bench/suites/workloads.toml --quick --out results
  prairie compare --suite mine.toml --workloads 'pair*,trees' --with mine=./libmine.so

Exit code: 0; 1 when a run was wrong, crashed or timed out; 125 when prairie itself fails, 130 when
it was interrupted; whole rounds are kept then.";

/// Compare allocators on a program, or on suites of workloads
///
/// In each round every allocator runs once, in shuffled order. Measured are the time and the memory
/// of the whole tree of processes; results are checked, and a wrong one never counts as a fast one.
#[derive(Debug, Args)]
#[command(
    before_long_help = COMPARE_EXAMPLES,
    override_usage = "prairie compare [OPTIONS] -- <PROGRAM>...\n       \
                      prairie compare [OPTIONS] --suite <FILE>..."
)]
pub struct Compare {
    /// A file that describes workloads; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub suite: Vec<PathBuf>,

    /// Only these allocators [default: all that are found]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub allocators: Vec<String>,

    /// One more library to preload; may be repeated
    #[arg(long = "with", alias = "extra", value_name = "NAME=FILE", value_parser = named_file)]
    pub extra: Vec<(String, PathBuf)>,

    /// Only workloads that match, by name or group; * stands for anything
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',')]
    pub workloads: Vec<String>,

    /// List the workloads and allocators, and which are absent, and run nothing
    #[arg(long)]
    pub list: bool,

    /// Rounds to run [default: the suite's, or 10]
    #[arg(long, value_name = "N", value_parser = above_zero, allow_negative_numbers = true)]
    pub rounds: Option<u32>,

    /// The suite's quick rounds and quick scale
    #[arg(long)]
    pub quick: bool,

    /// How much work each run of a suite does, in per cent of all [default: the suite's]
    #[arg(long, value_name = "PERCENT", conflicts_with = "command",
        value_parser = above_zero, allow_negative_numbers = true)]
    pub scale: Option<u32>,

    /// Rounds before the first that counts [default: 1; 0 with --quick or --instructions]
    #[arg(long, value_name = "N", value_parser = whole::<u32>, allow_negative_numbers = true)]
    pub warmup: Option<u32>,

    /// Of the order of runs; printed, so that an order can be repeated
    #[arg(long, value_name = "N", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// Whose lead is told [default: prairie]
    #[arg(long, value_name = "NAME")]
    pub subject: Option<String>,

    /// Those whose memory is to be beaten on each workload [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub memory_peers: Vec<String>,

    /// Whose figures are 1 for a single program [default: glibc]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,

    /// Count instructions with callgrind instead of reading clocks; one round
    #[arg(long, conflicts_with = "rounds")]
    pub instructions: bool,

    /// What makes a single program's run right
    #[arg(long, value_enum, default_value_t = CheckBy::Stdout)]
    pub check: CheckBy,

    /// Standard input of a single program [default: empty]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub stdin: Option<PathBuf>,

    /// Seconds that one run may take [default: the suite's, or 3600]
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds,
        allow_negative_numbers = true)]
    pub timeout: Option<f64>,

    /// Write a report, tables, raw data and a picture to this folder: compare.html, compare.md,
    /// compare.json, compare.svg
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,

    /// Write a report: one file with pictures, tables and raw data, which needs no network
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Write the raw data of each run, to standard output without a file
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        default_missing_value = "-",
        value_hint = ValueHint::FilePath
    )]
    pub json: Option<PathBuf>,

    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,

    /// Write a picture of time against memory
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,

    /// Write what the ending says: .html, .json, .md or .svg
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace the file of --output if it is there already
    #[arg(long)]
    pub force: bool,

    /// Print all tables of a suite, not only the summary
    #[arg(long)]
    pub full: bool,

    /// Use this as prairie instead of the libprairie.so that is found
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub library: Option<PathBuf>,

    /// The program and its arguments
    #[arg(
        required_unless_present = "suite",
        conflicts_with = "suite",
        last = true,
        value_name = "PROGRAM",
        value_hint = ValueHint::CommandWithArguments
    )]
    pub command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckBy {
    /// Output and exit code are the same under all allocators
    Stdout,
    /// The exit code is 0
    Exit,
}

fn named_file(text: &str) -> Result<(String, PathBuf)> {
    match text.split_once('=') {
        Some((name, file)) if is_name(name) && !file.is_empty() => Ok((name.into(), file.into())),
        _ => Err(Trouble::new("it must be NAME=FILE, the name of letters, digits, '.', '_', '-'")),
    }
}

/// Of an allocator: its library is copied into a folder of that name.
pub fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !text.is_empty() && text.bytes().all(fits) && !text.starts_with('.')
}

fn positive_seconds(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= TIMEOUT_MAX_S => Ok(seconds),
        _ => Err(Trouble::new(format!("it must be a number above 0, up to {TIMEOUT_MAX_S}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_options_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_timeout_is_a_time_that_can_be_waited_for() {
        assert_eq!(positive_seconds("0.5").unwrap(), 0.5);
        for wrong in ["0", "-1", "nan", "inf", "1e20", "soon"] {
            let said = positive_seconds(wrong).unwrap_err().to_string();
            assert_eq!(said, "it must be a number above 0, up to 1000000000", "{wrong}");
        }
    }

    #[test]
    fn an_extra_allocator_has_a_name_and_a_file() {
        assert_eq!(named_file("a=b=c").unwrap(), ("a".to_owned(), PathBuf::from("b=c")));
        for wrong in ["a", "=b", "a=", "a/b=c", "../x=c"] {
            assert!(named_file(wrong).is_err(), "{wrong}");
        }
    }
}
