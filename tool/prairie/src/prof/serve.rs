//! Answers requests for profiles as Go programs do (/debug/pprof/heap), so that pprof, Pyroscope,
//! Parca and browsers can fetch them.
// SPDX-License-Identifier: MIT

use std::net::TcpListener;

use super::{about, flame, nothing, pprof, stacks, take, title, types};
use crate::answering::{self, Answer, Request};
use crate::cli::Prof;
use crate::interrupt;
use crate::live::text::printable;
use crate::sys;
use crate::terminal;
use crate::trouble::{About, Result, Trouble};

const HOST: &str = "127.0.0.1";

/// Until somebody ends the tool.
pub fn run(options: &Prof, told: &str) -> Result<()> {
    let address = address(told)?;
    // What cannot be taken at the start cannot be taken later.
    take(options)?;
    // The server has threads, any of which may get a signal while a process is attached to.
    let stop = interrupt::flag_of(&sys::ENDING_SIGNALS)?;
    let listener = TcpListener::bind(&address).about(format!("--serve {address}"))?;
    let port = listener.local_addr().about(format!("--serve {address}"))?;
    terminal::say(&format!("serving http://{port}/ and http://{port}/debug/pprof/heap"));
    answering::serve(listener, &stop, |request| {
        let answer = answer(options, request);
        let asked = printable(&format!("{} {}", request.method, request.path));
        terminal::detail(&format!("{asked}: {}", answer.status));
        answer
    })
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
        return Err(nothing(&profiles[0], types[0]));
    }
    let about = about(&profiles, &types, &stacks);
    let body = flame::html(&stacks, &title(options, &profiles), &about)?.into_bytes();
    Ok(Answer { status: 200, content_type: "text/html; charset=utf-8", body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_host_is_this_machine() {
        assert_eq!(address(":6060").unwrap(), "127.0.0.1:6060");
        assert_eq!(address("6060").unwrap(), "127.0.0.1:6060");
        assert_eq!(address("0.0.0.0:80").unwrap(), "0.0.0.0:80");
        let refused = address("here").unwrap_err().to_string();
        assert_eq!(refused, "--serve here: it must be [HOST]:PORT");
    }
}
