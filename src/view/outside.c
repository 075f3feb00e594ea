/* outside.c - the note and the rows.
 * SPDX-License-Identifier: MIT
 */
#include "outside.h"

#include "../arenas/decay.h"
#include "../arenas/manual.h"
#include "../cache/cache_list.h"
#include "../cache/explicit_cache.h"
#include "../cache/large_cache.h"
#include "../cache/quarantine.h"
#include "../guard/guarded.h"
#include "../policy/limits.h"
#include "../policy/purge.h"
#include "../policy/reserve.h"
#include "../slabs/slab.h"
#include "../space/commit.h"
#include "snapshot.h"

/* In the order of the note. SINGLE: one object. ARRAY: an array, whose length the compiler
 * knows. */
#define OUTSIDE_ROOTS(SINGLE, ARRAY) \
    ARRAY(arenas)                    \
    SINGLE(arena_end)                \
    SINGLE(arena_limit)              \
    SINGLE(arena_hops)               \
    SINGLE(past_arenas)              \
    SINGLE(threads_lock)             \
    SINGLE(first_cache)              \
    SINGLE(explicit_cache_end)       \
    ARRAY(explicit_caches)           \
    SINGLE(large_cache_takes_before) \
    SINGLE(large_staggered_before)   \
    SINGLE(guarded_numbers)          \
    ARRAY(page_heap)                 \
    ARRAY(purge)                     \
    SINGLE(decay_looks)              \
    SINGLE(limits)                   \
    SINGLE(reserve)                  \
    SINGLE(commit)                   \
    SINGLE(space)                    \
    SINGLE(meta)                     \
    SINGLE(class_map)                \
    ARRAY(slab_shape)                \
    SINGLE(snapshot_begin_ms)

/* ---- the rows ---- */

enum {
#define NUMBER_OF_ROOT(name) ROOT_##name,
    OUTSIDE_ROOTS(NUMBER_OF_ROOT, NUMBER_OF_ROOT) ROOT_COUNT
};

#define SINGLE_ROW(name) { #name, OUTSIDE_ROOT, ROOT_##name, sizeof(name), 1 },
#define ARRAY_ROW(name) { #name, OUTSIDE_ROOT, ROOT_##name, sizeof((name)[0]), ARRAY_COUNT(name) },
#define STRUCT_ROW(type)                                 \
    {                                                    \
#type, OUTSIDE_STRUCT, 0, sizeof(struct type), 1 \
    }
#define FIELD(type, member)                                               \
    {                                                                     \
#type "." #member, OUTSIDE_MEMBER, offsetof(struct type, member), \
            sizeof(((struct type *)NULL)->member), 1                      \
    }
#define FIELDS(type, member)                                                                     \
    {                                                                                            \
#type "." #member, OUTSIDE_MEMBER, offsetof(struct type, member),                        \
            sizeof(((struct type *)NULL)->member[0]), ARRAY_COUNT(((struct type *)NULL)->member) \
    }
#define CONSTANT_ROW(name)                              \
    {                                                   \
#name, OUTSIDE_CONSTANT, (uint32_t)(name), 0, 0 \
    }

#define OUTSIDE_ROWS                                                                               \
    OUTSIDE_ROOTS(SINGLE_ROW, ARRAY_ROW)                                                           \
    STRUCT_ROW(lock), FIELD(lock, state), FIELD(lock, taken), FIELD(lock, contended),              \
        FIELD(lock, waits), STRUCT_ROW(lock_numbers), FIELD(lock_numbers, taken),                  \
        FIELD(lock_numbers, contended), FIELD(lock_numbers, waits), STRUCT_ROW(arena),             \
        FIELD(arena, lock), FIELD(arena, is_manual), FIELD(arena, is_destroyed),                   \
        FIELD(arena, is_hardened), FIELD(arena, trades), FIELDS(arena, stock), FIELDS(arena, bin), \
        FIELD(arena, manual_large), FIELD(arena, manual_taken), FIELD(arena, active_pages),        \
        FIELD(arena, staggered), FIELD(arena, purged_pages), FIELD(arena, extents),                \
        FIELDS(arena, name), STRUCT_ROW(stock), FIELD(stock, count), STRUCT_ROW(class_bin),        \
        FIELD(class_bin, partial), FIELD(class_bin, depot), FIELD(class_bin, slab_count),          \
        FIELD(class_bin, slab_free_blocks), FIELD(class_bin, flow), STRUCT_ROW(slab_list),         \
        FIELD(slab_list, count), STRUCT_ROW(depot), FIELD(depot, full),                            \
        FIELD(depot, opened_count), STRUCT_ROW(magazine_list), FIELD(magazine_list, count),        \
        STRUCT_ROW(class_flow), FIELD(class_flow, fills), FIELD(class_flow, drains),               \
        FIELD(class_flow, blocks_taken), FIELD(class_flow, slabs_opened),                          \
        STRUCT_ROW(manual_large), FIELD(manual_large, next), STRUCT_ROW(extents),                  \
        FIELD(extents, heap), STRUCT_ROW(past_arenas), FIELDS(past_arenas, of_class),              \
        FIELD(past_arenas, manual_taken), FIELD(past_arenas, lock), STRUCT_ROW(cache),             \
        FIELD(cache, front), FIELD(cache, arena), FIELD(cache, next), FIELD(cache, staggered),     \
        FIELD(cache, large_cache), FIELD(cache, fixed), FIELD(cache, refills),                     \
        FIELD(cache, overflows), FIELDS(cache, spare), STRUCT_ROW(front), FIELDS(front, magazine), \
        FIELD(front, quarantine), STRUCT_ROW(magazine), FIELD(magazine, top),                      \
        FIELD(magazine, limit), STRUCT_ROW(spare), FIELD(spare, count), FIELD(spare, capacity),    \
        FIELD(spare, closed), STRUCT_ROW(large_cache), FIELDS(large_cache, list),                  \
        FIELD(large_cache, room_pages), FIELD(large_cache, takes), STRUCT_ROW(cached_runs),        \
        FIELD(cached_runs, count), STRUCT_ROW(quarantine), FIELDS(quarantine, held),               \
        FIELD(quarantine, run_pages), FIELD(quarantine, run_count),                                \
        FIELD(quarantine, all_open_pages), STRUCT_ROW(held_class),                                 \
        FIELD(held_class, waiting_count), STRUCT_ROW(guarded_numbers),                             \
        FIELDS(guarded_numbers, held), FIELDS(guarded_numbers, taken), STRUCT_ROW(page_heap),      \
        FIELD(page_heap, lock), FIELDS(page_heap, free_pages), FIELD(page_heap, large_pages),      \
        FIELD(page_heap, large_leases), FIELD(page_heap, large_returns), FIELD(page_heap, leases), \
        FIELD(page_heap, returns), FIELD(page_heap, open_pages), FIELD(page_heap, taken_most),     \
        STRUCT_ROW(purge), FIELD(purge, purged_pages), FIELD(purge, calls), STRUCT_ROW(limits),    \
        FIELD(limits, soft_bytes), STRUCT_ROW(reserve), FIELD(reserve, pages),                     \
        FIELD(reserve, wanted_pages), STRUCT_ROW(commit), FIELD(commit, limit_bytes),              \
        FIELD(commit, record_bytes), FIELD(commit, vast_bytes), STRUCT_ROW(space),                 \
        FIELD(space, page_shift), FIELD(space, region_count), FIELD(space, open_bytes),            \
        FIELD(space, lock), FIELDS(space, region), STRUCT_ROW(region), FIELD(region, base),        \
        FIELD(region, open_pages), STRUCT_ROW(meta), FIELD(meta, lock), FIELD(meta, zone_end),     \
        FIELD(meta, open_base), STRUCT_ROW(class_map), FIELD(class_map, mask),                     \
        STRUCT_ROW(slab_shape), FIELD(slab_shape, bytes), FIELD(slab_shape, block_bytes),          \
        FIELD(slab_shape, block_count), STRUCT_ROW(page), CONSTANT_ROW(MAGAZINE_BLOCKS_MAX),       \
        CONSTANT_ROW(MAGAZINE_BYTES_MAX), CONSTANT_ROW(LARGE_CACHE_BYTES_MAX),                     \
        CONSTANT_ROW(PAGE_STAGGERED), CONSTANT_ROW(META_UNIT_BYTES),                               \
        CONSTANT_ROW(CLASS_MAP_SHIFT), CONSTANT_ROW(CACHE_ABANDONED),                              \
        CONSTANT_ROW(WAITING_BLOCKS_MAX), CONSTANT_ROW(WAITING_RUNS)

/* NOLINTBEGIN(bugprone-sizeof-expression): elements may be pointers. */
const struct outside_layout outside_layout NAMED_IN_LINES = {
    .version = OUTSIDE_VERSION,
    .row_bytes = sizeof(struct outside_row),
    .row_count = ARRAY_COUNT(((struct outside_row[]){ OUTSIDE_ROWS })),
    .root_count = ROOT_COUNT,
    .release = PRAIRIE_VERSION,
    .rows = { OUTSIDE_ROWS },
};
/* NOLINTEND(bugprone-sizeof-expression) */

/* ---- the note ---- */

/* C has no word for the distance between two objects, which only the linker knows. */
#define NAMED(name) extern __typeof__(name) name NAMED_IN_LINES;
OUTSIDE_ROOTS(NAMED, NAMED)
#define DISTANCE(name) DISTANCE_TO(name)
#define DISTANCE_TO(symbol) "\n .long " #symbol " - ."
ELF_NOTE("prairie", DISTANCE(outside_layout) OUTSIDE_ROOTS(DISTANCE, DISTANCE))
