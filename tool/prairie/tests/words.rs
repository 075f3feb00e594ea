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

/// By a copy of the command that lies in no checkout.
fn said_elsewhere(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("prairie");
    std::fs::copy(env!("CARGO_BIN_EXE_prairie"), &copy).unwrap();
    let output = std::process::Command::new(&copy)
        .args(arguments)
        .current_dir("/")
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
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
    insta::assert_snapshot!("help-prof", said(&["prof", "--help"]));
    insta::assert_snapshot!("help-doctor", said(&["doctor", "--help"]));
    insta::assert_snapshot!("help-options", said(&["options", "--help"]));
    insta::assert_snapshot!("help-peers", said(&["peers", "--help"]));
    insta::assert_snapshot!("help-lab", said(&["lab", "--help"]));
}

#[test]
fn mistakes_on_the_command_line() {
    insta::assert_snapshot!("no-program", said(&["compare"]));
    insta::assert_snapshot!("unknown-option", said(&["run", "--fast", "--", "true"]));
    insta::assert_snapshot!("program-alone", said(&["run", "--stats", "sort", "-u"]));
    assert!(!said(&["run", "sort", "--", "-u"]).contains("tip:"));
    insta::assert_snapshot!("no-rounds", said(&["compare", "--rounds", "0", "--", "true"]));
    for (arguments, must_be) in [
        (&["compare", "--rounds", "-1", "--", "true"][..], "a whole number, 1 or more"),
        (&["compare", "--warmup", "some", "--", "true"], "a whole number, 0 or more"),
        (&["compare", "--seed", "-7", "--", "true"], "a whole number, 0 or more"),
        (&["prof", "-n", "-1", "a.heap"], "a whole number, 0 or more"),
        (&["prof", "--pid", "me"], "the number of a process, as ps or pgrep print it"),
        (&["doctor", "--pid", "-5"], "the number of a process, as ps or pgrep print it"),
    ] {
        let said = said(arguments);
        assert!(said.contains(&format!(": it must be {must_be}\n")), "{said}");
    }
    insta::assert_snapshot!("with", said(&["compare", "--with", "nothing", "--", "true"]));
    assert_eq!(
        said(&["compare", "--extra", "nothing", "--", "true"]),
        said(&["compare", "--with", "nothing", "--", "true"])
    );
    insta::assert_snapshot!("kind-of-file", said(&["compare", "-o", "report.pdf", "--", "true"]));
    insta::assert_snapshot!("size", said(&["run", "--max-rss", "much", "--", "true"]));
    insta::assert_snapshot!("fail-alone", said(&["run", "--fail", "--", "true"]));
    insta::assert_snapshot!("no-profile", said(&["prof"]));
    insta::assert_snapshot!("two-views", said(&["prof", "--top", "--tree", "a.heap"]));
    insta::assert_snapshot!("profile-missing", said(&["prof", "/no/such.heap"]));
    insta::assert_snapshot!("no-profile-at-all", said(&["prof", "/etc/passwd"]));
    insta::assert_snapshot!("pid-nobody", said(&["prof", "--pid", "2147483647"]));
    insta::assert_snapshot!("serve-where", said(&["prof", "--serve", "here", "/dev/null"]));
    insta::assert_snapshot!("doctor-two", said(&["doctor", "--pid", "1", "--", "true"]));
    insta::assert_snapshot!("doctor-missing", said(&["doctor", "--", "no-such-program"]));
    let nobody = said(&["prof", "--pid", "2147483647"]);
    assert_eq!(said(&["doctor", "--pid", "2147483647"]), nobody);
    insta::assert_snapshot!("options-none", said(&["options", "colour"]));
    insta::assert_snapshot!("lab-elsewhere", said_elsewhere(&["lab", "trees"]));
    insta::assert_snapshot!("peers-none", said_elsewhere(&["peers", "fetch", "nomalloc"]));
    insta::assert_snapshot!("shell-none", said(&["completions", "tcsh"]));
    insta::assert_snapshot!("verb-none", said(&["fly"]));
    insta::assert_snapshot!("man-none", said(&["man", "fly"]));
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
    let endless = said(&["compare", "--suite", "/dev/zero"]);
    assert!(endless.contains("/dev/zero: it has more than 16777216 bytes"), "{endless}");
}

#[test]
fn lists_are_json_too() {
    for (verb, member) in [("lab", "parts"), ("peers", "allocators"), ("options", "options")] {
        let text = said(&[verb, "--json"]);
        let value: serde_json::Value =
            serde_json::from_str(text.trim_end_matches("exit code 0")).unwrap();
        assert_eq!(value["schema"], 1, "{verb}");
        assert!(!value[member].as_array().unwrap().is_empty(), "{verb}");
    }
}

#[test]
fn completions_and_manual_are_made() {
    assert!(said(&["completions", "bash"]).contains("complete -F _prairie"));
    assert!(said(&["man"]).contains(".TH prairie 1"));
    let page = said(&["man", "prof"]);
    assert!(
        page.contains(".TH prairie-prof 1") && page.contains("prairie prof before.pb.gz"),
        "{page}"
    );
    let folder = tempfile::tempdir().unwrap();
    said(&["man", "--out", folder.path().to_str().unwrap()]);
    for verb in ["run", "compare", "prof", "doctor", "options", "peers", "lab"] {
        assert!(folder.path().join(format!("prairie-{verb}.1")).is_file(), "{verb}");
    }
    assert!(!folder.path().join("prairie-help.1").exists());
    let source = concat!("\"prairie ", env!("CARGO_PKG_VERSION"), "\"");
    let library = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/man/prairie.conf.5");
    let library = std::fs::read_to_string(library).unwrap();
    let day = library.lines().find_map(|line| line.strip_prefix(".Dd ")).unwrap();
    for (page, title, other) in
        [("prairie.1", "prairie", "prairie (3)"), ("prairie-run.1", "prairie-run", "prairie (1)")]
    {
        let page = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(page.contains(&format!(".TH {title} 1 \"{day}\" {source}")), "{page}");
        assert!(
            page.ends_with(&format!("\n.SH \"SEE ALSO\"\n.BR {other},\n.BR prairie.conf (5)\n")),
            "{page}"
        );
    }
}

#[test]
fn exit_codes_hold_where_nobody_can_read_words() {
    for (words, code) in [
        ("run -- sh -c 'exit 3'", 3),
        ("run --json -- sh -c 'exit 3'", 3),
        ("run -- no-such-program", 127),
        ("doctor --pid 999999999", 125),
        ("completions bash >/dev/full", 125),
        ("completions bash | true", 0),
        ("--help >/dev/full", 125),
        ("run --help >/dev/full", 125),
        ("--version | true", 0),
        ("--version >&-", 125),
        ("options >&-", 125),
        ("man >&-", 125),
        ("options -o /dev/null --force >&-", 0),
    ] {
        let command = format!("'{}' {words}", env!("CARGO_BIN_EXE_prairie"));
        let status = std::process::Command::new("sh")
            .args(["-c", &format!("exec 2>/dev/full; {command}")])
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(code), "{words}");
    }
}

#[test]
fn nohup_keeps_a_comparison_going() {
    let command = format!(
        "trap '' HUP; exec '{}' compare --rounds 1 --allocators glibc -- sh -c 'kill -HUP $PPID; exit 0'",
        env!("CARGO_BIN_EXE_prairie")
    );
    let output = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
