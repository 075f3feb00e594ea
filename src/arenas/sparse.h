/* sparse.h - pages of slabs on which no block lives: those go back to the kernel, too.
 *
 * A program that shrinks leaves a block here and there, and each holds its slab open. What no block
 * has a part of is of no use while nobody takes from that slab. So the background thread walks over
 * the slabs of classes that are free by a quarter or more, three times in dirty_decay_ms: the first
 * walk marks a slab as idle, whoever takes a block from it takes the mark away, and the next walk
 * gives the pages back. A page that a later block lies on is touched anew.
 *
 * Near the end of a control group all of them go at once (heap/shortage.c), and by malloc_trim.
 *
 * Not where the kernel would charge for that, or would split its mapping (OS_PURGES_IN_PLACE).
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_ARENAS_SPARSE_H
#define PRAIRIE_ARENAS_SPARSE_H

#include "arena.h"

struct sparse {
    const struct arena *over; /* atomic: the arena that is walked over; NULL: none */
    uint32_t next;            /* atomic: the slab that the walk visits next, by its number; 0: none.
                                 Who has its arena's lock moves it on */
    uint32_t walking;         /* atomic, exchanged: somebody walks */
    bool told;                /* atomic: a program that has shrunk gave blocks back since the last
                                 look */
    bool pending;             /* atomic: the last look left something for the next one */
};

extern PRIVATE struct sparse sparse_slabs;

/* The uncommon part of sparse_unlist. */
COLD void sparse_move_on(uint32_t number, uint32_t next);
/* A slab leaves its list, under its arena's lock: a walk that comes to it goes on behind it. */
INLINE void sparse_unlist(uint32_t number, uint32_t next)
{
    if (unlikely(RELAXED_LOAD(sparse_slabs.next) == number)) sparse_move_on(number, next);
}

/* Few blocks of the class are out, and they hold many slabs open. Under the arena's lock. */
INLINE bool slabs_are_sparse(const struct class_bin *bin, unsigned class_index)
{
    uint64_t all = bin_blocks(bin, class_index);

    return bin->slab_count > 4 && (all - bin->slab_free_blocks) * 4 < all;
}

/* A slab with marks in `purged` is about to be filled from, or closed (its run counts as dirty
 * then). Under its arena's lock. */
COLD void sparse_retake(struct arena *arena, const struct slab *slab);

/* The uncommon part of sparse_note_drain. */
NOINLINE void sparse_tell(const struct class_bin *bin, unsigned class_index);
/* Blocks went back into slabs of the class, under the arena's lock. When that is worth it, asks for
 * somebody who looks in the background (decay_after_return). */
INLINE void sparse_note_drain(const struct class_bin *bin, unsigned class_index)
{
    if (unlikely(bin->slab_free_blocks * class_bytes[class_index] >= RECLAIM_BYTES_MIN))
        sparse_tell(bin, class_index);
}
/* Is it this arena whose slabs are walked over, as of a moment ago? */
INLINE bool sparse_walks_over(const struct arena *arena)
{
    return RELAXED_LOAD(sparse_slabs.over) == arena;
}
/* Does anything wait for the next look? */
INLINE bool sparse_is_pending(void)
{
    return RELAXED_LOAD(sparse_slabs.told) || RELAXED_LOAD(sparse_slabs.pending);
}

/* There is no background thread, and who saw that says so: the next blocks that come back ask
 * anew. */
void sparse_forget_signs(void);

/* One of the background thread's looks, of which some walk; until *stop, which is atomic, is not 0.
 * `waits`: for arenas' locks; else it does without an arena whose lock is taken, and holds no other
 * lock. True: there was something, and the next look is worth a thread. */
NOINLINE bool sparse_look(const uint32_t *stop, bool waits);
/* Gives back all such pages at once, marked or not; waits a moment for who is about it already.
 * Returns bytes. Called without a lock. */
size_t sparse_purge_all(void);
/* In the child of a fork: who walked is not there. */
void sparse_forget_others(void);

#endif
