/* run_grow.c - holes are taken, and the region opens.
 * SPDX-License-Identifier: MIT
 */
#include "run_grow.h"

#include "run_bins.h"

bool run_take_hole(struct page_heap *heap, uint32_t page, size_t at, size_t pages,
                   enum page_state state)
{
    bool zero = true;

    note_slab_peak(heap);
    while (at < pages) {
        uint32_t next = page + (uint32_t)at;
        size_t part = min_size(page_record(next)->run_pages, pages - at);

        if (kind_of(page_record(next)->state) == FREE_CLEAN) count_clean(heap, part);
        else zero = false;
        take_front(heap, next, part, PAGE_USED);
        page_record(next)->state = PAGE_INSIDE;
        page_record(next + (uint32_t)part - 1)->state = PAGE_INSIDE;
        at += part;
    }
    tag_run(page_record(page), pages, state, PAGE_USED);
    return zero;
}

/* K4. What another page heap opened may lie before it. */
static void cut_off_seam(const struct page_heap *heap, struct page_span *span)
{
    struct page *record = page_record(span->first);

    record->bin_index = PAGE_SEAM;
    record->seam.end = heap->end;
    tag_run(record, 1, PAGE_USED, PAGE_USED);
    span->first++;
    span->count--;
}

/* Opens at least `missing` more pages of at most room_bytes, for a lease of `pages`: a clean run,
 * or the end of one. A seam may come before them, which counts as no memory. */
static struct page_span grow(struct page_heap *heap, size_t missing, size_t pages,
                             size_t room_bytes)
{
    struct page_span span;
    uint32_t region_count;

    if (PAGE_HEAPS > 1) {
        missing++;
        room_bytes += min_size(page_bytes(), SIZE_MAX - room_bytes);
    }
    lock_take(&space.lock);
    region_count = space.region_count;
    huge_before_growth(heap, max_size(pages, pages_for(OPEN_BYTES_MIN)));
    span = space_grow(missing, huge_pages_each(), room_bytes);
    if (space.region_count != region_count) huge_advise_new_region();
    lock_give(&space.lock);
    if (span.count == 0) return span;
    if (PAGE_HEAPS > 1 && heap->end != span.first) cut_off_seam(heap, &span);
    heap->end = span.first + span.count;
    heap->grows++;
    make_free(heap, span.first, span.count, PAGE_CLEAN);
    /* After the clean ones, see commit_add_heap. */
    __atomic_store_n(&heap->open_pages, heap->open_pages + span.count, __ATOMIC_RELEASE);
    return span;
}

bool run_may_take_hole(struct page_heap *heap, struct hole hole, size_t pages)
{
    size_t clean = pages;

    for (size_t at = 0; at < min_size(pages, hole.pages);) {
        const struct page *record = page_record(hole.first + (uint32_t)at);

        if (kind_of(record->state) == FREE_DIRTY) clean -= min_size(record->run_pages, pages - at);
        at += record->run_pages;
    }
    return page_heap_may_take_clean(heap, clean);
}

/* It opens just what the free pages at the end of the region lack, and leads to the whole hole. */
struct hole run_find_hole_or_grow(struct page_heap *heap, size_t pages, bool stands_in)
{
    const struct hole none = { 0, 0 };
    struct hole tail = run_find_hole(heap, pages);
    struct page_span span;

    if (tail.pages >= pages && run_may_take_hole(heap, tail, pages)) return tail;
    tail = hole_at_the_end(heap);
    /* A tail that cannot become so long is of no help: all of it must lie in another region. */
    if (tail.pages < pages && space_room_at_end() < pages - tail.pages + (PAGE_HEAPS > 1))
        tail = none;
    if (!run_may_take_hole(heap, tail, pages)) return none;
    if (tail.pages >= pages) return tail;
    if (stands_in && tail.pages == 0) return none;
    span = grow(heap, pages - tail.pages, pages, commit_room_bytes());
    if (span.count == 0) return none;
    if (tail.pages != 0 && span.first == tail.first + tail.pages)
        return (struct hole){ tail.first, tail.pages + span.count };
    /* Another page heap was there first, and that was in another region. */
    if (!page_heap_may_take_clean(heap, pages)) return none;
    if (span.count < pages) span = grow(heap, pages, pages, commit_room_bytes());
    return span.count != 0 ? hole_before(span.first + span.count) : none;
}

struct run run_take_aligned_or_grow(struct page_heap *heap, size_t pages, size_t align_pages,
                                    enum page_state state)
{
    const struct run none = { 0, false };
    uint32_t page = run_find_aligned(heap, pages, align_pages);
    size_t skip;
    bool zero;

    if (page == 0 && page_heap_may_take_clean(heap, pages)) {
        /* What alignment leaves over stays clean, which no limit counts. */
        struct page_span span = grow(heap, pages + align_pages - 1, pages, SIZE_MAX);

        /* The clean run that ends there has such a stretch; a search may miss it among others. */
        if (span.count != 0)
            page = span.first + span.count - page_record(span.first + span.count - 1)->run_pages;
    }
    if (page == 0) return none;
    zero = kind_of(page_record(page)->state) == FREE_CLEAN;
    if (zero && !page_heap_may_take_clean(heap, pages)) return none;
    skip = pages_to_alignment(page, align_pages);
    if (zero && !open_free(heap, page + (uint32_t)skip, pages)) return none;
    if (skip != 0) page = split_free(heap, page, skip);
    note_slab_peak(heap);
    if (zero) count_clean(heap, pages);
    take_front(heap, page, pages, state);
    return (struct run){ page, zero };
}
