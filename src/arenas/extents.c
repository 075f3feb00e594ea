/* extents.c - runs of extents, and which of them are spare.
 * SPDX-License-Identifier: MIT
 */
#include "extents.h"

#include "../base/options.h"
#include "../page_heap/page_heap.h"
#include "../space/meta.h"

enum { FIRST_ASKED_MIB = 2, LAST_ASKED_MIB = 64 };

struct extents *extents_make(struct extent_hooks *hooks, bool *arena_has_spare)
{
    struct extents *extents = meta_take(sizeof *extents);

    if (extents == NULL) return NULL;
    extents->hooks = hooks;
    extents->arena_has_spare = arena_has_spare;
    extents->next_bytes = FIRST_ASKED_MIB * MiB;
    extents->grow_limit = LAST_ASKED_MIB * MiB;
    extents->dirty_decay_ms = option_decay_ms();
    extents->muzzy_decay_ms = (int64_t)option_value(OPTION_MUZZY_DECAY_MS);
    supplied_start(&extents->heap);
    return extents;
}

/* ---- runs ---- */

uint32_t extents_take(struct extents *extents, size_t pages, size_t align_pages)
{
    return supplied_lease(&extents->heap, pages, align_pages, RELAXED_LOAD(extents->whole));
}

struct extent *extent_of(const struct extents *extents, uint32_t page)
{
    return (struct extent *)supplied_piece_of(&extents->heap, page);
}

struct extent *extent_of_taken(struct extents *extents, uint32_t page)
{
    if (!RELAXED_LOAD(extents->whole)) return NULL;
    for (struct extent *extent = extents->spare; extent != NULL; extent = extent->next_spare)
        if (page - extent->piece.first < extent->piece.pages) return extent;
    return extent_of(extents, page);
}

/* ---- spare extents ---- */

/* The second one that is free, as a link to it; those before it that are in use again leave the
 * list. NULL: there is none. */
static struct extent **second_spare(struct extents *extents)
{
    struct extent **link = &extents->spare;
    bool is_second = false;

    while (*link != NULL) {
        struct extent *extent = *link;

        if (!supplied_is_free(&extent->piece)) {
            *link = extent->next_spare;
            extent->is_spare = false;
        } else if (is_second) {
            return link;
        } else {
            link = &extent->next_spare;
            is_second = true;
        }
    }
    return NULL;
}

/* Once there are two, those that follow only line up. */
static void note_if_spare(struct extents *extents, struct extent *extent)
{
    if (extent->stays || !supplied_is_free(&extent->piece)) return;
    if (!extent->is_spare) {
        extent->is_spare = true;
        extent->next_spare = extents->spare;
        extents->spare = extent;
    }
    if (!*extents->arena_has_spare && second_spare(extents) != NULL)
        RELAXED_STORE(*extents->arena_has_spare, true);
}

void extents_put_into(struct extents *extents, struct extent *extent, uint32_t page, unsigned kind)
{
    extents->heap.likely_piece = &extent->piece;
    supplied_return(&extents->heap, page, kind);
    note_if_spare(extents, extent);
}

bool extents_put(struct extents *extents, uint32_t page)
{
    struct extent *extent = extent_of(extents, page);

    if (extent != NULL) extents_put_into(extents, extent, page, FREE_DIRTY);
    return extent != NULL;
}

void extents_add(struct extents *extents, struct extent *extent, unsigned kind)
{
    supplied_add(&extents->heap, &extent->piece, kind);
    extents->heap.likely_piece = &extent->piece;
    note_if_spare(extents, extent);
}

struct extent *extents_remove_free(struct extents *extents)
{
    struct extent **link = second_spare(extents), *found;

    if (link == NULL) {
        RELAXED_STORE(*extents->arena_has_spare, false);
        return NULL;
    }
    found = *link;
    *link = found->next_spare;
    found->is_spare = false;
    supplied_remove(&extents->heap, &found->piece);
    return found;
}

struct extent *extents_remove_any(struct extents *extents)
{
    struct extent *extent = extents->spare;

    if (extent != NULL) extents->spare = extent->next_spare;
    else extent = (struct extent *)extents->heap.pieces;
    if (extent != NULL) supplied_remove(&extents->heap, &extent->piece);
    return extent;
}

void extents_check(struct extents *extents)
{
    unsigned free = 0, listed = 0;

    supplied_check(&extents->heap);
    for (const struct page_piece *piece = extents->heap.pieces; piece != NULL;
         piece = piece->next) {
        const struct extent *extent = (const struct extent *)piece;

        free += !extent->stays && supplied_is_free(piece);
    }
    for (const struct extent *extent = extents->spare; extent != NULL;
         extent = extent->next_spare) {
        require(extent->is_spare); /* Y1 */
        listed += supplied_is_free(&extent->piece);
    }
    require(listed == free);                        /* Y1 */
    require(free < 2 || *extents->arena_has_spare); /* Y2 */
}

/* ---- growth ---- */

void extents_limit_growth(struct extents *extents, size_t bytes)
{
    extents->grow_limit = round_down(bytes, page_bytes());
    extents->next_bytes = min_size(extents->next_bytes, extents->grow_limit);
}
