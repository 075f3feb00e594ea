/* run_tree.c - the page heap as jemalloc had it in early 2008: three trees.
 *
 * It answers page_heap/page_heap.h in the place of run_find.c and of the files up to run_walk.c of
 * src/page_heap. All that is above stays as it is, and so do the lock, the growth, and which runs
 * come first (dirty before clean, holes of both before the region opens further).
 * SPDX-License-Identifier: MIT
 */
#include "../../src/page_heap/huge.h"

#include "../../src/page_heap/run_fence.h"
#include "../../src/page_heap/supplied.h"
#include "../../src/space/commit.h"
#include "extents.h"

static void count_clean(size_t pages)
{
    page_heap->clean_leased += pages;
    if (page_heap->clean_leased >= page_heap->huge_again_at) huge_reconsider(page_heap);
}

/* ---- holes and growth ---- */

static bool grow(size_t missing)
{
    struct page_span span = { 0, 0 };

    if (have_extents()) span = space_grow(missing, huge_pages_each(), commit_room_bytes());
    if (span.count == 0) return false;
    page_heap->grows++;
    page_heap->open_pages += span.count;
    (void)make_free(kept_run_make(span.first, span.count, FREE_CLEAN), FREE_CLEAN);
    return true;
}

/* Takes what a hole has for a run that begins where the hole does. True: all reads as zero. */
static bool take_hole(struct tree_run *run, size_t pages)
{
    bool zero = true;

    note_slab_peak(page_heap);
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

static void count_lease(size_t pages, enum page_state state)
{
    page_heap->leases++;
    if (page_heap->free_pages[FREE_DIRTY] < page_heap->dirty_low)
        page_heap->dirty_low = page_heap->free_pages[FREE_DIRTY];
    if (state == PAGE_LARGE) {
        page_heap->large_pages += pages;
        page_heap->large_leases++;
    }
}

static struct run take_part(struct tree_run *from, size_t skip, size_t pages, enum page_state state)
{
    struct tree_run *extent;
    struct run run;

    note_slab_peak(page_heap);
    extent = cut_out(from, skip, pages);
    run = (struct run){ extent->page, extent->kind == FREE_CLEAN };
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
    return take_part(from, pages_to_alignment(from->page, align_pages), pages, state);
}

static struct run lease_locked(size_t pages, size_t align_pages, enum page_state state)
{
    struct tree_run *from;

    if (pages > space.page_count_max || align_pages > space.page_count_max || !have_extents())
        return (struct run){ 0, false };
    from = find(pages + align_pages - 1);
    if (from == NULL) return lease_growing(pages, align_pages, state);
    return take_part(from, pages_to_alignment(from->page, align_pages), pages, state);
}

struct run run_lease_for(size_t pages, size_t align_pages, uintptr_t purpose)
{
    struct page_heap *const heap = page_heap;
    struct run run;

    lock_take(&heap->lock);
    run = lease_locked(pages, align_pages, purpose_state(purpose));
    lock_give(&heap->lock);
    return run;
}

/* Of what fits, the page heap finds dirty runs first. */
uint32_t run_lease_dirty(size_t pages)
{
    struct page_heap *const heap = page_heap;
    struct tree_run *from;
    uint32_t page = 0;

    lock_take(&heap->lock);
    from = have_extents() ? find(pages) : NULL;
    if (from != NULL && from->kind == FREE_DIRTY) page = take_part(from, 0, pages, PAGE_USED).page;
    lock_give(&heap->lock);
    return page;
}

static void return_locked(uint32_t page, unsigned kind)
{
    struct tree_run *extent = take_used(page);

    page_heap->returns++;
    if (page_record(page)->state == PAGE_LARGE) {
        page_heap->large_returns++;
        page_heap->large_pages -= extent->pages;
    }
    (void)make_free(extent, kind);
}

void run_return(uint32_t page)
{
    struct page_heap *const heap = page_heap;
    lock_take(&heap->lock);
    return_locked(page, FREE_DIRTY);
    lock_give(&heap->lock);
}

void run_return_emptied(uint32_t page) { return_locked(page, FREE_CLEAN); }

void run_return_clean(uint32_t page)
{
    lock_take(&page_heap->lock);
    return_locked(page, FREE_CLEAN);
    lock_give(&page_heap->lock);
}

/* Nobody asked the kernel for anything here. */
void run_return_remapped(uint32_t page) { run_return(page); }

/* Trees build none. */
void run_take_fence_away(uint32_t page) { (void)page; }
void run_fences_off(void) {}

unsigned run_lease_batch(struct page_heap *heap, size_t pages, unsigned wanted, uint32_t *leased)
{
    unsigned count = 0;

    lock_take(&heap->lock);
    while (count < wanted && have_extents()) {
        struct tree_run *from = find(pages);
        if (from == NULL) break;
        leased[count++] = take_part(from, 0, pages, PAGE_USED).page;
    }
    lock_give(&heap->lock);
    return count;
}

void run_return_batch(const uint32_t *pages, unsigned count)
{
    struct page_heap *const heap = page_heap;
    lock_take(&heap->lock);
    for (unsigned i = 0; i < count; i++) return_locked(pages[i], FREE_DIRTY);
    lock_give(&heap->lock);
}

/* Trees cannot be read without the lock. */
bool run_lease_would_grow(const struct page_heap *heap, size_t pages)
{
    bool found;

    (void)heap;
    lock_take(&page_heap->lock);
    found = find(pages) != NULL;
    lock_give(&page_heap->lock);
    return !found;
}

enum extended run_extend(struct page_heap *heap, uint32_t page, size_t pages)
{
    struct tree_run *extent, *next;
    size_t missing;
    bool fits;

    lock_take(&heap->lock);
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
        if (page_record(page)->state == PAGE_LARGE) heap->large_pages += missing;
    }
    lock_give(&heap->lock);
    return fits ? EXTENDED : EXTENDED_NOT;
}

void run_trim(struct page_heap *heap, uint32_t page, size_t pages)
{
    struct tree_run *extent;
    enum page_state state;
    size_t cut;

    lock_take(&heap->lock);
    extent = used_at(page);
    cut = extent->pages - pages;
    state = (enum page_state)page_record(page)->state;
    if (have_extents()) { /* else it stays as long as it is */
        extent->pages = (uint32_t)pages;
        page_record(page + extent->pages - 1)->run_pages = extent->pages;
        page_record(page + extent->pages - 1)->state = PAGE_USED;
        page_record(page)->run_pages = extent->pages;
        page_record(page)->state = (uint8_t)state;
        if (state == PAGE_LARGE) heap->large_pages -= cut;
        (void)make_free(kept_run_make(page + extent->pages, cut, FREE_DIRTY), FREE_DIRTY);
    }
    lock_give(&heap->lock);
}

void run_mark(uint32_t page, enum page_state state, uint32_t number)
{
    lock_take(&page_heap->lock);
    page_record(page)->state = (uint8_t)state;
    page_record(page)->slab = number;
    lock_give(&page_heap->lock);
}

/* ---- to the kernel and back ---- */

static unsigned slot_in_flight(uint32_t page)
{
    unsigned slot = 0;

    while (slot < IN_FLIGHT_MAX && page_heap->in_flight[slot] != page) slot++;
    return slot;
}

/* The last so many pages of a run, cut at the boundaries of huge pages if it is long enough. */
static struct tree_run *cut_end(struct tree_run *from, size_t pages_max)
{
    size_t length = from->pages, unit = huge_pages_each();
    size_t pages = min_size(length, pages_max), head, rest;

    if (length < 2 * unit || pages_max < unit) return cut_out(from, length - pages, pages);
    head = pages_to_alignment(from->page, unit);
    rest = round_down(length - head, unit);
    pages = min_size(rest, round_down(pages_max, unit));
    return cut_out(from, head + rest - pages, pages);
}

uint32_t run_take_dirty(struct page_heap *heap, size_t min_pages, size_t max_pages)
{
    struct tree_run *longest;
    unsigned slot;
    uint32_t page = 0;

    lock_take(&heap->lock);
    longest = at_size(RUN_VERB(last)(&kept_runs.by_size[FREE_DIRTY]));
    slot = slot_in_flight(0);
    if (slot != IN_FLIGHT_MAX && longest != NULL && longest->pages >= min_pages && have_extents()) {
        longest = cut_end(longest, max_pages);
        note_used(longest, PAGE_USED);
        page = heap->in_flight[slot] = longest->page;
    }
    lock_give(&heap->lock);
    return page;
}

/* The lab does not measure what huge pages leave behind. */
uint32_t run_take_clean_edge(uint32_t *at)
{
    (void)at;
    return 0;
}

static void put_back(struct page_heap *heap, unsigned slot, unsigned kind)
{
    uint32_t page = heap->in_flight[slot];

    heap->in_flight[slot] = 0;
    (void)make_free(take_used(page), kind);
}

void run_put_free(uint32_t page, enum page_state state)
{
    struct page_heap *const heap = page_heap;
    unsigned slot;

    lock_take(&heap->lock);
    slot = slot_in_flight(page);
    if (slot != IN_FLIGHT_MAX) put_back(heap, slot, state == PAGE_CLEAN ? FREE_CLEAN : FREE_DIRTY);
    lock_give(&heap->lock);
}

/* The lab locks no memory. */
uint32_t run_split_in_flight(uint32_t page, size_t pages)
{
    (void)page;
    (void)pages;
    return 0;
}

bool run_is_in_flight(uint32_t page)
{
    (void)page;
    return false;
}

bool page_heaps_have_in_flight(void)
{
    bool have = false;

    lock_take(&page_heap->lock);
    for (unsigned slot = 0; slot < IN_FLIGHT_MAX; slot++) have |= page_heap->in_flight[slot] != 0;
    lock_give(&page_heap->lock);
    return have;
}

void page_heaps_put_back_in_flight(void)
{
    for (unsigned slot = 0; slot < IN_FLIGHT_MAX; slot++)
        if (page_heap->in_flight[slot] != 0) put_back(page_heap, slot, FREE_DIRTY);
}

bool page_heaps_close_tail(bool waits)
{
    struct page_heap *const heap = page_heap;
    struct tree_run *tail, *last;
    size_t closed = 0;

    (void)waits;
    lock_take(&heap->lock);
    tail = find_tail();
    lock_take(&space.lock);
    if (tail != NULL) closed = space_close_tail(tail->page, hole_pages(tail, SIZE_MAX));
    lock_give(&space.lock);
    while (closed != 0 && (last = free_before(NULL)) != NULL && last->page >= space_open_end()) {
        remove_free(last);
        kept_run_drop(last);
    }
    lock_give(&heap->lock);
    return closed != 0;
}

/* ---- supplied page heaps ---- */

/* Arenas with hooks are not measured here, and get no memory. */

void supplied_start(struct page_heap *heap) { (void)heap; }
void supplied_add(struct page_heap *heap, struct page_piece *piece, unsigned kind)
{
    (void)heap, (void)piece, (void)kind;
}
void supplied_remove(struct page_heap *heap, struct page_piece *piece) { (void)heap, (void)piece; }
struct page_piece *supplied_piece_of(const struct page_heap *heap, uint32_t page)
{
    (void)heap, (void)page;
    return NULL;
}
bool supplied_is_free(const struct page_piece *piece) { return piece == NULL; }
uint32_t supplied_lease(struct page_heap *heap, size_t pages, size_t align_pages, bool exact)
{
    (void)heap, (void)pages, (void)align_pages, (void)exact;
    return 0;
}
uint32_t supplied_take_dirty(struct page_heap *heap, uint32_t after)
{
    (void)heap, (void)after;
    return 0;
}
void supplied_return(struct page_heap *heap, uint32_t page, unsigned kind)
{
    (void)heap, (void)page, (void)kind;
}
void supplied_visit_free(struct page_heap *heap,
                         void (*visit)(enum page_state state, size_t pages, void *context),
                         void *context)
{
    (void)heap, (void)visit, (void)context;
}
void supplied_check(struct page_heap *heap) { (void)heap; }
