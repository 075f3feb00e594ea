/* run.c - keeping free runs in bins and boundary tags, and the five things done with runs.
 * SPDX-License-Identifier: MIT
 */
#include "run.h"

#include "run_find.h"

struct run_keeper keeper;

void runs_start(void) { lock_init(&keeper.lock, LOCK_RUNS); }

/* ---- bins ---- */

INLINE unsigned kind_of(uint8_t state) { return (unsigned)(state - PAGE_DIRTY); }

INLINE void bin_add_to(unsigned kind, unsigned bin, uint32_t page, struct page *record)
{
    struct run_bins *bins = &keeper.bins[kind];
    uint32_t head = bins->head[bin];

    record->bin.next = head;
    record->bin.previous = 0;
    page_record(head)->bin.previous = page; /* of the unused page 0, when the bin was empty */
    bins->head[bin] = page;
    bins->bitmap[bin / 64] |= (uint64_t)1 << (bin % 64);
    keeper.free_pages[kind] += record->run_pages;
}

INLINE void bin_add(unsigned kind, uint32_t page, struct page *record)
{
    bin_add_to(kind, bin_of(record->run_pages), page, record);
}

INLINE void bin_remove(unsigned kind, struct page *record)
{
    struct run_bins *bins = &keeper.bins[kind];
    uint32_t next = record->bin.next, previous = record->bin.previous;

    page_record(next)->bin.previous = previous;
    if (previous != 0) {
        page_record(previous)->bin.next = next;
    } else {
        unsigned bin = bin_of(record->run_pages);
        bins->head[bin] = next;
        if (next == 0) bins->bitmap[bin / 64] &= ~((uint64_t)1 << (bin % 64));
    }
    keeper.free_pages[kind] -= record->run_pages;
    record->slab = 0; /* R3: the links shared this place */
}

/* ---- boundary tags ---- */

INLINE void tag_run(struct page *record, size_t pages, enum page_state first, enum page_state last)
{
    struct page *end = record + pages - 1;

    end->run_pages = (uint32_t)pages;
    end->state = (uint8_t)last;
    record->run_pages = (uint32_t)pages;
    record->state = (uint8_t)first;
}

/* Makes a free run of pages whose boundaries are not free yet, merging it with free neighbours. */
static void make_free(uint32_t page, size_t pages, enum page_state state)
{
    struct page *record = page_record(page);
    struct page *left = record - 1, *right = record + pages;

    if (left->state == state) {
        size_t left_pages = left->run_pages;
        bin_remove(kind_of((uint8_t)state), record - left_pages);
        left->state = PAGE_INSIDE;
        record->state = PAGE_INSIDE;
        page -= (uint32_t)left_pages;
        pages += left_pages;
        record -= left_pages;
    }
    if (right->state == state) {
        bin_remove(kind_of((uint8_t)state), right);
        (right - 1)->state = PAGE_INSIDE;
        pages += right->run_pages;
        right->state = PAGE_INSIDE;
    }
    tag_run(record, pages, state, state);
    bin_add(kind_of((uint8_t)state), page, record);
}

/* ---- the five verbs ---- */

/* What is left of a free run when its front is taken: the tail takes its place in the bin when it belongs
 * there as well, which spares the lists. */
INLINE void keep_tail(unsigned kind, struct page *record, size_t taken, size_t rest)
{
    struct page *tail = record + taken;
    uint32_t page = (uint32_t)(tail - page_map);
    enum page_state state = (enum page_state)record->state;

    if (bin_of(rest) != bin_of(record->run_pages)) {
        bin_remove(kind, record);
        tag_run(tail, rest, state, state);
        bin_add(kind, page, tail);
        return;
    }
    tail->bin = record->bin;
    page_record(tail->bin.next)->bin.previous = page;
    if (tail->bin.previous != 0) page_record(tail->bin.previous)->bin.next = page;
    else keeper.bins[kind].head[bin_of(rest)] = page;
    tag_run(tail, rest, state, state);
    keeper.free_pages[kind] -= taken;
    record->slab = 0;
}

/* Takes the front of a free run. */
static void take_front(uint32_t page, size_t pages, enum page_state state)
{
    struct page *record = page_record(page);
    unsigned kind = kind_of(record->state);
    size_t rest = record->run_pages - pages;

    if (rest == 0) bin_remove(kind, record);
    else keep_tail(kind, record, pages, rest);
    tag_run(record, pages, state, pages == 1 ? state : PAGE_USED);
}

/* Makes two free runs of one, so that the second begins at page + skip. */
static uint32_t split_free(uint32_t page, size_t skip)
{
    struct page *record = page_record(page);
    enum page_state state = (enum page_state)record->state;
    unsigned kind = kind_of(record->state);
    size_t rest = record->run_pages - skip;

    bin_remove(kind, record);
    tag_run(record, skip, state, state);
    bin_add(kind, page, record);
    tag_run(record + skip, rest, state, state);
    bin_add(kind, page + (uint32_t)skip, record + skip);
    return page + (uint32_t)skip;
}

/* Takes the free pages from page + at to page + pages into a used run that begins at `page`, one free run
 * after the other. True: all of them read as zero. */
static bool take_hole(uint32_t page, size_t at, size_t pages, enum page_state state)
{
    bool zero = true;

    while (at < pages) {
        uint32_t next = page + (uint32_t)at;
        size_t part = min_size(page_record(next)->run_pages, pages - at);

        if (page_record(next)->state == PAGE_CLEAN) keeper.clean_leased += part;
        else zero = false;
        take_front(next, part, PAGE_USED);
        page_record(next)->state = PAGE_INSIDE;
        page_record(next + (uint32_t)part - 1)->state = PAGE_INSIDE;
        at += part;
    }
    tag_run(page_record(page), pages, state, pages == 1 ? state : PAGE_USED);
    return zero;
}

/* Opens at least `missing` more pages: a clean run, or the end of one. */
static struct page_span grow(size_t missing)
{
    struct page_span span = plain_grow(missing);

    if (span.count != 0) {
        keeper.grows++;
        make_free(span.first, span.count, PAGE_CLEAN);
    }
    return span;
}

/* Opens just what the free pages at the end of the region lack, and leads to the whole hole. */
static struct hole grow_tail(size_t pages)
{
    struct hole tail = { 0, 0 };
    struct page_span span;

    if (plain_newest_is_open()) tail = hole_before(plain_open_end());
    if (tail.pages >= pages) return tail;
    span = grow(pages - tail.pages);
    if (span.count == 0) return (struct hole){ 0, 0 };
    if (tail.pages != 0 && span.first == tail.first + tail.pages)
        return (struct hole){ tail.first, tail.pages + span.count };
    /* That was in another region, where the tail is of no help. */
    if (span.count < pages) span = grow(pages);
    return span.count != 0 ? hole_before(span.first + span.count) : (struct hole){ 0, 0 };
}

static bool take_aligned_run(struct run *run, size_t align_pages, enum page_state state)
{
    uint32_t page = run_find_aligned(run->pages, align_pages);
    size_t skip;

    if (page == 0) return false;
    skip = pages_to_alignment(page, align_pages);
    if (skip != 0) page = split_free(page, skip);
    run->zero = page_record(page)->state == PAGE_CLEAN;
    if (run->zero) keeper.clean_leased += run->pages;
    run->page = page;
    take_front(page, run->pages, state);
    return true;
}

/* No one free run is long enough: dirty and clean neighbours together; else the region opens further. */
static COLD bool take_hole_or_grow(struct run *run, size_t align_pages, enum page_state state)
{
    struct hole hole;

    if (align_pages > 1)
        return take_aligned_run(run, align_pages, state)
            || (grow(run->pages + align_pages - 1).count != 0
                && take_aligned_run(run, align_pages, state));
    hole = run_find_hole(run->pages);
    if (hole.pages < run->pages) hole = grow_tail(run->pages);
    if (hole.pages < run->pages) return false;
    run->page = hole.first;
    run->zero = take_hole(hole.first, 0, run->pages, state);
    return true;
}

INLINE void note_dirty_low(void)
{
    if (keeper.free_pages[FREE_DIRTY] < keeper.dirty_low)
        keeper.dirty_low = keeper.free_pages[FREE_DIRTY];
}

INLINE void count_lease(size_t pages, enum page_state state)
{
    keeper.leases++;
    note_dirty_low();
    if (state == PAGE_LARGE) {
        keeper.large_pages += pages;
        keeper.large_count++;
    }
}

/* The usual lease: a dirty run of just this length, which was returned a moment ago. */
INLINE bool take_exact(uint32_t *taken, size_t pages, enum page_state state)
{
    struct run_bins *bins = &keeper.bins[FREE_DIRTY];
    uint32_t page = bins->head[pages - 1];
    struct page *record = page_record(page);
    uint32_t next;

    *taken = page;
    if (unlikely(page == 0)) return false;
    next = record->bin.next;
    bins->head[pages - 1] = next;
    page_record(next)->bin.previous = 0;
    if (next == 0) bins->bitmap[0] &= ~((uint64_t)1 << (pages - 1));
    keeper.free_pages[FREE_DIRTY] -= pages;
    (record + pages - 1)->state = PAGE_USED;
    record->state = (uint8_t)state;
    record->slab = 0; /* R3: the links shared this place */
    return true;
}

static NOINLINE void lease_other(struct run *run, size_t align_pages, enum page_state state)
{
    if (likely(align_pages == 1)) run->page = run_find(run->pages);
    if (likely(run->page != 0)) {
        run->zero = page_record(run->page)->state == PAGE_CLEAN;
        if (run->zero) keeper.clean_leased += run->pages;
        take_front(run->page, run->pages, state);
    } else if (!take_hole_or_grow(run, align_pages, state)) {
        return;
    }
    count_lease(run->pages, state);
}

struct run run_lease(size_t pages, size_t align_pages, enum page_state state)
{
    uint32_t page;

    check(pages > 0 && is_power_of_two(align_pages));
    lock_take(&keeper.lock);
    if (likely(pages <= BIN_EXACT_COUNT && align_pages == 1)
        && likely(take_exact(&page, pages, state))) {
        count_lease(pages, state);
        lock_give(&keeper.lock);
        return (struct run){ page, (uint32_t)pages, false };
    } else {
        struct run run = { 0, (uint32_t)pages, false };
        if (pages <= plain.page_count_max && align_pages <= plain.page_count_max)
            lease_other(&run, align_pages, state);
        lock_give(&keeper.lock);
        return run;
    }
}

void run_return(uint32_t page)
{
    struct page *record = page_record(page);
    size_t pages;

    lock_take(&keeper.lock);
    pages = record->run_pages;
    check(record->state == PAGE_USED || record->state == PAGE_LARGE);
    if (record->state == PAGE_LARGE) {
        keeper.large_pages -= pages;
        keeper.large_count--;
    }
    keeper.returns++;
    if (likely(pages <= BIN_EXACT_COUNT && (record - 1)->state != PAGE_DIRTY
               && (record + pages)->state != PAGE_DIRTY)) {
        record->state = PAGE_DIRTY;
        (record + pages - 1)->state = PAGE_DIRTY;
        bin_add_to(FREE_DIRTY, (unsigned)pages - 1, page, record);
    } else {
        make_free(page, pages, PAGE_DIRTY);
    }
    lock_give(&keeper.lock);
}

bool run_extend(uint32_t page, size_t pages, bool *zero)
{
    struct page *record = page_record(page);
    size_t old_pages, missing;
    bool fits;

    lock_take(&keeper.lock);
    old_pages = record->run_pages;
    missing = pages - old_pages;
    check(record->state == PAGE_LARGE && pages > old_pages);
    fits = hole_after(page + (uint32_t)old_pages, missing).pages >= missing;
    if (fits) {
        (record + old_pages - 1)->state = PAGE_INSIDE;
        *zero = take_hole(page, old_pages, pages, PAGE_LARGE);
        note_dirty_low();
        keeper.large_pages += missing;
    }
    lock_give(&keeper.lock);
    return fits;
}

void run_trim(uint32_t page, size_t pages)
{
    struct page *record = page_record(page);
    size_t old_pages;

    lock_take(&keeper.lock);
    old_pages = record->run_pages;
    check(record->state == PAGE_LARGE && pages > 0 && pages < old_pages);
    tag_run(record, pages, PAGE_LARGE, pages == 1 ? PAGE_LARGE : PAGE_USED);
    keeper.large_pages -= old_pages - pages;
    make_free(page + (uint32_t)pages, old_pages - pages, PAGE_DIRTY);
    lock_give(&keeper.lock);
}

/* ---- what purging needs ---- */

/* Long runs first: they cost the fewest calls and are the least likely to be wanted at once. */
struct run run_take_dirty(size_t min_pages, size_t max_pages)
{
    struct run run = { 0, 0, false };

    check(lock_is_mine(&keeper.lock));
    for (unsigned word = BIN_WORDS; word-- > 0;) {
        uint64_t bits = keeper.bins[FREE_DIRTY].bitmap[word];
        unsigned bin;
        uint32_t page, length;

        if (bits == 0) continue;
        bin = word * 64 + highest_bit(bits);
        page = keeper.bins[FREE_DIRTY].head[bin];
        length = page_record(page)->run_pages;
        if (length < min_pages) return run;
        run.pages = (uint32_t)min_size(length, max_pages);
        if (run.pages < length) page = split_free(page, length - run.pages);
        take_front(page, run.pages, PAGE_USED);
        run.page = page;
        return run;
    }
    return run;
}

void run_put_free(uint32_t page, enum page_state state)
{
    check(lock_is_mine(&keeper.lock));
    make_free(page, page_record(page)->run_pages, state);
}

/* ---- giving up the end of the region ---- */

bool runs_close_tail(void)
{
    struct hole tail = { 0, 0 };
    size_t closed = 0;

    lock_take(&keeper.lock);
    if (plain_newest_is_open()) tail = hole_before(plain_open_end());
    if (tail.pages > 0) closed = plain_close_tail(tail.first, tail.pages);
    if (closed != 0) {
        for (size_t at = 0; at < tail.pages;) {
            struct page *record = page_record(tail.first + (uint32_t)at);
            size_t pages = record->run_pages;

            bin_remove(kind_of(record->state), record);
            (record + pages - 1)->state = PAGE_INSIDE;
            record->state = PAGE_INSIDE;
            at += pages;
        }
    }
    lock_give(&keeper.lock);
    return closed != 0;
}
