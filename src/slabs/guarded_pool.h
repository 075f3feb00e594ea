/* guarded_pool.h - where guarded blocks lie, and those of them that came into magazines.
 *
 * A guarded block lies in no slab. A sized free that does not look at the address puts it into a
 * magazine all the same, from where it may be given out again like any block of its class. When
 * magazines are drained it is a stray: here it is noted, until guard/guarded.c fetches it, which
 * writes all else.
 *
 *      first | guard | cell 0 | guard | cell 1 | guard | ...        a page each
 *
 * Anybody may call any of these at any time; nothing takes a lock.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SLABS_GUARDED_POOL_H
#define PRAIRIE_SLABS_GUARDED_POOL_H

#include "../space/space.h"

enum { GUARDED_CELLS_MAX = 256 };

extern PRIVATE struct guarded_pool {
    char *first;                            /* atomic: published last; NULL: there is no pool */
    size_t bytes;                           /* constant once published */
    void *block[GUARDED_CELLS_MAX];         /* atomic: that the cell has; NULL: none is out */
    uint8_t class_index[GUARDED_CELLS_MAX]; /* atomic: of that block */
    /* Atomic: a bit for each cell whose block was drained. */
    ON_ONE_LINE uint64_t came[GUARDED_CELLS_MAX / 64];
} guarded_pool;

/* Does the address lie in the pool? */
INLINE bool guarded_pool_has(const void *address)
{
    const char *first = __atomic_load_n(&guarded_pool.first, __ATOMIC_ACQUIRE);

    return first != NULL && (uintptr_t)address - (uintptr_t)first < guarded_pool.bytes;
}

/* The page of the pool that an address in it lies in; those of cells are odd. */
INLINE size_t guarded_pool_page_of(const void *address)
{
    return ((uintptr_t)address - (uintptr_t)guarded_pool.first) >> space.page_shift;
}

/* The class of the guarded block that is out and begins there; 0: none does. */
unsigned guarded_pool_class(const void *pointer);
/* Notes it. False: it is none, or it was noted already. */
bool stray_put(const void *block, unsigned class_index);
/* Whether the cell's block was noted; it no longer is. */
bool stray_fetch(unsigned cell);

#endif
