/* metrics.c - the sums in the text form of OpenMetrics, which Prometheus reads.
 * SPDX-License-Identifier: MIT
 */
#include "../base/report.h"
#include "figures.h"

enum metric_kind { GAUGE, COUNTER };

/* A metric's name without "prairie_"; a counter's without "_total". The unit is its last word.
 * Those of locks and of classes have one sample for each. */
struct metric {
    char name[24];
    char help[64];
    uint8_t kind;
    uint16_t place;
};

static const struct metric metrics[] = {
    { "allocated_bytes", "Blocks that the program holds.", GAUGE, PROCESS_AT(all.all.allocated) },
    { "active_bytes", "Pages with such blocks in them.", GAUGE, PROCESS_AT(all.active) },
    { "resident_bytes", "Active and dirty pages, and records.", GAUGE, PROCESS_AT(all.resident) },
    { "mapped_bytes", "Opened address space without clean pages.", GAUGE, PROCESS_AT(all.mapped) },
    { "retained_bytes", "Free pages that cost nothing.", GAUGE, PROCESS_AT(all.clean) },
    { "dirty_bytes", "Free pages that the kernel has not got back.", GAUGE, PROCESS_AT(all.dirty) },
    { "cached_bytes", "Free blocks that threads and depots hold ready.", GAUGE,
      PROCESS_AT(all.cached) },
    { "metadata_bytes", "The allocator's own records.", GAUGE, PROCESS_AT(all.metadata) },
    { "large_allocated_bytes", "Large blocks that the program holds.", GAUGE,
      PROCESS_AT(all.large.allocated) },
    { "large_blocks", "Number of those.", GAUGE, PROCESS_AT(all.large_count) },
    { "large_taken", "Large blocks taken so far.", COUNTER, PROCESS_AT(all.large.taken) },
    { "threads", "Threads that hold blocks.", GAUGE, PROCESS_AT(all.threads) },
    { "purged_bytes", "Given back to the kernel.", COUNTER, PROCESS_AT(all.purged_bytes) },
    { "purges", "Calls that gave back.", COUNTER, PROCESS_AT(all.purges) },
    { "refills", "Times that magazines of caches in use were empty.", GAUGE, PROCESS_AT(refills) },
    { "overflows", "Times that they were full.", GAUGE, PROCESS_AT(overflows) },
    { "depot_trades", "Full magazines exchanged.", COUNTER, PROCESS_AT(depot_trades) },
    { "run_leases", "Runs of pages taken.", COUNTER, PROCESS_AT(leases) },
    { "run_returns", "Runs of pages given back.", COUNTER, PROCESS_AT(returns) },
    { "arena_hops", "Times that threads changed arenas, for theirs was busy.", COUNTER,
      PROCESS_AT(arena_hops) },
    { "background_looks", "Looks of the background thread for what to give back.", COUNTER,
      PROCESS_AT(background_looks) },
    { "uptime_seconds", "Since the library was loaded.", GAUGE, PROCESS_AT(uptime_seconds) },
    { "lock_taken", "Locks taken, of these kinds.", COUNTER, LOCK_AT(taken) },
    { "lock_contended", "Of these, found held.", COUNTER, LOCK_AT(contended) },
    { "lock_waits", "Of these, slept for.", COUNTER, LOCK_AT(waits) },
    { "class_allocated_bytes", "Blocks of a class that the program holds.", GAUGE,
      SHAPE_AT(allocated) },
    { "class_cached_bytes", "Those that threads and depots hold ready.", GAUGE, SHAPE_AT(cached) },
    { "class_slab_bytes", "Pages that they lie in.", GAUGE, SHAPE_AT(slabs_bytes) },
    { "class_taken", "Blocks of a class that came from slabs so far.", COUNTER, CLASS_AT(taken) },
};

static const struct {
    char name[8];
    uint8_t lock;
} locks[] = { { "arenas", ARENA_LOCK_OWN },
              { "runs", ARENA_LOCK_RUNS },
              { "meta", ARENA_LOCK_META } };

static void print_head(struct report *report, const struct metric *metric)
{
    const char *unit = __builtin_strrchr(metric->name, '_');

    report_print(report, "# TYPE prairie_%s %s\n", metric->name,
                 metric->kind == COUNTER ? "counter" : "gauge");
    if (unit != NULL
        && (__builtin_strcmp(unit, "_bytes") == 0 || __builtin_strcmp(unit, "_seconds") == 0))
        report_print(report, "# UNIT prairie_%s %s\n", metric->name, unit + 1);
    report_print(report, "# HELP prairie_%s %s\n", metric->name, metric->help);
}

/* `label` says what it is of; NULL: of the process. */
static void print_sample(struct report *report, const struct figures *figures,
                         const struct metric *metric, const char *label, const char *value)
{
    report_print(report, "prairie_%s%s", metric->name, metric->kind == COUNTER ? "_total" : "");
    if (label != NULL) report_print(report, "{%s=\"%s\"}", label, value);
    report_print(report, " %" PRIu64 "\n", figure(figures, metric->place));
}

static void print_metric(struct report *report, struct figures *figures,
                         const struct metric *metric)
{
    const struct snapshot_arena *all = figures->of[OF_ARENA];
    unsigned scope = metric->place >> PLACE_BITS;
    bool of_classes = scope == OF_SHAPE || scope == OF_CLASS;
    char digits[REPORT_DIGITS];

    print_head(report, metric);
    if (scope == OF_PROCESS) print_sample(report, figures, metric, NULL, NULL);
    for (unsigned i = 0; scope == OF_LOCK && i < ARRAY_COUNT(locks); i++) {
        figures->of[OF_LOCK] = &all->locks[locks[i].lock];
        print_sample(report, figures, metric, "lock", locks[i].name);
    }
    /* Classes of which there never was a block are left out; those of guarded blocks alone have no
     * slab. */
    for (unsigned bin = 0; of_classes && bin < BIN_CLASS_COUNT; bin++) {
        figures_at(figures, OF_CLASS, bin);
        if (figure(figures, CLASS_AT(taken)) != 0)
            print_sample(report, figures, metric, "size",
                         report_digits(figures->shape.bytes, digits));
    }
}

PUBLIC bool prairie_stats_metrics(void (*write)(void *context, const char *text), void *context)
{
    struct report report = { .write = write != NULL ? write : report_to_error, .context = context };
    struct snapshot numbers;
    struct figures figures;

    if (!heap_start()) return false;
    snapshot_sum(&numbers);
    figures_of_process(&figures, &numbers);
    figures_of_arena(&figures, &numbers.all, CONTROL_ARENAS_ALL, NULL);
    for (unsigned i = 0; i < ARRAY_COUNT(metrics); i++)
        print_metric(&report, &figures, &metrics[i]);
    report_text(&report, "# EOF\n");
    report_flush(&report);
    return true;
}
