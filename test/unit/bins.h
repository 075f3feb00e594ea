/* bins.h - what the tests of arenas, depots and caches share. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_BINS_H
#define PRAIRIE_TEST_BINS_H

#include "pages.h"

enum { SLOTS_MAX = 256 };

static void start_arenas(unsigned count)
{
    start_pages();
    slabs_start();
    decay_start();
    arenas_start(count);
    for (unsigned i = 0; i < count; i++) assert_non_null(arena_at(i));
}

static void take_arenas(void)
{
    lock_take(&making_lock);
    arenas_each_lock(lock_take, WALK_TAKES);
}

static void give_arenas(void)
{
    arenas_each_lock(lock_give, WALK_GIVES);
    lock_give(&making_lock);
}

/* Walks runs and arenas, as prairie_check_all does. */
static void check_arenas(void)
{
    take_arenas();
    take_page_heaps();
    arenas_check();
    page_heaps_check();
    give_page_heaps();
    give_arenas();
}

/* Metadata in use but for the records that arenas keep for their next slabs. */
static size_t meta_bytes_without_spares(void)
{
    size_t bytes = commit.record_bytes;

    EACH_ARENA (arena) {
        for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
            bytes -=
                (size_t)arena->bin[class_index].closed.count * slab_shape[class_index].record_bytes;
        bytes -= arena->row.bytes;
    }
    return bytes;
}

/* Takes up to `wanted` blocks from the slabs of an arena into slots[1..]. */
static unsigned fill(unsigned arena, unsigned class_index, void **slots, unsigned wanted)
{
    unsigned got;

    lock_take(&arenas[arena]->lock);
    got = arena_fill(arenas[arena], class_index, slots, wanted, true);
    lock_give(&arenas[arena]->lock);
    check_arenas();
    return got;
}

static unsigned drain(unsigned arena, unsigned class_index, void **blocks, unsigned count)
{
    unsigned others;

    lock_take(&arenas[arena]->lock);
    others = arena_drain(arenas[arena], class_index, blocks, count);
    lock_give(&arenas[arena]->lock);
    check_arenas();
    return others;
}

/* Exactly `wanted` blocks into slots[1..], however many fills that takes. */
static void fill_all(unsigned arena, unsigned class_index, void **slots, unsigned wanted)
{
    unsigned got = 0;

    while (got < wanted) {
        unsigned more = fill(arena, class_index, slots + got, wanted - got);
        assert_true(more > 0);
        got += more;
    }
}

#endif
