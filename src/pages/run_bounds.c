/* run_bounds.c - how many pages are in use, and whether clean ones may be leased.
 *
 * The same for every page heap (lab/runs has others).
 * SPDX-License-Identifier: MIT
 */
#include "run.h"

#include "limits.h"

size_t page_heap_used_pages_now(void)
{
    size_t pages;

    lock_take(&page_heap.lock);
    pages = page_heap_used_pages();
    lock_give(&page_heap.lock);
    return pages;
}

static void ask_before_lease(void)
{
    bool asks = RELAXED_LOAD(page_heap.clean_is_barred) || RELAXED_LOAD(page_heap.clean_is_limited);

    RELAXED_STORE(space.lease_pages_max, asks ? 0 : space.page_count_max);
}

void page_heap_bar_clean(bool barred)
{
    lock_take(&page_heap.lock);
    RELAXED_STORE(page_heap.clean_is_barred, barred);
    ask_before_lease();
    lock_give(&page_heap.lock);
}

void page_heap_limit_clean(bool limited)
{
    lock_take(&page_heap.lock);
    RELAXED_STORE(page_heap.clean_is_limited, limited);
    ask_before_lease();
    lock_give(&page_heap.lock);
}

/* Their records count as well. */
bool page_heap_may_take_clean(size_t pages)
{
    if (pages == 0 || likely(RELAXED_LOAD(space.lease_pages_max) != 0)) return true;
    return !page_heap_is_barred() && limits_allow(pages * (page_bytes() + sizeof(struct page)));
}
