/* run_walk.h - walks from run to run, in which others lease and return, and what they find.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGE_HEAP_RUN_WALK_H
#define PRAIRIE_PAGE_HEAP_RUN_WALK_H

#include "page_heap.h"

/* Runs for one holding of the locks: some tens of microseconds. */
enum { RUNS_PER_HOLD = 1024 };
/* As a page heap's number: the walk has not told it since the last seam. */
#define HEAP_NOT_TOLD UINT16_MAX

/* `page` began a run of the region when the locks were given. Now it may be in the middle of one,
 * or its last page: that run is left out. Where runs of two follow each other nobody can tell
 * which of their pages begin one, and all of them are. */
uint32_t run_start_from(const struct region *region, uint32_t page);
/* The number of the page heap that the run is of, as far as the walk has told it: `before` is what
 * it said of the run before. Aborts where two meet without a seam. */
uint16_t run_heap_number(const struct page *record, uint16_t before);

/* Aborts when a bin is broken. Returns how many runs there are in all of them. */
size_t run_bins_check(struct page_heap *heap);

#endif
