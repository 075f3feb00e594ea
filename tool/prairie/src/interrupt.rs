//! Notices that the user, or the system, wants this tool to stop.
// SPDX-License-Identifier: MIT

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};

use crate::launcher::{Bystander, Launcher, TOLD_SIGNALS};
use crate::measure::Watch;
use crate::sys::{self, Pid};
use crate::trouble::{About, INTERRUPTED, Result, Trouble};

/// True when one of these signals has come; from now on they end nothing by themselves. SIGHUP that is
/// ignored stays so, as nohup wants.
pub fn flag_of(signals: &[i32]) -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in signals.iter().filter(|signal| **signal != SIGHUP || !sys::is_ignored(SIGHUP)) {
        signal_hook::flag::register(*signal, Arc::clone(&flag)).about("signals")?;
    }
    Ok(flag)
}

/// Any signal that would end this tool ends the run and the tool.
pub struct Stop {
    flag: Arc<AtomicBool>,
}

impl Stop {
    pub fn on_signals() -> Result<Stop> {
        Ok(Stop { flag: flag_of(&sys::ENDING_SIGNALS)? })
    }

    pub fn trouble() -> Trouble {
        Trouble::new("interrupted").code(INTERRUPTED)
    }

    /// Fails when one has come.
    pub fn require_none(&self) -> Result<()> {
        if self.flag.load(Ordering::Relaxed) { Err(Stop::trouble()) } else { Ok(()) }
    }
}

impl Watch for Stop {
    fn interrupted(&mut self, _pid: Pid) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

/// How long a signal waits before it is passed on. Who sends it to several processes, one after the
/// other, is done by then.
const SENDING_TIME: Duration = Duration::from_millis(10);

/// Signals that somebody sent to this tool alone are passed on to the program, which decides. Those that
/// were sent to the whole process group, as a terminal does, or to all processes of a control group, the
/// program has got itself: the kernel tells the two apart by nothing but who else has got them.
/// The default passes on none.
#[derive(Default)]
pub struct PassOn {
    flags: Vec<(i32, Arc<AtomicBool>)>,
    bystander: Option<Bystander>,
    /// What all have got, a bit for each signal, but for those that were looked at here.
    got_by_all: u64,
}

impl PassOn {
    pub fn on_signals(launcher: &Launcher) -> Result<PassOn> {
        let mut flags = Vec::new();
        // In the background of a shell the terminal's are ignored, and stay so.
        let is_left = |signal: i32| [SIGINT, SIGQUIT].contains(&signal) && sys::is_ignored(signal);
        for signal in TOLD_SIGNALS.into_iter().filter(|signal| !is_left(*signal)) {
            flags.push((signal, flag_of(&[signal])?));
        }
        let bystander = Bystander::new(launcher).about("the launcher")?;
        Ok(PassOn { flags, bystander: Some(bystander), got_by_all: 0 })
    }
}

impl Watch for PassOn {
    fn interrupted(&mut self, pid: Pid) -> bool {
        let has_come = |(_, flag): &&(i32, Arc<AtomicBool>)| flag.swap(false, Ordering::Relaxed);
        let come: Vec<_> = self.flags.iter().filter(has_come).collect();
        if come.is_empty() {
            return false;
        }
        std::thread::sleep(SENDING_TIME);
        // One that has come twice meanwhile is one.
        come.iter().for_each(|(_, flag)| flag.store(false, Ordering::Relaxed));
        // Another one may be there that came while this waited: it is looked at next time.
        self.got_by_all |= self.bystander.as_mut().map_or(0, Bystander::has_got);
        let is_in_group = sys::is_in_own_group(pid);
        for (signal, _) in come {
            if !is_in_group || self.got_by_all & (1 << signal) == 0 {
                sys::send_signal(pid, *signal);
            }
            self.got_by_all &= !(1 << signal);
        }
        false
    }
}
