/* lengths.h - large blocks and free runs of pages, counted by length.
 *
 * Lengths are in steps: one, two and three pages, then those of large blocks (control_classes.h).
 * Nobody keeps these counts: they come of a walk over all runs, or over a manual arena's large
 * blocks. Free pages and the large blocks of automatic arenas are of no arena, so that the first
 * one has them.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_FACE_LENGTHS_H
#define PRAIRIE_FACE_LENGTHS_H

#include "../view/snapshot.h"
#include "control_classes.h"

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
/* As they were when somebody first asked for this arena's after the epoch began. Under
 * control_lock. NULL: no memory. */
const struct lengths *lengths_of_epoch(uint64_t epoch, unsigned arena);

#endif
