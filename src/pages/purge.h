/* purge.h - when free pages go back to the kernel.
 *
 * A first touch of a page costs about 200 malloc/free pairs, and so does touching it again after it was
 * given back; a page that is kept costs memory. So dirty pages are kept on a budget:
 *
 *   - a small fixed share is always kept;
 *   - a program with one thread has nobody who could purge later, so what goes beyond the budget goes back
 *     at once; when most of it is wanted again within two seconds, twice running, that amount
 *     is added to the budget: a program that breathes pays for its first two breaths only;
 *   - a program with threads gets a helper that looks twice a second at how many dirty pages were not
 *     needed at any moment since its last look, and gives half of these back. It ends when there is
 *     nothing left to do.
 *
 * The promise: ten seconds after the last free of a burst, nine tenths of it are back with the kernel.
 * System calls are made without any lock; pages on their way are nobody's.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGES_PURGE_H
#define PRAIRIE_PAGES_PURGE_H

#include "run.h"

struct purge_stats {
    uint64_t purged_pages;      /* under the run lock */
    uint64_t calls;             /* under the run lock */
    uint64_t regrets;           /* times that pages were wanted back soon */
};

extern PRIVATE struct purge_stats purge_stats;

void purge_start(void);
/* How many threads have caches; decides who purges. */
void purge_thread_count(unsigned count);
/* After runs were returned; the caller holds no lock. */
void purge_after_return(void);
/* Gives all dirty pages back. Returns bytes. */
size_t purge_all(void);

void purge_lock(void);
void purge_unlock(void);
/* For the child of a fork: the helper is gone. */
void purge_remake(void);

#endif
