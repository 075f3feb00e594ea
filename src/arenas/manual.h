/* manual.h - arenas that a program asks for by number, and what belongs to them alone.
 *
 * A manual arena serves those who name it, or are bound to it. Its slabs are not in the class map,
 * so that a plain free takes the rare way and puts the block straight home. Each of its large
 * blocks has a record, so that all it gave out can be free at once:
 *
 *      arena -> manual_large -> manual_large ...
 *      page: PAGE_MANUAL, slab = number of its manual_large
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_ARENAS_MANUAL_H
#define PRAIRIE_ARENAS_MANUAL_H

#include "arena_hooks.h"
#include "arena_set.h"

/* All of it under the arena's lock. */
struct manual_large {
    struct arena *arena; /* constant */
    struct manual_large *next, *previous;
    struct extent *extent; /* constant: extent_of_taken */
    uint32_t page;         /* constant: the first of the block */
    /* Atomic, written by who holds the block: its record among samples; 0: it has none. */
    uint32_t sample;
};

/* NULL for an automatic one, and for NULL. */
INLINE struct arena *arena_if_manual(struct arena *arena)
{
    return arena != NULL && arena->is_manual ? arena : NULL;
}

/* It knows its large blocks: a manual one, or one with hooks. NULL for any other, and for NULL. */
INLINE struct arena *arena_if_counts_large(struct arena *arena)
{
    if (arena == NULL || arena->is_manual) return arena;
    return RELAXED_LOAD(arena->extents) != NULL ? arena : NULL;
}

/* The arena of a page in state PAGE_MANUAL; of a slab's page, when that is a manual one; else
 * NULL. */
INLINE struct arena *manual_arena_of_page(const struct page *record)
{
    struct arena *arena = NULL;

    if (record->state == PAGE_MANUAL)
        return ((struct manual_large *)meta_record(record->slab))->arena;
    if (record->class_at != 0) arena = arenas[slab_record(record->slab)->arena];
    return arena_if_manual(arena);
}

INLINE bool page_is_manual(uint32_t page) { return page_record(page)->state == PAGE_MANUAL; }
/* The same of an arena whose memory hooks supply. */
INLINE bool page_is_hooked(uint32_t page)
{
    return page_is_manual(page)
        && RELAXED_LOAD(manual_arena_of_page(page_record(page))->extents) != NULL;
}

/* Where the number of the sample of a block in state PAGE_MANUAL stands (sample/sample.h). */
INLINE uint32_t *manual_sample(uint32_t page)
{
    return &((struct manual_large *)meta_record(page_record(page)->slab))->sample;
}

/* The manual arena of this number; NULL: there is none. */
INLINE struct arena *manual_arena_at(unsigned index)
{
    return arena_if_manual(made_arena_at(index));
}

/* Below, the caller holds no lock of arenas or later. */

/* A block that was not staggered is from now on, and begins with its page; or one that begins so is
 * staggered no longer. */
void manual_set_staggered(uint32_t page, bool is_staggered);

/* A run for a large block of the arena; hooks are not asked for more. page == 0: no memory. */
struct run manual_lease(struct arena *arena, size_t pages, size_t align_pages);
void manual_return(uint32_t page);
/* Moves the end of a large block. False: no room; nothing happened. */
bool manual_resize(uint32_t page, size_t pages);

/* What arenas that were destroyed had counted. Under making_lock. */
struct past_arenas {
    uint64_t count; /* atomic: of destroyed arenas; 0: there are none, and all else is 0 */
    struct class_flow of_class[CLASS_COUNT];
    uint64_t manual_taken;
    struct lock_numbers lock;
};
extern PRIVATE struct past_arenas past_arenas;

/* Everything that the arena gave out is free, whoever holds it. */
void arena_reset(struct arena *arena);
/* The same, and the number is free, in two steps: what else knows the arena's blocks forgets them
 * between (placed_destroy). False: a thread is bound to it, or this thread is in a call of its
 * hooks, or in one of others' while another thread is in its. */
bool arena_begin_destroy(struct arena *arena);
void arena_finish_destroy(struct arena *arena);

#endif
