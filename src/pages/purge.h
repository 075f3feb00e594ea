/* purge.h - giving free pages back to the kernel, on a budget.
 *
 * A first touch of a page costs about 200 malloc/free pairs, and so does touching it again after it
 * was given back; a page that is kept costs memory. So dirty pages are kept on a budget: a small
 * fixed share, and what experience added. When most of what was given back at once is wanted again
 * within two seconds, that amount is added: a program that breathes pays for its first breath only.
 * More than a little of that is kept only while somebody looks in the background, for the program
 * may never call again.
 *
 * Who purges, and when, is decided in arenas/decay.
 * System calls are made without any lock; pages on their way are nobody's.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGES_PURGE_H
#define PRAIRIE_PAGES_PURGE_H

#include "run.h"

struct purge_stats {
    uint64_t purged_pages; /* under the page heap's lock */
    uint64_t calls;        /* under the page heap's lock */
    uint64_t regrets;      /* under the page heap's lock: times that pages were wanted back soon */
};

extern PRIVATE struct purge_stats purge_stats;
/* Atomic, written under the page heap's lock: dirty pages up to which nobody need think of
 * purging. */
extern PRIVATE size_t purge_alarm_pages;

/* All of these are called without a lock. */

/* Are the dirty pages, as of a moment ago, no more than may be kept? */
bool purge_is_within_live_budget(void);
INLINE_READS_UNLOCKED bool purge_is_within_budget(void)
{
    return likely(page_heap.free_pages[FREE_DIRTY] <= RELAXED_LOAD(purge_alarm_pages))
        || purge_is_within_live_budget();
}
/* Gives back what goes beyond the budget, and learns from the last time. */
void purge_beyond_budget(void);
/* From now on, or no longer, somebody looks in the background for what is not needed. Under the
 * page heap's lock, or while no other thread is at work. */
void purge_set_background(bool runs);
/* Do regrets ask for a budget that needs such a look? Learns from the last time. */
bool purge_wants_background(void);
/* Is more dirty than may stay without it? Not when the kernel would not take any of it. */
bool purge_rests_on_background(void);
/* Gives back half of the dirty pages that were not needed at any moment since the last call.
 * Returns pages. */
size_t purge_unneeded(void);
/* Starts that span of time anew. */
void purge_begin_unneeded(void);
/* Gives back free runs that are longer than oversize_threshold allows to stay dirty. True: there is
 * such a threshold, and nothing else is to be given back. */
bool purge_oversize(void);
/* dirty_decay_ms, oversize_threshold or the hard limit were set. */
void purge_obey_options(void);
/* Near a limit no dirty pages are kept (pages/limits.c). */
extern PRIVATE bool purge_hard; /* atomic */
void purge_set_hard(bool hard);
/* That, or beyond the hard limit: nobody is to wait for a background thread. */
bool purge_is_urgent(void);
/* Gives all dirty pages back. Returns bytes. */
size_t purge_all(void);

#endif
