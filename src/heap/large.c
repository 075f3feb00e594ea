/* large.c - blocks that are runs of pages of their own, or mappings of their own when they are
 * vast.
 *
 * A large block is as long as its pages: usable bytes are known from the page map, and growing or
 * shrinking moves the boundary. Its bytes in the class map stay 0.
 *
 * Lines that lie equally far behind the starts of pages share few places in a processor's caches,
 * and it is the beginning of a block that programs look at most. So a block whose pages have
 * PAGE_STAGGERED bytes to spare is staggered: it is shorter by so much, and begins with one of the
 * first lines of its first page; in one stretch of pages all with the same one, for what reuses a
 * page is to find its lines in the caches (docs/decisions/0048). How long a block is follows from
 * the size alone.
 * SPDX-License-Identifier: MIT
 */
#include "large.h"

#include "doors.h"
#include "hardened_large.h"
#include "heap.h"
#include "sampled.h"
#include "shortage.h"
#include "slow.h"

#include "../arenas/decay.h"
#include "../arenas/manual.h"
#include "../base/options.h"
#include "../cache/large_cache.h"
#include "../cache/thread.h"
#include "../guard/fill.h"
#include "../page_heap/run_fence.h"
#include "../policy/limits.h"
#include "vast.h"

/* The record of a vast block counts no pages. */
size_t large_bytes(uint32_t page)
{
    const struct page *record = page_record(page);

    return likely(record->run_pages != 0) ? large_plain_bytes(page)
                                          : vast_bytes(page) - page_spare_bytes(record);
}

/* Clearing costs less than giving back and touching again, up to where the caller may never touch
 * most of it: a sparse table of gigabytes must not become resident because its pages were used
 * before. In a hardened process, which clears what nobody asked to be zero, that is sooner. */
static size_t cleared_bytes_max(void)
{
    return likely(!hardening.is_on) ? CLEAR_BYTES_MAX : WIPED_RUN_BYTES_MAX;
}

void *large_clear(char *block, size_t bytes)
{
    if (!OS_PURGE_CLOSES && bytes >= cleared_bytes_max()
        && os_purge((struct os_range){ block, bytes }))
        return block;
    return __builtin_memset(block, 0, bytes);
}

void large_clear_part(uint32_t page, char *begin, char *end)
{
    char *first_page = (char *)round_up((uintptr_t)begin, page_bytes());
    char *last_page = (char *)round_down((uintptr_t)end, page_bytes());

    if (begin >= end) return;
    /* The program's memory may not be what a purge makes zero. */
    if ((size_t)(end - begin) < cleared_bytes_max() || page_is_hooked(page)) {
        __builtin_memset(begin, 0, (size_t)(end - begin));
        return;
    }
    __builtin_memset(begin, 0, (size_t)(first_page - begin));
    (void)large_clear(first_page, (size_t)(last_page - first_page));
    __builtin_memset(last_page, 0, (size_t)(end - last_page));
}

void large_clear_from(uint32_t page, char *begin)
{
    struct os_range range = page_range(page, page_record(page)->run_pages);

    large_clear_part(page, begin, range.base + range.bytes);
}

/* Of what is no hooks': whatever is given back, there is no room for so many pages. */
static bool is_hopeless(size_t pages)
{
    return pages > space.page_count_max || pages << space.page_shift > limits_hard();
}

/* The region would grow, or every request is to look at limits. */
static COLD void look_before_lease(size_t pages, bool grows)
{
    if (grows && decay_reclaim()) thread_flush();
    if (decay_limits_are_due(pages << space.page_shift)) shortage_look(pages << space.page_shift);
}

/* A mapping of its own. NULL: no memory. Limits are counted by the size of the region, which such a
 * block is not part of: they are looked at each time. */
static NOINLINE void *take_vast(const struct alloc_request *request)
{
    size_t pages = request_pages(request);
    void *block;

    if (!request->looked && decay_space_has(RELAXED_LOAD(decay_care_at_bytes)))
        look_before_lease(pages, false);
    block = vast_take(pages << space.page_shift, request_align_pages(request) << space.page_shift);
    if (block != NULL && !request->looked) shortage_look(0);
    return block;
}

/* Which page heap serves a block. Of the longer ones all come from the first: to touch such pages
 * anew costs more than to wait for those that another thread gave back. */
INLINE struct page_heap *page_heap_for_run(size_t pages)
{
    return likely(pages <= LARGE_CACHE_PAGES_MAX) ? cache_page_heap() : page_heap;
}

INLINE void look_when_due(const struct page_heap *heap, size_t pages)
{
    size_t look_at_bytes = RELAXED_LOAD(decay_care_at_bytes); /* 0, LOOK_AT_LEASES: always */

    if (unlikely(decay_space_has(look_at_bytes))) {
        bool grows = run_lease_would_grow(heap, pages);

        if (unlikely(grows | (look_at_bytes <= LOOK_AT_LEASES))) look_before_lease(pages, grows);
    }
}

struct arena *large_owner(const struct alloc_request *request)
{
    const struct cache *cache = thread_front()->cache;

    if (unlikely(request->arena != NULL)) return arena_if_counts_large(request->arena);
    return likely(cache != NULL) ? cache_large_arena(cache) : NULL;
}

/* Of an arena that knows its large blocks. */
static NOINLINE void *lease_owned(struct arena *owner, const struct alloc_request *request)
{
    size_t pages = request_pages(request), align_pages = request_align_pages(request);
    size_t bytes = pages << space.page_shift;
    struct attempts attempts = { 0, request->unhelped };
    bool is_hooked = RELAXED_LOAD(owner->extents) != NULL, may_try_again;
    struct run run;

    if (!is_hooked && !request->looked) look_when_due(owner->page_heap, pages);
    if (pages > space.page_count_max || align_pages > space.page_count_max) return NULL;
    may_try_again = is_hooked || !is_hopeless(pages);
    do run = manual_lease(owner, pages, align_pages);
    while (run.page == 0 && may_try_again
           && thread_may_try_again(owner, pages, align_pages, &attempts));
    if (run.page == 0) return NULL;
    /* The program's memory may not be what a purge makes zero. */
    if (request->zero && owner->extents != NULL) __builtin_memset(page_address(run.page), 0, bytes);
    else if (request->zero && !run.zero) large_clear(page_address(run.page), bytes);
    return page_address(run.page);
}

/* Of no arena. The kernel may refuse a mapping where the address space has room, under a limit of
 * address space, and the address space may have no numbers where the kernel has memory. */
static void *lease_shared(const struct alloc_request *request, size_t pages)
{
    size_t align_pages = request_align_pages(request);
    size_t bytes = pages << space.page_shift;
    bool is_vast = vast_is_better(bytes, request->align);
    struct page_heap *heap = page_heap_for_run(pages);
    struct run run;

    if (unlikely(is_vast)) {
        void *block = take_vast(request);
        if (block != NULL) return block;
    }
    if (!request->looked) look_when_due(heap, pages);
    run = run_lease_for(pages, align_pages, purpose_of(heap, PAGE_LARGE));
    if (unlikely(run.page == 0) && !request->unhelped && !is_hopeless(pages)) {
        thread_flush();
        decay_before_refusal(pages);
        run = run_lease_for(pages, align_pages, purpose_of(heap, PAGE_LARGE));
    }
    if (likely(run.page != 0)) {
        if (request->zero && !run.zero) large_clear(page_address(run.page), bytes);
        return page_address(run.page);
    }
    return !is_vast && vast_is_refuge(bytes) ? take_vast(request) : NULL;
}

/* Which line of its first page a block of so many bytes begins with. What pages can be moved of
 * begins with the page. */
INLINE unsigned first_line(uint32_t page, size_t size)
{
    if (size >= REMAP_BYTES_MIN || unlikely(!option_is_set(OPTION_CACHE_OBLIVIOUS))) return 0;
    return page / STAGGER_PAGES * 0x9e3779b1u >> 29; /* 3 bits */
}

INLINE void *begin_at_line(struct cache *cache, char *run, uint32_t page, size_t size, size_t align)
{
    unsigned line = align <= LINE_BYTES ? first_line(page, size) : 0;

    page_mark_staggered(page_record(page), line);
    large_cache_count_staggered(cache, 1);
    return run + line * LINE_BYTES;
}

static COLD NOINLINE void *begin_beyond_first(struct cache *cache, char *run, size_t size,
                                              size_t align)
{
    return begin_at_line(cache, run, page_at_beyond_first(run), size, align);
}

/* Jumped to. */
static NOINLINE void *begin_staggered(struct cache *cache, char *run, size_t size, size_t align)
{
    uint32_t page = page_in_first(run);

    return likely(page != 0) ? begin_at_line(cache, run, page, size, align)
                             : begin_beyond_first(cache, run, size, align);
}

/* Is the block staggered that takes so many pages? As large_spare tells. */
INLINE bool leaves_spare(size_t size, size_t pages)
{
    return (pages << space.page_shift) - size >= PAGE_STAGGERED;
}

/* The block of a run of so many pages that no arena owns. */
INLINE void *begin_block(struct cache *cache, char *run, size_t pages, size_t size, size_t align)
{
    return likely(!leaves_spare(size, pages)) ? run : begin_staggered(cache, run, size, align);
}

static NOINLINE void *begin_for(struct cache *cache, char *run, const struct alloc_request *request)
{
    return begin_block(cache, run, request_pages(request), request->size, request->align);
}

/* That of one which an arena owns, and counts. */
static COLD void *begin_owned(char *run, size_t size)
{
    if (run != NULL && large_spare(size, page_bytes()) != 0)
        manual_set_staggered(page_at(run), true);
    return run;
}

void *large_lease_once(const struct alloc_request *request)
{
    struct arena *owner = large_owner(request);
    void *run;

    if (unlikely(owner != NULL)) return begin_owned(lease_owned(owner, request), request->size);
    run = lease_shared(request, request_pages(request));
    if (unlikely(run == NULL)) return NULL;
    return begin_for(thread_word()->cache, run, request);
}

/* The thread keeps no run of this length. */
static NOINLINE void *lease_anew(const struct alloc_request *request, size_t pages)
{
    void *block;

    if (large_is_too_long(request->size, request->align)) return NULL;
    block = lease_shared(request, pages);
    if (unlikely(block == NULL)) return shortage_serve(request);
    return begin_for(thread_word()->cache, block, request);
}

/* NULL: the thread keeps no run of this length, or only begins to keep some. */
static NOINLINE void *lease_kept(struct cache *cache, const struct alloc_request *request,
                                 size_t pages)
{
    size_t size = request->size;
    void *block = NULL, *run;

    if (unlikely(cache->large_cache == NULL)) {
        large_cache_begin_soon(cache);
        return NULL;
    }
    if (likely(request->align <= LINE_BYTES))
        block = large_cache_take(cache->large_cache, pages, leaves_spare(size, pages));
    run = block != NULL ? (void *)round_down((uintptr_t)block, page_bytes())
                        : large_cache_take_run(cache, pages, leaves_spare(size, pages));
    if (run != NULL && request->zero) large_clear(run, pages << space.page_shift);
    return block != NULL || run == NULL ? block : begin_for(cache, run, request);
}

/* What is filled is not kept. */
static NOINLINE void *lease_filled(const struct alloc_request *request)
{
    struct alloc_request clear = *request;
    void *block;

    if (large_is_too_long(request->size, request->align)) return NULL;
    clear.zero |= fill_clears();
    block = large_lease_once(&clear);
    if (block == NULL && !clear.unhelped && arena_if_counts_large(clear.arena) == NULL)
        block = shortage_serve(&clear);
    return clear.zero || block == NULL ? block : fill_taken(block, large_bytes(page_at(block)));
}

void *large_lease_unhelped(const struct alloc_request *request)
{
    struct alloc_request unhelped = *request;

    unhelped.unhelped = true;
    return lease_filled(&unhelped);
}

/* What a thread keeps is aligned to pages. Near a limit each request is to come by where that is
 * looked at. */
INLINE bool may_be_kept(const struct alloc_request *request, size_t pages)
{
    return pages <= LARGE_CACHE_PAGES_MAX && likely(request->align <= page_bytes())
        && likely(RELAXED_LOAD(decay_care_at_bytes) != 0) && likely(!request->uncached);
}

/* C4: else the thread is bound to an arena which owns its large blocks, or holds none. A size that
 * is too large has no pages here when their number overflows, and so none that are kept. */
void *large_lease(const struct alloc_request *request)
{
    struct cache *cache = thread_word()->cache;
    size_t pages = request_pages(request);
    void *block;

    if (unlikely(cache == NULL) || unlikely(!cache->front.keeps_runs)
        || unlikely(arena_if_counts_large(request->arena) != NULL))
        return lease_filled(request);
    if (!may_be_kept(request, pages)) return lease_anew(request, pages);
    block = lease_kept(cache, request, pages);
    return likely(block != NULL) ? block : lease_anew(request, pages);
}

/* The thread keeps no run of this length. */
static NOINLINE void *malloc_run(struct cache *cache, size_t size, size_t pages)
{
    struct page_heap *heap;
    struct run run;

    if (AUDITED) heap_audit();
    if (unlikely(cache->large_cache == NULL)) large_cache_begin_soon(cache);
    if (unlikely(vast_is_better(size, 1))) return alloc_here(size, 1, false);
    heap = page_heap_for_run(pages);
    look_when_due(heap, pages);
    run = run_lease_for(pages, 1, purpose_of(heap, PAGE_LARGE));
    return likely(run.page != 0) ? begin_block(cache, page_address(run.page), pages, size, 1)
                                 : alloc_here(size, 1, false);
}

/* Of this kind there is none, or not in the first region. */
static NOINLINE void *malloc_other_kind(struct cache *cache, size_t size, size_t pages)
{
    char *run = large_cache_take_run(cache, pages, leaves_spare(size, pages));

    return run != NULL ? begin_block(cache, run, pages, size, 1) : malloc_run(cache, size, pages);
}

/* The usual way of a thread that nobody counts: a run that it kept, else one of the page heap. Near
 * a limit each request is to come by where that is looked at. A size that is too large has no pages
 * here when their number overflows, and so none that are kept. */
void *malloc_large(size_t size)
{
    struct cache *cache = (struct cache *)thread_word(); /* F3 */
    size_t pages;
    void *block;

    if (unlikely(!cache->front.keeps_runs) || unlikely(RELAXED_LOAD(decay_care_at_bytes) == 0))
        return alloc_here(size, 1, false);
    pages = pages_for(size);
    if (unlikely(pages > LARGE_CACHE_PAGES_MAX) || unlikely(cache->large_cache == NULL))
        return malloc_run(cache, size, pages);
    block = large_cache_take(cache->large_cache, pages, leaves_spare(size, pages));
    return likely(block != NULL) ? block : malloc_other_kind(cache, size, pages);
}

void large_put(uint32_t page)
{
    run_return(page);
    if (unlikely(decay_after_return())) thread_flush();
}

/* It goes back to the arena that owns it. */
static void give_owned(uint32_t page)
{
    manual_return(page);
    if (unlikely(decay_after_return())) thread_flush();
}

void large_drop_contents(const void *block, uint32_t page)
{
    if (page_record(page)->state == PAGE_VAST) return;
    if (unlikely(hardening.is_on)) large_clear_from(page, page_address(page));
    else if (unlikely(fill_is_wanted())) fill_given((void *)(uintptr_t)block, large_bytes(page));
}

void large_give(void *block, uint32_t page)
{
    if (unlikely(page_is_manual(page))) {
        give_owned(page);
        return;
    }
    (void)large_end_stagger(thread_word()->cache, page_record(page), block);
    if (unlikely(page_record(page)->state == PAGE_VAST)) {
        vast_put(page);
    } else {
        run_take_fence_away(page);
        large_put(page);
    }
}
