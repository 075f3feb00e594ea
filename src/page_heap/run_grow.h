/* run_grow.h - leases that no free run serves alone: dirty and clean neighbours together, else more
 * of the region.
 *
 * Only for the files of the page heap, under its lock.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGE_HEAP_RUN_GROW_H
#define PRAIRIE_PAGE_HEAP_RUN_GROW_H

#include "run_find.h"

/* May so many pages be taken from a hole on? What is not dirty in it is clean, and so is what would
 * be opened behind it. */
bool run_may_take_hole(struct page_heap *heap, struct hole hole, size_t pages);
/* Takes the free pages from page + at to page + pages into a used run that begins at `page`, one
 * free run after the other. True: all of them read as zero. */
bool run_take_hole(struct page_heap *heap, uint32_t page, size_t at, size_t pages,
                   enum page_state state);
/* A hole of at least `pages` that may be taken, else one whose end was opened for it; fewer pages:
 * there is none. A page heap that only `stands_in` for the one that the lease is for opens pages
 * only behind free ones of its own: whole growth was refused there already. */
COLD struct hole run_find_hole_or_grow(struct page_heap *heap, size_t pages, bool stands_in);
/* A used run at a multiple of align_pages, out of one free run. page == 0: no memory. */
COLD struct run run_take_aligned_or_grow(struct page_heap *heap, size_t pages, size_t align_pages,
                                         enum page_state state);

#endif
