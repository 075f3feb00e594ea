/* snapshot.h - everything that can be counted, as of one moment.
 *
 * All outputs read it: the control tree (stats.*), the printed statistics, OpenMetrics and
 * struct prairie_stats. Members are 64 bits each, so that one table of offsets names them all
 * (control/figures.h).
 *
 * Whoever wants sums alone counts into a struct of his own. The control tree's one is kept until
 * the next one is asked for, and knows each arena; it lives in records of the metadata zone, which
 * are taken when somebody asks for the first time. Blocks of an arena that wait in threads or
 * depots are taken off that arena's; what is of no arena (large blocks, free pages, records) is the
 * first one's.
 *
 * V1  allocated <= active <= resident <= mapped, though other threads go on meanwhile
 * V2  what the arenas hold adds up to what all hold
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_VIEW_SNAPSHOT_H
#define PRAIRIE_VIEW_SNAPSHOT_H

#include "../heap/heap.h"

/* What was taken and given back. A large block is a request of its own, and a fill. */
struct snapshot_flow {
    uint64_t allocated; /* bytes */
    uint64_t taken, given, requests, fills, drains;
};

struct snapshot_class {
    uint64_t slabs, slabs_not_full, slabs_opened;
    uint64_t blocks;          /* that the program holds */
    uint64_t cached;          /* that wait in threads and depots */
    uint64_t cached_of_arena; /* blocks of this arena among all that wait, as far as can be told */
    uint64_t fills, drains;   /* times blocks came from slabs, and went back */
    uint64_t taken, given;    /* blocks that came from slabs so far; of these, not out */
};

/* All but the first are shared by all arenas. */
enum { ARENA_LOCK_OWN, ARENA_LOCK_RUNS, ARENA_LOCK_META, ARENA_LOCK_THREADS, ARENA_LOCK_COUNT };

struct snapshot_arena {
    struct snapshot_flow small, large, all;
    uint64_t large_count;
    uint64_t threads;
    uint64_t active, dirty, clean; /* bytes of pages */
    uint64_t reserve;              /* bytes, resident; of the first one */
    uint64_t active_pages, dirty_pages;
    uint64_t metadata, metadata_map, metadata_records; /* the first is the sum of the others */
    uint64_t resident, mapped;
    uint64_t cached;
    uint64_t purges, purged_pages, purged_bytes;
    struct lock_numbers locks[ARENA_LOCK_COUNT];
    struct snapshot_class of_class[CLASS_COUNT];
};

struct snapshot {
    uint64_t epoch;
    uint64_t arena_count; /* arenas with numbers below this may have been made */
    uint64_t arenas_made;
    uint64_t opened; /* bytes of address space, with records */
    /* Of all.dirty and all.clean what is in that address space: not what hooks supplied. */
    uint64_t own_dirty, own_clean;
    uint64_t arena_hops, refills, overflows, depot_trades, leases, returns;
    uint64_t background_runs, background_looks, background_look_ns;
    uint64_t realloc_zero_calls;
    uint64_t reserve, reserve_wanted, reserve_releases, reserve_refills; /* two of bytes */
    uint64_t events_low, events_crit, event_calls;
    uint64_t uptime_ns, uptime_seconds; /* since the library was loaded; 0: nobody noted when */
    struct lock_numbers control_lock, decay_lock, samples_lock;
    struct lock_numbers locks; /* those of arenas, runs and records */
    struct snapshot_arena all; /* V2 */
};

/* Notes when the program began; before main. A library whose names all begin with prairie_ does not
 * hear of that. */
void snapshot_begin(void);
extern PRIVATE uint64_t snapshot_begin_ms; /* constant after that; 0: nobody noted it */

/* ---- a struct of one's own ---- */

/* Counts now, with what destroyed arenas had counted, so that counters never fall. The process has
 * started. */
void snapshot_sum(struct snapshot *numbers);

/* ---- the control tree's, under control_lock ---- */

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
