/* purge_pass.h - one pass of giving runs back to the kernel. Only for purge.c, which says how many
 * pages are too many. System calls are made without any lock.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_POLICY_PURGE_PASS_H
#define PRAIRIE_POLICY_PURGE_PASS_H

#include "purge.h"

/* A page heap with fewer dirty pages than this is not worth a pass, nor is a shorter part of a
 * refused run worth a call. */
#define PURGE_WORTH_BYTES (64 * KiB)
/* What is on its way to the kernel cannot be leased meanwhile. */
#define PURGE_RUN_BYTES_MAX (32 * MiB)
/* Runs of which the kernel would take nothing before a pass ends: locked in memory, perhaps. */
#define PURGE_REFUSALS_MAX 4u

/* One pass over a page heap. Runs of which the kernel would take nothing stay out of the bins until
 * the pass ends, or they would be tried again and again while they are the longest. */
struct purge_pass {
    struct page_heap *heap;
    size_t wanted, purged; /* pages */
    size_t keep;           /* so many dirty ones stay, also when others purge meanwhile */
    size_t refused_pages;
    unsigned calls, refusal_count;
    const uint32_t *stop; /* atomic: it ends before the next call when that is not 0; NULL: never */
    uint32_t refused[2 * PURGE_REFUSALS_MAX]; /* first pages; of two rounds */
};

INLINE struct purge *purge_of(const struct page_heap *heap) { return &purge[heap->number]; }

/* How many pages are to be purged yet, as of a moment ago. What was refused is dirty. */
INLINE size_t purge_left(const struct purge_pass *pass)
{
    size_t dirty = page_heap_free_now(pass->heap, FREE_DIRTY) + pass->refused_pages;

    return min_size(pass->wanted - pass->purged, dirty - min_size(dirty, pass->keep));
}

/* All of these but purge_raise_trigger are called without a lock. */

/* Until nothing is left to purge, the longest runs first, of at least run_min and at most run_max.
 * A longer one of which a part was refused is tried as a whole: it may be all locked, and its parts
 * would be as many refusals. */
void purge_runs(struct purge_pass *pass, size_t run_min, size_t run_max);
/* Puts back what was refused. When the kernel refused some of it, it is asked again only after an
 * eighth more is dirty (purge_raise_trigger). Returns pages that were purged. */
size_t purge_end_pass(const struct purge_pass *pass);
/* Statistics. Under the page heap's lock. */
void purge_count_calls(struct page_heap *heap, size_t calls, size_t purged_pages);
/* What the kernel would not take, or somebody else is to give back, is looked at again when an
 * eighth more is dirty. Under the page heap's lock. */
void purge_raise_trigger(struct page_heap *heap);

#endif
