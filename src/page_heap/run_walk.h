/* run_walk.h - walks from run to run, in which others lease and return, and what they find.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGE_HEAP_RUN_WALK_H
#define PRAIRIE_PAGE_HEAP_RUN_WALK_H

#include "page_heap.h"

/* Runs for one holding of the locks: some tens of microseconds. */
enum { RUNS_PER_HOLD = 1024 };
/* The walk has met no used run since the last seam, so it does not know the page heap. */
#define HEAP_UNKNOWN UINT16_MAX

/* Where the walk goes on: the first page at or behind `page` that surely begins a run. `page` began
 * one when the locks were given; a run that it now lies inside of, or ends, is left out. In a row
 * of runs of two pages first and last pages look alike, so the rest of such a row is left out. */
uint32_t run_start_from(const struct region *region, uint32_t page);
/* The number of the page heap that the run is of, as far as the walk has told it: `before` is what
 * it said of the run before. Aborts where two meet without a seam. */
uint16_t run_heap_number(const struct page *record, uint16_t before);

/* Aborts when a bin is broken. Returns how many runs there are in all of them. */
size_t run_bins_check(struct page_heap *heap);

#endif
