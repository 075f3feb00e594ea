/* reserve.h - real pages that are kept for the moment when the kernel has none.
 *
 * Owns a few runs that nobody else is given in ordinary life. Their pages are committed and
 * touched, so they are there on a kernel that promises more than it has, and inside a control
 * group, which has counted them already. A fork's child does not share them: in the parent they
 * stay its own, in the child they read as zero and are touched again before they count. Beside
 * them, some open records of prairie's own are held back.
 *
 *      run[0] |############----|     a release takes from the tail of one run, or all of it
 *      run[1] |########|             a refill grows a run in place, else leases another
 *
 * B1  pages is the sum of the lengths of run[0..run_count)
 * B2  each of these runs is used and belongs to no slab
 * Its lock comes before the page heap's. Who hears of a shortage, the doors decide
 * (heap/shortage.c).
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_POLICY_RESERVE_H
#define PRAIRIE_POLICY_RESERVE_H

#include "../page_heap/page_heap.h"

enum { RESERVE_RUNS_MAX = 16 };
/* For less the machine is not asked what it has left, of which such a share is not for a
 * reserve. */
#define RESERVE_ASKS_FROM_BYTES (16 * MiB)
enum { RESERVE_LEAVES_SHARE = 8 };

struct reserve {
    struct lock lock;
    size_t wanted_pages;            /* under lock; atomic for those who look without it */
    size_t pages;                   /* B1, under lock; atomic likewise */
    uint32_t run_count;             /* under lock */
    uint32_t run[RESERVE_RUNS_MAX]; /* B2, under lock: first pages */
    bool untouched;             /* under lock: in a fork's child, not real until they are touched */
    bool records_short;         /* under lock: no records are held back */
    uint64_t releases, refills; /* under lock: statistics, runs given away and taken back */
};

extern PRIVATE struct reserve reserve;

/* Sets how much is kept, rounded up to whole pages, and fills or empties the reserve accordingly.
 * False: it could not be filled; it is as full as it can be, and what is wanted stays. */
bool reserve_resize(size_t bytes);
/* Fills up what is missing. True: nothing is missing. */
bool reserve_refill(void);
/* Gives at least `pages` in one run, and the records held back, to whoever leases next. False: it
 * has not got so much in one run; nothing happened. */
bool reserve_release(size_t pages);

/* As of a moment ago, without the lock. */
INLINE size_t reserve_missing_pages(void)
{
    size_t wanted = RELAXED_LOAD(reserve.wanted_pages), pages = RELAXED_LOAD(reserve.pages);

    return wanted > pages ? wanted - pages : 0;
}
INLINE bool reserve_is_kept(void) { return RELAXED_LOAD(reserve.wanted_pages) != 0; }
bool reserve_is_short(void);

void reserve_check(void); /* under all locks */
/* In the child of a fork: the pages are not real any more. */
void reserve_forget_pages(void);

#endif
