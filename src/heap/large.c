/* large.c - blocks that are runs of pages of their own, or mappings of their own when they are
 * vast.
 *
 * A large block is as long as its pages: usable bytes are known from the page map, and growing or
 * shrinking moves the boundary. Its bytes in the class map stay 0.
 * SPDX-License-Identifier: MIT
 */
#include "large.h"

#include "doors.h"
#include "heap.h"
#include "sampled.h"
#include "shortage.h"
#include "slow.h"

#include "../arenas/decay.h"
#include "../arenas/manual.h"
#include "../cache/large_cache.h"
#include "../cache/thread.h"
#include "../guard/fill.h"
#include "../page_heap/run_fence.h"
#include "../policy/limits.h"
#include "vast.h"

/* The record of a vast block counts no pages. */
size_t large_bytes(uint32_t page)
{
    size_t pages = page_record(page)->run_pages;

    return likely(pages != 0) ? pages << space.page_shift : vast_bytes(page);
}

static bool is_too_large(size_t size, size_t align)
{
    return (size | align) > space.block_bytes_max;
}

/* Clearing costs less than giving back and touching again, up to where the caller may never touch
 * most of it: a sparse table of gigabytes must not become resident because its pages were used
 * before. */
void *large_clear(char *block, size_t bytes)
{
    if (!OS_PURGE_CLOSES && bytes >= CLEAR_BYTES_MAX && os_purge((struct os_range){ block, bytes }))
        return block;
    return __builtin_memset(block, 0, bytes);
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
    if (decay_should_look(pages << space.page_shift)) shortage_look(pages << space.page_shift);
}

/* A mapping of its own. NULL: no memory. Limits are counted by the size of the region, which such a
 * block is not part of: they are looked at each time. */
static NOINLINE void *take_vast(size_t pages, size_t align_pages)
{
    void *block;

    if (decay_space_has(RELAXED_LOAD(decay_look_at_bytes))) look_before_lease(pages, false);
    block = vast_take(pages << space.page_shift, align_pages << space.page_shift);
    if (block != NULL) shortage_look(0);
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
    size_t look_at_bytes = RELAXED_LOAD(decay_look_at_bytes); /* 0: always */

    if (unlikely(decay_space_has(look_at_bytes))) {
        bool grows = run_lease_would_grow(heap, pages);

        if (unlikely(grows | (look_at_bytes == 0))) look_before_lease(pages, grows);
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
    struct attempts attempts = { 0, false };
    bool is_hooked = RELAXED_LOAD(owner->extents) != NULL, may_try_again;
    struct run run;

    if (!is_hooked) look_when_due(owner->page_heap, pages);
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
        void *block = take_vast(pages, align_pages);
        if (block != NULL) return block;
    }
    look_when_due(heap, pages);
    run = run_lease_for(pages, align_pages, purpose_of(heap, PAGE_LARGE));
    if (unlikely(run.page == 0) && !is_hopeless(pages)) {
        decay_before_refusal(pages);
        run = run_lease_for(pages, align_pages, purpose_of(heap, PAGE_LARGE));
    }
    if (likely(run.page != 0)) {
        if (request->zero && !run.zero) large_clear(page_address(run.page), bytes);
        return page_address(run.page);
    }
    return !is_vast && vast_is_refuge(bytes) ? take_vast(pages, align_pages) : NULL;
}

void *large_lease_once(const struct alloc_request *request)
{
    struct arena *owner = large_owner(request);

    return unlikely(owner != NULL) ? lease_owned(owner, request)
                                   : lease_shared(request, request_pages(request));
}

/* None was kept. */
static NOINLINE void *lease_anew(const struct alloc_request *request, size_t pages)
{
    void *block;

    if (is_too_large(request->size, request->align)) return NULL;
    block = lease_shared(request, pages);
    return likely(block != NULL) ? block : shortage_serve(request);
}

/* The last one of its length is not there. */
static NOINLINE void *lease_below(const struct alloc_request *request, size_t pages)
{
    struct cache *cache = thread_front()->cache;
    void *block = NULL;

    if (likely(cache->large_cache != NULL))
        block = large_cache_take_below(cache->large_cache, pages);
    else large_cache_begin_soon(cache);
    if (block == NULL) return lease_anew(request, pages);
    return likely(!request->zero) ? block : large_clear(block, pages << space.page_shift);
}

/* What is filled is not kept. */
static NOINLINE void *lease_filled(const struct alloc_request *request, bool with_help)
{
    struct alloc_request clear = *request;
    void *block;

    if (is_too_large(request->size, request->align)) return NULL;
    clear.zero |= fill_clears();
    block = large_lease_once(&clear);
    if (block == NULL && with_help && arena_if_counts_large(clear.arena) == NULL)
        block = shortage_serve(&clear);
    return clear.zero || block == NULL ? block : fill_taken(block, large_bytes(page_at(block)));
}

void *large_lease_unhelped(const struct alloc_request *request)
{
    return lease_filled(request, false);
}

/* What a thread keeps is aligned to pages. Near a limit each request is to come by where that is
 * looked at. */
INLINE bool may_be_kept(const struct alloc_request *request, size_t pages)
{
    return pages <= LARGE_CACHE_PAGES_MAX && likely(request->align <= page_bytes())
        && likely(RELAXED_LOAD(decay_look_at_bytes) != 0) && likely(!request->uncached);
}

/* C4: else the thread is bound to an arena which owns its large blocks, or holds none. A size that
 * is too large has no pages here when their number overflows, and so none that are kept. */
void *large_lease(const struct alloc_request *request)
{
    struct cache *cache = thread_front()->cache;
    size_t pages = request_pages(request);
    void *block;

    if (unlikely(cache == NULL) || unlikely(!cache->front.keeps_runs)
        || unlikely(arena_if_counts_large(request->arena) != NULL))
        return lease_filled(request, true);
    if (!may_be_kept(request, pages)) return lease_anew(request, pages);
    block = large_cache_take(cache, pages);
    if (unlikely(block == NULL)) return lease_below(request, pages);
    return likely(!request->zero) ? block : large_clear(block, pages << space.page_shift);
}

/* None was kept. */
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
    return likely(run.page != 0) ? page_address(run.page) : alloc_here(size, 1, false);
}

/* The last one of its length is not there. */
static NOINLINE void *malloc_below(struct cache *cache, size_t size, size_t pages)
{
    void *block = large_cache_take_below(cache->large_cache, pages);

    return block != NULL ? block : malloc_run(cache, size, pages);
}

/* The usual way of a thread that nobody counts: a run that it kept, else one of the page heap. Near
 * a limit each request is to come by where that is looked at. A size that is too large has no pages
 * here when their number overflows, and so none that are kept. */
void *malloc_large(size_t size)
{
    struct cache *cache = (struct cache *)thread_front(); /* F3 */
    size_t pages;
    void *block;

    if (unlikely(!cache->front.keeps_runs) || unlikely(RELAXED_LOAD(decay_look_at_bytes) == 0))
        return alloc_here(size, 1, false);
    pages = pages_for(size);
    if (unlikely(cache->large_cache == NULL)) return malloc_run(cache, size, pages);
    block = large_cache_take(cache, pages);
    if (likely(block != NULL)) return block;
    return pages <= LARGE_CACHE_PAGES_MAX ? malloc_below(cache, size, pages)
                                          : malloc_run(cache, size, pages);
}

void large_put(uint32_t page)
{
    run_return(page);
    if (unlikely(decay_after_return())) thread_flush();
}

/* Each piece that is moved stays a mapping of its own, so moves are rationed by the size of the
 * heap. */
READS_UNLOCKED bool large_may_move(size_t bytes)
{
    static size_t moves; /* atomic */

    if (bytes < REMAP_BYTES_MIN) return false;
    if (RELAXED_LOAD(moves) >= REMAP_COUNT_MIN + space.open_bytes / REMAP_SHARE_BYTES) return false;
    /* Not under a limit of address space: the kernel takes the destination away before it finds
     * that it may not map anything there. */
    if (os_address_space_limit() != SIZE_MAX) return false;
    (void)__atomic_fetch_add(&moves, 1, __ATOMIC_RELAXED);
    return true;
}

/* What a block gained is filled like a new one; but the gain of a vast one reads as zero, and is
 * not to become resident. */
static void fill_gained(uint32_t page, size_t old_bytes)
{
    size_t bytes = large_bytes(page);

    if (bytes <= old_bytes || (page_record(page)->state == PAGE_VAST && fill_clears())) return;
    (void)fill_taken(page_address(page) + old_bytes, bytes - old_bytes);
}

/* To so many bytes, whole pages, where it is, or where the kernel moves a vast one. False: there is
 * no room; nothing happened. */
static bool resize_here(uint32_t page, size_t bytes, bool may_move)
{
    size_t old_bytes = large_bytes(page), pages = bytes >> space.page_shift;
    bool done;

    if (bytes == old_bytes) return true; /* and what fence there is stays */
    run_take_fence_away(page);
    if (unlikely(page_record(page)->state == PAGE_VAST)) done = vast_resize(page, bytes, may_move);
    else if (unlikely(page_is_manual(page))) done = manual_resize(page, pages);
    else done = resize_run(page_heap_of(page), page, pages);
    if (!done) return false;
    fill_gained(page, old_bytes);
    if (bytes < old_bytes && unlikely(decay_after_return())) thread_flush();
    return true;
}

/* A run that becomes vast takes its pages along, in one mapping. NULL: it cannot. */
static void *move_to_vast(uint32_t page, size_t size)
{
    size_t old_bytes = large_bytes(page);
    void *moved;

    if (page_record(page)->state != PAGE_LARGE || old_bytes < REMAP_BYTES_MIN) return NULL;
    moved = vast_take_from(page, round_up(size, page_bytes()));
    if (moved == NULL) return NULL;
    fill_gained(page_at(moved), old_bytes);
    if (unlikely(decay_after_return())) thread_flush();
    return moved;
}

/* Pages move rather than bytes when there are enough of them, and neither place is an arena's;
 * those of a vast one always, each of the mappings that it has become. Bytes that are copied stay
 * behind, too, and are filled as those of a freed block. */
static void move_contents(void *moved, void *block, uint32_t page, size_t size)
{
    size_t bytes = large_bytes(page);
    struct os_range from = { block, bytes }, to = { moved, bytes };
    bool is_vast = page_record(page)->state == PAGE_VAST;

    if (unlikely(page_is_manual(page)) || unlikely(page_is_manual(page_at(moved))))
        copy_contents(moved, block, bytes, size);
    else if ((is_vast || large_may_move(bytes)) && os_move(from, to)) return;
    else __builtin_memcpy(moved, block, bytes);
    if (unlikely(fill_is_wanted()) && !is_vast) fill_given(block, bytes);
}

/* Only to something larger, but for blocks that cannot be trimmed. The new place was filled when it
 * was leased. */
static void *move_large(void *block, uint32_t page, size_t size)
{
    struct alloc_request request = { .size = size, .align = 1 };
    void *moved = NULL;

    if (unlikely(vast_is_better(size, 1))) moved = move_to_vast(page, size);
    if (moved != NULL) return moved;
    moved = large_lease(&request);
    if (moved == NULL) return NULL;
    move_contents(moved, block, page, size);
    if (unlikely(page_record(page)->state == PAGE_VAST)) vast_put(page);
    else if (unlikely(page_is_manual(page))) manual_put(page);
    else large_put(page);
    return moved;
}

void *large_resize(void *block, uint32_t page, size_t size)
{
    size_t bytes = round_up(size, page_bytes());
    void *moved;

    if (is_too_large(size, 1)) return NULL;
    if (resize_here(page, bytes, true)) return page_address(page);
    moved = move_large(block, page, size);
    if (likely(moved != NULL)) return moved;
    /* Two of them did not fit below a limit; what was given back meanwhile may let one grow. */
    return bytes < large_bytes(page) || resize_here(page, bytes, true) ? page_address(page) : NULL;
}

size_t large_resize_in_place(uint32_t page, size_t least, size_t most)
{
    size_t limit = space.block_bytes_max;

    /* A sized free takes a size of up to SMALL_BYTES_MAX for that of a class. */
    if (most <= SMALL_BYTES_MAX || least > limit) return large_bytes(page);
    least = round_up(least, page_bytes());
    most = round_up(min_size(most, limit), page_bytes());
    if (!resize_here(page, most, false) && least > large_bytes(page))
        (void)resize_here(page, least, false);
    return large_bytes(page);
}
