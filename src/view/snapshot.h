/* snapshot.h - everything that can be counted, as of one moment, kept until the next one is asked
 * for.
 *
 * Beyond struct prairie_stats it knows each arena and each class. It lives in records of the
 * metadata zone, which are taken when somebody asks for the first time. Blocks of an arena that
 * wait in threads or depots are taken off that arena's; what is of no arena (large blocks, free
 * pages, records) is the first one's.
 *
 * V1  allocated <= active <= resident <= mapped, though other threads go on meanwhile
 * V2  what the arenas hold adds up to what all hold
 * All of it is under control_lock, which the caller holds.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_VIEW_SNAPSHOT_H
#define PRAIRIE_VIEW_SNAPSHOT_H

#include "../heap/heap.h"

struct snapshot_class {
    uint64_t slabs, slabs_not_full, slabs_opened;
    uint64_t blocks;          /* that the program holds */
    uint64_t cached;          /* that wait in threads and depots */
    uint64_t cached_of_arena; /* blocks of this arena among all that wait, as far as can be told */
    uint64_t fills, drains;   /* times blocks came from slabs, and went back */
    uint64_t blocks_taken;    /* blocks that came from slabs so far */
};

struct snapshot_arena {
    unsigned threads;
    size_t small_allocated, large_allocated;
    size_t active, dirty, clean; /* bytes of pages */
    size_t metadata, metadata_map, resident, mapped;
    size_t cached;
    uint64_t large_count, large_taken;
    uint64_t purges, purged_pages;
    struct lock_numbers lock;
    struct snapshot_class of_class[CLASS_COUNT];
};

struct snapshot {
    uint64_t epoch;
    unsigned arena_count; /* arenas with numbers below this may have been made */
    struct lock_numbers runs_lock, meta_lock, control_lock, threads_lock, decay_lock, samples_lock;
    uint64_t arena_hops, refills, overflows, depot_trades, leases, returns;
    uint64_t background_runs, background_looks, background_look_ms;
    uint64_t realloc_zero_calls;
    uint64_t uptime_ms;        /* since the library was loaded */
    struct snapshot_arena all; /* V2 */
};

/* Notes when the program began; before main. */
void snapshot_begin(void);
/* The numbers as they were when the snapshot was taken; one is taken when there is none yet. NULL:
 * no memory. */
const struct snapshot *snapshot_get(void);
/* Takes a new one and returns it. NULL: no memory; the old one stays. */
const struct snapshot *snapshot_take(void);
/* The locks that are told of count anew; snapshots show it from the next one on. */
void snapshot_forget_locks(void);
/* What arenas that were destroyed had counted, as of now; they hold nothing. NULL: none was, or no
 * memory. */
const struct snapshot_arena *snapshot_past(void);
/* NULL: that arena had not been made. */
const struct snapshot_arena *snapshot_arena(unsigned index);

#endif
