//! Notices that the user, or the system, wants this tool to stop.
// SPDX-License-Identifier: MIT

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};

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

/// Signals by which people end a program, or tell it something.
const PASSED_ON: [i32; 4] = [SIGTERM, SIGHUP, SIGUSR1, SIGUSR2];

/// Signals that somebody sent to this tool alone are passed on to the program, which decides. Those of
/// a terminal are so where `sys::outlive_terminal_signals` has been called.
/// The default passes on none.
#[derive(Default)]
pub struct PassOn {
    flags: Vec<(i32, Arc<AtomicBool>)>,
}

impl PassOn {
    pub fn on_signals() -> Result<PassOn> {
        let mut flags = Vec::new();
        for signal in PASSED_ON {
            flags.push((signal, flag_of(&[signal])?));
        }
        Ok(PassOn { flags })
    }
}

impl Watch for PassOn {
    fn interrupted(&mut self, pid: Pid) -> bool {
        for (signal, flag) in &self.flags {
            if flag.swap(false, Ordering::Relaxed) {
                sys::send_signal(pid, *signal);
            }
        }
        sys::sent_terminal_signals().for_each(|signal| sys::send_signal(pid, signal));
        false
    }
}
