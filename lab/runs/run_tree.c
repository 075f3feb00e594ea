/* run_tree.c - the page heap as jemalloc had it in early 2008: three trees.
 *
 * It answers pages/run.h in the place of the files run*.c of src/pages; all that is above stays
 * as it is, and so do the lock, the growth, and which runs come first (dirty before clean, holes
 * of both before the region opens further).
 * SPDX-License-Identifier: MIT
 */
#include "../../src/pages/huge.h"

#include "extents.h"

struct page_heap page_heap;

static void count_clean(size_t pages)
{
    page_heap.clean_leased += pages;
    huge_after_clean_lease(page_heap.clean_leased);
}

/* ---- holes and growth ---- */

static bool grow(size_t missing)
{
    struct page_span span = { 0, 0 };

    if (have_extents()) span = space_grow(missing);
    if (span.count == 0) return false;
    page_heap.grows++;
    (void)make_free(kept_run_make(span.first, span.count, FREE_CLEAN), FREE_CLEAN);
    return true;
}

/* Takes what a hole has for a run that begins where the hole does. True: all reads as zero. */
static bool take_hole(struct tree_run *run, size_t pages)
{
    bool zero = true;

    while (run->pages < pages) {
        struct tree_run like = { .page = run->page + run->pages }, *next, *part;
        next = free_after(&like);
        part =
            cut_out(next, 0, pages - run->pages < next->pages ? pages - run->pages : next->pages);
        if (part->kind == FREE_CLEAN) count_clean(part->pages);
        else zero = false;
        run->pages += part->pages;
        kept_run_drop(part);
    }
    return zero;
}

/* ---- the verbs of run.h ---- */

void page_heap_start(void) { lock_init(&page_heap.lock, LOCK_PAGE_HEAP); }

static void count_lease(size_t pages, enum page_state state)
{
    page_heap.leases++;
    if (page_heap.free_pages[FREE_DIRTY] < page_heap.dirty_low)
        page_heap.dirty_low = page_heap.free_pages[FREE_DIRTY];
    if (state == PAGE_LARGE) {
        page_heap.large_pages += pages;
        page_heap.large_count++;
    }
}

static size_t to_alignment(uint32_t page, size_t align_pages)
{
    return (0 - ((uintptr_t)page_address(page) >> space.page_shift)) & (align_pages - 1);
}

static struct run take_part(struct tree_run *from, size_t skip, size_t pages, enum page_state state)
{
    struct tree_run *extent = cut_out(from, skip, pages);
    struct run run = { extent->page, extent->kind == FREE_CLEAN };

    if (run.zero) count_clean(pages);
    note_used(extent, state);
    count_lease(pages, state);
    return run;
}

static struct run lease_hole(struct tree_run *hole, size_t pages, enum page_state state)
{
    struct tree_run *extent = kept_run_make(hole->page, 0, FREE_DIRTY);
    struct run run = { extent->page, take_hole(extent, pages) };

    note_used(extent, state);
    count_lease(pages, state);
    return run;
}

static COLD struct run lease_growing(size_t pages, size_t align_pages, enum page_state state)
{
    size_t wanted = pages + align_pages - 1;
    struct tree_run *hole = align_pages > 1 ? NULL : find_hole(pages);

    if (hole == NULL && align_pages == 1) {
        struct tree_run *tail = find_tail();
        size_t have = tail == NULL ? 0 : hole_pages(tail, pages);
        if (have < pages && grow(pages - have)) tail = find_tail();
        if (tail != NULL && hole_pages(tail, pages) >= pages) hole = tail;
    }
    if (hole != NULL) return lease_hole(hole, pages, state);
    struct tree_run *from = find(wanted);
    if (from == NULL && grow(wanted)) from = find(wanted);
    if (from == NULL || !have_extents()) return (struct run){ 0, false };
    return take_part(from, to_alignment(from->page, align_pages), pages, state);
}

static struct run lease_locked(size_t pages, size_t align_pages, enum page_state state)
{
    struct tree_run *from;

    if (pages > space.page_count_max || align_pages > space.page_count_max || !have_extents())
        return (struct run){ 0, false };
    from = find(pages + align_pages - 1);
    if (from == NULL) return lease_growing(pages, align_pages, state);
    return take_part(from, to_alignment(from->page, align_pages), pages, state);
}

struct run run_lease(size_t pages, size_t align_pages, enum page_state state)
{
    struct run run;

    lock_take(&page_heap.lock);
    run = lease_locked(pages, align_pages, state);
    lock_give(&page_heap.lock);
    return run;
}

/* Of what fits, the page heap finds dirty runs first. */
uint32_t run_lease_dirty(size_t pages)
{
    struct tree_run *from;
    uint32_t page = 0;

    lock_take(&page_heap.lock);
    from = have_extents() ? find(pages) : NULL;
    if (from != NULL && from->kind == FREE_DIRTY) page = take_part(from, 0, pages, PAGE_USED).page;
    lock_give(&page_heap.lock);
    return page;
}

static void return_locked(uint32_t page, unsigned kind)
{
    struct tree_run *extent = take_used(page);

    page_heap.returns++;
    if (page_record(page)->state == PAGE_LARGE) {
        page_heap.large_count--;
        page_heap.large_pages -= extent->pages;
    }
    (void)make_free(extent, kind);
}

void run_return(uint32_t page)
{
    lock_take(&page_heap.lock);
    return_locked(page, FREE_DIRTY);
    lock_give(&page_heap.lock);
}

void run_return_emptied(uint32_t page) { return_locked(page, FREE_CLEAN); }

unsigned run_lease_batch(size_t pages, unsigned wanted, uint32_t *leased)
{
    unsigned count = 0;

    lock_take(&page_heap.lock);
    while (count < wanted && have_extents()) {
        struct tree_run *from = find(pages);
        if (from == NULL) break;
        leased[count++] = take_part(from, 0, pages, PAGE_USED).page;
    }
    lock_give(&page_heap.lock);
    return count;
}

void run_return_batch(const uint32_t *pages, unsigned count)
{
    lock_take(&page_heap.lock);
    for (unsigned i = 0; i < count; i++) return_locked(pages[i], FREE_DIRTY);
    lock_give(&page_heap.lock);
}

/* Trees cannot be read without the lock. */
bool run_lease_would_grow(size_t pages)
{
    bool found;

    lock_take(&page_heap.lock);
    found = find(pages) != NULL;
    lock_give(&page_heap.lock);
    return !found;
}

bool run_extend(uint32_t page, size_t pages)
{
    struct tree_run *extent, *next;
    size_t missing;
    bool fits;

    lock_take(&page_heap.lock);
    extent = used_at(page);
    missing = pages - extent->pages;
    struct tree_run end = { .page = page + extent->pages };
    next = free_after(&end);
    fits = have_extents() && starts_at(next, end.page) && hole_pages(next, missing) >= missing;
    if (fits) {
        (void)take_hole(extent, pages);
        page_record(page)->run_pages = page_record(page + extent->pages - 1)->run_pages =
            extent->pages;
        page_record(page + extent->pages - 1)->state = PAGE_USED;
        if (page_record(page)->state == PAGE_LARGE) page_heap.large_pages += missing;
    }
    lock_give(&page_heap.lock);
    return fits;
}

void run_trim(uint32_t page, size_t pages)
{
    struct tree_run *extent;
    enum page_state state;
    size_t cut;

    lock_take(&page_heap.lock);
    extent = used_at(page);
    cut = extent->pages - pages;
    state = (enum page_state)page_record(page)->state;
    if (have_extents()) { /* else it stays as long as it is */
        extent->pages = (uint32_t)pages;
        page_record(page + extent->pages - 1)->run_pages = extent->pages;
        page_record(page + extent->pages - 1)->state = PAGE_USED;
        page_record(page)->run_pages = extent->pages;
        page_record(page)->state = (uint8_t)state;
        if (state == PAGE_LARGE) page_heap.large_pages -= cut;
        (void)make_free(kept_run_make(page + extent->pages, cut, FREE_DIRTY), FREE_DIRTY);
    }
    lock_give(&page_heap.lock);
}

static void mark_large(uint32_t page, enum page_state state, uint32_t number)
{
    lock_take(&page_heap.lock);
    page_record(page)->state = (uint8_t)state;
    page_record(page)->slab = number;
    lock_give(&page_heap.lock);
}

void run_mark_sampled(uint32_t page, uint32_t number) { mark_large(page, PAGE_SAMPLED, number); }
void run_unmark_sampled(uint32_t page) { mark_large(page, PAGE_LARGE, 0); }

/* ---- to the kernel and back ---- */

static unsigned slot_in_flight(uint32_t page)
{
    unsigned slot = 0;

    while (slot < IN_FLIGHT_MAX && page_heap.in_flight[slot] != page) slot++;
    return slot;
}

/* The last so many pages of a run, cut at the boundaries of huge pages if it is long enough. */
static struct tree_run *cut_piece(struct tree_run *from, size_t pages_max)
{
    size_t length = from->pages, unit = huge_pages_each();
    size_t pages = min_size(length, pages_max), head, rest;

    if (pages < 2 * unit) return cut_out(from, length - pages, pages);
    head = to_alignment(from->page, unit);
    rest = round_down(length - head, unit);
    pages = min_size(rest, round_down(pages_max, unit));
    return cut_out(from, head + rest - pages, pages);
}

uint32_t run_take_dirty(size_t min_pages, size_t max_pages)
{
    struct tree_run *longest = at_size(KEEPER(last)(&kept_runs.by_size[FREE_DIRTY]));
    unsigned slot = slot_in_flight(0);

    if (slot == IN_FLIGHT_MAX || longest == NULL || longest->pages < min_pages) return 0;
    if (!have_extents()) return 0;
    longest = cut_piece(longest, max_pages);
    note_used(longest, PAGE_USED);
    page_heap.in_flight[slot] = longest->page;
    return longest->page;
}

void run_put_free(uint32_t page, enum page_state state)
{
    unsigned slot = slot_in_flight(page);

    if (slot == IN_FLIGHT_MAX) return;
    page_heap.in_flight[slot] = 0;
    (void)make_free(take_used(page), state == PAGE_CLEAN ? FREE_CLEAN : FREE_DIRTY);
}

void page_heap_put_back_in_flight(void)
{
    for (unsigned i = 0; i < IN_FLIGHT_MAX; i++)
        if (page_heap.in_flight[i] != 0) run_put_free(page_heap.in_flight[i], PAGE_DIRTY);
}

bool page_heap_close_tail(void)
{
    struct tree_run *tail, *last;
    size_t closed = 0;

    lock_take(&page_heap.lock);
    tail = find_tail();
    if (tail != NULL) closed = space_close_tail(tail->page, hole_pages(tail, SIZE_MAX));
    while (closed != 0 && (last = free_before(NULL)) != NULL && last->page >= space_open_end()) {
        remove_free(last);
        kept_run_drop(last);
    }
    lock_give(&page_heap.lock);
    return closed != 0;
}
