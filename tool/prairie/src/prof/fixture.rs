//! Made-up profiles for unit tests.
// SPDX-License-Identifier: MIT

use super::profile::{Frame, Location, Mapping, Profile, Sample, heap_types};

/// Stacks as `outer;inner`, each with its bytes in use, in blocks of 64.
pub fn profile(stacks: &[(&str, f64)]) -> Profile {
    let mut profile = Profile {
        types: heap_types(),
        default_type: 3,
        period: 524_288,
        mappings: vec![Mapping { path: "/bin/program".into(), limit: 4096, ..Mapping::default() }],
        ..Profile::default()
    };
    for (names, bytes) in stacks {
        let mut stack = Vec::new();
        for name in names.rsplit(';') {
            let frame = Frame { function: name.into(), file: Some("a.c".into()), line: 7 };
            let location = Location { address: 1, mapping: Some(0), frames: vec![frame] };
            stack.push(profile.locations.len());
            profile.locations.push(location);
        }
        profile.samples.push(Sample {
            stack,
            values: vec![bytes / 32.0, bytes * 2.0, bytes / 64.0, *bytes],
            block_bytes: Some(64),
            thread: Some("worker".into()),
        });
    }
    profile
}
