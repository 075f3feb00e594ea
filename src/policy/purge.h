/* purge.h - giving free pages back to the kernel, on a budget.
 *
 * A first touch of a page costs about 200 malloc/free pairs, and so does touching it again after it
 * was given back; a page that is kept costs memory. So dirty pages are kept on a budget: a small
 * fixed share, and what experience added. When most of what was given back at once is wanted again
 * within two seconds, that amount is added: a program that breathes pays for its first breath only.
 * More than a little of that stays only while somebody looks in the background, for the program may
 * never call again.
 *
 * Who purges, and when, is decided in arenas/decay.
 * System calls are made without any lock; pages on their way are nobody's.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_POLICY_PURGE_H
#define PRAIRIE_POLICY_PURGE_H

#include "../page_heap/page_heap.h"

/* All of these are called without a lock. */

/* Are the dirty pages, as of a moment ago, no more than may stay? */
bool purge_is_within_live_budget(struct page_heap *heap);
INLINE_READS_UNLOCKED bool purge_is_within_budget(struct page_heap *heap)
{
    return likely(heap->free_pages[FREE_DIRTY] <= RELAXED_LOAD(heap->decay.trigger_pages))
        || purge_is_within_live_budget(heap);
}
/* Gives back what goes beyond the budget, and learns from the last time. */
void purge_beyond_budget(struct page_heap *heap);
/* From now on, or no longer, somebody looks in the background for what is not needed. Under the
 * page heap's lock, or while no other thread is at work. */
void purge_set_background(struct page_heap *heap, bool runs);
/* Do regrets ask for a budget that needs such a look? Learns from the last time. */
bool purge_wants_background(struct page_heap *heap);
/* Is more dirty than may stay without it? Not when the kernel would not take any of it. */
bool purge_rests_on_background(struct page_heap *heap);
/* Gives back half of the dirty pages that were not needed at any moment since the last call.
 * Returns pages. */
size_t purge_unneeded(struct page_heap *heap);
/* Starts that span of time anew. */
void purge_begin_unneeded(struct page_heap *heap);
/* Gives back free runs that are longer than oversize_threshold allows to stay dirty. True: there is
 * such a threshold, and nothing else is to be given back. */
bool purge_oversize(struct page_heap *heap);
/* dirty_decay_ms, oversize_threshold or the hard limit were set. */
void purge_obey_options(struct page_heap *heap);
/* Near a limit no dirty pages may stay (policy/limits.c). */
void purge_set_hard(struct page_heap *heap, bool hard);
/* That, or beyond the hard limit: nobody is to wait for a background thread. */
bool purge_is_urgent(struct page_heap *heap);
/* Gives all dirty pages back. Returns bytes. */
size_t purge_all(struct page_heap *heap);

#endif
