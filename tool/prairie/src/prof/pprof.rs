//! Profiles in pprof's format, gzipped or plain: read, and written with the names of functions.
// SPDX-License-Identifier: MIT

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use prost::Message;

use super::profile::{Frame, Location, Mapping, Profile, Sample, ValueType};
use super::proto;
use crate::regular;
use crate::trouble::{About, Result, Trouble};

const GZIP: &[u8] = &[0x1f, 0x8b];
/// Of a profile. A file of some megabytes may unpack to any number of gigabytes.
pub const BYTES_MAX: u64 = 1 << 30;

pub fn read(bytes: &[u8]) -> Result<Profile> {
    if !bytes.starts_with(GZIP) {
        return decode(bytes);
    }
    decode(&unpacked(bytes, BYTES_MAX)?)
}

fn unpacked(bytes: &[u8], bytes_max: u64) -> Result<Vec<u8>> {
    regular::read_all(MultiGzDecoder::new(bytes), bytes_max).about("gzip")
}

fn decode(bytes: &[u8]) -> Result<Profile> {
    let raw = proto::Profile::decode(bytes).map_err(|_| no_profile())?;
    if raw.sample_type.is_empty() || raw.string_table.first().is_none_or(|text| !text.is_empty()) {
        return Err(no_profile());
    }
    let text = |number: i64| -> String {
        let found = usize::try_from(number).ok().and_then(|number| raw.string_table.get(number));
        found.map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default()
    };
    let types: Vec<ValueType> = raw
        .sample_type
        .iter()
        .map(|found| ValueType { name: text(found.r#type), unit: text(found.unit) })
        .collect();
    let default = text(raw.default_sample_type);
    let default_type =
        types.iter().position(|found| found.name == default).unwrap_or(types.len() - 1);
    let mapping_at: HashMap<u64, usize> =
        raw.mapping.iter().enumerate().map(|(index, found)| (found.id, index)).collect();
    let location_at: HashMap<u64, usize> =
        raw.location.iter().enumerate().map(|(index, found)| (found.id, index)).collect();
    let function_at: HashMap<u64, &proto::Function> =
        raw.function.iter().map(|found| (found.id, found)).collect();
    let frame = |line: &proto::Line| {
        let function = function_at.get(&line.function_id)?;
        let file = Some(text(function.filename)).filter(|file| !file.is_empty());
        let line = u32::try_from(line.line).unwrap_or(0);
        Some(Frame { function: text(function.name), file, line })
    };
    let locations = raw.location.iter().map(|found| Location {
        address: found.address,
        mapping: mapping_at.get(&found.mapping_id).copied(),
        frames: found.line.iter().filter_map(frame).collect(),
    });
    let sample = |found: &proto::Sample| {
        let stack = found.location_id.iter().filter_map(|id| location_at.get(id).copied());
        let label = |key: &str| found.label.iter().find(|label| text(label.key) == key);
        Sample {
            stack: stack.collect(),
            values: (0..types.len())
                .map(|index| found.value.get(index).map_or(0.0, |value| *value as f64))
                .collect(),
            block_bytes: label("bytes").and_then(|label| u64::try_from(label.num).ok()),
            thread: label("thread").map(|label| text(label.str)),
        }
    };
    Ok(Profile {
        samples: raw.sample.iter().map(sample).collect(),
        locations: locations.collect(),
        mappings: raw
            .mapping
            .iter()
            .map(|found| Mapping {
                start: found.memory_start,
                limit: found.memory_limit,
                offset: found.file_offset,
                path: text(found.filename),
                build_id: text(found.build_id),
            })
            .collect(),
        period: u64::try_from(raw.period).unwrap_or(0),
        time_ns: raw.time_nanos,
        types,
        default_type,
    })
}

fn no_profile() -> Trouble {
    Trouble::new("this is no heap profile")
}

/// All of them in one, each with the sign that it counts with: a difference has a base of -1. The
/// values are those of the first.
pub fn write(profiles: &[(&Profile, f64)]) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    writer.text("");
    for (profile, sign) in profiles {
        let order = order(&profiles[0].0.types, profile)?;
        writer.add(profile, &order, *sign);
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&writer.message.encode_to_vec()).about("gzip")?;
    gzip.finish().about("gzip")
}

/// Where the profile has the values of these types.
fn order(types: &[ValueType], profile: &Profile) -> Result<Vec<usize>> {
    let find = |of: &ValueType| {
        profile.types.iter().position(|known| known == of).ok_or_else(|| {
            let names: Vec<&str> = profile.types.iter().map(|known| known.name.as_str()).collect();
            Trouble::new(format!("not all of the profiles have {} in {}", of.name, of.unit))
                .hint(format!("one has only {}", names.join(", ")))
        })
    };
    types.iter().map(find).collect()
}

#[derive(Default)]
struct Writer {
    message: proto::Profile,
    texts: HashMap<String, i64>,
    functions: HashMap<(String, Option<String>), u64>,
}

impl Writer {
    fn text(&mut self, text: &str) -> i64 {
        if let Some(number) = self.texts.get(text) {
            return *number;
        }
        let number = self.message.string_table.len() as i64;
        self.message.string_table.push(text.as_bytes().to_vec());
        self.texts.insert(text.to_owned(), number);
        number
    }

    fn add(&mut self, profile: &Profile, order: &[usize], sign: f64) {
        let is_first = self.message.sample_type.is_empty();
        if is_first {
            for of in &profile.types {
                let found =
                    proto::ValueType { r#type: self.text(&of.name), unit: self.text(&of.unit) };
                self.message.sample_type.push(found);
            }
            let default = &profile.types[profile.default_type].name;
            self.message.default_sample_type = self.text(default);
            let period = proto::ValueType { r#type: self.text("space"), unit: self.text("bytes") };
            self.message.period_type = Some(period);
            self.message.period = profile.period as i64;
        }
        self.message.time_nanos = self.message.time_nanos.max(profile.time_ns);
        let first_mapping = self.message.mapping.len() as u64 + 1;
        for mapping in &profile.mappings {
            let found = self.mapping(mapping);
            self.message.mapping.push(found);
        }
        let first_location = self.message.location.len() as u64 + 1;
        for location in &profile.locations {
            let found = self.location(location, first_mapping);
            self.message.location.push(found);
        }
        for sample in &profile.samples {
            let value = |at: &usize| (sample.values[*at] * sign).round() as i64;
            let values = order.iter().map(value).collect();
            let found = self.sample(sample, values, first_location);
            self.message.sample.push(found);
        }
    }

    fn mapping(&mut self, mapping: &Mapping) -> proto::Mapping {
        proto::Mapping {
            id: self.message.mapping.len() as u64 + 1,
            memory_start: mapping.start,
            memory_limit: mapping.limit,
            file_offset: mapping.offset,
            filename: self.text(&mapping.path),
            build_id: self.text(&mapping.build_id),
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        }
    }

    fn location(&mut self, location: &Location, first_mapping: u64) -> proto::Location {
        let lines = location.frames.iter().map(|frame| proto::Line {
            function_id: self.function(frame),
            line: i64::from(frame.line),
        });
        let line = lines.collect();
        proto::Location {
            id: self.message.location.len() as u64 + 1,
            mapping_id: location.mapping.map_or(0, |index| first_mapping + index as u64),
            address: location.address,
            line,
        }
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let key = (frame.function.clone(), frame.file.clone());
        if let Some(id) = self.functions.get(&key) {
            return *id;
        }
        let id = self.message.function.len() as u64 + 1;
        let name = self.text(&frame.function);
        let filename = self.text(frame.file.as_deref().unwrap_or(""));
        let function = proto::Function { id, name, system_name: name, filename, start_line: 0 };
        self.message.function.push(function);
        self.functions.insert(key, id);
        id
    }

    fn sample(&mut self, sample: &Sample, value: Vec<i64>, first_location: u64) -> proto::Sample {
        let mut label = Vec::new();
        if let Some(bytes) = sample.block_bytes {
            let (key, unit) = (self.text("bytes"), self.text("bytes"));
            label.push(proto::Label { key, str: 0, num: bytes as i64, num_unit: unit });
        }
        if let Some(thread) = &sample.thread {
            let (key, name) = (self.text("thread"), self.text(thread));
            label.push(proto::Label { key, str: name, num: 0, num_unit: 0 });
        }
        proto::Sample {
            location_id: sample.stack.iter().map(|at| first_location + *at as u64).collect(),
            value,
            label,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prof::fixture;

    fn total(profile: &Profile) -> f64 {
        profile.samples.iter().map(|sample| sample.values[3]).sum()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let profile = fixture::profile(&[("main;parse", 100.0), ("main", 50.0)]);
        let bytes = write(&[(&profile, 1.0)]).unwrap();
        assert!(bytes.starts_with(GZIP));
        let again = read(&bytes).unwrap();
        assert_eq!(again.types, profile.types);
        assert_eq!((again.default_type, again.period), (3, profile.period));
        assert_eq!(total(&again), 150.0);
        let first = &again.samples[0];
        let names: Vec<&str> = first
            .stack
            .iter()
            .map(|location| again.locations[*location].frames[0].function.as_str())
            .collect();
        assert_eq!(names, ["parse", "main"]);
        assert_eq!((first.block_bytes, first.thread.as_deref()), (Some(64), Some("worker")));
    }

    #[test]
    fn a_base_counts_against_the_other() {
        let before = fixture::profile(&[("main;parse", 100.0)]);
        let after = fixture::profile(&[("main;parse", 130.0)]);
        let difference = read(&write(&[(&after, 1.0), (&before, -1.0)]).unwrap()).unwrap();
        assert_eq!(total(&difference), 30.0);
        assert_eq!(difference.samples.len(), 2);
    }

    #[test]
    fn values_are_put_together_by_their_types() {
        let mut two = fixture::profile(&[("main", 100.0)]);
        two.types = two.types.split_off(2);
        two.types.reverse();
        two.default_type = 0;
        two.samples[0].values = vec![100.0, 5.0];
        let four = fixture::profile(&[("main", 640.0)]);
        let difference = read(&write(&[(&two, 1.0), (&four, -1.0)]).unwrap()).unwrap();
        assert_eq!(difference.types, two.types);
        let values: Vec<&[f64]> = difference.samples.iter().map(|s| &*s.values).collect();
        assert_eq!(values, [[100.0, 5.0], [-640.0, -10.0]]);
        let refused = write(&[(&four, 1.0), (&two, -1.0)]).unwrap_err();
        assert_eq!(refused.to_string(), "not all of the profiles have alloc_objects in count");
        assert_eq!(refused.hint_text(), Some("one has only inuse_space, inuse_objects"));
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&[0; 1000]).unwrap();
        let packed = gzip.finish().unwrap();
        assert_eq!(unpacked(&packed, 1000).unwrap(), [0; 1000]);
        let refused = unpacked(&packed, 999).unwrap_err().to_string();
        assert_eq!(refused, "gzip: it has more than 999 bytes");
    }

    #[test]
    fn other_bytes_are_refused() {
        for bytes in [&b""[..], b"hello", &[0x1f, 0x8b, 1, 2, 3]] {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
    }
}
