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
 * K4  between two seams all used runs are of one page heap. A seam's tag is read without its lock:
 *     while it is written it is INSIDE or USED, and neither merges
 * Its lock guards all of it, and the page map of its pages. Every function here takes and gives
 * that lock itself unless it says otherwise.
 *
 * There are as many as automatic arenas, rounded down to a power of two, at most PAGE_HEAPS, each
 * from its first arena on; they open the same regions in turn. A seam is a used page of nobody's
 * before pages that do not follow those which the same page heap opened last:
 *
 *      | opened by 0 | opened by 0 |seam| opened by 1 |seam| opened by 0 | ... reserved
 *
 * So the neighbours of a run are of its own page heap, or nobody's; and no run merges over a seam.
 * When the end of the address space is closed, the seam before it goes too, and its page heap ends
 * where it did before.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGE_HEAP_PAGE_HEAP_H
#define PRAIRIE_PAGE_HEAP_PAGE_HEAP_H

#include "../base/lock.h"
#include "../space/commit.h"
#include "../space/page_map.h"
#include "huge.h"

enum { BIN_EXACT_COUNT = 64, BIN_COUNT = 256, BIN_WORDS = BIN_COUNT / 64 };
enum { FREE_DIRTY, FREE_CLEAN, FREE_KINDS };
enum { IN_FLIGHT_MAX = 16 };
/* In bin_index of a seam: K4. */
enum { PAGE_SEAM = PAGE_CACHED - 1 };

/* The bins of dirty runs, then those of clean ones, numbered in one sequence. */
struct run_bins {
    uint64_t bitmap[FREE_KINDS * BIN_WORDS]; /* K1 */
    uint32_t head[FREE_KINDS * BIN_COUNT];   /* page number; 0: empty */
};

/* A stretch of pages that was given to a page heap, which does not open more by itself. */
struct page_piece {
    struct page_piece *next, *previous; /* under the heap's lock, or its arena's */
    uint32_t first, pages;
    uint16_t lent; /* what bin_index of its first page was: it may lie in a used run */
};

struct page_heap {
    struct lock lock;              /* not of a supplied one (page_heap_lock) */
    uint8_t number;                /* constant: its place in page_heap; PAGE_HEAPS: supplied */
    uint32_t end;                  /* under lock: the page after the last one that it opened and
                                      that is still open; 0: none */
    struct page_piece *pieces;     /* of a supplied one: written under lock and its arena's */
    size_t open_pages;             /* under lock: of the address space, all that it has */
    bool clean_is_free;            /* atomic: leases take clean pages, and need not ask whether they
                                      may (page_heaps_spare_clean) */
    size_t trigger_pages;          /* atomic: with more dirty pages, page_heaps_past_trigger */
    size_t free_pages[FREE_KINDS]; /* under lock */
    size_t large_pages;            /* under lock: those of large blocks */
    uint64_t large_leases;         /* under lock: of large blocks, so far */
    uint64_t large_returns;        /* under lock: likewise */
    size_t dirty_low;              /* under lock: fewest dirty pages since purging last looked */
    uint64_t clean_leased;         /* under lock: pages leased that were clean */
    size_t slab_peak;              /* under lock: note_slab_peak; purging lessens it */
    uint64_t leases, returns, grows;   /* under lock: statistics */
    struct run_bins bins;              /* under lock */
    uint32_t in_flight[IN_FLIGHT_MAX]; /* under lock: runs on their way to the kernel; 0: none */
    uint64_t huge_again_at; /* under lock: clean_leased at which a withdrawn wish for huge pages
                               comes again; UINT64_MAX: never */
    size_t huge_withdrawal; /* under lock: the one that huge_again_at is for */
    size_t taken_most;      /* under lock: page_heap_note_taken */
    struct page_piece *likely_piece; /* of a supplied one, under its arena's lock: where the next
                                        page is likely to be; NULL: nobody knows */
} __attribute__((aligned(LINE_BYTES)));

struct run {
    uint32_t page;
    bool zero;
}; /* page == 0: no memory */

/* The shared ones, from which automatic arenas and large blocks lease. Limits, purging and sampling
 * are for these alone. Their locks are taken in the order of their numbers. What counts once in the
 * process is with the first, under its lock. */
extern PRIVATE struct page_heap page_heap[PAGE_HEAPS];

/* The number of the last one that has started; atomic. It only grows, under the first one's
 * lock. */
extern PRIVATE unsigned page_heap_last;
INLINE unsigned page_heap_count(void)
{
    return PAGE_HEAPS == 1 ? 1 : __atomic_load_n(&page_heap_last, __ATOMIC_ACQUIRE) + 1;
}
/* The one that an arena of this number leases from where there are so many arenas; it starts if
 * need be. By one thread at a time: under the lock of making, which a fork takes, or before
 * main. */
struct page_heap *page_heap_for(unsigned arena_index, unsigned arena_count);
/* The one that a used run is of, by its first page. */
INLINE struct page_heap *page_heap_of(uint32_t page)
{
    struct page_heap *heap = &page_heap[page_heap_number(page_record(page))];

    if (PAGE_HEAPS > 1) FORGET(heap); /* or it is computed anew at each use */
    return heap;
}
/* Is somebody at it, as of a moment ago? */
INLINE bool page_heap_is_held(const struct page_heap *heap)
{
    return RELAXED_LOAD(heap->lock.state) != LOCK_FREE;
}

/* Do its pages come in pieces (supplied.h)? */
INLINE bool page_heap_is_supplied(const struct page_heap *heap)
{
    return heap->number == PAGE_HEAPS;
}

/* The lock of a supplied heap is that of page_heap[0], in whose used runs its pieces may lie. A
 * piece may also lie in a used run of another shared heap, which reads the states of neighbours
 * under its own lock: SUPPLIED states merge with none of its runs. */
INLINE struct lock *page_heap_lock(struct page_heap *heap)
{
    return page_heap_is_supplied(heap) ? &page_heap->lock : &heap->lock;
}

/* What its free pages say. */
INLINE enum page_state free_state(const struct page_heap *heap, unsigned kind)
{
    return (enum page_state)((page_heap_is_supplied(heap) ? PAGE_SUPPLIED_DIRTY : PAGE_DIRTY)
                             + kind);
}

/* Pages that somebody holds. Exact under the lock. */
INLINE size_t page_heap_used_pages(struct page_heap *heap)
{
    return heap->open_pages - heap->free_pages[FREE_DIRTY] - heap->free_pages[FREE_CLEAN];
}

/* How many of its pages have a record that holds something, or did: as many as were used or dirty
 * at once. Others are clean since they opened, such as those that an alignment leaves. Exact under
 * the lock. */
INLINE size_t page_heap_taken_most(const struct page_heap *heap)
{
    return max_size(heap->taken_most, heap->open_pages - heap->free_pages[FREE_CLEAN]);
}
/* Used pages are about to become clean. Under the lock. */
INLINE void page_heap_note_taken(struct page_heap *heap)
{
    heap->taken_most = page_heap_taken_most(heap);
}

/* Used pages that are not counted as large blocks': those of slabs, and few others, as of the
 * reserve and of the large blocks of manual arenas. Vast blocks count among the large ones of the
 * first page heap, but have none of its pages. Exact under the lock. */
INLINE size_t page_heap_slab_pages(struct page_heap *heap)
{
    size_t large = heap->large_pages;

    if (heap == page_heap) large -= RELAXED_LOAD(commit.vast_bytes) >> space.page_shift;
    return page_heap_used_pages(heap) - large;
}

/* Called before clean pages are leased. Leases of dirty pages are not looked at: something else had
 * those before. Under the lock. */
INLINE void note_slab_peak(struct page_heap *heap)
{
    size_t pages = page_heap_slab_pages(heap);

    if (pages > heap->slab_peak) heap->slab_peak = pages;
}

/* Large blocks that are out. Under the lock. */
INLINE size_t page_heap_large_count(const struct page_heap *heap)
{
    return (size_t)(heap->large_leases - heap->large_returns);
}

void page_heap_start(struct page_heap *heap);

/* ---- all of them ---- */

void page_heaps_start(void);
void page_heaps_each_lock(void (*visit)(struct lock *lock), enum lock_walk walk);

/* Pages that somebody holds: of all, one after the other, each under its lock. */
size_t page_heaps_used(void);
/* As of a moment ago, without the locks: of one, and of all. */
INLINE_READS_UNLOCKED size_t page_heap_free_now(const struct page_heap *heap, unsigned kind)
{
    return heap->free_pages[kind];
}
INLINE size_t page_heaps_free_now(unsigned kind)
{
    size_t pages = 0;

    for (unsigned i = 0; i < page_heap_count(); i++)
        pages += page_heap_free_now(&page_heap[i], kind);
    return pages;
}
/* Open and not free: what somebody holds, and seams. */
INLINE_READS_UNLOCKED size_t page_heaps_used_now(void)
{
    size_t open = space.open_bytes >> space.page_shift;
    size_t free = page_heaps_free_now(FREE_DIRTY) + page_heaps_free_now(FREE_CLEAN);

    return free < open ? open - free : 0;
}
INLINE_READS_UNLOCKED uint64_t page_heaps_clean_leased_now(void)
{
    uint64_t pages = 0;

    for (unsigned i = 0; i < page_heap_count(); i++) pages += page_heap[i].clean_leased;
    return pages;
}

/* A bit for each, by its number: pages were returned to it, it has more dirty ones than its
 * trigger_pages, and nobody has looked since; atomic, exchanged. Who looks at one budget reads no
 * other page heap (docs/decisions/0044). */
extern PRIVATE uint64_t page_heaps_past_trigger;
/* There are more dirty pages: too many? Under its lock. */
INLINE void note_dirty(const struct page_heap *heap)
{
    if (unlikely(heap->free_pages[FREE_DIRTY] > RELAXED_LOAD(heap->trigger_pages)))
        (void)__atomic_fetch_or(&page_heaps_past_trigger, (uint64_t)1 << heap->number,
                                __ATOMIC_RELEASE);
}

/* From now on, or no longer, only dirty pages are leased: others would have to be paid for
 * (policy/limits.c). */
void page_heaps_bar_clean(bool barred);
extern PRIVATE bool page_heaps_barred; /* atomic: that is so */
INLINE bool page_heaps_are_barred(void) { return RELAXED_LOAD(page_heaps_barred); }
/* While there is a hard limit each lease of clean pages asks commit_allows first. After a change of
 * either. */
void page_heaps_follow_limits(void);

/* ---- runs ---- */

/* May so many clean pages be leased, where they are limited or barred? Under the lock, or as of a
 * moment ago. */
bool page_heaps_spare_clean(size_t pages);
INLINE bool page_heap_may_take_clean(struct page_heap *heap, size_t pages)
{
    return likely(RELAXED_LOAD(heap->clean_is_free)) || page_heaps_spare_clean(pages);
}

/* What a lease is for: the page heap, and the state of the first page, PAGE_USED or PAGE_LARGE. One
 * word, so that where there is one page heap it is the state, and the heap's address is a constant
 * in the usual ways. */
enum { PURPOSE_HEAP = 16 };
INLINE uintptr_t purpose_of(const struct page_heap *heap, enum page_state state)
{
    return PAGE_HEAPS == 1 ? state : (uintptr_t)heap + state;
}
INLINE enum page_state purpose_state(uintptr_t purpose)
{
    return (enum page_state)(PAGE_HEAPS == 1 ? purpose : purpose % PURPOSE_HEAP);
}
INLINE struct page_heap *purpose_heap(uintptr_t purpose)
{
    return PAGE_HEAPS == 1 ? page_heap : (struct page_heap *)(purpose - purpose % PURPOSE_HEAP);
}

/* A used run of `pages` at a multiple of align_pages (a power of two). `zero`: all of it reads as
 * zero. When its page heap can have none, others are asked. */
struct run run_lease_for(size_t pages, size_t align_pages, uintptr_t purpose);
/* The same of the first page heap. */
INLINE struct run run_lease(size_t pages, size_t align_pages, enum page_state state)
{
    return run_lease_for(pages, align_pages, purpose_of(page_heap, state));
}
/* The same of dirty pages only; 0: there are none. */
uint32_t run_lease_dirty(size_t pages);
/* Gives a used run back; merges it with free neighbours. */
void run_return(uint32_t page);
/* The same of one whose pages read as zero. */
void run_return_clean(uint32_t page);
/* The same of one that gets a new mapping, which ends whatever was asked of the kernel for its
 * pages. At a limit of address space, where there is none, it comes back as it is. */
void run_return_remapped(uint32_t page);
/* Under the first page heap's lock: the same of one whose pages have moved away and left zeros. */
void run_return_emptied(uint32_t page);
/* Up to `wanted` used runs of `pages` each, at most BIN_EXACT_COUNT, of what is free without
 * opening more of the region; of what another page heap has left over before clean ones. Returns
 * how many. */
unsigned run_lease_batch(struct page_heap *heap, size_t pages, unsigned wanted, uint32_t *leased);
/* Gives several used runs back under one lock, or one for each page heap in turn. */
void run_return_batch(const uint32_t *pages, unsigned count);
/* Would a lease of this length open more of the region? As of a moment ago; without the lock. */
bool run_lease_would_grow(const struct page_heap *heap, size_t pages);
/* Grows a used run in place to `pages` by taking from free right neighbours. EXTENDED_NOT:
 * there is no room, nothing happened. EXTENDED_BY_ZEROS: the pages that came read as zero. */
enum extended { EXTENDED_NOT, EXTENDED, EXTENDED_BY_ZEROS };
enum extended run_extend(struct page_heap *heap, uint32_t page, size_t pages);
/* Gives back the tail of a used run beyond `pages`. */
void run_trim(struct page_heap *heap, uint32_t page, size_t pages);
/* Moves the end of a used run, to another length than it has. False: there is no room, nothing
 * happened. */
INLINE bool run_resize(struct page_heap *heap, uint32_t page, size_t pages)
{
    if (pages > page_record(page)->run_pages) return run_extend(heap, page, pages) != EXTENDED_NOT;
    run_trim(heap, page, pages);
    return true;
}

/* Gives a used run another state, and the number of a record that goes with it; 0: none. */
void run_mark(uint32_t page, enum page_state state, uint32_t number);

/* Takes the dirty run that is best given to the kernel out of its bin, in state PAGE_USED, at least
 * min_pages long; 0 when there is none, or too many are on their way. */
uint32_t run_take_dirty(struct page_heap *heap, size_t min_pages, size_t max_pages);
/* Of the first region, where huge pages are: the next clean pages from *at on (0: from its start)
 * that share a huge page with others, taken out in the same way; 0: there are none. *at is where to
 * look on: it stays the start of a run for as long as these are on their way. */
uint32_t run_take_clean_edge(uint32_t *at);
/* Puts such a run back, as clean or as dirty. */
void run_put_free(uint32_t page, enum page_state state);
/* Makes two of such a run, of which the first has so many pages. Returns the second; 0: too many
 * are on their way. */
uint32_t run_split_in_flight(uint32_t page, size_t pages);
/* Are any on their way? Is this one? No in a fork's child, which has put all of them back, though
 * the code that took this one may go on there. */
bool page_heaps_have_in_flight(void);
bool run_is_in_flight(uint32_t page);
/* In the child of a fork, under the locks: puts back all that were on their way, for those who took
 * them are not there. */
void page_heaps_put_back_in_flight(void);

/* Closes the free pages at the end of the newest region, for when the right to use memory is wanted
 * elsewhere. `waits`: also when somebody is at the address space. True: there were some. */
bool page_heaps_close_tail(bool waits);
/* Calls `visit` for each run in open pages, under the page heaps' locks, which are given and taken
 * again every so many runs: what changes meanwhile may be missed or counted twice. A run in a
 * large cache is a used one here, and a vast block a large one. */
void runs_visit(void (*visit)(enum page_state state, size_t pages, void *context), void *context);
/* Under the locks: walks every page of every region; aborts on a broken invariant. */
void page_heaps_check(void);

#endif
