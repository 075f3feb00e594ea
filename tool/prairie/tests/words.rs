//! The words of the command line: help, and what is said of mistakes.
// SPDX-License-Identifier: MIT

mod support;

use support::prairie;

/// Standard output or, of a failure, standard error, with the code.
fn said(arguments: &[&str]) -> String {
    let output = prairie().env("COLUMNS", "100").args(arguments).output().unwrap();
    let text = if output.status.success() { &output.stdout } else { &output.stderr };
    let text = String::from_utf8(text.clone()).unwrap();
    format!("{text}exit code {}", output.status.code().unwrap())
}

fn with_suite(name: &str, text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let said = said(&["compare", "--suite", path.to_str().unwrap()]);
    said.replace(folder.path().to_str().unwrap(), "FOLDER")
}

#[test]
fn help() {
    insta::assert_snapshot!("help", said(&["--help"]));
    insta::assert_snapshot!("help-run", said(&["run", "--help"]));
    insta::assert_snapshot!("help-compare", said(&["compare", "--help"]));
}

#[test]
fn mistakes_on_the_command_line() {
    insta::assert_snapshot!("no-program", said(&["compare"]));
    insta::assert_snapshot!("unknown-option", said(&["run", "--fast", "--", "true"]));
    insta::assert_snapshot!("no-rounds", said(&["compare", "--rounds", "0", "--", "true"]));
    insta::assert_snapshot!("extra", said(&["compare", "--extra", "nothing", "--", "true"]));
    insta::assert_snapshot!("library", said(&["run", "--library", "/no/lib.so", "--", "true"]));
    insta::assert_snapshot!("suite-missing", said(&["compare", "--suite", "/no/suite.toml"]));
}

#[test]
fn mistakes_in_a_suite() {
    let unknown = "[suite]\nname = 's'\n\n[[workload]]\nname = 'w'\ncomand = ['true']\n";
    insta::assert_snapshot!("suite-unknown-key", with_suite("unknown.toml", unknown));
    let wrong = "[suite]\nname = 's'\n\n[[workload]]\nname = 'w'\ncommand = ['a', '{size}']\n";
    insta::assert_snapshot!("suite-wrong-value", with_suite("wrong.toml", wrong));
    let broken = "[suite\nname = 's'\n";
    insta::assert_snapshot!("suite-broken", with_suite("broken.toml", broken));
}

#[test]
fn completions_and_manual_are_made() {
    assert!(said(&["completions", "bash"]).contains("complete -F _prairie"));
    assert!(said(&["man"]).contains(".TH prairie 1"));
}
