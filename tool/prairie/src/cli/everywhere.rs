//! Options that every verb has, and those of every verb that puts out data.
// SPDX-License-Identifier: MIT

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set; with CLICOLOR_FORCE everywhere
    Auto,
    Always,
    Never,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Common {
    /// Say nothing but data and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,

    /// Say more about what is done
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub verbose: bool,

    /// When to use colours
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value_t = Colour::Auto,
        hide_possible_values = true
    )]
    pub color: Colour,

    /// Nothing but ASCII in tables and trees
    #[arg(long, global = true)]
    pub ascii: bool,
}

#[derive(Debug, Default, Clone, Args)]
pub struct Output {
    /// Put out JSON, with a number of its schema
    #[arg(long)]
    pub json: bool,

    /// Write to this file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace files that are there already
    #[arg(long)]
    pub force: bool,
}
