/* magazine.c - looking through the blocks of a magazine that comes from elsewhere.
 * SPDX-License-Identifier: MIT
 */
#include "arena.h"

#include "../base/fatal.h"

/* Four slots for each block of the fullest magazine: one in nine finds its own taken. */
enum { TABLE_SLOTS_LOG2 = 9, TABLE_SLOTS = 1 << TABLE_SLOTS_LOG2 };
_Static_assert(MAGAZINE_BLOCKS_MAX <= UINT8_MAX, "a byte names a slot");

INLINE unsigned slot_of(const void *block)
{
    return (unsigned)((uintptr_t)block * (uintptr_t)0x9e3779b97f4a7c15u
                      >> (SIZE_BITS - TABLE_SLOTS_LOG2));
}

/* Bits that are clear in the address of each block of the class, for slabs begin where pages do. */
INLINE uintptr_t bits_below_block(unsigned class_index)
{
    size_t bytes = class_bytes[class_index];

    return min_size(bytes & (0 - bytes), page_bytes()) - 1;
}

/* Not worth the slabs' records of all blocks, which may be nowhere near: those are looked at when
 * they get them back. */
void magazine_expect_blocks(unsigned class_index, void *const *slots, unsigned count)
{
    uint8_t table[TABLE_SLOTS] = { 0 }; /* numbers in `slots` */
    uintptr_t bits = 0;

    for (unsigned i = 1; i <= count; i++) {
        void *block = slots[i];
        unsigned at = slot_of(block);

        bits |= (uintptr_t)block;
        for (; unlikely(table[at] != 0); at = (at + 1) % TABLE_SLOTS) {
            if (likely(slots[table[at]] != block)) continue;
            if (block != NULL) fatal_address("double free", block);
            break; /* M3 */
        }
        table[at] = (uint8_t)i;
    }
    if (likely((bits & bits_below_block(class_index)) == 0)) return;
    for (unsigned i = 1; i <= count; i++) arena_expect_block(class_index, slots[i]);
}
