/* choose.c - which arena a thread fills from.
 *
 * The first threads are spread over the arenas until every core has one. After that a thread stays
 * where it was as long as nobody is in its way: when its arena's lock is held, it goes to the arena
 * of the core it runs on, and stays there.
 * SPDX-License-Identifier: MIT
 */
#include "arena.h"

#include "../base/options.h"

uint64_t arena_hops;

static unsigned next_index; /* atomic: threads that have been placed */

/* The words of percpu_arena. */
enum { PERCPU_DISABLED, PERCPU, PERCPU_OF_CORE };

/* The arena of the core that we run on. */
static unsigned place_by_core(void)
{
    unsigned core = os_core_current();

    if (option_value(OPTION_PERCPU_ARENA) == PERCPU_OF_CORE && arena_limit > 1)
        return core % ((arena_limit + 1) / 2);
    return core % arena_limit;
}

static unsigned place_new_thread(void)
{
    unsigned turn = __atomic_fetch_add(&next_index, 1, __ATOMIC_RELAXED);

    return turn < arena_limit ? turn : place_by_core();
}

static struct arena *take_arena(struct arena *arena)
{
    if (arena != NULL) lock_take(&arena->lock);
    return arena;
}

struct arena *arena_choose(struct arena *last)
{
    struct arena *hop;

    if (unlikely(option_is_set(OPTION_PERCPU_ARENA))) {
        hop = arena_at(place_by_core());
        if (hop != NULL) return take_arena(hop);
    }
    if (likely(last != NULL) && likely(lock_try(&last->lock))) return last;
    if (last == NULL) {
        struct arena *placed = arena_at(place_new_thread());
        if (placed == NULL) placed = arenas[0];
        return take_arena(placed);
    }
    RELAXED_STORE(arena_hops, RELAXED_LOAD(arena_hops) + 1);
    hop = arena_at(place_by_core());
    return take_arena(hop != NULL ? hop : last);
}

struct arena *arena_choose_unhooked(void)
{
    unsigned first = place_by_core();

    for (unsigned i = 0; i < arena_limit; i++) {
        struct arena *arena = arena_at((first + i) % arena_limit);

        if (arena != NULL && RELAXED_LOAD(arena->extents) == NULL) return take_arena(arena);
    }
    return NULL;
}
