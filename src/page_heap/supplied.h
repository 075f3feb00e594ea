/* supplied.h - a page heap whose pages are supplied in pieces, and taken away again.
 *
 * It leases, splits and merges as any page heap does, but it opens no address space: its owner adds
 * a piece when a lease finds nothing. Two pieces that touch stay two, so that each can go as it
 * came.
 *
 * A piece has page numbers of its own, or lies in a used run of another page heap, whose neighbours
 * then are that heap's. So the free pages of a supplied one have states of their own, and the lock
 * is that of the shared page heap.
 *
 * E1  every page of a piece is in a used run or in a free one; both are tagged like all runs
 * E2  no free run reaches over the end of its piece
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PAGE_HEAP_SUPPLIED_H
#define PRAIRIE_PAGE_HEAP_SUPPLIED_H

#include "page_heap.h"

void supplied_start(struct page_heap *heap);

/* All of it is free, and of that kind. Its records are nobody else's, or those of a used run. */
void supplied_add(struct page_heap *heap, struct page_piece *piece, unsigned kind);
/* Its pages are not the heap's any more, but one used run; those that were in it are gone. */
void supplied_remove(struct page_heap *heap, struct page_piece *piece);
/* The piece that the page is of; NULL: it is of none. */
struct page_piece *supplied_piece_of(const struct page_heap *heap, uint32_t page);
/* Do both pages lie in the same piece? */
bool supplied_is_same_piece(const struct page_heap *heap, uint32_t page, uint32_t other);
/* Is nothing of it leased? */
bool supplied_is_free(const struct page_piece *piece);

/* A used run; `exact`: only from a stretch of free pages of just that length. 0: none fits. */
uint32_t supplied_lease(struct page_heap *heap, size_t pages, size_t align_pages, bool exact);
/* Takes a dirty run out as a used one. `after` is the one that was taken before it and is not
 * returned yet, or 0; so all of them can be gone through. 0: there is none. */
uint32_t supplied_take_dirty(struct page_heap *heap, uint32_t after);
/* A used run is free, and of that kind. */
void supplied_return(struct page_heap *heap, uint32_t page, unsigned kind);

/* Calls `visit` for each free run, as PAGE_DIRTY or PAGE_CLEAN. */
void supplied_visit_free(struct page_heap *heap,
                         void (*visit)(enum page_state state, size_t pages, void *context),
                         void *context);
/* Aborts on a broken invariant. */
void supplied_check(struct page_heap *heap);

#endif
