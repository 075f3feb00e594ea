//! Caches of threads and of programs: blocks and runs that are ready, or held back.
// SPDX-License-Identifier: MIT

use super::{Count, TRIES};
use crate::live::map::{Result, wrong};

const CACHES_MAX: usize = 1 << 16;
/// Of the copies of all walks together.
const CACHES_BYTES_MAX: usize = 256 << 20;

impl Count<'_> {
    pub(super) fn caches(&mut self) -> Result<()> {
        let lock = self.map.root("threads_lock")?;
        let lock_bytes = self.map.size("lock")?;
        let state = self.map.member("lock.state")?;
        let taken = self.map.member("lock.taken")?;
        let mut walked = Vec::new();
        let mut moved = true;
        let mut room = CACHES_BYTES_MAX;
        for _ in 0..TRIES {
            let before = self.memory.bytes(lock.address, lock_bytes)?;
            let room_before = room;
            let walk = self.walk_caches(&mut room);
            let after = self.memory.bytes(lock.address, lock_bytes)?;
            moved = state.first(&before)? != 0 || taken.first(&before)? != taken.first(&after)?;
            match walk {
                Ok(caches) => walked = caches,
                Err(error) if !moved => return Err(error),
                Err(_) => {}
            }
            let has_room_for_another = room >= room_before - room;
            if !moved || !has_room_for_another || !self.pause() {
                break;
            }
        }
        self.figures.moving += u32::from(moved);
        for copy in &walked {
            let of_thread = !self.is_abandoned(copy)?;
            self.figures.threads += u64::from(of_thread);
            self.cache(copy, of_thread)?;
        }
        let root = self.map.root("explicit_caches")?;
        let end = self.value("explicit_cache_end")?.min(root.count as u64);
        for index in 0..end as usize {
            let address = self.memory.number(root.nth(index), root.bytes.min(8))?;
            if address != 0 {
                let copy = self.memory.bytes(address, self.map.size("cache")?)?;
                self.cache(&copy, false)?;
            }
        }
        Ok(())
    }

    /// `room`: bytes that copies may take; less afterwards.
    fn walk_caches(&self, room: &mut usize) -> Result<Vec<Vec<u8>>> {
        let next = self.map.member("cache.next")?;
        let bytes = self.map.size("cache")?;
        let mut address = self.value("first_cache")?;
        let mut caches = Vec::new();
        while address != 0 {
            if caches.len() == CACHES_MAX || *room < bytes {
                return wrong("its list of threads has no end");
            }
            *room -= bytes;
            let copy = self.memory.bytes(address, bytes)?;
            address = next.first(&copy)?;
            caches.push(copy);
        }
        Ok(caches)
    }

    /// By a thread that has ended: the next one goes on with its blocks.
    fn is_abandoned(&self, copy: &[u8]) -> Result<bool> {
        let fixed = self.map.member("cache.fixed")?.first(copy)?;
        Ok(fixed & self.map.constant("CACHE_ABANDONED")? != 0)
    }

    fn cache(&mut self, copy: &[u8], of_thread: bool) -> Result<()> {
        let map = self.map;
        let front = map.member("cache.front")?.part(copy, 0)?;
        self.magazines(copy, front)?;
        self.staggered = self.staggered.wrapping_add(map.member("cache.staggered")?.first(copy)?);
        self.runs(map.member("cache.large_cache")?.first(copy)?)?;
        self.quarantine(map.member("front.quarantine")?.first(front)?)?;
        let figures = &mut self.figures;
        figures.refills = figures.refills.wrapping_add(map.member("cache.refills")?.first(copy)?);
        figures.overflows =
            figures.overflows.wrapping_add(map.member("cache.overflows")?.first(copy)?);
        if of_thread {
            self.thread_of(map.member("cache.arena")?.first(copy)?);
        }
        Ok(())
    }

    /// The thread counts for the arena that it filled from last; before it did, for the first one.
    fn thread_of(&mut self, address: u64) {
        let found = self.arena_addresses.iter().position(|arena| *arena == address);
        if let Some(arena) = self.figures.arenas.get_mut(found.unwrap_or(0)) {
            arena.threads += 1;
        }
    }

    /// Blocks that are ready in a cache.
    fn magazines(&mut self, copy: &[u8], front: &[u8]) -> Result<()> {
        let map = self.map;
        let magazine = map.member("front.magazine")?;
        let (top, limit) = (map.member("magazine.top")?, map.member("magazine.limit")?);
        let spare = map.member("cache.spare")?;
        let spare_count = map.member("spare.count")?;
        let spare_capacity = map.member("spare.capacity")?;
        let closed = map.member("spare.closed")?;
        for index in 1..self.classes.len().min(magazine.count).min(spare.count) {
            let of = magazine.part(front, index)?;
            let spare = spare.part(copy, index)?;
            let (top_at, limit_at) = (top.first(of)?, limit.first(of)?);
            let capacity = spare_capacity.first(spare)?;
            let mut ready = spare_count.first(spare)?;
            if top_at <= limit_at {
                let room =
                    ((limit_at - top_at) / top.bytes as u64).wrapping_add(closed.first(spare)?);
                ready = ready.wrapping_add(capacity.saturating_sub(room));
            }
            let class = &mut self.classes[index];
            class.cached_blocks = class.cached_blocks.wrapping_add(ready);
        }
        Ok(())
    }

    /// Runs for large blocks that a thread keeps.
    fn runs(&mut self, address: u64) -> Result<()> {
        if address == 0 {
            return Ok(());
        }
        let copy = self.memory.bytes(address, self.map.size("large_cache")?)?;
        let pages_max = self.map.constant("LARGE_CACHE_BYTES_MAX")? >> self.shift;
        let room = self.map.member("large_cache.room_pages")?.first(&copy)?;
        self.cached_pages = self.cached_pages.wrapping_add(pages_max.saturating_sub(room));
        self.cached_takes =
            self.cached_takes.wrapping_add(self.map.member("large_cache.takes")?.first(&copy)?);
        let list = self.map.member("large_cache.list")?;
        let count = self.map.member("cached_runs.count")?;
        for kind in 0..list.count {
            let kept = count.first(list.part(&copy, kind)?)?;
            self.cached_runs = self.cached_runs.wrapping_add(kept);
            if kind % 2 != 0 {
                self.staggered = self.staggered.wrapping_sub(kept);
            }
        }
        Ok(())
    }

    /// What a hardened thread holds back: no more than there is room for, whatever is read of counts that
    /// it changes meanwhile.
    fn quarantine(&mut self, number: u64) -> Result<()> {
        if number == 0 {
            return Ok(());
        }
        let unit = self.map.constant("META_UNIT_BYTES")?;
        let address = self.zone_end.wrapping_sub(number.wrapping_mul(unit));
        let copy = self.memory.bytes(address, self.map.size("quarantine")?)?;
        let held = self.map.member("quarantine.held")?;
        let waiting = self.map.member("held_class.waiting_count")?;
        let blocks_max = self.map.most("WAITING_BLOCKS_MAX");
        for index in 1..self.classes.len().min(held.count) {
            let blocks = waiting.first(held.part(&copy, index)?)?.min(blocks_max);
            let class = &mut self.classes[index];
            class.cached_blocks = class.cached_blocks.wrapping_add(blocks);
        }
        let of = |name| self.map.member(name)?.first(&copy);
        let pages = of("quarantine.run_pages")?;
        let open = of("quarantine.all_open_pages")?.min(pages);
        self.cached_pages = self.cached_pages.wrapping_add(open);
        self.waiting_pages = self.waiting_pages.wrapping_add(pages - open);
        let runs = of("quarantine.run_count")?.min(self.map.most("WAITING_RUNS"));
        self.waiting_runs = self.waiting_runs.wrapping_add(runs);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::map::tests::{AT_ROOT, Made, made, row_of};
    use crate::live::map::{self, Map};

    const CACHE_BYTES: u16 = 1000;

    /// Everything is at the one root, where the first cache is next to itself, and these rows besides.
    fn circular(more: &[Vec<u8>]) -> (Made, Map) {
        let rows = [
            row_of("space", b'r', 0, 64, 1),
            row_of("space", b's', 0, 64, 1),
            row_of("space.page_shift", b'm', 16, 1, 1),
            row_of("meta", b'r', 0, 64, 1),
            row_of("meta", b's', 0, 64, 1),
            row_of("meta.zone_end", b'm', 16, 8, 1),
            row_of("slab_shape", b'r', 0, 8, 1),
            row_of("slab_shape", b's', 0, 8, 1),
            row_of("slab_shape.bytes", b'm', 0, 4, 1),
            row_of("slab_shape.block_bytes", b'm', 0, 4, 1),
            row_of("slab_shape.block_count", b'm', 0, 4, 1),
            row_of("first_cache", b'r', 0, 8, 1),
            row_of("cache", b's', 0, CACHE_BYTES, 1),
            row_of("cache.next", b'm', 0, 8, 1),
        ];
        let mut memory = made(1, &[&rows, more].concat());
        let place = (AT_ROOT - 0x1000) as usize;
        memory.0[place..place + 8].copy_from_slice(&AT_ROOT.to_le_bytes());
        let map = map::read(&memory, 0x1000).unwrap();
        (memory, map)
    }

    #[test]
    fn a_list_without_end_takes_no_more_memory_than_there_is_room() {
        let (memory, map) = circular(&[]);
        let count = Count::new(&memory, &map).unwrap();
        let mut room = 10 * usize::from(CACHE_BYTES) + 1;
        let error = count.walk_caches(&mut room).unwrap_err().to_string();
        assert_eq!((error.as_str(), room), ("its list of threads has no end", 1));
    }
    #[test]
    fn no_more_is_held_back_than_there_is_room_for() {
        let limits =
            [row_of("WAITING_BLOCKS_MAX", b'c', 32, 0, 0), row_of("WAITING_RUNS", b'c', 16, 0, 0)];
        let rows = [
            row_of("META_UNIT_BYTES", b'c', 16, 0, 0),
            row_of("quarantine", b's', 0, 64, 1),
            row_of("quarantine.held", b'm', 0, 8, 2),
            row_of("quarantine.run_pages", b'm', 16, 4, 1),
            row_of("quarantine.all_open_pages", b'm', 16, 4, 1),
            row_of("quarantine.run_count", b'm', 24, 4, 1),
            row_of("held_class", b's', 0, 8, 1),
            row_of("held_class.waiting_count", b'm', 0, 2, 1),
        ];
        for (limits, blocks, runs) in [(&limits[..], 32, 16), (&[], 500, 70_000)] {
            let (mut memory, map) = circular(&[&rows, limits].concat());
            // Beside what else is at the root, which is 64 bytes.
            let place = (AT_ROOT - 0x1000) as usize + 64;
            memory.0[place + 8] = 500_u16.to_le_bytes()[0];
            memory.0[place + 9] = 500_u16.to_le_bytes()[1];
            memory.0[place + 24..place + 28].copy_from_slice(&70_000_u32.to_le_bytes());
            let mut count = Count::new(&memory, &map).unwrap();
            count.classes = vec![Default::default(); 2];
            count.zone_end = AT_ROOT + 64 + 16;
            count.quarantine(1).unwrap();
            assert_eq!((count.classes[1].cached_blocks, count.waiting_runs), (blocks, runs));
        }
    }
}
