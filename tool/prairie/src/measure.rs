//! Runs one program and measures the whole tree of its processes.
// SPDX-License-Identifier: MIT

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::launcher::{Command, Launcher, Started};
use crate::sys::{self, Ended, Pid, Usage};
use crate::tree::{Root, Tree};
use crate::trouble::{About, Result};
use crate::witness::{Seen, Witness};

/// Between two looks at the tree: a sixteenth of the program's age, within these limits, and at
/// least so many times what a look takes of a processor's time, so that looking takes at most some
/// per cent of one core. A look that had to wait for a processor is not a dear one.
const LOOK_EVERY_MIN: Duration = Duration::from_micros(200);
const LOOK_EVERY_MAX: Duration = Duration::from_millis(5);
const LOOK_COST_FACTOR: u32 = 20;

/// Time that processes get to end by themselves after a polite signal.
const GRACE: Duration = Duration::from_millis(300);
const KILL_PATIENCE: Duration = Duration::from_secs(5);

pub struct Job<'a> {
    pub command: Command<'a>,
    /// The library that must serve it; None: the C library's malloc.
    pub library: Option<&'a Path>,
    /// None: it may take as long as it likes.
    pub timeout: Option<Duration>,
}

/// What else happens at every look: others look too, and somebody may stop the run.
pub trait Watch {
    /// The processes that run now, more often than whoever looks at them may want.
    fn look(&mut self, _pids: &[Pid]) {}

    /// True: end the program now.
    fn interrupted(&mut self, pid: Pid) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Itself(Ended),
    TimedOut,
    Interrupted,
}

#[derive(Debug)]
pub struct Measured {
    pub pid: Pid,
    pub end: End,
    pub wall_s: f64,
    pub usage: Usage,
    /// The tree's resident memory at its highest.
    pub peak_bytes: u64,
    /// Resident memory of the tree summed over time.
    pub byte_seconds: f64,
    pub look_count: u64,
    pub process_count_max: usize,
    /// Processes that still ran when the program had ended, and were ended too: those of a program with
    /// a session of its own.
    pub left_behind: usize,
    /// Resident memory over time, thinned: seconds and bytes.
    pub series: Vec<(f64, u64)>,
    pub seen: Seen,
}

/// Orphans must be this tool's to be seen: `sys::adopt_orphans` comes before.
pub fn run(launcher: &mut Launcher, job: &Job, watch: &mut dyn Watch) -> Result<Measured> {
    let how = "pidfd_open (Linux 5.3 or later is needed)";
    // What cannot be waited for is not started: a filter on system calls may not know this one.
    sys::open_process(sys::own_pid()).about(how)?;
    // It hears of the library from the start.
    let witness = Witness::new(job.library);
    let started = launcher.start(&job.command)?;
    let root = Root::of_tool(launcher.pid);
    let mut guard = Guard { main: started.pid, root, armed: job.command.own_session };
    let end_fd = sys::open_process(started.pid).about(how)?;
    let mut watching = Watching {
        tree: Tree::new(root),
        witness,
        memory: Memory::new(started.start_ns),
        usage: Usage::default(),
        process_count_max: 0,
    };
    let ended = watching.until_end(job, &started, &end_fd, watch);
    let end_ns = sys::monotonic_ns();
    watching.witness.program_ended(started.pid);
    if ended.is_some() {
        // The whole group; whoever has left it is found among the adopted afterwards.
        sys::send_signal(-started.pid, libc::SIGKILL);
        sys::send_signal(started.pid, libc::SIGKILL);
    }
    let reaped = sys::reap(started.pid, true);
    if let Some(reaped) = &reaped {
        watching.usage.add(&reaped.usage);
    }
    let left_behind = if job.command.own_session {
        watching.end_the_rest(launcher.pid)
    } else {
        watching.count_the_ended();
        0
    };
    guard.armed = false;
    let by_itself = reaped.map_or(Ended::Exited(0), |reaped| reaped.ended);
    Ok(Measured {
        pid: started.pid,
        end: ended.unwrap_or(End::Itself(by_itself)),
        wall_s: (end_ns - started.start_ns) as f64 / 1e9,
        usage: watching.usage,
        peak_bytes: watching.memory.peak_bytes.max(watching.usage.peak_bytes),
        byte_seconds: watching.memory.until(end_ns),
        look_count: watching.memory.look_count,
        process_count_max: watching.process_count_max,
        left_behind,
        series: watching.memory.series.points(),
        seen: watching.witness.finish(),
    })
}

/// Ends a program whose measuring is given up, by an error or a panic.
struct Guard {
    main: Pid,
    root: Root,
    armed: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.armed {
            sys::send_signal(-self.main, libc::SIGKILL);
            Tree::new(self.root)
                .look()
                .iter()
                .for_each(|pid| sys::send_signal(*pid, libc::SIGKILL));
        }
    }
}

/// After a look that cost so much time of a processor, at a program of this age.
fn pause(age: Duration, cost: Duration) -> Duration {
    (age / 16).clamp(LOOK_EVERY_MIN, LOOK_EVERY_MAX).max(cost * LOOK_COST_FACTOR)
}

struct Watching {
    tree: Tree,
    witness: Witness,
    memory: Memory,
    usage: Usage,
    process_count_max: usize,
}

impl Watching {
    /// Looks at the tree until the program ends, or has to: why is then the result.
    fn until_end(
        &mut self,
        job: &Job,
        started: &Started,
        end_fd: &OwnedFd,
        watch: &mut dyn Watch,
    ) -> Option<End> {
        loop {
            let look_ns = sys::monotonic_ns();
            let before_ns = sys::thread_cpu_ns();
            self.look(look_ns);
            let age = Duration::from_nanos(look_ns - started.start_ns);
            let cost = Duration::from_nanos(sys::thread_cpu_ns() - before_ns);
            if sys::readable_within(end_fd, pause(age, cost)) {
                return None;
            }
            if job.timeout.is_some_and(|limit| age > limit) {
                return Some(End::TimedOut);
            }
            watch.look(self.tree.pids());
            if watch.interrupted(started.pid) {
                return Some(End::Interrupted);
            }
            self.reap_orphans(started.pid, end_fd);
        }
    }

    fn look(&mut self, now_ns: u64) {
        let pids = self.tree.look();
        self.process_count_max = self.process_count_max.max(pids.len());
        self.witness.look(pids, now_ns);
        self.memory.add(now_ns, self.tree.resident_bytes());
    }

    /// Counts adopted processes that have ended. The program itself is left for the caller: it is
    /// only looked for while it runs.
    fn reap_orphans(&mut self, main: Pid, end_fd: &OwnedFd) {
        for pid in self.tree.pids() {
            let pid = *pid;
            if pid != main
                && !sys::readable_within(end_fd, Duration::ZERO)
                && let Some(reaped) = sys::reap(pid, false)
            {
                self.usage.add(&reaped.usage);
            }
        }
    }

    /// Counts what has ended by now, and leaves alone what runs on, as a daemon does.
    fn count_the_ended(&mut self) {
        for pid in self.tree.look() {
            if let Some(reaped) = sys::reap(*pid, false) {
                self.usage.add(&reaped.usage);
            }
        }
    }

    /// Ends every process that the program left behind, politely first. Returns how many ran.
    fn end_the_rest(&mut self, launcher: Pid) -> usize {
        let mut tree = Tree::new(Root::of_tool(launcher));
        let start = Instant::now();
        let mut left_behind = 0;
        let mut asked = false;
        loop {
            let mut running = Vec::new();
            for pid in tree.look() {
                match sys::reap(*pid, false) {
                    Some(reaped) => self.usage.add(&reaped.usage),
                    None => running.push(*pid),
                }
            }
            if running.is_empty() || start.elapsed() > KILL_PATIENCE {
                return left_behind;
            }
            left_behind = left_behind.max(running.len());
            let signal = if start.elapsed() > GRACE { libc::SIGKILL } else { libc::SIGTERM };
            if signal == libc::SIGKILL || !asked {
                running.iter().for_each(|pid| sys::send_signal(*pid, signal));
                asked = true;
            }
            std::thread::sleep(Duration::from_millis(2));
            tree = Tree::new(Root::of_tool(launcher));
        }
    }
}

/// Resident memory over time: its highest value and its integral, by the trapezoid rule.
struct Memory {
    last_ns: u64,
    last_bytes: u64,
    peak_bytes: u64,
    byte_seconds: f64,
    look_count: u64,
    start_ns: u64,
    series: Series,
}

impl Memory {
    fn new(start_ns: u64) -> Memory {
        Memory {
            last_ns: start_ns,
            last_bytes: 0,
            peak_bytes: 0,
            byte_seconds: 0.0,
            look_count: 0,
            start_ns,
            series: Series::default(),
        }
    }

    fn add(&mut self, now_ns: u64, bytes: u64) {
        // Nothing is known before the first look, so its value holds from the start.
        let before = if self.look_count == 0 { bytes } else { self.last_bytes };
        let seconds = now_ns.saturating_sub(self.last_ns) as f64 / 1e9;
        self.byte_seconds += seconds * (before as f64 + bytes as f64) / 2.0;
        (self.last_ns, self.last_bytes) = (now_ns, bytes);
        self.peak_bytes = self.peak_bytes.max(bytes);
        self.look_count += 1;
        self.series.add(now_ns.saturating_sub(self.start_ns), bytes);
    }

    /// The integral up to the end; the last value holds until then.
    fn until(&self, end_ns: u64) -> f64 {
        let rest = end_ns.saturating_sub(self.last_ns) as f64 / 1e9;
        self.byte_seconds + rest * self.last_bytes as f64
    }
}

/// A curve of some hundred points, however long it becomes: its steps grow with it. A point is the
/// highest value of its step.
#[derive(Default)]
struct Series {
    step_ns: u64,
    highest: Vec<u64>,
}

impl Series {
    const POINTS: usize = 800;
    const STEP_NS: u64 = 5_000_000;

    fn add(&mut self, age_ns: u64, bytes: u64) {
        self.step_ns = self.step_ns.max(Self::STEP_NS);
        while (age_ns / self.step_ns) as usize >= Self::POINTS {
            self.step_ns *= 2;
            let pairs = self.highest.chunks(2);
            self.highest = pairs.map(|pair| pair.iter().copied().max().unwrap_or(0)).collect();
        }
        let index = (age_ns / self.step_ns) as usize;
        // A step without a look keeps what was seen before it.
        let before = self.highest.last().copied().unwrap_or(bytes);
        if index >= self.highest.len() {
            self.highest.resize(index, before);
            self.highest.push(bytes);
        }
        self.highest[index] = self.highest[index].max(bytes);
    }

    fn points(&self) -> Vec<(f64, u64)> {
        let second = |index: usize| index as f64 * self.step_ns as f64 / 1e9;
        self.highest.iter().enumerate().map(|(i, bytes)| (second(i), *bytes)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_with_the_age_and_with_what_a_look_costs() {
        let micros = Duration::from_micros;
        assert_eq!(pause(micros(0), micros(1)), LOOK_EVERY_MIN);
        assert_eq!(pause(micros(32_000), micros(1)), micros(2000));
        assert_eq!(pause(Duration::from_secs(9), micros(1)), LOOK_EVERY_MAX);
        assert_eq!(pause(micros(0), micros(700)), micros(14_000));
    }

    #[test]
    fn a_series_stays_short_and_keeps_its_peaks() {
        let mut series = Series::default();
        for look in 0..100_000 {
            series.add(look * Series::STEP_NS, if look == 77_777 { 500 } else { look % 100 });
        }
        let points = series.points();
        assert!((Series::POINTS / 2..=Series::POINTS).contains(&points.len()), "{}", points.len());
        let peak = points.iter().max_by_key(|point| point.1).unwrap();
        assert_eq!(peak.1, 500);
        let at = 77_777.0 * Series::STEP_NS as f64 / 1e9;
        assert!((peak.0 - at).abs() < 1.0, "{} is not {at}", peak.0);
    }

    #[test]
    fn a_series_bridges_a_gap() {
        let mut series = Series::default();
        series.add(0, 7);
        series.add(3 * Series::STEP_NS, 9);
        let bytes: Vec<u64> = series.points().iter().map(|point| point.1).collect();
        assert_eq!(bytes, [7, 7, 7, 9]);
    }

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn memory_over_time_is_an_area() {
        let mut memory = Memory::new(0);
        memory.add(SECOND_NS, 100);
        memory.add(2 * SECOND_NS, 300);
        memory.add(3 * SECOND_NS, 100);
        assert_eq!(memory.peak_bytes, 300);
        // 100 held for one second, two slopes of 200 on average, then 100 for two seconds.
        assert_eq!(memory.until(5 * SECOND_NS), 100.0 + 200.0 + 200.0 + 200.0);
    }

    #[test]
    fn a_run_without_a_look_has_no_area() {
        assert_eq!(Memory::new(0).until(SECOND_NS), 0.0);
    }
}
