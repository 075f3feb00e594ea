//! Answers requests for profiles as Go programs do (/debug/pprof/heap), so that pprof, Pyroscope,
//! Parca and browsers can fetch them.
// SPDX-License-Identifier: MIT

use std::net::TcpListener;

use super::{about, flame, nothing, pprof, stacks, take, title, types};
use crate::answering::{self, Answer, Request};
use crate::cli::Prof;
use crate::interrupt;
use crate::live::text::printable;
use crate::proc;
use crate::refusal;
use crate::sys::{self, Pid};
use crate::terminal;
use crate::trouble::{About, Result, Trouble};

const HOST: &str = "127.0.0.1";

/// Until somebody ends the tool.
pub fn run(options: &Prof, told: &str) -> Result<()> {
    let address = address(told)?;
    // What cannot be taken at the start cannot be taken later.
    take(options)?;
    let met = options.pid.map(Met::of);
    // The server has threads, any of which may get a signal while a process is attached to.
    let stop = interrupt::flag_of(&sys::ENDING_SIGNALS)?;
    let listener = TcpListener::bind(&address).about(format!("--serve {address}"))?;
    let port = listener.local_addr().about(format!("--serve {address}"))?;
    terminal::say(&format!("serving http://{port}/ and http://{port}/debug/pprof/heap"));
    answering::serve(listener, &stop, |request| {
        let answer = match met.as_ref().map_or(Ok(()), Met::require_there) {
            Ok(()) => answer(options, request),
            Err(error) => Answer::text(500, &error.to_string()),
        };
        let asked = printable(&format!("{} {}", request.method, request.path));
        terminal::detail(&format!("{asked}: {}", answer.status));
        answer
    })
}

/// The process that is served. Its number may be given out again.
struct Met {
    pid: Pid,
    started: Option<u64>,
}

impl Met {
    fn of(pid: Pid) -> Met {
        Met { pid, started: proc::started(pid) }
    }

    fn require_there(&self) -> Result<()> {
        match proc::started(self.pid) {
            now if now.is_some() && now == self.started => Ok(()),
            _ => Err(refusal::no_process(self.pid)),
        }
    }
}

/// `:6060` and `6060` are this machine only; others must be named.
fn address(told: &str) -> Result<String> {
    let (host, port) = told.rsplit_once(':').unwrap_or(("", told));
    let host = if host.is_empty() { HOST } else { host };
    match port.parse::<u16>() {
        Ok(port) => Ok(format!("{host}:{port}")),
        Err(_) => Err(Trouble::new(format!("--serve {told}: it must be [HOST]:PORT"))),
    }
}

fn answer(options: &Prof, request: &Request) -> Answer {
    let made = match request.path.trim_end_matches('/') {
        _ if !request.is_to_get() => return Answer::text(405, "only GET"),
        "/debug/pprof/heap" | "/debug/pprof/allocs" => heap(options),
        "" | "/debug/pprof" => page(options),
        _ => return Answer::text(404, "there are / and /debug/pprof/heap"),
    };
    made.unwrap_or_else(|error| Answer::text(500, &error.to_string()))
}

fn heap(options: &Prof) -> Result<Answer> {
    let profiles = take(options)?;
    let signed: Vec<_> = profiles.last().map(|last| (last, 1.0)).into_iter().collect();
    let body = pprof::write(&signed)?;
    Ok(Answer { status: 200, content_type: "application/octet-stream", body })
}

fn page(options: &Prof) -> Result<Answer> {
    let profiles = take(options)?;
    let types = types(options, &profiles)?;
    let stacks = stacks(options, &profiles, &types);
    if stacks.rows.is_empty() {
        return Err(nothing(options, &profiles[0], types[0]));
    }
    let about = about(&profiles, &types, &stacks);
    let body = flame::html(&stacks, &title(options, &profiles), &about)?.into_bytes();
    Ok(Answer { status: 200, content_type: "text/html; charset=utf-8", body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_got_the_number_of_another_is_another() {
        let own = Met::of(sys::own_pid());
        assert!(own.require_there().is_ok());
        let other = Met { started: own.started.map(|ticks| ticks + 1), ..own };
        let said = other.require_there().unwrap_err().to_string();
        assert_eq!(said, format!("there is no process {}", sys::own_pid()));
        assert!(Met::of(Pid::MAX).require_there().is_err());
    }

    #[test]
    fn an_address_without_host_is_this_machine() {
        assert_eq!(address(":6060").unwrap(), "127.0.0.1:6060");
        assert_eq!(address("6060").unwrap(), "127.0.0.1:6060");
        assert_eq!(address("0.0.0.0:80").unwrap(), "0.0.0.0:80");
        let refused = address("here").unwrap_err().to_string();
        assert_eq!(refused, "--serve here: it must be [HOST]:PORT");
    }
}
