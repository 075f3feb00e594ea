//! Counts the heap of a process by its map: what the library's own snapshot counts, in the same way
//! (src/view/snapshot.c), from outside.
//!
//! What stands under a lock is copied until it held still; what a thread owns is of a moment that is
//! just past. Everything read is somebody else's, so sums wrap rather than overflow, and walks end.
// SPDX-License-Identifier: MIT

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::map::{Field, Map, Result, number, text, wrong};
use super::memory::Memory;
use crate::sys;

/// How often a struct is copied before a copy that moved is taken for what it is.
const TRIES: u32 = 50;
/// Between two copies: who holds the lock may wait for a processor.
const PAUSE: Duration = Duration::from_micros(50);
const CACHES_MAX: u64 = 1 << 16;
const MANUAL_LARGE_MAX: u64 = 1 << 16;
const CLASSES_MAX: usize = 256;

/// Takes of a kind of lock so far; those that found it held; of these, those that slept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    pub taken: u64,
    pub contended: u64,
    pub waits: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    pub size: u64,
    pub blocks: u64,
    pub cached_blocks: u64,
    pub allocated: u64,
    pub cached: u64,
    pub slabs: u64,
    pub slab_bytes: u64,
    /// Blocks that came from slabs so far.
    pub taken: u64,
    pub slabs_opened: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arena {
    pub number: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub manual: bool,
    pub threads: u64,
    /// Pages of slabs and of its own large blocks.
    pub active: u64,
    /// In its slabs, that are not free there: held by the program, or ready in caches.
    pub out_of_slabs: u64,
    /// Ready in its depots.
    pub depots: u64,
    /// Free pages in its stocks.
    pub stocks: u64,
    pub lock: Lock,
}

/// Bytes, unless it is a number of something. The names are those of the metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    pub release: String,
    pub allocated: u64,
    pub active: u64,
    pub resident: u64,
    pub mapped: u64,
    pub retained: u64,
    pub dirty: u64,
    pub cached: u64,
    pub metadata: u64,
    pub large_allocated: u64,
    pub large_blocks: u64,
    pub large_taken: u64,
    pub threads: u64,
    pub purged: u64,
    pub purges: u64,
    pub refills: u64,
    pub overflows: u64,
    pub depot_trades: u64,
    pub run_leases: u64,
    pub run_returns: u64,
    pub arena_hops: u64,
    pub helper_looks: u64,
    pub uptime_seconds: u64,
    pub lock_arenas: Lock,
    pub lock_runs: Lock,
    pub lock_meta: Lock,
    /// 0: there is none.
    pub limit_hard: u64,
    pub limit_soft: u64,
    pub reserve: u64,
    pub hardened: bool,
    /// Structs that changed each time they were copied: their figures are of several moments.
    pub moving: u32,
    pub classes: Vec<Class>,
    pub arenas: Vec<Arena>,
}

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
    /// Runs for stocks and manual arenas; all others are large blocks.
    other_leases: u64,
    manual_taken: u64,
    cached_pages: u64,
    cached_runs: u64,
    cached_takes: u64,
    waiting_pages: u64,
    waiting_runs: u64,
    zone_end: u64,
    mapped_beyond: u64,
    /// Address of each arena that is in `figures.arenas`.
    arena_addresses: Vec<u64>,
}

impl<'a> Count<'a> {
    fn new(memory: &'a dyn Memory, map: &'a Map) -> Result<Self> {
        let space = Self::copy(memory, map, "space", "space")?;
        let shift = map.member("space.page_shift")?.first(&space);
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
            other_leases: 0,
            manual_taken: 0,
            cached_pages: 0,
            cached_runs: 0,
            cached_takes: 0,
            waiting_pages: 0,
            waiting_runs: 0,
            zone_end: map.member("meta.zone_end")?.first(&meta),
            mapped_beyond: 0,
            arena_addresses: Vec::new(),
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
        let shape = |of: &[u8]| Shape {
            slab_bytes: slab_bytes.first(of),
            block_bytes: block_bytes.first(of),
            block_count: block_count.first(of),
        };
        Ok(all.chunks_exact(root.bytes).map(shape).collect())
    }

    fn value(&self, root: &str) -> Result<u64> {
        let root = self.map.root(root)?;
        Ok(self.memory.number(root.address, root.bytes.min(8))?)
    }

    fn pages(&mut self) -> Result<Regions> {
        self.page_heaps()?;
        let space = Self::copy(self.memory, self.map, "space", "space")?;
        let open_bytes = self.map.member("space.open_bytes")?.first(&space);
        let lock = self.lock(self.map.member("space.lock")?.part(&space, 0))?;
        add_lock(&mut self.figures.lock_runs, lock);
        self.metadata(open_bytes)?;
        self.regions(&space)
    }

    // ---- what is under a lock ----

    /// A copy of one moment, if there is one; `lock` is where its lock is.
    fn locked(&mut self, address: u64, bytes: usize, lock: Field) -> Result<Vec<u8>> {
        let state = self.map.member("lock.state")?;
        let taken = self.map.member("lock.taken")?;
        let mut copy = self.memory.bytes(address, bytes)?;
        for _ in 0..TRIES {
            let later = self.memory.bytes(address, bytes)?;
            let (now, then) = (lock.part(&copy, 0), lock.part(&later, 0));
            if state.first(now) == 0 && taken.first(now) == taken.first(then) {
                return Ok(copy);
            }
            copy = later;
            std::thread::sleep(PAUSE);
        }
        self.figures.moving += 1;
        Ok(copy)
    }

    fn lock(&self, of: &[u8]) -> Result<Lock> {
        Ok(Lock {
            taken: self.map.member("lock.taken")?.first(of),
            contended: self.map.member("lock.contended")?.first(of),
            waits: self.map.member("lock.waits")?.first(of),
        })
    }

    // ---- arenas ----

    fn arenas(&mut self) -> Result<()> {
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
        let flag = |name| Ok::<_, super::map::Fault>(map.member(name)?.first(&copy) & 1 == 1);
        let mut arena = Arena {
            number,
            name: text(name_of(map.member("arena.name")?, &copy)),
            manual: flag("arena.is_manual")?,
            lock: self.lock(lock.part(&copy, 0))?,
            ..Arena::default()
        };
        self.figures.hardened |= flag("arena.is_hardened")?;
        let slabs_before = self.small_active;
        self.bins(&copy, &mut arena)?;
        let slab_bytes = self.small_active.wrapping_sub(slabs_before);
        self.stocks(&copy, &mut arena)?;
        arena.active = map.member("arena.active_pages")?.first(&copy) << self.shift;
        self.manual_large = self.manual_large.wrapping_add(arena.active.wrapping_sub(slab_bytes));
        self.figures.large_blocks +=
            self.manual_blocks(map.member("arena.manual_large")?.first(&copy))?;
        self.manual_taken =
            self.manual_taken.wrapping_add(map.member("arena.manual_taken")?.first(&copy));
        self.extents(map.member("arena.extents")?.first(&copy))?;
        self.figures.depot_trades =
            self.figures.depot_trades.wrapping_add(map.member("arena.trades")?.first(&copy));
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
            let of = bin.part(copy, index);
            let shape = &self.shapes[index];
            let slabs = slab_count.first(of);
            let blocks = slabs.wrapping_mul(shape.block_count).wrapping_sub(free_blocks.first(of));
            let depot = depot.part(of, 0);
            let ready = list_count
                .first(full.part(depot, 0))
                .wrapping_mul(self.capacity(shape.block_bytes)?)
                .wrapping_add(opened.first(depot));
            let slab_bytes = slabs.wrapping_mul(shape.slab_bytes);
            arena.out_of_slabs =
                arena.out_of_slabs.wrapping_add(blocks.wrapping_mul(shape.block_bytes));
            arena.depots = arena.depots.wrapping_add(ready.wrapping_mul(shape.block_bytes));
            self.small_active = self.small_active.wrapping_add(slab_bytes);
            self.flow(index, flow.part(of, 0))?;
            let class = &mut self.classes[index];
            class.blocks = class.blocks.wrapping_add(blocks);
            class.cached_blocks = class.cached_blocks.wrapping_add(ready);
            class.slabs = class.slabs.wrapping_add(slabs);
            class.slab_bytes = class.slab_bytes.wrapping_add(slab_bytes);
        }
        Ok(())
    }

    fn flow(&mut self, index: usize, of: &[u8]) -> Result<()> {
        let taken = self.map.member("class_flow.blocks_taken")?.first(of);
        let opened = self.map.member("class_flow.slabs_opened")?.first(of);
        let class = &mut self.classes[index];
        class.taken = class.taken.wrapping_add(taken);
        class.slabs_opened = class.slabs_opened.wrapping_add(opened);
        Ok(())
    }

    /// Blocks of a full magazine.
    fn capacity(&self, block_bytes: u64) -> Result<u64> {
        let by_bytes = self.map.constant("MAGAZINE_BYTES_MAX")? / block_bytes.max(1);
        Ok(by_bytes.min(self.map.constant("MAGAZINE_BLOCKS_MAX")?).max(2))
    }

    fn stocks(&mut self, copy: &[u8], arena: &mut Arena) -> Result<()> {
        let stock = self.map.member("arena.stock")?;
        let count = self.map.member("stock.count")?;
        let leased = self.map.member("stock.leased")?;
        for pages in 1..stock.count {
            let of = stock.part(copy, pages);
            let bytes = count.first(of).wrapping_mul(pages as u64) << self.shift;
            arena.stocks = arena.stocks.wrapping_add(bytes);
            self.other_leases = self.other_leases.wrapping_add(leased.first(of));
        }
        self.figures.dirty = self.figures.dirty.wrapping_add(arena.stocks);
        Ok(())
    }

    fn manual_blocks(&self, mut address: u64) -> Result<u64> {
        let next = self.map.member("manual_large.next")?;
        let mut count = 0;
        while address != 0 && count < MANUAL_LARGE_MAX {
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
        self.free_pages(&copy, free_pages);
        Ok(())
    }

    fn free_pages(&mut self, heap: &[u8], free_pages: Field) {
        let bytes = |kind| free_pages.nth(heap, kind) << self.shift;
        self.figures.dirty = self.figures.dirty.wrapping_add(bytes(0));
        self.figures.retained = self.figures.retained.wrapping_add(bytes(1));
    }

    /// What arenas that are gone had counted.
    fn past_arenas(&mut self) -> Result<()> {
        let copy = Self::copy(self.memory, self.map, "past_arenas", "past_arenas")?;
        let of_class = self.map.member("past_arenas.of_class")?;
        for index in 1..self.classes.len().min(of_class.count) {
            self.flow(index, of_class.part(&copy, index))?;
        }
        let taken = self.map.member("past_arenas.manual_taken")?.first(&copy);
        self.manual_taken = self.manual_taken.wrapping_add(taken);
        let lock = self.map.member("past_arenas.lock")?.part(&copy, 0).to_vec();
        let of = |name| Ok::<_, super::map::Fault>(self.map.member(name)?.first(&lock));
        let lock = Lock {
            taken: of("lock_numbers.taken")?,
            contended: of("lock_numbers.contended")?,
            waits: of("lock_numbers.waits")?,
        };
        add_lock(&mut self.figures.lock_arenas, lock);
        Ok(())
    }

    // ---- caches ----

    fn caches(&mut self) -> Result<()> {
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
        let ready = self.map.member("held_class.ready_count")?;
        let waiting = self.map.member("held_class.waiting_count")?;
        for index in 1..self.classes.len().min(held.count) {
            let of = held.part(&copy, index);
            self.classes[index].cached_blocks += ready.first(of) + waiting.first(of);
        }
        self.waiting_pages += self.map.member("quarantine.run_pages")?.first(&copy);
        self.waiting_runs += self.map.member("quarantine.run_count")?.first(&copy);
        Ok(())
    }

    // ---- pages ----

    fn page_heaps(&mut self) -> Result<()> {
        let map = self.map;
        let root = map.root("page_heap")?;
        let (mut large_pages, mut large_count) = (0_u64, 0_u64);
        for index in 0..root.count {
            let lock = map.member("page_heap.lock")?;
            let copy = self.locked(root.nth(index), map.size("page_heap")?, lock)?;
            let of = |name| Ok::<_, super::map::Fault>(map.member(name)?.first(&copy));
            self.free_pages(&copy, map.member("page_heap.free_pages")?);
            large_pages = large_pages.wrapping_add(of("page_heap.large_pages")?);
            large_count = large_count.wrapping_add(of("page_heap.large_count")?);
            let figures = &mut self.figures;
            figures.run_leases = figures.run_leases.wrapping_add(of("page_heap.leases")?);
            figures.run_returns = figures.run_returns.wrapping_add(of("page_heap.returns")?);
            let lock = self.lock(lock.part(&copy, 0))?;
            add_lock(&mut self.figures.lock_runs, lock);
        }
        let gone = large_pages.min(self.cached_pages + self.waiting_pages);
        let gone_count = large_count.min(self.cached_runs + self.waiting_runs);
        let figures = &mut self.figures;
        figures.dirty = figures.dirty.wrapping_add(self.cached_pages << self.shift);
        figures.retained =
            figures.retained.wrapping_add(gone.min(self.waiting_pages) << self.shift);
        figures.large_allocated =
            self.manual_large.wrapping_add((large_pages - gone) << self.shift);
        figures.large_blocks += large_count - gone_count;
        Ok(())
    }

    fn metadata(&mut self, open_bytes: u64) -> Result<()> {
        let map = self.map;
        let class_map = Self::copy(self.memory, map, "class_map", "class_map")?;
        let pages = (open_bytes >> self.shift).wrapping_mul(map.size("page")? as u64);
        let classes = match map.member("class_map.mask")?.first(&class_map) {
            0 => 0,
            _ => open_bytes >> map.constant("CLASS_MAP_SHIFT")?.min(63),
        };
        let commit = Self::copy(self.memory, map, "commit", "commit")?;
        let records = map.member("commit.record_bytes")?.first(&commit);
        let meta =
            self.locked(map.root("meta")?.address, map.size("meta")?, map.member("meta.lock")?)?;
        let open_base = map.member("meta.open_base")?.first(&meta);
        self.figures.lock_meta = self.lock(map.member("meta.lock")?.part(&meta, 0))?;
        self.figures.metadata = pages.wrapping_add(classes).wrapping_add(records);
        self.mapped_beyond = self.zone_end.wrapping_sub(open_base).wrapping_sub(records);
        let limit = map.member("commit.limit_bytes")?;
        self.figures.limit_hard = limit_of(limit, &commit);
        Ok(())
    }

    fn regions(&self, space: &[u8]) -> Result<Regions> {
        let map = self.map;
        let region = map.member("space.region")?;
        let base = map.member("region.base")?;
        let open_pages = map.member("region.open_pages")?;
        let count = map.member("space.region_count")?.first(space).min(region.count as u64);
        let open = (0..count as usize).map(|index| region.part(space, index));
        Ok(open.map(|of| (base.first(of), open_pages.first(of) << self.shift)).collect())
    }

    // ---- the rest ----

    /// Blocks between guards, which are of no arena.
    fn guarded(&mut self) -> Result<()> {
        let copy = Self::copy(self.memory, self.map, "guarded_numbers", "guarded_numbers")?;
        let held = self.map.member("guarded_numbers.held")?;
        let taken = self.map.member("guarded_numbers.taken")?;
        for index in 1..self.classes.len().min(held.count) {
            let class = &mut self.classes[index];
            class.blocks = class.blocks.wrapping_add(held.nth(&copy, index));
            class.taken = class.taken.wrapping_add(taken.nth(&copy, index));
            let bytes = held.nth(&copy, index).wrapping_mul(1 << self.shift);
            self.small_active = self.small_active.wrapping_add(bytes);
        }
        Ok(())
    }

    fn rest(&mut self) -> Result<()> {
        let map = self.map;
        let purge = Self::copy(self.memory, map, "purge", "purge")?;
        self.figures.purges = map.member("purge.calls")?.first(&purge);
        self.figures.purged = map.member("purge.purged_pages")?.first(&purge) << self.shift;
        let limits = Self::copy(self.memory, map, "limits", "limits")?;
        self.figures.limit_soft = limit_of(map.member("limits.soft_bytes")?, &limits);
        let reserve = Self::copy(self.memory, map, "reserve", "reserve")?;
        self.figures.reserve = map.member("reserve.pages")?.first(&reserve) << self.shift;
        self.figures.arena_hops = self.value("arena_hops")?;
        self.figures.helper_looks = self.value("decay_looks")?;
        self.cached_takes =
            self.cached_takes.wrapping_add(self.value("large_cache_takes_drained")?);
        self.other_leases = self.other_leases.wrapping_add(self.value("manual_leases")?);
        let begin_ms = self.value("snapshot_begin_ms")?;
        let now_ms = sys::monotonic_ns() / 1_000_000;
        self.figures.uptime_seconds = now_ms.saturating_sub(begin_ms) / 1000;
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
        figures.allocated = small.wrapping_add(figures.large_allocated);
        figures.active = self.small_active.wrapping_add(figures.large_allocated);
        figures.large_taken = figures
            .run_leases
            .wrapping_sub(self.other_leases)
            .wrapping_add(self.cached_takes)
            .wrapping_add(self.manual_taken);
        figures.resident =
            figures.active.wrapping_add(figures.dirty).wrapping_add(figures.metadata);
        figures.mapped = figures.resident.wrapping_add(self.mapped_beyond);
        // Class 0 is no class, and those that were never used say nothing.
        figures.classes =
            self.classes.into_iter().skip(1).filter(|class| class.slabs_opened != 0).collect();
        self.figures
    }
}

/// A text is an array of single bytes.
fn name_of(field: Field, of: &[u8]) -> &[u8] {
    &of[field.offset..field.offset + field.bytes * field.count]
}

/// All bits set: there is no limit.
fn limit_of(field: Field, of: &[u8]) -> u64 {
    let part = field.part(of, 0);
    if part.iter().all(|byte| *byte == 0xff) { 0 } else { number(part) }
}

fn add_lock(sum: &mut Lock, lock: Lock) {
    sum.taken = sum.taken.wrapping_add(lock.taken);
    sum.contended = sum.contended.wrapping_add(lock.contended);
    sum.waits = sum.waits.wrapping_add(lock.waits);
}
