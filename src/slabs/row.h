/* row.h - blocks that lie equally far from each other.
 * SPDX-License-Identifier: MIT
 *
 * What a program frees in the order in which it took it lies in rows, upwards or downwards.
 */
#ifndef PRAIRIE_SLABS_ROW_H
#define PRAIRIE_SLABS_ROW_H

#include "../base/attrs.h"

/* How many blocks of `most`, the first included, lie `step` bytes behind the one before. 3
 * instructions for a block. */
INLINE unsigned row_blocks(void *const *at, unsigned most, uintptr_t step)
{
    void *const *slot = at + 1, *const *end = at + most;
    uintptr_t next = (uintptr_t)at[0] + step;

    for (; end - slot >= 4; slot += 4, next += 4 * step)
        if ((uintptr_t)slot[0] != next || (uintptr_t)slot[1] != next + step
            || (uintptr_t)slot[2] != next + 2 * step || (uintptr_t)slot[3] != next + 3 * step)
            break;
    for (; slot != end && (uintptr_t)*slot == next; slot++) next += step;
    return (unsigned)(slot - at);
}

#endif
