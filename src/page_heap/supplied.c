/* supplied.c - pieces of a page heap, and the walks over them.
 * SPDX-License-Identifier: MIT
 */
#include "supplied.h"

#include "run_bins.h"

void supplied_start(struct page_heap *heap)
{
    lock_init(&heap->lock, LOCK_PAGE_HEAP);
    heap->is_supplied = true;
    heap->lease_pages_max = RUN_PAGES_MAX;
    heap->huge.again_at = UINT64_MAX;
}

/* ---- pieces ---- */

struct page_piece *supplied_piece_of(const struct page_heap *heap, uint32_t page)
{
    struct page_piece *piece = heap->pieces;

    while (piece != NULL && page - piece->first >= piece->pages) piece = piece->next;
    return piece;
}

bool is_same_piece(const struct page_heap *heap, uint32_t page, uint32_t other)
{
    const struct page_piece *piece = supplied_piece_of(heap, page);

    return piece != NULL && other - piece->first < piece->pages;
}

void supplied_add(struct page_heap *heap, struct page_piece *piece, unsigned kind)
{
    lock_take(page_heap_lock(heap));
    piece->next = heap->pieces;
    heap->pieces = piece;
    heap->open_pages += piece->pages;
    page_record(piece->first + piece->pages - 1)->state = PAGE_INSIDE;
    make_free(heap, piece->first, piece->pages, free_state(heap, kind));
    lock_give(page_heap_lock(heap));
}

void supplied_remove(struct page_heap *heap, struct page_piece *piece)
{
    struct page_piece **link = &heap->pieces;
    uint32_t end = piece->first + piece->pages;

    lock_take(page_heap_lock(heap));
    for (uint32_t page = piece->first; page < end;) {
        struct page *record = page_record(page);
        uint32_t pages = record->run_pages;

        if (is_supplied_free_state(record->state)) (void)remove_free(heap, page);
        record->state = PAGE_INSIDE;
        (record + pages - 1)->state = PAGE_INSIDE;
        page += pages;
    }
    heap->open_pages -= piece->pages;
    while (*link != piece) link = &(*link)->next;
    *link = piece->next;
    lock_give(page_heap_lock(heap));
}

/* How many free pages there are from this one on. */
static uint32_t free_stretch(const struct page_piece *piece, uint32_t from)
{
    uint32_t page = from, end = piece->first + piece->pages;

    while (page < end && is_supplied_free_state(page_record(page)->state))
        page += page_record(page)->run_pages;
    return page - from;
}

bool supplied_is_free(const struct page_piece *piece)
{
    return free_stretch(piece, piece->first) == piece->pages;
}

/* ---- leases ---- */

/* Runs of a piece from the first that begins at or after `from`; 0: there is none. */
static uint32_t first_run(const struct page_piece *piece, uint32_t from)
{
    uint32_t page = piece->first, end = piece->first + piece->pages;

    while (page < end && page < from) page += page_record(page)->run_pages;
    return page < end ? page : 0;
}

uint32_t supplied_lease_exact(struct page_heap *heap, size_t pages, size_t align_pages)
{
    uint32_t found = 0;

    lock_take(page_heap_lock(heap));
    for (struct page_piece *piece = heap->pieces; piece != NULL && found == 0; piece = piece->next)
        for (uint32_t page = piece->first; page != 0 && found == 0;) {
            uint32_t stretch = free_stretch(piece, page);

            if (stretch == pages && pages_to_alignment(page, align_pages) == 0) found = page;
            page = first_run(piece, page + (stretch != 0 ? stretch : 1));
        }
    if (found != 0) (void)run_take_hole(heap, found, 0, pages, PAGE_USED);
    lock_give(page_heap_lock(heap));
    return found;
}

uint32_t supplied_take_dirty(struct page_heap *heap, uint32_t from)
{
    uint32_t found = 0;

    lock_take(page_heap_lock(heap));
    for (struct page_piece *piece = heap->pieces; piece != NULL; piece = piece->next) {
        uint32_t page = first_run(piece, from);

        while (page != 0 && page_record(page)->state != PAGE_SUPPLIED_DIRTY)
            page = first_run(piece, page + 1);
        if (page != 0 && (found == 0 || page < found)) found = page;
    }
    if (found != 0) take_front(heap, found, page_record(found)->run_pages, PAGE_USED);
    lock_give(page_heap_lock(heap));
    return found;
}

void supplied_return(struct page_heap *heap, uint32_t page, unsigned kind)
{
    lock_take(page_heap_lock(heap));
    make_free(heap, page, page_record(page)->run_pages, free_state(heap, kind));
    lock_give(page_heap_lock(heap));
}

/* ---- walks ---- */

void supplied_visit_free(struct page_heap *heap,
                         void (*visit)(enum page_state state, size_t pages, void *context),
                         void *context)
{
    lock_take(page_heap_lock(heap));
    for (const struct page_piece *piece = heap->pieces; piece != NULL; piece = piece->next)
        for (uint32_t page = piece->first; page != 0; page = first_run(piece, page + 1)) {
            const struct page *record = page_record(page);

            if (is_supplied_free_state(record->state))
                visit(kind_of(record->state) == FREE_DIRTY ? PAGE_DIRTY : PAGE_CLEAN,
                      record->run_pages, context);
        }
    lock_give(page_heap_lock(heap));
}

void supplied_check(struct page_heap *heap)
{
    size_t free_pages[FREE_KINDS] = { 0 }, open_pages = 0;

    for (const struct page_piece *piece = heap->pieces; piece != NULL; piece = piece->next) {
        uint32_t page = piece->first, end = piece->first + piece->pages, before = 0;

        while (page < end) {
            const struct page *record = page_record(page);

            require(record->run_pages != 0 && page + record->run_pages <= end);        /* E1, E2 */
            require((record + record->run_pages - 1)->run_pages == record->run_pages); /* E1 */
            if (is_supplied_free_state(record->state)) {
                require(before != record->state); /* R2 */
                free_pages[kind_of(record->state)] += record->run_pages;
            }
            before = is_supplied_free_state(record->state) ? record->state : 0;
            page += record->run_pages;
        }
        open_pages += piece->pages;
    }
    require(open_pages == heap->open_pages); /* E1 */
    for (unsigned kind = 0; kind < FREE_KINDS; kind++)
        require(free_pages[kind] == heap->free_pages[kind]); /* K3 */
}
