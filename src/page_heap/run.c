/* run.c - runs are leased and returned.
 * SPDX-License-Identifier: MIT
 */
#include "page_heap.h"

#include "run_bins.h"
#include "run_fence.h"
#include "run_grow.h"

/* The front of a free run that is long enough. Its page is 0 afterwards when it could not be
 * had. */
INLINE void take_part(struct page_heap *heap, struct run *run, size_t pages, enum page_state state)
{
    run->zero = page_record(run->page)->state == PAGE_CLEAN;
    if (run->zero) {
        if (!open_free(heap, run->page, pages)) {
            run->page = 0;
            return;
        }
        note_slab_peak(heap);
        count_clean(heap, pages);
    }
    take_front(heap, run->page, pages, state);
}

INLINE void count_lease(struct page_heap *heap, size_t pages, enum page_state state)
{
    heap->leases++;
    note_dirty_low(heap);
    if (state == PAGE_LARGE) {
        heap->large_pages += pages;
        heap->large_leases++;
    }
}

/* The usual lease: a dirty run of just this length, which was returned a moment ago. 0: there is
 * none. */
INLINE uint32_t take_exact(struct page_heap *heap, size_t pages, enum page_state state)
{
    struct run_bins *bins = &heap->bins; /* the dirty ones come first */
    uint32_t page = bins->head[pages - 1];
    struct page *record = page_record(page);
    uint32_t next;

    if (unlikely(page == 0)) return 0;
    next = record->bin.next;
    bins->head[pages - 1] = next;
    set_previous(next, 0);
    if (next == 0) bins->bitmap[0] &= ~((uint64_t)1 << (pages - 1));
    heap->free_pages[FREE_DIRTY] -= pages;
    (record + pages - 1)->state = PAGE_USED;
    record->state = (uint8_t)state;
    record->slab = 0; /* R3: the links shared this field */
    note_heap(heap, record);
    return page;
}

/* The usual ways through run_lease and run_return call nothing. What might call something is jumped
 * to at the end, and does the rest: so they save no registers. */

static NOINLINE struct run give_contended_after(struct run run)
{
    lock_give_contended(&page_heap_of(run.page)->lock);
    return run;
}

/* 0: there are none. */
static uint32_t take_dirty(struct page_heap *heap, size_t pages, enum page_state state)
{
    uint32_t page = run_find_dirty(heap, pages);

    if (page == 0) return 0;
    take_front(heap, page, pages, state);
    count_lease(heap, pages, state);
    return page;
}

uint32_t run_lease_dirty(size_t pages)
{
    uint32_t page = 0;

    if (pages > space.page_count_max) return 0;
    for (unsigned i = 0; i < page_heap_count() && page == 0; i++) {
        struct page_heap *heap = &page_heap[i];

        lock_take(&heap->lock);
        page = take_dirty(heap, pages, PAGE_USED);
        lock_give(&heap->lock);
    }
    return page;
}

/* A free run of that length that may be taken; 0: there is none. */
INLINE uint32_t find_allowed(struct page_heap *heap, size_t pages)
{
    return page_heap_may_take_clean(heap, pages) ? run_find(heap, pages)
                                                 : run_find_dirty(heap, pages);
}

/* From the page heap that it is for, or from another one, which stands in then. Gives the lock. */
static COLD struct run lease_searching(struct page_heap *heap, size_t pages, size_t align_pages,
                                       uintptr_t purpose)
{
    enum page_state state = purpose_state(purpose);
    bool stands_in = heap != purpose_heap(purpose);
    struct run run = { 0, false };
    struct hole hole;

    if (pages <= space.page_count_max && align_pages <= space.page_count_max) {
        if (align_pages > 1) {
            if (!stands_in || run_find_aligned(heap, pages, align_pages) != 0)
                run = run_take_aligned_or_grow(heap, pages, align_pages, state);
        } else if ((run.page = find_allowed(heap, pages)) != 0) {
            take_part(heap, &run, pages, state);
        } else if ((hole = run_find_hole_or_grow(heap, pages, stands_in)).pages >= pages
                   && open_free(heap, hole.first, pages)) {
            run.page = hole.first;
            run.zero = run_take_hole(heap, hole.first, 0, pages, state);
        }
    }
    if (run.page != 0) count_lease(heap, pages, state);
    lock_give(&heap->lock);
    return run;
}

/* Begins with the lock held. One page heap after the other, when there are several. */
static struct run lease_anywhere(size_t pages, size_t align_pages, uintptr_t purpose)
{
    struct page_heap *const heap = purpose_heap(purpose);
    struct run run = lease_searching(heap, pages, align_pages, purpose);

    for (unsigned i = 0; i < page_heap_count() && run.page == 0; i++) {
        if (&page_heap[i] == heap) continue;
        lock_take(&page_heap[i].lock);
        run = lease_searching(&page_heap[i], pages, align_pages, purpose);
    }
    return run;
}

/* ---- leases that split ---- */

/* Under no lock of the page heap: a lease of which nobody else knows yet. */
static struct run finish_lease(struct run run, size_t pages, enum page_state state)
{
    if (run.page == 0 || !run.zero) return run;
    if (huge_pages_each() > 1) huge_try(run.page, pages);
    else run_fence(run.page, pages, state);
    return run;
}

/* Dirty pages of another page heap that has more than might stay while nobody looks, before clean
 * ones are touched: what one phase of a program left there serves the next. Begins and ends with
 * the lock of its own held; one that is held is passed over. 0: there are none. */
static uint32_t lease_left_over(const struct page_heap *heap, size_t pages, enum page_state state)
{
    size_t enough = max_size(pages, pages_for(PURGE_UNATTENDED_BYTES));
    uint32_t page = 0;

    for (unsigned i = 0; i < page_heap_count() && page == 0; i++) {
        struct page_heap *other = &page_heap[i];

        if (other == heap || page_heap_free_now(other, FREE_DIRTY) < enough
            || !lock_try(&other->lock))
            continue;
        page = take_dirty(other, pages, state);
        lock_give(&other->lock);
    }
    return page;
}

/* Of clean pages. Begins with the lock held. */
static NOINLINE struct run lease_clean(uint32_t page, size_t pages, uintptr_t purpose)
{
    struct page_heap *const heap = purpose_heap(purpose);
    enum page_state state = purpose_state(purpose);
    struct run run = { page, false };

    take_part(heap, &run, pages, state);
    if (run.page != 0) count_lease(heap, pages, state);
    lock_give(&heap->lock);
    return finish_lease(run, pages, state);
}

static NOINLINE struct run lease_splitting(size_t pages, size_t align_pages, uintptr_t purpose)
{
    struct page_heap *const heap = purpose_heap(purpose);
    enum page_state state = purpose_state(purpose);
    struct run run = { 0, false };

    if (likely(align_pages == 1))
        run.page = likely(RELAXED_LOAD(heap->clean_is_free)) ? run_find(heap, pages)
                                                             : run_find_dirty(heap, pages);
    if (PAGE_HEAPS > 1 && align_pages == 1
        && unlikely(run.page == 0 || page_record(run.page)->state == PAGE_CLEAN)) {
        uint32_t page = lease_left_over(heap, pages, state);

        if (page != 0) {
            lock_give(&heap->lock);
            return (struct run){ page, false };
        }
    }
    if (unlikely(run.page == 0))
        return finish_lease(lease_anywhere(pages, align_pages, purpose), pages, state);
    if (unlikely(page_record(run.page)->state == PAGE_CLEAN))
        return lease_clean(run.page, pages, purpose);
    take_front(heap, run.page, pages, state);
    count_lease(heap, pages, state);
    return likely(lock_give_unless_contended(&heap->lock)) ? run : give_contended_after(run);
}

INLINE struct run lease_locked(size_t pages, size_t align_pages, uintptr_t purpose)
{
    struct page_heap *const heap = purpose_heap(purpose);
    enum page_state state = purpose_state(purpose);
    struct run run = { 0, false };

    if (likely(pages <= BIN_EXACT_COUNT && align_pages == 1))
        run.page = take_exact(heap, pages, state);
    if (unlikely(run.page == 0)) return lease_splitting(pages, align_pages, purpose);
    count_lease(heap, pages, state);
    return likely(lock_give_unless_contended(&heap->lock)) ? run : give_contended_after(run);
}

static NOINLINE struct run lease_contended(size_t pages, size_t align_pages, uintptr_t purpose)
{
    lock_take_contended(&purpose_heap(purpose)->lock);
    return lease_locked(pages, align_pages, purpose);
}

struct run run_lease_for(size_t pages, size_t align_pages, uintptr_t purpose)
{
    check(pages > 0 && is_power_of_two(align_pages));
    if (unlikely(!lock_try(&purpose_heap(purpose)->lock)))
        return lease_contended(pages, align_pages, purpose);
    return lease_locked(pages, align_pages, purpose);
}

static NOINLINE void return_merging(uint32_t page, size_t pages)
{
    struct page_heap *const heap = page_heap_of(page);
    make_free(heap, page, pages, PAGE_DIRTY);
    if (unlikely(!lock_give_unless_contended(&heap->lock))) lock_give_contended(&heap->lock);
}

INLINE void count_return(struct page_heap *heap, const struct page *record, size_t pages)
{
    check(is_used_state(record->state) && !page_is_fenced(record));
    heap->returns++;
    if (record->state == PAGE_LARGE) {
        heap->large_returns++;
        heap->large_pages -= pages;
    }
}

INLINE void return_locked(struct page_heap *heap, uint32_t page)
{
    struct page *record = page_record(page);
    size_t pages = record->run_pages;

    count_return(heap, record, pages);
    if (unlikely(pages > BIN_EXACT_COUNT || state_beside(record - 1) == PAGE_DIRTY
                 || state_beside(record + pages) == PAGE_DIRTY)) {
        return_merging(page, pages);
        return;
    }
    record->state = PAGE_DIRTY;
    (record + pages - 1)->state = PAGE_DIRTY;
    heap->free_pages[FREE_DIRTY] += pages;
    note_dirty(heap);
    bin_add(heap, (unsigned)pages - 1, page, record);
    if (unlikely(!lock_give_unless_contended(&heap->lock))) lock_give_contended(&heap->lock);
}

static NOINLINE void return_contended(uint32_t page)
{
    struct page_heap *const heap = page_heap_of(page);

    lock_take_contended(&heap->lock);
    return_locked(heap, page);
}

void run_return(uint32_t page)
{
    struct page_heap *const heap = page_heap_of(page);

    if (unlikely(!lock_try(&heap->lock))) return_contended(page);
    else return_locked(heap, page);
}

/* Under the page heap's lock. */
static void return_as(struct page_heap *heap, uint32_t page, enum page_state state)
{
    const struct page *record = page_record(page);

    count_return(heap, record, record->run_pages);
    make_free(heap, page, record->run_pages, state);
}

void run_return_clean(uint32_t page)
{
    struct page_heap *heap = page_heap_of(page);

    lock_take(&heap->lock);
    return_as(heap, page, PAGE_CLEAN);
    lock_give(&heap->lock);
}

void run_return_emptied(uint32_t page)
{
    struct page_heap *heap = page_heap_of(page);

    check(lock_is_mine(&page_heap->lock));
    if (heap != page_heap) lock_take(&heap->lock);
    return_as(heap, page, PAGE_CLEAN);
    if (heap != page_heap) lock_give(&heap->lock);
}

/* What a batch knows of those that it has leased. */
struct run_batch {
    bool has_left_over;     /* another page heap, as far as is known */
    struct run begins_huge; /* a clean one in which a huge page begins; page 0: none */
};

/* One more of a batch; 0: there is none. Under the lock. */
static uint32_t lease_one_more(struct page_heap *heap, size_t pages, struct run_batch *batch)
{
    struct run run = { take_exact(heap, pages, PAGE_USED), false };

    if (run.page == 0) {
        run.page = find_allowed(heap, pages);
        if (run.page == 0) return 0;
        if (batch->has_left_over && page_record(run.page)->state == PAGE_CLEAN) {
            uint32_t page = lease_left_over(heap, pages, PAGE_USED);

            batch->has_left_over = page != 0;
            if (page != 0) return page;
        }
        take_part(heap, &run, pages, PAGE_USED);
        if (run.page == 0) return 0;
        if (run.zero && pages_to_alignment(run.page, pages_of_huge_page()) < pages)
            batch->begins_huge = run;
    }
    count_lease(heap, pages, PAGE_USED);
    return run.page;
}

unsigned run_lease_batch(struct page_heap *heap, size_t pages, unsigned wanted, uint32_t *leased)
{
    struct run_batch batch = { PAGE_HEAPS > 1, { 0, false } };
    unsigned count = 0;

    check(pages > 0 && pages <= BIN_EXACT_COUNT);
    lock_take(&heap->lock);
    while (count < wanted && (leased[count] = lease_one_more(heap, pages, &batch)) != 0) count++;
    lock_give(&heap->lock);
    (void)finish_lease(batch.begins_huge, pages, PAGE_USED);
    return count;
}

void run_return_batch(const uint32_t *pages, unsigned count)
{
    struct page_heap *held = page_heap_of(pages[0]);

    lock_take(&held->lock);
    for (unsigned i = 0; i < count; i++) {
        struct page_heap *heap = page_heap_of(pages[i]);

        if (heap != held) {
            lock_give(&held->lock);
            lock_take(&heap->lock);
            held = heap;
        }
        return_as(heap, pages[i], PAGE_DIRTY);
    }
    lock_give(&held->lock);
}

/* Neighbours look at the state when they merge. */
void run_mark(uint32_t page, enum page_state state, uint32_t number)
{
    struct page_heap *heap = page_heap_of(page);

    lock_take(&heap->lock);
    page_record(page)->state = (uint8_t)state;
    page_record(page)->slab = number;
    lock_give(&heap->lock);
}
