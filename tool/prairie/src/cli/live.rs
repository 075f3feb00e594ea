//! The options of the verbs that look at processes: `stats`, `exporter` and `top`.
// SPDX-License-Identifier: MIT

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::Output;
use super::numbers::{pid, whole};
use crate::sys::Pid;
use crate::trouble::{Result, Trouble};

const STATS_EXAMPLES: &str = "\
Examples:
  prairie stats 1234
  prairie stats 1234 --json | jq .figures.allocated
  prairie stats $(pgrep -n redis-server) --openmetrics -o redis.prom

Exit code: 0; 1 when the process is not on prairie; 125 when it is not there or may not be read.";

/// Print what the heap of a running process is like
///
/// The process runs on: it is not stopped, gets no signal, and no library of it is called. It must
/// be yours, or you must be root.
#[derive(Debug, Args)]
#[command(before_long_help = STATS_EXAMPLES)]
pub struct Stats {
    /// The process
    #[arg(value_name = "PID", value_parser = pid)]
    pub pid: Pid,

    /// Put out OpenMetrics, which Prometheus reads
    #[arg(long, conflicts_with = "json")]
    pub openmetrics: bool,

    /// Classes of blocks to list, those with most pages first
    #[arg(long, value_name = "N", default_value = "10", value_parser = whole::<usize>,
        allow_negative_numbers = true)]
    pub classes: usize,

    #[command(flatten)]
    pub output: Output,
}

const EXPORTER_EXAMPLES: &str = "\
Examples:
  prairie exporter 1234                              # http://127.0.0.1:9729/metrics
  prairie exporter --all --listen 0.0.0.0:9729
  prairie exporter --all --name web --textfile /var/lib/node_exporter/prairie.prom

Exit code: 0 when it is ended by a signal; 125 when it fails.";

/// Serve the figures of running processes to Prometheus
///
/// Processes are read when somebody asks, and not before. They run on meanwhile.
#[derive(Debug, Args)]
#[command(
    before_long_help = EXPORTER_EXAMPLES,
    override_usage = "prairie exporter [OPTIONS] <PID>...\n       prairie exporter [OPTIONS] --all"
)]
pub struct Exporter {
    /// The processes
    #[arg(value_name = "PID", value_parser = pid, required_unless_present = "all")]
    pub pids: Vec<Pid>,

    /// Every process on prairie that may be read, also those that start later
    #[arg(long, conflicts_with = "pids")]
    pub all: bool,

    /// Of those, only the ones of this name
    #[arg(long, value_name = "NAME", requires = "all", conflicts_with = "pids")]
    pub name: Option<String>,

    /// Address to listen at
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9729")]
    pub listen: String,

    /// Write this file now and then instead of listening, for the text file collector of
    /// node_exporter
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "listen")]
    pub textfile: Option<PathBuf>,

    /// Seconds between two writes of the file
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = seconds,
        allow_negative_numbers = true)]
    pub every: Duration,

    /// Write the file, or standard output, once
    #[arg(long)]
    pub once: bool,
}

const TOP_EXAMPLES: &str = "\
Examples:
  prairie top                        # every process on prairie
  prairie top 1234
  prairie top 1234 --record web.rec  # and later: prairie top --replay web.rec
  prairie top 1234 --once            # a table, without a terminal

Exit code: 0; 125 when the process is not there, or may not be read and there is no terminal.";

/// Watch the heaps of running processes
///
/// They run on: nothing is stopped, and no signal is sent. Without a terminal, a table is printed
/// once.
#[derive(Debug, Args)]
#[command(before_long_help = TOP_EXAMPLES)]
pub struct Top {
    /// The process [default: all on prairie]
    #[arg(value_name = "PID", value_parser = pid)]
    pub pid: Option<Pid>,

    /// Every process on prairie that may be read
    #[arg(long, conflicts_with = "pid")]
    pub all: bool,

    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds,
        allow_negative_numbers = true)]
    pub every: Duration,

    /// Print a table once, and end
    #[arg(long)]
    pub once: bool,

    /// Write every look to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub record: Option<PathBuf>,

    /// Show what was recorded
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["pid", "all", "record"]
    )]
    pub replay: Option<PathBuf>,

    #[command(flatten)]
    pub output: Output,
}

fn seconds(text: &str) -> Result<Duration> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.05..=86400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(Trouble::new("it must be a number of seconds from 0.05 to 86400")),
    }
}
