//! Caches of threads and of programs: blocks and runs that are ready, or held back.
// SPDX-License-Identifier: MIT

use super::{Count, PAUSE, TRIES};
use crate::live::map::{Result, wrong};

const CACHES_MAX: u64 = 1 << 16;

impl Count<'_> {
    pub(super) fn caches(&mut self) -> Result<()> {
        let lock = self.map.root("threads_lock")?;
        let lock_bytes = self.map.size("lock")?;
        let state = self.map.member("lock.state")?;
        let taken = self.map.member("lock.taken")?;
        let mut walked = Vec::new();
        let mut moved = true;
        for _ in 0..TRIES {
            let before = self.memory.bytes(lock.address, lock_bytes)?;
            let walk = self.walk_caches();
            let after = self.memory.bytes(lock.address, lock_bytes)?;
            moved = state.first(&before) != 0 || taken.first(&before) != taken.first(&after);
            match walk {
                Ok(caches) => walked = caches,
                Err(error) if !moved => return Err(error),
                Err(_) => {}
            }
            if !moved {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        self.figures.moving += u32::from(moved);
        self.figures.threads = walked.len() as u64;
        for copy in &walked {
            self.cache(copy, true)?;
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

    fn walk_caches(&self) -> Result<Vec<Vec<u8>>> {
        let next = self.map.member("cache.next")?;
        let bytes = self.map.size("cache")?;
        let mut address = self.value("first_cache")?;
        let mut caches = Vec::new();
        while address != 0 {
            if caches.len() as u64 == CACHES_MAX {
                return wrong("its list of threads has no end");
            }
            let copy = self.memory.bytes(address, bytes)?;
            address = next.first(&copy);
            caches.push(copy);
        }
        Ok(caches)
    }

    fn cache(&mut self, copy: &[u8], of_thread: bool) -> Result<()> {
        let map = self.map;
        let front = map.member("cache.front")?.part(copy, 0);
        self.magazines(copy, front)?;
        self.runs(map.member("cache.large_cache")?.first(copy))?;
        self.quarantine(map.member("front.quarantine")?.first(front))?;
        let figures = &mut self.figures;
        figures.refills = figures.refills.wrapping_add(map.member("cache.refills")?.first(copy));
        figures.overflows =
            figures.overflows.wrapping_add(map.member("cache.overflows")?.first(copy));
        if of_thread {
            self.thread_of(map.member("cache.arena")?.first(copy));
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
            let of = magazine.part(front, index);
            let spare = spare.part(copy, index);
            let (top_at, limit_at) = (top.first(of), limit.first(of));
            let capacity = spare_capacity.first(spare);
            let mut ready = spare_count.first(spare);
            if top_at <= limit_at {
                let room = (limit_at - top_at) / top.bytes as u64 + closed.first(spare);
                ready += capacity.saturating_sub(room);
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
        let room = self.map.member("large_cache.room_pages")?.first(&copy);
        self.cached_pages += pages_max.saturating_sub(room);
        self.cached_takes =
            self.cached_takes.wrapping_add(self.map.member("large_cache.takes")?.first(&copy));
        let run = self.map.member("large_cache.run")?;
        let block = self.map.member("cached_run.block")?;
        let is_kept = |index: &usize| block.first(run.part(&copy, *index)) != 0;
        self.cached_runs += (1..run.count).filter(is_kept).count() as u64;
        let below = self.map.member("large_cache.below")?;
        let count = self.map.member("runs_below.count")?;
        self.cached_runs +=
            (1..below.count).map(|index| count.first(below.part(&copy, index))).sum::<u64>();
        Ok(())
    }

    /// What a hardened thread holds back.
    fn quarantine(&mut self, number: u64) -> Result<()> {
        if number == 0 {
            return Ok(());
        }
        let unit = self.map.constant("META_UNIT_BYTES")?;
        let address = self.zone_end.wrapping_sub(number.wrapping_mul(unit));
        let copy = self.memory.bytes(address, self.map.size("quarantine")?)?;
        let held = self.map.member("quarantine.held")?;
        let waiting = self.map.member("held_class.waiting_count")?;
        for index in 1..self.classes.len().min(held.count) {
            let of = held.part(&copy, index);
            self.classes[index].cached_blocks += waiting.first(of);
        }
        let pages = self.map.member("quarantine.run_pages")?.first(&copy);
        let open = self.map.member("quarantine.all_open_pages")?.first(&copy).min(pages);
        self.cached_pages += open;
        self.waiting_pages += pages - open;
        self.waiting_runs += self.map.member("quarantine.run_count")?.first(&copy);
        Ok(())
    }
}
