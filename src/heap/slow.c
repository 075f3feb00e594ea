/* slow.c - the one slow door: who the thread is, where the block is taken or given, who must see.
 * SPDX-License-Identifier: MIT
 */
#include "slow.h"

#include "doors.h"
#include "guarded_doors.h"
#include "hardened_large.h"
#include "heap.h"
#include "large.h"
#include "sampled.h"
#include "shortage.h"
#include "vast.h"
#include "zero_size.h"

#include "../arenas/decay.h"
#include "../arenas/manual.h"
#include "../base/options.h"
#include "../cache/explicit_cache.h"
#include "../cache/large_cache.h"
#include "../cache/quarantine.h"
#include "../guard/fill.h"
#include "../page_heap/run_fence.h"
#include "../profile/profile.h"

#include <errno.h>

void *refuse_memory(void)
{
    if (option_is_set(OPTION_XMALLOC)) fatal("xmalloc:true, and there is no memory");
    errno = ENOMEM;
    return NULL;
}

/* ---- taking ---- */

void *alloc_once(const struct alloc_request *request)
{
    struct cache *cache = thread_front()->cache;
    unsigned class_index = request->class_index;

    if (class_index == 0) return large_lease_once(request);
    if (unlikely(request->cache != NULL))
        return explicit_cache_take(request->cache, request->arena, class_index);
    if (unlikely(request->arena != NULL) || unlikely(request->uncached)
        || unlikely(!cache_may_hold(cache, class_index)))
        return cache_take_one(cache, request->arena, class_index);
    return likely(!hardening.is_on) ? cache_take(cache, class_index)
                                    : quarantine_take(cache, class_index);
}

/* What is filled was given past all caches, for else no cache holds any (guard/fill.h). */
static void *take_small(const struct alloc_request *request)
{
    size_t bytes = class_bytes[request->class_index];
    struct cache *cache = thread_front()->cache;
    void *block;

    if (unlikely(decay_limits_are_due(0)) && !request_is_placed(request) && !shortage_is_seen())
        shortage_look(bytes);
    if (guarded_is_due(cache)) {
        block = guarded_take_due(cache, request);
        if (block != NULL) return block;
    }
    block = alloc_once(request);
    if (unlikely(block == NULL) && !request_is_placed(request)) block = shortage_serve(request);
    return likely(!fill_is_wanted()) || request->zero ? block : fill_taken(block, bytes);
}

/* What passes the thread's cache by is sampled like a large block, by its bytes. */
static bool is_due(struct counting_front *counting, const struct alloc_request *request)
{
    if (unlikely(request_is_placed(request)) || unlikely(request->uncached))
        return counting_large_is_due(counting, class_bytes[request->class_index]);
    return counting_block_is_due(counting, request->class_index);
}

static void *sample_small(struct counting_front *counting, const struct alloc_request *request)
{
    struct arena *arena = request->arena;

    if (arena == NULL && request->cache != NULL) arena = explicit_cache_arena(request->cache);
    return sampled_take(counting, arena, class_bytes[request->class_index], request->frame);
}

/* Hooks and callbacks may change the kind of the thread's front while a block is taken. */
static struct counting_front *count_taken(void *block, size_t bytes)
{
    struct counting_front *counting = counting_of(thread_word());

    if (block == NULL || counting == NULL) return NULL;
    counting_add_taken(counting, bytes);
    return counting;
}

/* Who is told of a dump may switch the thread's cache off or on. */
static COLD struct counting_front *counting_after_poll(void)
{
    profile_poll();
    return counting_of(thread_word());
}

static void *take_small_seen(struct counting_front *counting, const struct alloc_request *request)
{
    void *block = NULL;

    if (unlikely(RELAXED_LOAD(sampling_polls))) counting = counting_after_poll();
    if (likely(counting != NULL) && unlikely(is_due(counting, request)))
        block = sample_small(counting, request);
    if (likely(block == NULL)) block = take_small(request);
    (void)count_taken(block, class_bytes[request->class_index]);
    return block;
}

/* Of size 0. Where there is no address for it, it has the bytes of the smallest block. */
static COLD void *take_nothing(const struct alloc_request *request)
{
    void *block = zero_size_take(request->align);
    struct alloc_request smallest = *request;

    if (block != NULL) return block;
    smallest.size = 1;
    smallest.class_index = class_of_request(1, request->align);
    return alloc_missed(&smallest);
}

INLINE void *take_large(const struct front *front, const struct alloc_request *request)
{
    size_t bytes = request_bytes(request);
    struct counting_front *counting;
    void *block;

    if (unlikely(request->size == 0)) return take_nothing(request);
    if (likely(!front_is_counting(front))) return large_lease(request);
    if (unlikely(RELAXED_LOAD(sampling_polls))) profile_poll();
    block = large_lease(request);
    counting = count_taken(block, bytes);
    if (counting != NULL && counting_large_is_due(counting, bytes))
        sampled_begin(counting, block, request->frame);
    return block;
}

INLINE void *take(const struct front *front, const struct alloc_request *request)
{
    if (request->class_index == 0) return take_large(front, request);
    return likely(!front_is_counting(front))
             ? take_small(request)
             : take_small_seen((struct counting_front *)front, request);
}

/* The block that was counted is a marked one: it has the bytes that were asked for. */
INLINE void count_marked(const struct alloc_request *request, const struct alloc_request *wider)
{
    struct counting_front *counting = counting_of(thread_word());

    if (counting != NULL && unlikely(counting->is_told))
        counting->allocated -= request_bytes(wider) - request->size;
}

/* What was sampled, or has a mapping of its own, has no mark. */
static NOINLINE void *take_hardened(struct front *front, const struct alloc_request *request)
{
    struct alloc_request wider = hardened_request(request);
    void *block = hardened_take_waiting(front, &wider);

    if (block == NULL) block = take(front, &wider);
    /* What waits counts as used. It has left before a small block is refused
     * (thread_may_try_again); a mapping is refused before that. */
    if (unlikely(block == NULL) && wider.class_index == 0 && front->cache != NULL
        && front->cache->front.quarantine != 0) {
        thread_flush();
        block = take(front, &wider);
    }
    if (unlikely(block == NULL)) return refuse_memory();
    if (wider.class_index != 0 && front->cache != NULL)
        hardened_look(front->cache, wider.class_index);
    if (hardened_begin(block, request)) count_marked(request, &wider);
    else if (wider.class_index != 0)
        __builtin_memset(block, 0, class_bytes[wider.class_index]); /* a sampled one may be stale */
    return likely(!fill_is_wanted()) || request->zero
             ? block
             : fill_taken(block, prairie_usable_size(block));
}

INLINE void *alloc_for(const struct front *front, const struct alloc_request *request)
{
    unsigned class_index = request->class_index;
    void *block = take(front, request);

    if (unlikely(block == NULL)) return refuse_memory();
    if (class_index == 0) return block;
    if (request->zero) __builtin_memset(block, 0, class_bytes[class_index]);
    return CHECKED ? misuse_note_take(block) : block;
}

/* The thread makes its first call, or is past its end, or shall hold no blocks, or is hardened. */
static NOINLINE void *alloc_unusual(const struct alloc_request *request)
{
    struct front *front = heap_attach();

    if (unlikely(front == NULL)) return refuse_memory();
    if (hardening.is_on && request->size != 0) return take_hardened(front, request);
    return alloc_for(front, request);
}

void *alloc_missed(const struct alloc_request *request)
{
    const struct front *front = thread_word();

    if (AUDITED) heap_audit();
    if (unlikely(front->kind < FRONT_COUNTED)) return alloc_unusual(request);
    return alloc_for(front, request);
}

/* The usual end of a counted thread's calls, of class 0 never. */
INLINE void *counted_hit(struct front *front, unsigned class_index, bool zero)
{
    struct counting_front *counting = (struct counting_front *)front;
    void *block;

    if (counting->sampler != NULL) return NULL;
    block = magazine_take(&front->cache->front.magazine[class_index]);
    if (unlikely(block == NULL)) return NULL;
    counting_add_taken(counting, class_bytes[class_index]);
    if (CHECKED) (void)misuse_note_take(block);
    return zero ? __builtin_memset(block, 0, class_bytes[class_index]) : block;
}

static NOINLINE void *alloc_counted(struct front *front, size_t size, size_t align, bool zero)
{
    void *block = counted_hit(front, class_of_request(size, align), zero);

    return likely(block != NULL) ? block : alloc_unready(size, align, zero);
}

/* All of them are jumped to, as alloc_here is. */
INLINE void *alloc_seen(struct front *front, size_t size, size_t align, bool zero)
{
    if (front->kind == FRONT_HARDENED) return hardened_malloc(front, size, align, zero);
    if (front->kind == FRONT_COUNTED) return alloc_counted(front, size, align, zero);
    return alloc_unready(size, align, zero);
}

void *alloc_here(size_t size, size_t align, bool zero)
{
    struct front *front = thread_word();
    void *block;

    if (front->kind <= FRONT_COUNTED) {
        block = alloc_seen(front, size, align, zero);
    } else {
        struct alloc_request request = {
            .size = size, .align = align, .class_index = class_of_request(size, align), .zero = zero
        };
        request.frame = FRAME_HERE(); /* last: an instruction less than with alloc_request */
        block = alloc_missed(&request);
        FRAME_LASTS();
    }
    return block;
}

void *alloc_unready(size_t size, size_t align, bool zero)
{
    void *block = alloc_from(FRAME_HERE(), size, align, zero);

    FRAME_LASTS();
    return block;
}

void *alloc_from(const void *frame, size_t size, size_t align, bool zero)
{
    unsigned class_index = class_of_request(size, align);
    void *block = class_hit(class_index);

    if (class_index == 0 && size != 0 && align == 1 && !zero && thread_word()->keeps_runs)
        return malloc_large(size);
    if (unlikely(block == NULL)) {
        struct alloc_request request = alloc_request(size, align, zero, frame);
        return alloc_missed(&request);
    }
    return zero ? __builtin_memset(block, 0, class_bytes[class_index]) : block;
}

/* ---- giving ---- */

void free_home(unsigned class_index, void *block)
{
    struct arena *home = manual_arena_of_page(page_record(page_at(block)));

    arenas_drain(class_index, &block, 1);
    arena_settle(home);
    if (unlikely(decay_after_return())) thread_flush();
}

static void give_small(struct cache *cache, unsigned class_index, void *block)
{
    if (unlikely(!cache_may_hold(cache, class_index))) {
        fill_given(block, class_bytes[class_index]);
        free_home(class_index, block);
    } else {
        cache_put(cache, class_index, block);
    }
}

/* Sampled or not. */
static void give_large(void *block, uint32_t page)
{
    sampled_end(page);
    large_drop_contents(block, page);
    large_give(block, page);
}

/* Every block that give_pages does not give back itself, and all large ones when there is no cache
 * or blocks are filled. Small blocks of manual arenas come here, and where there is no class map
 * all small ones. */
static NOINLINE void give_kind(struct cache *cache, void *block)
{
    uint32_t page;
    enum pointer_kind kind = pointer_kind(block, &page);
    const struct page *record = page_record(page);

    if (kind == POINTER_SMALL)
        give_small(manual_arena_of_page(record) == NULL ? cache : NULL,
                   class_of_offset(record->class_at), block);
    else if (pointer_bytes(kind, block, page) == 0) free_other(kind, block);
    else give_large(block, page);
}

static NOINLINE void give_other(struct cache *cache, void *block)
{
    if (unlikely(guarded_pool_has(block))) guarded_put(block);
    else give_kind(cache, block);
}

/* The thread does not keep the run of a block that is_plain_large, or in place of another one. */
static NOINLINE void give_run(struct cache *cache, void *block, uint32_t page)
{
    struct page *record = page_record(page);

    if (record->run_pages <= LARGE_CACHE_PAGES_MAX && cache->large_cache != NULL)
        page = large_cache_replace(cache, page, block);
    else (void)large_end_stagger(cache, record, block);
    if (page != 0) large_put(page);
}

INLINE void give_plain_large(struct cache *cache, void *block, uint32_t page)
{
    struct page *record = page_record(page);

    if (unlikely(record->run_pages > LARGE_CACHE_PAGES_MAX) || unlikely(cache->large_cache == NULL)
        || unlikely(!large_cache_put(cache->large_cache, record, block)))
        give_run(cache, block, page);
}

static NOINLINE void give_pages_beyond_first(struct cache *cache, void *block)
{
    uint32_t page = page_at_beyond_first(block);

    if (is_plain_large(block, page)) give_plain_large(cache, block, page);
    else give_other(cache, block);
}

/* Of no class in the class map; where blocks are filled, give_other is for all of them. */
static NOINLINE void give_pages(struct cache *cache, void *block)
{
    uint32_t page = page_in_first(block);

    if (likely(is_plain_large(block, page))) give_plain_large(cache, block, page);
    else give_pages_beyond_first(cache, block);
}

static void count_given(const void *block)
{
    struct counting_front *counting = counting_of(thread_word());
    uint32_t page = 0;
    enum pointer_kind kind;

    if (counting == NULL) return;
    kind = pointer_kind(block, &page);
    counting_add_given(counting, pointer_bytes(kind, block, page));
}

static void count_bytes_given(struct front *front, size_t bytes)
{
    struct counting_front *counting = counting_of(front);

    if (counting != NULL) counting_add_given(counting, bytes);
}

/* Small blocks from before the process was hardened go home: nobody is to have them again. */
COLD void free_unmarked(struct front *front, void *block)
{
    uint32_t page;
    enum pointer_kind kind = pointer_kind(block, &page);

    if (kind == POINTER_HARDENED) {
        count_bytes_given(front, hardened_large_size(page));
        hardened_free_large(front->cache, block, page);
        return;
    }
    count_bytes_given(front, pointer_bytes(kind, block, page));
    if (kind == POINTER_SMALL) free_home(class_of_offset(page_record(page)->class_at), block);
    else give_other(front->cache, block);
}

/* The thread's first call, or one after its end; or somebody counts. */
static NOINLINE void give_seen(void *block)
{
    struct front *front = heap_attach();
    struct cache *cache = front != NULL ? front->cache : NULL;
    unsigned class_index = class_at(block);

    if (unlikely(hardening.is_on)) {
        hardened_free_any(front != NULL ? front : GONE_FRONT, block);
        return;
    }
    count_given(block);
    if (likely(class_index != 0)) give_small(cache, class_index, block);
    else if (likely(cache != NULL) && likely(!fill_is_wanted())) give_pages(cache, block);
    else give_other(cache, block);
}

void free_missed(struct front *front, void *block)
{
    struct cache *cache = (struct cache *)front;
    unsigned class_index;

    if (block == NULL) return;
    if (AUDITED) heap_audit();
    if (unlikely(front->kind != FRONT_CACHE)) {
        if (front->kind < FRONT_COUNTED) {
            if (front->kind == FRONT_HARDENED) hardened_free(front, block);
            else give_seen(block);
            return;
        }
        class_index = class_at(block);
        if (front->kind == FRONT_COUNTED) {
            if (class_index == 0) {
                give_seen(block);
                return;
            }
            counting_add_given((struct counting_front *)front, class_bytes[class_index]);
        }
        cache = front->cache;
    } else {
        class_index = class_at(block);
    }
    if (likely(class_index != 0)) give_small(cache, class_index, block);
    else give_pages(cache, block);
}

static void free_placed_small(unsigned class_index, void *block, struct cache *cache)
{
    fill_given(block, class_bytes[class_index]);
    if (cache == NULL || hardening.is_on || !explicit_cache_put(cache, class_index, block))
        free_home(class_index, block);
}

/* Explicit caches keep small blocks only: for large ones the thread's is as good. A hardened
 * process caches no large ones. */
void free_placed(void *block, struct cache *cache)
{
    uint32_t page = 0;
    enum pointer_kind kind = block != NULL ? pointer_kind(block, &page) : POINTER_FOREIGN;
    bool is_uncached_large = kind == POINTER_LARGE && cache == NULL && !hardening.is_on;

    if (kind != POINTER_SMALL && !is_uncached_large) {
        prairie_free(block);
        return;
    }
    if (CHECKED) misuse_note_free(block);
    if (AUDITED) heap_audit();
    count_given(block);
    if (is_uncached_large) give_kind(NULL, block);
    else free_placed_small(class_of_offset(page_record(page)->class_at), block, cache);
}

/* ---- resizing ---- */

/* A large block has another size or place now, by the same chance a sampled one as if it were new.
 * Both were held at once if it moved, and never in place. */
static void count_resized(void *block, size_t old_bytes, bool moved, const void *frame)
{
    struct counting_front *counting = counting_of(thread_word());
    size_t bytes = large_bytes(page_at(block));

    if (counting == NULL || (old_bytes == bytes && !moved)) return;
    if (moved) counting_add_taken(counting, bytes);
    counting_add_given(counting, old_bytes);
    if (!moved) counting_add_taken(counting, bytes);
    if (sampled_number(page_at(block)) == 0 && counting_large_is_due(counting, bytes))
        sampled_begin(counting, block, frame);
}

void *resize_large(void *block, const struct alloc_request *request)
{
    uint32_t page = page_at(block), number = sampled_pause(page);
    size_t old_bytes = large_bytes(page);
    void *resized;
    bool moved;

    if (unlikely(RELAXED_LOAD(sampling_polls))) profile_poll();
    resized = large_resize(block, page, request);
    moved = resized != NULL && resized != block;
    sampled_go_on(block, number,
                  moved || (resized != NULL && large_bytes(page_at(resized)) != old_bytes));
    if (resized != NULL) count_resized(resized, old_bytes, moved, request->frame);
    return resized;
}

size_t resize_in_place(void *block, size_t least, size_t most, const void *frame)
{
    uint32_t page = page_at(block), number = sampled_pause(page);
    size_t old_bytes = large_bytes(page);
    size_t bytes = large_resize_in_place(page, least, most);

    sampled_go_on(block, number, bytes != old_bytes);
    count_resized(block, old_bytes, false, frame);
    return bytes;
}
