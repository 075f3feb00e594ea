/* stats.c - struct prairie_stats and its lines, and what the calling thread took and gave back.
 * SPDX-License-Identifier: MIT
 */
#include "stats.h"

#include "snapshot.h"

/* A member of the struct, its line, and where the snapshot has it. */
#define MEMBER(name, label, note, from)                                                     \
    {                                                                                       \
        label, note, offsetof(struct prairie_stats, name), offsetof(struct snapshot, from), \
            sizeof(((struct prairie_stats *)NULL)->name) == sizeof(unsigned)                \
    }

static const struct {
    char label[18], note[40];
    uint16_t offset, from;
    bool is_unsigned; /* others have 64 bits */
} members[] = {
    MEMBER(allocated, "allocated", "blocks that the program holds", all.all.allocated),
    MEMBER(large_allocated, "of them large", "above 14 KiB", all.large.allocated),
    MEMBER(active, "active", "pages with such blocks", all.active),
    MEMBER(cached, "cached", "free blocks held ready", all.cached),
    MEMBER(dirty, "dirty", "free pages the kernel has not got back", own_dirty),
    MEMBER(clean, "clean", "free pages that cost nothing", own_clean),
    MEMBER(metadata, "metadata", "prairie's own records", all.metadata),
    MEMBER(mapped, "mapped", "opened address space", opened),
    MEMBER(purged, "purged", "given back to the kernel so far", all.purged_bytes),
    MEMBER(purges, "purges", "calls that gave back", all.purges),
    MEMBER(refills, "refills", "empty magazines, of caches in use", refills),
    MEMBER(overflows, "overflows", "full magazines, of caches in use", overflows),
    MEMBER(slab_fills, "slab fills", "magazines filled from slabs", all.small.fills),
    MEMBER(slab_drains, "slab drains", "magazines drained into slabs", all.small.drains),
    MEMBER(depot_trades, "depot trades", "full magazines exchanged", depot_trades),
    MEMBER(run_leases, "run leases", "runs of pages taken", leases),
    MEMBER(run_returns, "run returns", "runs of pages given back", returns),
    MEMBER(lock_acquired, "locks", "taken, all kinds", locks.taken),
    MEMBER(lock_contended, "locks contended", "found held", locks.contended),
    MEMBER(lock_waits, "lock waits", "slept for", locks.waits),
    MEMBER(arena_hops, "arena hops", "arena was busy, thread took another", arena_hops),
    MEMBER(arenas, "arenas", "made so far", arenas_made),
    MEMBER(threads, "threads", "with a cache now", all.threads),
    MEMBER(reserve_cur, "reserve", "kept for when there is no more", reserve),
    MEMBER(reserve_min, "reserve to keep", "when it is full", reserve_wanted),
    MEMBER(reserve_uses, "reserve uses", "times that it gave pages away", reserve_releases),
    MEMBER(reserve_refills, "reserve refills", "pieces that it took back", reserve_refills),
    MEMBER(events_low, "LOW", "told to callbacks", events_low),
    MEMBER(events_crit, "CRIT", "told to callbacks", events_crit),
    MEMBER(event_calls, "callbacks", "calls of them", event_calls),
    MEMBER(large_count, "", "", all.large_count),
};
/* From `reserve` on only when there is a reserve, or callbacks; the last one has no line. */
enum { LINES = ARRAY_COUNT(members) - 1, LINES_ALWAYS = LINES - 7 };
enum { LABEL_COLUMNS = 26, NUMBER_COLUMNS = 18 };

PUBLIC bool prairie_stats_read(struct prairie_stats *stats)
{
    struct snapshot numbers;

    if (stats->struct_bytes != sizeof *stats) return false;
    *stats = (struct prairie_stats){ .struct_bytes = sizeof *stats };
    if (!heap_start()) return true; /* nothing is there: all zero */
    snapshot_sum(&numbers);
    for (unsigned i = 0; i < ARRAY_COUNT(members); i++) {
        uint64_t number = *(const uint64_t *)((const char *)&numbers + members[i].from);
        char *member = (char *)stats + members[i].offset;

        if (members[i].is_unsigned) *(unsigned *)member = (unsigned)number;
        else *(uint64_t *)member = number;
    }
    return true;
}

PUBLIC const char *prairie_version(void) { return PRAIRIE_VERSION; }

/* ---- lines ---- */

void stats_print_to(const struct prairie_stats *stats, struct report *report)
{
    bool with_reserve = stats->reserve_min != 0 || stats->event_calls != 0;

    report_text(report, "prairie: statistics of prairie " PRAIRIE_VERSION
                        " (bytes unless said otherwise)\n");
    report_flush(report);
    for (unsigned i = 0; i < (with_reserve ? LINES : LINES_ALWAYS); i++) {
        const void *member = (const char *)stats + members[i].offset;

        report_print(report, "prairie:   %*s%*" PRIu64 "  %s\n", -LABEL_COLUMNS, members[i].label,
                     NUMBER_COLUMNS,
                     members[i].is_unsigned ? *(const unsigned *)member : *(const uint64_t *)member,
                     members[i].note);
        report_flush(report);
    }
}

PUBLIC void prairie_stats_print(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    struct report report = { .write = report_to_error };

    if (prairie_stats_read(&stats)) stats_print_to(&stats, &report);
}

/* ---- the calling thread ---- */

_Static_assert(sizeof(struct prairie_thread_totals) == 2 * sizeof(uint64_t)
                   && offsetof(struct counting_front, deallocated)
                          == offsetof(struct counting_front, allocated) + sizeof(uint64_t),
               "the public struct lies in the counting front");

struct counting_front *totals_count_calls(void)
{
    return heap_attach() != NULL ? thread_count_calls() : NULL;
}

PUBLIC const struct prairie_thread_totals *prairie_thread_totals(void)
{
    const struct counting_front *counting = totals_count_calls();

    return counting != NULL ? (const struct prairie_thread_totals *)&counting->allocated : NULL;
}
