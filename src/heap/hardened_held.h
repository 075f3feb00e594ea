/* hardened_held.h - hardened blocks that the program holds: what they have, and whether it is
 * whole.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_HARDENED_HELD_H
#define PRAIRIE_HEAP_HARDENED_HELD_H

#include "hardened.h"

#include "../base/fatal.h"

/* The mark of a small block of that slab, whose class has that shape. Aborts as hardened_check. */
uint64_t hardened_check_small(enum misused_call call, const char *block, const struct slab *slab,
                              const struct slab_shape *shape);

/* Below, `page` is that of an address of kind POINTER_HARDENED. */

/* The bytes that were asked for, and the door, of a block that was looked at. */
size_t hardened_size(const void *block, uint32_t page);
enum hardened_door hardened_door_of(const void *block, uint32_t page);
/* The bytes that were asked for. Aborts as hardened_check. */
size_t hardened_bytes(enum misused_call call, const void *block, uint32_t page);
/* The same where a block would begin, but perhaps none does: 0 if the program holds none there.
 * Aborts if its mark was written to. */
size_t hardened_held_bytes(const void *block, uint32_t page);
/* Aborts unless it is a block that the program holds, whose mark, canaries and neighbour's mark are
 * whole. Returns its door. */
enum hardened_door hardened_check(enum misused_call call, const void *block, uint32_t page);
INLINE void hardened_expect_same(const void *block, enum hardened_door door,
                                 enum hardened_door wanted)
{
    if (unlikely(door != wanted)) fatal_address("allocation and free do not match", block);
}
/* In place: the same block, which was looked at, with another size. False: not where it is, or, if
 * it may move, rather in another place, as a sample; nothing happened. What it gains reads as zero,
 * or, where that is not asked for, as the options have it (guard/fill.h). */
bool hardened_resize(void *block, uint32_t page, size_t size, bool zero, bool may_move);
/* The thread's totals: a block has another size where it is. */
void hardened_count_in_place(size_t old_size, size_t size);
/* In a hardened process: aborts if a block is freed with another size than it has. */
INLINE void hardened_expect_told(const void *block, size_t size, size_t align)
{
    if (unlikely(hardening.is_on)) misuse_check_told_size(block, size, align);
}
/* A block that comes out of, or back through, another door than malloc and free. Nothing else is
 * done, and nothing at all to a block that is not hardened. */
void hardened_set_door(void *block, enum hardened_door door);
void hardened_check_door(void *block, enum hardened_door door);

#endif
