/* run_walk.h - every run of the address space, one after the other, for those who count.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGE_HEAP_RUN_WALK_H
#define PRAIRIE_PAGE_HEAP_RUN_WALK_H

#include "page_heap.h"

/* Calls `visit` for each run in open pages, under the page heap's lock, which is given and taken
 * again every so many runs: what changes meanwhile may be missed or counted twice. A run in a
 * large cache is a used one here, and a vast block a large one. */
void runs_visit(struct page_heap *heap,
                void (*visit)(enum page_state state, size_t pages, void *context), void *context);

#endif
