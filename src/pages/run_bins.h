/* run_bins.h - how free runs are kept: lists of page numbers in bins, and tags at both ends of a
 * run.
 *
 * Only for the files of the page heap, under its lock. make_free and take_front hold R1, R2, K1, K2
 * and K3; split_free leaves two free neighbours, one of which its caller takes next. The shortest
 * ways in run.c, and the closing of the region's end, do the same by hand.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGES_RUN_BINS_H
#define PRAIRIE_PAGES_RUN_BINS_H

#include "run_find.h"

/* ---- bins ---- */

INLINE unsigned kind_of(uint8_t state) { return (unsigned)(state - PAGE_DIRTY); }

/* The bin for a free run of this length and state. */
INLINE unsigned bin_for(size_t pages, enum page_state state)
{
    return bin_of(pages) + (state == PAGE_CLEAN ? BIN_COUNT : 0);
}

INLINE void bin_add(unsigned bin, uint32_t page, struct page *record)
{
    struct run_bins *bins = &page_heap.bins;
    uint32_t head = bins->head[bin];

    record->bin_index = (uint16_t)bin;
    record->bin.next = head;
    record->bin.previous = 0;
    page_record(head)->bin.previous = page; /* of the unused page 0, when the bin was empty */
    bins->head[bin] = page;
    bins->bitmap[bin / 64] |= (uint64_t)1 << (bin % 64);
}

INLINE void bin_remove(struct page *record)
{
    struct run_bins *bins = &page_heap.bins;
    uint32_t next = record->bin.next, previous = record->bin.previous;

    page_record(next)->bin.previous = previous;
    if (previous != 0) {
        page_record(previous)->bin.next = next;
    } else {
        unsigned bin = record->bin_index;
        bins->head[bin] = next;
        if (next == 0) bins->bitmap[bin / 64] &= ~((uint64_t)1 << (bin % 64));
    }
    record->slab = 0; /* R3: the links shared this place */
}

/* Another first page for a run that stays in its bin. */
INLINE void bin_replace(struct page *record, uint32_t page, struct page *by)
{
    uint32_t next = record->bin.next, previous = record->bin.previous;
    unsigned bin = record->bin_index;

    by->bin_index = (uint16_t)bin;
    by->bin.next = next;
    by->bin.previous = previous;
    page_record(next)->bin.previous = page;
    if (previous != 0) page_record(previous)->bin.next = page;
    else page_heap.bins.head[bin] = page;
    record->slab = 0;
}

/* ---- boundary tags ---- */

/* The first page is written last: in a run of one page its state is the one that stays. */
INLINE void tag_run(struct page *record, size_t pages, enum page_state first, enum page_state last)
{
    struct page *end = record + pages - 1;

    end->run_pages = (uint32_t)pages;
    end->state = (uint8_t)last;
    record->run_pages = (uint32_t)pages;
    record->state = (uint8_t)first;
}

/* ---- free runs ---- */

/* Makes a free run of pages whose boundaries are not free yet, merging it with free neighbours. A
 * merged run that belongs into the bin where one of its parts is stays there. */
INLINE void make_free(uint32_t page, size_t pages, enum page_state state)
{
    struct page *record = page_record(page);
    struct page *left = record - 1, *right = record + pages;
    bool merges_left = left->state == state, merges_right = right->state == state;
    unsigned bin;

    page_heap.free_pages[kind_of((uint8_t)state)] += pages;
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
        if (merges_right) bin_remove(right);
        if (bin == record->bin_index) return;
        bin_remove(record);
    } else if (merges_right) {
        if (bin == right->bin_index) {
            bin_replace(right, page, record);
            return;
        }
        bin_remove(right);
    }
    bin_add(bin, page, record);
}

/* Takes the front of a free run. */
INLINE void take_front(uint32_t page, size_t pages, enum page_state state)
{
    struct page *record = page_record(page);
    enum page_state old_state = (enum page_state)record->state;
    size_t rest = record->run_pages - pages;

    page_heap.free_pages[kind_of((uint8_t)old_state)] -= pages;
    if (rest == 0) {
        bin_remove(record);
    } else {
        unsigned bin = bin_for(rest, old_state);
        page += (uint32_t)pages;
        tag_run(record + pages, rest, old_state, old_state);
        if (bin == record->bin_index) {
            bin_replace(record, page, record + pages);
        } else {
            bin_remove(record);
            bin_add(bin, page, record + pages);
        }
    }
    tag_run(record, pages, state, PAGE_USED);
}

/* Makes two free runs of one, so that the second begins at page + skip. */
INLINE uint32_t split_free(uint32_t page, size_t skip)
{
    struct page *record = page_record(page);
    enum page_state state = (enum page_state)record->state;
    size_t rest = record->run_pages - skip;

    bin_remove(record);
    tag_run(record, skip, state, state);
    bin_add(bin_for(skip, state), page, record);
    tag_run(record + skip, rest, state, state);
    bin_add(bin_for(rest, state), page + (uint32_t)skip, record + skip);
    return page + (uint32_t)skip;
}

#endif
