/* zone_tasks.c - walks the heap of a task that is stopped, through a function that reads its
 * memory.
 *
 * Only addresses in the task are known, and what the reader made readable is so until its next
 * call: each struct is copied before it is looked at. Slabs count a cached block as taken, so what
 * is cached is collected and sorted first, in memory of its own: the walk must take none of the
 * heap's.
 * SPDX-License-Identifier: MIT
 */
#include "zone.h"

#include "../arenas/arena_set.h"
#include "../cache/explicit_cache.h"
#include "../cache/quarantine.h"
#include "../cache/cache_list.h"
#include "../slabs/slab.h"
#include "../space/foreign.h"

enum { RANGES_AT_ONCE = 64, RECORDS_AT_ONCE = 1024 };

/* Two libraries agree about all that is read when these do. */
#define ZONE_LAYOUT                                                                           \
    ((uint32_t)(sizeof(struct space) ^ sizeof(struct cache) << 8 ^ sizeof(struct arena) << 12 \
                ^ sizeof(struct meta) << 16 ^ (size_t)CLASS_COUNT << 24))

struct walk {
    task_t task;
    memory_reader_t *reader;
    vm_range_recorder_t *recorder;
    void *context;
    unsigned types;
    struct zone_roots roots;
    struct space space; /* as it is there */
    vm_address_t records_end;
    bool failed;             /* a read was refused; what was recorded until then stays */
    struct os_range scratch; /* of `cached` */
    size_t cached_count;     /* in order of address once all are there */
    vm_range_t range[RANGES_AT_ONCE];
    unsigned range_count, range_type;
    struct page records[RECORDS_AT_ONCE];
};

/* ---- reading ---- */

static const void *look_at_task(struct walk *walk, vm_address_t address, size_t bytes)
{
    void *local = (void *)address;

    if (walk->reader != NULL && walk->reader(walk->task, address, bytes, &local) != KERN_SUCCESS) {
        walk->failed = true;
        return NULL;
    }
    return local;
}

static bool copy(struct walk *walk, void *to, vm_address_t from, size_t bytes)
{
    const void *local = look_at_task(walk, from, bytes);

    if (local == NULL) return false;
    __builtin_memcpy(to, local, bytes);
    return true;
}

static vm_address_t pointer_at(struct walk *walk, vm_address_t address)
{
    vm_address_t pointer = 0;

    (void)copy(walk, &pointer, address, sizeof pointer);
    return pointer;
}

/* ---- recording ---- */

static void record_rest(struct walk *walk)
{
    if (walk->range_count != 0)
        walk->recorder(walk->task, walk->context, walk->range_type, walk->range, walk->range_count);
    walk->range_count = 0;
}

static void record(struct walk *walk, unsigned type, vm_address_t address, size_t bytes)
{
    if ((walk->types & type) == 0 || bytes == 0) return;
    if (walk->range_count == RANGES_AT_ONCE || walk->range_type != type) record_rest(walk);
    walk->range_type = type;
    walk->range[walk->range_count++] = (vm_range_t){ address, bytes };
}

/* ---- what is cached ---- */

static uintptr_t *cached_blocks(struct walk *walk) { return (uintptr_t *)walk->scratch.base; }

/* Room for so many more. */
static bool cached_room(struct walk *walk, size_t more)
{
    size_t wanted = (walk->cached_count + more) * sizeof(uintptr_t);
    struct os_range larger;

    if (wanted <= walk->scratch.bytes) return true;
    larger = os_reserve(round_up(2 * wanted, HUGE_PAGE_BYTES), os_page_bytes());
    if (larger.base == NULL) return false;
    if (!os_commit(larger)) {
        os_release(larger);
        return false;
    }
    if (walk->scratch.base != NULL) {
        __builtin_memcpy(larger.base, walk->scratch.base, walk->cached_count * sizeof(uintptr_t));
        os_release(walk->scratch);
    }
    walk->scratch = larger;
    return true;
}

/* The blocks in a magazine's slots, or in the places where they wait. */
static void collect(struct walk *walk, vm_address_t slots, size_t count)
{
    size_t most = max_size(max_size(MAGAZINE_BLOCKS_MAX, WIDE_BLOCKS_MAX), WAITING_BLOCKS_MAX);
    const uintptr_t *slot;

    if (count == 0) return;
    if (count > most || !cached_room(walk, count)) {
        walk->failed = true;
        return;
    }
    slot = look_at_task(walk, slots, count * sizeof(void *));
    for (size_t i = 0; slot != NULL && i < count; i++)
        if (slot[i] != 0) cached_blocks(walk)[walk->cached_count++] = slot[i];
}

/* What a hardened process holds back; the number is the quarantine's. */
static void collect_waiting(struct walk *walk, uint32_t number)
{
    vm_address_t at = walk->records_end - (size_t)number * META_UNIT_BYTES;
    struct held_class waits;

    for (unsigned class_index = 1; class_index < CLASS_COUNT && !walk->failed; class_index++)
        if (copy(walk, &waits, at + offsetof(struct quarantine, held) + class_index * sizeof waits,
                 sizeof waits)
            && waits.waiting != NULL)
            collect(walk, (vm_address_t)waits.waiting, waits.waiting_max);
}

static void collect_cache(struct walk *walk, const struct cache *cache)
{
    if (cache->front.quarantine != 0) collect_waiting(walk, cache->front.quarantine);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct magazine *loaded = &cache->front.magazine[class_index];
        const struct spare *spare = &cache->spare[class_index];
        void **bottom = cache_loaded(cache, class_index);

        if (spare->capacity != 0)
            collect(walk, (vm_address_t)(bottom + 1), (size_t)(loaded->top - bottom));
        if (spare->slots != NULL) collect(walk, (vm_address_t)(spare->slots + 1), spare->count);
    }
}

static void collect_depot(struct walk *walk, const struct depot *depot, unsigned class_index)
{
    vm_address_t magazine = (vm_address_t)depot->full.first;

    for (uint32_t i = 0; i < depot->full.count && magazine != 0; i++) {
        collect(walk, magazine + sizeof(void *), magazine_capacity(class_index));
        magazine = pointer_at(walk, magazine);
    }
    if (depot->opened != NULL)
        collect(walk, (vm_address_t)(depot->opened + 1), depot->opened_count);
}

/* Caches and arenas are large for a stack that may be a debugger's. */
static union {
    struct cache cache;
    struct arena arena;
} held; /* one walk at a time */

static void collect_caches(struct walk *walk)
{
    vm_address_t next = pointer_at(walk, walk->roots.caches);

    for (; next != 0 && copy(walk, &held.cache, next, sizeof held.cache);
         next = (vm_address_t)held.cache.next)
        collect_cache(walk, &held.cache);
    for (unsigned i = 0; i < EXPLICIT_CACHE_COUNT_MAX && !walk->failed; i++) {
        next = pointer_at(walk, walk->roots.explicit_caches + i * sizeof(void *));
        if (next != 0 && copy(walk, &held.cache, next, sizeof held.cache))
            collect_cache(walk, &held.cache);
    }
}

static void collect_depots(struct walk *walk)
{
    unsigned end = 0;

    (void)copy(walk, &end, walk->roots.arena_end, sizeof end);
    for (unsigned i = 0; i < end && !walk->failed; i++) {
        vm_address_t arena = pointer_at(walk, walk->roots.arenas + i * sizeof(void *));

        if (arena == 0 || !copy(walk, &held.arena, arena, sizeof held.arena)) continue;
        for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
            collect_depot(walk, &held.arena.bin[class_index].depot, class_index);
    }
}

static void sink(uintptr_t *block, size_t at, size_t count)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        uintptr_t moved = block[at];

        if (child + 1 < count && block[child] < block[child + 1]) child++;
        if (moved >= block[child]) return;
        block[at] = block[child];
        block[child] = moved;
    }
}

/* In place: there is no other memory. */
static void sort_cached(struct walk *walk)
{
    uintptr_t *block = cached_blocks(walk);

    for (size_t at = walk->cached_count / 2; at-- > 0;) sink(block, at, walk->cached_count);
    for (size_t count = walk->cached_count; count-- > 1;) {
        uintptr_t largest = block[0];

        block[0] = block[count];
        block[count] = largest;
        sink(block, 0, count);
    }
}

static bool is_cached(struct walk *walk, uintptr_t address)
{
    const uintptr_t *block = cached_blocks(walk);
    size_t low = 0, high = walk->cached_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (block[middle] < address) low = middle + 1;
        else high = middle;
    }
    return low < walk->cached_count && block[low] == address;
}

/* ---- runs ---- */

static void record_slab(struct walk *walk, uint32_t number)
{
    vm_address_t at = walk->records_end - (size_t)number * META_UNIT_BYTES;
    struct slab slab;
    uint64_t free_bits = 0;

    if (!copy(walk, &slab, at, sizeof slab) || slab.class_index >= CLASS_COUNT) return;
    for (unsigned i = 0; i < slab.block_count; i++) {
        size_t bytes = class_bytes[slab.class_index];
        vm_address_t block = (vm_address_t)slab.base + i * bytes;

        if (i % 64 == 0
            && !copy(walk, &free_bits, at + offsetof(struct slab, free) + i / 64 * 8,
                     sizeof free_bits))
            return;
        if ((free_bits >> i % 64 & 1) == 0 && !is_cached(walk, block))
            record(walk, MALLOC_PTR_IN_USE_RANGE_TYPE, block, bytes);
    }
}

static void record_run(struct walk *walk, const struct page *first, vm_address_t address)
{
    if (first->class_at != 0) record_slab(walk, first->slab);
    else if (page_is_held_block(first))
        record(walk, MALLOC_PTR_IN_USE_RANGE_TYPE, address + page_begin_offset(first),
               ((size_t)first->run_pages << walk->space.page_shift) - page_spare_bytes(first));
}

/* Every run of so many pages from this number on, which lie there. */
static void record_runs(struct walk *walk, uint32_t page, size_t pages, vm_address_t address)
{
    unsigned shift = walk->space.page_shift;
    size_t at = 0, loaded = 0, count = 0;

    record(walk, MALLOC_PTR_REGION_RANGE_TYPE, address, pages << shift);
    while (at < pages && !walk->failed) {
        const struct page *first;

        if (at >= loaded + count || count == 0) {
            loaded = at;
            count = min_size(pages - at, RECORDS_AT_ONCE);
            if (!copy(walk, walk->records, walk->roots.page_map + (page + at) * sizeof(struct page),
                      count * sizeof(struct page)))
                return;
        }
        first = &walk->records[at - loaded];
        record_run(walk, first, address + (at << shift));
        walk->failed = walk->failed || first->run_pages == 0;
        at += first->run_pages;
    }
}

/* Memory that somebody else reserved: of hooks, or one vast block. */
static void record_foreign(struct walk *walk)
{
    vm_address_t order = pointer_at(walk, walk->roots.foreign_order);
    uint32_t count = 0;

    (void)copy(walk, &count, walk->roots.foreign_count, sizeof count);
    for (uint32_t i = 0; i < count && !walk->failed; i++) {
        struct foreign_extent extent;
        struct page first;
        uint32_t number = 0;

        if (!copy(walk, &number, order + i * sizeof number, sizeof number)
            || !copy(walk, &extent, walk->records_end - (size_t)number * META_UNIT_BYTES,
                     sizeof extent)
            || !copy(walk, &first, walk->roots.page_map + (extent.before + 1) * sizeof(struct page),
                     sizeof first))
            return;
        if (first.state == PAGE_VAST) {
            size_t bytes = (size_t)extent.pages << walk->space.page_shift;

            record(walk, MALLOC_PTR_REGION_RANGE_TYPE, (vm_address_t)extent.base, bytes);
            record(walk, MALLOC_PTR_IN_USE_RANGE_TYPE, (vm_address_t)extent.base,
                   bytes - page_spare_bytes(&first));
        } else record_runs(walk, extent.before + 1, extent.pages, (vm_address_t)extent.base);
    }
}

static void record_own(struct walk *walk)
{
    struct meta records;

    if (!copy(walk, &records, walk->roots.meta, sizeof records)) return;
    walk->records_end = (vm_address_t)records.zone_end;
    record(walk, MALLOC_ADMIN_REGION_RANGE_TYPE, (vm_address_t)records.open_base,
           (size_t)(records.zone_end - records.open_base));
}

static bool walk_begins(struct walk *walk, vm_address_t zone)
{
    struct prairie_zone there;

    if (!copy(walk, &there, zone, sizeof there) || there.roots.layout != ZONE_LAYOUT) return false;
    walk->roots = there.roots;
    walk->roots.page_map = pointer_at(walk, there.roots.page_map);
    return copy(walk, &walk->space, there.roots.space, sizeof walk->space);
}

void zone_set_roots(void)
{
    prairie_zone.roots = (struct zone_roots){
        .layout = ZONE_LAYOUT,
        .space = (vm_address_t)&space,
        .page_map = (vm_address_t)&page_map,
        .meta = (vm_address_t)&meta,
        .arenas = (vm_address_t)arenas,
        .arena_end = (vm_address_t)&arena_end,
        .caches = (vm_address_t)cache_list_address(),
        .explicit_caches = (vm_address_t)explicit_cache_table_address(),
        .foreign_order = (vm_address_t)foreign_order_address(),
        .foreign_count = (vm_address_t)foreign_count_address(),
    };
}

kern_return_t zone_enumerate(task_t task, void *context, unsigned types, vm_address_t zone,
                             memory_reader_t reader, vm_range_recorder_t recorder)
{
    static struct walk walk; /* one at a time */

    walk = (struct walk){ .task = task,
                          .reader = task == mach_task_self() ? NULL : reader,
                          .recorder = recorder,
                          .context = context,
                          .types = types };
    if (!walk_begins(&walk, zone)) return KERN_FAILURE;
    record_own(&walk);
    if ((types & MALLOC_PTR_IN_USE_RANGE_TYPE) != 0) {
        collect_caches(&walk);
        collect_depots(&walk);
        sort_cached(&walk);
    }
    for (unsigned i = 0; i < walk.space.region_count && !walk.failed; i++) {
        const struct region *region = &walk.space.region[i];

        record_runs(&walk, region->first_page, region->open_pages, (vm_address_t)region->base);
    }
    record_foreign(&walk);
    record_rest(&walk);
    if (walk.scratch.base != NULL) os_release(walk.scratch);
    return walk.failed ? KERN_FAILURE : KERN_SUCCESS;
}
