//! A suite's file as it is written, and what is wrong in it beyond types.
// SPDX-License-Identifier: MIT

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Check, Clock, Figure, QUICK_SCALE, SUBSTITUTIONS, TIMEOUT_MAX_S, TIMEOUT_S, Workload};
use crate::trouble::{Result, Trouble};

/// The file as it is written; what is wrong beyond types is found when it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub suite: SuiteTable,
    #[serde(default)]
    pub workload: Vec<WorkloadTable>,
    #[serde(default)]
    pub allocator: Vec<AllocatorTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteTable {
    pub name: String,
    #[serde(default)]
    pub what: String,
    pub rounds: Option<u32>,
    pub quick_rounds: Option<u32>,
    pub quick_scale: Option<u32>,
    pub instructions_scale: Option<u32>,
    pub timeout_s: Option<f64>,
    pub counter: Option<String>,
    pub calls_at_least: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadTable {
    pub name: String,
    #[serde(default)]
    pub group: String,
    #[serde(default)]
    pub what: String,
    #[serde(default)]
    pub idea: String,
    pub command: Vec<String>,
    pub check: Option<toml::Value>,
    pub setup: Option<Vec<String>>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub stdin: Option<String>,
    pub timeout_s: Option<f64>,
    pub threads: Option<u32>,
    pub figure: Option<String>,
    pub higher_is_better: Option<bool>,
    pub time: Option<Clock>,
    #[serde(default)]
    pub needs: Vec<String>,
    pub quick_scale: Option<u32>,
    pub instructions_scale: Option<u32>,
    pub calls_at_least: Option<u64>,
    pub same_as: Option<String>,
    #[serde(default)]
    pub series: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllocatorTable {
    pub name: String,
    pub label: Option<String>,
    pub path: Option<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub workloads: Vec<String>,
    #[serde(default)]
    pub own_heap: bool,
    pub calls_at_most: Option<u64>,
}

impl WorkloadTable {
    pub fn checked(self, suite: &SuiteTable) -> Result<Workload> {
        let quick_scale = self.quick_scale.or(suite.quick_scale);
        positive("quick_scale", quick_scale)?;
        let instructions_scale = self.instructions_scale.or(suite.instructions_scale);
        positive("instructions_scale", instructions_scale)?;
        positive("threads", self.threads)?;
        let timeout_s = self.timeout_s.or(suite.timeout_s).unwrap_or(TIMEOUT_S);
        if !(timeout_s > 0.0 && timeout_s <= TIMEOUT_MAX_S) {
            let limits = format!("it must be above 0, up to {TIMEOUT_MAX_S}");
            return Err(Trouble::new(format!("timeout_s is {timeout_s}; {limits}")));
        }
        let check = check_of(self.check)?;
        let none = Vec::new();
        let setup = self.setup.as_ref();
        for (key, words) in [
            ("command", &self.command),
            ("setup", setup.unwrap_or(&none)),
            ("check", if let Check::Command(words) = &check { words } else { &none }),
        ] {
            words.iter().try_for_each(|word| known_substitutions(key, word))?;
        }
        self.env.values().try_for_each(|value| known_substitutions("env", value))?;
        self.stdin.iter().try_for_each(|path| known_substitutions("stdin", path))?;
        if self.command.is_empty() {
            return Err(Trouble::new("command is empty"));
        }
        if setup.is_some_and(Vec::is_empty) {
            return Err(Trouble::new("setup is empty"));
        }
        let figure = match (self.figure, self.higher_is_better) {
            (None, Some(_)) => {
                return Err(Trouble::new("higher_is_better is given without a figure"));
            }
            (None, None) => None,
            (Some(name), higher) => {
                Some(Figure { name, higher_is_better: higher.unwrap_or(false) })
            }
        };
        let threads = self.threads.unwrap_or(1);
        let clock = if threads == 1 { Clock::Cpu } else { Clock::Wall };
        Ok(Workload {
            name: self.name,
            group: self.group,
            what: self.what,
            idea: self.idea,
            command: self.command,
            check,
            setup: self.setup,
            env: self.env,
            stdin: self.stdin,
            timeout_s,
            threads,
            figure,
            clock: self.time.unwrap_or(clock),
            needs: self.needs,
            quick_scale: quick_scale.unwrap_or(QUICK_SCALE),
            instructions_scale,
            calls_at_least: self.calls_at_least.or(suite.calls_at_least),
            same_as: self.same_as,
            series: self.series,
        })
    }
}

fn check_of(value: Option<toml::Value>) -> Result<Check> {
    let wrong =
        || Trouble::new("check must be \"stdout\", \"exit\" or a command as a list of words");
    match value {
        None => Ok(Check::Stdout),
        Some(toml::Value::String(word)) if word == "stdout" => Ok(Check::Stdout),
        Some(toml::Value::String(word)) if word == "exit" => Ok(Check::Exit),
        Some(toml::Value::Array(words)) if !words.is_empty() => {
            let words = words.iter().map(|word| word.as_str().map(str::to_owned));
            Ok(Check::Command(words.collect::<Option<_>>().ok_or_else(wrong)?))
        }
        Some(_) => Err(wrong()),
    }
}

pub fn positive(key: &str, value: Option<u32>) -> Result<()> {
    match value {
        Some(0) => Err(Trouble::new(format!("{key} is 0; it must be 1 or more"))),
        _ => Ok(()),
    }
}

/// Braces around a lower-case word must name a substitution; other braces are the program's own.
pub fn known_substitutions(key: &str, text: &str) -> Result<()> {
    for part in text.split('{').skip(1) {
        let Some((name, _)) = part.split_once('}') else { continue };
        let is_word = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
        if is_word && !SUBSTITUTIONS.contains(&name) {
            let known = SUBSTITUTIONS.join("}, {");
            let text = format!("{key}: '{{{name}}}' is no substitution; there are {{{known}}}");
            return Err(Trouble::new(text));
        }
    }
    Ok(())
}
