/* run.c - bins, boundary tags, and the five things done with them.
 * SPDX-License-Identifier: MIT
 */
#include "run.h"

#include "../base/bits.h"

struct run_keeper keeper;

enum { PROBES_MAX = 4, ALIGNED_PROBES_MAX = 64 };

void runs_start(void) { lock_init(&keeper.lock, LOCK_RUNS); }
void runs_remake(void) { lock_remake(&keeper.lock); }

/* ---- bins ---- */

static unsigned kind_of(uint8_t state) { return state == PAGE_DIRTY ? FREE_DIRTY : FREE_CLEAN; }
static bool is_free(uint8_t state) { return state == PAGE_DIRTY || state == PAGE_CLEAN; }

/* The bin that runs of this length are kept in. */
static unsigned bin_of(size_t pages)
{
    unsigned top;

    if (pages <= BIN_EXACT_COUNT) return (unsigned)pages - 1;
    top = highest_bit(pages);
    return BIN_EXACT_COUNT + (top - 6) * 8 + (unsigned)((pages >> (top - 3)) & 7);
}

/* The first bin whose every member has at least this length. */
static unsigned bin_fitting(size_t pages)
{
    unsigned top;

    if (pages <= BIN_EXACT_COUNT) return (unsigned)pages - 1;
    top = highest_bit(pages);
    return bin_of(pages) + ((pages & (((size_t)1 << (top - 3)) - 1)) != 0);
}

static void bin_add(uint32_t page, struct page *record)
{
    struct run_bins *bins = &keeper.bins[kind_of(record->state)];
    unsigned bin = bin_of(record->run_pages);
    uint32_t head = bins->head[bin];

    record->bin.next = head;
    record->bin.previous = 0;
    if (head != 0) page_record(head)->bin.previous = page;
    bins->head[bin] = page;
    bins->bitmap[bin / 64] |= (uint64_t)1 << (bin % 64);
    keeper.free_pages[kind_of(record->state)] += record->run_pages;
}

static void bin_remove(struct page *record)
{
    struct run_bins *bins = &keeper.bins[kind_of(record->state)];
    unsigned bin = bin_of(record->run_pages);
    uint32_t next = record->bin.next, previous = record->bin.previous;

    if (next != 0) page_record(next)->bin.previous = previous;
    if (previous != 0) {
        page_record(previous)->bin.next = next;
    } else {
        bins->head[bin] = next;
        if (next == 0) bins->bitmap[bin / 64] &= ~((uint64_t)1 << (bin % 64));
    }
    keeper.free_pages[kind_of(record->state)] -= record->run_pages;
    if (keeper.free_pages[FREE_DIRTY] < keeper.dirty_low) keeper.dirty_low = keeper.free_pages[FREE_DIRTY];
    record->slab = 0;           /* R3: the links shared this place */
}

/* ---- boundary tags ---- */

static void tag_run(uint32_t page, size_t pages, enum page_state first, enum page_state last)
{
    struct page *record = page_record(page);
    struct page *end = record + pages - 1;

    end->run_pages = (uint32_t)pages;
    end->state = (uint8_t)last;
    record->run_pages = (uint32_t)pages;
    record->state = (uint8_t)first;
}

static void tag_used(uint32_t page, size_t pages, enum page_state state)
{
    tag_run(page, pages, state, pages == 1 ? state : PAGE_USED);
}

/* Makes a free run of pages whose boundaries are not free yet, merging it with free neighbours. */
static void make_free(uint32_t page, size_t pages, enum page_state state)
{
    struct page *record = page_record(page);
    struct page *left = record - 1, *right = record + pages;

    if (left->state == state) {
        size_t left_pages = left->run_pages;
        bin_remove(record - left_pages);
        left->state = PAGE_INSIDE;
        record->state = PAGE_INSIDE;
        page -= (uint32_t)left_pages;
        pages += left_pages;
    }
    if (right->state == state) {
        bin_remove(right);
        (right - 1)->state = PAGE_INSIDE;
        pages += right->run_pages;
        right->state = PAGE_INSIDE;
    }
    tag_run(page, pages, state, state);
    bin_add(page, page_record(page));
}

/* ---- finding ---- */

/* The lowest-placed of the first few members. */
static uint32_t low_member(uint32_t head)
{
    uint32_t best = head, page = head;

    for (unsigned probe = 1; probe < PROBES_MAX; probe++) {
        page = page_record(page)->bin.next;
        if (page == 0) break;
        if (page < best) best = page;
    }
    return best;
}

/* The shortest that fits among the first few members of a bin that mixes lengths. */
static uint32_t fitting_member(uint32_t page, size_t pages)
{
    uint32_t best = 0, best_pages = UINT32_MAX;

    for (unsigned probe = 0; page != 0 && probe < PROBES_MAX; probe++) {
        const struct page *record = page_record(page);
        if (record->run_pages >= pages && record->run_pages < best_pages) {
            best = page;
            best_pages = record->run_pages;
        }
        page = record->bin.next;
    }
    return best;
}

static unsigned first_bin_from(const struct run_bins *bins, unsigned bin)
{
    unsigned word = bin / 64;
    uint64_t bits = bins->bitmap[word] & bits_from(bin % 64);

    while (bits == 0) {
        if (++word == BIN_WORDS) return BIN_COUNT;
        bits = bins->bitmap[word];
    }
    return word * 64 + lowest_bit(bits);
}

static uint32_t find_run(const struct run_bins *bins, size_t pages)
{
    unsigned fitting = bin_fitting(pages);
    unsigned below = bin_of(pages);
    unsigned bin;

    if (below != fitting) {
        uint32_t page = fitting_member(bins->head[below], pages);
        if (page != 0) return page;
    }
    bin = first_bin_from(bins, fitting);
    return bin == BIN_COUNT ? 0 : low_member(bins->head[bin]);
}

/* How many pages of a run lie before its first aligned address. */
static size_t pages_to_alignment(uint32_t page, size_t align_pages)
{
    size_t at = (uintptr_t)page_address(page) >> plain.page_shift;

    return (0 - at) & (align_pages - 1);
}

/* A run with an aligned stretch in it. Any run of pages + align - 1 has one, but the shorter ones are
 * tried first: freed aligned blocks are exactly as long as the next request. */
static uint32_t find_aligned(const struct run_bins *bins, size_t pages, size_t align_pages)
{
    unsigned last = bin_fitting(pages + align_pages - 1);
    unsigned probes = 0;

    for (unsigned bin = first_bin_from(bins, bin_of(pages)); bin < BIN_COUNT;
         bin = bin + 1 < BIN_COUNT ? first_bin_from(bins, bin + 1) : BIN_COUNT) {
        unsigned in_bin = 0;
        for (uint32_t page = bins->head[bin]; page != 0 && in_bin < 8;
             page = page_record(page)->bin.next, in_bin++) {
            if (page_record(page)->run_pages >= pages + pages_to_alignment(page, align_pages))
                return page;
        }
        probes += in_bin;
        if (probes >= ALIGNED_PROBES_MAX && bin < last) bin = last - 1;    /* where all fit */
    }
    return 0;
}

static uint32_t find_free(size_t pages, size_t align_pages)
{
    for (unsigned kind = FREE_DIRTY; kind < FREE_KINDS; kind++) {
        uint32_t page = align_pages == 1 ? find_run(&keeper.bins[kind], pages)
                                         : find_aligned(&keeper.bins[kind], pages, align_pages);
        if (page != 0) return page;
    }
    return 0;
}

/* Opens more of the region. The new pages merge with a clean run before them. */
static bool grow_for(size_t pages, size_t align_pages)
{
    struct page_span span = plain_grow(pages + align_pages - 1);

    if (span.count == 0) return false;
    keeper.grows++;
    make_free(span.first, span.count, PAGE_CLEAN);
    return true;
}

/* ---- the five verbs ---- */

/* Cuts [skip, skip + pages) out of a free run; what is left on either side stays free. */
static uint32_t split_run(uint32_t page, size_t skip, size_t pages, enum page_state state)
{
    struct page *record = page_record(page);
    enum page_state free_state = (enum page_state)record->state;
    size_t rest = record->run_pages - skip - pages;
    uint32_t taken = page + (uint32_t)skip;

    bin_remove(record);
    tag_used(taken, pages, state);
    if (skip != 0) {
        tag_run(page, skip, free_state, free_state);
        bin_add(page, record);
    }
    if (rest != 0) {
        uint32_t tail = taken + (uint32_t)pages;
        tag_run(tail, rest, free_state, free_state);
        bin_add(tail, page_record(tail));
    }
    keeper.used_pages += pages;
    return taken;
}

struct run run_lease(size_t pages, size_t align_pages, enum page_state state)
{
    struct run run = { 0, (uint32_t)pages, false };
    uint32_t page;

    check(pages > 0 && is_power_of_two(align_pages));
    if (pages > plain.page_count_max || align_pages > plain.page_count_max) return run;
    lock_take(&keeper.lock);
    page = find_free(pages, align_pages);
    if (unlikely(page == 0) && grow_for(pages, align_pages)) page = find_free(pages, align_pages);
    if (likely(page != 0)) {
        size_t skip = align_pages == 1 ? 0 : pages_to_alignment(page, align_pages);
        run.zero = page_record(page)->state == PAGE_CLEAN;
        run.page = split_run(page, skip, pages, state);
        keeper.leases++;
        if (run.zero) keeper.clean_leased += pages;
        if (state == PAGE_LARGE) {
            keeper.large_pages += pages;
            keeper.large_count++;
        }
    }
    lock_give(&keeper.lock);
    return run;
}

static void forget_used(const struct page *record)
{
    keeper.used_pages -= record->run_pages;
    if (record->state == PAGE_LARGE) {
        keeper.large_pages -= record->run_pages;
        keeper.large_count--;
    }
}

void run_return(uint32_t page)
{
    struct page *record = page_record(page);

    lock_take(&keeper.lock);
    check(record->state == PAGE_USED || record->state == PAGE_LARGE);
    forget_used(record);
    keeper.returns++;
    make_free(page, record->run_pages, PAGE_DIRTY);
    lock_give(&keeper.lock);
}

/* Free pages right of a run: at most one dirty run and one clean one, in either order. */
static size_t free_right(const struct page *right, size_t wanted)
{
    size_t found = 0;

    while (found < wanted && is_free(right->state)) {
        found += right->run_pages;
        right += right->run_pages;
    }
    return found;
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
    fits = free_right(record + old_pages, missing) >= missing;
    if (fits) {
        *zero = true;
        (record + old_pages - 1)->state = PAGE_INSIDE;
        for (size_t at = old_pages; at < pages;) {
            uint32_t next = page + (uint32_t)at;
            size_t part = min_size(page_record(next)->run_pages, pages - at);
            *zero &= page_record(next)->state == PAGE_CLEAN;
            (void)split_run(next, 0, part, PAGE_USED);
            page_record(next)->state = PAGE_INSIDE;
            page_record(next + (uint32_t)part - 1)->state = PAGE_INSIDE;
            at += part;
        }
        tag_used(page, pages, PAGE_LARGE);
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
    tag_used(page, pages, PAGE_LARGE);
    keeper.large_pages -= old_pages - pages;
    keeper.used_pages -= old_pages - pages;
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
        run.page = split_run(page, length - run.pages, run.pages, PAGE_USED);
        return run;
    }
    return run;
}

void run_put_free(uint32_t page, enum page_state state)
{
    check(lock_is_mine(&keeper.lock));
    forget_used(page_record(page));
    make_free(page, page_record(page)->run_pages, state);
}
