/* stats_lists.c - an arena's bins, and runs of pages by length, as text in columns and as JSON.
 * SPDX-License-Identifier: MIT
 */
#include "stats_print.h"

#include "control.h"
#include "lengths.h"

/* ---- bins ---- */

void stats_print_bin_members(struct report *report, const struct stats_wish *wish,
                             const struct snapshot_arena *arena)
{
    report_open(report, "bins", '[');
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct snapshot_class *of_class = &arena->of_class[class_index];
        report_open(report, NULL, '{');
        report_member(report, "nmalloc", of_class->blocks_taken);
        report_member(report, "ndalloc", stats_given_of(of_class));
        report_member(report, "curregs", of_class->blocks);
        report_member(report, "nrequests", 0);
        report_member(report, "nfills", of_class->fills);
        report_member(report, "nflushes", of_class->drains);
        report_member(report, "nreslabs", 0);
        report_member(report, "curslabs", of_class->slabs);
        report_member(report, "nonfull_slabs", of_class->slabs_not_full);
        if (wish->mutexes) stats_print_lock_members(report, "mutex", &arena->lock);
        report_close(report, '}');
    }
    report_close(report, ']');
}

/* Blocks of all that its slabs have room for, in thousandths. */
static void print_share(struct report *report, uint64_t blocks, uint64_t places)
{
    uint64_t thousandths = places == 0 ? 1000 : blocks * 1000 / places;
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
        { stats_given_of(of_class), 14, 8 },
        { 0, 15, 10 },
        { 1, 9, 0 },
        { of_class->blocks, 13, 0 },
        { of_class->slabs, 13, 0 },
        { of_class->slabs_not_full, 15, 0 },
        { shape->block_count, 5, 0 },
        { shape->bytes >> space.page_shift, 4, 0 },
    };

    for (unsigned i = 0; i < ARRAY_COUNT(cells); i++) {
        report_number_column(report, cells[i].number, cells[i].columns);
        if (cells[i].rate_columns != 0)
            report_number_column(report, stats_rate(cells[i].number, seconds),
                                 cells[i].rate_columns);
    }
    print_share(report, of_class->blocks, of_class->slabs * shape->block_count);
    report_number_column(report, of_class->fills, 13);
    report_number_column(report, stats_rate(of_class->fills, seconds), 8);
    report_number_column(report, of_class->drains, 13);
    report_number_column(report, stats_rate(of_class->drains, seconds), 8);
    report_number_column(report, of_class->slabs_opened, 13);
    report_number_column(report, 0, 13);
    report_number_column(report, 0, 8);
}

/* A line for a gap: classes that were never used. */
void stats_print_bins(struct report *report, const struct stats_wish *wish,
                      const struct snapshot_arena *arena, uint64_t seconds)
{
    bool in_gap = false;

    report_text(report, "bins:           size ind     allocated       nmalloc (#/sec)"
                        "       ndalloc (#/sec)      nrequests   (#/sec)  nshards      curregs"
                        "     curslabs  nonfull_slabs regs pgs   util       nfills (#/sec)"
                        "     nflushes (#/sec)       nslabs     nreslabs (#/sec)");
    if (wish->mutexes) stats_print_lock_titles(report);
    else report_text(report, "\n");
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        bool unused = arena->of_class[class_index].slabs_opened == 0;
        if (in_gap && !unused) report_text(report, "                     ---\n");
        in_gap = unused;
        if (unused) continue;
        print_bin_line(report, arena, class_index, seconds);
        if (wish->mutexes) stats_print_lock_columns(report, &arena->lock, seconds);
        else report_text(report, "\n");
    }
    if (in_gap) report_text(report, "                     ---\n");
}

/* ---- runs of pages, by length ---- */

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
    for (unsigned i = 0; i < step_count(); i++) {
        bool counted = i < STEPS_MAX;
        report_open(report, NULL, '{');
        report_member(report, "ndirty", counted ? lengths->dirty[i] : 0);
        report_member(report, "nmuzzy", 0);
        report_member(report, "nretained", counted ? lengths->clean[i] : 0);
        report_member(report, "dirty_bytes",
                      counted ? lengths->dirty_pages[i] << space.page_shift : 0);
        report_member(report, "muzzy_bytes", 0);
        report_member(report, "retained_bytes",
                      counted ? lengths->clean_pages[i] << space.page_shift : 0);
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
    for (unsigned i = 0; i < min_size(step_count(), STEPS_MAX); i++) {
        uint64_t dirty = lengths->dirty_pages[i] << space.page_shift;
        uint64_t clean = lengths->clean_pages[i] << space.page_shift;
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

NOINLINE void stats_print_lengths(struct report *report, const struct stats_wish *wish, int index)
{
    struct lengths lengths;

    lengths_count(&lengths, index == STATS_MERGED      ? CONTROL_ARENAS_ALL
                            : index == STATS_DESTROYED ? CONTROL_ARENAS_DESTROYED
                                                       : (unsigned)index);
    if (report->json) {
        if (wish->large) print_large_members(report, &lengths);
        if (wish->extents) print_extent_members(report, &lengths);
        return;
    }
    if (wish->large) print_large(report, &lengths);
    if (wish->extents) print_extents(report, &lengths);
}
