/* magazine.h - a small array of ready blocks: taking is a pop, putting is a push.
 *
 *      loaded   slot 0    1     2     3    ...   capacity
 *             | NULL  | block | block |     |  ...       |
 *                               ^top                 ^limit
 *
 * M1  slot 0 holds NULL, so taking needs no bounds check: an empty magazine hands out NULL
 * M2  top <= limit; top == limit means full
 * M3  a slot above 0 may hold NULL, put there by a sized delete of NULL; whoever meets one drops it
 * A magazine that its owner has not got yet has top == limit == a slot of NULL: nothing to take and
 * no room. Belongs to one thread; nobody else reads or writes it, except the statistics, which read
 * both words, one after the other.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_ARENAS_MAGAZINE_H
#define PRAIRIE_ARENAS_MAGAZINE_H

#include "../base/constants.h"
#include "../slabs/size_class.h"

struct magazine {
    void **top;   /* owner thread; the highest block, or slot 0 */
    void **limit; /* owner thread */
};

INLINE void *magazine_take(struct magazine *magazine)
{
    void *block = *magazine->top;

    if (likely(block != NULL)) magazine->top--;
    return block;
}

/* False: it is full. The block is written before top moves. */
INLINE bool magazine_put(struct magazine *magazine, void *block)
{
    void **top = magazine->top;

    if (unlikely(top == magazine->limit)) return false;
    top[1] = block;
    magazine->top = top + 1;
    return true;
}

enum { MAGAZINE_LOOKS = 15 };

/* Is the block one of so many below and at `top`? */
INLINE bool slots_have(void *const *top, unsigned count, const void *block)
{
    for (void *const *end = top - count; top != end; top--)
        if (unlikely(*top == block)) return true;
    return false;
}

/* Is the block among the last so many that came back? `looks` is a constant, 16 at most. */
INLINE bool magazine_has_lately(const struct magazine *magazine, const void *block, unsigned looks)
{
#pragma GCC unroll 16
    for (unsigned i = 0; i < looks; i++) {
        const void *held = magazine->top[-(ptrdiff_t)i];

        if (unlikely(held == block)) return true;
        if (held == NULL) return false; /* slot 0, or M3 */
    }
    return false;
}

/* Blocks of a full-size magazine of the class; the same for all threads. */
INLINE unsigned magazine_capacity(unsigned class_index)
{
    size_t by_bytes = MAGAZINE_BYTES_MAX / class_bytes[class_index];

    if (by_bytes < 2) return 2;
    return by_bytes < MAGAZINE_BLOCKS_MAX ? (unsigned)by_bytes : MAGAZINE_BLOCKS_MAX;
}
INLINE size_t magazine_bytes(unsigned capacity) { return (capacity + 1) * sizeof(void *); }

/* Aborts when slots[1] to slots[count] have a block twice, or what can be no block of the class by
 * the lowest bits of its address: the slabs' records are not looked at. */
void magazine_expect_blocks(unsigned class_index, void *const *slots, unsigned count);

#endif
