/* run.h - the page heap: lease, split, merge and return, each in constant time.
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
 * One lock guards all of it, and the page map. Every function here takes and gives that lock itself
 * unless it says otherwise.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGES_RUN_H
#define PRAIRIE_PAGES_RUN_H

#include "../base/lock.h"
#include "page_map.h"

enum { BIN_EXACT_COUNT = 64, BIN_COUNT = 256, BIN_WORDS = BIN_COUNT / 64 };
enum { FREE_DIRTY, FREE_CLEAN, FREE_KINDS };
enum { IN_FLIGHT_MAX = 16 };

/* The bins of dirty runs, then those of clean ones, numbered in one sequence. */
struct run_bins {
    uint64_t bitmap[FREE_KINDS * BIN_WORDS]; /* K1 */
    uint32_t head[FREE_KINDS * BIN_COUNT];   /* page number; 0: empty */
};

struct page_heap {
    struct lock lock;
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
};

struct run {
    uint32_t page;
    bool zero;
}; /* page == 0: no memory */

extern PRIVATE struct page_heap page_heap;

/* Pages that somebody holds. Exact under the lock. */
INLINE size_t page_heap_used_pages(void)
{
    return (space.open_bytes >> space.page_shift) - page_heap.free_pages[FREE_DIRTY]
         - page_heap.free_pages[FREE_CLEAN];
}

/* The same, for those who do not hold the lock. */
size_t page_heap_used_pages_now(void);

void page_heap_start(void);
/* From now on, or no longer, only dirty pages are leased: others would have to be paid for
 * (pages/limits.c). */
void page_heap_bar_clean(bool barred);
INLINE bool page_heap_is_barred(void) { return RELAXED_LOAD(page_heap.clean_is_barred); }
/* From now on, or no longer, each lease of clean pages asks limits_allow first. */
void page_heap_limit_clean(bool limited);
/* May so many clean pages be leased? Under the lock. */
bool page_heap_may_take_clean(size_t pages);

/* A used run of `pages` at a multiple of align_pages (a power of two); its first page is in `state`
 * (PAGE_USED or PAGE_LARGE). `zero`: all of it reads as zero. */
struct run run_lease(size_t pages, size_t align_pages, enum page_state state);
/* The same of dirty pages only; 0: there are none. */
uint32_t run_lease_dirty(size_t pages);
/* Gives a used run back; merges it with free neighbours. */
void run_return(uint32_t page);
/* Under the lock: the same of one whose pages have moved away and left zeros. */
void run_return_emptied(uint32_t page);
/* Up to `wanted` used runs of `pages` each, at most BIN_EXACT_COUNT, of what is free without
 * opening more of the region. Returns how many. */
unsigned run_lease_batch(size_t pages, unsigned wanted, uint32_t *leased);
/* Gives several used runs back under one lock. */
void run_return_batch(const uint32_t *pages, unsigned count);
/* Would a lease of this length open more of the region? As of a moment ago; without the lock. */
bool run_lease_would_grow(size_t pages);
/* Grows a used run in place to `pages` by taking from free right neighbours. False: there is no
 * room, nothing happened. */
bool run_extend(uint32_t page, size_t pages);
/* Gives back the tail of a used run beyond `pages`. */
void run_trim(uint32_t page, size_t pages);

/* Makes a large run a sampled one, with the number of its record, and back. */
void run_mark_sampled(uint32_t page, uint32_t number);
void run_unmark_sampled(uint32_t page);

/* Under the lock: takes the dirty run that is best given to the kernel out of its bin, in state
 * PAGE_USED, at least min_pages long; 0 when there is none, or too many are on their way. */
uint32_t run_take_dirty(size_t min_pages, size_t max_pages);
/* Under the lock: puts such a run back, as clean or as dirty. */
void run_put_free(uint32_t page, enum page_state state);
/* In the child of a fork, under the lock: puts back all that were on their way, for those who took
 * them are not there. */
void page_heap_put_back_in_flight(void);

/* Closes the free pages at the end of the newest region, for when the right to use memory is wanted
 * elsewhere. True: there were some. */
bool page_heap_close_tail(void);
/* Under the lock: walks every page of every region; aborts on a broken invariant. */
void page_heap_check(void);

#endif
