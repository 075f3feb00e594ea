/* hardened_held.h - what the ends of hardened blocks' lives ask of them.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_HARDENED_HELD_H
#define PRAIRIE_HEAP_HARDENED_HELD_H

#include "hardened.h"

#include "../base/fatal.h"

/* The mark of a small block of that slab, whose class has that shape. Aborts as hardened_check. */
uint64_t hardened_check_small(const char *verb, const char *block, const struct slab *slab,
                              const struct slab_shape *shape);

INLINE void hardened_expect_same(const void *block, enum hardened_door door,
                                 enum hardened_door wanted)
{
    if (unlikely(door != wanted)) fatal_address("allocation and free do not match", block);
}

#endif
