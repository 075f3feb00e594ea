/* extents.h - extents of page runs, and the trees that they are in: split, merge, search.
 *
 *      free_runs   free runs by address, to find neighbours: O(lg n)
 *      by_size     free runs by length, then address, one tree a state: best fit
 *      used_runs   used runs by address, to find how long a returned one is
 *
 * Every run has an extent, whose two nodes are in one or two of these trees. Where there was a
 * choice, the trees got the cheaper way: a free run that loses its front stays where it is among
 * the addresses, and one that merges with its left neighbour is never put there. All of it is
 * under the page heap's lock. RUN_TREE names the tree.
 *
 * T1  every page of every open region is in exactly one run
 * T2  no two neighbours are free in the same state
 * T3  a free run is in free_runs and in by_size of its state, a used one in used_runs
 * T4  page_heap->free_pages counts the pages of the free runs of each kind
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_EXTENTS_H
#define PRAIRIE_LAB_EXTENTS_H

#include "../../src/space/meta.h"
#include "../../src/page_heap/page_heap.h"

#include "../trees/bsd.h"
#include "../trees/treap_random.h"
#include "../trees/tree_names.h"

#define RUN_VERB(verb) TREE_PASTE_VALUES(RUN_TREE, verb)

struct tree_run {
    union {
        struct {
            struct RUN_VERB(node) by_address, by_size;
        };
        struct tree_run *next_spare;
    };
    uint32_t page, pages;
    uint8_t kind; /* of a free run: FREE_DIRTY or FREE_CLEAN */
};

static struct {
    struct RUN_TREE free_runs, used_runs, by_size[FREE_KINDS];
    struct tree_run *spare;
    size_t spare_count, extent_count;
} kept_runs; /* under the page heap's lock */

enum { EXTENTS_NEEDED_MAX = 4, HOLE_TRIES_MAX = 8 };

/* ---- extents and their orders ---- */

INLINE int order_by_address(const void *one, const void *other)
{
    uint32_t left = TREE_OWNER(one, struct tree_run, by_address)->page;
    uint32_t right = TREE_OWNER(other, struct tree_run, by_address)->page;

    return (left > right) - (left < right);
}

INLINE int order_by_size(const void *one, const void *other)
{
    const struct tree_run *left = TREE_OWNER(one, struct tree_run, by_size);
    const struct tree_run *right = TREE_OWNER(other, struct tree_run, by_size);
    uint64_t left_key = (uint64_t)left->pages << 32 | left->page;
    uint64_t right_key = (uint64_t)right->pages << 32 | right->page;

    return (left_key > right_key) - (left_key < right_key);
}

INLINE struct tree_run *at_address(struct RUN_VERB(node) * node)
{
    return node == NULL ? NULL : TREE_OWNER(node, struct tree_run, by_address);
}

INLINE struct tree_run *at_size(struct RUN_VERB(node) * node)
{
    return node == NULL ? NULL : TREE_OWNER(node, struct tree_run, by_size);
}

INLINE void kept_run_drop(struct tree_run *extent)
{
    extent->next_spare = kept_runs.spare;
    kept_runs.spare = extent;
    kept_runs.spare_count++;
}

/* So many that one lease can be had. False: no memory. */
INLINE bool have_extents(void)
{
    if (likely(kept_runs.spare_count >= EXTENTS_NEEDED_MAX)) return true;
    struct tree_run *batch = meta_take(META_RECORD_BYTES_MAX);
    if (batch == NULL) return false;
    for (size_t i = META_RECORD_BYTES_MAX / sizeof *batch; i-- > 0;) kept_run_drop(&batch[i]);
    kept_runs.extent_count += META_RECORD_BYTES_MAX / sizeof *batch;
    return true;
}

INLINE struct tree_run *kept_run_make(uint32_t page, size_t pages, unsigned kind)
{
    struct tree_run *extent = kept_runs.spare;

    kept_runs.spare = extent->next_spare;
    kept_runs.spare_count--;
    extent->page = page;
    extent->pages = (uint32_t)pages;
    extent->kind = (uint8_t)kind;
    return extent;
}

INLINE void add_size(struct tree_run *extent)
{
    RUN_VERB(insert)(&kept_runs.by_size[extent->kind], &extent->by_size, order_by_size);
    page_heap->free_pages[extent->kind] += extent->pages;
}

INLINE void remove_size(struct tree_run *extent)
{
    RUN_VERB(remove)(&kept_runs.by_size[extent->kind], &extent->by_size, order_by_size);
    page_heap->free_pages[extent->kind] -= extent->pages;
}

INLINE void add_free(struct tree_run *extent)
{
    RUN_VERB(insert)(&kept_runs.free_runs, &extent->by_address, order_by_address);
    add_size(extent);
}

INLINE void remove_free(struct tree_run *extent)
{
    RUN_VERB(remove)(&kept_runs.free_runs, &extent->by_address, order_by_address);
    remove_size(extent);
}

/* The first free run behind this extent, which is not in a tree. */
INLINE struct tree_run *free_after(const struct tree_run *extent)
{
    return at_address(
        RUN_VERB(at_least)(&kept_runs.free_runs, &extent->by_address, order_by_address));
}

/* The last free run before `next`; NULL stands for the end. */
INLINE struct tree_run *free_before(const struct tree_run *next)
{
    if (next == NULL) return at_address(RUN_VERB(last)(&kept_runs.free_runs));
    return at_address(
        RUN_VERB(previous)(&kept_runs.free_runs, &next->by_address, order_by_address));
}

INLINE bool ends_at(const struct tree_run *extent, uint32_t page)
{
    return extent != NULL && extent->page + extent->pages == page;
}

INLINE bool starts_at(const struct tree_run *extent, uint32_t page)
{
    return extent != NULL && extent->page == page;
}

/* ---- split and merge ---- */

/* An extent that is in no tree becomes a free run, or part of one. */
INLINE struct tree_run *make_free(struct tree_run *extent, unsigned kind)
{
    struct tree_run *next = free_after(extent), *previous = free_before(next);

    extent->kind = (uint8_t)kind;
    page_record(extent->page)->state = kind == FREE_DIRTY ? PAGE_DIRTY : PAGE_CLEAN;
    if (starts_at(next, extent->page + extent->pages) && next->kind == kind) {
        remove_free(next);
        extent->pages += next->pages;
        kept_run_drop(next);
    }
    if (ends_at(previous, extent->page) && previous->kind == kind) {
        remove_size(previous);
        previous->pages += extent->pages;
        kept_run_drop(extent);
        extent = previous;
        add_size(extent);
    } else {
        add_free(extent);
    }
    if (kind == FREE_DIRTY) note_dirty(page_heap);
    return extent;
}

INLINE void note_used(struct tree_run *extent, enum page_state state)
{
    struct page *record = page_record(extent->page), *last = record + extent->pages - 1;

    last->run_pages = record->run_pages = extent->pages;
    last->state = PAGE_USED;
    record->state = (uint8_t)state;
    RUN_VERB(insert)(&kept_runs.used_runs, &extent->by_address, order_by_address);
}

/* The pages of a free run from its `skip`th on become an extent in no tree. */
INLINE struct tree_run *cut_out(struct tree_run *from, size_t skip, size_t pages)
{
    size_t rest = from->pages - skip - pages;
    uint32_t page = from->page + (uint32_t)skip;
    unsigned kind = from->kind;

    if (skip == 0 && rest == 0) {
        remove_free(from);
        return from;
    }
    remove_size(from);
    if (skip == 0) { /* its place among the addresses stays */
        from->page += (uint32_t)pages;
        from->pages = (uint32_t)rest;
        add_size(from);
    } else {
        from->pages = (uint32_t)skip;
        add_size(from);
        if (rest != 0) add_free(kept_run_make(page + (uint32_t)pages, rest, kind));
    }
    return kept_run_make(page, pages, kind);
}

INLINE struct tree_run *used_at(uint32_t page)
{
    struct tree_run like = { .page = page };

    return at_address(RUN_VERB(search)(&kept_runs.used_runs, &like.by_address, order_by_address));
}

INLINE struct tree_run *take_used(uint32_t page)
{
    struct tree_run *extent = used_at(page);

    require(extent != NULL);
    RUN_VERB(remove)(&kept_runs.used_runs, &extent->by_address, order_by_address);
    return extent;
}

/* ---- the search ---- */

INLINE struct tree_run *find(size_t pages)
{
    struct tree_run like = { .pages = (uint32_t)pages };

    for (unsigned kind = 0; kind < FREE_KINDS; kind++) {
        struct RUN_VERB(node) *node =
            RUN_VERB(at_least)(&kept_runs.by_size[kind], &like.by_size, order_by_size);
        if (node != NULL) return at_size(node);
    }
    return NULL;
}

/* Free runs of both kinds side by side, `enough` pages from `first` on or all there are. */
INLINE size_t hole_pages(struct tree_run *first, size_t enough)
{
    size_t pages = 0;
    struct tree_run *at = first;

    while (at != NULL && at->page == first->page + pages && pages < enough) {
        pages += at->pages;
        at = at_address(RUN_VERB(next)(&kept_runs.free_runs, &at->by_address, order_by_address));
    }
    return pages;
}

INLINE struct tree_run *hole_start(struct tree_run *extent)
{
    struct tree_run *before = free_before(extent);

    while (ends_at(before, extent->page)) {
        extent = before;
        before = free_before(extent);
    }
    return extent;
}

/* Looked for around the longest dirty runs. */
INLINE struct tree_run *find_hole(size_t pages)
{
    const struct RUN_TREE *tree = &kept_runs.by_size[FREE_DIRTY];
    struct RUN_VERB(node) *node = RUN_VERB(last)(tree);

    for (unsigned i = 0; node != NULL && i < HOLE_TRIES_MAX; i++) {
        struct tree_run *first = hole_start(at_size(node));
        if (hole_pages(first, pages) >= pages) return first;
        node = RUN_VERB(previous)(tree, node, order_by_size);
    }
    return NULL;
}

/* The hole at the end of the newest region; NULL: there is none. */
INLINE struct tree_run *find_tail(void)
{
    struct tree_run *last = free_before(NULL);

    if (space_open_end() == 0 || !ends_at(last, space_open_end())) return NULL;
    return hole_start(last);
}

#endif
