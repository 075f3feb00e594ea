//! What is to be run: the chosen workloads with their rounds, and those that cannot run here.
// SPDX-License-Identifier: MIT

use crate::allocator::Absent;
use crate::bench::{self, Bench, Item};
use crate::cli::{CheckBy, Compare};
use crate::suite::{Check, Suite, Workload};
use crate::trouble::{About, Result, Trouble};

const ROUNDS: u32 = 10;
const QUICK_ROUNDS: u32 = 3;

pub struct Plan {
    pub items: Vec<Item>,
    /// With the reason why each cannot run here.
    pub missing: Vec<(Item, String)>,
}

impl Plan {
    pub fn absent(&self) -> Vec<Absent> {
        let absent = |(item, reason): &(Item, String)| Absent {
            name: item.workload.name.clone(),
            reason: reason.clone(),
        };
        self.missing.iter().map(absent).collect()
    }
}

pub fn make(options: &Compare, suites: &[Suite]) -> Result<Plan> {
    let mut items = Vec::new();
    if suites.is_empty() {
        items.push(single(options)?);
    }
    let scale_of = |workload: &Workload| {
        options.scale.unwrap_or_else(|| workload.scale(options.quick, options.instructions))
    };
    for suite in suites {
        let rounds = if options.quick { suite.quick_rounds } else { suite.rounds };
        let chosen = suite.workloads.iter().filter(|workload| is_chosen(options, workload));
        items.extend(chosen.map(|workload| Item {
            suite: suite.name.clone(),
            workload: Workload {
                timeout_s: options.timeout.unwrap_or(workload.timeout_s),
                ..workload.clone()
            },
            root: suite.root.clone(),
            rounds: rounds_of(options, rounds),
            scale: scale_of(workload),
            counter: suite.counter.clone().filter(|_| !options.instructions),
            strict: true,
        }));
    }
    if items.is_empty() {
        let names = suites.iter().flat_map(|suite| &suite.workloads).map(|w| w.name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        return Err(Trouble::new("--workloads matches nothing").hint(format!("there are {names}")));
    }
    let mut plan = Plan { items: Vec::new(), missing: Vec::new() };
    for item in items {
        match bench::absent_reason(&item) {
            Some(reason) => plan.missing.push((item, reason)),
            None => plan.items.push(item),
        }
    }
    Ok(plan)
}

fn rounds_of(options: &Compare, default: u32) -> u32 {
    if options.instructions { 1 } else { options.rounds.unwrap_or(default) }
}

fn single(options: &Compare) -> Result<Item> {
    let command = bench::require_utf8(&options.command)?;
    let root = std::env::current_dir().about("the current folder")?;
    crate::program::find(&options.command[0], &root)?;
    let mut workload = Workload::of_command(command);
    let stdin = options.stdin.as_ref().map(|path| path.clone().into_os_string());
    workload.stdin = bench::require_utf8(stdin.as_slice())?.pop();
    workload.timeout_s = options.timeout.unwrap_or(workload.timeout_s);
    if options.check == CheckBy::Exit {
        workload.check = Check::Exit;
    }
    let rounds = rounds_of(options, if options.quick { QUICK_ROUNDS } else { ROUNDS });
    let strict = options.check == CheckBy::Exit;
    Ok(Item { suite: String::new(), workload, root, rounds, scale: 100, strict, counter: None })
}

/// By name or group; none means all.
fn is_chosen(options: &Compare, workload: &Workload) -> bool {
    options.workloads.is_empty() || workload.is_one_of(&options.workloads)
}

/// Runs the setups. A workload whose setup fails joins those that are absent because something is
/// missing.
pub fn set_up(bench: &mut Bench, mut absent: Vec<Absent>) -> Result<(Vec<Item>, Vec<Absent>)> {
    let mut ready = Vec::new();
    for item in bench.items {
        match bench.set_up(item) {
            Ok(()) => ready.push(item.clone()),
            Err(error) if error.is_interruption() => return Err(error),
            Err(error) => {
                let name = item.workload.name.clone();
                absent.push(Absent { name, reason: error.to_string() });
            }
        }
    }
    if ready.is_empty() {
        let reasons = absent.iter().map(|absent| format!("{}: {}", absent.name, absent.reason));
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        return Err(Trouble::new(format!("no workload can run here ({reasons})"))
            .hint("--list tells what each of them needs"));
    }
    Ok((ready, absent))
}
