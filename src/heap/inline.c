/* inline.c - what the public header inline.h says of sizes and magazines is what is so here.
 *
 * It makes no code. A change that a row here refuses is another layout: the two names that end in
 * its number (os/elf_slot.c, slabs/size_class.c) get the next one, here and in the header.
 * SPDX-License-Identifier: MIT
 */
#include "doors.h"

#include "../../include/prairie/inline.h"

#include "../cache/front.h"

_Static_assert(offsetof(struct front, magazine) == 0, "the word is that of the first magazine");
_Static_assert(sizeof(struct magazine) == 2 * sizeof(void *), "two words for each class");
_Static_assert(offsetof(struct magazine, top) == 0, "the first of them is moved");
_Static_assert(offsetof(struct magazine, limit) == sizeof(void *), "the other one bounds it");
_Static_assert(OFFSET_PER_CLASS == 2, "offsets count words");
_Static_assert(PRAIRIE_INLINE_BYTES_MAX == TABLE_BYTES_MAX, "a table tells where a block goes");

/* Of each row of sizes the least and the most have its class, or its place is no place. With
 * another list of size classes nothing is inlined. */
#undef SIZES
#define SIZES(least, most, class_index)                             \
    [CLASS_QUANTUM != 16                                            \
                || (PRAIRIE_INLINE_CLASS(least) == (class_index)    \
                    && PRAIRIE_INLINE_CLASS(most) == (class_index)) \
            ? (class_index)                                         \
            : -1] = 0
static const char inline_classes[CLASS_COUNT] __attribute__((unused)) = { CLASS_OFFSETS_LIST };
