/* run_fence.h - pages behind large runs that nobody may touch.
 *
 * A large run that is leased of pages nobody has touched yet, longer than what threads keep, has a
 * fence behind it while the next page is such a one too: the kernel's guard, in a used run of one
 * page. Only where huge pages are not wanted, for it breaks one.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGE_HEAP_RUN_FENCE_H
#define PRAIRIE_PAGE_HEAP_RUN_FENCE_H

#include "page_heap.h"

/* Of a lease of which nobody else knows yet, of untouched pages: builds one where it may have it.
 * Under no lock, for the kernel takes its time. */
void run_fence(uint32_t page, size_t pages, enum page_state state);
/* Before a large run is returned or resized: takes the fence away, if there is one. */
void run_take_fence_away(uint32_t page);
/* From now on there are no new ones. */
void run_fences_off(void);

#endif
