/* commit.h - what prairie takes of the machine, and the hard limit on it.
 *
 * Taken is what memory stands or may stand behind: open pages, but for seams and the free ones that
 * are clean; their records in the page map; vast blocks, and pages of guarded ones; prairie's own
 * records. Who changes one of these writes its counter here, and asks before it takes more.
 *
 * Sums are of a moment ago. Those of pages are exact under the page heaps' locks: who asks under
 * one of them and takes may meet another who does so under another, and both get what was left for
 * one, a run each.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SPACE_COMMIT_H
#define PRAIRIE_SPACE_COMMIT_H

#include "../base/constants.h"

struct commit {
    size_t limit_bytes;   /* atomic: the hard limit; SIZE_MAX: none */
    size_t record_bytes;  /* atomic: of prairie's own records (meta.c) */
    size_t vast_bytes;    /* atomic: of vast blocks (heap/vast.h) */
    size_t vast_coming;   /* atomic: O2 */
    size_t vast_count;    /* atomic: of the same, how many; both under the page heap's lock */
    size_t guarded_bytes; /* atomic: pages of guarded blocks (guard/guarded.h) */
    struct commit_pages {
        const size_t *open, *clean; /* of a page heap; constant once counted */
    } pages[PAGE_HEAPS];
    unsigned heap_count; /* atomic */
};

extern PRIVATE struct commit commit;

/* A page heap counts its pages and the clean ones of them there, under its lock: what it opens as
 * clean first, so that growth never looks as if something was taken; and what it closes is clean
 * no longer before it is closed, so that nothing that is taken is missed. */
void commit_add_heap(const size_t *open_pages, const size_t *clean_pages);

/* The pages among what is taken: that somebody holds, or that are dirty. */
INLINE_READS_UNLOCKED size_t commit_taken_pages(void)
{
    unsigned count = __atomic_load_n(&commit.heap_count, __ATOMIC_ACQUIRE);
    size_t taken_pages = 0;

    for (unsigned i = 0; i < count; i++) {
        size_t open = __atomic_load_n(commit.pages[i].open, __ATOMIC_ACQUIRE);
        size_t clean = *commit.pages[i].clean;

        taken_pages += open - min_size(clean, open);
    }
    return taken_pages;
}
size_t commit_taken_bytes(void);
INLINE bool commit_is_limited(void)
{
    return unlikely(RELAXED_LOAD(commit.limit_bytes) != SIZE_MAX);
}
/* What may still be taken; SIZE_MAX: there is no limit. */
INLINE size_t commit_room_bytes(void)
{
    size_t limit = RELAXED_LOAD(commit.limit_bytes), taken;

    if (likely(limit == SIZE_MAX)) return SIZE_MAX;
    taken = commit_taken_bytes();
    return limit - min_size(taken, limit);
}
INLINE bool commit_allows(size_t bytes)
{
    return likely(!commit_is_limited()) || bytes <= commit_room_bytes();
}
/* Is more taken than the limit allows? It was set below that. */
INLINE bool commit_is_over(void)
{
    return commit_is_limited() && commit_taken_bytes() > RELAXED_LOAD(commit.limit_bytes);
}

#endif
