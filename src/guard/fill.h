/* fill.h - blocks filled with a pattern when they are given out or taken back: the options junk and
 * zero.
 *
 * The fast path knows nothing of it: while one of them is set no thread holds blocks, so that every
 * small one passes the slow ends where these are called. Large blocks are filled when they are
 * given out, and so is what they gain.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_GUARD_FILL_H
#define PRAIRIE_GUARD_FILL_H

#include "../base/attrs.h"

/* Takes the options in; before main. */
void fill_start(void);
bool fill_is_wanted(void);
/* Are blocks given out as zeros? */
bool fill_clears(void);
/* Returns its argument; NULL is not filled. */
void *fill_taken(void *block, size_t bytes);
void fill_given(void *block, size_t bytes);

#endif
