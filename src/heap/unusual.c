/* unusual.c - the ways of a thread whose slot points at no plain cache.
 *
 * It is before its first call, and attaches; or past its end, and is served block by block; or it
 * is counted, and its calls are counted and sampled on their way to the cache behind, or past it
 * when it shall hold no blocks.
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include "../guard/fill.h"
#include "../view/profile.h"

void *counted(void *block, size_t bytes)
{
    struct cache *front = thread_cache();

    if (block != NULL && cache_is_counting(front))
        counting_add_taken((struct counting_front *)front, bytes);
    return block;
}

void count_given(size_t bytes)
{
    struct cache *front = thread_cache();

    if (cache_is_counting(front)) counting_add_given((struct counting_front *)front, bytes);
}

/* W5 */
static COLD void *take_past_cache(struct counting_front *counting, unsigned class_index)
{
    void *block = cache_take_one(counting->behind, class_index);

    if (block != NULL) counting_add_taken(counting, class_bytes[class_index]);
    return fill_taken(block, class_bytes[class_index]);
}

static void *take_small_for(struct cache *front, unsigned class_index, const void *frame)
{
    struct counting_front *counting;

    if (!cache_is_counting(front)) {
        front = heap_attach();
        if (front == NULL) return NULL;
        if (cache_is_gone(front))
            return fill_taken(uncached_thread_take(class_index), class_bytes[class_index]);
    }
    if (AUDITED) heap_audit();
    if (cache_is_plain(front)) {
        if (unlikely(class_index > front->class_max)) return cache_take_one(front, class_index);
        if (!cache_refill(front, class_index)) return NULL;
        return magazine_take(&front->magazine[class_index]);
    }
    counting = (struct counting_front *)front;
    if (unlikely(counting_block_is_due(counting, class_index))) {
        void *block = sampled_take(counting, NULL, class_bytes[class_index], frame);

        if (block != NULL) {
            counting_add_taken(counting, class_bytes[class_index]);
            return block;
        }
    }
    if (likely(cache_may_hold(counting->behind, class_index)))
        return counting_take(counting, class_index);
    return take_past_cache(counting, class_index);
}

static void *take_large_for(size_t size, size_t align, bool zero, const void *frame)
{
    struct cache *front = heap_attach();
    struct counting_front *counting = (struct counting_front *)front;
    size_t bytes;
    void *block;

    if (front == NULL) return NULL;
    block = large_lease(size, align, zero);
    if (block == NULL || !cache_is_counting(front)) return block;
    bytes = max_size(pages_for(size), 1) << space.page_shift;
    counting_add_taken(counting, bytes);
    if (counting_large_is_due(counting, bytes)) sampled_begin(counting, block, frame);
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
    block = counting_hit(front, class_index);
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

static void count_uncached(struct counting_front *counting, void *block)
{
    uint32_t page = 0;
    enum pointer_kind kind = pointer_kind(block, &page);

    if (kind == POINTER_LARGE) counting_add_given(counting, large_bytes(page));
    if (kind == POINTER_SAMPLED) counting_add_given(counting, sampled_bytes(page));
    if (kind == POINTER_SMALL)
        counting_add_given(counting, class_bytes[class_of_offset(page_record(page)->class_at)]);
}

static void free_counted(struct counting_front *counting, void *block)
{
    unsigned class_index = class_at(block);

    if (class_index == 0 || !cache_may_hold(counting->behind, class_index)) {
        count_uncached(counting, block); /* W2 */
        free_plainly(counting->large, block);
        return;
    }
    if (AUDITED) heap_audit();
    counting_put(counting, class_index, block);
}

static NOINLINE void free_unhit(struct cache *front, void *block)
{
    if (!cache_is_counting(front)) {
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
    free_counted((struct counting_front *)front, block);
}

void free_unusual(struct cache *front, void *block)
{
    if (likely(cache_is_sampled(front))) free_plainly(front->behind, block);
    else if (unlikely(!counting_put_hit(front, class_at(block), block))) free_unhit(front, block);
}

/* A large block has another size now, by the same chance a sampled one as if it were new. */
static void count_resized(void *block, size_t old_bytes, const void *frame)
{
    struct cache *front = thread_cache();
    struct counting_front *counting = (struct counting_front *)front;
    size_t bytes = large_bytes(page_at(block));

    if (!cache_is_counting(front) || old_bytes == bytes) return;
    counting_add_given(counting, old_bytes);
    counting_add_taken(counting, bytes); /* after it: in place the two are never held at once */
    if (sampled_number(page_at(block)) == 0 && counting_large_is_due(counting, bytes))
        sampled_begin(counting, block, frame);
}

void *large_resize_counted(void *block, size_t size, const void *frame)
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

size_t large_resize_in_place_counted(void *block, size_t least, size_t most, const void *frame)
{
    uint32_t page = page_at(block), number = sampled_pause(page);
    size_t old_bytes = large_bytes(page);
    size_t bytes = large_resize_in_place(page, least, most);

    sampled_go_on(block, number, bytes != old_bytes);
    count_resized(block, old_bytes, frame);
    return bytes;
}
