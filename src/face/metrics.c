/* metrics.c - the snapshot in the text form of OpenMetrics, which Prometheus reads.
 * SPDX-License-Identifier: MIT
 */
#include "report.h"

#include "../base/port.h"
#include "../view/snapshot.h"

enum metric_kind { METRIC_GAUGE, METRIC_COUNTER };

/* A metric's name without "prairie_"; a counter's without "_total". */
static void print_type(struct report *report, const char *name, enum metric_kind kind,
                       const char *unit, const char *help)
{
    report_text(report, "# TYPE prairie_");
    report_text(report, name);
    report_text(report, kind == METRIC_COUNTER ? " counter\n" : " gauge\n");
    if (unit != NULL) {
        report_text(report, "# UNIT prairie_");
        report_text(report, name);
        report_text(report, " ");
        report_text(report, unit);
        report_text(report, "\n");
    }
    report_text(report, "# HELP prairie_");
    report_text(report, name);
    report_text(report, " ");
    report_text(report, help);
    report_text(report, "\n");
}

/* `label` NULL: none. */
static void print_sample(struct report *report, const char *name, enum metric_kind kind,
                         const char *label, uint64_t of, uint64_t number)
{
    report_text(report, "prairie_");
    report_text(report, name);
    if (kind == METRIC_COUNTER) report_text(report, "_total");
    if (label != NULL) {
        report_text(report, "{");
        report_text(report, label);
        report_text(report, "=\"");
        report_number(report, of);
        report_text(report, "\"}");
    }
    report_text(report, " ");
    report_number(report, number);
    report_text(report, "\n");
}

static void print_sums(struct report *report, const struct snapshot *numbers)
{
    const struct snapshot_arena *all = &numbers->all;
    const struct {
        const char *name, *unit, *help;
        uint64_t number;
        enum metric_kind kind;
    } metrics[] = {
        { "allocated_bytes", "bytes", "Blocks that the program holds.",
          all->small_allocated + all->large_allocated, METRIC_GAUGE },
        { "active_bytes", "bytes", "Pages with such blocks in them.", all->active, METRIC_GAUGE },
        { "resident_bytes", "bytes", "Active and dirty pages, and records.", all->resident,
          METRIC_GAUGE },
        { "mapped_bytes", "bytes", "Opened address space without clean pages.", all->mapped,
          METRIC_GAUGE },
        { "retained_bytes", "bytes", "Free pages that cost nothing.", all->clean, METRIC_GAUGE },
        { "dirty_bytes", "bytes", "Free pages that the kernel has not got back.", all->dirty,
          METRIC_GAUGE },
        { "cached_bytes", "bytes", "Free blocks that threads and depots hold ready.", all->cached,
          METRIC_GAUGE },
        { "metadata_bytes", "bytes", "The allocator's own records.", all->metadata, METRIC_GAUGE },
        { "large_allocated_bytes", "bytes", "Large blocks that the program holds.",
          all->large_allocated, METRIC_GAUGE },
        { "large_blocks", NULL, "Number of those.", all->large_count, METRIC_GAUGE },
        { "large_taken", NULL, "Large blocks taken so far.", all->large_taken, METRIC_COUNTER },
        { "threads", NULL, "Threads that hold blocks.", all->threads, METRIC_GAUGE },
        { "purged_bytes", "bytes", "Given back to the kernel.",
          all->purged_pages << space.page_shift, METRIC_COUNTER },
        { "purges", NULL, "Calls that gave back.", all->purges, METRIC_COUNTER },
        { "refills", NULL, "Times that live threads' magazines were empty.", numbers->refills,
          METRIC_GAUGE },
        { "overflows", NULL, "Times that they were full.", numbers->overflows, METRIC_GAUGE },
        { "depot_trades", NULL, "Full magazines exchanged.", numbers->depot_trades,
          METRIC_COUNTER },
        { "run_leases", NULL, "Runs of pages taken.", numbers->leases, METRIC_COUNTER },
        { "run_returns", NULL, "Runs of pages given back.", numbers->returns, METRIC_COUNTER },
        { "arena_hops", NULL, "Times that threads changed arenas, for theirs was busy.",
          numbers->arena_hops, METRIC_COUNTER },
        { "helper_looks", NULL, "Times the helper looked for what to give back.",
          numbers->background_looks, METRIC_COUNTER },
        { "uptime_seconds", "seconds", "Since the library was loaded.", numbers->uptime_ms / 1000,
          METRIC_GAUGE },
    };

    for (unsigned i = 0; i < ARRAY_COUNT(metrics); i++) {
        print_type(report, metrics[i].name, metrics[i].kind, metrics[i].unit, metrics[i].help);
        print_sample(report, metrics[i].name, metrics[i].kind, NULL, 0, metrics[i].number);
    }
}

static void print_lock_counts(struct report *report, const struct snapshot *numbers)
{
    static const char *const names[] = { "lock_taken", "lock_contended", "lock_waits" };
    static const char *const helps[] = { "Locks taken, of these kinds.", "Of these, found held.",
                                         "Of these, slept for." };
    const struct {
        const char *name;
        const struct lock_numbers *lock;
    } locks[] = {
        { "arenas", &numbers->all.lock },
        { "runs", &numbers->runs_lock },
        { "meta", &numbers->meta_lock },
    };

    for (unsigned i = 0; i < ARRAY_COUNT(names); i++) {
        print_type(report, names[i], METRIC_COUNTER, NULL, helps[i]);
        for (unsigned j = 0; j < ARRAY_COUNT(locks); j++) {
            const struct lock_numbers *lock = locks[j].lock;
            const uint64_t counts[] = { lock->taken, lock->contended, lock->waits };
            report_text(report, "prairie_");
            report_text(report, names[i]);
            report_text(report, "_total{lock=\"");
            report_text(report, locks[j].name);
            report_text(report, "\"} ");
            report_number(report, counts[i]);
            report_text(report, "\n");
        }
    }
}

static uint64_t of_class_number(const struct snapshot_class *of_class, unsigned class_index,
                                unsigned which)
{
    switch (which) {
    case 0: return of_class->blocks * class_bytes[class_index];
    case 1: return of_class->cached * class_bytes[class_index];
    case 2: return of_class->slabs * slab_shape[class_index].bytes;
    default: return of_class->blocks_taken;
    }
}

/* Classes that were never used are left out. */
static void print_classes(struct report *report, const struct snapshot_arena *all)
{
    static const struct {
        const char *name, *unit, *help;
        enum metric_kind kind;
    } metrics[] = {
        { "class_allocated_bytes", "bytes", "Blocks of a class that the program holds.",
          METRIC_GAUGE },
        { "class_cached_bytes", "bytes", "Those that threads and depots hold ready.",
          METRIC_GAUGE },
        { "class_slab_bytes", "bytes", "Pages that they lie in.", METRIC_GAUGE },
        { "class_taken", NULL, "Blocks of a class that came from slabs so far.", METRIC_COUNTER },
    };

    for (unsigned i = 0; i < ARRAY_COUNT(metrics); i++) {
        print_type(report, metrics[i].name, metrics[i].kind, metrics[i].unit, metrics[i].help);
        for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
            const struct snapshot_class *of_class = &all->of_class[class_index];
            if (of_class->slabs_opened == 0) continue;
            print_sample(report, metrics[i].name, metrics[i].kind, "size", class_bytes[class_index],
                         of_class_number(of_class, class_index, i));
        }
    }
}

static void write_metrics_to_error(void *unused, const char *text)
{
    (void)unused;
    port_write_error(text, __builtin_strlen(text));
}

/* So that counters never fall, when an arena is destroyed. */
static void add_past(struct snapshot_arena *all, const struct snapshot_arena *past)
{
    if (past == NULL) return;
    all->large_taken += past->large_taken;
    all->lock.taken += past->lock.taken;
    all->lock.contended += past->lock.contended;
    all->lock.waits += past->lock.waits;
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        all->of_class[class_index].slabs_opened += past->of_class[class_index].slabs_opened;
        all->of_class[class_index].blocks_taken += past->of_class[class_index].blocks_taken;
    }
}

PUBLIC bool prairie_stats_metrics(void (*write)(void *context, const char *text), void *context)
{
    struct report report = { .write = write != NULL ? write : write_metrics_to_error,
                             .context = context };
    const struct snapshot *taken;
    struct snapshot numbers;

    if (!heap_start()) return false;
    lock_take(&control_lock);
    taken = snapshot_take();
    if (taken != NULL) {
        numbers = *taken;
        add_past(&numbers.all, snapshot_past());
    }
    lock_give(&control_lock);
    if (taken == NULL) return false;
    print_sums(&report, &numbers);
    print_lock_counts(&report, &numbers);
    print_classes(&report, &numbers.all);
    report_text(&report, "# EOF\n");
    report_flush(&report);
    return true;
}
