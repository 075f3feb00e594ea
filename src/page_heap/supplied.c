/* supplied.c - pieces of a page heap, and the walks over them.
 * SPDX-License-Identifier: MIT
 */
#include "supplied.h"

#include "run_bins.h"
#include "run_grow.h"
#include "run_walk.h"

void supplied_start(struct page_heap *heap)
{
    heap->number = PAGE_HEAPS;
    page_heap_start(heap);
}

/* ---- pieces ---- */

/* There may be one for each block. */
struct page_piece *supplied_piece_of(const struct page_heap *heap, uint32_t page)
{
    struct page_piece *piece = heap->likely_piece;

    if (piece != NULL && page - piece->first < piece->pages) return piece;
    piece = heap->pieces;
    while (piece != NULL && page - piece->first >= piece->pages) piece = piece->next;
    return piece;
}

bool supplied_is_same_piece(const struct page_heap *heap, uint32_t page, uint32_t other)
{
    const struct page_piece *piece = supplied_piece_of(heap, page);

    return piece != NULL && other - piece->first < piece->pages;
}

void supplied_add(struct page_heap *heap, struct page_piece *piece, unsigned kind)
{
    lock_take(page_heap_lock(heap));
    piece->next = heap->pieces;
    piece->previous = NULL;
    if (heap->pieces != NULL) heap->pieces->previous = piece;
    heap->pieces = piece;
    heap->open_pages += piece->pages;
    piece->lent = page_record(piece->first)->bin_index;
    make_free(heap, piece->first, piece->pages, free_state(heap, kind));
    lock_give(page_heap_lock(heap));
}

void supplied_remove(struct page_heap *heap, struct page_piece *piece)
{
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
    tag_run(page_record(piece->first), piece->pages, PAGE_USED, PAGE_USED);
    page_record(piece->first)->bin_index = piece->lent;
    heap->open_pages -= piece->pages;
    if (heap->likely_piece == piece) heap->likely_piece = NULL;
    if (piece->next != NULL) piece->next->previous = piece->previous;
    if (piece->previous != NULL) piece->previous->next = piece->next;
    else heap->pieces = piece->next;
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

struct wanted {
    size_t pages, align_pages;
    bool exact; /* a stretch of just that length */
};

/* Takes `pages` out of a stretch of free runs, from page + skip on. */
static uint32_t take_stretch(struct page_heap *heap, uint32_t page, size_t skip, size_t pages)
{
    for (; skip >= page_record(page)->run_pages; page += page_record(page)->run_pages)
        skip -= page_record(page)->run_pages;
    if (skip != 0) page = split_free(heap, page, skip);
    (void)run_take_hole(heap, page, 0, pages, PAGE_USED);
    return page;
}

static bool fits(uint32_t page, size_t stretch, struct wanted wanted)
{
    size_t skip = pages_to_alignment(page, wanted.align_pages);

    return wanted.exact ? stretch == wanted.pages && skip == 0 : stretch >= wanted.pages + skip;
}

static uint32_t take_wanted(struct page_heap *heap, uint32_t page, struct wanted wanted)
{
    return take_stretch(heap, page, pages_to_alignment(page, wanted.align_pages), wanted.pages);
}

static bool has_free_neighbour(uint32_t page)
{
    return is_supplied_free_state(state_beside(page_record(page - 1)))
        || is_supplied_free_state(state_beside(page_record(page + page_record(page)->run_pages)));
}

/* A free run that is a stretch by itself. *others: some have free neighbours, of their piece
 * perhaps. */
static uint32_t take_lone(struct page_heap *heap, struct wanted wanted, bool *others)
{
    for (unsigned word = 0; word < FREE_KINDS * BIN_WORDS; word++)
        for (uint64_t bits = heap->bins.bitmap[word]; bits != 0; bits &= bits - 1) {
            uint32_t page = heap->bins.head[word * 64 + lowest_bit(bits)];

            for (; page != 0; page = page_record(page)->bin.next)
                if (has_free_neighbour(page)) *others = true;
                else if (fits(page, page_record(page)->run_pages, wanted))
                    return take_wanted(heap, page, wanted);
        }
    return 0;
}

/* Looks at every run, for what lies in several of both kinds. */
static uint32_t take_along_pieces(struct page_heap *heap, struct wanted wanted)
{
    for (struct page_piece *piece = heap->pieces; piece != NULL; piece = piece->next) {
        uint32_t page = piece->first, end = piece->first + piece->pages;

        while (page < end) {
            size_t stretch = free_stretch(piece, page);

            if (fits(page, stretch, wanted)) return take_wanted(heap, page, wanted);
            page += stretch != 0 ? (uint32_t)stretch : page_record(page)->run_pages;
        }
    }
    return 0;
}

/* Where extents may not be cut up each block has a piece: those in use are not looked at unless
 * free runs lie side by side. */
static uint32_t take_somewhere(struct page_heap *heap, struct wanted wanted)
{
    bool others = false;
    uint32_t page = take_lone(heap, wanted, &others);

    return page == 0 && others ? take_along_pieces(heap, wanted) : page;
}

uint32_t supplied_lease(struct page_heap *heap, size_t pages, size_t align_pages, bool exact)
{
    uint32_t page = 0;

    if (pages > space.page_count_max || align_pages > space.page_count_max) return 0;
    lock_take(page_heap_lock(heap));
    if (!exact)
        page = align_pages > 1 ? run_find_aligned(heap, pages, align_pages) : run_find(heap, pages);
    if (page != 0) page = take_stretch(heap, page, pages_to_alignment(page, align_pages), pages);
    else if (heap->free_pages[FREE_DIRTY] + heap->free_pages[FREE_CLEAN] >= pages)
        page = take_somewhere(heap, (struct wanted){ pages, align_pages, exact });
    lock_give(page_heap_lock(heap));
    return page;
}

uint32_t supplied_take_dirty(struct page_heap *heap, uint32_t after)
{
    const struct page_piece *piece = after != 0 ? supplied_piece_of(heap, after) : heap->pieces;
    uint32_t page = 0;

    lock_take(page_heap_lock(heap));
    if (piece != NULL) page = after != 0 ? after + page_record(after)->run_pages : piece->first;
    while (piece != NULL) {
        for (; page < piece->first + piece->pages; page += page_record(page)->run_pages)
            if (page_record(page)->state == PAGE_SUPPLIED_DIRTY) break;
        if (page < piece->first + piece->pages) break;
        piece = piece->next;
        if (piece != NULL) page = piece->first;
    }
    if (piece != NULL) take_front(heap, page, page_record(page)->run_pages, PAGE_USED);
    lock_give(page_heap_lock(heap));
    return piece != NULL ? page : 0;
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
        for (uint32_t page = piece->first; page < piece->first + piece->pages;
             page += page_record(page)->run_pages) {
            const struct page *record = page_record(page);

            if (is_supplied_free_state(record->state))
                visit(kind_of(record->state) == FREE_DIRTY ? PAGE_DIRTY : PAGE_CLEAN,
                      record->run_pages, context);
        }
    lock_give(page_heap_lock(heap));
}

void supplied_check(struct page_heap *heap)
{
    size_t free_pages[FREE_KINDS] = { 0 }, open_pages = 0, free_runs = 0;

    for (const struct page_piece *piece = heap->pieces; piece != NULL; piece = piece->next) {
        uint32_t page = piece->first, end = piece->first + piece->pages, before = 0;

        while (page < end) {
            const struct page *record = page_record(page);

            require(record->run_pages != 0 && page + record->run_pages <= end);        /* E1, E2 */
            require((record + record->run_pages - 1)->run_pages == record->run_pages); /* E1 */
            if (is_supplied_free_state(record->state)) {
                require(before != record->state); /* R2 */
                free_pages[kind_of(record->state)] += record->run_pages;
                free_runs++;
            }
            before = is_supplied_free_state(record->state) ? record->state : 0;
            page += record->run_pages;
        }
        open_pages += piece->pages;
    }
    require(open_pages == heap->open_pages);    /* E1 */
    require(run_bins_check(heap) == free_runs); /* K2 */
    for (unsigned kind = 0; kind < FREE_KINDS; kind++)
        require(free_pages[kind] == heap->free_pages[kind]); /* K3 */
}
