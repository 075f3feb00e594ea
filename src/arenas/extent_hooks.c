/* extent_hooks.c - what is asked of an arena's hooks, and the hooks that are there by default.
 * SPDX-License-Identifier: MIT
 */
#include "extents.h"

#include "../page_heap/page_heap.h"
#include "../space/meta.h"

/* ---- page numbers ---- */

/* A whole run of the address space that somebody leased, as the default hook does. */
static bool is_run_of_page_heap(uint32_t page, const char *base, size_t pages)
{
    const struct page *record = page_record(page);

    return page != 0 && page_address(page) == base && record->run_pages == pages
        && record->class_at == 0
        && (record->state == PAGE_USED || page_is_held_large(record) || page_is_fenced(record)
            || record->state == PAGE_SAMPLED);
}

/* Under the page heap's lock. The pages of a large block that is lent are used ones, and nobody's
 * large block; its sample lives on. */
static void borrow_run(struct extent *extent, uint32_t page)
{
    struct page *record = page_record(page);

    extent->state = record->state;
    extent->piece.first = page;
    if (!is_large_state(record->state)) return;
    extent->sample = record->state == PAGE_SAMPLED ? record->slab : 0;
    page_heap_of(page)->large_pages -= extent->piece.pages;
    page_heap_of(page)->large_returns++;
    record->state = PAGE_USED;
    record->slab = 0;
}

static void return_run(const struct extent *extent)
{
    tag_run(page_record(extent->piece.first), extent->piece.pages, (enum page_state)extent->state,
            PAGE_USED);
    if (!is_large_state(extent->state)) return;
    page_heap_of(extent->piece.first)->large_pages += extent->piece.pages;
    page_heap_of(extent->piece.first)->large_returns--;
    if (extent->state == PAGE_SAMPLED) page_record(extent->piece.first)->slab = extent->sample;
}

/* Gives the extent page numbers that are ours to tag. */
static bool number_extent(struct extent *extent)
{
    uint32_t page = page_at(extent->base);
    struct page_heap *heap = page != 0 ? page_heap_of(page) : page_heap;

    lock_take(&heap->lock);
    if (is_run_of_page_heap(page, extent->base, extent->piece.pages)) {
        borrow_run(extent, page);
    } else {
        extent->state = PAGE_INSIDE;
        extent->piece.first = foreign_add(extent->base, extent->piece.pages);
    }
    lock_give(&heap->lock);
    return extent->piece.first != 0;
}

static void unnumber_extent(struct extent *extent)
{
    struct page_heap *heap = page_heap_of(extent->piece.first);

    lock_take(&heap->lock);
    if (extent->state == PAGE_INSIDE) foreign_remove(extent->piece.first);
    else return_run(extent);
    lock_give(&heap->lock);
}

/* ---- asking ---- */

static bool hook_dalloc(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                        unsigned arena)
{
    return hooks->dalloc == NULL || hooks->dalloc(hooks, base, bytes, committed, arena);
}

static void hook_destroy(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                         unsigned arena)
{
    if (hooks->destroy != NULL) hooks->destroy(hooks, base, bytes, committed, arena);
}

/* Memory that was never used. */
static void hook_return(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                        unsigned arena)
{
    if (hook_dalloc(hooks, base, bytes, committed, arena))
        hook_destroy(hooks, base, bytes, committed, arena);
}

/* The memory, usable; do they say that it is zeros? NULL: none, or it went back. */
static char *hook_alloc(struct extent_hooks *hooks, size_t bytes, size_t align, bool *zero,
                        unsigned arena)
{
    bool committed = true;
    char *base = hooks->alloc(hooks, NULL, bytes, align, zero, &committed, arena);

    if (base != NULL && !committed)
        committed = hooks->commit != NULL && !hooks->commit(hooks, base, bytes, 0, bytes, arena);
    if (base == NULL || (committed && is_aligned((uintptr_t)base, align))) return base;
    hook_return(hooks, base, bytes, committed, arena);
    return NULL;
}

struct extent *extent_ask(struct extent_hooks *hooks, size_t bytes, size_t align, unsigned arena)
{
    struct extent *extent = meta_take(sizeof *extent);
    bool zero = false;

    if (extent == NULL) return NULL;
    extent->base = hook_alloc(hooks, bytes, align, &zero, arena);
    extent->piece.pages = (uint32_t)(bytes >> space.page_shift);
    extent->clean = zero;
    if (extent->base != NULL) {
        if (number_extent(extent)) return extent;
        hook_return(hooks, extent->base, bytes, true, arena);
    }
    meta_give(extent, sizeof *extent);
    return NULL;
}

bool extent_may_be_cut(struct extent_hooks *hooks, const struct extent *extent, unsigned arena)
{
    size_t bytes = (size_t)extent->piece.pages << space.page_shift, part = page_bytes();

    if (hooks->split == NULL || hooks->merge == NULL || bytes == part) return false;
    return !hooks->split(hooks, extent->base, bytes, part, bytes - part, true, arena)
        && !hooks->merge(hooks, extent->base, part, extent->base + part, bytes - part, true, arena);
}

bool extent_give(struct extent_hooks *hooks, struct extent *extent, unsigned arena, bool for_good)
{
    size_t bytes = (size_t)extent->piece.pages << space.page_shift;

    unnumber_extent(extent);
    if (hook_dalloc(hooks, extent->base, bytes, true, arena)) {
        if (!for_good && number_extent(extent)) return false;
        hook_destroy(hooks, extent->base, bytes, true, arena);
    }
    meta_give(extent, sizeof *extent);
    return true;
}

bool extent_purge(struct extent_hooks *hooks, const struct extent *extent, uint32_t page,
                  unsigned arena)
{
    size_t bytes = (size_t)extent->piece.pages << space.page_shift;
    size_t offset = (size_t)(page - extent->piece.first) << space.page_shift;
    size_t length = (size_t)page_record(page)->run_pages << space.page_shift;
    bool purged = hooks->purge_forced != NULL
               && !hooks->purge_forced(hooks, extent->base, bytes, offset, length, arena);

    if (!purged && hooks->purge_lazy != NULL)
        (void)hooks->purge_lazy(hooks, extent->base, bytes, offset, length, arena);
    return purged;
}

/* ---- the default ones ---- */

static void *default_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes,
                           size_t align, bool *zero, bool *committed, unsigned arena)
{
    struct run run;

    (void)hooks, (void)arena;
    if (new_address != NULL || bytes == 0
        || bytes > (size_t)space.page_count_max << space.page_shift)
        return NULL;
    run = run_lease(pages_for(bytes), max_size(align >> space.page_shift, 1), PAGE_USED);
    if (run.page == 0) return NULL;
    if (*zero && !run.zero)
        __builtin_memset(page_address(run.page), 0, pages_for(bytes) << space.page_shift);
    *zero |= run.zero;
    *committed = true;
    return page_address(run.page);
}

/* Whatever other hooks asked of the kernel for these pages (to leave them out of core files or of
 * children, to lock them or to take them from one node) ends with their mapping. */
static bool default_dalloc(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                           unsigned arena)
{
    uint32_t page = page_at(base);

    (void)hooks, (void)committed, (void)arena;
    if (!is_run_of_page_heap(page, base, pages_for(bytes)) || page_record(page)->state != PAGE_USED)
        return true;
    run_return_remapped(page);
    return false;
}

static void default_destroy(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                            unsigned arena)
{
    (void)default_dalloc(hooks, base, bytes, committed, arena);
}

/* Memory stays usable. */
static bool default_commit(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                           size_t length, unsigned arena)
{
    (void)hooks, (void)base, (void)bytes, (void)offset, (void)length, (void)arena;
    return false;
}

static bool default_decommit(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                             size_t length, unsigned arena)
{
    (void)hooks, (void)base, (void)bytes, (void)offset, (void)length, (void)arena;
    return true;
}

static bool default_purge(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                          size_t length, unsigned arena)
{
    (void)hooks, (void)bytes, (void)arena;
    return OS_PURGE_CLOSES || !os_purge((struct os_range){ (char *)base + offset, length });
}

static bool default_split(struct extent_hooks *hooks, void *base, size_t bytes, size_t bytes_a,
                          size_t bytes_b, bool committed, unsigned arena)
{
    (void)hooks, (void)base, (void)bytes, (void)bytes_a, (void)bytes_b, (void)committed;
    (void)arena;
    return false;
}

static bool default_merge(struct extent_hooks *hooks, void *base_a, size_t bytes_a, void *base_b,
                          size_t bytes_b, bool committed, unsigned arena)
{
    (void)hooks, (void)bytes_b, (void)committed, (void)arena;
    return (char *)base_a + bytes_a != base_b;
}

const struct extent_hooks extent_hooks_default = {
    default_alloc, default_dalloc, default_destroy, default_commit, default_decommit,
    default_purge, default_purge,  default_split,   default_merge,
};
