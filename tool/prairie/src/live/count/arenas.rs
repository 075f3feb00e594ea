//! Arenas: slabs, depots, stocks, and large blocks of their own.
// SPDX-License-Identifier: MIT

use super::{Count, add_lock};
use crate::live::figures::{Arena, Lock};
use crate::live::map::{Fault, Field, Result, text};

/// Of a name's bytes.
const NAME_MAX: usize = 256;

impl Count<'_> {
    pub(super) fn arenas(&mut self) -> Result<()> {
        let root = self.map.root("arenas")?;
        let end = self.value("arena_end")?.min(root.count as u64);
        for index in 0..end as usize {
            let address = self.memory.number(root.nth(index), root.bytes.min(8))?;
            if address != 0 {
                self.arena(index as u64, address)?;
            }
        }
        self.past_arenas()
    }

    fn arena(&mut self, number: u64, address: u64) -> Result<()> {
        let map = self.map;
        let lock = map.member("arena.lock")?;
        let copy = self.locked(address, map.size("arena")?, lock)?;
        let flag = |name| Ok::<_, Fault>(map.member(name)?.first(&copy)? & 1 == 1);
        let name = map.member("arena.name")?.all(&copy)?;
        let mut arena = Arena {
            number,
            name: text(&name[..name.len().min(NAME_MAX)]),
            manual: flag("arena.is_manual")?,
            lock: self.lock(lock.part(&copy, 0)?)?,
            ..Arena::default()
        };
        self.figures.hardened |= flag("arena.is_hardened")?;
        let slabs_before = self.small_active;
        self.bins(&copy, &mut arena)?;
        let slab_bytes = self.small_active.wrapping_sub(slabs_before);
        self.stocks(&copy, &mut arena)?;
        arena.active = map.member("arena.active_pages")?.first(&copy)? << self.shift;
        let purged = map.member("arena.purged_pages")?.first(&copy)? << self.shift;
        let held = arena.active.wrapping_add(purged);
        self.manual_large = self.manual_large.wrapping_add(held.wrapping_sub(slab_bytes));
        self.small_active = self.small_active.wrapping_sub(purged);
        self.figures.retained = self.figures.retained.wrapping_add(purged);
        self.staggered = self.staggered.wrapping_add(map.member("arena.staggered")?.first(&copy)?);
        let manual_blocks = self.manual_blocks(map.member("arena.manual_large")?.first(&copy)?)?;
        self.figures.large_blocks = self.figures.large_blocks.wrapping_add(manual_blocks);
        self.manual_taken =
            self.manual_taken.wrapping_add(map.member("arena.manual_taken")?.first(&copy)?);
        self.extents(map.member("arena.extents")?.first(&copy)?)?;
        self.figures.depot_trades =
            self.figures.depot_trades.wrapping_add(map.member("arena.trades")?.first(&copy)?);
        add_lock(&mut self.figures.lock_arenas, arena.lock);
        if !flag("arena.is_destroyed")? {
            self.figures.arenas.push(arena);
            self.arena_addresses.push(address);
        }
        Ok(())
    }

    fn bins(&mut self, copy: &[u8], arena: &mut Arena) -> Result<()> {
        let map = self.map;
        let bin = map.member("arena.bin")?;
        let slab_count = map.member("class_bin.slab_count")?;
        let free_blocks = map.member("class_bin.slab_free_blocks")?;
        let depot = map.member("class_bin.depot")?;
        let full = map.member("depot.full")?;
        let list_count = map.member("magazine_list.count")?;
        let opened = map.member("depot.opened_count")?;
        let flow = map.member("class_bin.flow")?;
        for index in 1..self.classes.len().min(bin.count) {
            let of = bin.part(copy, index)?;
            let shape = &self.shapes[index];
            let slabs = slab_count.first(of)?;
            let blocks = slabs.wrapping_mul(shape.block_count).wrapping_sub(free_blocks.first(of)?);
            let depot = depot.part(of, 0)?;
            let ready = list_count
                .first(full.part(depot, 0)?)?
                .wrapping_mul(self.capacity(shape.block_bytes)?)
                .wrapping_add(opened.first(depot)?);
            let slab_bytes = slabs.wrapping_mul(shape.slab_bytes);
            arena.out_of_slabs =
                arena.out_of_slabs.wrapping_add(blocks.wrapping_mul(shape.block_bytes));
            arena.depots = arena.depots.wrapping_add(ready.wrapping_mul(shape.block_bytes));
            self.small_active = self.small_active.wrapping_add(slab_bytes);
            self.flow(index, flow.part(of, 0)?)?;
            let class = &mut self.classes[index];
            class.blocks = class.blocks.wrapping_add(blocks);
            class.cached_blocks = class.cached_blocks.wrapping_add(ready);
            class.slabs = class.slabs.wrapping_add(slabs);
            class.slab_bytes = class.slab_bytes.wrapping_add(slab_bytes);
        }
        Ok(())
    }

    pub(super) fn flow(&mut self, index: usize, of: &[u8]) -> Result<()> {
        let taken = self.map.member("class_flow.blocks_taken")?.first(of)?;
        let opened = self.map.member("class_flow.slabs_opened")?.first(of)?;
        let class = &mut self.classes[index];
        class.taken = class.taken.wrapping_add(taken);
        class.slabs_opened = class.slabs_opened.wrapping_add(opened);
        Ok(())
    }

    /// Blocks of a full magazine.
    pub(super) fn capacity(&self, block_bytes: u64) -> Result<u64> {
        let by_bytes = self.map.constant("MAGAZINE_BYTES_MAX")? / block_bytes.max(1);
        Ok(by_bytes.min(self.map.constant("MAGAZINE_BLOCKS_MAX")?).max(2))
    }

    fn stocks(&mut self, copy: &[u8], arena: &mut Arena) -> Result<()> {
        let stock = self.map.member("arena.stock")?;
        let count = self.map.member("stock.count")?;
        for pages in 1..stock.count {
            let of = stock.part(copy, pages)?;
            let bytes = count.first(of)?.wrapping_mul(pages as u64) << self.shift;
            arena.stocks = arena.stocks.wrapping_add(bytes);
        }
        self.figures.dirty = self.figures.dirty.wrapping_add(arena.stocks);
        Ok(())
    }

    fn manual_blocks(&mut self, mut address: u64) -> Result<u64> {
        let next = self.map.member("manual_large.next")?;
        let mut count = 0;
        while address != 0 && self.manual_blocks_left > 0 {
            self.manual_blocks_left -= 1;
            let place = address.wrapping_add(next.offset as u64);
            address = self.memory.number(place, next.bytes.min(8))?;
            count += 1;
        }
        Ok(count)
    }

    /// Free pages that the program supplied.
    fn extents(&mut self, address: u64) -> Result<()> {
        if address == 0 {
            return Ok(());
        }
        let heap = self.map.member("extents.heap")?;
        let copy = self.memory.bytes(address.wrapping_add(heap.offset as u64), heap.bytes)?;
        let free_pages = self.map.member("page_heap.free_pages")?;
        self.free_pages(&copy, free_pages)
    }

    pub(super) fn free_pages(&mut self, heap: &[u8], free_pages: Field) -> Result<()> {
        let bytes = |kind| Ok::<_, Fault>(free_pages.nth(heap, kind)? << self.shift);
        self.figures.dirty = self.figures.dirty.wrapping_add(bytes(0)?);
        self.figures.retained = self.figures.retained.wrapping_add(bytes(1)?);
        Ok(())
    }

    /// What arenas that are gone had counted.
    fn past_arenas(&mut self) -> Result<()> {
        let copy = Self::copy(self.memory, self.map, "past_arenas", "past_arenas")?;
        let of_class = self.map.member("past_arenas.of_class")?;
        for index in 1..self.classes.len().min(of_class.count) {
            self.flow(index, of_class.part(&copy, index)?)?;
        }
        let taken = self.map.member("past_arenas.manual_taken")?.first(&copy)?;
        self.manual_taken = self.manual_taken.wrapping_add(taken);
        let lock = self.map.member("past_arenas.lock")?.part(&copy, 0)?.to_vec();
        let of = |name| self.map.member(name)?.first(&lock);
        let lock = Lock {
            taken: of("lock_numbers.taken")?,
            contended: of("lock_numbers.contended")?,
            waits: of("lock_numbers.waits")?,
        };
        add_lock(&mut self.figures.lock_arenas, lock);
        Ok(())
    }
}
