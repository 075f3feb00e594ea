//! `prairie exporter`: the figures of processes for Prometheus, over HTTP or in a file.
// SPDX-License-Identifier: MIT

use std::fs;
use std::io::{self, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::metrics::{self, Form};
use super::sample::{Host, Sample, Target};
use super::stats;
use crate::answering::{self, Answer, Request};
use crate::cli::Exporter;
use crate::interrupt;
use crate::output;
use crate::refusal;
use crate::terminal;
use crate::trouble::{About, Result, Trouble};

/// Between two looks whether somebody wants us to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub fn run(options: &Exporter) -> Result<i32> {
    refusal::require_our_numbers()?;
    let mut whom = Whom::new(options)?;
    let stop = interrupt::flag_of(&[SIGINT, SIGTERM, SIGHUP])?;
    match &options.textfile {
        Some(path) => write_files(path, options, &mut whom, &stop)?,
        None if options.once => {
            terminal::show(&metrics::text(&whom.samples(), Form::OpenMetrics))?;
        }
        None => serve(options, &mut whom, &stop)?,
    }
    Ok(0)
}

enum Whom {
    Some(Vec<Target>),
    All(Host, Option<String>),
}

impl Whom {
    /// Fails when one of the processes that are named is not there, or may not be read.
    fn new(options: &Exporter) -> Result<Whom> {
        if options.all {
            return Ok(Whom::All(Host::default(), options.name.clone()));
        }
        // One that is named twice is one: no series may come twice.
        let mut pids = options.pids.clone();
        pids.sort_unstable();
        pids.dedup();
        let mut targets = Vec::new();
        for pid in pids {
            let mut target = Target::new(pid)?;
            if let Some(Sample { figures: None, why: Some(why), .. }) = target.sample(0) {
                return Err(stats::trouble(&why));
            }
            targets.push(target);
        }
        Ok(Whom::Some(targets))
    }

    fn samples(&mut self) -> Vec<Sample> {
        match self {
            Whom::Some(targets) => targets.iter_mut().filter_map(|t| t.sample(0)).collect(),
            Whom::All(host, name) => host.samples(name.as_deref()),
        }
    }
}

// ---- a file ----

/// What cannot be written at the start is wrong; later it may be possible again, as when there is room
/// once more.
fn write_files(path: &Path, options: &Exporter, whom: &mut Whom, stop: &AtomicBool) -> Result<()> {
    output::require_folder(path)?;
    let mut begin = Instant::now();
    let mut write = || replace(path, &metrics::text(&whom.samples(), Form::Prometheus));
    write()?;
    let mut is_told = false;
    while !options.once && lasts_until(begin + options.every, stop) {
        begin = Instant::now();
        let written = write();
        if let Err(trouble) = &written
            && !is_told
        {
            trouble.print();
        }
        is_told = written.is_err();
    }
    Ok(())
}

/// False when somebody wants us to end before.
fn lasts_until(end: Instant, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        match end.saturating_duration_since(Instant::now()) {
            Duration::ZERO => return true,
            left => std::thread::sleep(LOOK_EVERY.min(left)),
        }
    }
    false
}

/// Readers see the old file or the new one, never a part.
fn replace(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        .prefix(".prairie")
        .permissions(readable_by_all())
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .map_err(without_path)
        .about(path.display())?;
    file.write_all(text.as_bytes()).about(path.display())?;
    file.persist(path).map(drop).map_err(|error| error.error).about(path.display())
}

/// The file that is made first has a name that nobody chose.
fn without_path(error: io::Error) -> String {
    let text = error.to_string();
    text.split(" at path ").next().unwrap_or_default().to_owned()
}

fn readable_by_all() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o644)
}

// ---- HTTP ----

fn serve(options: &Exporter, whom: &mut Whom, stop: &AtomicBool) -> Result<()> {
    let wrong = |error: io::Error| {
        Trouble::new(format!("{}: {error}", options.listen))
            .hint("--listen ADDRESS:PORT chooses another address; port 0 is any that is free")
    };
    let listener = TcpListener::bind(&options.listen).map_err(wrong)?;
    let address = listener.local_addr().map_err(wrong)?;
    terminal::say(&format!("prairie: serving http://{address}/metrics"));
    answering::serve(listener, stop, |request| answer(request, whom))
}

fn answer(request: &Request, whom: &mut Whom) -> Answer {
    let found =
        |content_type, text: String| Answer { status: 200, content_type, body: text.into_bytes() };
    match request.path.as_str() {
        _ if !request.is_to_get() => Answer::text(405, "only GET"),
        "/metrics" => {
            // The newer form for who says that it reads it.
            let reads_newer = request.accept.contains("application/openmetrics-text");
            let form = if reads_newer { Form::OpenMetrics } else { Form::Prometheus };
            found(form.content_type(), metrics::text(&whom.samples(), form))
        }
        "/" => {
            let link = "<a href=\"/metrics\">metrics</a>\n";
            found("text/html; charset=utf-8", link.to_owned())
        }
        _ => Answer::text(404, "there is /metrics, and nothing else"),
    }
}
