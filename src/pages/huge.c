/* huge.c - wishing for huge pages, and no longer.
 * SPDX-License-Identifier: MIT
 */
#include "huge.h"

#include "run.h"

struct huge huge = { .again_at = UINT64_MAX };

static struct os_range first_region(void)
{
    return (struct os_range){ space.region[0].base, space.region[0].bytes };
}

/* Narrow regions come by the dozen; with larger pages a huge one has 32 or 512 MiB. */
bool huge_is_possible(void)
{
    return huge.policy != HUGE_NEVER && !huge.barred
        && space.region[0].bytes >= HUGE_REGION_BYTES_MIN && page_bytes() == 4 * KiB;
}

static void want(void)
{
    RELAXED_STORE(huge.wanted, true);
    huge.short_pages = 0;
    huge.again_at = UINT64_MAX;
    os_want_huge_pages(first_region());
}

void huge_before_growth(size_t open_bytes)
{
    if (huge.wanted || huge.again_at != UINT64_MAX || !huge_is_possible()) return;
    if (open_bytes >= HUGE_FROM_BYTES || huge.policy == HUGE_ALWAYS) want();
}

/* What is open already was refused huge pages, and is wished them now when they are always
 * wanted. */
void huge_obey_option(enum huge_policy policy)
{
    lock_take(&page_heap.lock);
    huge.policy = policy;
    if (space.open_bytes != 0) huge_before_growth(space.open_bytes);
    lock_give(&page_heap.lock);
}

static void want_no_longer(void)
{
    RELAXED_STORE(huge.wanted, false);
    huge.again_at = page_heap.clean_leased + (HUGE_FROM_BYTES >> space.page_shift);
    os_refuse_huge_pages(first_region());
}

void huge_bar(bool barred)
{
    huge.barred = barred;
    if (barred && huge.wanted) want_no_longer();
}

void huge_want_again(void)
{
    huge.again_at = UINT64_MAX;
    if (huge.barred) huge.again_at = page_heap.clean_leased + (HUGE_FROM_BYTES >> space.page_shift);
    else if (page_heap_used_pages() >= HUGE_FROM_BYTES >> space.page_shift) want();
}

void huge_before_purge(size_t pages)
{
    if (!huge.wanted || huge.policy == HUGE_ALWAYS || pages >= huge_pages_each()) return;
    huge.short_pages += pages;
    if (huge.short_pages < HUGE_FROM_BYTES >> space.page_shift
        || huge.short_pages < page_heap_used_pages() / HUGE_SHORT_SHARE)
        return;
    want_no_longer();
}
