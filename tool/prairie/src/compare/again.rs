//! What to type to get the same runs again.
// SPDX-License-Identifier: MIT

use std::ffi::OsString;

use crate::cli::{CheckBy, Compare};
use crate::command_line::Words;
use crate::terminal;

/// As it can be pasted, with the options that decide what is run, in which order, and what is
/// compared with what; and with these in front, which say where it goes.
pub fn command(options: &Compare, seed: u64, outputs: &[&str]) -> String {
    let words = ["prairie", "compare"].iter().chain(outputs).map(OsString::from);
    terminal::shell_words(&words.chain(arguments(options, seed)).collect::<Vec<_>>())
}

fn arguments(options: &Compare, seed: u64) -> Vec<OsString> {
    let mut words = Words(Vec::new());
    for path in &options.suite {
        words.put("--suite", path);
    }
    words.put_list("--allocators", &options.allocators);
    for (name, path) in &options.extra {
        let mut value = OsString::from(format!("{name}="));
        value.push(path);
        words.put("--with", value);
    }
    words.put_list("--workloads", &options.workloads);
    words.put_number("--rounds", options.rounds);
    words.put_flag("--quick", options.quick);
    words.put_number("--scale", options.scale);
    words.put_number("--warmup", options.warmup);
    words.put_number("--seed", Some(seed));
    words.put_list("--subject", options.subject.as_slice());
    words.put_list("--memory-peers", &options.memory_peers);
    words.put_list("--baseline", options.baseline.as_slice());
    words.put_flag("--instructions", options.instructions);
    words.put_choice("--check", options.check, CheckBy::Stdout);
    words.put_given("--stdin", options.stdin.as_ref());
    words.put_number("--timeout", options.timeout);
    words.put_given("--library", options.library.as_ref());
    if !options.command.is_empty() {
        words.put_flag("--", true);
        words.0.extend_from_slice(&options.command);
    }
    words.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Verb};
    use clap::{CommandFactory, Parser};

    const OF_SUITES: &[&str] = &[
        "--suite=a b.toml",
        "--suite=c.toml",
        "--allocators=glibc,mine",
        "--with=mine=./lib mine.so",
        "--workloads=tree*,small",
        "--rounds=3",
        "--quick",
        "--scale=50",
        "--warmup=0",
        "--seed=7",
        "--subject=mine",
        "--memory-peers=glibc,mine",
        "--baseline=glibc",
        "--timeout=2.5",
        "--library=/x/libprairie.so",
    ];
    const OF_A_PROGRAM: &[&str] = &[
        "--instructions",
        "--check=exit",
        "--stdin=in put",
        "--seed=7",
        "--",
        "sh",
        "-c",
        "echo 'a  b' --rounds 3",
    ];
    /// They change nothing of the runs.
    const ABOUT_OUTPUT: &[&str] =
        &["list", "out", "html", "json", "markdown", "svg", "output", "force", "full", "help"];

    fn parsed<T: Into<OsString> + Clone>(arguments: &[T]) -> Compare {
        let words = ["prairie", "compare"].map(OsString::from).into_iter();
        let words = words.chain(arguments.iter().cloned().map(Into::into));
        match Cli::try_parse_from(words).unwrap().verb {
            Verb::Compare(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_same_options_come_back() {
        for line in [OF_SUITES, OF_A_PROGRAM] {
            let options = parsed(line);
            let again = parsed(&arguments(&options, 7));
            assert_eq!(format!("{again:?}"), format!("{options:?}"));
        }
    }

    #[test]
    fn every_option_that_changes_the_runs_is_among_them() {
        let told = [OF_SUITES, OF_A_PROGRAM].concat();
        let compare = Cli::command().find_subcommand("compare").unwrap().clone();
        for name in compare.get_arguments().filter_map(|argument| argument.get_long()) {
            let option = format!("--{name}");
            let is_told = told.iter().any(|word| word.split('=').next() == Some(&option));
            assert!(is_told != ABOUT_OUTPUT.contains(&name), "{option}");
        }
    }

    #[test]
    fn words_are_those_of_a_shell() {
        let options = parsed(&["--rounds=2", "--", "sh", "-c", "echo 'a  b'"]);
        assert_eq!(
            command(&options, 9, &["-o", "report.html"]),
            r"prairie compare -o report.html --rounds 2 --seed 9 -- sh -c 'echo '\''a  b'\'''"
        );
    }
}
