//! Profiles in the text format of jeprof (heap_v2), which jemalloc writes too.
// SPDX-License-Identifier: MIT

use std::collections::HashMap;

use super::profile::{Location, Mapping, Profile, Sample, heap_types};
use crate::proc::Mapped;
use crate::trouble::{Result, Trouble};

pub const MARK: &str = "heap_v2/";
const LIBRARIES: &str = "MAPPED_LIBRARIES:";
/// The type that is shown when nobody says: `inuse_space`.
const IN_USE_SPACE: usize = 3;

pub fn read(text: &str) -> Result<Profile> {
    let mut lines = text.lines().enumerate();
    let wrong = |line: usize, what: &str| Trouble::new(format!("line {}: {what}", line + 1));
    let period = lines.next().and_then(|(_, first)| first.strip_prefix(MARK)?.parse().ok());
    let period: u64 = period.ok_or_else(|| wrong(0, "no period behind heap_v2/"))?;
    let mut reader = Reader::default();
    let mut stack: Option<Vec<u64>> = None;
    let mut mappings = Vec::new();
    while let Some((number, line)) = lines.next() {
        let line = line.trim();
        if line == LIBRARIES {
            mappings = lines.filter_map(|(_, line)| mapping(line)).collect();
            break;
        }
        if let Some(addresses) = line.strip_prefix('@') {
            let addresses: Option<Vec<u64>> = addresses.split_whitespace().map(address).collect();
            stack = Some(addresses.ok_or_else(|| wrong(number, "no addresses behind @"))?);
        } else if let Some(counts) = line.strip_prefix("t*:") {
            let counts = counts_of(counts).ok_or_else(|| wrong(number, "no counts behind t*:"))?;
            // The first counts stand before all stacks: they are the sum.
            if let Some(stack) = &stack {
                reader.add(stack, counts, period);
            }
        } else if !line.is_empty() && !is_of_one_thread(line) {
            return Err(wrong(number, "neither a stack nor counts"));
        }
    }
    Ok(reader.finish(mappings, period))
}

/// Counts of single threads (`t3:`) are parts of the line for all of them (`t*:`).
fn is_of_one_thread(line: &str) -> bool {
    line.strip_prefix('t').and_then(|rest| rest.split_once(':')).is_some_and(|(number, _)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn address(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
}

/// What lives and what was ever taken: blocks and bytes each.
struct Counts {
    live: (f64, f64),
    taken: (f64, f64),
}

/// `LIVE: BYTES [TAKEN: BYTES]`
fn counts_of(text: &str) -> Option<Counts> {
    let (live, taken) = text.split_once('[')?;
    let number = |text: &str| text.trim().parse::<u64>().ok().map(|number| number as f64);
    let pair = |text: &str| {
        let (count, bytes) = text.split_once(':')?;
        Some((number(count)?, number(bytes)?))
    };
    Some(Counts { live: pair(live)?, taken: pair(taken.trim_end().strip_suffix(']')?)? })
}

/// Blocks that were samples stand for all: one of size s is a sample with 1 - exp(-s / period).
fn scaled((count, bytes): (f64, f64), period: u64) -> (f64, f64) {
    if count <= 0.0 || period <= 1 {
        return (count.max(0.0), bytes.max(0.0));
    }
    let chance = -(-(bytes / count) / period as f64).exp_m1();
    if chance > 0.0 { (count / chance, bytes / chance) } else { (count, bytes) }
}

/// A line of /proc/PID/maps that is code.
fn mapping(line: &str) -> Option<Mapping> {
    let Mapped { start, limit, offset, path, .. } = Mapped::of(line).filter(|m| m.is_code)?;
    Some(Mapping { start, limit, offset, path, build_id: String::new() })
}

#[derive(Default)]
struct Reader {
    samples: Vec<Sample>,
    locations: Vec<Location>,
    known: HashMap<u64, usize>,
}

impl Reader {
    fn add(&mut self, stack: &[u64], counts: Counts, period: u64) {
        let block = |(count, bytes): (f64, f64)| (count > 0.0).then(|| (bytes / count) as u64);
        let block_bytes = block(counts.live).or(block(counts.taken));
        let (live, taken) = (scaled(counts.live, period), scaled(counts.taken, period));
        let stack = stack.iter().map(|address| self.location(*address)).collect();
        let values = vec![taken.0, taken.1, live.0, live.1];
        self.samples.push(Sample { stack, values, block_bytes, thread: None });
    }

    fn location(&mut self, return_address: u64) -> usize {
        let locations = &mut self.locations;
        *self.known.entry(return_address).or_insert_with(|| {
            let address = return_address.saturating_sub(1);
            locations.push(Location { address, ..Location::default() });
            locations.len() - 1
        })
    }

    fn finish(mut self, mappings: Vec<Mapping>, period: u64) -> Profile {
        for location in &mut self.locations {
            let holds = |found: &Mapping| (found.start..found.limit).contains(&location.address);
            location.mapping = mappings.iter().position(holds);
        }
        Profile {
            types: heap_types(),
            default_type: IN_USE_SPACE,
            samples: self.samples,
            locations: self.locations,
            mappings,
            period,
            time_ns: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "heap_v2/524288\n  t*: 3: 3072 [4: 4096]\n\
        @ 0x401101 0x401201\n  t*: 1: 1024 [2: 2048]\n  t0: 1: 1024 [2: 2048]\n\
        @ 0x401201\n  t*: 2: 2097152 [2: 2097152]\n\n\
        MAPPED_LIBRARIES:\n\
        00400000-00401000 r--p 00000000 08:01 1 /usr/bin/a program\n\
        00401000-00402000 r-xp 00001000 08:01 1 /usr/bin/a program\n\
        00500000-00501000 rw-p 00000000 00:00 0\n";

    #[test]
    fn samples_are_scaled_to_the_whole() {
        let profile = read(TEXT).unwrap();
        assert_eq!((profile.samples.len(), profile.period), (2, 524_288));
        // A block of 1 KiB is a sample about once in 512 of them.
        let small = &profile.samples[0];
        assert!((small.values[2] - 512.5).abs() < 0.1, "{:?}", small.values);
        assert_eq!(small.block_bytes, Some(1024));
        // 1 MiB: with the probability 1 - exp(-2).
        let large = &profile.samples[1].values;
        assert!((large[3] - 2_097_152.0 / 0.864_664_7).abs() < 10.0, "{large:?}");
    }

    #[test]
    fn addresses_lie_within_the_call_and_in_code() {
        let profile = read(TEXT).unwrap();
        let location = &profile.locations[profile.samples[0].stack[0]];
        assert_eq!((location.address, location.mapping), (0x401100, Some(0)));
        assert_eq!(profile.mappings.len(), 1);
        assert_eq!(profile.mappings[0].file_name(), "a program");
        assert_eq!(profile.samples[0].stack[1], profile.samples[1].stack[0]);
    }

    #[test]
    fn a_wrong_line_is_told_by_its_number() {
        for (text, said) in [
            ("heap_v2/many\n", "line 1: no period behind heap_v2/"),
            ("heap_v2/1\n@ here\n", "line 2: no addresses behind @"),
            ("heap_v2/1\n@ 0x1\n  t*: 1\n", "line 3: no counts behind t*:"),
            ("heap_v2/1\n@ 0x1\n  t*: nan: 1 [1: 1]\n", "line 3: no counts behind t*:"),
            ("heap_v2/1\n@ 0x1\n  t*: 1: inf [1: 1]\n", "line 3: no counts behind t*:"),
            ("heap_v2/1\nwhatever\n", "line 2: neither a stack nor counts"),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), said);
        }
    }
}
