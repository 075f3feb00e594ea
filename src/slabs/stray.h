/* stray.h - guarded blocks that came into magazines.
 *
 * A guarded block (guard/guarded.h) lies in no slab. A sized free that does not look at the address
 * puts it into a magazine all the same, from where it may be given out again like any block of its
 * class. When magazines are drained it is a stray: here it is noted, until the pool fetches it.
 *
 *      first | guard | cell 0 | guard | cell 1 | guard | ...        a page each
 *
 * Anybody may call any of these at any time; nothing takes a lock.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SLABS_STRAY_H
#define PRAIRIE_SLABS_STRAY_H

#include "../space/space.h"

enum { STRAYS_MAX = 256 };

extern PRIVATE struct strays {
    char *first;                     /* atomic: published last; NULL: there is no pool */
    size_t bytes;                    /* constant once published */
    void *block[STRAYS_MAX];         /* atomic: that the cell has; NULL: none is out */
    uint8_t class_index[STRAYS_MAX]; /* atomic: of that block */
    /* Atomic: a bit for each cell whose block was drained. */
    ON_ONE_LINE uint64_t came[STRAYS_MAX / 64];
} strays;

/* Does the address lie in the pool? */
INLINE bool stray_pool_has(const void *address)
{
    const char *first = __atomic_load_n(&strays.first, __ATOMIC_ACQUIRE);

    return first != NULL && (uintptr_t)address - (uintptr_t)first < strays.bytes;
}

/* The page of the pool that an address in it lies in; those of cells are odd. */
INLINE size_t stray_page_of(const void *address)
{
    return ((uintptr_t)address - (uintptr_t)strays.first) >> space.page_shift;
}

/* The class of the guarded block that is out and begins there; 0: none does. */
unsigned stray_class(const void *pointer);
/* Notes it. False: it is none, or it was noted already. */
bool stray_put(const void *block, unsigned class_index);
/* Whether the cell's block was noted; it no longer is. */
bool stray_fetch(unsigned cell);

#endif
