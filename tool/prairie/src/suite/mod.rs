//! The file that describes a suite of workloads: its keys, their defaults, what is wrong with it.
// SPDX-License-Identifier: MIT

mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cli;
use crate::places;
use crate::regular;
use crate::trouble::{About, Result, Trouble};

use table::{File, positive};

/// Of a file that describes one.
const BYTES_MAX: u64 = 16 << 20;
const ROUNDS: u32 = 10;
const QUICK_ROUNDS: u32 = 3;
const FULL_SCALE: u32 = 100;
const QUICK_SCALE: u32 = 25;
const TIMEOUT_S: f64 = 300.0;
/// More than anybody waits for, and few enough for all reckoning with times.
pub const TIMEOUT_MAX_S: f64 = 1e9;

/// What may stand in braces in commands, environments and paths.
pub const SUBSTITUTIONS: &[&str] = &["root", "scale", "dir", "shared", "stdout"];

/// What makes a run right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// Standard output and exit code are the same under all allocators.
    Stdout,
    /// The exit code is 0.
    Exit,
    /// This command, run afterwards, says so by its exit code 0.
    Command(Vec<String>),
}

/// Which clock is a workload's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    Cpu,
    Wall,
}

/// A figure that the program measures itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Figure {
    pub name: String,
    pub higher_is_better: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct Workload {
    pub name: String,
    pub group: String,
    pub what: String,
    pub idea: String,
    pub command: Vec<String>,
    pub check: Check,
    pub setup: Option<Vec<String>>,
    pub env: BTreeMap<String, String>,
    pub stdin: Option<String>,
    pub timeout_s: f64,
    pub threads: u32,
    pub figure: Option<Figure>,
    pub clock: Clock,
    pub needs: Vec<String>,
    pub quick_scale: u32,
    /// The scale at which instructions are counted; None: as for clocks.
    pub instructions_scale: Option<u32>,
    /// A program that calls malloc less often says nothing about it.
    pub calls_at_least: Option<u64>,
    /// The workload that does the same elsewhere, and whose output must be the same.
    pub same_as: Option<String>,
    /// Whether resident memory over time is kept.
    pub series: bool,
}

#[derive(Debug, Clone)]
pub struct NamedAllocator {
    pub name: String,
    pub label: Option<String>,
    /// None: the C library's malloc, or a known allocator's own file.
    pub path: Option<PathBuf>,
    pub env: BTreeMap<String, String>,
    /// It takes part in these only, by name or group; empty: in all.
    pub workloads: Vec<String>,
    /// It stands for a heap of the program's own, which need not call malloc.
    pub own_heap: bool,
    /// A program that calls malloc more often is not on the heap that this stands for.
    pub calls_at_most: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct Suite {
    pub name: String,
    pub what: String,
    pub rounds: u32,
    pub quick_rounds: u32,
    pub workloads: Vec<Workload>,
    pub allocators: Vec<NamedAllocator>,
    /// A library that counts calls, for one more run of each cell.
    pub counter: Option<PathBuf>,
    /// Where relative paths start and commands run.
    pub root: PathBuf,
}

impl Suite {
    pub fn read(path: &Path) -> Result<Suite> {
        let bytes = regular::read_at_most(path, BYTES_MAX).about(path.display())?;
        let text = String::from_utf8(bytes).map_err(|_| "it is no text").about(path.display())?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().about(path.display())?;
        let root = places::project_above(&folder).unwrap_or(folder);
        Suite::parse(&text, root).map_err(|error| {
            Trouble::new(format!("{}: {error}", path.display()))
                .hint("docs/bench.md lists the keys of a suite")
        })
    }

    fn parse(text: &str, root: PathBuf) -> Result<Suite> {
        let file: File =
            toml::from_str(text).map_err(|e| Trouble::new(e.to_string().trim_end()))?;
        if file.suite.name.is_empty() {
            return Err(Trouble::new("suite: name is empty"));
        }
        if file.workload.is_empty() {
            return Err(Trouble::new("it has no [[workload]]"));
        }
        let mut names = BTreeSet::new();
        let mut workloads = Vec::new();
        for entry in file.workload {
            let name = entry.name.clone();
            if !names.insert(name.clone()) {
                return Err(Trouble::new(format!("two workloads have the name '{name}'")));
            }
            let workload = entry.checked(&file.suite);
            workloads.push(workload.map_err(|e| Trouble::new(format!("workload '{name}': {e}")))?);
        }
        for workload in &workloads {
            let Some(other) = &workload.same_as else { continue };
            if !workloads.iter().any(|known| known.name == *other && known.same_as.is_none()) {
                let text = format!("workload '{}': same_as: ", workload.name);
                return Err(Trouble::new(format!("{text}no first workload is called '{other}'")));
            }
        }
        positive("suite: rounds", file.suite.rounds)?;
        positive("suite: quick_rounds", file.suite.quick_rounds)?;
        if let Some(entry) = file.allocator.iter().find(|entry| !cli::is_name(&entry.name)) {
            let text = format!("allocator '{}': its name must be of letters, ", entry.name);
            return Err(Trouble::new(text + "digits, '.', '_', '-'"));
        }
        let allocators = file.allocator.into_iter().map(|entry| NamedAllocator {
            name: entry.name,
            label: entry.label,
            path: entry.path.map(|path| root.join(path)),
            env: entry.env,
            workloads: entry.workloads,
            own_heap: entry.own_heap,
            calls_at_most: entry.calls_at_most,
        });
        let allocators = allocators.collect();
        Ok(Suite {
            name: file.suite.name,
            what: file.suite.what,
            rounds: file.suite.rounds.unwrap_or(ROUNDS),
            quick_rounds: file.suite.quick_rounds.unwrap_or(QUICK_ROUNDS),
            workloads,
            allocators,
            counter: file.suite.counter.map(|path| root.join(path)),
            root,
        })
    }
}

impl Workload {
    pub fn scale(&self, quick: bool, instructions: bool) -> u32 {
        let full = if quick { self.quick_scale } else { FULL_SCALE };
        if instructions { self.instructions_scale.unwrap_or(full) } else { full }
    }

    /// Whether one of the patterns fits its name, or is its group.
    pub fn is_one_of(&self, patterns: &[String]) -> bool {
        let fits = |pattern: &String| matches(pattern, &self.name) || *pattern == self.group;
        patterns.iter().any(fits)
    }

    /// One program from the command line, checked by its output.
    pub fn of_command(command: Vec<String>) -> Workload {
        Workload {
            name: Path::new(&command[0]).file_name().unwrap_or_default().to_string_lossy().into(),
            group: String::new(),
            what: String::new(),
            idea: String::new(),
            command,
            check: Check::Stdout,
            setup: None,
            env: BTreeMap::new(),
            stdin: None,
            timeout_s: 3600.0,
            threads: 0,
            figure: None,
            clock: Clock::Wall,
            needs: Vec::new(),
            quick_scale: FULL_SCALE,
            instructions_scale: None,
            calls_at_least: None,
            same_as: None,
            series: true,
        }
    }
}

/// `*` stands for any letters, also none.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            name.char_indices()
                .map(|(at, _)| at)
                .chain([name.len()])
                .any(|at| matches(rest, &name[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::table::known_substitutions;
    use super::*;

    fn parse(text: &str) -> Result<Suite> {
        Suite::parse(text, PathBuf::from("/root-of-suite"))
    }

    fn refusal(workload: &str) -> String {
        let text = format!("[suite]\nname = 's'\n[[workload]]\nname = 'w'\n{workload}\n");
        parse(&text).unwrap_err().to_string()
    }

    #[test]
    fn defaults_are_filled_in() {
        let suite = parse(
            "[suite]\nname = 's'\ntimeout_s = 7\n\
             [[workload]]\nname = 'one'\ncommand = ['a', '{scale}']\n\
             [[workload]]\nname = 'two'\ncommand = ['b']\nthreads = 4\ncheck = ['ok', '{dir}']\n\
             [[workload]]\nname = 'three'\ncommand = ['c']\nfigure = 'rate'\nhigher_is_better = true\n",
        )
        .unwrap();
        assert_eq!((suite.rounds, suite.quick_rounds), (10, 3));
        let [one, two, three] = &suite.workloads[..] else { panic!("three workloads") };
        assert_eq!((one.clock, two.clock), (Clock::Cpu, Clock::Wall));
        assert_eq!((&one.check, one.timeout_s, one.threads), (&Check::Stdout, 7.0, 1));
        assert_eq!(two.check, Check::Command(vec!["ok".into(), "{dir}".into()]));
        let rate = Figure { name: "rate".into(), higher_is_better: true };
        assert_eq!(three.figure, Some(rate));
        assert_eq!((one.scale(false, false), one.scale(true, true)), (100, 25));
    }

    #[test]
    fn a_wrong_key_is_named() {
        assert!(refusal("command = ['a']\ncolour = 'red'").contains("unknown field `colour`"));
        assert!(refusal("").contains("missing field `command`"));
        assert!(refusal("command = 'a'").contains("command = 'a'"), "the line is shown");
        assert!(refusal("command = ['a']\ntime = 'gpu'").contains("unknown variant `gpu`"));
    }

    #[test]
    fn a_wrong_value_is_named_with_its_key_and_workload() {
        let cases = [
            ("command = []", "command is empty"),
            ("command = ['a', '{size}']", "command: '{size}' is no substitution"),
            ("command = ['a']\nenv = { B = '{x}' }", "env: '{x}' is no substitution"),
            ("command = ['a']\ncheck = 'sum'", "check must be"),
            ("command = ['a']\ncheck = []", "check must be"),
            ("command = ['a']\ncheck = ['a', 1]", "check must be"),
            ("command = ['a']\nsetup = []", "setup is empty"),
            ("command = ['a']\ntimeout_s = 0.0", "timeout_s is 0"),
            ("command = ['a']\ntimeout_s = 1e20", "it must be above 0, up to 1000000000"),
            ("command = ['a']\nthreads = 0", "threads is 0"),
            ("command = ['a']\nquick_scale = 0", "quick_scale is 0"),
            ("command = ['a']\nhigher_is_better = true", "without a figure"),
        ];
        for (text, expected) in cases {
            let refusal = refusal(text);
            assert!(refusal.starts_with("workload 'w': "), "{refusal}");
            assert!(refusal.contains(expected), "{text}: {refusal}");
        }
    }

    #[test]
    fn a_suite_needs_workloads_with_names_of_their_own() {
        assert!(
            parse("[suite]\nname = 's'\n").unwrap_err().to_string().contains("no [[workload]]")
        );
        let entry = "[[workload]]\nname = 'w'\ncommand = ['a']\n";
        let twice = parse(&format!("[suite]\nname = 's'\n{entry}{entry}")).unwrap_err();
        assert_eq!(twice.to_string(), "two workloads have the name 'w'");
        let nameless = parse(&format!("[suite]\nname = ''\n{entry}")).unwrap_err();
        assert_eq!(nameless.to_string(), "suite: name is empty");
        let rounds = parse(&format!("[suite]\nname = 's'\nrounds = 0\n{entry}")).unwrap_err();
        assert_eq!(rounds.to_string(), "suite: rounds is 0; it must be 1 or more");
    }

    #[test]
    fn the_name_of_an_allocator_is_no_path() {
        let text = "[suite]\nname = 's'\n[[workload]]\nname = 'w'\ncommand = ['a']\n";
        for name in ["../x", "a/b", "", ".x"] {
            let refused = parse(&format!("{text}[[allocator]]\nname = '{name}'\n")).unwrap_err();
            assert!(refused.to_string().contains("its name must be of letters"), "{refused}");
        }
        assert!(parse(&format!("{text}[[allocator]]\nname = 'a-1.2_b'\n")).is_ok());
    }

    #[test]
    fn patterns_choose_by_name() {
        assert!(matches("pair", "pair"));
        assert!(!matches("pair", "pairs"));
        assert!(matches("pair*", "pairs"));
        assert!(matches("*", ""));
        assert!(matches("*air*", "pairs"));
        assert!(matches("a*c*e", "abcde"));
        assert!(!matches("a*c*f", "abcde"));
    }

    #[test]
    fn instructions_may_have_a_scale_of_their_own() {
        let suite = parse(
            "[suite]\nname = 's'\ninstructions_scale = 10\ncalls_at_least = 7\n\
             [[workload]]\nname = 'one'\ncommand = ['a']\n\
             [[workload]]\nname = 'two'\ncommand = ['a']\ninstructions_scale = 20\n",
        );
        let workloads = suite.unwrap().workloads;
        let scales = |w: &Workload| (w.scale(false, false), w.scale(true, true));
        assert_eq!((scales(&workloads[0]), scales(&workloads[1])), ((100, 10), (100, 20)));
        assert_eq!(workloads[0].calls_at_least, Some(7));
    }

    #[test]
    fn the_suites_of_the_war_are_understood() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        for name in ["war.toml", "browse.toml"] {
            let suite = Suite::read(&root.join("bench/war").join(name)).unwrap();
            assert!(suite.counter.is_some(), "{name}");
            let names: Vec<&str> = suite.allocators.iter().map(|a| a.name.as_str()).collect();
            assert_eq!(names, ["glibc-again", "libpas"], "{name}");
            assert!(suite.allocators[1].calls_at_most.is_some(), "{name}");
        }
    }

    #[test]
    fn the_same_as_must_be_there_and_be_the_first() {
        let suite = |first: &str, second: &str| {
            let entry = "[[workload]]\ncommand = ['a']\n";
            parse(&format!("[suite]\nname = 's'\n{entry}{first}\n{entry}{second}\n"))
        };
        let second = "name = 'two'\nsame_as = 'one'";
        assert_eq!(suite("name = 'one'", second).unwrap().workloads.len(), 2);
        let refused = suite("name = 'none'", second).unwrap_err().to_string();
        assert_eq!(refused, "workload 'two': same_as: no first workload is called 'one'");
        assert!(suite("name = 'one'\nsame_as = 'two'", second).is_err());
    }

    #[test]
    fn other_braces_belong_to_the_program() {
        assert!(known_substitutions("command", "awk '{print $1}' {} {A} {root}/x").is_ok());
    }
}
