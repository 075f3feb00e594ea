/* checks.c - what must be true between steps and at the end, and steps that look.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "controls.h"

#include <malloc.h>
#include <stdio.h>

#pragma weak prairie_check_all
#pragma weak prairie_purge

void check_totals(void)
{
    if (me->allocated == NULL) return;
    int64_t now = (int64_t)(*me->allocated - *me->deallocated) - me->counted_base;
    if (now != me->counted)
        violation("thread.allocated less thread.deallocated is %lld, not %lld", (long long)now,
                  (long long)me->counted);
}

static size_t arena_number(unsigned index, const char *leaf)
{
    return size_of(of_arena("stats.arenas", index, leaf));
}

void check_all_blocks(void)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (me->slot[i].block.base != NULL && !me->slot[i].is_busy)
            slot_verify(&me->slot[i], "in a look at all");
}

enum { FLUSHES_MAX = 8 };

static size_t bytes_of_arena(int arena)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < SLOTS; i++)
        if (me->slot[i].block.base != NULL && me->slot[i].arena == arena)
            bytes += me->slot[i].block.usable_bytes;
    return bytes;
}

static size_t sum_of_bins(unsigned arena, unsigned bins)
{
    char leaf[40];
    size_t sum = 0;

    for (unsigned bin = 0; bin < bins; bin++) {
        snprintf(leaf, sizeof leaf, "bins.%u.curregs", bin);
        sum += arena_number(arena, leaf) * size_of(of_arena("arenas.bin", bin, "size"));
    }
    return sum;
}

/* What an arena tells; `exact`: nobody holds blocks ready. */
static size_t check_arena_numbers(unsigned index, unsigned bins, bool exact)
{
    size_t small = arena_number(index, "small.allocated");
    size_t large = arena_number(index, "large.allocated");
    size_t active = arena_number(index, "pactive") * world.page_bytes;

    if (sum_of_bins(index, bins) != small)
        violation("bins of arena %u are %zu bytes, small.allocated %zu", index,
                  sum_of_bins(index, bins), small);
    if (small + large > active)
        violation("arena %u has %zu bytes allocated and %zu active", index, small + large, active);
    if (exact && !world.samples && !world.hardened && is_own((int)index)
        && small + large != bytes_of_arena((int)index))
        violation("arena %u has %zu small and %zu large bytes, the test holds %zu of it", index,
                  small, large, bytes_of_arena((int)index));
    return small + large;
}

/* Lets go of all that is held ready. False: each time a hook of it freed something, which may be
 * held again. */
static bool flush_all(void)
{
    unsigned tries = 0, nested;

    do {
        nested = me->nested;
        flush_tcaches(true, 0);
        (void)act("thread.tcache.flush");
    } while (me->nested != nested && ++tries < FLUSHES_MAX);
    return me->nested == nested;
}

void check_statistics(bool exact)
{
    uint64_t epoch = 1;
    unsigned arenas = 0, bins = 0;
    size_t sum = 0, allocated, used;
    bool made;

    if (exact) exact = flush_all();
    used = used_now();
    int error = mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
    allow_figures(used);
    if (error != 0) {
        if (has_reason_to_refuse(0)) return;
        violation("there is no epoch");
    }
    if (number_of("arenas.narenas", sizeof arenas, &arenas) != 0
        || number_of("arenas.nbins", sizeof bins, &bins) != 0)
        violation("arenas.narenas cannot be read");
    if (world.players > 1) return;
    allocated = size_of("stats.allocated");
    for (unsigned i = 0; i < arenas; i++) {
        if (number_of(of_arena("arena", i, "initialized"), sizeof made, &made) != 0 || !made)
            continue;
        sum += check_arena_numbers(i, bins, exact);
    }
    if (sum != allocated)
        violation("arenas have %zu bytes, stats.allocated is %zu", sum, allocated);
    /* A sampled block has pages of its own. What is behind a hardened one counts, and so does what
     * waits until it is flushed. */
    size_t more = world.samples || world.hardened ? me->taken_slots * world.page_bytes * 4 : 0;
    size_t least = world.base_bytes + me->live_bytes;
    bool waits = world.hardened && !exact;
    if (allocated < least || (allocated > least + more && !waits))
        violation("stats.allocated is %zu, and should be %zu and %zu", allocated, world.base_bytes,
                  me->live_bytes);
    if (allocated > size_of("stats.active") || size_of("stats.active") > size_of("stats.resident")
        || size_of("stats.resident") > size_of("stats.mapped"))
        violation("statistics out of order: %zu %zu %zu %zu", allocated, size_of("stats.active"),
                  size_of("stats.resident"), size_of("stats.mapped"));
}

static void drop_text(void *context, const char *text) { (void)context, (void)text; }

static void step_sampling(void)
{
    bool on = chance(70);
    size_t logarithm = 8 + below(8);

    if (chance(50)) {
        add("prof.active=%d", on);
        (void)write_number("prof.active", sizeof on, &on);
    } else if (chance(50)) {
        add("thread.prof.active=%d", on);
        (void)write_number("thread.prof.active", sizeof on, &on);
    } else if (world.players == 1) {
        add("prof.reset %zu", logarithm);
        (void)write_number("prof.reset", sizeof logarithm, &logarithm);
    }
}

void step_look(void)
{
    unsigned kind = below(100);

    if (kind < 30) {
        add("prairie_check_all");
        prairie_check_all();
    } else if (kind < 60) {
        bool exact = chance(50);
        add("statistics %s", exact ? "exact" : "");
        check_statistics(exact);
    } else if (kind < 75) {
        add("prairie_purge");
        (void)prairie_purge();
    } else if (kind < 80) {
        add("malloc_trim");
        (void)malloc_trim(0);
    } else if (kind < 83) {
        add("malloc_stats_print");
        size_t used = used_now();
        malloc_stats_print(drop_text, NULL, chance(50) ? "J" : NULL);
        allow_figures(used);
    } else if (kind < 90 && world.samples) {
        step_sampling();
    } else {
        add("all blocks");
        check_all_blocks();
    }
}

size_t active_now(void)
{
    (void)prairie_purge();
    return numbers_now().active;
}

/* Pages that are in use though no block is. */
void check_nothing_left(void)
{
    size_t active = active_now();
    struct prairie_stats stats = numbers_now();
    size_t told = stats.active + stats.dirty + stats.clean + stats.metadata;

    if (world.players > 1) return;
    if (active > world.base_active)
        violation("%zu bytes of pages are in use at the end, and were %zu", active,
                  world.base_active);
    if (told != stats.mapped)
        violation("%zd bytes of pages are neither in use nor free at the end",
                  (ssize_t)(stats.mapped - told));
}
