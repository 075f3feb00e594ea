/* page_heaps.h - what the tests of several page heaps share. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_UNIT_PAGE_HEAPS_H
#define PRAIRIE_TEST_UNIT_PAGE_HEAPS_H

#include "pages.h"

_Static_assert(PAGE_HEAPS == 4, "what these tests know");

enum { RUN_PAGES = 40, RUN_COUNT = 12 };

static inline void start_heaps(void)
{
    start_pages();
    (void)page_heap_for(PAGE_HEAPS - 1, PAGE_HEAPS);
}

static inline uint32_t lease_of(unsigned arena_index, size_t pages, enum page_state state)
{
    struct page_heap *heap = page_heap_for(arena_index, PAGE_HEAPS);

    return run_lease_for(pages, 1, purpose_of(heap, state)).page;
}

static inline uint32_t lease_from(unsigned arena_index, size_t pages)
{
    uint32_t page = lease_of(arena_index, pages, PAGE_USED);

    assert_int_not_equal(page, 0);
    check_runs();
    return page;
}

static inline size_t all_dirty(void) { return page_heaps_free_now(FREE_DIRTY); }

#endif
