//! Page heaps, address space, and the library's own records.
// SPDX-License-Identifier: MIT

use super::{Count, add_lock, limit_of};
use crate::live::count::Regions;
use crate::live::map::Result;

impl Count<'_> {
    pub(super) fn pages(&mut self) -> Result<Regions> {
        let taken_most = self.page_heaps()?;
        let space = Self::copy(self.memory, self.map, "space", "space")?;
        let open_bytes = self.map.member("space.open_bytes")?.first(&space)?;
        let lock = self.lock(self.map.member("space.lock")?.part(&space, 0)?)?;
        add_lock(&mut self.figures.lock_runs, lock);
        self.metadata(open_bytes >> self.shift, taken_most)?;
        self.regions(&space)
    }

    /// Returns how many pages have records that were used: as many as were taken at once.
    fn page_heaps(&mut self) -> Result<u64> {
        let map = self.map;
        let root = map.root("page_heap")?;
        let (mut large_pages, mut large_count, mut taken_most) = (0_u64, 0_u64, 0_u64);
        for index in 0..root.count {
            let lock = map.member("page_heap.lock")?;
            let copy = self.locked(root.nth(index), map.size("page_heap")?, lock)?;
            let of = |name| map.member(name)?.first(&copy);
            let free_pages = map.member("page_heap.free_pages")?;
            self.free_pages(&copy, free_pages)?;
            let taken = of("page_heap.open_pages")?.saturating_sub(free_pages.nth(&copy, 1)?);
            taken_most = taken_most.wrapping_add(taken.max(of("page_heap.taken_most")?));
            large_pages = large_pages.wrapping_add(of("page_heap.large_pages")?);
            let leases = of("page_heap.large_leases")?;
            let returns = of("page_heap.large_returns")?;
            large_count = large_count.wrapping_add(leases.wrapping_sub(returns));
            self.large_leases = self.large_leases.wrapping_add(leases);
            let figures = &mut self.figures;
            figures.run_leases = figures.run_leases.wrapping_add(of("page_heap.leases")?);
            figures.run_returns = figures.run_returns.wrapping_add(of("page_heap.returns")?);
            let lock = self.lock(lock.part(&copy, 0)?)?;
            add_lock(&mut self.figures.lock_runs, lock);
        }
        let gone = large_pages.min(self.cached_pages.wrapping_add(self.waiting_pages));
        let gone_count = large_count.min(self.cached_runs.wrapping_add(self.waiting_runs));
        let figures = &mut self.figures;
        figures.dirty = figures.dirty.wrapping_add(self.cached_pages << self.shift);
        figures.retained =
            figures.retained.wrapping_add(gone.min(self.waiting_pages) << self.shift);
        figures.large_allocated =
            self.manual_large.wrapping_add((large_pages - gone) << self.shift);
        figures.large_blocks = figures.large_blocks.wrapping_add(large_count - gone_count);
        Ok(taken_most)
    }

    fn metadata(&mut self, open_pages: u64, taken_most: u64) -> Result<()> {
        let map = self.map;
        let class_map = Self::copy(self.memory, map, "class_map", "class_map")?;
        let classes = match map.member("class_map.mask")?.first(&class_map)? {
            0 => 0,
            _ => (1_u64 << self.shift) >> map.constant("CLASS_MAP_SHIFT")?.min(63),
        };
        // Of each page.
        let maps = classes.wrapping_add(map.size("page")? as u64);
        let commit = Self::copy(self.memory, map, "commit", "commit")?;
        let records = map.member("commit.record_bytes")?.first(&commit)?;
        let meta =
            self.locked(map.root("meta")?.address, map.size("meta")?, map.member("meta.lock")?)?;
        let open_base = map.member("meta.open_base")?.first(&meta)?;
        self.figures.lock_meta = self.lock(map.member("meta.lock")?.part(&meta, 0)?)?;
        self.figures.metadata = taken_most.wrapping_mul(maps).wrapping_add(records);
        self.mapped_beyond = self.zone_end.wrapping_sub(open_base).wrapping_sub(records);
        let unused = open_pages.max(taken_most) - taken_most;
        self.mapped_beyond = self.mapped_beyond.wrapping_add(unused.wrapping_mul(maps));
        let limit = map.member("commit.limit_bytes")?;
        self.figures.limit_hard = limit_of(limit, &commit)?;
        Ok(())
    }

    fn regions(&self, space: &[u8]) -> Result<Regions> {
        let map = self.map;
        let region = map.member("space.region")?;
        let base = map.member("region.base")?;
        let open_pages = map.member("region.open_pages")?;
        let count = map.member("space.region_count")?.first(space)?.min(region.count as u64);
        let open = (0..count as usize).map(|index| {
            let of = region.part(space, index)?;
            Ok((base.first(of)?, open_pages.first(of)? << self.shift))
        });
        open.collect()
    }
}
