/* huge.c - wishing for huge pages, and no longer.
 * SPDX-License-Identifier: MIT
 */
#include "page_heap.h"

static size_t from_pages(void) { return HUGE_FROM_BYTES >> space.page_shift; }

/* Narrow regions come by the dozen; with larger pages a huge one has 32 or 512 MiB. */
bool huge_is_possible(const struct page_heap *heap)
{
    return heap->huge.policy != HUGE_NEVER && !heap->huge.barred
        && space.region[0].bytes >= HUGE_REGION_BYTES_MIN && page_bytes() == 4 * KiB;
}

static void want(struct page_heap *heap, bool wanted)
{
    RELAXED_STORE(heap->huge.wanted, wanted);
    heap->huge.short_pages = 0;
    heap->huge.again_at = wanted ? UINT64_MAX : heap->clean_leased + from_pages();
    os_wish_huge_pages((struct os_range){ space.region[0].base, space.region[0].bytes }, wanted);
}

void huge_before_growth(struct page_heap *heap, size_t open_bytes)
{
    if (heap->huge.wanted || heap->huge.again_at != UINT64_MAX || !huge_is_possible(heap)) return;
    if (open_bytes >= HUGE_FROM_BYTES || heap->huge.policy == HUGE_ALWAYS) want(heap, true);
}

void huge_obey_option(struct page_heap *heap, enum huge_policy policy)
{
    heap->huge.policy = policy;
    if (space.open_bytes != 0) huge_before_growth(heap, space.open_bytes);
}

void huge_bar(struct page_heap *heap, bool barred)
{
    heap->huge.barred = barred;
    if (barred && heap->huge.wanted) want(heap, false);
}

COLD NOINLINE void huge_want_again(struct page_heap *heap)
{
    heap->huge.again_at = heap->huge.barred ? heap->clean_leased + from_pages() : UINT64_MAX;
    if (!heap->huge.barred && page_heap_used_pages(heap) >= from_pages()) want(heap, true);
}

void huge_before_purge(struct page_heap *heap, size_t pages)
{
    struct huge *huge = &heap->huge;

    if (!huge->wanted || huge->policy == HUGE_ALWAYS || pages >= huge_pages_each(huge)) return;
    huge->short_pages += pages;
    if (huge->short_pages >= from_pages()
        && huge->short_pages >= page_heap_used_pages(heap) / HUGE_SHORT_SHARE)
        want(heap, false);
}
