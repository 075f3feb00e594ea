/* control_stats.c - the numbers of the snapshot that `epoch` took last.
 *
 * Blocks that threads and depots hold ready are not allocated. What is counted nowhere has no name
 * here: requests one by one, who held a lock before, huge pages. Lengths of runs are counted when
 * somebody asks for one (lengths.h).
 * SPDX-License-Identifier: MIT
 */
#include "../base/options.h"
#include "../view/snapshot.h"
#include "control_classes.h"
#include "control_tables.h"
#include "lengths.h"
#include "stats_print.h"

#include <errno.h>

enum { LOCK_LEAVES = 6 };

enum stats_leaf {
    STATS_ALLOCATED,
    STATS_ACTIVE,
    STATS_METADATA,
    STATS_METADATA_EDATA,
    STATS_METADATA_RTREE,
    STATS_RESIDENT,
    STATS_MAPPED,
    STATS_RETAINED,
    STATS_ZERO, /* there is none of it */
    STATS_ZERO_REALLOCS,
    STATS_HELPER_THREADS,
    STATS_HELPER_RUNS,
    STATS_HELPER_INTERVAL,
    STATS_LOCKS_RESET,
    STATS_LOCK_CONTROL, /* each lock has six leaves (of_lock) */
    STATS_LOCK_TIDY = STATS_LOCK_CONTROL + LOCK_LEAVES,
    STATS_LOCK_SAMPLES = STATS_LOCK_TIDY + LOCK_LEAVES,
    STATS_OF_ARENA = STATS_LOCK_SAMPLES
                   + LOCK_LEAVES, /* from here on the first number of the name is an arena's */
    STATS_NTHREADS = STATS_OF_ARENA,
    STATS_UPTIME,
    STATS_DSS,
    STATS_DIRTY_DECAY_MS,
    STATS_MUZZY_DECAY_MS,
    STATS_PACTIVE,
    STATS_PDIRTY,
    STATS_ARENA_ZERO,
    STATS_ARENA_MAPPED,
    STATS_ARENA_RETAINED,
    STATS_BASE,
    STATS_ARENA_EDATA,
    STATS_ARENA_RTREE,
    STATS_TCACHE_BYTES,
    STATS_ARENA_RESIDENT,
    STATS_DIRTY_NPURGE,
    STATS_DIRTY_PURGED,
    STATS_SMALL_ALLOCATED,
    STATS_SMALL_NMALLOC,
    STATS_SMALL_NDALLOC,
    STATS_SMALL_NFILLS,
    STATS_SMALL_NFLUSHES,
    STATS_LARGE_ALLOCATED,
    STATS_LARGE_NMALLOC,
    STATS_LARGE_NDALLOC,
    STATS_LOCK_RUNS,
    STATS_LOCK_META = STATS_LOCK_RUNS + LOCK_LEAVES,
    STATS_LOCK_THREADS = STATS_LOCK_META + LOCK_LEAVES,
    STATS_OF_BIN = STATS_LOCK_THREADS + LOCK_LEAVES, /* from here on the second number is a bin's */
    STATS_BIN_NMALLOC = STATS_OF_BIN,
    STATS_BIN_NDALLOC,
    STATS_BIN_CURREGS,
    STATS_BIN_NFILLS,
    STATS_BIN_NFLUSHES,
    STATS_BIN_NSLABS,
    STATS_BIN_CURSLABS,
    STATS_BIN_NONFULL_SLABS,
    STATS_LOCK_BIN,
    STATS_OF_LENGTH = STATS_LOCK_BIN + LOCK_LEAVES, /* from here on it is a step's */
    STATS_LARGE_COUNT = STATS_OF_LENGTH,
    STATS_FREE_DIRTY,
    STATS_FREE_CLEAN,
    STATS_FREE_MUZZY,
    STATS_FREE_DIRTY_BYTES,
    STATS_FREE_CLEAN_BYTES,
};

#define SIZE_ROW(name, leaf)                   \
    {                                          \
        name, CONTROL_SIZE, CONTROL_READ, leaf \
    }
#define U64_ROW(name, leaf)                   \
    {                                         \
        name, CONTROL_U64, CONTROL_READ, leaf \
    }
#define OF_ARENA "stats.arenas.*."
#define OF_BIN OF_ARENA "bins.*."
#define OF_EXTENT OF_ARENA "extents.*."
#define LOCK_ROWS(lock, leaf)                                                                \
    U64_ROW(lock ".num_ops", leaf), U64_ROW(lock ".num_wait", leaf + 1),                     \
        U64_ROW(lock ".num_spin_acq", leaf + 2), U64_ROW(lock ".total_wait_time", leaf + 3), \
        U64_ROW(lock ".max_wait_time", leaf + 4),                                            \
    {                                                                                        \
        lock ".max_num_thds", CONTROL_UNSIGNED, CONTROL_READ, leaf + 5                       \
    }

static const struct control_row stats_rows[] = {
    SIZE_ROW("stats.allocated", STATS_ALLOCATED),
    SIZE_ROW("stats.active", STATS_ACTIVE),
    SIZE_ROW("stats.metadata", STATS_METADATA),
    SIZE_ROW("stats.metadata_edata", STATS_METADATA_EDATA),
    SIZE_ROW("stats.metadata_rtree", STATS_METADATA_RTREE),
    SIZE_ROW("stats.metadata_thp", STATS_ZERO),
    SIZE_ROW("stats.resident", STATS_RESIDENT),
    SIZE_ROW("stats.mapped", STATS_MAPPED),
    SIZE_ROW("stats.retained", STATS_RETAINED),
    SIZE_ROW("stats.zero_reallocs", STATS_ZERO_REALLOCS),
    SIZE_ROW("stats.background_thread.num_threads", STATS_HELPER_THREADS),
    U64_ROW("stats.background_thread.num_runs", STATS_HELPER_RUNS),
    U64_ROW("stats.background_thread.run_interval", STATS_HELPER_INTERVAL),
    { "stats.mutexes.reset", CONTROL_ACTION, 0, STATS_LOCKS_RESET },
    LOCK_ROWS("stats.mutexes.ctl", STATS_LOCK_CONTROL),
    LOCK_ROWS("stats.mutexes.background_thread", STATS_LOCK_TIDY),
    LOCK_ROWS("stats.mutexes.prof", STATS_LOCK_SAMPLES),
    { OF_ARENA "nthreads", CONTROL_UNSIGNED, CONTROL_READ, STATS_NTHREADS },
    U64_ROW(OF_ARENA "uptime", STATS_UPTIME),
    { OF_ARENA "dss", CONTROL_TEXT, CONTROL_READ, STATS_DSS },
    { OF_ARENA "dirty_decay_ms", CONTROL_SSIZE, CONTROL_READ, STATS_DIRTY_DECAY_MS },
    { OF_ARENA "muzzy_decay_ms", CONTROL_SSIZE, CONTROL_READ, STATS_MUZZY_DECAY_MS },
    SIZE_ROW(OF_ARENA "pactive", STATS_PACTIVE),
    SIZE_ROW(OF_ARENA "pdirty", STATS_PDIRTY),
    SIZE_ROW(OF_ARENA "pmuzzy", STATS_ARENA_ZERO),
    SIZE_ROW(OF_ARENA "mapped", STATS_ARENA_MAPPED),
    SIZE_ROW(OF_ARENA "retained", STATS_ARENA_RETAINED),
    SIZE_ROW(OF_ARENA "base", STATS_BASE),
    SIZE_ROW(OF_ARENA "internal", STATS_ARENA_ZERO),
    SIZE_ROW(OF_ARENA "metadata_edata", STATS_ARENA_EDATA),
    SIZE_ROW(OF_ARENA "metadata_rtree", STATS_ARENA_RTREE),
    SIZE_ROW(OF_ARENA "metadata_thp", STATS_ARENA_ZERO),
    SIZE_ROW(OF_ARENA "tcache_bytes", STATS_TCACHE_BYTES),
    SIZE_ROW(OF_ARENA "tcache_stashed_bytes", STATS_ARENA_ZERO),
    SIZE_ROW(OF_ARENA "resident", STATS_ARENA_RESIDENT),
    SIZE_ROW(OF_ARENA "abandoned_vm", STATS_ARENA_ZERO),
    U64_ROW(OF_ARENA "dirty_npurge", STATS_DIRTY_NPURGE),
    U64_ROW(OF_ARENA "dirty_nmadvise", STATS_DIRTY_NPURGE),
    U64_ROW(OF_ARENA "dirty_purged", STATS_DIRTY_PURGED),
    U64_ROW(OF_ARENA "muzzy_npurge", STATS_ARENA_ZERO),
    U64_ROW(OF_ARENA "muzzy_nmadvise", STATS_ARENA_ZERO),
    U64_ROW(OF_ARENA "muzzy_purged", STATS_ARENA_ZERO),
    SIZE_ROW(OF_ARENA "small.allocated", STATS_SMALL_ALLOCATED),
    U64_ROW(OF_ARENA "small.nmalloc", STATS_SMALL_NMALLOC),
    U64_ROW(OF_ARENA "small.ndalloc", STATS_SMALL_NDALLOC),
    U64_ROW(OF_ARENA "small.nfills", STATS_SMALL_NFILLS),
    U64_ROW(OF_ARENA "small.nflushes", STATS_SMALL_NFLUSHES),
    SIZE_ROW(OF_ARENA "large.allocated", STATS_LARGE_ALLOCATED),
    U64_ROW(OF_ARENA "large.nmalloc", STATS_LARGE_NMALLOC),
    U64_ROW(OF_ARENA "large.ndalloc", STATS_LARGE_NDALLOC),
    U64_ROW(OF_ARENA "large.nrequests", STATS_LARGE_NMALLOC),
    U64_ROW(OF_ARENA "large.nfills", STATS_LARGE_NMALLOC),
    U64_ROW(OF_ARENA "large.nflushes", STATS_ARENA_ZERO),
    LOCK_ROWS(OF_ARENA "mutexes.extents_dirty", STATS_LOCK_RUNS),
    LOCK_ROWS(OF_ARENA "mutexes.base", STATS_LOCK_META),
    LOCK_ROWS(OF_ARENA "mutexes.tcache_list", STATS_LOCK_THREADS),
    U64_ROW(OF_BIN "nmalloc", STATS_BIN_NMALLOC),
    U64_ROW(OF_BIN "ndalloc", STATS_BIN_NDALLOC),
    SIZE_ROW(OF_BIN "curregs", STATS_BIN_CURREGS),
    U64_ROW(OF_BIN "nfills", STATS_BIN_NFILLS),
    U64_ROW(OF_BIN "nflushes", STATS_BIN_NFLUSHES),
    U64_ROW(OF_BIN "nslabs", STATS_BIN_NSLABS),
    SIZE_ROW(OF_BIN "curslabs", STATS_BIN_CURSLABS),
    SIZE_ROW(OF_BIN "nonfull_slabs", STATS_BIN_NONFULL_SLABS),
    LOCK_ROWS(OF_BIN "mutex", STATS_LOCK_BIN),
    SIZE_ROW(OF_ARENA "lextents.*.curlextents", STATS_LARGE_COUNT),
    SIZE_ROW(OF_EXTENT "ndirty", STATS_FREE_DIRTY),
    SIZE_ROW(OF_EXTENT "nmuzzy", STATS_FREE_MUZZY),
    SIZE_ROW(OF_EXTENT "nretained", STATS_FREE_CLEAN),
    SIZE_ROW(OF_EXTENT "dirty_bytes", STATS_FREE_DIRTY_BYTES),
    SIZE_ROW(OF_EXTENT "muzzy_bytes", STATS_FREE_MUZZY),
    SIZE_ROW(OF_EXTENT "retained_bytes", STATS_FREE_CLEAN_BYTES),
};

/* As of now, not as of the snapshot: serve looks again. */
static bool stats_exists(const struct control_row *row, const size_t *index)
{
    if (row->leaf < STATS_OF_ARENA) return true;
    if (!control_arena_is_all(index[0]) && !control_arena_is_made(index[0])
        && !control_arena_is_past(index[0]))
        return false;
    if (row->leaf < STATS_OF_BIN) return true;
    if (row->leaf < STATS_OF_LENGTH) return index[1] < BIN_CLASS_COUNT;
    return index[1] < (row->leaf == STATS_LARGE_COUNT ? lextent_count() : step_count());
}

static uint64_t of_lock(const struct lock_numbers *lock, unsigned which)
{
    switch (which) {
    case 0: return lock->taken;
    case 1: return lock->waits;
    case 2: return lock->contended - lock->waits;
    case 3: return lock->wait_ns;
    case 4: return lock->wait_ns_max;
    default: return lock->sleepers_max;
    }
}

static void give_of_lock(struct control_call *call, uint64_t number)
{
    if (call->row->type == CONTROL_UNSIGNED) call->old.number = (unsigned)number;
    else call->old.u64 = number;
}

static void serve_global(struct control_call *call, const struct snapshot *numbers)
{
    const struct snapshot_arena *all = &numbers->all;
    unsigned leaf = call->row->leaf;

    switch (leaf) {
    case STATS_ALLOCATED: call->old.size = all->small_allocated + all->large_allocated; return;
    case STATS_ACTIVE: call->old.size = all->active; return;
    case STATS_METADATA: call->old.size = all->metadata; return;
    case STATS_METADATA_EDATA: call->old.size = all->metadata - all->metadata_map; return;
    case STATS_METADATA_RTREE: call->old.size = all->metadata_map; return;
    case STATS_RESIDENT: call->old.size = all->resident; return;
    case STATS_MAPPED: call->old.size = all->mapped; return;
    case STATS_RETAINED: call->old.size = all->clean; return;
    case STATS_ZERO_REALLOCS: call->old.size = numbers->realloc_zero_calls; return;
    case STATS_HELPER_THREADS: call->old.size = numbers->background_runs; return;
    case STATS_HELPER_RUNS: call->old.u64 = numbers->background_looks; return;
    case STATS_HELPER_INTERVAL: call->old.u64 = numbers->background_look_ms * 1000000; return;
    case STATS_ZERO: call->old.u64 = 0; return;
    case STATS_LOCKS_RESET: snapshot_forget_locks(); return;
    default: break;
    }
    if (leaf >= STATS_LOCK_SAMPLES)
        give_of_lock(call, of_lock(&numbers->samples_lock, leaf - STATS_LOCK_SAMPLES));
    else if (leaf >= STATS_LOCK_TIDY)
        give_of_lock(call, of_lock(&numbers->decay_lock, leaf - STATS_LOCK_TIDY));
    else give_of_lock(call, of_lock(&numbers->control_lock, leaf - STATS_LOCK_CONTROL));
}

static void serve_small(struct control_call *call, const struct snapshot_arena *arena)
{
    uint64_t sum = 0;

    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct snapshot_class *of_class = &arena->of_class[class_index];
        switch (call->row->leaf) {
        case STATS_SMALL_NMALLOC: sum += of_class->blocks_taken; break;
        case STATS_SMALL_NDALLOC: sum += stats_given_of(of_class); break;
        case STATS_SMALL_NFILLS: sum += of_class->fills; break;
        default: sum += of_class->drains; break;
        }
    }
    call->old.u64 = sum;
}

static void serve_arena_texts(struct control_call *call)
{
    bool past = control_arena_is_past(call->index[0]);
    bool all = control_arena_is_all(call->index[0]) || past;

    if (past) call->old.ssize = -1;
    switch (call->row->leaf) {
    case STATS_DSS:
        call->old.text = all ? "N/A" : option_word(OPTION_DSS, option_value(OPTION_DSS));
        return;
    case STATS_DIRTY_DECAY_MS:
        if (!past) call->old.ssize = option_decay_ms();
        return;
    default:
        if (!past) call->old.ssize = (int64_t)option_value(OPTION_MUZZY_DECAY_MS);
    }
}

/* The page heaps of pages, records and threads are the first arena's. */
static uint64_t of_shared_lock(const struct snapshot *numbers, const struct snapshot_arena *arena,
                               unsigned leaf)
{
    if (arena != &numbers->all && arena != snapshot_arena(0)) return 0;
    if (leaf >= STATS_LOCK_THREADS)
        return of_lock(&numbers->threads_lock, leaf - STATS_LOCK_THREADS);
    if (leaf >= STATS_LOCK_META) return of_lock(&numbers->meta_lock, leaf - STATS_LOCK_META);
    return of_lock(&numbers->runs_lock, leaf - STATS_LOCK_RUNS);
}

static void serve_of_arena(struct control_call *call, const struct snapshot *numbers,
                           const struct snapshot_arena *arena)
{
    unsigned leaf = call->row->leaf, shift = space.page_shift;

    if (leaf >= STATS_LOCK_RUNS) {
        give_of_lock(call, of_shared_lock(numbers, arena, leaf));
        return;
    }
    switch (leaf) {
    case STATS_NTHREADS: call->old.number = arena->threads; return;
    case STATS_UPTIME:
        call->old.u64 = control_arena_is_past(call->index[0]) ? 0 : numbers->uptime_ms * 1000000;
        return;
    case STATS_PACTIVE: call->old.size = arena->active >> shift; return;
    case STATS_PDIRTY: call->old.size = arena->dirty >> shift; return;
    case STATS_ARENA_MAPPED: call->old.size = arena->mapped; return;
    case STATS_ARENA_RETAINED: call->old.size = arena->clean; return;
    case STATS_BASE: call->old.size = arena->metadata; return;
    case STATS_ARENA_EDATA: call->old.size = arena->metadata - arena->metadata_map; return;
    case STATS_ARENA_RTREE: call->old.size = arena->metadata_map; return;
    case STATS_TCACHE_BYTES: call->old.size = arena->cached; return;
    case STATS_ARENA_RESIDENT: call->old.size = arena->resident; return;
    case STATS_DIRTY_NPURGE: call->old.u64 = arena->purges; return;
    case STATS_DIRTY_PURGED: call->old.u64 = arena->purged_pages; return;
    case STATS_SMALL_ALLOCATED: call->old.size = arena->small_allocated; return;
    case STATS_LARGE_ALLOCATED: call->old.size = arena->large_allocated; return;
    case STATS_LARGE_NMALLOC: call->old.u64 = arena->large_taken; return;
    case STATS_LARGE_NDALLOC: call->old.u64 = arena->large_taken - arena->large_count; return;
    case STATS_ARENA_ZERO: call->old.u64 = 0; return;
    case STATS_DSS:
    case STATS_DIRTY_DECAY_MS:
    case STATS_MUZZY_DECAY_MS: serve_arena_texts(call); return;
    default: serve_small(call, arena);
    }
}

static void serve_of_bin(struct control_call *call, const struct snapshot_arena *arena)
{
    const struct snapshot_class *of_class = &arena->of_class[bin_class(call->index[1])];
    unsigned leaf = call->row->leaf;

    switch (leaf) {
    case STATS_BIN_NMALLOC: call->old.u64 = of_class->blocks_taken; return;
    case STATS_BIN_NDALLOC: call->old.u64 = stats_given_of(of_class); return;
    case STATS_BIN_CURREGS: call->old.size = of_class->blocks; return;
    case STATS_BIN_NFILLS: call->old.u64 = of_class->fills; return;
    case STATS_BIN_NFLUSHES: call->old.u64 = of_class->drains; return;
    case STATS_BIN_NSLABS: call->old.u64 = of_class->slabs_opened; return;
    case STATS_BIN_CURSLABS: call->old.size = of_class->slabs; return;
    case STATS_BIN_NONFULL_SLABS: call->old.size = of_class->slabs_not_full; return;
    default: give_of_lock(call, of_lock(&arena->lock, leaf - STATS_LOCK_BIN)); /* of all its bins */
    }
}

static int serve_of_length(struct control_call *call, const struct snapshot *numbers)
{
    /* There is no arena of the number that stands for destroyed ones, so that nothing is counted
     * for it. */
    unsigned of_arena =
        control_arena_is_all(call->index[0]) ? CONTROL_ARENAS_ALL : (unsigned)call->index[0];
    const struct lengths *lengths = lengths_of_epoch(numbers->epoch, of_arena);
    size_t step = call->index[1];

    if (lengths == NULL) return EAGAIN;
    call->old.size = 0;
    if (step >= STEPS_MAX) return 0;
    switch (call->row->leaf) {
    case STATS_LARGE_COUNT: call->old.size = lengths->large[step]; return 0;
    case STATS_FREE_DIRTY: call->old.size = lengths->dirty[step]; return 0;
    case STATS_FREE_CLEAN: call->old.size = lengths->clean[step]; return 0;
    case STATS_FREE_DIRTY_BYTES:
        call->old.size = lengths->dirty_pages[step] << space.page_shift;
        return 0;
    case STATS_FREE_CLEAN_BYTES:
        call->old.size = lengths->clean_pages[step] << space.page_shift;
        return 0;
    default: return 0; /* none are muzzy */
    }
}

static int serve_from(struct control_call *call, const struct snapshot *numbers)
{
    const struct snapshot_arena *arena;

    if (numbers == NULL) return EAGAIN;
    if (call->row->leaf < STATS_OF_ARENA) {
        serve_global(call, numbers);
        return 0;
    }
    if (control_arena_is_all(call->index[0])) {
        arena = &numbers->all;
    } else if (control_arena_is_past(call->index[0])) {
        arena = snapshot_past();
        if (arena == NULL) return EAGAIN;
    } else {
        arena = snapshot_arena((unsigned)call->index[0]);
        if (arena == NULL) return ENOENT; /* it was made after the snapshot */
    }
    if (call->row->leaf >= STATS_OF_LENGTH) return serve_of_length(call, numbers);
    if (call->row->leaf >= STATS_OF_BIN) serve_of_bin(call, arena);
    else serve_of_arena(call, numbers, arena);
    return 0;
}

static int serve_stats(struct control_call *call)
{
    int error;

    if (!heap_start()) return EAGAIN;
    lock_take(&control_lock);
    error = serve_from(call, snapshot_get());
    lock_give(&control_lock);
    return error;
}

const struct control_table control_stats = { stats_rows, ARRAY_COUNT(stats_rows), stats_exists,
                                             serve_stats };
