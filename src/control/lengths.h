/* lengths.h - sizes in the words of the control tree, and large blocks and free runs of pages
 * counted by length.
 *
 * A bin is a class of blocks below SMALL_BYTES_MAX; an lextent is a step of four to a doubling, by
 * which large blocks, which are whole pages, are counted. Free runs have three steps more, before
 * those: one, two and three pages.
 * Nobody keeps these counts: they come of a walk over all runs, or over a manual arena's large
 * blocks. Free pages and the large blocks of automatic arenas are of no arena, so that the first
 * one has them.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CONTROL_LENGTHS_H
#define PRAIRIE_CONTROL_LENGTHS_H

#include "../slabs/slab.h"

/* The alignment of all but the smallest blocks. */
#define QUANTUM_BYTES ((size_t)CLASS_QUANTUM)

enum { BIN_CLASS_COUNT = CLASS_COUNT - 1 };

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
INLINE unsigned lextent_count(void)
{
    return (SIZE_BITS - 2 - highest_bit(lextent_first_bytes())) * 4 + 4;
}
/* The first step that a block of this many bytes fits. */
INLINE unsigned lextent_of(size_t bytes)
{
    unsigned index = 0;

    while (lextent_bytes(index) < bytes) index++;
    return index;
}

/* Steps beyond the last one here are longer than any run. */
enum { SHORT_STEPS = 3, STEPS_MAX = 40 * 4 };

struct lengths {
    /* By the steps of large blocks alone: the first that the block fits. */
    uint32_t large[STEPS_MAX];
    uint32_t dirty[STEPS_MAX], clean[STEPS_MAX]; /* by all steps: the last that is not longer */
    uint64_t dirty_pages[STEPS_MAX], clean_pages[STEPS_MAX];
};

/* As many as there are names for. */
INLINE unsigned step_count(void) { return lextent_count() + SHORT_STEPS; }

INLINE size_t step_bytes(unsigned step)
{
    return step < SHORT_STEPS ? (step + 1) * page_bytes() : lextent_bytes(step - SHORT_STEPS);
}
/* Of the steps before `end` the last that is not longer. */
unsigned last_step_below(size_t bytes, unsigned end);

/* Counts now, for one arena or, with CONTROL_ARENAS_ALL, for all. Takes and gives the locks of
 * arenas and of runs. */
void lengths_count(struct lengths *lengths, unsigned arena);
/* As they were counted when somebody asked for this arena's in this epoch; counted anew when
 * another arena's were asked for in between. Under control_lock. NULL: no memory. */
const struct lengths *lengths_of_epoch(uint64_t epoch, unsigned arena);

#endif
