/* run_resize.c - used runs become longer and shorter where they are.
 * SPDX-License-Identifier: MIT
 */
#include "run_bins.h"
#include "run_grow.h"

/* Of a run whose length may be changed, under the lock. */
INLINE enum page_state resizable_state(struct page_heap *heap, const struct page *record)
{
    check(lock_is_mine(page_heap_lock(heap)));
    check(is_used_state(record->state) || record->state == PAGE_MANUAL);
    return (enum page_state)record->state;
}

enum extended run_extend(struct page_heap *heap, uint32_t page, size_t pages)
{
    struct page *record = page_record(page);
    enum page_state state;
    size_t old_pages, missing;
    enum extended extended = EXTENDED_NOT;
    struct hole hole;

    lock_take(page_heap_lock(heap));
    state = resizable_state(heap, record);
    old_pages = record->run_pages;
    missing = pages - old_pages;
    check(pages > old_pages);
    hole = hole_after(heap, page + (uint32_t)old_pages, missing);
    if (hole.pages >= missing && run_may_take_hole(heap, hole, missing)
        && open_free(heap, hole.first, missing)) {
        (record + old_pages - 1)->state = PAGE_INSIDE;
        extended =
            run_take_hole(heap, page, old_pages, pages, state) ? EXTENDED_BY_ZEROS : EXTENDED;
        note_dirty_low(heap);
        if (state == PAGE_LARGE) heap->large_pages += missing;
    }
    lock_give(page_heap_lock(heap));
    return extended;
}

void run_trim(struct page_heap *heap, uint32_t page, size_t pages)
{
    struct page *record = page_record(page);
    enum page_state state;
    size_t old_pages;

    lock_take(page_heap_lock(heap));
    state = resizable_state(heap, record);
    old_pages = record->run_pages;
    check(pages > 0 && pages < old_pages);
    tag_run(record, pages, state, PAGE_USED);
    if (state == PAGE_LARGE) heap->large_pages -= old_pages - pages;
    make_free(heap, page + (uint32_t)pages, old_pages - pages, free_state(heap, FREE_DIRTY));
    lock_give(page_heap_lock(heap));
}
