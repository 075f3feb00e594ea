/* run_bounds.c - how many pages are in use, and whether clean ones may be leased.
 *
 * The same for every keeper of runs (lab/runs has others).
 * SPDX-License-Identifier: MIT
 */
#include "run.h"

#include "ceiling.h"

size_t run_used_pages_now(void)
{
    size_t pages;

    lock_take(&keeper.lock);
    pages = run_used_pages();
    lock_give(&keeper.lock);
    return pages;
}

static void ask_before_lease(void)
{
    bool asks = RELAXED_LOAD(keeper.clean_is_barred) || RELAXED_LOAD(keeper.clean_is_limited);

    RELAXED_STORE(plain.lease_pages_max, asks ? 0 : plain.page_count_max);
}

void runs_bar_clean(bool barred)
{
    lock_take(&keeper.lock);
    RELAXED_STORE(keeper.clean_is_barred, barred);
    ask_before_lease();
    lock_give(&keeper.lock);
}

void runs_limit_clean(bool limited)
{
    lock_take(&keeper.lock);
    RELAXED_STORE(keeper.clean_is_limited, limited);
    ask_before_lease();
    lock_give(&keeper.lock);
}

/* Their records count as well. */
bool runs_may_take_clean(size_t pages)
{
    if (pages == 0 || likely(RELAXED_LOAD(plain.lease_pages_max) != 0)) return true;
    return !runs_are_barred() && ceiling_allows(pages * (page_bytes() + sizeof(struct page)));
}
