/* stats_print.c - what is wanted of the statistics, sums, and one arena after the other.
 * SPDX-License-Identifier: MIT
 */
#include "stats_print.h"

PUBLIC void (*malloc_message)(void *context, const char *text);

/* ---- sums ---- */

static void print_sums_as_text(struct report *report, const struct figures *figures)
{
    static const struct {
        char before[46];
        uint16_t place;
    } parts[] = {
        { "Allocated: ", PROCESS_AT(all.all.allocated) },
        { ", active: ", PROCESS_AT(all.active) },
        { ", metadata: ", PROCESS_AT(all.metadata) },
        { " (n_thp 0, edata ", PROCESS_AT(all.metadata_records) },
        { ", rtree ", PROCESS_AT(all.metadata_map) },
        { "), resident: ", PROCESS_AT(all.resident) },
        { ", mapped: ", PROCESS_AT(all.mapped) },
        { ", retained: ", PROCESS_AT(all.clean) },
        { "\nCount of realloc(non-null-ptr, 0) calls: ", PROCESS_AT(realloc_zero_calls) },
        { "\nBackground threads: ", PROCESS_AT(background_runs) },
        { ", num_runs: ", PROCESS_AT(background_looks) },
        { ", run_interval: ", PROCESS_AT(background_look_ns) },
    };

    for (unsigned i = 0; i < ARRAY_COUNT(parts); i++)
        report_print(report, "%s%" PRIu64, parts[i].before, figure(figures, parts[i].place));
    report_text(report, " ns\n");
}

static void print_sums_as_json(struct report *report, const struct figures *figures)
{
    stats_members(report, figures, OF_PROCESS, OF_PROCESS);
    report_open(report, "background_thread", '{');
    stats_members(report, figures, OF_BACKGROUND, OF_BACKGROUND);
    report_close(report, '}');
}

static const struct stats_lock global_locks[] = {
    { "background_thread", PROCESS_AT(decay_lock) },
    { "max_per_bg_thd", NOWHERE },
    { "ctl", PROCESS_AT(control_lock) },
    { "prof", PROCESS_AT(samples_lock) },
    { "prof_thds_data", NOWHERE },
    { "prof_dump", NOWHERE },
    { "prof_recent_alloc", NOWHERE },
    { "prof_recent_dump", NOWHERE },
    { "prof_stats", NOWHERE },
};

/* ---- arenas ---- */

/* Copies, so that no lock is held while the program's function runs, which may ask us something. */
static bool copy_arena(unsigned index, struct snapshot_arena *arena)
{
    const struct snapshot_arena *found = NULL;

    lock_take(&control_lock);
    if (index == CONTROL_ARENAS_DESTROYED || control_arena_kind(index) == CONTROL_ARENA_ONE)
        found = figures_find_arena(index);
    if (found != NULL) *arena = *found;
    lock_give(&control_lock);
    return found != NULL;
}

static NOINLINE void print_counted(struct report *report, const char *letters,
                                   struct figures *figures, const struct snapshot_arena *arena,
                                   unsigned index)
{
    struct lengths lengths;

    if (stats_wanted(letters, 'l') || stats_wanted(letters, 'e')) lengths_count(&lengths, index);
    figures_of_arena(figures, arena, index, &lengths);
    stats_print_arena(report, letters, figures, index);
}

static NOINLINE void print_copied(struct report *report, const char *letters,
                                  struct figures *figures, unsigned first, unsigned end)
{
    struct snapshot_arena arena;

    for (unsigned index = first; index < end; index++)
        if (copy_arena(index, &arena)) print_counted(report, letters, figures, &arena, index);
}

static unsigned arenas_made(const struct snapshot *numbers)
{
    unsigned made = 0;

    for (unsigned index = 0; index < numbers->arena_count; index++)
        made += control_arena_kind(index) == CONTROL_ARENA_ONE;
    return made;
}

static void print_numbers(struct report *report, const char *letters, struct figures *figures,
                          const struct snapshot *numbers)
{
    bool merged = stats_wanted(letters, 'm'), destroyed = stats_wanted(letters, 'd');
    bool each = stats_wanted(letters, 'a');

    if (report->json) {
        report_open(report, "stats", '{');
        print_sums_as_json(report, figures);
    } else {
        print_sums_as_text(report, figures);
    }
    if (stats_wanted(letters, 'x'))
        stats_print_locks(report, figures, global_locks, ARRAY_COUNT(global_locks));
    if (report->json) report_close(report, '}');

    if (!merged && !destroyed && !each) return;
    if (report->json) report_open(report, "stats.arenas", '{');
    if (merged && (arenas_made(numbers) != 1 || !each))
        print_counted(report, letters, figures, &numbers->all, CONTROL_ARENAS_ALL);
    if (destroyed)
        print_copied(report, letters, figures, CONTROL_ARENAS_DESTROYED,
                     CONTROL_ARENAS_DESTROYED + 1);
    if (each) print_copied(report, letters, figures, 0, (unsigned)numbers->arena_count);
    if (report->json) report_close(report, '}');
}

/* Without memory for a snapshot it has the sums, and knows no arena apart. */
static bool copy_numbers(struct snapshot *numbers)
{
    const struct snapshot *taken;

    if (!heap_start()) return false;
    lock_take(&control_lock);
    taken = snapshot_take();
    if (taken != NULL) *numbers = *taken;
    lock_give(&control_lock);
    if (taken == NULL) snapshot_sum(numbers);
    return true;
}

PUBLIC void malloc_stats_print(void (*write)(void *context, const char *text), void *context,
                               const char *letters)
{
    struct report report = { .write = write, .context = context };
    struct snapshot numbers;
    struct figures figures;

    if (letters == NULL) letters = "";
    report.json = !stats_wanted(letters, 'J');
    if (report.write == NULL)
        report.write = malloc_message != NULL ? malloc_message : report_to_error;
    if (!copy_numbers(&numbers)) return; /* the heap never was */
    figures_of_process(&figures, &numbers);
    report_text(&report, report.json ? "{\"jemalloc\":{" : "___ Begin jemalloc statistics ___\n");
    if (stats_wanted(letters, 'g')) stats_print_general(&report, &figures);
    print_numbers(&report, letters, &figures, &numbers);
    report_text(&report, report.json ? "}}" : "--- End jemalloc statistics ---\n");
    report_flush(&report);
}
