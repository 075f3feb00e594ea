//! Runs every step of the rounds, and keeps what each run used and whether its result was right.
// SPDX-License-Identifier: MIT

mod files;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::allocator::Allocator;
use crate::callgrind;
use crate::environment::{self, Variables};
use crate::interrupt::Stop;
use crate::judge;
use crate::launcher::{Command, Launcher};
use crate::measure::{self, End, Job, Measured};
use crate::order::Step;
use crate::program;
use crate::progress::Progress;
use crate::record::{self, Outcome, Run};
use crate::substitute::Values;
use crate::suite::{Check, Workload};
use crate::sys::Ended;
use crate::trouble::{About, Result, Trouble};
use crate::witness::Verdict;

use files::{Files, checksum};

const FIGURES: &str = "PRAIRIE_FIGURES";
const NOTHING: &str = "/dev/null";

/// A workload and where it comes from.
#[derive(Clone)]
pub struct Item {
    /// Its name; empty: a single program from the command line.
    pub suite: String,
    pub workload: Workload,
    /// Relative paths start here, and commands run here.
    pub root: PathBuf,
    pub rounds: u32,
    pub scale: u32,
    /// The exit code must be 0 and the output steady, as a suite's author can promise.
    pub strict: bool,
    /// Counts calls of malloc when it is preloaded before the allocator; see bench/war/calls.c.
    pub counter: Option<PathBuf>,
}

impl Item {
    pub fn is_of_suite(&self) -> bool {
        !self.suite.is_empty()
    }
}

pub struct Bench<'a> {
    pub launcher: &'a mut Launcher,
    pub stop: Stop,
    pub allocators: &'a [Allocator],
    pub items: &'a [Item],
    pub variables: Variables,
    /// A folder for everything that lasts no longer than the tool.
    pub scratch: &'a Path,
    /// valgrind, when instructions are counted.
    pub valgrind: Option<PathBuf>,
}

/// What came of the steps.
pub struct Done {
    pub runs: Vec<Run>,
    /// On single workloads.
    pub notes: Vec<String>,
    /// Why not all steps were run; there is a whole round then.
    pub early: Option<Trouble>,
}

impl Bench<'_> {
    /// Runs the steps in order. An end before the last one costs only the round that it came in.
    pub fn run(&mut self, steps: &[Step], mut progress: Progress) -> Result<Done> {
        let mut runs: Vec<Run> = Vec::new();
        let mut early = None;
        let mut too_slow: Vec<(usize, usize)> = Vec::new();
        for step in steps {
            // One timeout takes the cell out; to wait for more of them tells nothing.
            if too_slow.contains(&(step.workload, step.allocator)) {
                progress.end(step, 0.0);
                continue;
            }
            let item = &self.items[step.workload];
            let allocator = &self.allocators[step.allocator];
            progress.begin(step, &item.workload.name, &allocator.name);
            let start = Instant::now();
            let run = match self.run_step(step) {
                Ok(run) => run,
                Err(error) => {
                    early = Some((step, error));
                    break;
                }
            };
            progress.end(step, start.elapsed().as_secs_f64());
            if let Some(reason) = &run.reason {
                let outcome = run.outcome.text();
                let (workload, allocator) = (&item.workload.name, &allocator.name);
                progress.say(&format!("{workload} / {allocator}: {outcome}: {reason}"));
            }
            if run.outcome == Outcome::TimedOut {
                too_slow.push((step.workload, step.allocator));
            }
            runs.push(run);
        }
        progress.finish();
        let notes = self.compare_outputs(&mut runs);
        let Some((step, error)) = early else { return Ok(Done { runs, notes, early: None }) };
        keep_whole_rounds(&mut runs, step);
        if !runs.iter().any(|run| run.round > 0) {
            return Err(error);
        }
        Ok(Done { runs, notes, early: Some(error) })
    }

    fn compare_outputs(&self, runs: &mut [Run]) -> Vec<String> {
        let mut notes = Vec::new();
        for (index, item) in self.items.iter().enumerate() {
            if item.workload.check != Check::Stdout {
                continue;
            }
            let mut of_item: Vec<&mut Run> =
                runs.iter_mut().filter(|run| run.workload == index).collect();
            let note = judge::compare_outputs(&mut of_item, self.allocators, item.strict);
            notes.extend(note.map(|note| format!("{}: {note}", item.workload.name)));
        }
        for (index, item) in self.items.iter().enumerate() {
            let Some(name) = &item.workload.same_as else { continue };
            let is_other = |other: &Item| {
                other.suite == item.suite
                    && other.workload.name == *name
                    && other.scale == item.scale
            };
            let other = self.items.iter().position(is_other);
            let note = judge::compare_with(runs, index, other, name);
            notes.extend(note.map(|note| format!("{}: {note}", item.workload.name)));
        }
        notes
    }

    /// Runs a workload's setup once, with the C library's malloc; the error says why it failed.
    pub fn set_up(&mut self, item: &Item) -> Result<()> {
        let files = Files::new(self.scratch, item)?;
        let Some(setup) = &item.workload.setup else { return Ok(()) };
        let words = files.values(item).fill_all(setup);
        let measured = self.start(item, &words, &files, &Under::default())?;
        match measured.end {
            End::Itself(Ended::Exited(0)) => Ok(()),
            End::Interrupted => Err(Stop::trouble()),
            end => Err(Trouble::new(format!(
                "its setup failed: {}{}",
                end_text(end, timeout_of(item, false)),
                files.last_words()
            ))),
        }
    }

    fn run_step(&mut self, step: &Step) -> Result<Run> {
        let item = &self.items[step.workload];
        let allocator = &self.allocators[step.allocator];
        let files = Files::new(self.scratch, item)?;
        let words = files.values(item).fill_all(&item.workload.command);
        let valgrind = self.valgrind.clone();
        let under = Under {
            allocator: Some(allocator),
            valgrind: valgrind.as_deref(),
            counter: item.counter.as_deref().filter(|_| step.counts_calls),
        };
        let measured = self.start(item, &words, &files, &under)?;
        let mut run = Run::of(step.workload, step.allocator, step.round, &measured);
        run.counts_calls = step.counts_calls;
        if item.workload.series && !step.counts_calls {
            run.series = measured.series.clone();
        }
        if let End::Itself(ended) = measured.end {
            run.exit_code = Some(ended.code());
        }
        run.stdout_sha256 = checksum(&files.stdout)?;
        if self.valgrind.is_some() {
            let counts = callgrind::read(&files.dir, allocator.library.as_deref());
            run.instructions = counts.instructions;
            run.in_allocator = counts.in_allocator;
            if measured.end == End::Itself(Ended::Exited(0)) && !counts.ran_library {
                run.fail(Outcome::NotServed, "no code of the library ran");
            }
        }
        self.check(&mut run, item, &files, &measured)?;
        require_calls(&mut run, &item.workload, allocator);
        files.remove();
        Ok(run)
    }

    /// All that can be told of one run by itself.
    fn check(
        &mut self,
        run: &mut Run,
        item: &Item,
        files: &Files,
        measured: &Measured,
    ) -> Result<()> {
        let timeout_s = timeout_of(item, self.valgrind.is_some());
        let last_words = || format!("{}{}", end_text(measured.end, timeout_s), files.last_words());
        match measured.end {
            End::Interrupted => return Err(Stop::trouble()),
            End::TimedOut => run.fail(Outcome::TimedOut, last_words()),
            End::Itself(Ended::Killed(_)) => run.fail(Outcome::Crashed, last_words()),
            End::Itself(Ended::Exited(code)) if code != 0 && item.strict => {
                // A shell reports a crash of its command in this way.
                let crashed = code > 128;
                run.fail(if crashed { Outcome::Crashed } else { Outcome::Wrong }, last_words());
            }
            End::Itself(_) => {}
        }
        if measured.seen.program == Verdict::NotServed {
            run.fail(Outcome::NotServed, "the library is not mapped into the program");
        }
        match record::read_figures(&fs::read_to_string(&files.figures).unwrap_or_default()) {
            Ok(figures) => run.figures = figures,
            Err(error) => run.fail(Outcome::Wrong, error),
        }
        if self.valgrind.is_some() && run.instructions.is_none() {
            run.fail(Outcome::Wrong, format!("callgrind left no total{}", files.last_words()));
        }
        let has_figure = item.workload.figure.is_some();
        match run.cost(&item.workload) {
            None => {
                let figure = item.workload.figure.as_ref().map_or("", |figure| &figure.name);
                run.fail(Outcome::Wrong, format!("it did not report the figure '{figure}'"));
            }
            // A ratio to 0 says nothing. Of a clock it is a time too short to be counted.
            Some(cost) if !cost.is_finite() || cost < 0.0 || (cost == 0.0 && has_figure) => {
                run.fail(Outcome::Wrong, "its figure is no cost: 0 or below");
            }
            Some(_) => {}
        }
        if let Check::Command(words) = &item.workload.check
            && run.outcome == Outcome::Right
        {
            self.check_by_command(run, item, files, words)?;
        }
        Ok(())
    }

    fn check_by_command(
        &mut self,
        run: &mut Run,
        item: &Item,
        files: &Files,
        words: &[String],
    ) -> Result<()> {
        let words = files.values(item).fill_all(words);
        // The checker's own output must not replace what it may be about to read.
        let own = Files {
            stdout: files.dir.with_extension("check"),
            stderr: files.stderr.clone(),
            dir: files.dir.clone(),
            shared: files.shared.clone(),
            figures: PathBuf::from(NOTHING),
        };
        let checked = self.start(item, &words, &own, &Under::default())?;
        match checked.end {
            End::Interrupted => return Err(Stop::trouble()),
            End::Itself(Ended::Exited(0)) => {}
            end => {
                let end = end_text(end, timeout_of(item, false));
                let text = format!("its check: {end}{}", own.last_words());
                run.fail(Outcome::Wrong, text);
            }
        }
        Ok(())
    }

    fn start(
        &mut self,
        item: &Item,
        words: &[String],
        files: &Files,
        under: &Under,
    ) -> Result<Measured> {
        let Under { allocator, valgrind, .. } = *under;
        let values = files.values(item);
        let program = program::find(OsStr::new(&words[0]), &item.root)?;
        let variables = self.variables_of(item, &values, files, under);
        let library = allocator.and_then(|allocator| allocator.library.as_deref());
        let stdin = match (&item.workload.stdin, allocator) {
            (Some(path), Some(_)) => item.root.join(values.fill(path)),
            _ => PathBuf::from(NOTHING),
        };
        require_rereadable(&stdin)?;
        let mut arguments = words.to_vec();
        if valgrind.is_some() {
            arguments[0] = program.display().to_string();
            arguments = callgrind::arguments(&files.dir).into_iter().chain(arguments).collect();
        }
        let command = Command {
            program: valgrind.unwrap_or(&program),
            arguments: arguments.iter().map(OsStr::new).collect(),
            environment: variables.iter().map(|(n, v)| (n.as_os_str(), v.as_os_str())).collect(),
            folder: &item.root,
            stdin: Some(&stdin),
            stdout: Some(&files.stdout),
            stderr: Some(&files.stderr),
            own_session: true,
        };
        // Under valgrind a program gets its libraries late; callgrind itself says what ran.
        let library = library.filter(|_| valgrind.is_none());
        let timeout = Some(Duration::from_secs_f64(timeout_of(item, valgrind.is_some())));
        measure::run(self.launcher, &Job { command, library, timeout }, &mut self.stop)
    }

    fn variables_of(
        &self,
        item: &Item,
        values: &Values,
        files: &Files,
        under: &Under,
    ) -> Variables {
        let mut variables = self.variables.clone();
        environment::set(&mut variables, FIGURES, &files.figures);
        for (name, value) in &item.workload.env {
            environment::set(&mut variables, name, values.fill(value));
        }
        let Some(allocator) = under.allocator else { return variables };
        for (name, value) in &allocator.env {
            environment::set(&mut variables, name, values.fill(value));
        }
        let preloaded: Vec<&OsStr> = under
            .counter
            .into_iter()
            .chain(allocator.library.as_deref())
            .map(Path::as_os_str)
            .collect();
        if !preloaded.is_empty() {
            environment::set(&mut variables, "LD_PRELOAD", preloaded.join(OsStr::new(":")));
        }
        variables
    }
}

/// Without those of the round that ended with this step: rounds are compared as pairs. A run that
/// failed has failed all the same.
fn keep_whole_rounds(runs: &mut Vec<Run>, last: &Step) {
    let is_cut = |run: &Run| {
        (run.workload, run.round, run.counts_calls)
            == (last.workload, last.round, last.counts_calls)
    };
    runs.retain(|run| !is_cut(run) || run.outcome != Outcome::Right);
}

/// What a program is started under. Nothing: a setup or a check, on the C library's malloc and with
/// empty input.
#[derive(Default)]
struct Under<'a> {
    allocator: Option<&'a Allocator>,
    valgrind: Option<&'a Path>,
    /// Is preloaded before the allocator's library.
    counter: Option<&'a Path>,
}

/// A program that hardly calls malloc tells nothing about the allocator, whoever was preloaded; one
/// that calls it often tells nothing about a heap of its own.
fn require_calls(run: &mut Run, workload: &Workload, allocator: &Allocator) {
    let least = workload.calls_at_least.filter(|_| !allocator.own_heap);
    let most = allocator.calls_at_most;
    if least.is_none() && most.is_none() {
        return;
    }
    let counted = run.figures.get(record::CALLS).map(|figure| figure.value as u64);
    let called = match (run.counts_calls, run.in_allocator) {
        (false, None) => return,
        (false, Some(inside)) => inside.calls,
        (true, _) => match counted {
            Some(called) => called,
            None => return run.fail(Outcome::NotServed, "the counter of calls left no figure"),
        },
    };
    let reason = match (least, most) {
        (Some(least), _) if called < least => format!("fewer than {least}"),
        (_, Some(most)) if called > most => format!("more than {most}"),
        _ => return,
    };
    run.fail(Outcome::NotServed, format!("{called} calls of malloc's family, {reason}"));
}

/// Why a workload cannot run here; None: it can.
pub fn absent_reason(item: &Item) -> Option<String> {
    let (root, scale, here) = (&item.root, item.scale, Path::new(""));
    let is_of_suite = item.is_of_suite();
    let values = Values { is_of_suite, root, scale, dir: here, shared: here, stdout: here };
    let mut wanted: Vec<String> = item.workload.needs.iter().map(|n| values.fill(n)).collect();
    wanted.extend(item.counter.iter().map(|path| path.display().to_string()));
    // What setup makes cannot be there yet.
    if !item.workload.command[0].contains("{shared}") {
        wanted.push(values.fill(&item.workload.command[0]));
    }
    let missing = |name: &String| {
        let is_file = name.contains('/') && item.root.join(name).exists();
        (!is_file).then(|| program::find(OsStr::new(name), &item.root).err()).flatten()
    };
    wanted.iter().find_map(missing).map(|error| error.to_string())
}

/// Each run reads it from its beginning; of a pipe the first would take all, and others wait.
fn require_rereadable(stdin: &Path) -> Result<()> {
    let name = format!("stdin {}", stdin.display());
    match fs::metadata(stdin).about(&name)?.file_type().is_fifo() {
        true => Err(Trouble::new(format!("{name}: it is a pipe, and each run reads it anew"))
            .hint("write what comes out of it into a file first")),
        false => Ok(()),
    }
}

/// What counts instructions takes its time.
fn timeout_of(item: &Item, counts: bool) -> f64 {
    item.workload.timeout_s * if counts { callgrind::SLOWDOWN } else { 1.0 }
}

fn end_text(end: End, timeout_s: f64) -> String {
    match end {
        End::Itself(ended) => ended.text(),
        End::TimedOut => format!("no end after {timeout_s} s"),
        End::Interrupted => "interrupted".to_owned(),
    }
}

/// For items that come from the command line.
pub fn require_utf8(words: &[std::ffi::OsString]) -> Result<Vec<String>> {
    words
        .iter()
        .map(|word| {
            let text = String::from_utf8(word.as_bytes().to_vec());
            text.map_err(|_| Trouble::new(format!("{}: not UTF-8", word.display())))
        })
        .collect()
}
