/* run_walk.c - walks over the page map by the lengths in it: for those who count, and to compare it
 * with the bins.
 * SPDX-License-Identifier: MIT
 */
#include "run_walk.h"

#include "../space/commit.h"
#include "../space/foreign.h"
#include "run_find.h"

/* ---- for those who count ---- */

uint32_t run_start_from(const struct region *region, uint32_t page)
{
    uint32_t end = region->first_page + region->open_pages;

    if (page <= region->first_page) return region->first_page;
    for (; page < end; page++) {
        const struct page *here = page_record(page), *left = here - 1;

        if (here->state == PAGE_INSIDE) continue;
        if (left->state == PAGE_INSIDE) return page + 1; /* the last of three or more */
        if (here->run_pages != 2 || left->run_pages != 2) return page;
    }
    return end;
}

/* A run in a large cache is used, and so is what lies in a piece of a supplied page heap. */
static enum page_state visible_state(const struct page *record)
{
    bool is_used = page_is_cached(record) || is_supplied_free_state(record->state);

    return is_used ? PAGE_USED : (enum page_state)record->state;
}

static READS_UNLOCKED bool has_vast_blocks(void) { return RELAXED_LOAD(commit.vast_count) != 0; }

void runs_visit(void (*visit)(enum page_state state, size_t pages, void *context), void *context)
{
    uint32_t regions = __atomic_load_n(&space.region_count, __ATOMIC_ACQUIRE);

    for (uint32_t i = 0; i < regions; i++) {
        const struct region *region = &space.region[i];
        uint32_t page = region->first_page, end;

        do {
            page_heaps_each_lock(lock_take, WALK_TAKES);
            end = region->first_page + region->open_pages;
            page = run_start_from(region, page);
            for (unsigned runs = 0; runs < RUNS_PER_HOLD && page < end; runs++) {
                const struct page *record = page_record(page);

                if (record->run_pages == 0) page = end; /* not a run: nothing to go on from */
                else {
                    visit(visible_state(record), record->run_pages, context);
                    page += record->run_pages;
                }
            }
            page_heaps_each_lock(lock_give, WALK_GIVES);
        } while (page < end);
    }
    if (!has_vast_blocks()) return;
    lock_take(&page_heap->lock);
    foreign_visit_whole(visit, context);
    lock_give(&page_heap->lock);
}

/* ---- the invariants ---- */

struct totals {
    size_t used, free[FREE_KINDS], large, large_count, free_runs;
};

/* All pages of a slab say what its first page says, and no other page says anything. In the first
 * page of a free run the links share the field of the slab, and in that of a large block the next
 * one in a large cache does, which its thread writes meanwhile. */
static void check_pages(const struct page *record)
{
    uint32_t slab = record->state == PAGE_USED ? record->slab : 0;

    require(record->class_at == 0 || record->state == PAGE_USED); /* R3 */
    require((record->class_at != 0) == (slab != 0));              /* R3 */
    require(record->state != PAGE_SAMPLED || record->slab != 0);  /* R3 */
    for (size_t i = 1; i < record->run_pages; i++) {
        require(record[i].state == PAGE_INSIDE || i + 1 == record->run_pages); /* R1 */
        require(record[i].class_at == record->class_at);                       /* R3 */
        /* R3; who holds a large block may write to the last one meanwhile. */
        require(record[i].slab == slab
                || (i + 1 == record->run_pages && record->state == PAGE_LARGE));
    }
}

static void check_run(const struct page *record, struct totals *totals)
{
    const struct page *last = record + record->run_pages - 1;
    uint8_t state = record->state;

    require(record->run_pages > 0 && last->run_pages == record->run_pages); /* R1 */
    require(state == PAGE_USED || is_block_state(state) || is_free_state(state)
            || is_supplied_free_state(state)); /* R1 */
    require(state != PAGE_VAST);               /* R1 */
    check_pages(record);
    if (is_free_state(state)) {
        require(last->state == state);       /* R1 */
        require((last + 1)->state != state); /* R2 */
        totals->free[state == PAGE_DIRTY ? FREE_DIRTY : FREE_CLEAN] += record->run_pages;
        totals->free_runs++;
        return;
    }
    totals->used += record->run_pages;
    if (is_supplied_free_state(state)) { /* in a piece that lies in a run that was leased */
        require(last->state == state);   /* R1 */
        return;
    }
    require(last->state == (record == last ? state : PAGE_USED)); /* R1 */
    if (is_large_state(state)) {
        totals->large += record->run_pages;
        totals->large_count++;
    }
}

static size_t check_bin(struct page_heap *heap, unsigned bin)
{
    const struct run_bins *bins = &heap->bins;
    bool marked = (bins->bitmap[bin / 64] >> (bin % 64)) & 1;
    size_t members = 0;
    uint32_t previous = 0;

    for (uint32_t page = bins->head[bin]; page != 0; page = page_record(page)->bin.next) {
        require(page_record(page)->state == free_state(heap, bin / BIN_COUNT)); /* K2 */
        require(page_record(page)->bin.previous == previous);                   /* K2 */
        require(bin_of(page_record(page)->run_pages) == bin % BIN_COUNT);       /* K2 */
        require(page_record(page)->bin_index == bin);                           /* K2 */
        previous = page;
        members++;
    }
    require(marked == (members != 0)); /* K1 */
    return members;
}

size_t run_bins_check(struct page_heap *heap)
{
    size_t members = 0;

    for (unsigned bin = 0; bin < FREE_KINDS * BIN_COUNT; bin++) members += check_bin(heap, bin);
    return members;
}

/* K4 */
uint16_t run_heap_number(const struct page *record, uint16_t before)
{
    uint16_t number;

    if (PAGE_HEAPS == 1) return 0;
    number = RELAXED_LOAD(record->bin_index) % PAGE_CACHED; /* a thread may mark it meanwhile */
    if (number == PAGE_SEAM) return HEAP_UNKNOWN;
    number %= PAGE_STAGGERED;
    if (is_free_state(record->state) || is_supplied_free_state(record->state)
        || number >= PAGE_HEAPS) /* in a piece */
        return before;
    require(before == HEAP_UNKNOWN || before == number); /* K4 */
    return number;
}

static void check_region(const struct region *region, struct totals *totals)
{
    uint32_t page = region->first_page, end = page + region->open_pages;
    uint16_t number = HEAP_UNKNOWN;

    for (; page < end; page += page_record(page)->run_pages) {
        check_run(page_record(page), totals);
        number = run_heap_number(page_record(page), number);
    }
}

void page_heaps_check(void)
{
    struct totals totals = { 0 }, counted = { 0 };
    size_t open = 0;

    for (uint32_t i = 0; i < space.region_count; i++) {
        check_region(&space.region[i], &totals);
        open += space.region[i].open_pages;
    }
    for (unsigned i = 0; i < page_heap_count(); i++) {
        struct page_heap *heap = &page_heap[i];

        check(lock_is_mine(&heap->lock));
        counted.free_runs += run_bins_check(heap);
        for (unsigned kind = 0; kind < FREE_KINDS; kind++)
            counted.free[kind] += heap->free_pages[kind];
        counted.large += heap->large_pages;
        counted.large_count += page_heap_large_count(heap);
    }
    require(counted.free_runs == totals.free_runs);                                   /* K2 */
    require(counted.free[FREE_DIRTY] == totals.free[FREE_DIRTY]);                     /* K3 */
    require(counted.free[FREE_CLEAN] == totals.free[FREE_CLEAN]);                     /* K3 */
    require(totals.used + totals.free[FREE_DIRTY] + totals.free[FREE_CLEAN] == open); /* R1 */
    require(totals.large + (commit.vast_bytes >> space.page_shift) == counted.large); /* O1 */
    require(totals.large_count + commit.vast_count == counted.large_count);           /* O1 */
}
