/* arena_set.h - the arenas that there are, and which one a thread fills from.
 *
 * There is one arena per core, made when first needed, and those that a program makes. None goes:
 * the record of a destroyed one stays. The set is under making_lock; what is in it is read without.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_ARENAS_ARENA_SET_H
#define PRAIRIE_ARENAS_ARENA_SET_H

#include "arena.h"

extern PRIVATE struct arena *arenas[ARENA_INDEX_END]; /* NULL until made; published with release */
extern PRIVATE unsigned arena_end; /* atomic: no arena has this number or a higher one */
/* Constant before main is reached: automatic arenas have the numbers below arena_limit, and threads
 * fill from those that are at least arena_first. */
extern PRIVATE unsigned arena_first, arena_limit;
/* Among how many a thread chooses. */
INLINE unsigned arena_choices(void) { return arena_limit - arena_first; }
/* Is it one of those? NULL is none. */
INLINE bool arena_is_for_all(const struct arena *arena)
{
    return arena != NULL && !arena->is_manual && arena->index >= arena_first
        && arena->index < arena_limit;
}
extern PRIVATE bool arenas_have_manual; /* atomic: arena_create has made one, perhaps long ago */
/* Statistics: changes of arenas by threads that found theirs, or its page heap, busy. Atomic. */
extern PRIVATE uint64_t arena_hops;

void arenas_start(unsigned core_count);
/* How many automatic arenas there may be from now on; before main. Manual ones that are made keep
 * their numbers. */
void arenas_limit(unsigned wanted);
/* Threads fill from new arenas from now on, which are hardened, as are manual ones that are made
 * from now on. Before main. False: no numbers are left for them. */
bool arenas_harden(void);

/* For walks over the set of arenas: no arena has this number or a higher one. An entry below may be
 * NULL. */
INLINE unsigned arenas_end(void) { return __atomic_load_n(&arena_end, __ATOMIC_ACQUIRE); }
/* The arena of this number, destroyed or not; NULL: none was made. The table is not read before
 * something is in it: see make_arena. */
INLINE struct arena *arena_of_number(size_t index)
{
    return index < arenas_end() ? __atomic_load_n(&arenas[index], __ATOMIC_ACQUIRE) : NULL;
}
/* The same, but NULL for a destroyed one. */
INLINE struct arena *made_arena_at(size_t index)
{
    struct arena *arena = arena_of_number(index);

    return arena != NULL && !RELAXED_LOAD(arena->is_destroyed) ? arena : NULL;
}
/* The first arena of this number or a higher one; NULL: there is none. */
INLINE struct arena *arena_from(unsigned index)
{
    struct arena *arena = NULL;

    while (arena == NULL && index < arenas_end())
        arena = __atomic_load_n(&arenas[index++], __ATOMIC_ACQUIRE);
    return arena;
}
#define EACH_ARENA(arena) \
    for (struct arena *arena = arena_from(0); arena != NULL; arena = arena_from((arena)->index + 1))

/* The arena with this number, made if it is not there yet. NULL: no memory. */
struct arena *arena_at(unsigned index);
/* A manual arena. The process has started. NULL: no memory, or no number is left. */
struct arena *arena_create(void);
/* The arena that a thread fills from, locked. `last`: where it filled last time, or NULL. NULL: no
 * memory. */
struct arena *arena_choose(struct arena *last);
/* The arena that a thread moves to when it fills from none yet (NULL), or its page heap is held;
 * not locked. NULL: no memory. */
struct arena *arena_for_move(const struct arena *last);
/* An automatic arena without hooks, locked: for what hooks themselves take. NULL: no memory, or all
 * have some. */
struct arena *arena_choose_unhooked(void);

/* For fork and for walks: the lock of the set of arenas; and every arena's, in the order of their
 * numbers, or the reverse one. Who takes them holds making_lock until they are given, so that both
 * see the same arenas; who looks at them need not. */
extern PRIVATE struct lock making_lock;
void arenas_each_lock(void (*visit)(struct lock *lock), enum lock_walk walk);
/* Under those locks. */
void arenas_check(void);

#endif
