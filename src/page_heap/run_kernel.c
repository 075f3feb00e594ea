/* run_kernel.c - what passes between free runs and the kernel: dirty ones that are purged, the end
 * of the region that is closed.
 * SPDX-License-Identifier: MIT
 */
#include "run_bins.h"
#include "run_walk.h"

/* A clean run behind a seam is of the page heap of the first used one among so many behind it. */
enum { LOOK_BEHIND_RUNS = 16 };

/* A seam lies before the first pages of a page heap that follow those of another. */
INLINE bool is_seam(const struct page *record)
{
    return PAGE_HEAPS > 1 && record->state == PAGE_USED && record->bin_index == PAGE_SEAM;
}

/* The slot that holds this page; with page 0, a free slot. IN_FLIGHT_MAX: there is none. */
static unsigned slot_in_flight(struct page_heap *heap, uint32_t page)
{
    unsigned slot = 0;

    while (slot < IN_FLIGHT_MAX && heap->in_flight[slot] != page) slot++;
    return slot;
}

/* Long runs first: they cost the fewest calls and are the least likely to be wanted at once. The
 * highest bin mixes lengths. Of a longer run the last pages are taken; when there are huge pages,
 * and one or more may go, they are cut off at the boundaries of those; but not for who asks for
 * runs that are longer than one (oversize_threshold): what was left would be no such run. */
uint32_t run_take_dirty(struct page_heap *heap, size_t min_pages, size_t max_pages)
{
    const struct run_bins *bins = &heap->bins; /* the dirty ones come first */
    size_t unit = huge_pages_each(), length = 0, pages;
    unsigned slot, word = BIN_WORDS - 1;
    uint32_t page = 0;

    lock_take(&heap->lock);
    slot = slot_in_flight(heap, 0);
    while (word > 0 && bins->bitmap[word] == 0) word--;
    if (bins->bitmap[word] != 0) page = bins->head[word * 64 + highest_bit(bins->bitmap[word])];
    if (page != 0 && page_record(page)->run_pages < min_pages)
        page = fitting_member(page, min_pages);
    if (page != 0) length = page_record(page)->run_pages;
    if (slot == IN_FLIGHT_MAX) page = 0;
    if (page != 0) {
        pages = min_size(length, max_pages);
        if (length >= 2 * unit && max_pages >= unit && min_pages <= unit) {
            size_t head = pages_to_alignment(page, unit);

            length = head + round_down(length - head, unit);
            pages = min_size(length - head, round_down(max_pages, unit));
        }
        if (pages != length) page = split_free(heap, page, length - pages);
        huge_before_purge(heap, pages);
        take_front(heap, page, pages, PAGE_USED);
        note_dirty_low(heap);
        heap->in_flight[slot] = page;
    }
    lock_give(&heap->lock);
    return page;
}

/* Of a clean run the pages that share a huge page with others, before or behind the whole ones. 0:
 * there are none, or too many runs are on their way: then who looks next finds them. */
static uint32_t take_clean_edge(struct page_heap *heap, uint32_t page)
{
    size_t unit = pages_of_huge_page(), length = page_record(page)->run_pages;
    size_t pages = min_size(pages_to_alignment(page, unit), length), whole;
    unsigned slot = slot_in_flight(heap, 0);

    whole = pages == 0 ? round_down(length, unit) : 0;
    if (whole == length) return 0;
    if (slot == IN_FLIGHT_MAX) {
        RELAXED_STORE(huge.left_behind, true);
        return 0;
    }
    if (pages == 0) pages = length - whole;
    if (whole != 0) page = split_free(heap, page, whole);
    take_front(heap, page, pages, PAGE_USED);
    heap->in_flight[slot] = page;
    return page;
}

/* As far as the run before that which begins here tells it. */
static uint16_t heap_number_before(const struct region *region, uint32_t page)
{
    const struct page *left = page_record(page) - 1;

    if (page == region->first_page) return HEAP_UNKNOWN;
    return run_heap_number(left + 1 - left->run_pages, HEAP_UNKNOWN);
}

/* Of a free run behind a seam, or at the start of the region: the first used run behind it tells,
 * when that is not far. */
static uint16_t heap_number_behind(uint32_t page, uint32_t end)
{
    uint16_t number = HEAP_UNKNOWN;

    for (unsigned runs = 0; runs < LOOK_BEHIND_RUNS && page < end && number == HEAP_UNKNOWN;
         runs++) {
        const struct page *record = page_record(page);

        if (is_seam(record)) break;
        number = run_heap_number(record, number);
        page += record->run_pages;
    }
    return number;
}

uint32_t run_take_clean_edge(uint32_t *at)
{
    const struct region *region = &space.region[0];
    uint32_t page, edge = 0, end;

    do {
        uint16_t number;

        page_heaps_each_lock(lock_take, WALK_TAKES);
        end = region->first_page + region->open_pages;
        page = run_start_from(region, *at);
        number = heap_number_before(region, page);
        for (unsigned runs = 0; runs < RUNS_PER_HOLD && page < end && edge == 0; runs++) {
            const struct page *record = page_record(page);

            number = run_heap_number(record, number);
            if (record->state == PAGE_CLEAN && number == HEAP_UNKNOWN)
                number = heap_number_behind(page, end);
            if (record->state == PAGE_CLEAN && number != HEAP_UNKNOWN)
                edge = take_clean_edge(&page_heap[number], page);
            if (edge != 0) page = edge;
            page += page_record(page)->run_pages;
        }
        page_heaps_each_lock(lock_give, WALK_GIVES);
        *at = page;
    } while (edge == 0 && page < end);
    return edge;
}

/* It may have been put back already, in a fork's child. */
void run_put_free(uint32_t page, enum page_state state)
{
    struct page_heap *heap = page_heap_of(page);
    unsigned slot;

    lock_take(&heap->lock);
    slot = slot_in_flight(heap, page);
    if (likely(slot < IN_FLIGHT_MAX)) {
        heap->in_flight[slot] = 0;
        make_free(heap, page, page_record(page)->run_pages, state);
    }
    lock_give(&heap->lock);
}

uint32_t run_split_in_flight(uint32_t page, size_t pages)
{
    struct page_heap *heap = page_heap_of(page);
    struct page *record = page_record(page);
    uint32_t second = 0;
    unsigned slot;

    lock_take(&heap->lock);
    slot = slot_in_flight(heap, 0);
    if (slot < IN_FLIGHT_MAX && slot_in_flight(heap, page) < IN_FLIGHT_MAX) {
        second = page + (uint32_t)pages;
        note_heap(heap, page_record(second));
        tag_run(page_record(second), record->run_pages - pages, PAGE_USED, PAGE_USED);
        tag_run(record, pages, PAGE_USED, PAGE_USED);
        heap->in_flight[slot] = second;
    }
    lock_give(&heap->lock);
    return second;
}

bool run_is_in_flight(uint32_t page)
{
    struct page_heap *heap = page_heap_of(page);
    bool is;

    lock_take(&heap->lock);
    is = slot_in_flight(heap, page) < IN_FLIGHT_MAX;
    lock_give(&heap->lock);
    return is;
}

bool page_heaps_have_in_flight(void)
{
    bool have = false;

    for (unsigned i = 0; i < page_heap_count() && !have; i++) {
        struct page_heap *heap = &page_heap[i];

        lock_take(&heap->lock);
        for (unsigned slot = 0; slot < IN_FLIGHT_MAX; slot++) have |= heap->in_flight[slot] != 0;
        lock_give(&heap->lock);
    }
    return have;
}

void page_heaps_put_back_in_flight(void)
{
    for (unsigned i = 0; i < page_heap_count() * IN_FLIGHT_MAX; i++) {
        struct page_heap *heap = &page_heap[i / IN_FLIGHT_MAX];
        uint32_t page = heap->in_flight[i % IN_FLIGHT_MAX];

        heap->in_flight[i % IN_FLIGHT_MAX] = 0;
        if (page != 0) make_free(heap, page, page_record(page)->run_pages, PAGE_DIRTY);
    }
}

/* Free pages are closed where purging closes them. Pages that are closed and cannot be committed
 * again, where they must be, are nobody's any more. */
void run_return_remapped(uint32_t page)
{
    size_t pages = page_record(page)->run_pages;
    struct os_range range = page_range(page, pages);

    if (!os_close(range)) {
        run_return(page);
        return;
    }
    if (!OS_PURGE_CLOSES && !os_commit(range)) return;
    lock_take(&space.lock);
    huge_advise_new_mapping(range);
    lock_give(&space.lock);
    run_return_clean(page);
}

/* Closes the free pages at the end of the newest region, if they are the heap's, with the seam
 * before them: it would stay in the way of those whose pages end there. Under both locks. Returns
 * how many. */
static size_t close_end(struct page_heap *heap)
{
    struct hole tail = hole_at_the_end(heap);
    uint32_t first = tail.first, end = tail.first;
    size_t pages = tail.pages;
    struct page *seam;

    if (tail.pages == 0) return 0;
    seam = page_record(tail.first) - 1;
    if (is_seam(seam)) {
        end = seam->seam.end;
        first--;
        pages++;
    }
    if (!space_close_tail(first, pages)) return 0;
    huge_advise_new_mapping(page_range(first, pages));
    heap->end = end;
    for (size_t at = 0; at < tail.pages;) at += remove_free(heap, tail.first + (uint32_t)at);
    note_dirty_low(heap);
    /* After the clean ones, see commit_add_heap. */
    __atomic_store_n(&heap->open_pages, heap->open_pages - tail.pages, __ATOMIC_RELEASE);
    if (first != tail.first) {
        seam->bin_index = 0;
        seam->state = PAGE_INSIDE;
    }
    return pages;
}

static size_t close_end_of(struct page_heap *heap, bool waits)
{
    size_t closed = 0;
    bool entered = true;

    lock_take(&heap->lock);
    if (waits) lock_take(&space.lock);
    else entered = lock_try(&space.lock);
    if (entered) {
        closed = close_end(heap);
        lock_give(&space.lock);
    }
    lock_give(&heap->lock);
    return closed;
}

/* Once one page heap has closed its end, free pages of another may be the end, so it begins anew
 * with the first. It closes no more than was open at the start: others that open and free meanwhile
 * could keep it here for ever. */
READS_UNLOCKED bool page_heaps_close_tail(bool waits)
{
    size_t most = space.open_bytes >> space.page_shift, closed = 0;

    for (unsigned i = 0; i < page_heap_count() && closed < most;) {
        size_t pages = close_end_of(&page_heap[i], waits);

        closed += pages;
        i = pages != 0 ? 0 : i + 1;
    }
    return closed != 0;
}
