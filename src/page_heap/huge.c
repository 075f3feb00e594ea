/* huge.c - wishing for huge pages, and no longer.
 * SPDX-License-Identifier: MIT
 */
#include "huge.h"

static size_t from_pages(void) { return HUGE_FROM_BYTES >> space.page_shift; }

/* Narrow regions come by the dozen; with larger pages a huge one has 32 or 512 MiB. */
bool huge_is_possible(const struct huge *huge)
{
    return huge->policy != HUGE_NEVER && !huge->barred
        && space.region[0].bytes >= HUGE_REGION_BYTES_MIN && page_bytes() == 4 * KiB;
}

/* From now on they are wanted, or refused until again_at. */
static void want(struct huge *huge, bool wanted, uint64_t again_at)
{
    RELAXED_STORE(huge->wanted, wanted);
    huge->short_pages = 0;
    huge->again_at = again_at;
    os_wish_huge_pages((struct os_range){ space.region[0].base, space.region[0].bytes }, wanted);
}

void huge_before_growth(struct huge *huge, size_t open_bytes)
{
    if (huge->wanted || huge->again_at != UINT64_MAX || !huge_is_possible(huge)) return;
    if (open_bytes >= HUGE_FROM_BYTES || huge->policy == HUGE_ALWAYS) want(huge, true, UINT64_MAX);
}

void huge_obey_option(struct huge *huge, enum huge_policy policy)
{
    huge->policy = policy;
    if (space.open_bytes != 0) huge_before_growth(huge, space.open_bytes);
}

void huge_bar(struct huge *huge, bool barred, uint64_t clean_leased)
{
    huge->barred = barred;
    if (barred && huge->wanted) want(huge, false, clean_leased + from_pages());
}

void huge_want_again(struct huge *huge, uint64_t clean_leased, size_t used_pages)
{
    huge->again_at = UINT64_MAX;
    if (huge->barred) huge->again_at = clean_leased + from_pages();
    else if (used_pages >= from_pages()) want(huge, true, UINT64_MAX);
}

void huge_before_purge(struct huge *huge, size_t pages, uint64_t clean_leased, size_t used_pages)
{
    if (!huge->wanted || huge->policy == HUGE_ALWAYS || pages >= huge_pages_each(huge)) return;
    huge->short_pages += pages;
    if (huge->short_pages < from_pages() || huge->short_pages < used_pages / HUGE_SHORT_SHARE)
        return;
    want(huge, false, clean_leased + from_pages());
}
