/* control_classes.h - size classes in the words of the control tree: bins, and the steps of large
 * blocks.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_FACE_CONTROL_CLASSES_H
#define PRAIRIE_FACE_CONTROL_CLASSES_H

#include "../slabs/slab.h"

/* The alignment of all but the smallest blocks. */
#define QUANTUM_BYTES ((size_t)CLASS_QUANTUM)

enum { BIN_CLASS_COUNT = CLASS_COUNT - 1, ARENA_NAME_ROOM = 32 };

INLINE unsigned bin_class(size_t bin) { return (unsigned)bin + 1; }

/* What one entry of the last level but one of the page tables maps. */
INLINE size_t huge_page_bytes(void) { return page_bytes() / sizeof(uint64_t) * page_bytes(); }

/* Steps of large sizes: four to a doubling, the first four pages long or just above small
 * blocks. */
INLINE size_t lextent_first_bytes(void) { return max_size(4 * page_bytes(), 16 * KiB); }
INLINE size_t lextent_bytes(unsigned index)
{
    return (lextent_first_bytes() / 4 * (4 + index % 4)) << (index / 4);
}
INLINE unsigned lextent_count(void) { return (62 - highest_bit(lextent_first_bytes())) * 4 + 4; }
/* The first step that a block of this many bytes fits. */
INLINE unsigned lextent_of(size_t bytes)
{
    unsigned index = 0;

    while (lextent_bytes(index) < bytes) index++;
    return index;
}

/* Writes the arena's name, at most ARENA_NAME_ROOM bytes with its NUL. Under control_lock. */
void arena_name_copy(unsigned index, char *name);

#endif
