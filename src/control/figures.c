/* figures.c - the rows, and the leaves of the control tree that they are.
 *
 * Leaves show the snapshot that `epoch` took last. Blocks that threads and depots hold ready are
 * not allocated. Lengths of runs are counted when somebody asks for one (lengths.h); what is set
 * for arenas is as of now.
 * SPDX-License-Identifier: MIT
 */
#include "figures.h"

#include "../arenas/decay.h"
#include "../base/options.h"

#include <errno.h>

/* Where a number is shown. */
enum {
    TREE = CONTROL_READ,
    JSON = CONTROL_JSON,
    SHOWN = TREE | JSON,
};

#define ARENAS "stats.arenas.*."
#define BINS ARENAS "bins.*."
#define EXTENTS ARENAS "extents.*."
#define LOCK_ROWS(name, scope, type, member)                                                  \
    { name ".num_ops", CONTROL_U64, TREE, PLACE(scope, type, member.taken) },                 \
        { name ".num_wait", CONTROL_U64, TREE, PLACE(scope, type, member.waits) },            \
        { name ".num_spin_acq", CONTROL_U64, TREE, PLACE(scope, type, member.spins) },        \
        { name ".total_wait_time", CONTROL_U64, TREE, PLACE(scope, type, member.wait_ns) },   \
        { name ".max_wait_time", CONTROL_U64, TREE, PLACE(scope, type, member.wait_ns_max) }, \
    {                                                                                         \
        name ".max_num_thds", CONTROL_UNSIGNED, TREE, PLACE(scope, type, member.sleepers_max) \
    }
#define NOWHERE_IN(scope) (uint16_t)((scope) << PLACE_BITS | NOWHERE)
#define BACKGROUND_AT(member) PLACE(OF_BACKGROUND, snapshot, member)
#define SETTINGS_AT(member) PLACE(OF_SETTINGS, figure_settings, member)
#define PAGES_AT(member) PLACE(OF_PAGES, snapshot_arena, member)
#define SMALL_AT(member) PLACE(OF_SMALL, snapshot_arena, small.member)
#define LARGE_AT(member) PLACE(OF_LARGE, snapshot_arena, large.member)

/* What JSON shows of a scope stands together, in the order in which it is shown. */
static const struct control_row rows[] = {
    /* Of each lock. */
    { "lock.num_ops", CONTROL_U64, JSON, LOCK_AT(taken) },
    { "lock.num_wait", CONTROL_U64, JSON, LOCK_AT(waits) },
    { "lock.num_spin_acq", CONTROL_U64, JSON, LOCK_AT(spins) },
    { "lock.num_owner_switch", CONTROL_U64, JSON, NOWHERE_IN(OF_LOCK) },
    { "lock.total_wait_time", CONTROL_U64, JSON, LOCK_AT(wait_ns) },
    { "lock.max_wait_time", CONTROL_U64, JSON, LOCK_AT(wait_ns_max) },
    { "lock.max_num_thds", CONTROL_UNSIGNED, JSON, LOCK_AT(sleepers_max) },

    { "arenas.bin.*.size", CONTROL_SIZE, SHOWN, SHAPE_AT(bytes) },
    { "arenas.bin.*.nregs", CONTROL_UNSIGNED, SHOWN, SHAPE_AT(blocks) },
    { "arenas.bin.*.slab_size", CONTROL_SIZE, SHOWN, SHAPE_AT(slab_bytes) },
    { "arenas.bin.*.nshards", CONTROL_UNSIGNED, SHOWN, SHAPE_AT(shards) },
    { "arenas.lextent.*.size", CONTROL_SIZE, SHOWN, PLACE(OF_LARGE_SIZE, figure_step, bytes) },

    { "stats.allocated", CONTROL_SIZE, SHOWN, PROCESS_AT(all.all.allocated) },
    { "stats.active", CONTROL_SIZE, SHOWN, PROCESS_AT(all.active) },
    { "stats.metadata", CONTROL_SIZE, SHOWN, PROCESS_AT(all.metadata) },
    { "stats.metadata_edata", CONTROL_SIZE, SHOWN, PROCESS_AT(all.metadata_records) },
    { "stats.metadata_rtree", CONTROL_SIZE, SHOWN, PROCESS_AT(all.metadata_map) },
    { "stats.metadata_thp", CONTROL_SIZE, SHOWN, NOWHERE_IN(OF_PROCESS) },
    { "stats.resident", CONTROL_SIZE, SHOWN, PROCESS_AT(all.resident) },
    { "stats.mapped", CONTROL_SIZE, SHOWN, PROCESS_AT(all.mapped) },
    { "stats.retained", CONTROL_SIZE, SHOWN, PROCESS_AT(all.clean) },
    { "stats.zero_reallocs", CONTROL_SIZE, SHOWN, PROCESS_AT(realloc_zero_calls) },
    { "stats.background_thread.num_threads", CONTROL_SIZE, SHOWN, BACKGROUND_AT(background_runs) },
    { "stats.background_thread.num_runs", CONTROL_U64, SHOWN, BACKGROUND_AT(background_looks) },
    { "stats.background_thread.run_interval", CONTROL_U64, SHOWN,
      BACKGROUND_AT(background_look_ns) },
    LOCK_ROWS("stats.mutexes.ctl", OF_PROCESS, snapshot, control_lock),
    LOCK_ROWS("stats.mutexes.background_thread", OF_PROCESS, snapshot, decay_lock),
    LOCK_ROWS("stats.mutexes.prof", OF_PROCESS, snapshot, samples_lock),

    { ARENAS "nthreads", CONTROL_UNSIGNED, SHOWN, ARENA_AT(threads) },
    { ARENAS "uptime", CONTROL_U64, TREE, SETTINGS_AT(uptime_ns) },
    { ARENAS "uptime_ns", CONTROL_U64, JSON, SETTINGS_AT(uptime_ns) },
    { ARENAS "dss", CONTROL_TEXT, SHOWN, SETTINGS_AT(dss) },
    { ARENAS "dirty_decay_ms", CONTROL_SSIZE, SHOWN, SETTINGS_AT(dirty_decay_ms) },
    { ARENAS "muzzy_decay_ms", CONTROL_SSIZE, SHOWN, SETTINGS_AT(muzzy_decay_ms) },
    { ARENAS "pactive", CONTROL_SIZE, SHOWN, ARENA_AT(active_pages) },
    { ARENAS "pdirty", CONTROL_SIZE, SHOWN, ARENA_AT(dirty_pages) },
    { ARENAS "pmuzzy", CONTROL_SIZE, SHOWN, NOWHERE_IN(OF_ARENA) },
    { ARENAS "dirty_npurge", CONTROL_U64, SHOWN, ARENA_AT(purges) },
    { ARENAS "dirty_nmadvise", CONTROL_U64, SHOWN, ARENA_AT(purges) },
    { ARENAS "dirty_purged", CONTROL_U64, SHOWN, ARENA_AT(purged_pages) },
    { ARENAS "muzzy_npurge", CONTROL_U64, SHOWN, NOWHERE_IN(OF_ARENA) },
    { ARENAS "muzzy_nmadvise", CONTROL_U64, SHOWN, NOWHERE_IN(OF_ARENA) },
    { ARENAS "muzzy_purged", CONTROL_U64, SHOWN, NOWHERE_IN(OF_ARENA) },
    { ARENAS "mapped", CONTROL_SIZE, SHOWN, PAGES_AT(mapped) },
    { ARENAS "retained", CONTROL_SIZE, SHOWN, PAGES_AT(clean) },
    { ARENAS "base", CONTROL_SIZE, SHOWN, PAGES_AT(metadata) },
    { ARENAS "internal", CONTROL_SIZE, SHOWN, NOWHERE_IN(OF_PAGES) },
    { ARENAS "metadata_edata", CONTROL_SIZE, SHOWN, PAGES_AT(metadata_records) },
    { ARENAS "metadata_rtree", CONTROL_SIZE, SHOWN, PAGES_AT(metadata_map) },
    { ARENAS "metadata_thp", CONTROL_SIZE, SHOWN, NOWHERE_IN(OF_PAGES) },
    { ARENAS "tcache_bytes", CONTROL_SIZE, SHOWN, PAGES_AT(cached) },
    { ARENAS "tcache_stashed_bytes", CONTROL_SIZE, SHOWN, NOWHERE_IN(OF_PAGES) },
    { ARENAS "resident", CONTROL_SIZE, SHOWN, PAGES_AT(resident) },
    { ARENAS "abandoned_vm", CONTROL_SIZE, SHOWN, NOWHERE_IN(OF_PAGES) },
    { ARENAS "extent_avail", CONTROL_SIZE, JSON, NOWHERE_IN(OF_PAGES) },
    { ARENAS "small.allocated", CONTROL_SIZE, SHOWN, SMALL_AT(allocated) },
    { ARENAS "small.nmalloc", CONTROL_U64, SHOWN, SMALL_AT(taken) },
    { ARENAS "small.ndalloc", CONTROL_U64, SHOWN, SMALL_AT(given) },
    { ARENAS "small.nrequests", CONTROL_U64, JSON, SMALL_AT(requests) },
    { ARENAS "small.nfills", CONTROL_U64, SHOWN, SMALL_AT(fills) },
    { ARENAS "small.nflushes", CONTROL_U64, SHOWN, SMALL_AT(drains) },
    { ARENAS "large.allocated", CONTROL_SIZE, SHOWN, LARGE_AT(allocated) },
    { ARENAS "large.nmalloc", CONTROL_U64, SHOWN, LARGE_AT(taken) },
    { ARENAS "large.ndalloc", CONTROL_U64, SHOWN, LARGE_AT(given) },
    { ARENAS "large.nrequests", CONTROL_U64, SHOWN, LARGE_AT(requests) },
    { ARENAS "large.nfills", CONTROL_U64, SHOWN, LARGE_AT(fills) },
    { ARENAS "large.nflushes", CONTROL_U64, SHOWN, LARGE_AT(drains) },
    LOCK_ROWS(ARENAS "mutexes.extents_dirty", OF_ARENA, snapshot_arena, locks[ARENA_LOCK_RUNS]),
    LOCK_ROWS(ARENAS "mutexes.base", OF_ARENA, snapshot_arena, locks[ARENA_LOCK_META]),
    LOCK_ROWS(ARENAS "mutexes.tcache_list", OF_ARENA, snapshot_arena, locks[ARENA_LOCK_THREADS]),

    { BINS "nmalloc", CONTROL_U64, SHOWN, CLASS_AT(taken) },
    { BINS "ndalloc", CONTROL_U64, SHOWN, CLASS_AT(given) },
    { BINS "curregs", CONTROL_SIZE, SHOWN, CLASS_AT(blocks) },
    { BINS "nrequests", CONTROL_U64, JSON, NOWHERE_IN(OF_CLASS) },
    { BINS "nfills", CONTROL_U64, SHOWN, CLASS_AT(fills) },
    { BINS "nflushes", CONTROL_U64, SHOWN, CLASS_AT(drains) },
    { BINS "nslabs", CONTROL_U64, TREE, CLASS_AT(slabs_opened) },
    { BINS "nreslabs", CONTROL_U64, JSON, NOWHERE_IN(OF_CLASS) },
    { BINS "curslabs", CONTROL_SIZE, SHOWN, CLASS_AT(slabs) },
    { BINS "nonfull_slabs", CONTROL_SIZE, SHOWN, CLASS_AT(slabs_not_full) },
    LOCK_ROWS(BINS "mutex", OF_CLASS_LOCK, snapshot_arena, locks[ARENA_LOCK_OWN]),

    { ARENAS "lextents.*.curlextents", CONTROL_SIZE, SHOWN, LARGE_STEP_AT(large) },
    { EXTENTS "ndirty", CONTROL_SIZE, SHOWN, STEP_AT(dirty) },
    { EXTENTS "nmuzzy", CONTROL_SIZE, SHOWN, NOWHERE_IN(OF_STEP) },
    { EXTENTS "nretained", CONTROL_SIZE, SHOWN, STEP_AT(clean) },
    { EXTENTS "dirty_bytes", CONTROL_SIZE, SHOWN, STEP_AT(dirty_bytes) },
    { EXTENTS "muzzy_bytes", CONTROL_SIZE, SHOWN, NOWHERE_IN(OF_STEP) },
    { EXTENTS "retained_bytes", CONTROL_SIZE, SHOWN, STEP_AT(clean_bytes) },
};

/* ---- places ---- */

const void *figure_at(const struct figures *figures, unsigned place)
{
    const uint64_t *start = figures->of[place >> PLACE_BITS];

    return start != NULL && (place & NOWHERE) != NOWHERE ? start + (place & NOWHERE) : NULL;
}

uint64_t figure(const struct figures *figures, unsigned place)
{
    const void *at = figure_at(figures, place);
    uint64_t number = 0;

    if (at != NULL) __builtin_memcpy(&number, at, sizeof number);
    return number;
}

union control_value figure_value(const struct figures *figures, const struct control_row *row)
{
    return control_value_of(row->type, figure(figures, row->leaf));
}

void figures_of_process(struct figures *figures, const struct snapshot *numbers)
{
    *figures = (struct figures){ .of = { [OF_PROCESS] = numbers, [OF_BACKGROUND] = numbers } };
}

void figures_of_arena(struct figures *figures, const struct snapshot_arena *arena, unsigned index,
                      const struct lengths *lengths)
{
    const struct snapshot *numbers = figures->of[OF_PROCESS];
    const char *none = "N/A";

    for (unsigned scope = OF_ARENA; scope < OF_CLASS; scope++) figures->of[scope] = arena;
    figures->of[OF_CLASS_LOCK] = arena;
    figures->of[OF_SETTINGS] = &figures->settings;
    figures->lengths = lengths;
    figures->settings = (struct figure_settings){ numbers->uptime_ns,
                                                  control_arena_decay(index, OPTION_DIRTY_DECAY_MS),
                                                  control_arena_decay(index, OPTION_MUZZY_DECAY_MS),
                                                  (uintptr_t)none };
    if (index < CONTROL_ARENAS_ALL)
        figures->settings.dss = (uintptr_t)option_word(OPTION_DSS, option_value(OPTION_DSS));
    if (index == CONTROL_ARENAS_DESTROYED) /* nothing is set for those */
        figures->settings = (struct figure_settings){ 0, -1, -1, (uintptr_t)none };
}

static void set_class(struct figures *figures, unsigned class_index)
{
    static const struct snapshot_class unused;
    const struct snapshot_arena *arena = figures->of[OF_ARENA];
    const struct snapshot_class *numbers = arena != NULL ? &arena->of_class[class_index] : &unused;
    const struct slab_shape *shape = &slab_shape[class_index];
    uint64_t places = numbers->slabs * shape->block_count;

    figures->of[OF_SHAPE] = &figures->shape;
    figures->of[OF_CLASS] = numbers;
    figures->shape = (struct figure_shape){
        .bytes = class_bytes[class_index],
        .index = class_index - 1,
        .blocks = shape->block_count,
        .slab_bytes = shape->bytes,
        .slab_pages = shape->bytes >> space.page_shift,
        .shards = 1,
        .allocated = numbers->blocks * class_bytes[class_index],
        .cached = numbers->cached * class_bytes[class_index],
        .slabs_bytes = numbers->slabs * shape->bytes,
        .used_thousandths = places == 0 ? 1000 : numbers->blocks * 1000 / places,
    };
}

static void set_step(struct figures *figures, enum figure_scope scope, unsigned step)
{
    const struct lengths *lengths = step < STEPS_MAX ? figures->lengths : NULL;
    unsigned shift = space.page_shift;

    figures->of[scope] = &figures->step;
    figures->step = (struct figure_step){ .bytes = step_bytes(step), .index = step };
    if (scope != OF_STEP) {
        figures->step.bytes = lextent_bytes(step);
        figures->step.index = BIN_CLASS_COUNT + step;
    }
    if (lengths == NULL) return;
    figures->step.large = lengths->large[step];
    figures->step.large_bytes = lengths->large[step] * figures->step.bytes;
    figures->step.dirty = lengths->dirty[step];
    figures->step.dirty_bytes = lengths->dirty_pages[step] << shift;
    figures->step.clean = lengths->clean[step];
    figures->step.clean_bytes = lengths->clean_pages[step] << shift;
    figures->step.free = figures->step.dirty + figures->step.clean;
    figures->step.free_bytes = figures->step.dirty_bytes + figures->step.clean_bytes;
}

void figures_at(struct figures *figures, enum figure_scope scope, unsigned index)
{
    switch (scope) {
    case OF_SHAPE:
    case OF_CLASS: set_class(figures, bin_class(index)); return;
    case OF_LARGE_SIZE:
    case OF_LARGE_STEP:
    case OF_STEP: set_step(figures, scope, index); return;
    default: return;
    }
}

/* ---- leaves ---- */

static enum figure_scope scope_of(const struct control_row *row)
{
    return (enum figure_scope)(row->leaf >> PLACE_BITS);
}

/* As of now, not as of the snapshot: serve looks again. */
static bool figure_exists(const struct control_row *row, const size_t *index)
{
    enum figure_scope scope = scope_of(row);

    if ((row->rights & TREE) == 0) return false;
    if (scope >= OF_SETTINGS && control_arena_kind(index[0]) == CONTROL_ARENA_NONE) return false;
    switch (scope) {
    case OF_SHAPE: return index[0] < BIN_CLASS_COUNT;
    case OF_LARGE_SIZE: return index[0] < lextent_count();
    case OF_CLASS:
    case OF_CLASS_LOCK: return index[1] < BIN_CLASS_COUNT;
    case OF_LARGE_STEP: return index[1] < lextent_count();
    case OF_STEP: return index[1] < step_count();
    default: return true;
    }
}

const struct snapshot_arena *figures_find_arena(size_t index)
{
    return index == CONTROL_ARENAS_DESTROYED ? snapshot_past() : snapshot_arena((unsigned)index);
}

/* 0, or an error number. */
static int find_arena(struct figures *figures, const struct snapshot *numbers, size_t index,
                      enum figure_scope scope)
{
    bool all = control_arena_kind(index) == CONTROL_ARENA_SUM;
    unsigned number = all ? CONTROL_ARENAS_ALL : (unsigned)index;
    const struct snapshot_arena *arena = all ? &numbers->all : figures_find_arena(index);
    const struct lengths *lengths = NULL;

    if (arena == NULL) /* no memory, or it was made after the snapshot */
        return number == CONTROL_ARENAS_DESTROYED ? EAGAIN : ENOENT;
    if (scope == OF_LARGE_STEP || scope == OF_STEP) {
        lengths = lengths_of_epoch(numbers->epoch, number);
        if (lengths == NULL) return EAGAIN;
    }
    figures_of_arena(figures, arena, number, lengths);
    return 0;
}

static int serve_row(struct control_call *call)
{
    enum figure_scope scope = scope_of(call->row);
    bool of_arena = scope >= OF_SETTINGS;
    const struct snapshot *numbers = scope >= OF_PROCESS ? snapshot_get() : NULL;
    struct figures figures;
    int error = 0;

    if (scope >= OF_PROCESS && numbers == NULL) return EAGAIN;
    figures_of_process(&figures, numbers);
    if (of_arena) error = find_arena(&figures, numbers, call->index[0], scope);
    if (error != 0) return error;
    figures_at(&figures, scope, (unsigned)call->index[of_arena]);
    call->old = figure_value(&figures, call->row);
    return 0;
}

static int serve_figure(struct control_call *call)
{
    int error;

    if (!heap_start()) return EAGAIN;
    lock_take(&control_lock);
    error = serve_row(call);
    lock_give(&control_lock);
    return error;
}

const struct control_table control_figures = { rows, ARRAY_COUNT(rows), figure_exists,
                                               serve_figure };
