//! Samples in the text form of OpenMetrics, or in the older one of Prometheus, of which the collector
//! of text files knows no other. Names and sentences are those of the library's own
//! `prairie_stats_metrics`; each sample says of which process it is.
// SPDX-License-Identifier: MIT

use std::fmt::Write;

use super::figures::{Class, Figures, Lock};
use super::sample::Sample;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    OpenMetrics,
    Prometheus,
}

impl Form {
    pub fn content_type(self) -> &'static str {
        match self {
            Form::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Form::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

enum Source {
    Gauge(fn(&Figures) -> u64),
    Counter(fn(&Figures) -> u64),
    LockCounter(fn(&Lock) -> u64),
    ClassGauge(fn(&Class) -> u64),
    ClassCounter(fn(&Class) -> u64),
    /// Of the kernel; also of a process whose figures cannot be had.
    Process(fn(&Sample) -> u64),
}

use Source::{ClassCounter, ClassGauge, Counter, Gauge, LockCounter, Process};

const METRICS: &[(&str, &str, Source)] = &[
    (
        "up",
        "1: the process is on prairie and can be read.",
        Process(|s| s.figures.is_some().into()),
    ),
    ("process_resident_bytes", "Resident memory of the whole process.", Process(|s| s.resident)),
    ("process_swapped_bytes", "Of the process, in swap.", Process(|s| s.swapped)),
    ("allocated_bytes", "Blocks that the program holds.", Gauge(|f| f.allocated)),
    ("active_bytes", "Pages with such blocks in them.", Gauge(|f| f.active)),
    ("resident_bytes", "Active and dirty pages, and records.", Gauge(|f| f.resident)),
    ("mapped_bytes", "Opened address space without clean pages.", Gauge(|f| f.mapped)),
    ("retained_bytes", "Free pages that cost nothing.", Gauge(|f| f.retained)),
    ("dirty_bytes", "Free pages that the kernel has not got back.", Gauge(|f| f.dirty)),
    ("cached_bytes", "Free blocks that threads and depots hold ready.", Gauge(|f| f.cached)),
    ("metadata_bytes", "The allocator's own records.", Gauge(|f| f.metadata)),
    ("large_allocated_bytes", "Large blocks that the program holds.", Gauge(|f| f.large_allocated)),
    ("large_blocks", "Number of those.", Gauge(|f| f.large_blocks)),
    ("large_taken", "Large blocks taken so far.", Counter(|f| f.large_taken)),
    ("threads", "Threads that hold blocks.", Gauge(|f| f.threads)),
    ("purged_bytes", "Given back to the kernel.", Counter(|f| f.purged)),
    ("purges", "Calls that gave back.", Counter(|f| f.purges)),
    ("refills", "Times that magazines of caches in use were empty.", Gauge(|f| f.refills)),
    ("overflows", "Times that they were full.", Gauge(|f| f.overflows)),
    ("depot_trades", "Full magazines exchanged.", Counter(|f| f.depot_trades)),
    ("run_leases", "Runs of pages taken.", Counter(|f| f.run_leases)),
    ("run_returns", "Runs of pages given back.", Counter(|f| f.run_returns)),
    (
        "arena_hops",
        "Times that threads changed arenas, for theirs was busy.",
        Counter(|f| f.arena_hops),
    ),
    (
        "background_looks",
        "Looks of the background thread for what to give back.",
        Counter(|f| f.background_looks),
    ),
    ("uptime_seconds", "Since the library was loaded.", Gauge(|f| f.uptime_seconds)),
    ("lock_taken", "Locks taken, of these kinds.", LockCounter(|l| l.taken)),
    ("lock_contended", "Of these, found held.", LockCounter(|l| l.contended)),
    ("lock_waits", "Of these, slept for.", LockCounter(|l| l.waits)),
    (
        "class_allocated_bytes",
        "Blocks of a class that the program holds.",
        ClassGauge(|c| c.allocated),
    ),
    ("class_cached_bytes", "Those that threads and depots hold ready.", ClassGauge(|c| c.cached)),
    ("class_slab_bytes", "Pages that they lie in.", ClassGauge(|c| c.slab_bytes)),
    ("class_taken", "Blocks of a class that came from slabs so far.", ClassCounter(|c| c.taken)),
];

pub fn text(samples: &[Sample], form: Form) -> String {
    let mut out = String::new();
    for (name, help, from) in METRICS {
        head(&mut out, name, help, from, form);
        let total = if is_counter(from) { "_total" } else { "" };
        for sample in samples {
            let labels = format!("pid=\"{}\",name=\"{}\"", sample.pid, escaped(&sample.name));
            for (more, value) in values(from, sample) {
                writeln!(out, "prairie_{name}{total}{{{labels}{more}}} {value}").expect("a string");
            }
        }
    }
    if form == Form::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

/// The older form knows a counter by its whole name, and no units.
fn head(out: &mut String, name: &str, help: &str, from: &Source, form: Form) {
    let kind = if is_counter(from) { "counter" } else { "gauge" };
    let total = if is_counter(from) && form == Form::Prometheus { "_total" } else { "" };
    writeln!(out, "# TYPE prairie_{name}{total} {kind}").expect("a string");
    let unit = name.rsplit('_').next().filter(|unit| ["bytes", "seconds"].contains(unit));
    if let Some(unit) = unit.filter(|_| form == Form::OpenMetrics) {
        writeln!(out, "# UNIT prairie_{name} {unit}").expect("a string");
    }
    writeln!(out, "# HELP prairie_{name}{total} {help}").expect("a string");
}

fn is_counter(from: &Source) -> bool {
    matches!(from, Counter(_) | LockCounter(_) | ClassCounter(_))
}

/// Further labels, each with its value.
fn values(from: &Source, sample: &Sample) -> Vec<(String, u64)> {
    let Some(figures) = &sample.figures else {
        return match from {
            Process(value) => vec![(String::new(), value(sample))],
            _ => Vec::new(),
        };
    };
    match from {
        Process(value) => vec![(String::new(), value(sample))],
        Gauge(value) | Counter(value) => vec![(String::new(), value(figures))],
        LockCounter(value) => [
            ("arenas", &figures.lock_arenas),
            ("runs", &figures.lock_runs),
            ("meta", &figures.lock_meta),
        ]
        .iter()
        .map(|(kind, lock)| (format!(",lock=\"{kind}\""), value(lock)))
        .collect(),
        ClassGauge(value) | ClassCounter(value) => {
            figures.classes.iter().map(|c| (format!(",size=\"{}\"", c.size), value(c))).collect()
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::{foreign, made};
    use super::*;

    #[test]
    fn both_forms_are_whole() {
        let samples = [made(7), foreign(8)];
        insta::assert_snapshot!("openmetrics", text(&samples, Form::OpenMetrics));
        insta::assert_snapshot!("prometheus", text(&samples[..1], Form::Prometheus));
    }

    #[test]
    fn a_name_cannot_end_a_label() {
        let mut sample = made(7);
        sample.name = "a\"b\\c\nd".to_owned();
        let text = text(&[sample], Form::OpenMetrics);
        assert!(text.contains("prairie_up{pid=\"7\",name=\"a\\\"b\\\\c\\nd\"} 1\n"), "{text}");
    }
}
