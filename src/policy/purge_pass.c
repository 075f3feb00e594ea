/* purge_pass.c - the runs of a page heap that go back in one pass.
 * SPDX-License-Identifier: MIT
 */
#include "purge_pass.h"

enum { PUT_OFF_SHARE = 8 };

void purge_count_calls(struct page_heap *heap, size_t calls, size_t purged_pages)
{
    purge_of(heap)->calls += calls;
    purge_of(heap)->purged_pages += purged_pages;
}

/* Of a run on its way that the kernel would not take in one piece: one page that is locked is
 * enough for that. Gives back one half or the other, as long as one of them is taken. Returns the
 * first page of what is left. */
static uint32_t purge_halves(struct purge_pass *pass, uint32_t page)
{
    size_t pages = page_record(page)->run_pages, unit = huge_pages_each();
    size_t least = max_size(unit, pages_for(PURGE_WORTH_BYTES));

    while (pages >= 2 * least && run_is_in_flight(page)) {
        size_t front = round_down(pages / 2, unit), end = pages - front;
        bool takes_front = os_purge(page_range(page, front));
        uint32_t second;

        pass->calls += takes_front ? 1 : 2;
        if (!takes_front && !os_purge(page_range(page + (uint32_t)front, end))) break;
        second = run_split_in_flight(page, front);
        if (second == 0) break;
        run_put_free(takes_front ? page : second, PAGE_CLEAN);
        pass->purged += takes_front ? front : end;
        pages = takes_front ? end : front;
        if (takes_front) page = second;
    }
    return page;
}

/* Of a run on its way, and puts it back. False: the kernel would take nothing of it, and it is on
 * its way still. */
static bool purge_run(struct purge_pass *pass, uint32_t page)
{
    size_t pages = page_record(page)->run_pages, purged = pass->purged;

    pass->calls++;
    if (os_purge(page_range(page, pages))) {
        run_put_free(page, PAGE_CLEAN);
        pass->purged += pages;
        return true;
    }
    page = purge_halves(pass, page);
    if (pass->purged == purged) return false;
    run_put_free(page, PAGE_DIRTY);
    return true;
}

void purge_runs(struct purge_pass *pass, size_t run_min, size_t run_max)
{
    unsigned refusals_max = pass->refusal_count + PURGE_REFUSALS_MAX;
    size_t cut_at = run_max, left;

    while ((left = purge_left(pass)) >= run_min && pass->refusal_count < refusals_max
           && !purge_is_stopped(pass->stop)) {
        uint32_t page = run_take_dirty(pass->heap, run_min, min_size(left, cut_at));
        bool is_part;

        if (page == 0) return;
        is_part = cut_at == run_max && page_record(page)->run_pages == run_max;
        cut_at = run_max;
        if (purge_run(pass, page)) continue;
        if (is_part) {
            run_put_free(page, PAGE_DIRTY);
            cut_at = SIZE_MAX;
        } else {
            pass->refused_pages += page_record(page)->run_pages;
            pass->refused[pass->refusal_count++] = page;
        }
    }
}

void purge_raise_trigger(struct page_heap *heap)
{
    size_t dirty = heap->free_pages[FREE_DIRTY];

    RELAXED_STORE(heap->trigger_pages,
                  dirty + max_size(dirty / PUT_OFF_SHARE, pages_for(PURGE_KEEP_BYTES)));
}

size_t purge_end_pass(const struct purge_pass *pass)
{
    struct page_heap *heap = pass->heap;
    struct purge *own = purge_of(heap);

    for (unsigned i = 0; i < pass->refusal_count; i++) run_put_free(pass->refused[i], PAGE_DIRTY);
    lock_take(&heap->lock);
    purge_count_calls(heap, pass->calls, pass->purged);
    if (pass->calls != 0) own->took_nothing = pass->purged == 0;
    if (pass->refusal_count != 0) purge_raise_trigger(heap);
    lock_give(&heap->lock);
    return pass->purged;
}
