/* shelves.h - what the tests of arenas, depots and caches share. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_SHELVES_H
#define PRAIRIE_TEST_SHELVES_H

#include "pages.h"

enum { SLOTS_MAX = 256 };

static void start_arenas(unsigned count)
{
    start_pages();
    slabs_start();
    tidy_start();
    arenas_start(count);
    for (unsigned i = 0; i < count; i++) assert_non_null(arena_at(i));
}

/* Walks runs and arenas, as heap_check_all does. */
static void check_arenas(void)
{
    arenas_lock();
    lock_take(&keeper.lock);
    arenas_check();
    run_check_all();
    lock_give(&keeper.lock);
    arenas_unlock();
}

/* Takes up to `wanted` blocks from the slabs of an arena into slots[1..]. */
static unsigned fill(unsigned arena, unsigned class_index, void **slots, unsigned wanted)
{
    unsigned got;

    lock_take(&arenas[arena]->lock);
    got = arena_fill(arenas[arena], class_index, slots, wanted);
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
