/* arena_set.c - the arenas that there are, and which one a thread fills from.
 * SPDX-License-Identifier: MIT
 */
#include "arena_set.h"

#include "../base/options.h"
#include "../policy/limits.h"
#include "sparse.h"

struct arena *arenas[ARENA_INDEX_END] SPARSE_BUT_FIRST;
unsigned arena_end;
unsigned arena_first SEALED, arena_limit SEALED = 1;
static bool arenas_are_hardened SEALED; /* under making_lock */
bool arenas_have_manual;
uint64_t arena_hops;

struct lock making_lock = { .state = LOCK_FREE, .rank = LOCK_MAKING };

_Static_assert(sizeof(struct arena) <= META_RECORD_BYTES_MAX, "a record");
_Static_assert((int)SLAB_PAGES_MAX <= (int)STOCK_PAGES_MAX, "stocks hold the runs of all slabs");

void arenas_start(unsigned core_count)
{
    unsigned wanted =
        option_is_set(OPTION_NARENAS) ? (unsigned)option_value(OPTION_NARENAS) : core_count;

    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        require(slab_pages(class_index) <= SLAB_PAGES_MAX);
    arena_limit = wanted < ARENA_COUNT_MAX ? wanted : ARENA_COUNT_MAX;
}

void arenas_limit(unsigned wanted)
{
    if (wanted > ARENA_COUNT_MAX) wanted = ARENA_COUNT_MAX;
    lock_take(&making_lock);
    if (wanted < arena_limit) arena_limit = wanted;
    while (arena_limit < wanted && arena_of_number(arena_limit) == NULL) arena_limit++;
    lock_give(&making_lock);
}

bool arenas_harden(void)
{
    unsigned first, limit;

    lock_take(&making_lock);
    first = arenas_end();
    limit = (unsigned)min_size(first + arena_limit, ARENA_COUNT_MAX);
    arenas_are_hardened = first <= arena_limit && first < limit;
    if (arenas_are_hardened) {
        arena_first = first;
        arena_limit = limit;
    }
    lock_give(&making_lock);
    return arenas_are_hardened;
}

/* Under the lock of making. */
static struct arena *make_arena(unsigned index, bool is_manual)
{
    struct arena *arena = meta_take(sizeof *arena);

    if (arena == NULL) return NULL;
    /* A page whose first access is a read costs one fault more. */
    for (size_t at = 0; at < sizeof *arena; at += page_bytes()) ((volatile char *)arena)[at] = 0;
    ((volatile char *)arena)[sizeof *arena - 1] = 0;
    lock_init(&arena->lock, LOCK_ARENA);
    arena->index = index;
    arena->page_heap = page_heap_for(index, arena_limit);
    arena->is_manual = is_manual;
    arena->is_hardened = arenas_are_hardened;
    __atomic_store_n(&arenas[index], arena, __ATOMIC_RELEASE);
    if (index >= arena_end) __atomic_store_n(&arena_end, index + 1, __ATOMIC_RELEASE);
    return arena;
}

struct arena *arena_at(unsigned index)
{
    struct arena *arena = arena_of_number(index);

    if (likely(arena != NULL)) return arena;
    lock_take(&making_lock);
    arena = arena_of_number(index);
    if (arena == NULL) arena = make_arena(index, false);
    lock_give(&making_lock);
    return arena;
}

/* The record of a destroyed arena stays, for somebody may be on the way through the set of
 * arenas. */
struct arena *arena_create(void)
{
    unsigned index = arena_limit;
    struct arena *arena;

    lock_take(&making_lock);
    while ((arena = arena_of_number(index)) != NULL && !arena->is_destroyed) index++;
    if (arena == NULL && index < ARENA_INDEX_END) arena = make_arena(index, true);
    if (arena != NULL) {
        RELAXED_STORE(arenas_have_manual, true);
        __builtin_memset(arena->name, 0, sizeof arena->name);
        __atomic_store_n(&arena->is_destroyed, false, __ATOMIC_RELEASE);
    }
    lock_give(&making_lock);
    return arena;
}

/* ---- which arena a thread fills from ---- */

/* The first threads are spread over the arenas until every core has one. After that a thread stays
 * where it was as long as nobody is in its way: when its arena's lock is held, it goes to the arena
 * of the core it runs on, and stays there. */
static unsigned next_index; /* atomic: threads that have been placed */

/* The words of percpu_arena. */
enum { PERCPU_DISABLED, PERCPU, PERCPU_OF_CORE };

/* How many arenas threads are spread over. A container may have the time of two of the machine's
 * cores, and run on each of them now and then: an arena for each would hold memory for nobody. To
 * look at groups takes as long as to start two threads, so that it waits for the third. */
enum { UNASKED_MAX = 2 };
static unsigned choices_now(void)
{
    unsigned choices = arena_choices(), cores;

    if (choices <= UNASKED_MAX || option_is_set(OPTION_NARENAS)
        || option_is_set(OPTION_PERCPU_ARENA))
        return choices;
    cores = limits_cores();
    if (cores < UNASKED_MAX) cores = UNASKED_MAX;
    return cores < choices ? cores : choices;
}

/* The arena of the core that we run on. */
static unsigned place_by_core(void)
{
    unsigned core = os_core_current(), count = choices_now();

    if (option_value(OPTION_PERCPU_ARENA) == PERCPU_OF_CORE) count = (count + 1) / 2;
    return arena_first + core % count;
}

static unsigned place_new_thread(void)
{
    unsigned turn = __atomic_fetch_add(&next_index, 1, __ATOMIC_RELAXED);

    if (turn < UNASKED_MAX && turn < arena_choices()) return arena_first + turn;
    return turn < choices_now() ? arena_first + turn : place_by_core();
}

static struct arena *take_arena(struct arena *arena)
{
    if (arena != NULL) lock_take(&arena->lock);
    return arena;
}

struct arena *arena_for_move(const struct arena *last)
{
    struct arena *arena;

    if (last == NULL) return arena_at(place_new_thread());
    arena = arena_at(place_by_core());
    if (arena != NULL && arena != last) (void)__atomic_fetch_add(&arena_hops, 1, __ATOMIC_RELAXED);
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
    /* Who walks over it is soon done, and is no reason to leave its free blocks behind. */
    if (last != NULL && sparse_walks_over(last)) return take_arena(last);
    hop = arena_for_move(last);
    if (hop == NULL) hop = last != NULL ? last : arenas[arena_first];
    return take_arena(hop);
}

struct arena *arena_choose_unhooked(void)
{
    unsigned index = place_by_core();

    for (unsigned i = arena_first; i < arena_limit; i++, index++) {
        struct arena *arena =
            arena_at(index < arena_limit ? index : index - arena_limit + arena_first);

        if (arena != NULL && RELAXED_LOAD(arena->extents) == NULL) return take_arena(arena);
    }
    return NULL;
}

/* ---- all of them ---- */

void arenas_each_lock(void (*visit)(struct lock *lock), enum lock_walk walk)
{
    check(walk == WALK_TAKES || lock_is_mine(&making_lock));
    if (walk == WALK_TAKES) {
        EACH_ARENA (arena) visit(&arena->lock);
    } else {
        for (unsigned i = arenas_end(); i-- > 0;)
            if (arenas[i] != NULL) visit(&arenas[i]->lock);
    }
}
