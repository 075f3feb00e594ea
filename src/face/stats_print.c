/* stats_print.c - what is wanted of the statistics, sums, and one arena after the other.
 * SPDX-License-Identifier: MIT
 */
#include "stats_print.h"

#include "../base/port.h"
#include "control.h"

PUBLIC void (*malloc_message)(void *context, const char *text);

static void write_to_error(void *unused, const char *text)
{
    (void)unused;
    port_write_error(text, __builtin_strlen(text));
}

static struct stats_wish wish_of(const char *letters)
{
    struct stats_wish wish = { false, true, true, true, true, true, true, true, true };

    for (; letters != NULL && *letters != '\0'; letters++) {
        switch (*letters) {
        case 'J': wish.json = true; break;
        case 'g': wish.general = false; break;
        case 'm': wish.merged = false; break;
        case 'd': wish.destroyed = false; break;
        case 'a': wish.each_arena = false; break;
        case 'b': wish.bins = false; break;
        case 'l': wish.large = false; break;
        case 'x': wish.mutexes = false; break;
        case 'e': wish.extents = false; break;
        default: break; /* h, and what others may have */
        }
    }
    return wish;
}

void stats_number(struct report *report, const char *key, const char *line, uint64_t number)
{
    if (report->json) {
        report_member(report, key, number);
        return;
    }
    report_text(report, line);
    report_number(report, number);
    report_text(report, "\n");
}

/* ---- sums ---- */

static void print_sums_as_text(struct report *report, const struct snapshot *numbers)
{
    const struct snapshot_arena *all = &numbers->all;
    const struct {
        const char *before;
        uint64_t number;
    } parts[] = {
        { "Allocated: ", all->small_allocated + all->large_allocated },
        { ", active: ", all->active },
        { ", metadata: ", all->metadata },
        { " (n_thp 0, edata ", all->metadata - all->metadata_map },
        { ", rtree ", all->metadata_map },
        { "), resident: ", all->resident },
        { ", mapped: ", all->mapped },
        { ", retained: ", all->clean },
        { "\nCount of realloc(non-null-ptr, 0) calls: ", numbers->realloc_zero_calls },
        { "\nBackground threads: ", numbers->background_runs },
        { ", num_runs: ", numbers->background_looks },
        { ", run_interval: ", numbers->background_look_ms * 1000000 },
    };

    for (unsigned i = 0; i < ARRAY_COUNT(parts); i++) {
        report_text(report, parts[i].before);
        report_number(report, parts[i].number);
    }
    report_text(report, " ns\n");
}

static void print_sums_as_json(struct report *report, const struct snapshot *numbers)
{
    const struct snapshot_arena *all = &numbers->all;

    report_member(report, "allocated", all->small_allocated + all->large_allocated);
    report_member(report, "active", all->active);
    report_member(report, "metadata", all->metadata);
    report_member(report, "metadata_edata", all->metadata - all->metadata_map);
    report_member(report, "metadata_rtree", all->metadata_map);
    report_member(report, "metadata_thp", 0);
    report_member(report, "resident", all->resident);
    report_member(report, "mapped", all->mapped);
    report_member(report, "retained", all->clean);
    report_member(report, "zero_reallocs", numbers->realloc_zero_calls);
    report_open(report, "background_thread", '{');
    report_member(report, "num_threads", numbers->background_runs);
    report_member(report, "num_runs", numbers->background_looks);
    report_member(report, "run_interval", numbers->background_look_ms * 1000000);
    report_close(report, '}');
}

static void print_global_locks(struct report *report, const struct snapshot *numbers)
{
    const struct stats_lock locks[] = {
        { "background_thread", &numbers->decay_lock },
        { "max_per_bg_thd", NULL },
        { "ctl", &numbers->control_lock },
        { "prof", &numbers->samples_lock },
        { "prof_thds_data", NULL },
        { "prof_dump", NULL },
        { "prof_recent_alloc", NULL },
        { "prof_recent_dump", NULL },
        { "prof_stats", NULL },
    };

    stats_print_locks(report, locks, ARRAY_COUNT(locks), numbers->uptime_ms / 1000);
}

/* ---- arenas ---- */

/* Copies, so that no lock is held while the program's function runs, which may ask us something. */
static bool copy_arena(unsigned index, struct snapshot_arena *arena)
{
    const struct snapshot_arena *found = NULL;

    lock_take(&control_lock);
    if (control_arena_is_made(index)) found = snapshot_arena(index);
    if (found != NULL) *arena = *found;
    lock_give(&control_lock);
    return found != NULL;
}

static NOINLINE void print_each_arena(struct report *report, const struct stats_wish *wish,
                                      const struct snapshot *numbers)
{
    struct snapshot_arena arena;

    for (unsigned index = 0; index < numbers->arena_count; index++)
        if (copy_arena(index, &arena)) stats_print_arena(report, wish, numbers, &arena, (int)index);
}

static NOINLINE void print_destroyed(struct report *report, const struct stats_wish *wish,
                                     const struct snapshot *numbers)
{
    const struct snapshot_arena *past;
    struct snapshot_arena arena;

    lock_take(&control_lock);
    past = snapshot_past();
    if (past != NULL) arena = *past;
    lock_give(&control_lock);
    if (past != NULL) stats_print_arena(report, wish, numbers, &arena, STATS_DESTROYED);
}

static unsigned arenas_made(const struct snapshot *numbers)
{
    unsigned made = 0;

    for (unsigned index = 0; index < numbers->arena_count; index++)
        made += control_arena_is_made(index);
    return made;
}

static void print_numbers(struct report *report, const struct stats_wish *wish,
                          const struct snapshot *numbers)
{
    if (report->json) {
        report_open(report, "stats", '{');
        print_sums_as_json(report, numbers);
    } else {
        print_sums_as_text(report, numbers);
    }
    if (wish->mutexes) print_global_locks(report, numbers);
    if (report->json) report_close(report, '}');

    if (!wish->merged && !wish->destroyed && !wish->each_arena) return;
    if (report->json) report_open(report, "stats.arenas", '{');
    if (wish->merged && (arenas_made(numbers) > 1 || !wish->each_arena))
        stats_print_arena(report, wish, numbers, &numbers->all, STATS_MERGED);
    if (wish->destroyed) print_destroyed(report, wish, numbers);
    if (wish->each_arena) print_each_arena(report, wish, numbers);
    if (report->json) report_close(report, '}');
}

static bool copy_numbers(struct snapshot *numbers)
{
    const struct snapshot *taken;

    if (!heap_start()) return false;
    lock_take(&control_lock);
    taken = snapshot_take();
    if (taken != NULL) *numbers = *taken;
    lock_give(&control_lock);
    return taken != NULL;
}

PUBLIC void malloc_stats_print(void (*write)(void *context, const char *text), void *context,
                               const char *letters)
{
    struct stats_wish wish = wish_of(letters);
    struct report report = { .write = write, .context = context, .json = wish.json };
    struct snapshot numbers;

    if (report.write == NULL)
        report.write = malloc_message != NULL ? malloc_message : write_to_error;
    if (!copy_numbers(&numbers)) return; /* no memory */
    report_text(&report, wish.json ? "{\"jemalloc\":{" : "___ Begin jemalloc statistics ___\n");
    if (wish.general) stats_print_general(&report);
    print_numbers(&report, &wish, &numbers);
    report_text(&report, wish.json ? "}}" : "--- End jemalloc statistics ---\n");
    report_flush(&report);
}
