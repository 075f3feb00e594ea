/* print.c - the statistics as text, line by line, without allocating.
 * SPDX-License-Identifier: MIT
 */
#include "stats.h"

#include "../base/port.h"

enum { PRINT_LINE_BYTES = 120, LABEL_COLUMNS = 26, NUMBER_COLUMNS = 18 };

struct print_line {
    char text[PRINT_LINE_BYTES];
    size_t used;
};

static void line_add(struct print_line *line, const char *text)
{
    while (*text != '\0' && line->used < PRINT_LINE_BYTES - 1) line->text[line->used++] = *text++;
}

static void line_pad(struct print_line *line, size_t column)
{
    while (line->used < column) line->text[line->used++] = ' ';
}

static void line_number(struct print_line *line, uint64_t value, size_t end_column)
{
    char digits[21];
    size_t at = sizeof digits - 1;

    digits[at] = '\0';
    do digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    line_pad(line, end_column - (sizeof digits - 1 - at));
    line_add(line, digits + at);
}

static void line_out(struct print_line *line, const struct print_sink *sink)
{
    line->text[line->used++] = '\n';
    sink->write(sink->context, line->text, line->used);
    line->used = 0;
}

static void number_out(const struct print_sink *sink, const char *label, uint64_t value,
                       const char *note)
{
    struct print_line line = { .used = 0 };

    line_add(&line, "prairie:   ");
    line_add(&line, label);
    line_number(&line, value, 11 + LABEL_COLUMNS + NUMBER_COLUMNS);
    line_add(&line, "  ");
    line_add(&line, note);
    line_out(&line, sink);
}

void stats_print_to(const struct prairie_stats *stats, const struct print_sink *sink)
{
    static const char title[] =
        "prairie: statistics of prairie " PRAIRIE_VERSION " (bytes unless said otherwise)\n";

    sink->write(sink->context, title, sizeof title - 1);
    number_out(sink, "allocated", stats->allocated, "blocks that the program holds");
    number_out(sink, "of them large", stats->large_allocated, "above 14 KiB, whole pages");
    number_out(sink, "active", stats->active, "pages with such blocks");
    number_out(sink, "cached", stats->cached, "free blocks held ready");
    number_out(sink, "dirty", stats->dirty, "free pages the kernel has not got back");
    number_out(sink, "clean", stats->clean, "free pages that cost nothing");
    number_out(sink, "metadata", stats->metadata, "prairie's own records");
    number_out(sink, "mapped", stats->mapped, "opened address space");
    number_out(sink, "purged", stats->purged, "given back to the kernel so far");
    number_out(sink, "purges", stats->purges, "calls that gave back");
    number_out(sink, "refills", stats->refills, "empty magazines, of live threads");
    number_out(sink, "overflows", stats->overflows, "full magazines, of live threads");
    number_out(sink, "slab fills", stats->slab_fills, "magazines filled from slabs");
    number_out(sink, "slab drains", stats->slab_drains, "magazines drained into slabs");
    number_out(sink, "depot trades", stats->depot_trades, "full magazines exchanged");
    number_out(sink, "run leases", stats->run_leases, "runs of pages taken");
    number_out(sink, "run returns", stats->run_returns, "runs of pages given back");
    number_out(sink, "locks", stats->lock_acquired, "taken, all kinds");
    number_out(sink, "locks contended", stats->lock_contended, "found held");
    number_out(sink, "lock waits", stats->lock_waits, "slept for");
    number_out(sink, "arena hops", stats->arena_hops, "arena was busy, thread took another");
    number_out(sink, "arenas", stats->arenas, "made so far");
    number_out(sink, "threads", stats->threads, "with a cache now");
    if (stats->reserve_min == 0 && stats->event_calls == 0) return;
    number_out(sink, "reserve", stats->reserve_cur, "kept for when there is no more");
    number_out(sink, "reserve to keep", stats->reserve_min, "when it is full");
    number_out(sink, "reserve uses", stats->reserve_uses, "times that it gave pages away");
    number_out(sink, "reserve refills", stats->reserve_refills, "pieces that it took back");
    number_out(sink, "LOW", stats->events_low, "told to callbacks");
    number_out(sink, "CRIT", stats->events_crit, "told to callbacks");
    number_out(sink, "callbacks", stats->event_calls, "calls of them");
}

static void write_error(void *unused, const char *text, size_t length_bytes)
{
    (void)unused;
    port_write_error(text, length_bytes);
}

PUBLIC void prairie_stats_print(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    struct print_sink sink = { write_error, NULL };

    if (prairie_stats_read(&stats)) stats_print_to(&stats, &sink);
}
