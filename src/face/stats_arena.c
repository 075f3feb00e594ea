/* stats_arena.c - one arena's statistics, as text in columns and as JSON.
 * SPDX-License-Identifier: MIT
 */
#include "stats_print.h"

#include "../base/options.h"
#include "../pages/run_walk.h"
#include "control_classes.h"

/* ---- locks ---- */

struct lock_figures {
    const char *key;
    uint64_t number;
    bool has_rate;
};

enum { LOCK_FIGURES = 7 };

static void figures_of(const struct snapshot_lock *lock, struct lock_figures *figures)
{
    static const struct snapshot_lock nothing = { 0, 0, 0 };

    if (lock == NULL) lock = &nothing;
    figures[0] = (struct lock_figures){ "num_ops", lock->taken, true };
    figures[1] = (struct lock_figures){ "num_wait", lock->waits, true };
    figures[2] = (struct lock_figures){ "num_spin_acq", lock->contended - lock->waits, true };
    figures[3] = (struct lock_figures){ "num_owner_switch", 0, true };
    figures[4] = (struct lock_figures){ "total_wait_time", 0, true };
    figures[5] = (struct lock_figures){ "max_wait_time", 0, false };
    figures[6] = (struct lock_figures){ "max_num_thds", 0, false };
}

static uint64_t rate(uint64_t number, uint64_t seconds)
{
    return seconds == 0 ? 0 : number / seconds;
}

static void print_lock_titles(struct report *report)
{
    report_text(report, "      n_lock_ops (#/sec)       n_waiting (#/sec)      n_spin_acq (#/sec)"
                        "  n_owner_switch (#/sec)   total_wait_ns   (#/sec)     max_wait_ns"
                        "  max_n_thds\n");
}

void stats_print_lock_titles(struct report *report)
{
    report_column(report, "", -21);
    print_lock_titles(report);
}

static void print_lock_columns(struct report *report, const struct snapshot_lock *lock,
                               uint64_t seconds)
{
    struct lock_figures figures[LOCK_FIGURES];

    figures_of(lock, figures);
    for (unsigned i = 0; i < LOCK_FIGURES; i++) {
        report_number_column(report, figures[i].number, i == 6 ? 12 : 16);
        if (figures[i].has_rate)
            report_number_column(report, rate(figures[i].number, seconds), i == 4 ? 10 : 8);
    }
    report_text(report, "\n");
}

static void print_lock_members(struct report *report, const char *key,
                               const struct snapshot_lock *lock)
{
    struct lock_figures figures[LOCK_FIGURES];

    figures_of(lock, figures);
    report_open(report, key, '{');
    for (unsigned i = 0; i < LOCK_FIGURES; i++)
        report_member(report, figures[i].key, figures[i].number);
    report_close(report, '}');
}

void stats_print_lock(struct report *report, const char *name, const struct snapshot_lock *lock,
                      uint64_t seconds)
{
    if (report->json) {
        print_lock_members(report, name, lock);
        return;
    }
    report_column(report, name, -21);
    print_lock_columns(report, lock, seconds);
}

static void print_locks(struct report *report, const struct snapshot *numbers, bool is_first)
{
    static const char names[][20] = {
        "large",          "extent_avail", "extents_dirty", "extents_muzzy", "extents_retained",
        "decay_dirty",    "decay_muzzy",  "base",          "tcache_list",   "hpa_shard",
        "hpa_shard_grow", "hpa_sec",
    };

    if (report->json) report_open(report, "mutexes", '{');
    else stats_print_lock_titles(report);
    for (unsigned i = 0; i < ARRAY_COUNT(names); i++) {
        const struct snapshot_lock *lock = NULL;
        if (is_first && __builtin_strcmp(names[i], "extents_dirty") == 0)
            lock = &numbers->runs_lock;
        if (is_first && __builtin_strcmp(names[i], "base") == 0) lock = &numbers->meta_lock;
        stats_print_lock(report, names[i], lock, numbers->uptime_ms / 1000);
    }
    if (report->json) report_close(report, '}');
}

/* ---- sums over classes ---- */

struct flow {
    uint64_t allocated, taken, given, fills, drains;
};

static uint64_t given_of(const struct snapshot_class *of_class)
{
    return of_class->blocks_taken - of_class->blocks - of_class->cached_of_arena;
}

static struct flow flow_of_small(const struct snapshot_arena *arena)
{
    struct flow flow = { arena->small_allocated, 0, 0, 0, 0 };

    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct snapshot_class *of_class = &arena->of_class[class_index];
        flow.taken += of_class->blocks_taken;
        flow.given += given_of(of_class);
        flow.fills += of_class->fills;
        flow.drains += of_class->drains;
    }
    return flow;
}

/* Large blocks are taken one by one, so each is a request. */
static struct flow flow_of_large(const struct snapshot_arena *arena)
{
    return (struct flow){ arena->large_allocated, arena->large_taken,
                          arena->large_taken - arena->large_count, arena->large_taken, 0 };
}

static void print_flow(struct report *report, const char *name, struct flow flow, uint64_t requests,
                       uint64_t seconds)
{
    const uint64_t numbers[] = { flow.taken, flow.given, requests, flow.fills, flow.drains };

    report_column(report, name, -22);
    report_number_column(report, flow.allocated, 15);
    for (unsigned i = 0; i < ARRAY_COUNT(numbers); i++) {
        report_number_column(report, numbers[i], 16);
        report_number_column(report, rate(numbers[i], seconds), 10);
    }
    report_text(report, "\n");
}

static void print_flow_members(struct report *report, const char *key, struct flow flow,
                               uint64_t requests)
{
    report_open(report, key, '{');
    report_member(report, "allocated", flow.allocated);
    report_member(report, "nmalloc", flow.taken);
    report_member(report, "ndalloc", flow.given);
    report_member(report, "nrequests", requests);
    report_member(report, "nfills", flow.fills);
    report_member(report, "nflushes", flow.drains);
    report_close(report, '}');
}

/* ---- bins ---- */

static void print_bin_members(struct report *report, const struct stats_wish *wish,
                              const struct snapshot_arena *arena)
{
    report_open(report, "bins", '[');
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct snapshot_class *of_class = &arena->of_class[class_index];
        report_open(report, NULL, '{');
        report_member(report, "nmalloc", of_class->blocks_taken);
        report_member(report, "ndalloc", given_of(of_class));
        report_member(report, "curregs", of_class->blocks);
        report_member(report, "nrequests", 0);
        report_member(report, "nfills", of_class->fills);
        report_member(report, "nflushes", of_class->drains);
        report_member(report, "nreslabs", 0);
        report_member(report, "curslabs", of_class->slabs);
        report_member(report, "nonfull_slabs", of_class->slabs_not_full);
        if (wish->mutexes) print_lock_members(report, "mutex", &arena->lock);
        report_close(report, '}');
    }
    report_close(report, ']');
}

/* Blocks of all that its slabs have room for, in thousandths. */
static void print_share(struct report *report, uint64_t blocks, uint64_t room)
{
    uint64_t thousandths = room == 0 ? 1000 : blocks * 1000 / room;
    const char *zeros = thousandths < 10 ? "0.00" : thousandths < 100 ? "0.0" : "0.";

    if (thousandths >= 1000) {
        report_text(report, "      1");
        return;
    }
    report_text(report, "  ");
    report_text(report, zeros);
    report_number(report, thousandths);
}

static void print_bin_line(struct report *report, const struct snapshot_arena *arena,
                           unsigned class_index, uint64_t seconds)
{
    const struct snapshot_class *of_class = &arena->of_class[class_index];
    const struct slab_shape *shape = &slab_shape[class_index];
    const struct {
        uint64_t number;
        int columns, rate_columns;
    } cells[] = {
        { class_bytes[class_index], 20, 0 },
        { class_index - 1, 4, 0 },
        { of_class->blocks * class_bytes[class_index], 14, 0 },
        { of_class->blocks_taken, 14, 8 },
        { given_of(of_class), 14, 8 },
        { 0, 15, 10 },
        { 1, 9, 0 },
        { of_class->blocks, 13, 0 },
        { of_class->slabs, 13, 0 },
        { of_class->slabs_not_full, 15, 0 },
        { shape->block_count, 5, 0 },
        { shape->bytes >> plain.page_shift, 4, 0 },
    };

    for (unsigned i = 0; i < ARRAY_COUNT(cells); i++) {
        report_number_column(report, cells[i].number, cells[i].columns);
        if (cells[i].rate_columns != 0)
            report_number_column(report, rate(cells[i].number, seconds), cells[i].rate_columns);
    }
    print_share(report, of_class->blocks, of_class->slabs * shape->block_count);
    report_number_column(report, of_class->fills, 13);
    report_number_column(report, rate(of_class->fills, seconds), 8);
    report_number_column(report, of_class->drains, 13);
    report_number_column(report, rate(of_class->drains, seconds), 8);
    report_number_column(report, of_class->slabs_opened, 13);
    report_number_column(report, 0, 13);
    report_number_column(report, 0, 8);
}

/* A line for a gap: classes that were never used. */
static void print_bins(struct report *report, const struct stats_wish *wish,
                       const struct snapshot_arena *arena, uint64_t seconds)
{
    bool in_gap = false;

    report_text(report, "bins:           size ind     allocated       nmalloc (#/sec)"
                        "       ndalloc (#/sec)      nrequests   (#/sec)  nshards      curregs"
                        "     curslabs  nonfull_slabs regs pgs   util       nfills (#/sec)"
                        "     nflushes (#/sec)       nslabs     nreslabs (#/sec)");
    if (wish->mutexes) print_lock_titles(report);
    else report_text(report, "\n");
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        bool unused = arena->of_class[class_index].slabs_opened == 0;
        if (in_gap && !unused) report_text(report, "                     ---\n");
        in_gap = unused;
        if (unused) continue;
        print_bin_line(report, arena, class_index, seconds);
        if (wish->mutexes) print_lock_columns(report, &arena->lock, seconds);
        else report_text(report, "\n");
    }
    if (in_gap) report_text(report, "                     ---\n");
}

/* ---- runs of pages, by length ---- */

/* Lengths are counted by steps: one, two and three pages, then those of large blocks. */
enum { SHORT_STEPS = 3, STEPS_MAX = 40 * 4 };

struct lengths {
    uint32_t large[STEPS_MAX], dirty[STEPS_MAX], clean[STEPS_MAX];
    uint64_t dirty_pages[STEPS_MAX], clean_pages[STEPS_MAX];
};

static unsigned step_count(void) { return min_size(lextent_count() + SHORT_STEPS, STEPS_MAX); }

static size_t step_bytes(unsigned step)
{
    return step < SHORT_STEPS ? (step + 1) * page_bytes() : lextent_bytes(step - SHORT_STEPS);
}

/* The last step that is not longer. */
static unsigned step_below(size_t bytes)
{
    unsigned step = 0;

    while (step + 1 < step_count() && step_bytes(step + 1) <= bytes) step++;
    return step;
}

static void count_length(enum page_state state, size_t pages, void *context)
{
    struct lengths *lengths = context;
    size_t bytes = pages << plain.page_shift;
    unsigned step = step_below(bytes);

    if (state == PAGE_LARGE) {
        unsigned of_large = lextent_of(bytes);
        if (of_large < STEPS_MAX) lengths->large[of_large]++;
    } else if (state == PAGE_DIRTY) {
        lengths->dirty[step]++;
        lengths->dirty_pages[step] += pages;
    } else if (state == PAGE_CLEAN) {
        lengths->clean[step]++;
        lengths->clean_pages[step] += pages;
    }
}

static void print_large_members(struct report *report, const struct lengths *lengths)
{
    report_open(report, "lextents", '[');
    for (unsigned i = 0; i < lextent_count(); i++) {
        report_open(report, NULL, '{');
        report_member(report, "curlextents", i < STEPS_MAX ? lengths->large[i] : 0);
        report_close(report, '}');
    }
    report_close(report, ']');
}

static void print_extent_members(struct report *report, const struct lengths *lengths)
{
    report_open(report, "extents", '[');
    for (unsigned i = 0; i < lextent_count() + SHORT_STEPS; i++) {
        bool counted = i < step_count();
        report_open(report, NULL, '{');
        report_member(report, "ndirty", counted ? lengths->dirty[i] : 0);
        report_member(report, "nmuzzy", 0);
        report_member(report, "nretained", counted ? lengths->clean[i] : 0);
        report_member(report, "dirty_bytes",
                      counted ? lengths->dirty_pages[i] << plain.page_shift : 0);
        report_member(report, "muzzy_bytes", 0);
        report_member(report, "retained_bytes",
                      counted ? lengths->clean_pages[i] << plain.page_shift : 0);
        report_close(report, '}');
    }
    report_close(report, ']');
}

static void print_large(struct report *report, const struct lengths *lengths)
{
    bool in_gap = false;

    report_text(report, "large:          size ind     allocated    curlextents\n");
    for (unsigned i = 0; i < min_size(lextent_count(), STEPS_MAX); i++) {
        bool unused = lengths->large[i] == 0;
        if (in_gap && !unused) report_text(report, "                     ---\n");
        in_gap = unused;
        if (unused) continue;
        report_number_column(report, lextent_bytes(i), 20);
        report_number_column(report, BIN_CLASS_COUNT + i, 4);
        report_number_column(report, lengths->large[i] * lextent_bytes(i), 14);
        report_number_column(report, lengths->large[i], 15);
        report_text(report, "\n");
    }
    if (in_gap) report_text(report, "                     ---\n");
}

static void print_extents(struct report *report, const struct lengths *lengths)
{
    bool in_gap = false;

    report_text(report, "extents:        size ind       ndirty        dirty       nmuzzy"
                        "        muzzy    nretained     retained       ntotal        total\n");
    for (unsigned i = 0; i < step_count(); i++) {
        uint64_t dirty = lengths->dirty_pages[i] << plain.page_shift;
        uint64_t clean = lengths->clean_pages[i] << plain.page_shift;
        const uint64_t cells[] = { lengths->dirty[i],
                                   dirty,
                                   0,
                                   0,
                                   lengths->clean[i],
                                   clean,
                                   (uint64_t)lengths->dirty[i] + lengths->clean[i],
                                   dirty + clean };

        if (in_gap && cells[6] != 0) report_text(report, "                     ---\n");
        in_gap = cells[6] == 0;
        if (in_gap) continue;
        report_number_column(report, step_bytes(i), 20);
        report_number_column(report, i, 4);
        for (unsigned j = 0; j < ARRAY_COUNT(cells); j++)
            report_number_column(report, cells[j], 13);
        report_text(report, "\n");
    }
    if (in_gap) report_text(report, "                     ---\n");
}

/* Runs of pages are of no arena, so the first one shows them. */
static NOINLINE void print_lengths(struct report *report, const struct stats_wish *wish,
                                   bool is_first)
{
    struct lengths lengths;

    __builtin_memset(&lengths, 0, sizeof lengths);
    if (is_first) runs_visit(count_length, &lengths);
    if (report->json) {
        if (wish->large) print_large_members(report, &lengths);
        if (wish->extents) print_extent_members(report, &lengths);
        return;
    }
    if (wish->large) print_large(report, &lengths);
    if (wish->extents) print_extents(report, &lengths);
}

/* ---- the arena ---- */

static void print_arena_line(struct report *report, const char *key, uint64_t number)
{
    if (report->json) {
        report_member(report, key, number);
        return;
    }
    report_text(report, key);
    report_text(report, ":");
    report_number_column(report, number, 36 - (int)__builtin_strlen(key));
    report_text(report, "\n");
}

static void print_pages(struct report *report, const struct snapshot_arena *arena)
{
    print_arena_line(report, "mapped", arena->mapped);
    print_arena_line(report, "retained", arena->clean);
    print_arena_line(report, "base", arena->metadata);
    print_arena_line(report, "internal", 0);
    print_arena_line(report, "metadata_edata", arena->metadata - arena->metadata_map);
    print_arena_line(report, "metadata_rtree", arena->metadata_map);
    print_arena_line(report, "metadata_thp", 0);
    print_arena_line(report, "tcache_bytes", arena->cached);
    print_arena_line(report, "tcache_stashed_bytes", 0);
    print_arena_line(report, "resident", arena->resident);
    print_arena_line(report, "abandoned_vm", 0);
    print_arena_line(report, "extent_avail", 0);
}

static void print_decay_line(struct report *report, const char *name, int64_t decay_ms,
                             const uint64_t *numbers)
{
    report_text(report, name);
    if (decay_ms < 0) report_column(report, "N/A", 6);
    else report_number_column(report, (uint64_t)decay_ms, 6);
    for (unsigned i = 0; i < 4; i++) report_number_column(report, numbers[i], 13);
    report_text(report, "\n");
}

static void print_arena_text(struct report *report, const struct snapshot *numbers,
                             const struct snapshot_arena *arena)
{
    const uint64_t dirty[] = { arena->dirty >> plain.page_shift, arena->purges, arena->purges,
                               arena->purged_pages };
    const uint64_t muzzy[] = { 0, 0, 0, 0 };
    struct flow small = flow_of_small(arena), large = flow_of_large(arena);
    struct flow total = { small.allocated + large.allocated, small.taken + large.taken,
                          small.given + large.given, small.fills + large.fills,
                          small.drains + large.drains };
    uint64_t seconds = numbers->uptime_ms / 1000;

    stats_number(report, NULL, "assigned threads: ", arena->threads);
    stats_number(report, NULL, "uptime: ", numbers->uptime_ms * 1000000);
    report_text(report, "dss allocation precedence: ");
    report_quoted(report, option_word(OPTION_DSS, option_value(OPTION_DSS)));
    report_text(report, "\ndecaying:  time       npages       sweeps     madvises       purged\n");
    print_decay_line(report, "   dirty:", option_decay_ms(), dirty);
    print_decay_line(report, "   muzzy:", (int64_t)option_value(OPTION_MUZZY_DECAY_MS), muzzy);
    report_text(report, "                            allocated         nmalloc   (#/sec)"
                        "         ndalloc   (#/sec)       nrequests   (#/sec)           nfill"
                        "   (#/sec)          nflush   (#/sec)\n");
    print_flow(report, "small:", small, 0, seconds);
    print_flow(report, "large:", large, large.taken, seconds);
    print_flow(report, "total:", total, large.taken, seconds);
    report_text(report, "\n");
    print_arena_line(report, "active", arena->active);
    print_pages(report, arena);
}

static void print_arena_members(struct report *report, const struct snapshot *numbers,
                                const struct snapshot_arena *arena, int index)
{
    struct flow large = flow_of_large(arena);

    report_member(report, "nthreads", arena->threads);
    report_member(report, "uptime_ns", numbers->uptime_ms * 1000000);
    report_key(report, "dss");
    report_quoted(report, index < 0 ? "N/A" : option_word(OPTION_DSS, option_value(OPTION_DSS)));
    report_key(report, "dirty_decay_ms");
    report_signed(report, option_decay_ms());
    report_key(report, "muzzy_decay_ms");
    report_signed(report, (int64_t)option_value(OPTION_MUZZY_DECAY_MS));
    report_member(report, "pactive", arena->active >> plain.page_shift);
    report_member(report, "pdirty", arena->dirty >> plain.page_shift);
    report_member(report, "pmuzzy", 0);
    report_member(report, "dirty_npurge", arena->purges);
    report_member(report, "dirty_nmadvise", arena->purges);
    report_member(report, "dirty_purged", arena->purged_pages);
    report_member(report, "muzzy_npurge", 0);
    report_member(report, "muzzy_nmadvise", 0);
    report_member(report, "muzzy_purged", 0);
    print_flow_members(report, "small", flow_of_small(arena), 0);
    print_flow_members(report, "large", large, large.taken);
    print_pages(report, arena);
}

static void print_name(struct report *report, int index)
{
    char name[ARENA_NAME_ROOM];

    lock_take(&control_lock);
    arena_name_copy((unsigned)index, name);
    lock_give(&control_lock);
    if (report->json) report_key(report, "name");
    else report_text(report, "name: ");
    report_quoted(report, name);
    if (!report->json) report_text(report, "\n");
}

static void print_heading(struct report *report, int index)
{
    char digits[12];
    size_t at = sizeof digits - 1;
    unsigned rest = index < 0 ? 0 : (unsigned)index;

    digits[at] = '\0';
    do digits[--at] = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (report->json) {
        report_open(report, index < 0 ? "merged" : digits + at, '{');
        return;
    }
    report_text(report, index < 0 ? "Merged arenas stats" : "arenas[");
    if (index >= 0) report_text(report, digits + at);
    report_text(report, index < 0 ? ":\n" : "]:\n");
}

void stats_print_arena(struct report *report, const struct stats_wish *wish,
                       const struct snapshot *numbers, const struct snapshot_arena *arena,
                       int index)
{
    print_heading(report, index);
    if (index >= 0) print_name(report, index);
    if (report->json) print_arena_members(report, numbers, arena, index);
    else print_arena_text(report, numbers, arena);
    if (wish->mutexes) print_locks(report, numbers, index <= 0);
    if (wish->bins && report->json) print_bin_members(report, wish, arena);
    if (wish->bins && !report->json) print_bins(report, wish, arena, numbers->uptime_ms / 1000);
    if (wish->large || wish->extents) print_lengths(report, wish, index <= 0);
    if (report->json) report_close(report, '}');
}
