//! Which stacks hold sparse slabs alive: the room in slabs that nobody uses, shared out among the
//! stacks that have blocks of the same class.
//!
//! A sampled block lies in a page of its own, so that nobody knows which slab it would have shared.
//! But slabs hold blocks of one class, and how full those of each class are is known: whoever holds
//! half of the blocks of a class is charged with half of the room in its slabs.
// SPDX-License-Identifier: MIT

use std::collections::HashMap;

use super::profile::{Frame, Location, Profile, Sample, ValueType};
use crate::live::figures::Class;

pub const NAME: &str = "sparse_space";

/// Adds the value to a profile of a process whose slabs are as told.
pub fn add(profile: &mut Profile, classes: &[Class]) {
    let Some(live) = profile.type_called("inuse_space") else { return };
    let mut held: HashMap<u64, f64> = HashMap::new();
    for sample in &profile.samples {
        if let Some(bytes) = sample.block_bytes {
            *held.entry(bytes).or_default() += sample.values[live];
        }
    }
    let unused: HashMap<u64, f64> = classes
        .iter()
        .map(|class| (class.size, class.slab_bytes.saturating_sub(class.allocated) as f64))
        .collect();
    profile.types.push(ValueType::new(NAME, "bytes"));
    for sample in &mut profile.samples {
        let charged = sample.block_bytes.and_then(|bytes| {
            let (all, room) = (held.get(&bytes)?, unused.get(&bytes)?);
            (*all > 0.0).then(|| room * sample.values[live] / all)
        });
        sample.values.push(charged.unwrap_or(0.0));
    }
    // Room in slabs of classes from which there is no sample belongs to nobody that is known.
    for (size, room) in &unused {
        let is_charged = held.get(size).is_some_and(|all| *all > 0.0);
        if !is_charged && *room > 0.0 {
            let function = format!("(blocks of {size} bytes: no sample)");
            let frame = Frame { function, ..Frame::default() };
            let location = Location { frames: vec![frame], ..Location::default() };
            profile.locations.push(location);
            let mut values = vec![0.0; profile.types.len()];
            *values.last_mut().expect("one was pushed") = *room;
            let stack = vec![profile.locations.len() - 1];
            profile.samples.push(Sample { stack, values, block_bytes: Some(*size), thread: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prof::fixture;

    fn class(size: u64, allocated: u64, slab_bytes: u64) -> Class {
        Class { size, allocated, slab_bytes, ..Class::default() }
    }

    #[test]
    fn the_room_is_shared_by_what_stacks_hold_of_the_class() {
        // The fixture's blocks are of 64 bytes.
        let mut profile = fixture::profile(&[("main;a", 300.0), ("main;b", 100.0)]);
        add(&mut profile, &[class(64, 400, 4096), class(48, 1000, 2000), class(80, 80, 80)]);
        let sparse = profile.type_called(NAME).unwrap();
        let charged: Vec<f64> = profile.samples.iter().map(|s| s.values[sparse]).collect();
        assert_eq!(charged, [3696.0 * 0.75, 3696.0 * 0.25, 1000.0]);
        let unknown = &profile.locations[profile.samples[2].stack[0]].frames[0].function;
        assert_eq!(unknown, "(blocks of 48 bytes: no sample)");
    }
}
