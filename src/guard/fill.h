/* fill.h - blocks filled with a pattern when they are given out or taken back: the options junk and
 * zero.
 *
 * The fast path knows nothing of it: while one of them is set no thread holds blocks, so that every
 * small one passes the slow ends where these are called, and every large one. What a large block
 * gains by a change of its size is filled, what it loses is not; nor are the pages of a vast one
 * that is freed, which go back to the kernel.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_GUARD_FILL_H
#define PRAIRIE_GUARD_FILL_H

#include "../base/attrs.h"

/* Written before main. */
extern PRIVATE struct filling {
    bool is_wanted; /* any of the others */
    bool clears, junks_taken, junks_given;
} filling;

/* Takes the options in; before main. */
void fill_start(void);
INLINE bool fill_is_wanted(void) { return filling.is_wanted; }
/* Are blocks given out as zeros? */
INLINE bool fill_clears(void) { return filling.clears; }
/* Returns its argument; NULL is not filled. */
void *fill_taken(void *block, size_t bytes);
void fill_given(void *block, size_t bytes);

#endif
