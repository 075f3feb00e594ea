//! The options of the verbs that have few.
// SPDX-License-Identifier: MIT

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::Output;

const OPTIONS_EXAMPLES: &str = "\
Examples:
  prairie options                 what can be set, and what is set here
  prairie options decay guard     options with one of these words in their names
  prairie options --all           also those of jemalloc that are understood and change nothing";

/// List the options of the library, with their defaults
///
/// The table is the one of docs/options.md, which is made from the library's own. What MALLOC_CONF
/// and PRAIRIE_CONF set here is shown with it. Where it says "clipped", a number beyond the limits
/// counts as the nearest of them, and a negative one as the upper limit; elsewhere it is refused.
#[derive(Debug, Args)]
#[command(before_long_help = OPTIONS_EXAMPLES)]
pub struct Options {
    /// Only options with one of these in their names
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,

    /// Also those that are understood, and without effect
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub output: Output,
}

const LAB_EXAMPLES: &str = "\
Examples:
  prairie lab                     which experiments there are
  prairie lab trees --quick       one of them, in its quick form
  prairie lab --json              the list, for programs";

/// Repeat the experiments that prairie's design rests on
///
/// Works inside a checkout of prairie; docs/lab.md explains what comes out.
#[derive(Debug, Args)]
#[command(before_long_help = LAB_EXAMPLES)]
pub struct Lab {
    /// An experiment, and arguments for it
    #[arg(value_name = "PART", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,

    #[command(flatten)]
    pub output: Output,
}

const PEERS_EXAMPLES: &str = "\
Examples:
  prairie peers                   which allocators there are to compare with
  prairie peers fetch             fetch all that can be had here
  prairie peers fetch jemalloc    only this one";

/// Get other allocators to compare with
///
/// Inside a checkout of prairie they are built from their sources, as the registry of crates has
/// them; elsewhere Debian's packages are unpacked into a folder of yours, without root.
#[derive(Debug, Args)]
#[command(before_long_help = PEERS_EXAMPLES)]
pub struct Peers {
    #[command(subcommand)]
    pub what: Option<PeersVerb>,

    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Subcommand)]
pub enum PeersVerb {
    /// Fetch what is missing
    Fetch {
        /// Only these
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
}

/// Print a manual page
#[derive(Debug, Args)]
pub struct Man {
    /// Of this verb
    #[arg(value_name = "VERB")]
    pub verb: Option<String>,

    /// Write the pages of all verbs into this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "verb")]
    pub out: Option<PathBuf>,
}
