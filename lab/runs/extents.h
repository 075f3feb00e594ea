/* extents.h - extents of page runs, and the trees that they are in: split, merge, search.
 *
 *      free_runs   free runs by address, to find neighbours: O(lg n)
 *      by_size     free runs by length, then address, one tree a state: best fit
 *      used_runs   used runs by address, to find how long a returned one is
 *
 * Every run has an extent, whose two nodes are in one or two of these trees. Where there was a
 * choice, the trees got the cheaper way: a free run that loses its front stays where it is among
 * the addresses, and one that merges with its left neighbour is never put there. All of it is
 * under the keeper's lock. KEEPER_TREE names the tree.
 *
 * T1  every page of every open region is in exactly one run
 * T2  no two neighbours are free in the same state
 * T3  a free run is in free_runs and in by_size of its state, a used one in used_runs
 * T4  keeper.free_pages counts the pages of the free runs of each kind
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_EXTENTS_H
#define PRAIRIE_LAB_EXTENTS_H

#include "../../src/pages/meta.h"
#include "../../src/pages/run.h"

#include "../trees/bsd.h"
#include "../trees/treap_random.h"
#include "../trees/tree_names.h"

#define KEEPER(verb) TREE_PASTE_VALUES(KEEPER_TREE, verb)

struct extent {
    union {
        struct {
            struct KEEPER(node) by_address, by_size;
        };
        struct extent *next_spare;
    };
    uint32_t page, pages;
    uint8_t kind; /* of a free run: FREE_DIRTY or FREE_CLEAN */
};

static struct {
    struct KEEPER_TREE free_runs, used_runs, by_size[FREE_KINDS];
    struct extent *spare;
    size_t spare_count, extent_count;
} extents; /* under the keeper's lock */

enum { EXTENTS_NEEDED_MAX = 4, HOLE_TRIES_MAX = 8 };

/* ---- extents and their orders ---- */

INLINE int order_by_address(const void *one, const void *other)
{
    uint32_t left = TREE_OWNER(one, struct extent, by_address)->page;
    uint32_t right = TREE_OWNER(other, struct extent, by_address)->page;

    return (left > right) - (left < right);
}

INLINE int order_by_size(const void *one, const void *other)
{
    const struct extent *left = TREE_OWNER(one, struct extent, by_size);
    const struct extent *right = TREE_OWNER(other, struct extent, by_size);
    uint64_t left_key = (uint64_t)left->pages << 32 | left->page;
    uint64_t right_key = (uint64_t)right->pages << 32 | right->page;

    return (left_key > right_key) - (left_key < right_key);
}

INLINE struct extent *at_address(struct KEEPER(node) * node)
{
    return node == NULL ? NULL : TREE_OWNER(node, struct extent, by_address);
}

INLINE struct extent *at_size(struct KEEPER(node) * node)
{
    return node == NULL ? NULL : TREE_OWNER(node, struct extent, by_size);
}

INLINE void extent_drop(struct extent *extent)
{
    extent->next_spare = extents.spare;
    extents.spare = extent;
    extents.spare_count++;
}

/* So many that one lease can be had. False: no memory. */
INLINE bool have_extents(void)
{
    if (likely(extents.spare_count >= EXTENTS_NEEDED_MAX)) return true;
    struct extent *batch = meta_take(META_RECORD_BYTES_MAX);
    if (batch == NULL) return false;
    for (size_t i = META_RECORD_BYTES_MAX / sizeof *batch; i-- > 0;) extent_drop(&batch[i]);
    extents.extent_count += META_RECORD_BYTES_MAX / sizeof *batch;
    return true;
}

INLINE struct extent *extent_make(uint32_t page, size_t pages, unsigned kind)
{
    struct extent *extent = extents.spare;

    extents.spare = extent->next_spare;
    extents.spare_count--;
    extent->page = page;
    extent->pages = (uint32_t)pages;
    extent->kind = (uint8_t)kind;
    return extent;
}

INLINE void add_size(struct extent *extent)
{
    KEEPER(insert)(&extents.by_size[extent->kind], &extent->by_size, order_by_size);
    keeper.free_pages[extent->kind] += extent->pages;
}

INLINE void remove_size(struct extent *extent)
{
    KEEPER(remove)(&extents.by_size[extent->kind], &extent->by_size, order_by_size);
    keeper.free_pages[extent->kind] -= extent->pages;
}

INLINE void add_free(struct extent *extent)
{
    KEEPER(insert)(&extents.free_runs, &extent->by_address, order_by_address);
    add_size(extent);
}

INLINE void remove_free(struct extent *extent)
{
    KEEPER(remove)(&extents.free_runs, &extent->by_address, order_by_address);
    remove_size(extent);
}

/* The first free run behind this extent, which is not in a tree. */
INLINE struct extent *free_after(const struct extent *extent)
{
    return at_address(KEEPER(at_least)(&extents.free_runs, &extent->by_address, order_by_address));
}

/* The last free run before `next`; NULL stands for the end. */
INLINE struct extent *free_before(const struct extent *next)
{
    if (next == NULL) return at_address(KEEPER(last)(&extents.free_runs));
    return at_address(KEEPER(previous)(&extents.free_runs, &next->by_address, order_by_address));
}

INLINE bool ends_at(const struct extent *extent, uint32_t page)
{
    return extent != NULL && extent->page + extent->pages == page;
}

INLINE bool starts_at(const struct extent *extent, uint32_t page)
{
    return extent != NULL && extent->page == page;
}

/* ---- split and merge ---- */

/* An extent that is in no tree becomes a free run, or part of one. */
INLINE struct extent *make_free(struct extent *extent, unsigned kind)
{
    struct extent *next = free_after(extent), *previous = free_before(next);

    extent->kind = (uint8_t)kind;
    page_record(extent->page)->state = kind == FREE_DIRTY ? PAGE_DIRTY : PAGE_CLEAN;
    if (starts_at(next, extent->page + extent->pages) && next->kind == kind) {
        remove_free(next);
        extent->pages += next->pages;
        extent_drop(next);
    }
    if (ends_at(previous, extent->page) && previous->kind == kind) {
        remove_size(previous);
        previous->pages += extent->pages;
        extent_drop(extent);
        add_size(previous);
        return previous;
    }
    add_free(extent);
    return extent;
}

INLINE void note_used(struct extent *extent, enum page_state state)
{
    struct page *record = page_record(extent->page), *last = record + extent->pages - 1;

    last->run_pages = record->run_pages = extent->pages;
    last->state = PAGE_USED;
    record->state = (uint8_t)state;
    KEEPER(insert)(&extents.used_runs, &extent->by_address, order_by_address);
}

/* The pages of a free run from its `skip`th on become an extent in no tree. */
INLINE struct extent *cut_out(struct extent *from, size_t skip, size_t pages)
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
        if (rest != 0) add_free(extent_make(page + (uint32_t)pages, rest, kind));
    }
    return extent_make(page, pages, kind);
}

INLINE struct extent *used_at(uint32_t page)
{
    struct extent like = { .page = page };

    return at_address(KEEPER(search)(&extents.used_runs, &like.by_address, order_by_address));
}

INLINE struct extent *take_used(uint32_t page)
{
    struct extent *extent = used_at(page);

    require(extent != NULL);
    KEEPER(remove)(&extents.used_runs, &extent->by_address, order_by_address);
    return extent;
}

/* ---- the search ---- */

INLINE struct extent *find(size_t pages)
{
    struct extent like = { .pages = (uint32_t)pages };

    for (unsigned kind = 0; kind < FREE_KINDS; kind++) {
        struct KEEPER(node) *node =
            KEEPER(at_least)(&extents.by_size[kind], &like.by_size, order_by_size);
        if (node != NULL) return at_size(node);
    }
    return NULL;
}

/* Free runs of both kinds side by side, `enough` pages from `first` on or all there are. */
INLINE size_t hole_pages(struct extent *first, size_t enough)
{
    size_t pages = 0;
    struct extent *at = first;

    while (at != NULL && at->page == first->page + pages && pages < enough) {
        pages += at->pages;
        at = at_address(KEEPER(next)(&extents.free_runs, &at->by_address, order_by_address));
    }
    return pages;
}

INLINE struct extent *hole_start(struct extent *extent)
{
    struct extent *before = free_before(extent);

    while (ends_at(before, extent->page)) {
        extent = before;
        before = free_before(extent);
    }
    return extent;
}

/* Looked for around the longest dirty runs. */
INLINE struct extent *find_hole(size_t pages)
{
    const struct KEEPER_TREE *tree = &extents.by_size[FREE_DIRTY];
    struct KEEPER(node) *node = KEEPER(last)(tree);

    for (unsigned i = 0; node != NULL && i < HOLE_TRIES_MAX; i++) {
        struct extent *first = hole_start(at_size(node));
        if (hole_pages(first, pages) >= pages) return first;
        node = KEEPER(previous)(tree, node, order_by_size);
    }
    return NULL;
}

/* The hole at the end of the newest region; NULL: there is none. */
INLINE struct extent *find_tail(void)
{
    struct extent *last = free_before(NULL);

    if (!plain_newest_is_open() || !ends_at(last, plain_open_end())) return NULL;
    return hole_start(last);
}

#endif
