/* extents.c - cutting extents up, and what is asked of the hooks.
 * SPDX-License-Identifier: MIT
 */
#include "extents.h"

#include "../pages/meta.h"

enum { FIRST_ASKED_MIB = 2, LAST_ASKED_MIB = 64 };

struct extents *extents_make(struct extent_hooks *hooks)
{
    struct extents *extents = meta_take(sizeof *extents);

    if (extents == NULL) return NULL;
    *extents = (struct extents){ .hooks = hooks,
                                 .next_bytes = FIRST_ASKED_MIB * MiB,
                                 .grow_limit = LAST_ASKED_MIB * MiB };
    return extents;
}

/* ---- tags ---- */

/* E1. Pages inside of it must say INSIDE already. The page heap's walker and neighbours in the
 * address space look at tags. */
static void tag_locked(uint32_t page, size_t pages, enum page_state first)
{
    struct page *record = page_record(page), *last = record + pages - 1;

    check(lock_is_mine(&page_heap.lock));
    last->run_pages = (uint32_t)pages;
    last->state = PAGE_USED;
    record->run_pages = (uint32_t)pages;
    record->state = (uint8_t)first;
}

static void tag_span(uint32_t page, size_t pages, enum page_state first)
{
    lock_take(&page_heap.lock);
    tag_locked(page, pages, first);
    lock_give(&page_heap.lock);
}

/* Two spans that touch become one. */
static void join_spans(uint32_t page, size_t pages, size_t more_pages)
{
    lock_take(&page_heap.lock);
    page_record(page + (uint32_t)pages - 1)->state = PAGE_INSIDE;
    page_record(page + (uint32_t)pages)->state = PAGE_INSIDE;
    lock_give(&page_heap.lock);
    tag_span(page, pages + more_pages, PAGE_USED);
}

/* ---- spans ---- */

static void keep_spare(struct extents *extents, struct free_span *span)
{
    span->next = extents->spares;
    extents->spares = span;
}

/* From its front. E3 */
static void shorten(struct free_span *span, size_t pages)
{
    span->page += (uint32_t)pages;
    span->pages -= (uint32_t)pages;
    span->dirty_pages -= (uint32_t)min_size(span->dirty_pages, pages);
}

/* Shorter from its front by a used run. A span that is used up is the spare of that run. */
static void take_from_span(struct extents *extents, struct free_span **link, size_t pages)
{
    struct free_span *span = *link;
    uint32_t page = span->page;

    if (span->pages == pages) {
        *link = span->next;
        keep_spare(extents, span);
        return;
    }
    shorten(span, pages);
    tag_span(page, pages, PAGE_USED);
    tag_span(span->page, span->pages, PAGE_USED);
}

static size_t pages_before_alignment(uint32_t page, size_t align_pages)
{
    size_t at = (uintptr_t)page_address(page) >> space.page_shift;

    return (0 - at) & (align_pages - 1);
}

/* Cuts off the pages before an aligned one, as a span of their own. */
static void cut_front(struct free_span *span, size_t pages, struct free_span *rest)
{
    *rest = *span;
    shorten(rest, pages);
    span->pages = (uint32_t)pages;
    span->dirty_pages -= rest->dirty_pages;
    span->next = rest;
    tag_span(span->page, span->pages, PAGE_USED);
    tag_span(rest->page, rest->pages, PAGE_USED);
}

static bool fits(const struct extents *extents, const struct free_span *span, size_t pages,
                 size_t skip)
{
    if (extents->whole) return skip == 0 && span->pages == pages;
    return span->pages >= pages + skip;
}

/* All records that it takes are there before the span changes: one that was cut for nothing would
 * break E2. */
static uint32_t cut_run(struct extents *extents, struct free_span **link, size_t skip, size_t pages)
{
    bool is_used_up = (*link)->pages == skip + pages;
    struct free_span *rest = skip != 0 ? meta_take(sizeof *rest) : NULL;
    struct free_span *spare = is_used_up ? NULL : meta_take(sizeof *spare);
    uint32_t page = (*link)->page + (uint32_t)skip;

    if ((skip != 0 && rest == NULL) || (!is_used_up && spare == NULL)) {
        if (rest != NULL) meta_give(rest, sizeof *rest);
        if (spare != NULL) meta_give(spare, sizeof *spare);
        return 0;
    }
    if (spare != NULL) keep_spare(extents, spare);
    if (skip != 0) {
        cut_front(*link, skip, rest);
        link = &(*link)->next;
    }
    take_from_span(extents, link, pages);
    return page;
}

uint32_t extents_take(struct extents *extents, size_t pages, size_t align_pages)
{
    for (struct free_span **link = &extents->spans; *link != NULL; link = &(*link)->next) {
        size_t skip = pages_before_alignment((*link)->page, align_pages);

        if (fits(extents, *link, pages, skip)) return cut_run(extents, link, skip, pages);
    }
    return 0;
}

struct extent *extent_of(const struct extents *extents, uint32_t page)
{
    struct extent *extent = extents->first;

    while (extent != NULL && page - extent->first_page >= extent->pages) extent = extent->next;
    return extent;
}

static bool touch(const struct free_span *left, const struct free_span *right)
{
    return left->extent == right->extent && left->page + left->pages == right->page;
}

static void join_with_next(struct free_span *span)
{
    struct free_span *next = span->next;

    if (next == NULL || !touch(span, next)) return;
    join_spans(span->page, span->pages, next->pages);
    span->pages += next->pages;
    span->dirty_pages += next->dirty_pages;
    span->next = next->next;
    meta_give(next, sizeof *next);
}

/* After `before`, or first when that is NULL; E2. */
static void insert_span(struct extents *extents, struct free_span *before, struct free_span *span)
{
    struct free_span **link = before != NULL ? &before->next : &extents->spans;

    span->next = *link;
    *link = span;
    join_with_next(span);
    if (before != NULL) join_with_next(before);
}

static bool put_span(struct extents *extents, uint32_t page, bool dirty)
{
    struct extent *extent = extent_of(extents, page);
    struct free_span *span, *before = NULL;

    if (extent == NULL) return false;
    span = extents->spares;
    extents->spares = span->next;
    *span = (struct free_span){ NULL, extent, page, page_record(page)->run_pages, 0 };
    if (dirty) span->dirty_pages = span->pages;
    for (struct free_span *at = extents->spans; at != NULL; at = at->next)
        if (at->page < page) before = at;
        else break;
    insert_span(extents, before, span);
    return true;
}

bool extents_put(struct extents *extents, uint32_t page) { return put_span(extents, page, true); }

bool extents_put_purged(struct extents *extents, uint32_t page)
{
    return put_span(extents, page, false);
}

static bool trim(struct extents *extents, uint32_t page, size_t pages, enum page_state state)
{
    size_t tail_pages = page_record(page)->run_pages - pages;
    struct free_span *spare = meta_take(sizeof *spare);

    if (spare == NULL) return false;
    keep_spare(extents, spare);
    tag_span(page, pages, state);
    tag_span(page + (uint32_t)pages, tail_pages, PAGE_USED);
    (void)extents_put(extents, page + (uint32_t)pages);
    return true;
}

static bool extend(struct extents *extents, uint32_t page, size_t pages, enum page_state state)
{
    size_t old_pages = page_record(page)->run_pages, missing = pages - old_pages;
    struct free_span **link = &extents->spans, *span;

    while (*link != NULL && (*link)->page != page + old_pages) link = &(*link)->next;
    span = *link;
    if (span == NULL || span->pages < missing || extent_of(extents, page) != span->extent)
        return false;
    if (span->pages == missing) {
        *link = span->next;
        meta_give(span, sizeof *span);
    } else {
        tag_span(span->page, missing, PAGE_USED);
        shorten(span, missing);
        tag_span(span->page, span->pages, PAGE_USED);
    }
    join_spans(page, old_pages, missing);
    tag_span(page, pages, state);
    return true;
}

bool extents_resize(struct extents *extents, uint32_t page, size_t pages)
{
    enum page_state state = (enum page_state)page_record(page)->state;

    check(extent_of(extents, page) != NULL);
    if (extents->whole) return false;
    return pages < page_record(page)->run_pages ? trim(extents, page, pages, state)
                                                : extend(extents, page, pages, state);
}

void extents_add(struct extents *extents, struct extent *extent)
{
    struct free_span *span = extent->span, *before = NULL;

    extent->span = NULL;
    *span = (struct free_span){ NULL, extent, extent->first_page, extent->pages,
                                extent->clean ? 0 : extent->pages };
    tag_span(span->page, span->pages, PAGE_USED);
    extent->next = extents->first;
    extents->first = extent;
    for (struct free_span *at = extents->spans; at != NULL && at->page < span->page; at = at->next)
        before = at;
    insert_span(extents, before, span);
}

/* The record of its span goes with it: no memory is wanted when it comes back. */
static struct extent *remove_extent(struct extents *extents, struct free_span **link)
{
    struct free_span *span = *link;
    struct extent *extent = span->extent, **at = &extents->first;

    *link = span->next;
    while (*at != extent) at = &(*at)->next;
    *at = extent->next;
    extent->span = span;
    return extent;
}

struct extent *extents_remove_free(struct extents *extents)
{
    struct free_span **link = NULL;
    unsigned found = 0;

    for (struct free_span **next = &extents->spans; *next != NULL; next = &(*next)->next) {
        if ((*next)->pages != (*next)->extent->pages || (*next)->extent->stays) continue;
        link = next;
        found++;
    }
    return found < 2 ? NULL : remove_extent(extents, link);
}

/* Its pages are not looked at: in the child of a fork a thread that is not there may have taken
 * some to purge them. */
struct extent *extents_remove_any(struct extents *extents)
{
    struct extent *extent = extents->first;
    struct free_span **link = &extents->spans;

    if (extent == NULL) return NULL;
    while (*link != NULL) {
        struct free_span *span = *link;

        if (span->extent != extent) {
            link = &span->next;
            continue;
        }
        *link = span->next;
        if (extent->span != NULL) meta_give(extent->span, sizeof *span);
        extent->span = span;
    }
    extents->first = extent->next;
    return extent;
}

void extents_limit_growth(struct extents *extents, size_t bytes)
{
    extents->grow_limit = round_down(bytes, page_bytes());
    extents->next_bytes = min_size(extents->next_bytes, extents->grow_limit);
}

uint32_t extents_take_span(struct extents *extents, uint32_t page)
{
    struct free_span **link = &extents->spans;
    uint32_t first;

    while (*link != NULL && (*link)->page < page) link = &(*link)->next;
    if (*link == NULL) return 0;
    first = (*link)->page;
    take_from_span(extents, link, (*link)->pages);
    return first;
}

struct span_sum extents_free(const struct extents *extents)
{
    struct span_sum sum = { 0, 0 };

    for (const struct free_span *span = extents->spans; span != NULL; span = span->next) {
        sum.dirty += span->dirty_pages;
        sum.clean += span->pages - span->dirty_pages;
    }
    return sum;
}

void extents_visit_free(const struct extents *extents,
                        void (*visit)(enum page_state state, size_t pages, void *context),
                        void *context)
{
    for (const struct free_span *span = extents->spans; span != NULL; span = span->next)
        visit(span->dirty_pages != 0 ? PAGE_DIRTY : PAGE_CLEAN, span->pages, context);
}

/* ---- the hooks ---- */

uint64_t manual_leases;

/* A whole run of the address space that somebody leased, as the default hook does. */
static bool is_run_of_page_heap(uint32_t page, const char *base, size_t pages)
{
    const struct page *record = page_record(page);

    return page != 0 && page_address(page) == base && record->run_pages == pages
        && record->class_at == 0
        && (record->state == PAGE_USED || page_is_held_large(record)
            || record->state == PAGE_SAMPLED);
}

/* Under the page heap's lock. The pages of a large block that is lent are used ones, and nobody's
 * large block; its sample lives on. */
static void borrow_run(struct extent *extent, uint32_t page)
{
    struct page *record = page_record(page);

    extent->state = record->state;
    extent->first_page = page;
    if (!is_large_state(record->state)) return;
    extent->sample = record->state == PAGE_SAMPLED ? record->slab : 0;
    page_heap.large_pages -= extent->pages;
    page_heap.large_count--;
    record->state = PAGE_USED;
    record->slab = 0;
}

static void return_run(const struct extent *extent)
{
    tag_locked(extent->first_page, extent->pages, (enum page_state)extent->state);
    if (!is_large_state(extent->state)) return;
    page_heap.large_pages += extent->pages;
    page_heap.large_count++;
    if (extent->state == PAGE_SAMPLED) page_record(extent->first_page)->slab = extent->sample;
}

/* Gives the extent page numbers that are ours to tag. */
static bool number_extent(struct extent *extent)
{
    uint32_t page;

    lock_take(&page_heap.lock);
    page = open_page_at(extent->base);
    if (is_run_of_page_heap(page, extent->base, extent->pages)) {
        borrow_run(extent, page);
    } else {
        extent->state = PAGE_INSIDE;
        extent->first_page = 0;
        if (!space_overlaps(extent->base, (size_t)extent->pages << space.page_shift))
            extent->first_page = foreign_add(extent->base, extent->pages);
    }
    lock_give(&page_heap.lock);
    return extent->first_page != 0;
}

static void unnumber_extent(struct extent *extent)
{
    lock_take(&page_heap.lock);
    if (extent->state == PAGE_INSIDE) foreign_remove(extent->first_page);
    else return_run(extent);
    lock_give(&page_heap.lock);
}

/* Hooks may call what sets errno, and calls of ours that succeed, or free, leave it as it was. */

static bool hook_dalloc(struct extent_hooks *hooks, void *base, size_t bytes, unsigned arena)
{
    int error = os_errno();
    bool refused = hooks->dalloc == NULL || hooks->dalloc(hooks, base, bytes, true, arena);

    os_errno_restore(error);
    return refused;
}

static void hook_destroy(struct extent_hooks *hooks, void *base, size_t bytes, unsigned arena)
{
    int error = os_errno();

    if (hooks->destroy != NULL) hooks->destroy(hooks, base, bytes, true, arena);
    os_errno_restore(error);
}

/* Memory that was never used. */
static void hook_return(struct extent_hooks *hooks, void *base, size_t bytes, unsigned arena)
{
    if (hook_dalloc(hooks, base, bytes, arena)) hook_destroy(hooks, base, bytes, arena);
}

static bool hook_commit(struct extent_hooks *hooks, void *base, size_t bytes, unsigned arena)
{
    return hooks->commit != NULL && !hooks->commit(hooks, base, bytes, 0, bytes, arena);
}

/* The memory, usable; do they say that it is zeros? NULL: none, or it went back. */
static char *hook_alloc(struct extent_hooks *hooks, size_t bytes, size_t align, bool *zero,
                        unsigned arena)
{
    int error = os_errno();
    bool commit = true;
    char *base = hooks->alloc(hooks, NULL, bytes, align, zero, &commit, arena);

    if (base != NULL && !commit) commit = hook_commit(hooks, base, bytes, arena);
    os_errno_restore(error);
    if (base == NULL || (commit && is_aligned((uintptr_t)base, align))) return base;
    hook_return(hooks, base, bytes, arena);
    return NULL;
}

static struct extent *take_records(void)
{
    struct extent *extent = meta_take(sizeof *extent);

    if (extent == NULL) return NULL;
    extent->span = meta_take(sizeof *extent->span);
    if (extent->span != NULL) return extent;
    meta_give(extent, sizeof *extent);
    return NULL;
}

static void give_records(struct extent *extent)
{
    if (extent->span != NULL) meta_give(extent->span, sizeof *extent->span);
    meta_give(extent, sizeof *extent);
}

struct extent *extent_ask(struct extent_hooks *hooks, size_t bytes, size_t align, unsigned arena)
{
    struct extent *extent = take_records();
    bool zero = false;

    if (extent == NULL) return NULL;
    extent->base = hook_alloc(hooks, bytes, align, &zero, arena);
    extent->pages = (uint32_t)(bytes >> space.page_shift);
    extent->clean = zero;
    if (extent->base != NULL) {
        if (number_extent(extent)) return extent;
        hook_return(hooks, extent->base, bytes, arena);
    }
    give_records(extent);
    return NULL;
}

bool extent_may_be_cut(struct extent_hooks *hooks, const struct extent *extent, unsigned arena)
{
    size_t bytes = (size_t)extent->pages << space.page_shift, part = page_bytes();
    int error = os_errno();
    bool may;

    if (hooks->split == NULL || hooks->merge == NULL || bytes == part) return false;
    may = !hooks->split(hooks, extent->base, bytes, part, bytes - part, true, arena)
       && !hooks->merge(hooks, extent->base, part, extent->base + part, bytes - part, true, arena);
    os_errno_restore(error);
    return may;
}

bool extent_give(struct extent_hooks *hooks, struct extent *extent, unsigned arena, bool for_good)
{
    size_t bytes = (size_t)extent->pages << space.page_shift;

    unnumber_extent(extent);
    if (hook_dalloc(hooks, extent->base, bytes, arena)) {
        if (!for_good && number_extent(extent)) return false;
        hook_destroy(hooks, extent->base, bytes, arena);
    }
    give_records(extent);
    return true;
}

bool extent_purge(struct extent_hooks *hooks, const struct extent *extent, uint32_t page,
                  unsigned arena)
{
    size_t bytes = (size_t)extent->pages << space.page_shift;
    size_t offset = (size_t)(page - extent->first_page) << space.page_shift;
    size_t length = (size_t)page_record(page)->run_pages << space.page_shift;
    int error = os_errno();
    bool purged = hooks->purge_forced != NULL
               && !hooks->purge_forced(hooks, extent->base, bytes, offset, length, arena);

    if (!purged && hooks->purge_lazy != NULL)
        (void)hooks->purge_lazy(hooks, extent->base, bytes, offset, length, arena);
    os_errno_restore(error);
    return purged;
}

/* ---- the default ones ---- */

static void *default_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes,
                           size_t align, bool *zero, bool *commit, unsigned arena)
{
    struct run run;

    (void)hooks, (void)arena;
    if (new_address != NULL || bytes == 0
        || bytes > (size_t)space.page_count_max << space.page_shift)
        return NULL;
    run = run_lease(pages_for(bytes), max_size(align >> space.page_shift, 1), PAGE_USED);
    if (run.page == 0) return NULL;
    __atomic_fetch_add(&manual_leases, 1, __ATOMIC_RELAXED);
    if (*zero && !run.zero)
        __builtin_memset(page_address(run.page), 0, pages_for(bytes) << space.page_shift);
    *zero |= run.zero;
    *commit = true;
    return page_address(run.page);
}

static bool default_dalloc(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                           unsigned arena)
{
    uint32_t page = open_page_at(base);

    (void)hooks, (void)committed, (void)arena;
    if (!is_run_of_page_heap(page, base, pages_for(bytes)) || page_record(page)->state != PAGE_USED)
        return true;
    run_return(page);
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
    return !os_purge((struct os_range){ (char *)base + offset, length });
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

struct extent_hooks extent_hooks_default = {
    default_alloc, default_dalloc, default_destroy, default_commit, default_decommit,
    default_purge, default_purge,  default_split,   default_merge,
};
