/* huge.c - wishing for huge pages, and no longer.
 * SPDX-License-Identifier: MIT
 */
#include "page_heap.h"

struct huge huge;

/* Pages in use or dirty from which on huge pages are wanted: so many for each page heap in use, for
 * each touches its last huge page only in part. */
static READS_UNLOCKED size_t from_pages(void)
{
    size_t heaps_in_use = 1;

    for (unsigned i = 1; i < page_heap_count(); i++) heaps_in_use += page_heap[i].open_pages != 0;
    return heaps_in_use * (HUGE_FROM_BYTES >> space.page_shift);
}

/* Narrow regions come by the dozen; with larger pages a huge one has 32 or 512 MiB. */
static bool regions_may_have_them(void)
{
    return OS_HEEDS_HUGE_WISHES && RELAXED_LOAD(huge.policy) != HUGE_NEVER
        && space.region[0].bytes >= HUGE_REGION_BYTES_MIN && page_bytes() == 4 * KiB;
}

bool huge_is_possible(void) { return regions_may_have_them() && !RELAXED_LOAD(huge.barred); }

/* The wish comes again after so many more clean pages were leased from this page heap. */
static void wait_for_wish(struct page_heap *heap)
{
    size_t late = (HUGE_FROM_BYTES >> space.page_shift) << huge.backoff;

    heap->huge_again_at = heap->clean_leased + max_size(from_pages(), late);
    heap->huge_withdrawal = huge.withdrawals;
}

/* Under both locks. */
static void want(struct page_heap *heap, bool wanted)
{
    RELAXED_STORE(huge.wanted, wanted);
    RELAXED_STORE(huge.left_behind, !wanted);
    huge.withdrawn = !wanted;
    huge.short_pages = 0;
    if (wanted) {
        RELAXED_STORE(huge.until_try, 0);
        heap->huge_again_at = UINT64_MAX;
    } else {
        RELAXED_STORE(huge.withdrawals, huge.withdrawals + 1);
        wait_for_wish(heap);
    }
    os_wish_huge_pages((struct os_range){ space.region[0].base, space.region[0].bytes }, wanted);
}

void huge_before_growth(struct page_heap *heap, size_t coming)
{
    if (huge.wanted || !huge_is_possible()) return;
    if (huge.policy == HUGE_ALWAYS) {
        want(heap, true);
    } else if (huge.withdrawn) { /* perhaps while another page heap purged */
        if (heap->huge_withdrawal != huge.withdrawals) wait_for_wish(heap);
    } else {
        size_t taken = commit_taken_pages() + coming;

        if (taken >= from_pages() && taken >= (space.open_bytes >> space.page_shift) / 2)
            want(heap, true);
    }
}

/* The locks under which what is wished may change. */
static void take_locks(struct page_heap *heap)
{
    lock_take(&heap->lock);
    lock_take(&space.lock);
}
static void give_locks(struct page_heap *heap)
{
    lock_give(&space.lock);
    lock_give(&heap->lock);
}

void huge_advise_new_mapping(struct os_range range)
{
    const struct region *first = &space.region[0];

    if ((uintptr_t)range.base - (uintptr_t)first->base < first->bytes)
        os_wish_huge_pages(range, huge.wanted);
    else if (!regions_may_have_them()) os_wish_huge_pages(range, false);
}

void huge_advise_new_region(void)
{
    const struct region *region = &space.region[space.region_count - 1];

    huge_advise_new_mapping((struct os_range){ region->base, region->bytes });
}

void huge_obey_option(enum huge_policy policy)
{
    RELAXED_STORE(huge.policy, policy);
    if (__atomic_load_n(&space.region_count, __ATOMIC_ACQUIRE) == 0)
        return; /* nor are locks there */
    take_locks(page_heap);
    if (policy == HUGE_NEVER && huge.wanted) want(page_heap, false);
    if (space.open_bytes != 0) huge_before_growth(page_heap, 0);
    give_locks(page_heap);
}

void huge_bar(bool barred)
{
    take_locks(page_heap);
    RELAXED_STORE(huge.barred, barred);
    if (barred && huge.wanted) want(page_heap, false);
    give_locks(page_heap);
}

COLD NOINLINE void huge_reconsider(struct page_heap *heap)
{
    lock_take(&space.lock);
    if (huge.barred || (huge.withdrawn && heap->huge_withdrawal != huge.withdrawals)) {
        huge.withdrawn = true;
        wait_for_wish(heap);
    } else {
        heap->huge_again_at = UINT64_MAX;
        huge.withdrawn = false;
        if (!huge.wanted && huge_is_possible() && page_heaps_used_now() >= from_pages())
            want(heap, true);
    }
    lock_give(&space.lock);
}

/* So many went back in short runs, and a share of what is in use? */
INLINE bool went_short(size_t pages)
{
    return huge.wanted && huge.short_pages >= pages
        && huge.short_pages >= page_heaps_used_now() / HUGE_SHORT_SHARE;
}

/* Not worth a wait: who purges in the background may have to hold nothing while it waits. */
void huge_note_short(struct page_heap *heap, size_t pages)
{
    if (RELAXED_LOAD(huge.policy) == HUGE_ALWAYS || !lock_try(&space.lock)) return;
    huge.short_pages += pages;
    if (went_short(from_pages())) want(heap, false);
    lock_give(&space.lock);
}

bool huge_note_rest(void)
{
    struct page_heap *heap = page_heap;
    bool ends = false;

    if (!RELAXED_LOAD(huge.wanted) || RELAXED_LOAD(huge.policy) == HUGE_ALWAYS) return false;
    if (!lock_try(&heap->lock)) return false;
    if (lock_try(&space.lock)) {
        ends = went_short(pages_of_huge_page());
        if (ends) want(heap, false);
        lock_give(&space.lock);
    }
    lock_give(&heap->lock);
    return ends;
}

/* Two touches are no answer: one so short that the page was there already, and one during which the
 * wish ended, even if there is a new one. */
static void note_touch(struct page_heap *heap, uint64_t took_us, size_t withdrawals)
{
    bool is_answer;

    if (took_us < HUGE_FOUND_US) return;
    take_locks(heap);
    RELAXED_STORE(huge.until_try, max_size(HUGE_TRY_MIN, page_heaps_used_now() / HUGE_TRY_SHARE
                                                             / pages_of_huge_page()));
    is_answer = huge.wanted && huge.withdrawals == withdrawals;
    if (is_answer && took_us > HUGE_SLOW_US) {
        if (huge.backoff < HUGE_BACKOFF_MAX) huge.backoff++;
        want(heap, false);
    } else if (is_answer) {
        huge.backoff = 0;
    }
    give_locks(heap);
}

void huge_try(uint32_t page, size_t pages)
{
    size_t ahead = pages_to_alignment(page, pages_of_huge_page()), begun;
    size_t left = RELAXED_LOAD(huge.until_try), withdrawals = RELAXED_LOAD(huge.withdrawals);
    uint64_t took_us;

    if (ahead >= pages || RELAXED_LOAD(huge.policy) == HUGE_ALWAYS) return;
    begun = 1 + (pages - ahead - 1) / pages_of_huge_page();
    /* What other threads count at the same time may be lost. Set before the touch, so that they do
     * not time theirs meanwhile. */
    RELAXED_STORE(huge.until_try, left > begun ? left - begun : HUGE_TRY_MIN);
    if (left > begun) return;
    took_us = os_first_touch_us(page_address(page));
    if (took_us < HUGE_FOUND_US && ahead != 0)
        took_us = os_first_touch_us(page_address(page + (uint32_t)ahead));
    note_touch(page_heap_of(page), took_us, withdrawals);
}
