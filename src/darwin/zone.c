/* zone.c - the zone's functions: the doors, and the questions that tools ask.
 * SPDX-License-Identifier: MIT
 */
#include "zone.h"

#include "../heap/extended.h"
#include "../heap/hardened_held.h"
#include "../heap/heap.h"
#include "../slabs/slab.h"
#include "../view/snapshot.h"
#include "../view/stats.h"

/* Of the zone's interface; members that came with later versions are not in older systems'
 * headers. */
enum { ZONE_VERSION = 16, PROMOTIONS_MAX = 8 };

/* ---- blocks ---- */

/* In a page of a slab, but not where one of its blocks begins? */
static bool is_amid_slab(const void *address, uint32_t page)
{
    const struct slab *slab;

    if (page_record(page)->class_at == 0) return false;
    slab = slab_record(page_record(page)->slab);
    return !slab_offset_is_block(&slab_shape[slab->class_index],
                                 (uintptr_t)address - (uintptr_t)slab->base);
}

/* 0 for what is no block's first byte, or one that was freed and is seen to be: the system asks
 * every zone about every address. What lies in none of our pages is nobody's block of ours, and
 * pointer_kind, which would ask the system whose it is, and so us again, is not called for it. */
static size_t zone_size(malloc_zone_t *zone, const void *block)
{
    uint32_t page = page_at(block);
    enum pointer_kind kind;

    (void)zone;
    if (page == 0 || is_amid_slab(block, page)) return 0;
    kind = pointer_kind(block, &page);
    return kind == POINTER_HARDENED ? hardened_held_bytes(block, page)
                                    : pointer_bytes(kind, block, page);
}

static void *zone_malloc(malloc_zone_t *zone, size_t size)
{
    (void)zone;
    return prairie_malloc(size);
}

static void *zone_calloc(malloc_zone_t *zone, size_t count, size_t size)
{
    (void)zone;
    return prairie_calloc(count, size);
}

static void *zone_valloc(malloc_zone_t *zone, size_t size)
{
    (void)zone;
    return prairie_valloc(size);
}

static void zone_free(malloc_zone_t *zone, void *block)
{
    (void)zone;
    prairie_free(block);
}

static void *zone_realloc(malloc_zone_t *zone, void *block, size_t size)
{
    (void)zone;
    return darwin_realloc(block, size);
}

static void *zone_memalign(malloc_zone_t *zone, size_t align, size_t size)
{
    (void)zone;
    return prairie_aligned_alloc(align, size);
}

/* The size tells nothing of a block that was taken with an alignment, and nobody says which
 * were. */
static void zone_free_definite_size(malloc_zone_t *zone, void *block, size_t size)
{
    (void)size;
    zone_free(zone, block);
}

static unsigned zone_batch_malloc(malloc_zone_t *zone, size_t size, void **blocks, unsigned count)
{
    unsigned taken = 0;

    (void)zone;
    while (taken < count && (blocks[taken] = prairie_malloc(size)) != NULL) taken++;
    return taken;
}

static void zone_batch_free(malloc_zone_t *zone, void **blocks, unsigned count)
{
    (void)zone;
    for (unsigned i = 0; i < count; i++) prairie_free(blocks[i]);
}

static void *zone_malloc_with_options(malloc_zone_t *zone, size_t align, size_t size,
                                      uint64_t options)
{
    (void)zone;
    align = max_size(align, 1);
    if (!is_power_of_two(align)) return prairie_aligned_alloc(align, size); /* refuses */
    if ((options & MALLOC_ZONE_MALLOC_OPTION_CLEAR) != 0)
        return prairie_mallocx(max_size(size, 1), (int)(lowest_bit(align) | FLAG_ZERO));
    return align > 1 ? prairie_aligned_alloc(align, size) : prairie_malloc(size);
}

/* What type a block is of changes nothing: classes of types are no defence of ours. */
static void *zone_typed_malloc(malloc_zone_t *zone, size_t size, malloc_type_id_t type)
{
    (void)type;
    return zone_malloc(zone, size);
}

static void *zone_typed_calloc(malloc_zone_t *zone, size_t count, size_t size,
                               malloc_type_id_t type)
{
    (void)type;
    return zone_calloc(zone, count, size);
}

static void *zone_typed_realloc(malloc_zone_t *zone, void *block, size_t size,
                                malloc_type_id_t type)
{
    (void)type;
    return zone_realloc(zone, block, size);
}

static void *zone_typed_memalign(malloc_zone_t *zone, size_t align, size_t size,
                                 malloc_type_id_t type)
{
    (void)type;
    return zone_memalign(zone, align, size);
}

static void *zone_typed_with_options(malloc_zone_t *zone, size_t align, size_t size,
                                     uint64_t options, malloc_type_id_t type)
{
    (void)type;
    return zone_malloc_with_options(zone, align, size, options);
}

static boolean_t zone_claimed_address(malloc_zone_t *zone, void *address)
{
    (void)zone;
    return page_at(address) != 0;
}

/* The goal is a hint: all that is free goes. */
static size_t zone_pressure_relief(malloc_zone_t *zone, size_t goal)
{
    (void)zone;
    (void)goal;
    return prairie_purge();
}

/* The heap of a process has no end of its own. */
static void zone_destroy(malloc_zone_t *zone) { (void)zone; }

/* ---- questions ---- */

static size_t zone_good_size(malloc_zone_t *zone, size_t size)
{
    (void)zone;
    return darwin_good_size(size);
}

/* What is broken ends the process with a line that says what. */
static boolean_t zone_check(malloc_zone_t *zone)
{
    (void)zone;
    prairie_check_all();
    return true;
}

static void zone_print(malloc_zone_t *zone, boolean_t verbose)
{
    (void)zone;
    (void)verbose;
    prairie_stats_print();
}

/* Calls are logged by sampling (docs/profiling.md), not address by address. */
static void zone_log(malloc_zone_t *zone, void *address)
{
    (void)zone;
    (void)address;
}

static void zone_force_lock(malloc_zone_t *zone)
{
    (void)zone;
    heap_fork_begins();
}

static void zone_force_unlock(malloc_zone_t *zone)
{
    (void)zone;
    heap_fork_ends_in_parent();
}

static void zone_reinit_lock(malloc_zone_t *zone)
{
    (void)zone;
    heap_fork_ends_in_child();
}

static boolean_t zone_locked(malloc_zone_t *zone)
{
    (void)zone;
    return heap_is_locked();
}

static boolean_t zone_enable_discharge_checking(malloc_zone_t *zone)
{
    (void)zone;
    return false;
}

static void zone_disable_discharge_checking(malloc_zone_t *zone) { (void)zone; }

static void zone_discharge(malloc_zone_t *zone, void *block)
{
    (void)zone;
    (void)block;
}

/* ---- statistics, of any task ---- */

/* The ranges of one kind: how many, and their bytes. */
struct zone_sum {
    size_t count, bytes;
};
struct zone_sums {
    struct zone_sum blocks, memory;
};

static void add_ranges(task_t task, void *context, unsigned type, vm_range_t *ranges,
                       unsigned count)
{
    struct zone_sums *sums = context;
    struct zone_sum *sum = type == MALLOC_PTR_IN_USE_RANGE_TYPE ? &sums->blocks : &sums->memory;

    (void)task;
    sum->count += count;
    for (unsigned i = 0; i < count; i++) sum->bytes += ranges[i].size;
}

static void zone_task_statistics(task_t task, vm_address_t zone, memory_reader_t reader,
                                 malloc_statistics_t *statistics)
{
    struct zone_sums sums = { 0 };

    (void)zone_enumerate(task, &sums, MALLOC_PTR_IN_USE_RANGE_TYPE | MALLOC_PTR_REGION_RANGE_TYPE,
                         zone, reader, add_ranges);
    *statistics = (malloc_statistics_t){ .blocks_in_use = (unsigned)sums.blocks.count,
                                         .size_in_use = sums.blocks.bytes,
                                         .max_size_in_use = sums.memory.bytes,
                                         .size_allocated = sums.memory.bytes };
}

/* By counts, under one lock after the other. The memory is what the heap opened, without its
 * records. */
static void zone_statistics(malloc_zone_t *zone, malloc_statistics_t *statistics)
{
    struct snapshot numbers;
    uint64_t blocks, memory;

    (void)zone;
    snapshot_sum(&numbers);
    memory = numbers.opened - numbers.all.metadata;
    blocks = numbers.all.large_count;
    for (unsigned i = 0; i < CLASS_COUNT; i++) blocks += numbers.all.of_class[i].blocks;
    *statistics = (malloc_statistics_t){ .blocks_in_use = (unsigned)blocks,
                                         .size_in_use = numbers.all.all.allocated,
                                         .max_size_in_use = memory,
                                         .size_allocated = memory };
}

static void zone_print_task(task_t task, unsigned level, vm_address_t zone, memory_reader_t reader,
                            print_task_printer_t printer)
{
    malloc_statistics_t statistics;

    (void)level;
    zone_task_statistics(task, zone, reader, &statistics);
    printer("zone prairie: %u blocks of %zu bytes in %zu bytes\n", statistics.blocks_in_use,
            statistics.size_in_use, statistics.size_allocated);
}

/* ---- the zone ---- */

static malloc_introspection_t zone_introspection = {
    .enumerator = zone_enumerate,
    .good_size = zone_good_size,
    .check = zone_check,
    .print = zone_print,
    .log = zone_log,
    .force_lock = zone_force_lock,
    .force_unlock = zone_force_unlock,
    .statistics = zone_statistics,
    .zone_locked = zone_locked,
    .enable_discharge_checking = zone_enable_discharge_checking,
    .disable_discharge_checking = zone_disable_discharge_checking,
    .discharge = zone_discharge,
    .reinit_lock = zone_reinit_lock,
    .print_task = zone_print_task,
    .task_statistics = zone_task_statistics,
};

struct prairie_zone prairie_zone = {
    .zone = {
        .size = zone_size,
        .malloc = zone_malloc,
        .calloc = zone_calloc,
        .valloc = zone_valloc,
        .free = zone_free,
        .realloc = zone_realloc,
        .destroy = zone_destroy,
        .zone_name = "prairie",
        .batch_malloc = zone_batch_malloc,
        .batch_free = zone_batch_free,
        .introspect = &zone_introspection,
        .version = ZONE_VERSION,
        .memalign = zone_memalign,
        .free_definite_size = zone_free_definite_size,
        .pressure_relief = zone_pressure_relief,
        .claimed_address = zone_claimed_address,
        .malloc_with_options = zone_malloc_with_options,
        .malloc_type_malloc = zone_typed_malloc,
        .malloc_type_calloc = zone_typed_calloc,
        .malloc_type_realloc = zone_typed_realloc,
        .malloc_type_memalign = zone_typed_memalign,
        .malloc_type_malloc_with_options = zone_typed_with_options,
    },
};

/* The zone that serves malloc. What malloc_default_zone answers is not it: there it is a zone that
 * hands on to this one. */
static malloc_zone_t *first_zone(void)
{
    vm_address_t *zones = NULL;
    unsigned count = 0;

    if (malloc_get_all_zones(mach_task_self(), NULL, &zones, &count) != KERN_SUCCESS || count == 0)
        return malloc_default_zone();
    return (malloc_zone_t *)zones[0];
}

/* There is no call that puts a zone first. But when one is unregistered, the last one takes its
 * place: ours is, right after it was registered. The zone of purgeable memory has to stay behind
 * the one that was first, whose blocks it knows of: it goes and comes again after it. */
void zone_install(void)
{
    malloc_zone_t *first, *purgeable;

    if (prairie_zone.roots.layout != 0) return;
    purgeable = malloc_default_purgeable_zone();
    (void)heap_start();
    zone_set_roots();
    malloc_zone_register(&prairie_zone.zone);
    for (unsigned attempt = 0; attempt < PROMOTIONS_MAX; attempt++) {
        first = first_zone();
        if (first == &prairie_zone.zone) return;
        malloc_zone_unregister(first);
        malloc_zone_register(first);
        if (purgeable == NULL || purgeable == first) continue;
        malloc_zone_unregister(purgeable);
        malloc_zone_register(purgeable);
    }
}
