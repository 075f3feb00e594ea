/* stats_arena.c - one arena's statistics, as text in columns and as JSON.
 * SPDX-License-Identifier: MIT
 */
#include "stats_print.h"

#include "../base/options.h"
#include "control_classes.h"

/* ---- locks ---- */

struct lock_figures {
    const char *key;
    uint64_t number;
    bool has_rate;
};

enum { LOCK_FIGURES = 7 };

static void figures_of(const struct lock_numbers *lock, struct lock_figures *figures)
{
    static const struct lock_numbers no_numbers = { .taken = 0 };

    if (lock == NULL) lock = &no_numbers;
    figures[0] = (struct lock_figures){ "num_ops", lock->taken, true };
    figures[1] = (struct lock_figures){ "num_wait", lock->waits, true };
    figures[2] = (struct lock_figures){ "num_spin_acq", lock->contended - lock->waits, true };
    figures[3] = (struct lock_figures){ "num_owner_switch", 0, true };
    figures[4] = (struct lock_figures){ "total_wait_time", lock->wait_ns, true };
    figures[5] = (struct lock_figures){ "max_wait_time", lock->wait_ns_max, false };
    figures[6] = (struct lock_figures){ "max_num_thds", lock->sleepers_max, false };
}

void stats_print_lock_titles(struct report *report)
{
    report_text(report, "      n_lock_ops (#/sec)       n_waiting (#/sec)      n_spin_acq (#/sec)"
                        "  n_owner_switch (#/sec)   total_wait_ns   (#/sec)     max_wait_ns"
                        "  max_n_thds\n");
}

void stats_print_lock_columns(struct report *report, const struct lock_numbers *lock,
                              uint64_t seconds)
{
    struct lock_figures figures[LOCK_FIGURES];

    figures_of(lock, figures);
    for (unsigned i = 0; i < LOCK_FIGURES; i++) {
        report_number_column(report, figures[i].number, i == 6 ? 12 : 16);
        if (figures[i].has_rate)
            report_number_column(report, stats_rate(figures[i].number, seconds), i == 4 ? 10 : 8);
    }
    report_text(report, "\n");
}

void stats_print_lock_members(struct report *report, const char *key,
                              const struct lock_numbers *lock)
{
    struct lock_figures figures[LOCK_FIGURES];

    figures_of(lock, figures);
    report_open(report, key, '{');
    for (unsigned i = 0; i < LOCK_FIGURES; i++)
        report_member(report, figures[i].key, figures[i].number);
    report_close(report, '}');
}

void stats_print_locks(struct report *report, const struct stats_lock *locks, unsigned count,
                       uint64_t seconds)
{
    if (report->json) {
        report_open(report, "mutexes", '{');
        for (unsigned i = 0; i < count; i++)
            stats_print_lock_members(report, locks[i].name, locks[i].lock);
        report_close(report, '}');
        return;
    }
    report_column(report, "", -21);
    stats_print_lock_titles(report);
    for (unsigned i = 0; i < count; i++) {
        report_column(report, locks[i].name, -21);
        stats_print_lock_columns(report, locks[i].lock, seconds);
    }
}

/* What the runs, the records and the threads share is the first arena's. */
static void print_locks(struct report *report, const struct snapshot *numbers, bool is_first)
{
    const struct stats_lock locks[] = {
        { "large", NULL },
        { "extent_avail", NULL },
        { "extents_dirty", is_first ? &numbers->runs_lock : NULL },
        { "extents_muzzy", NULL },
        { "extents_retained", NULL },
        { "decay_dirty", NULL },
        { "decay_muzzy", NULL },
        { "base", is_first ? &numbers->meta_lock : NULL },
        { "tcache_list", is_first ? &numbers->threads_lock : NULL },
        { "hpa_shard", NULL },
        { "hpa_shard_grow", NULL },
        { "hpa_sec", NULL },
    };

    stats_print_locks(report, locks, ARRAY_COUNT(locks), numbers->uptime_ms / 1000);
}

/* ---- sums over classes ---- */

struct flow {
    uint64_t allocated, taken, given, fills, drains;
};

static struct flow flow_of_small(const struct snapshot_arena *arena)
{
    struct flow flow = { arena->small_allocated, 0, 0, 0, 0 };

    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct snapshot_class *of_class = &arena->of_class[class_index];
        flow.taken += of_class->blocks_taken;
        flow.given += stats_given_of(of_class);
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
        report_number_column(report, stats_rate(numbers[i], seconds), 10);
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

/* What is set for arenas; nothing is for those that were destroyed. */
struct settings {
    const char *dss;
    int64_t dirty_decay_ms, muzzy_decay_ms;
    uint64_t uptime_ns;
};

static struct settings settings_of(const struct snapshot *numbers, int index)
{
    if (index == STATS_DESTROYED) return (struct settings){ "N/A", -1, -1, 0 };
    return (struct settings){
        index < 0 ? "N/A" : option_word(OPTION_DSS, option_value(OPTION_DSS)),
        option_decay_ms(),
        (int64_t)option_value(OPTION_MUZZY_DECAY_MS),
        numbers->uptime_ms * 1000000,
    };
}

static void print_arena_text(struct report *report, const struct snapshot *numbers,
                             const struct snapshot_arena *arena, int index)
{
    struct settings settings = settings_of(numbers, index);
    const uint64_t dirty[] = { arena->dirty >> space.page_shift, arena->purges, arena->purges,
                               arena->purged_pages };
    const uint64_t muzzy[] = { 0, 0, 0, 0 };
    struct flow small = flow_of_small(arena), large = flow_of_large(arena);
    struct flow total = { small.allocated + large.allocated, small.taken + large.taken,
                          small.given + large.given, small.fills + large.fills,
                          small.drains + large.drains };
    uint64_t seconds = numbers->uptime_ms / 1000;

    stats_number(report, NULL, "assigned threads: ", arena->threads);
    stats_number(report, NULL, "uptime: ", settings.uptime_ns);
    report_text(report, "dss allocation precedence: ");
    report_quoted(report, settings.dss);
    report_text(report, "\ndecaying:  time       npages       sweeps     madvises       purged\n");
    print_decay_line(report, "   dirty:", settings.dirty_decay_ms, dirty);
    print_decay_line(report, "   muzzy:", settings.muzzy_decay_ms, muzzy);
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
    struct settings settings = settings_of(numbers, index);

    report_member(report, "nthreads", arena->threads);
    report_member(report, "uptime_ns", settings.uptime_ns);
    report_key(report, "dss");
    report_quoted(report, settings.dss);
    report_key(report, "dirty_decay_ms");
    report_signed(report, settings.dirty_decay_ms);
    report_key(report, "muzzy_decay_ms");
    report_signed(report, settings.muzzy_decay_ms);
    report_member(report, "pactive", arena->active >> space.page_shift);
    report_member(report, "pdirty", arena->dirty >> space.page_shift);
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
        report_open(report,
                    index == STATS_MERGED      ? "merged"
                    : index == STATS_DESTROYED ? "destroyed"
                                               : digits + at,
                    '{');
        return;
    }
    report_text(report, index == STATS_MERGED      ? "Merged arenas stats"
                        : index == STATS_DESTROYED ? "Destroyed arenas stats"
                                                   : "arenas[");
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
    else print_arena_text(report, numbers, arena, index);
    if (wish->mutexes) print_locks(report, numbers, index == 0 || index == STATS_MERGED);
    if (wish->bins && report->json) stats_print_bin_members(report, wish, arena);
    if (wish->bins && !report->json)
        stats_print_bins(report, wish, arena, numbers->uptime_ms / 1000);
    if (wish->large || wish->extents) stats_print_lengths(report, wish, index);
    if (report->json) report_close(report, '}');
}
