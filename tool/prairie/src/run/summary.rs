//! What a run used, who served it and what was found: for people, and as JSON.
// SPDX-License-Identifier: MIT

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::heap::Peak;
use crate::live::text::printable;
use crate::measure::{End, Measured};
use crate::prof::Finding;
use crate::sys::Ended;
use crate::terminal;
use crate::units;

/// Grows when a field changes its meaning; fields that are only added leave it as it is.
const SCHEMA: u32 = 1;

pub struct Summary<'a> {
    pub name: &'a str,
    pub version: &'a str,
    pub library: &'a Path,
    pub measured: &'a Measured,
    /// The profiles of the program itself, and how many there are of all processes.
    pub profiles: Option<(Vec<PathBuf>, usize)>,
    /// Of the last profile.
    pub finding: Option<Finding>,
    /// None: it ended before it could be looked at, or may not be looked at.
    pub heap: Option<Peak>,
    /// Why a process could not be looked at.
    pub refusal: Option<String>,
    /// The name of the processes whose heap is told.
    pub only: Option<&'a str>,
    pub max_rss: Option<u64>,
}

impl Summary<'_> {
    pub fn is_over_limit(&self) -> bool {
        self.max_rss.is_some_and(|limit| self.measured.peak_bytes > limit)
    }

    pub fn text(&self) -> String {
        let End::Itself(ended) = self.measured.end else { return String::new() };
        let mut lines = vec![format!("prairie: {}: {}", self.name, ended.text())];
        lines.extend(self.used());
        lines.extend(self.heap());
        lines.extend(self.served());
        lines.extend(self.profiled());
        lines.extend(self.found());
        lines.extend(self.limit_text().map(|text| format!("  limit    {text}")));
        lines.join("\n")
    }

    fn used(&self) -> Vec<String> {
        let (measured, usage) = (self.measured, &self.measured.usage);
        let several = match measured.process_count_max {
            0 | 1 => String::new(),
            count => format!("   {count} processes at once"),
        };
        vec![
            format!(
                "  time     {} wall, {} cpu ({} user, {} system)",
                units::seconds(measured.wall_s),
                units::seconds(usage.user_s + usage.system_s),
                units::seconds(usage.user_s),
                units::seconds(usage.system_s)
            ),
            format!(
                "  memory   {} at its peak, {} over time{several}",
                units::bytes(measured.peak_bytes as f64),
                units::byte_seconds(measured.byte_seconds)
            ),
            format!(
                "  kernel   {} page faults ({} major), {} context switches",
                units::count((usage.minor_faults + usage.major_faults) as f64),
                usage.major_faults,
                units::count((usage.voluntary_switches + usage.forced_switches) as f64)
            ),
        ]
    }

    fn heap(&self) -> Vec<String> {
        let Some(heap) = &self.heap else {
            return vec![format!("  heap     not seen: {}", self.why_no_heap())];
        };
        let mut lines = vec![format!("  heap     {}", heap.text())];
        lines.extend(heap.processes_text().map(|text| format!("  of them  {text}")));
        // Few samples may miss more than what is counted.
        let counted = (heap.fetched.small + heap.fetched.large) as f64;
        let sampled = self.finding.as_ref().and_then(|finding| finding.allocations);
        let sampled = sampled.filter(|count| *count > counted);
        lines.push(match sampled {
            Some(count) => {
                format!("  blocks   about {} allocated, by samples", units::count(count))
            }
            None => format!("  blocks   {}", heap.fetched_text()),
        });
        lines
    }

    fn why_no_heap(&self) -> String {
        let seen = &self.measured.seen;
        if seen.served == 0 && !seen.not_served.is_empty() {
            return "none of its processes was on prairie".to_owned();
        }
        if let Some(why) = &self.refusal {
            return why.clone();
        }
        let who = self.only.map_or("it".to_owned(), |name| format!("{name} was not there, or"));
        format!("{who} ended too soon; --stats prints the figures of all")
    }

    fn served(&self) -> Vec<String> {
        let seen = &self.measured.seen;
        let library = self.library.display();
        let version = self.version;
        let mut lines = Vec::new();
        let count = |number: u32| match number {
            1 => "1 process".to_owned(),
            number => format!("{number} processes"),
        };
        if seen.served > 0 {
            let text = format!("by prairie {version}, seen in {} ({library})", count(seen.served));
            lines.push(format!("  served   {text}"));
        } else if seen.not_served.is_empty() {
            let text = format!("by prairie {version} ({library})");
            lines.push(format!("  served   {text}; it ended too soon to be looked at"));
        }
        if !seen.not_served.is_empty() {
            let names = printable(&seen.not_served.join(", "));
            lines.push(format!(
                "  NOT served by prairie: {names} (static, set-uid, or LD_PRELOAD unset)"
            ));
        }
        if !seen.other_allocators.is_empty() {
            let names = seen.other_allocators.join(", ");
            lines.push(format!("  note     {names} is loaded too; prairie comes first"));
        }
        lines
    }

    fn profiled(&self) -> Vec<String> {
        let Some((own, all)) = &self.profiles else { return Vec::new() };
        let mut lines = Vec::new();
        match (own.last(), all) {
            (Some(last), 1) => lines.push(format!("  profile  {}", last.display())),
            (Some(last), all) => {
                lines.push(format!("  profile  {} (of {all} files)", last.display()));
            }
            (None, 0) => lines.push(format!("  profile  {}", self.why_no_profile())),
            (None, all) => {
                lines.push(format!("  profile  {all} files, none of the program itself"));
            }
        }
        lines
    }

    /// Why one that wanted to could not, the library says at the time.
    fn why_no_profile(&self) -> &'static str {
        match self.measured.end {
            End::Itself(Ended::Exited(_)) => "none was written",
            _ => "none was written: who is ended by a signal writes none",
        }
    }

    /// The top finding: the place that took most where it is known, else what the heap looked like.
    fn found(&self) -> Option<String> {
        if let Some(most) = self.most() {
            return Some(format!("  finding  {most}"));
        }
        Some(format!("  finding  {}", self.heap.as_ref()?.finding()?))
    }

    fn most(&self) -> Option<&str> {
        self.finding.as_ref()?.most.as_deref()
    }

    /// None: there is no limit.
    pub fn limit_text(&self) -> Option<String> {
        let (peak, limit) = (self.measured.peak_bytes as f64, self.max_rss? as f64);
        let how = if self.is_over_limit() { "ABOVE" } else { "within" };
        let (peak, limit) = (units::bytes(peak), units::bytes(limit));
        Some(format!("peak memory {peak} is {how} --max-rss {limit}"))
    }

    /// The most useful command after this one. Of a profile without a sample there is nothing to show.
    pub fn next(&self, command: &str) -> String {
        let is_empty = self.finding.as_ref().is_some_and(|finding| finding.most.is_none());
        match self.profiles.as_ref().filter(|_| !is_empty) {
            Some((own, _)) if own.len() > 2 => {
                format!("prairie prof --growth {}", terminal::shell_words(own))
            }
            Some((own, _)) if !own.is_empty() => {
                let last = terminal::shell_words(&own[own.len() - 1..]);
                format!("prairie prof --value alloc_space {last}")
            }
            _ if !self.measured.seen.not_served.is_empty() => {
                format!("prairie doctor -- {command}")
            }
            _ => format!("prairie compare -- {command}"),
        }
    }

    pub fn json(&self) -> String {
        let (measured, usage) = (self.measured, &self.measured.usage);
        let code = match measured.end {
            End::Itself(ended) => json!(ended.code()),
            End::TimedOut | End::Interrupted => Value::Null,
        };
        let profiles = self.profiles.as_ref().map(|(own, _)| own);
        let value = json!({
            "schema": SCHEMA,
            "tool": concat!("prairie ", env!("CARGO_PKG_VERSION")),
            "program": self.name,
            "exit_code": code,
            "library": self.library.display().to_string(),
            "version": self.version,
            "wall_s": measured.wall_s,
            "user_s": usage.user_s,
            "system_s": usage.system_s,
            "peak_bytes": measured.peak_bytes,
            "byte_seconds": measured.byte_seconds,
            "minor_faults": usage.minor_faults,
            "major_faults": usage.major_faults,
            "processes_at_once": measured.process_count_max,
            "seen": measured.seen,
            "profiles": profiles,
            "most": self.most(),
            "allocations": self.finding.as_ref().and_then(|finding| finding.allocations),
            "heap": self.heap,
            "max_rss": self.max_rss,
            "is_over_limit": self.is_over_limit(),
        });
        format!("{value:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::run::heap::Fetched;

    fn summary(measured: &Measured) -> Summary<'_> {
        Summary {
            name: "sort",
            version: "0.1.0",
            library: Path::new("/lib/libprairie.so"),
            measured,
            profiles: None,
            finding: None,
            heap: None,
            refusal: None,
            only: None,
            max_rss: None,
        }
    }

    fn told(most: &str) -> Option<Finding> {
        Some(Finding { most: Some(most.to_owned()), allocations: Some(12_345.0) })
    }

    #[test]
    fn a_limit_is_told_and_kept() {
        let mut measured = fixture::measured(End::Itself(Ended::Exited(0)));
        measured.peak_bytes = 3 << 20;
        let within = Summary { max_rss: Some(4 << 20), ..summary(&measured) };
        assert!(!within.is_over_limit());
        assert!(within.text().ends_with("peak memory 3.00 MiB is within --max-rss 4.00 MiB"));
        let above = Summary { max_rss: Some(2 << 20), ..summary(&measured) };
        assert!(above.is_over_limit() && above.text().contains("is ABOVE --max-rss 2.00 MiB"));
    }

    #[test]
    fn the_next_command_follows_from_what_happened() {
        let mut measured = fixture::measured(End::Itself(Ended::Exited(0)));
        assert_eq!(summary(&measured).next("sort x"), "prairie compare -- sort x");
        let profiles = Some((vec![PathBuf::from("a.pb.gz")], 1));
        let profiled = Summary { profiles, finding: told("it"), ..summary(&measured) };
        assert_eq!(profiled.next("sort x"), "prairie prof --value alloc_space a.pb.gz");
        assert!(profiled.text().ends_with("  profile  a.pb.gz\n  finding  it"));
        let blank = |count| Summary {
            profiles: Some((vec![PathBuf::from("my sort.heap"); count], count)),
            ..summary(&measured)
        };
        assert_eq!(blank(1).next("x"), "prairie prof --value alloc_space 'my sort.heap'");
        let words = ["'my sort.heap'"; 3].join(" ");
        assert_eq!(blank(3).next("x"), format!("prairie prof --growth {words}"));
        let nothing = Some(Finding { most: None, allocations: Some(0.0) });
        let without_samples = Summary { finding: nothing, ..blank(1) };
        assert_eq!(without_samples.next("sort x"), "prairie compare -- sort x");
        measured.seen.not_served.push("sort".into());
        assert_eq!(summary(&measured).next("sort x"), "prairie doctor -- sort x");
    }

    #[test]
    fn the_heap_is_told_where_it_was_seen() {
        let measured = fixture::measured(End::Itself(Ended::Exited(0)));
        let heap = Some(Peak {
            looks: 9,
            allocated: 1 << 20,
            active: 8 << 20,
            sparsest: Some((48, 1 << 20, 8 << 20)),
            fetched: Fetched { small: 5000, large: 7 },
            ..Peak::default()
        });
        let text = Summary { heap: heap.clone(), ..summary(&measured) }.text();
        for line in [
            "\n  heap     1.00 MiB in use at the highest of 9 looks, ",
            "; fragmentation 88 % of 8.00 MiB\n",
            "\n  blocks   5007 blocks fetched, 7 of them large; ",
            "\n  finding  slabs for blocks of 48 bytes are sparse: 1.00 MiB in use of 8.00 MiB",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let text = Summary { heap, finding: told("it"), ..summary(&measured) }.text();
        assert!(text.contains("\n  blocks   about 12.3 k allocated, by samples\n"), "{text}");
        assert!(text.ends_with("\n  finding  it"), "{text}");
        let text = Summary { only: Some("sort"), ..summary(&measured) }.text();
        assert!(
            text.contains("  heap     not seen: sort was not there, or ended too soon"),
            "{text}"
        );
    }

    #[test]
    fn a_heap_is_not_seen_for_a_reason() {
        let mut measured = fixture::measured(End::Itself(Ended::Exited(0)));
        let text = summary(&measured).text();
        assert!(text.contains("  heap     not seen: it ended too soon; --stats"), "{text}");
        measured.seen.not_served.push("sleep\x1b[2J".into());
        let text = summary(&measured).text();
        assert!(text.contains("  NOT served by prairie: sleep?[2J (static"), "{text}");
        let why = "  heap     not seen: none of its processes was on prairie\n";
        assert!(text.contains(why), "{text}");
        measured.seen.served = 1;
        let text = summary(&measured).text();
        assert!(text.contains("  heap     not seen: it ended too soon; --stats"), "{text}");
    }

    #[test]
    fn a_profile_is_missing_for_a_reason() {
        for (ended, why) in [
            (Ended::Exited(0), "  profile  none was written"),
            (Ended::Killed(9), "  profile  none was written: who is ended by a signal writes none"),
        ] {
            let measured = fixture::measured(End::Itself(ended));
            let text = Summary { profiles: Some((Vec::new(), 0)), ..summary(&measured) }.text();
            assert!(text.ends_with(why), "{text}");
        }
    }

    #[test]
    fn json_has_a_schema() {
        let measured = fixture::measured(End::Itself(Ended::Killed(9)));
        let value: Value = serde_json::from_str(&summary(&measured).json()).unwrap();
        assert_eq!((&value["schema"], &value["exit_code"]), (&json!(1), &json!(137)));
        assert_eq!(value["profiles"], Value::Null);
    }
}
