/* run_bins.h - free runs: lists of page numbers in bins, and tags at both ends of a run.
 *
 * Only for the files of the page heap, under its lock. make_free and take_front uphold R1, R2, K1,
 * K2 and K3; split_free leaves two free neighbours, one of which its caller takes next. The
 * shortest ways in run.c do the same by hand.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGE_HEAP_RUN_BINS_H
#define PRAIRIE_PAGE_HEAP_RUN_BINS_H

#include "run_find.h"

/* ---- bins ---- */

INLINE unsigned kind_of(uint8_t state) { return state & 1; }

/* The bin for a free run of this length and state. */
INLINE unsigned bin_for(size_t pages, enum page_state state)
{
    return bin_of(pages) + kind_of((uint8_t)state) * BIN_COUNT;
}

/* 0 ends a list. With one page heap the record of page 0 is written all the same, which saves a
 * branch; several page heaps would all write to that one cache line, so there it is left alone. */
INLINE void set_previous(uint32_t page, uint32_t previous)
{
    if (PAGE_HEAPS == 1 || page != 0) page_record(page)->bin.previous = previous;
}

_Static_assert(FREE_KINDS *BIN_COUNT <= PAGE_STAGGERED, "numbers of bins lie below the marks");

/* A free run is used from now on, and has no marks. */
INLINE void note_heap(const struct page_heap *heap, struct page *record)
{
    record->bin_index = heap->number;
}

INLINE void bin_add(struct page_heap *heap, unsigned bin, uint32_t page, struct page *record)
{
    struct run_bins *bins = &heap->bins;
    uint32_t head = bins->head[bin];

    record->bin_index = (uint16_t)bin;
    record->bin.next = head;
    record->bin.previous = 0;
    set_previous(head, page);
    bins->head[bin] = page;
    bins->bitmap[bin / 64] |= (uint64_t)1 << (bin % 64);
}

INLINE void bin_remove(struct page_heap *heap, struct page *record)
{
    struct run_bins *bins = &heap->bins;
    uint32_t next = record->bin.next, previous = record->bin.previous;

    set_previous(next, previous);
    if (previous != 0) {
        page_record(previous)->bin.next = next;
    } else {
        unsigned bin = record->bin_index;
        bins->head[bin] = next;
        if (next == 0) bins->bitmap[bin / 64] &= ~((uint64_t)1 << (bin % 64));
    }
    record->slab = 0; /* R3: the links shared this field */
}

/* Another first page for a run that stays in its bin. */
INLINE void bin_replace(struct page_heap *heap, struct page *record, uint32_t page, struct page *by)
{
    uint32_t next = record->bin.next, previous = record->bin.previous;
    unsigned bin = record->bin_index;

    by->bin_index = (uint16_t)bin;
    by->bin.next = next;
    by->bin.previous = previous;
    set_previous(next, page);
    if (previous != 0) page_record(previous)->bin.next = page;
    else heap->bins.head[bin] = page;
    record->slab = 0;
}

/* ---- used and free runs ---- */

INLINE bool is_used_state(uint8_t state) { return state == PAGE_USED || state == PAGE_LARGE; }

INLINE void note_dirty_low(struct page_heap *heap)
{
    if (heap->free_pages[FREE_DIRTY] < heap->dirty_low)
        heap->dirty_low = heap->free_pages[FREE_DIRTY];
}

/* Clean pages are leased. */
INLINE void count_clean(struct page_heap *heap, size_t pages)
{
    heap->clean_leased += pages;
    if (unlikely(heap->clean_leased >= heap->huge_again_at)) huge_reconsider(heap);
}

/* Makes a free run of pages whose boundaries are not free yet, merging it with free neighbours. A
 * merged run that belongs into the bin where one of its parts is stays there. */
INLINE void make_free(struct page_heap *heap, uint32_t page, size_t pages, enum page_state state)
{
    struct page *record = page_record(page);
    struct page *left = record - 1, *right = record + pages;
    bool merges_left = state_beside(left) == state, merges_right = state_beside(right) == state;
    unsigned bin;

    if (state >= PAGE_SUPPLIED_DIRTY) {
        merges_left = merges_left && supplied_is_same_piece(heap, page, page - 1);
        merges_right = merges_right && supplied_is_same_piece(heap, page, page + (uint32_t)pages);
    }
    if (state == PAGE_CLEAN) page_heap_note_taken(heap);
    heap->free_pages[kind_of((uint8_t)state)] += pages;
    if (state == PAGE_DIRTY) note_dirty(heap);
    if (merges_left) {
        size_t left_pages = left->run_pages;
        left->state = PAGE_INSIDE;
        record->state = PAGE_INSIDE;
        page -= (uint32_t)left_pages;
        record -= left_pages;
        pages += left_pages;
    }
    if (merges_right) {
        (right - 1)->state = PAGE_INSIDE;
        right->state = PAGE_INSIDE;
        pages += right->run_pages;
    }
    tag_run(record, pages, state, state);
    bin = bin_for(pages, state);
    if (merges_left) {
        if (merges_right) bin_remove(heap, right);
        if (bin == record->bin_index) return;
        bin_remove(heap, record);
    } else if (merges_right) {
        if (bin == right->bin_index) {
            bin_replace(heap, right, page, record);
            return;
        }
        bin_remove(heap, right);
    }
    bin_add(heap, bin, page, record);
}

/* Takes a free run out of the bins for good: its pages are nobody's. Returns how many they are. */
INLINE size_t remove_free(struct page_heap *heap, uint32_t page)
{
    struct page *record = page_record(page);
    size_t pages = record->run_pages;

    bin_remove(heap, record);
    heap->free_pages[kind_of(record->state)] -= pages;
    (record + pages - 1)->state = PAGE_INSIDE;
    record->state = PAGE_INSIDE;
    return pages;
}

/* Takes the front of a free run. */
INLINE void take_front(struct page_heap *heap, uint32_t page, size_t pages, enum page_state state)
{
    struct page *record = page_record(page);
    enum page_state old_state = (enum page_state)record->state;
    size_t rest = record->run_pages - pages;

    heap->free_pages[kind_of((uint8_t)old_state)] -= pages;
    if (rest == 0) {
        bin_remove(heap, record);
    } else {
        unsigned bin = bin_for(rest, old_state);
        page += (uint32_t)pages;
        tag_run(record + pages, rest, old_state, old_state);
        if (bin == record->bin_index) {
            bin_replace(heap, record, page, record + pages);
        } else {
            bin_remove(heap, record);
            bin_add(heap, bin, page, record + pages);
        }
    }
    note_heap(heap, record);
    tag_run(record, pages, state, PAGE_USED);
}

/* Free pages are about to be taken, of which some are clean. Where purging closed those, they open
 * now; what hooks supply is theirs. False: no memory, and they must stay free. */
INLINE bool open_free(struct page_heap *heap, uint32_t page, size_t pages)
{
    if (!OS_PURGE_CLOSES || page_heap_is_supplied(heap)) return true;
    return os_commit(page_range(page, pages));
}

/* Makes two free runs of one, so that the second begins at page + skip. */
INLINE uint32_t split_free(struct page_heap *heap, uint32_t page, size_t skip)
{
    struct page *record = page_record(page);
    enum page_state state = (enum page_state)record->state;
    size_t rest = record->run_pages - skip;

    bin_remove(heap, record);
    tag_run(record, skip, state, state);
    bin_add(heap, bin_for(skip, state), page, record);
    tag_run(record + skip, rest, state, state);
    bin_add(heap, bin_for(rest, state), page + (uint32_t)skip, record + skip);
    return page + (uint32_t)skip;
}

#endif
