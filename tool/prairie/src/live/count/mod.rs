//! Counts the heap of a process by its map: what the library's own snapshot counts, in the same way
//! (src/view/snapshot.c), from outside.
//!
//! What stands under a lock is copied until it held still; what a thread owns is of a moment that is
//! just past. Everything read is somebody else's, so sums wrap rather than overflow, and walks end.
// SPDX-License-Identifier: MIT

mod arenas;
mod caches;
mod pages;

use std::time::Duration;

use super::figures::{Class, Figures, Lock};
use super::map::{Field, Map, Result, number, wrong};
use super::memory::Memory;
use crate::sys;

/// How often a struct is copied before a copy that moved is taken for what it is.
const TRIES: u32 = 50;
/// Between two copies: who holds the lock may wait for a processor.
const PAUSE: Duration = Duration::from_micros(50);
/// Pauses of one count, over all structs.
const PAUSES_MAX: u32 = 2000;
const CLASSES_MAX: usize = 256;
/// Large blocks of manual arenas, which are a list for each.
const MANUAL_BLOCKS_MAX: u64 = 1 << 18;

/// Open stretches of the heap: address and bytes.
pub type Regions = Vec<(u64, u64)>;

/// The heap as it is now.
pub fn count(memory: &dyn Memory, map: &Map) -> Result<(Figures, Regions)> {
    let mut count = Count::new(memory, map)?;
    if count.shift == 0 {
        // Nobody has called yet.
        let figures = Figures { release: map.release.clone(), ..Figures::default() };
        return Ok((figures, Regions::new()));
    }
    count.arenas()?;
    count.caches()?;
    let regions = count.pages()?;
    count.guarded()?;
    count.rest()?;
    Ok((count.finish(), regions))
}

struct Shape {
    slab_bytes: u64,
    block_bytes: u64,
    block_count: u64,
}

struct Count<'a> {
    memory: &'a dyn Memory,
    map: &'a Map,
    shift: u32,
    shapes: Vec<Shape>,
    figures: Figures,
    classes: Vec<Class>,
    small_active: u64,
    /// Of manual arenas and those with hooks.
    manual_large: u64,
    large_leases: u64,
    manual_taken: u64,
    cached_pages: u64,
    cached_runs: u64,
    cached_takes: u64,
    /// Large blocks that are shorter than their pages: a sum of 32 bits, some of them below 0.
    staggered: u64,
    /// By so much.
    spare_bytes: u64,
    waiting_pages: u64,
    waiting_runs: u64,
    zone_end: u64,
    mapped_beyond: u64,
    /// Address of each arena that is in `figures.arenas`.
    arena_addresses: Vec<u64>,
    pauses_left: u32,
    manual_blocks_left: u64,
}

impl<'a> Count<'a> {
    fn new(memory: &'a dyn Memory, map: &'a Map) -> Result<Self> {
        let space = Self::copy(memory, map, "space", "space")?;
        let shift = map.member("space.page_shift")?.first(&space)?;
        if shift > 24 {
            return wrong("its pages are larger than pages are");
        }
        let meta = Self::copy(memory, map, "meta", "meta")?;
        let shapes = Self::shapes(memory, map)?;
        Ok(Count {
            memory,
            map,
            shift: shift as u32,
            classes: shapes
                .iter()
                .map(|shape| Class { size: shape.block_bytes, ..Class::default() })
                .collect(),
            shapes,
            figures: Figures { release: map.release.clone(), ..Figures::default() },
            small_active: 0,
            manual_large: 0,
            large_leases: 0,
            manual_taken: 0,
            cached_pages: 0,
            cached_runs: 0,
            cached_takes: 0,
            staggered: 0,
            spare_bytes: 0,
            waiting_pages: 0,
            waiting_runs: 0,
            zone_end: map.member("meta.zone_end")?.first(&meta)?,
            mapped_beyond: 0,
            arena_addresses: Vec::new(),
            pauses_left: PAUSES_MAX,
            manual_blocks_left: MANUAL_BLOCKS_MAX,
        })
    }

    /// A variable that is a struct.
    fn copy(memory: &dyn Memory, map: &Map, root: &str, of: &str) -> Result<Vec<u8>> {
        Ok(memory.bytes(map.root(root)?.address, map.size(of)?)?)
    }

    fn shapes(memory: &dyn Memory, map: &Map) -> Result<Vec<Shape>> {
        let root = map.root("slab_shape")?;
        if root.count > CLASSES_MAX || root.bytes != map.size("slab_shape")? {
            return wrong("it has more classes than a library has");
        }
        let all = memory.bytes(root.address, root.bytes * root.count)?;
        let slab_bytes = map.member("slab_shape.bytes")?;
        let block_bytes = map.member("slab_shape.block_bytes")?;
        let block_count = map.member("slab_shape.block_count")?;
        let shape = |of: &[u8]| {
            Ok(Shape {
                slab_bytes: slab_bytes.first(of)?,
                block_bytes: block_bytes.first(of)?,
                block_count: block_count.first(of)?,
            })
        };
        all.chunks_exact(root.bytes).map(shape).collect()
    }

    fn value(&self, root: &str) -> Result<u64> {
        let root = self.map.root(root)?;
        Ok(self.memory.number(root.address, root.bytes.min(8))?)
    }

    // ---- what is under a lock ----

    /// A copy of one moment, if there is one; `lock` is where its lock is.
    fn locked(&mut self, address: u64, bytes: usize, lock: Field) -> Result<Vec<u8>> {
        let state = self.map.member("lock.state")?;
        let taken = self.map.member("lock.taken")?;
        let mut copy = self.memory.bytes(address, bytes)?;
        for _ in 0..TRIES {
            let later = self.memory.bytes(address, bytes)?;
            let (now, then) = (lock.part(&copy, 0)?, lock.part(&later, 0)?);
            if state.first(now)? == 0 && taken.first(now)? == taken.first(then)? {
                return Ok(copy);
            }
            copy = later;
            if !self.pause() {
                break;
            }
        }
        self.figures.moving += 1;
        Ok(copy)
    }

    /// False: who is looked at has been waited for long enough.
    fn pause(&mut self) -> bool {
        let may_wait = self.pauses_left > 0;
        if may_wait {
            self.pauses_left -= 1;
            std::thread::sleep(PAUSE);
        }
        may_wait
    }

    fn lock(&self, of: &[u8]) -> Result<Lock> {
        Ok(Lock {
            taken: self.map.member("lock.taken")?.first(of)?,
            contended: self.map.member("lock.contended")?.first(of)?,
            waits: self.map.member("lock.waits")?.first(of)?,
        })
    }

    // ---- the rest ----

    /// Blocks between guards, which are of no arena.
    fn guarded(&mut self) -> Result<()> {
        let copy = Self::copy(self.memory, self.map, "guarded_numbers", "guarded_numbers")?;
        let held = self.map.member("guarded_numbers.held")?;
        let taken = self.map.member("guarded_numbers.taken")?;
        for index in 1..self.classes.len().min(held.count) {
            let class = &mut self.classes[index];
            class.blocks = class.blocks.wrapping_add(held.nth(&copy, index)?);
            class.taken = class.taken.wrapping_add(taken.nth(&copy, index)?);
            let bytes = held.nth(&copy, index)?.wrapping_mul(1 << self.shift);
            self.small_active = self.small_active.wrapping_add(bytes);
        }
        Ok(())
    }

    fn rest(&mut self) -> Result<()> {
        let map = self.map;
        let purge = map.root("purge")?;
        for index in 0..purge.count {
            let copy = self.memory.bytes(purge.nth(index), map.size("purge")?)?;
            let figures = &mut self.figures;
            figures.purges = figures.purges.wrapping_add(map.member("purge.calls")?.first(&copy)?);
            let pages = map.member("purge.purged_pages")?.first(&copy)?;
            figures.purged = figures.purged.wrapping_add(pages << self.shift);
        }
        let limits = Self::copy(self.memory, map, "limits", "limits")?;
        self.figures.limit_soft = limit_of(map.member("limits.soft_bytes")?, &limits)?;
        let reserve = Self::copy(self.memory, map, "reserve", "reserve")?;
        self.figures.reserve = map.member("reserve.pages")?.first(&reserve)? << self.shift;
        self.figures.arena_hops = self.value("arena_hops")?;
        self.figures.background_looks = self.value("decay_looks")?;
        self.cached_takes = self.cached_takes.wrapping_add(self.value("large_cache_takes_before")?);
        self.staggered = self.staggered.wrapping_add(self.value("large_staggered_before")?);
        self.spare_bytes = map.constant("PAGE_STAGGERED")?;
        let begin_ms = self.value("snapshot_begin_ms")?;
        let now_ms = sys::monotonic_ns() / 1_000_000;
        self.figures.uptime_seconds = uptime_seconds(begin_ms, now_ms);
        Ok(())
    }

    /// What follows from what was counted.
    fn finish(mut self) -> Figures {
        let mut small = 0_u64;
        for class in &mut self.classes {
            class.blocks = class.blocks.saturating_sub(class.cached_blocks);
            class.allocated = class.blocks.wrapping_mul(class.size);
            class.cached = class.cached_blocks.wrapping_mul(class.size);
            small = small.wrapping_add(class.allocated);
            self.figures.cached = self.figures.cached.wrapping_add(class.cached);
        }
        let figures = &mut self.figures;
        figures.active = self.small_active.wrapping_add(figures.large_allocated);
        let staggered = u64::try_from(self.staggered as i32).unwrap_or(0);
        let spare = staggered.wrapping_mul(self.spare_bytes);
        figures.large_allocated = figures.large_allocated.saturating_sub(spare);
        figures.allocated = small.wrapping_add(figures.large_allocated);
        figures.large_taken =
            self.large_leases.wrapping_add(self.cached_takes).wrapping_add(self.manual_taken);
        figures.resident = figures
            .active
            .wrapping_add(figures.dirty)
            .wrapping_add(figures.reserve)
            .wrapping_add(figures.metadata);
        figures.mapped = figures.resident.wrapping_add(self.mapped_beyond);
        // Class 0 is no class, and those that were never used say nothing.
        figures.classes =
            self.classes.into_iter().skip(1).filter(|class| class.taken != 0).collect();
        self.figures
    }
}

/// 0 as well where nobody noted the beginning: in libraries whose names all begin with `prairie_`.
fn uptime_seconds(begin_ms: u64, now_ms: u64) -> u64 {
    if begin_ms == 0 { 0 } else { now_ms.saturating_sub(begin_ms) / 1000 }
}

/// All bits set: there is no limit.
fn limit_of(field: Field, of: &[u8]) -> Result<u64> {
    let part = field.part(of, 0)?;
    Ok(if part.iter().all(|byte| *byte == 0xff) { 0 } else { number(part) })
}

fn add_lock(sum: &mut Lock, lock: Lock) {
    sum.taken = sum.taken.wrapping_add(lock.taken);
    sum.contended = sum.contended.wrapping_add(lock.contended);
    sum.waits = sum.waits.wrapping_add(lock.waits);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_that_nobody_noted_is_not_the_machines() {
        assert_eq!(uptime_seconds(0, 86_400_000), 0);
        assert_eq!(uptime_seconds(80_000, 86_400), 6);
        assert_eq!(uptime_seconds(86_400, 80_000), 0);
    }
}
