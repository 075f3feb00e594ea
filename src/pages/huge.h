/* huge.h - when the heap is worth huge pages.
 *
 * A first touch inside a huge page costs less than half of one outside, and a heap in huge pages
 * misses the translation caches less often; but a page of 2 MiB of which only a part is used costs
 * memory. So the address space is refused huge pages while it is small, wants them once it has
 * grown dense (it opens from one end, and what is touched next lies beside what is used), and is
 * refused them again when pieces shorter than a huge page go back to the kernel, which would
 * otherwise fill them up behind our back. It wants them again when it grows again.
 *
 * One wish covers the first region, open or not, so that there are no more mappings than without.
 * Regions under a limit of address space, and kernels whose pages are not 4 KiB, are left alone.
 * Everything here is under the page heap's lock.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGES_HUGE_H
#define PRAIRIE_PAGES_HUGE_H

#include "space.h"

enum huge_policy { HUGE_WHEN_DENSE, HUGE_ALWAYS, HUGE_NEVER };

struct huge {
    enum huge_policy policy;
    bool wanted;        /* atomic for purge.c, which asks without the lock */
    bool barred;        /* each would take too much of what is left (pages/limits.c) */
    size_t short_pages; /* given back in short pieces since they were wanted */
    /* page_heap.clean_leased at which a plain that was refused them wants them again. */
    uint64_t again_at;
};

extern PRIVATE struct huge huge;

/* How long a huge page is; 1: there are none for us. */
INLINE size_t huge_pages_each(void)
{
    return RELAXED_LOAD(huge.wanted) ? HUGE_PAGE_BYTES >> space.page_shift : 1;
}

/* Are they for heaps like this one, and not barred? */
bool huge_is_possible(void);
/* The option thp was read; takes the page heap's lock. */
void huge_obey_option(enum huge_policy policy);
/* The address space is about to have so many bytes open. */
void huge_before_growth(size_t open_bytes);
void huge_want_again(void);
/* Clean pages were leased, so many since the start. */
INLINE void huge_after_clean_lease(uint64_t clean_leased)
{
    void huge_want_again(void);

    if (unlikely(clean_leased >= huge.again_at)) huge_want_again();
}
/* Refuses huge pages, or no longer: little memory is left, and one that is touched first takes 2
 * MiB at once. */
void huge_bar(bool barred);
/* So many pages go back to the kernel, in one piece. */
void huge_before_purge(size_t pages);

#endif
