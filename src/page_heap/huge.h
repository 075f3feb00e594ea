/* huge.h - when the heap is worth huge pages.
 *
 * A first touch inside a huge page costs less than half of one outside, and a heap in huge pages
 * misses the translation caches less often; but a page of 2 MiB of which only a part is used costs
 * memory. So there is no wish for them while the address space is small. It comes once that has
 * grown dense (it opens from one end, and what is touched next lies beside what is used), and is
 * withdrawn when runs shorter than a huge page go back to the kernel, which would otherwise fill
 * them up behind our back. It comes again when the address space grows again.
 *
 * Where the kernel has to look for them (it moves pages together first, or runs in a machine whose
 * host took the memory back), one costs ten times what the small pages in it would. So the first
 * touch of one is timed now and then, and a slow one ends the wish; each wait for the next wish is
 * longer then.
 *
 * Where they are wanted, one touch makes all of a huge page resident, clean pages beside it too.
 * When they are no longer, those go back, once (policy/purge.c).
 *
 * One wish covers the first region, open or not, so that there are no more mappings than without;
 * regions after it are left to the kernel's own setting. All are refused them with thp:never, where
 * the first is short (with 32 bits, under a narrow limit of address space), and where pages are not
 * 4 KiB.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGE_HEAP_HUGE_H
#define PRAIRIE_PAGE_HEAP_HUGE_H

#include "../space/space.h"

enum huge_policy { HUGE_WHEN_DENSE, HUGE_ALWAYS, HUGE_NEVER };

/* Under the lock of the address space. */
struct huge {
    enum huge_policy policy; /* atomic */
    bool wanted;             /* atomic */
    bool withdrawn;          /* they were wanted, and are again when a page heap comes to its
                                huge_again_at */
    bool barred;          /* atomic: each would take too much of what is left (policy/limits.c) */
    uint32_t left_behind; /* atomic, exchanged: clean pages may be resident, beside
                             what was touched while they were wanted */
    size_t short_pages;   /* given back in short runs since they were wanted */
    size_t until_try;     /* atomic: so many begin before the first touch of one is timed */
    unsigned backoff;     /* such touches in a row that were slow */
    size_t withdrawals;   /* atomic: so far */
};

extern PRIVATE struct huge huge;

/* How many pages a huge page has, wanted or not. */
INLINE size_t pages_of_huge_page(void) { return HUGE_PAGE_BYTES >> space.page_shift; }
/* The same; 1: there are none for us. */
INLINE size_t huge_pages_each(void) { return RELAXED_LOAD(huge.wanted) ? pages_of_huge_page() : 1; }

struct page_heap;

/* Are clean pages resident that nobody looked for since huge pages were wanted last? After that,
 * no longer: the caller looks for them. */
INLINE bool huge_take_left_behind(void)
{
    return RELAXED_LOAD(huge.left_behind)
        && __atomic_exchange_n(&huge.left_behind, false, __ATOMIC_RELAXED);
}

/* Are they for this process's regions, and not barred? */
bool huge_is_possible(void);
/* The address space is about to open, for so many pages. What is open and clean is no reason for
 * huge pages, and much of it speaks against them: blocks with large alignments leave it between
 * them. Under the lock of the address space. */
void huge_before_growth(struct page_heap *heap, size_t coming);
/* Takes the option over: `never` ends the wish at once; with `always` what is open already gets it
 * now. */
void huge_obey_option(enum huge_policy policy);
/* The range has a new mapping, which knows nothing of the wish. In the first region it is told
 * again; in others that there are to be none, where that is so. Under the lock of the address
 * space. */
void huge_advise_new_mapping(struct os_range range);
/* The same of the region that was added last. */
void huge_advise_new_region(void);
/* Refuses huge pages, or no longer: little memory is left, and one that is touched first takes
 * 2 MiB at once. */
void huge_bar(bool barred);
/* The program rests: nothing has gone back for a while. What went back in short runs, if it was as
 * much as a huge page and a share of what is in use, is to stay where it went: the wish ends. True:
 * it did, just now. Waits for no lock: who looks in the background may be waited for by who holds
 * them. */
bool huge_note_rest(void);
/* For a run that was just leased and reads as zero, while huge pages are wanted. Now and then, when
 * a huge page begins in it, the first touch of its first page is timed: is the kernel quick to find
 * one? If that page was there already, the first page of the huge page that begins in the run is
 * timed instead. Takes the locks of the page heap and the address space. */
void huge_try(uint32_t page, size_t pages);

/* Below, under the page heap's lock. */

/* Its huge_again_at has come: decides anew. */
void huge_reconsider(struct page_heap *heap);
/* So many pages go back to the kernel in runs that are shorter than huge pages. */
void huge_note_short(struct page_heap *heap, size_t pages);
/* So many go back as one run. */
INLINE void huge_before_purge(struct page_heap *heap, size_t pages)
{
    if (pages < huge_pages_each()) huge_note_short(heap, pages);
}

#endif
