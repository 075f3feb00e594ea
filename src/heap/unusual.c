/* unusual.c - the ways of a thread whose slot points at no plain cache.
 *
 * It is before its first call, and attaches; or past its end, and is served block by block; or it is watched,
 * and its calls are counted and sampled on their way to the cache behind, or past it when it shall hold no blocks.
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include "../guard/fill.h"

void *counted(void *block, size_t bytes)
{
    struct cache *front = thread_cache();

    if (block != NULL && cache_is_watch(front)) watch_count_take((struct watch *)front, bytes);
    return block;
}

void count_given(size_t bytes)
{
    struct cache *front = thread_cache();

    if (cache_is_watch(front)) watch_count_put((struct watch *)front, bytes);
}

/* W5 */
static COLD void *take_past_cache(struct watch *watch, unsigned class_index)
{
    void *block = cache_take_one(watch->behind, class_index);

    if (block != NULL) watch_count_take(watch, class_bytes[class_index]);
    return fill_taken(block, class_bytes[class_index]);
}

static void *take_small_for(struct cache *front, unsigned class_index, const void *frame)
{
    struct watch *watch;

    if (!cache_is_watch(front)) {
        front = heap_attach();
        if (front == NULL) return NULL;
        if (cache_is_gone(front))
            return fill_taken(stray_take(class_index), class_bytes[class_index]);
    }
    if (AUDITED) heap_audit();
    if (cache_is_plain(front)) {
        if (unlikely(class_index > front->class_max)) return cache_take_one(front, class_index);
        if (!cache_refill(front, class_index)) return NULL;
        return magazine_take(&front->magazine[class_index]);
    }
    watch = (struct watch *)front;
    if (unlikely(watch_block_is_due(watch, class_index))) {
        void *block = sampled_take(watch, NULL, class_bytes[class_index], frame);

        if (block != NULL) {
            watch_count_take(watch, class_bytes[class_index]);
            return block;
        }
    }
    if (likely(cache_may_hold(watch->behind, class_index))) return watch_take(watch, class_index);
    return take_past_cache(watch, class_index);
}

static void *take_large_for(size_t size, size_t align, bool zero, const void *frame)
{
    struct cache *front = heap_attach();
    struct watch *watch = (struct watch *)front;
    size_t bytes;
    void *block;

    if (front == NULL) return NULL;
    block = large_lease(size, align, zero);
    if (block == NULL || !cache_is_watch(front)) return block;
    bytes = max_size(pages_for(size), 1) << plain.page_shift;
    watch_count_take(watch, bytes);
    if (watch_large_is_due(watch, bytes)) sampled_begin(watch, block, frame);
    return block;
}

void *class_take_unusual(struct cache *front, unsigned class_index)
{
    void *block = take_small_for(front, class_index, FRAME_HERE());

    FRAME_LASTS();
    return block;
}

void *large_take_unusual(size_t size, size_t align, bool zero)
{
    void *block = take_large_for(size, align, zero, FRAME_HERE());

    FRAME_LASTS();
    return block;
}

void *take_unusual_for(const void *frame, size_t size, size_t align, bool zero)
{
    unsigned class_index =
        align == 1 && size <= SMALL_BYTES_MAX ? class_of_size(size) : class_of_aligned(size, align);
    struct cache *front = thread_cache();
    void *block;

    if (class_index == 0) {
        if (unlikely(RELAXED_LOAD(sampling_polls))) profile_poll();
        block = take_large_for(size, align, zero, frame);
        return likely(block != NULL) ? block : refuse_memory();
    }
    block = watch_hit(front, class_index);
    if (block == NULL) {
        if (unlikely(RELAXED_LOAD(sampling_polls))) profile_poll();
        block = take_small_for(front, class_index, frame);
    }
    if (unlikely(block == NULL))
        block = fill_taken(shortage_small(class_index), class_bytes[class_index]);
    if (unlikely(block == NULL)) return refuse_memory();
    if (zero) __builtin_memset(block, 0, class_bytes[class_index]);
    return CHECKED ? misuse_note_take(block) : block;
}

void *take_unusual(size_t size, size_t align, bool zero)
{
    void *block = take_unusual_for(FRAME_HERE(), size, align, zero);

    FRAME_LASTS();
    return block;
}

static void count_uncached(struct watch *watch, void *block)
{
    uint32_t page = 0;
    enum pointer_kind kind = pointer_kind(block, &page);

    if (kind == POINTER_LARGE) watch_count_put(watch, large_bytes(page));
    if (kind == POINTER_SAMPLED) watch_count_put(watch, sampled_bytes(page));
    if (kind == POINTER_SMALL)
        watch_count_put(watch, class_bytes[class_of_place(page_record(page)->class_at)]);
}

static void free_watched(struct watch *watch, void *block)
{
    unsigned class_index = class_at(block);

    if (class_index == 0 || !cache_may_hold(watch->behind, class_index)) {
        count_uncached(watch, block); /* W2 */
        free_plainly(watch->large, block);
        return;
    }
    if (AUDITED) heap_audit();
    watch_put(watch, class_index, block);
}

static NOINLINE void free_unhit(struct cache *front, void *block)
{
    if (!cache_is_watch(front)) {
        front = heap_attach();
        if (front == NULL || cache_is_gone(front)) {
            free_plainly(NULL, block);
            return;
        }
        if (cache_is_plain(front)) {
            free_plainly(front, block);
            return;
        }
    }
    free_watched((struct watch *)front, block);
}

void free_unusual(struct cache *front, void *block)
{
    if (likely(cache_is_metered(front))) free_plainly(front->behind, block);
    else if (unlikely(!watch_put_hit(front, class_at(block), block))) free_unhit(front, block);
}

/* A large block has another size now, by the same chance a sampled one as if it were new. */
static void count_resized(void *block, size_t old_bytes, const void *frame)
{
    struct cache *front = thread_cache();
    struct watch *watch = (struct watch *)front;
    size_t bytes = large_bytes(page_at(block));

    if (!cache_is_watch(front) || old_bytes == bytes) return;
    watch_count_put(watch, old_bytes);
    watch_count_take(watch, bytes); /* after it: in place the two are never held at once */
    if (sampled_number(page_at(block)) == 0 && watch_large_is_due(watch, bytes))
        sampled_begin(watch, block, frame);
}

void *large_resize_watched(void *block, size_t size, const void *frame)
{
    uint32_t page = page_at(block), number = sampled_pause(page);
    size_t old_bytes = large_bytes(page);
    void *resized;

    if (unlikely(RELAXED_LOAD(sampling_polls))) profile_poll();
    resized = large_resize(block, page, size);
    sampled_go_on(block, number, resized != NULL && large_bytes(page_at(resized)) != old_bytes);
    if (resized != NULL) count_resized(resized, old_bytes, frame);
    return resized;
}

size_t large_resize_in_place_watched(void *block, size_t least, size_t most, const void *frame)
{
    uint32_t page = page_at(block), number = sampled_pause(page);
    size_t old_bytes = large_bytes(page);
    size_t bytes = large_resize_in_place(page, least, most);

    sampled_go_on(block, number, bytes != old_bytes);
    count_resized(block, old_bytes, frame);
    return bytes;
}
