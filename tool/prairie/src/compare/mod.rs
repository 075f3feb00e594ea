//! `prairie compare`: from the options to the reports.
// SPDX-License-Identifier: MIT

mod again;
mod documents;

use std::path::Path;
use std::time::SystemTime;

use crate::allocator::{self, Allocator, Wish};
use crate::analysis::Analysis;
use crate::bench::{Bench, Done};
use crate::callgrind;
use crate::cli::Compare;
use crate::environment;
use crate::interrupt::Stop;
use crate::launcher::Launcher;
use crate::live::text::printable;
use crate::machine;
use crate::order;
use crate::places;
use crate::plan;
use crate::progress::Progress;
use crate::record::{Outcome, Run};
use crate::refusal;
use crate::report::{self, Block, render};
use crate::suite::Suite;
use crate::sys;
use crate::terminal;
use crate::trouble::{About, Result, Trouble};
use crate::witness::Verdict;

use documents::Document;

const WRONG_RESULTS: i32 = 1;

pub fn run(options: &Compare, launcher: &mut Launcher) -> Result<i32> {
    refusal::require_our_numbers()?;
    documents::require_writable(options)?;
    let suites = options.suite.iter().map(|path| Suite::read(path)).collect::<Result<Vec<_>>>()?;
    require_names_of_their_own(&suites)?;
    let of_suites = suites.iter().find_map(|suite| places::project_above(&suite.root));
    let root = of_suites.or_else(places::project);
    // Before there is a folder that a signal would leave behind.
    let stop = Stop::on_signals()?;
    let scratch =
        tempfile::Builder::new().prefix("prairie-").tempdir().about("a temporary folder")?;
    require_loadable(scratch.path())?;

    let named: Vec<_> = suites.iter().flat_map(|suite| suite.allocators.clone()).collect();
    let wish = Wish {
        names: options.allocators.clone(),
        extra: options.extra.clone(),
        prairie: options.library.clone(),
    };
    let libraries = scratch.path().join("libraries");
    let gathered = allocator::gather(&wish, &named, root.as_deref(), &libraries);
    // A library that was being proved has not failed when the terminal ended who proved it.
    stop.require_none()?;
    let (allocators, absent) = gathered?;
    let (subject, baseline) = roles(options, &allocators)?;
    let plan = plan::make(options, &suites)?;
    if options.list {
        terminal::show(&render::terminal(&report::list::blocks(&plan, &allocators, &absent)))?;
        return Ok(0);
    }

    let machine = machine::describe();
    sys::adopt_orphans();
    let (variables, left_out) = environment::neutral();
    let mut bench = Bench {
        launcher,
        stop,
        allocators: &allocators,
        items: &plan.items,
        variables,
        scratch: scratch.path(),
        valgrind: options.instructions.then(callgrind::find).transpose()?,
    };
    let (items, absent_workloads) = plan::set_up(&mut bench, plan.absent())?;
    bench.items = &items;
    let mut rounds: Vec<u32> = items.iter().map(|item| item.rounds).collect();
    let seed = options.seed.unwrap_or_else(|| rand::random_range(0..1_000_000));
    let warm_ups = options.warmup.unwrap_or(u32::from(!options.quick && !options.instructions));
    let counted: Vec<usize> = (0..items.len()).filter(|i| items[*i].counter.is_some()).collect();
    let mut steps = order::counting(&counted, allocators.len());
    steps.extend(order::shuffled(&rounds, allocators.len(), warm_ups, seed));
    steps.retain(|step| allocators[step.allocator].takes_part_in(&items[step.workload].workload));
    terminal::say(&format!("{} runs, seed {seed}", steps.len()));
    let progress = Progress::new(&steps, items.len(), terminal::is_quiet());
    let Done { runs, mut notes, early } = bench.run(&steps, progress)?;
    if let Some(error) = &early {
        rounds = rounds_of(&runs, items.len());
        notes.push(format!("Not all rounds were run: {error}"));
    }
    notes.extend(notes_on(&left_out, &runs, &allocators));
    notes.extend(note_on_memory_peers(options, &allocators));

    let analysis = Analysis::new(&allocators, &items, &runs, seed);
    let analysis = analysis.with_memory_peers(&options.memory_peers);
    let result = report::Result {
        analysis: &analysis,
        suites: &suites,
        machine: &machine,
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        seed,
        again: again::command(options, seed, &[]),
        rounds: rounds_text(&rounds, warm_ups),
        quick: options.quick,
        instructions: options.instructions,
        subject,
        baseline,
        absent_allocators: &absent,
        absent_workloads: &absent_workloads,
        notes,
    };
    // A suite says which curves it wants; of a single program one for each allocator is enough.
    let kept = suites.is_empty().then(|| report::chart::with_one_curve(&runs));
    let documents = documents::asked_for(options);
    let is_table = !documents.iter().any(Document::is_standard_output);
    let shown = if is_table {
        terminal::show(&render::terminal(&blocks(&result, options.full)))
    } else {
        Ok(())
    };
    let written = documents::write(&documents, options, &result, kept.as_deref().unwrap_or(&runs));
    shown.and(written)?;
    if let Some(error) = early {
        return Err(error);
    }
    if documents.is_empty() {
        terminal::next(&again::command(options, seed, &["-o", "report.html"]));
    }
    Ok(if analysis.has_failures() { WRONG_RESULTS } else { 0 })
}

/// By it a workload of a suite is known, and what its setup makes.
fn require_names_of_their_own(suites: &[Suite]) -> Result<()> {
    let is_taken = |(index, suite): &(usize, &Suite)| {
        suites[..*index].iter().any(|earlier| earlier.name == suite.name)
    };
    match suites.iter().enumerate().find(is_taken) {
        Some((_, suite)) => Err(Trouble::new(format!("two suites are called '{}'", suite.name))),
        None => Ok(()),
    }
}

/// Copies of libraries lie there, and LD_PRELOAD cannot hold every path.
fn require_loadable(scratch: &Path) -> Result<()> {
    if scratch.display().to_string().contains(places::SPLITS_A_PRELOAD) {
        let text = format!("{}: libraries cannot be preloaded from there", scratch.display());
        return Err(
            Trouble::new(text).hint("set TMPDIR to a folder without blanks, ':', ';' and '$'")
        );
    }
    Ok(())
}

/// The allocator whose lead is told, and the one whose figures are 1.
fn roles(options: &Compare, allocators: &[Allocator]) -> Result<(usize, usize)> {
    let find = |name: &str| allocators.iter().position(|allocator| allocator.name == name);
    let choose = |option: &str, told: &Option<String>, default: &str| match told {
        None => Ok(find(default).unwrap_or(0)),
        Some(name) => find(name).ok_or_else(|| {
            Trouble::new(format!("--{option} {name}: no such allocator takes part"))
        }),
    };
    let peers = &options.memory_peers;
    if !peers.is_empty() && peers.iter().all(|name| find(name).is_none()) {
        return Err(Trouble::new("--memory-peers: none of them takes part"));
    }
    Ok((
        choose("subject", &options.subject, allocator::PRAIRIE)?,
        choose("baseline", &options.baseline, allocator::C_LIBRARY)?,
    ))
}

/// Of each workload, as far as they were run.
fn rounds_of(runs: &[Run], workload_count: usize) -> Vec<u32> {
    let of = |workload| runs.iter().filter(move |run| run.workload == workload);
    let last = |workload| of(workload).map(|run| run.round).max().unwrap_or(0);
    (0..workload_count).map(last).collect()
}

fn rounds_text(rounds: &[u32], warm_ups: u32) -> String {
    let (low, high) = (rounds.iter().min().unwrap_or(&0), rounds.iter().max().unwrap_or(&0));
    let text = match (low, high) {
        (1, 1) => "1 round".to_owned(),
        (low, high) if low == high => format!("{high} rounds"),
        (low, high) => format!("{low} to {high} rounds"),
    };
    match warm_ups {
        0 => text,
        1 => text + " after a warm-up",
        count => format!("{text} after {count} warm-ups"),
    }
}

/// What a reader must know about the environment and the programs.
fn notes_on(left_out: &[String], runs: &[Run], allocators: &[Allocator]) -> Vec<String> {
    let mut notes = Vec::new();
    if !left_out.is_empty() {
        notes.push(format!("Not passed on to the programs: {}", left_out.join(", ")));
    }
    for (index, allocator) in allocators.iter().enumerate() {
        let of_allocator = || runs.iter().filter(|run| run.allocator == index);
        let mut own: Vec<&String> =
            of_allocator().flat_map(|run| &run.seen.other_allocators).collect();
        own.sort();
        own.dedup();
        let own = own.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        if !own.is_empty() && allocator.library.is_none() {
            notes.push(format!(
                "Under {}, programs loaded an allocator of their own ({own}), which answers instead",
                allocator.name
            ));
        }
        let mut unserved: Vec<&String> =
            of_allocator().flat_map(|run| &run.seen.not_served).collect();
        unserved.sort();
        unserved.dedup();
        if !unserved.is_empty() {
            let names = unserved.iter().map(|name| printable(name)).collect::<Vec<_>>().join(", ");
            notes.push(format!("Not served by {}: processes called {names}", allocator.name));
        }
        let count = of_allocator().count();
        let unseen = of_allocator().filter(|run| run.seen.program == Verdict::NotSeen).count();
        if unseen > 0 {
            notes.push(format!(
                "Under {}, {unseen} of {count} runs ended too soon to be seen served",
                allocator.name
            ));
        }
    }
    notes.extend(note_on_failure(runs));
    let left_behind: usize = runs.iter().map(|run| run.left_behind).sum();
    if left_behind > 0 {
        notes.push(format!("{left_behind} processes ran on after their program, and were ended"));
    }
    notes
}

/// Those of them that take part, or that none does.
fn note_on_memory_peers(options: &Compare, allocators: &[Allocator]) -> Option<String> {
    let named = &options.memory_peers;
    let present = allocators.iter().map(|allocator| &allocator.name);
    let names: Vec<&str> = present.filter(|n| named.contains(n)).map(String::as_str).collect();
    let text = match names.is_empty() {
        true => format!("None of the memory peers takes part: {}", named.join(", ")),
        false => format!("Leads in memory are over these only: {}", names.join(", ")),
    };
    (!named.is_empty()).then_some(text)
}

/// A program that fails everywhere is the same everywhere; but perhaps nobody wanted to measure that.
fn note_on_failure(runs: &[Run]) -> Option<String> {
    let right = || runs.iter().filter(|run| run.outcome == Outcome::Right);
    let failed = right().filter(|run| run.exit_code.is_some_and(|code| code != 0));
    let count = failed.clone().count();
    let code = failed.clone().find_map(|run| run.exit_code)?;
    Some(format!(
        "{count} of {} runs ended with a code that is not 0, as {code}, the same under all allocators",
        right().count()
    ))
}

fn blocks(result: &report::Result, full: bool) -> Vec<Block> {
    if result.suites.is_empty() {
        report::single::blocks(result)
    } else {
        report::suite::blocks(result, full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_program_that_fails_everywhere_is_told() {
        let mut runs = [fixture::run(0, 0, 1), fixture::run(0, 1, 1)];
        assert_eq!(note_on_failure(&runs), None);
        runs[1].exit_code = Some(3);
        let text = note_on_failure(&runs).unwrap();
        assert!(text.starts_with("1 of 2 runs ended with a code that is not 0, as 3"), "{text}");
        runs[1].outcome = Outcome::Crashed;
        assert_eq!(note_on_failure(&runs), None);
    }

    #[test]
    fn rounds_are_told() {
        assert_eq!(rounds_text(&[10, 10], 1), "10 rounds after a warm-up");
        assert_eq!(rounds_text(&[3, 10], 0), "3 to 10 rounds");
        assert_eq!(rounds_text(&[1], 2), "1 round after 2 warm-ups");
    }
}
