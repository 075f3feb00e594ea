/* page_heap.h - runs of pages: lease, split, merge and return, each in constant time.
 *
 * A run is a length of pages in one state. Used runs belong to whoever leased them; free runs hang
 * in bins, dirty ones (stale contents) apart from clean ones (zeros):
 *
 *      bin      0   1   2  ...  63 | 64        ...  71 | 72 ...
 *      pages    1   2   3  ...  64 | 65..71    ...  ..127 | 128..143 ...   eight bins a doubling
 *      bitmap   1 bit a bin: set exactly while the bin has members          (K1)
 *
 * Exact sizes come first, so that small runs fit without a search. For larger ones the first set
 * bit at or above a size finds a bin whose every member fits; a few probes in the bin below look
 * for one that fits better. Dirty before clean; what was returned last before what was returned
 * long ago, except that a merged run keeps the place of the part whose bin it stays in.
 *
 * K1  a bin's bit is set exactly while its list has members
 * K2  every free run is in the one bin of its length and state
 * K3  free_pages counts the pages of the free runs of each kind
 * Its lock guards all of it, and the page map of its pages. Every function here takes and gives
 * that lock itself unless it says otherwise.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGE_HEAP_PAGE_HEAP_H
#define PRAIRIE_PAGE_HEAP_PAGE_HEAP_H

#include "../base/lock.h"
#include "../space/page_map.h"
#include "huge.h"

enum { BIN_EXACT_COUNT = 64, BIN_COUNT = 256, BIN_WORDS = BIN_COUNT / 64 };
enum { FREE_DIRTY, FREE_CLEAN, FREE_KINDS };
enum { IN_FLIGHT_MAX = 16 };

/* The bins of dirty runs, then those of clean ones, numbered in one sequence. */
struct run_bins {
    uint64_t bitmap[FREE_KINDS * BIN_WORDS]; /* K1 */
    uint32_t head[FREE_KINDS * BIN_COUNT];   /* page number; 0: empty */
};

/* A stretch of pages that was given to a page heap, which does not open more by itself. */
struct page_piece {
    struct page_piece *next; /* under the heap's lock */
    uint32_t first, pages;
};

struct page_heap {
    struct lock lock;
    bool is_supplied;                /* constant: by pieces (supplied.h) */
    struct page_piece *pieces;       /* under lock: of a supplied one */
    size_t open_pages;               /* under lock: of the address space, all that it has */
    uint32_t lease_pages_max;        /* atomic: no lease has more; 0: each asks for clean pages */
    size_t free_pages[FREE_KINDS];   /* under lock */
    size_t large_pages;              /* under lock: those of large blocks */
    size_t large_count;              /* under lock */
    size_t dirty_low;                /* under lock: fewest dirty pages since purging last looked */
    uint64_t clean_leased;           /* under lock: pages leased that were clean */
    uint64_t leases, returns, grows; /* under lock: statistics */
    bool clean_is_barred;            /* atomic: clean pages are not leased at all */
    bool clean_is_limited;           /* atomic: only as far as the hard limit allows */
    struct run_bins bins;            /* under lock */
    uint32_t in_flight[IN_FLIGHT_MAX]; /* under lock: runs on their way to the kernel; 0: none */
    uint64_t huge_again_at; /* under lock: clean_leased at which an address space that was refused
                               huge pages wants them again; UINT64_MAX: it is not refused them */
};

struct run {
    uint32_t page;
    bool zero;
}; /* page == 0: no memory */

/* The one that automatic arenas share, and large blocks. Limits, purging and sampling are for this
 * one alone. */
extern PRIVATE struct page_heap page_heap;

/* Pieces may lie between runs of the shared page heap, whose lock guards them too. */
INLINE struct lock *page_heap_lock(struct page_heap *heap)
{
    return heap->is_supplied ? &page_heap.lock : &heap->lock;
}

/* What its free pages say. */
INLINE enum page_state free_state(const struct page_heap *heap, unsigned kind)
{
    return (enum page_state)((heap->is_supplied ? PAGE_SUPPLIED_DIRTY : PAGE_DIRTY) + kind);
}

/* Pages that somebody holds. Exact under the lock. */
INLINE size_t page_heap_used_pages(struct page_heap *heap)
{
    return heap->open_pages - heap->free_pages[FREE_DIRTY] - heap->free_pages[FREE_CLEAN];
}

/* The same, for those who do not hold the lock. */
size_t page_heap_used_pages_now(struct page_heap *heap);

void page_heap_start(struct page_heap *heap);
/* From now on, or no longer, only dirty pages are leased: others would have to be paid for
 * (policy/limits.c). */
void page_heap_bar_clean(struct page_heap *heap, bool barred);
INLINE bool page_heap_is_barred(struct page_heap *heap)
{
    return RELAXED_LOAD(heap->clean_is_barred);
}
/* From now on, or no longer, each lease of clean pages asks commit_allows first. */
void page_heap_limit_clean(struct page_heap *heap, bool limited);
/* May so many clean pages be leased, though not all may? Under the lock. */
bool page_heap_spares_clean(struct page_heap *heap, size_t pages);
INLINE bool page_heap_may_take_clean(struct page_heap *heap, size_t pages)
{
    return likely(RELAXED_LOAD(heap->lease_pages_max) != 0) || page_heap_spares_clean(heap, pages);
}

/* Functions that take no heap are of the shared one: the usual ways, to which its address is a
 * constant. */

/* A used run of `pages` at a multiple of align_pages (a power of two); its first page is in `state`
 * (PAGE_USED or PAGE_LARGE). `zero`: all of it reads as zero. */
struct run run_lease(size_t pages, size_t align_pages, enum page_state state);
/* The same of dirty pages only; 0: there are none. */
uint32_t run_lease_dirty(struct page_heap *heap, size_t pages);
/* Gives a used run back; merges it with free neighbours. */
void run_return(uint32_t page);
/* Under the lock: the same of one whose pages have moved away and left zeros. */
void run_return_emptied(struct page_heap *heap, uint32_t page);
/* Up to `wanted` used runs of `pages` each, at most BIN_EXACT_COUNT, of what is free without
 * opening more of the region. Returns how many. */
unsigned run_lease_batch(size_t pages, unsigned wanted, uint32_t *leased);
/* Gives several used runs back under one lock. */
void run_return_batch(const uint32_t *pages, unsigned count);
/* Would a lease of this length open more of the region? As of a moment ago; without the lock. */
bool run_lease_would_grow(size_t pages);
/* Grows a used run in place to `pages` by taking from free right neighbours. False: there is no
 * room, nothing happened. */
bool run_extend(struct page_heap *heap, uint32_t page, size_t pages);
/* Gives back the tail of a used run beyond `pages`. */
void run_trim(struct page_heap *heap, uint32_t page, size_t pages);

/* Makes a large run a sampled one, with the number of its record; 0: and back. */
void run_mark_sampled(struct page_heap *heap, uint32_t page, uint32_t number);

/* Takes the dirty run that is best given to the kernel out of its bin, in state PAGE_USED, at least
 * min_pages long; 0 when there is none, or too many are on their way. */
uint32_t run_take_dirty(struct page_heap *heap, size_t min_pages, size_t max_pages);
/* Puts such a run back, as clean or as dirty. */
void run_put_free(struct page_heap *heap, uint32_t page, enum page_state state);
/* In the child of a fork, under the lock: puts back all that were on their way, for those who took
 * them are not there. */
void page_heap_put_back_in_flight(struct page_heap *heap);

/* Closes the free pages at the end of the newest region, for when the right to use memory is wanted
 * elsewhere. True: there were some. */
bool page_heap_close_tail(struct page_heap *heap);
/* Calls `visit` for each run in open pages, under the page heap's lock, which is given and taken
 * again every so many runs: what changes meanwhile may be missed or counted twice. A run in a
 * large cache is a used one here, and a vast block a large one. */
void runs_visit(struct page_heap *heap,
                void (*visit)(enum page_state state, size_t pages, void *context), void *context);
/* Under the lock: walks every page of every region; aborts on a broken invariant. */
void page_heap_check(struct page_heap *heap);

#endif
