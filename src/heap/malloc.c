/* malloc.c - the door for new blocks, and calloc beside it.
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include "../base/options.h"
#include "../guard/fill.h"
#include "../arenas/decay.h"

#include <errno.h>

void *refuse_memory(void)
{
    if (option_is_set(OPTION_XMALLOC)) fatal("xmalloc:true, and there is no memory");
    errno = ENOMEM;
    return NULL;
}

PUBLIC void *prairie_malloc(size_t size)
{
    struct cache *cache = thread_cache();
    void *block;

    if (unlikely(size > TABLE_BYTES_MAX)) return malloc_beyond_table(size);

    block = malloc_hit(cache, size);
    if (unlikely(block == NULL)) return malloc_miss(size, cache, offset_of_size[size]);
    return block;
}

/* For a sampled thread this is the usual way. */
void *malloc_miss(size_t size, struct cache *cache, size_t offset)
{
    void *block = sampled_front_take(cache, offset);

    if (unlikely(block == NULL)) return malloc_refill(size, cache);
    return CHECKED ? misuse_note_take(block) : block;
}

/* The magazine was empty: get the thread a cache, or the cache some blocks. NULL: no memory. */
static void *refill_and_take(struct cache *cache, unsigned class_index)
{
    if (unlikely(!cache_is_plain(cache))) return class_take_unusual(cache, class_index);
    if (unlikely(class_index > cache->class_max)) return cache_take_one(cache, class_index);
    if (AUDITED) heap_audit();
    if (!cache_refill(cache, class_index)) return NULL;
    return magazine_take(&cache->magazine[class_index]);
}

static void *class_refill(struct cache *cache, unsigned class_index)
{
    void *block;

    if (unlikely(decay_should_look(0))) shortage_look(class_bytes[class_index]);
    block = refill_and_take(cache, class_index);
    return likely(block != NULL) ? block : shortage_small(class_index);
}

void *class_take_once(unsigned class_index)
{
    struct cache *cache = thread_cache();
    void *block = magazine_take(&cache->magazine[class_index]);

    return block != NULL ? block : refill_and_take(cache, class_index);
}

void *class_take(unsigned class_index)
{
    struct cache *cache = thread_cache();
    void *block = class_hit(cache, class_index);

    if (unlikely(block == NULL)) block = class_refill(cache, class_index);
    return CHECKED ? misuse_note_take(block) : block;
}

void *malloc_refill(size_t size, struct cache *cache)
{
    void *block;

    if (unlikely(!cache_is_plain(cache))) return take_unusual(size, 1, false);
    block = class_refill(cache, class_of_size(size));

    if (unlikely(block == NULL)) return refuse_memory();
    return CHECKED ? misuse_note_take(block) : block;
}

static NOINLINE void *malloc_large(size_t size)
{
    void *block;

    if (unlikely(!cache_is_plain(thread_cache()))) return take_unusual(size, 1, false);
    block = large_lease(size, 1, false);
    return likely(block != NULL) ? block : refuse_memory();
}

void *malloc_beyond_table(size_t size)
{
    struct cache *cache;
    void *block;

    if (size > SMALL_BYTES_MAX) return malloc_large(size);
    cache = thread_cache();
    block = class_hit(cache, class_beyond_table(size));
    if (unlikely(block == NULL)) return malloc_refill(size, cache);
    return CHECKED ? misuse_note_take(block) : block;
}

static NOINLINE void *calloc_large(size_t bytes)
{
    void *block;

    if (unlikely(!cache_is_plain(thread_cache()))) return take_unusual(bytes, 1, true);
    block = large_lease(bytes, 1, true);
    return likely(block != NULL) ? block : refuse_memory();
}

COLD static void *calloc_refill(struct cache *cache, size_t bytes)
{
    void *block;

    if (unlikely(!cache_is_plain(cache))) return take_unusual(bytes, 1, true);
    block = malloc_refill(bytes, cache);
    if (unlikely(block == NULL)) return NULL;
    return __builtin_memset(block, 0, class_bytes[class_of_size(bytes)]);
}

/* As malloc_miss. */
static NOINLINE void *calloc_miss(struct cache *cache, size_t bytes)
{
    unsigned class_index = class_of_size(bytes);
    void *block = sampled_front_take(cache, offset_of_class(class_index));

    if (unlikely(block == NULL)) return calloc_refill(cache, bytes);
    if (CHECKED) (void)misuse_note_take(block);
    return __builtin_memset(block, 0, class_bytes[class_index]);
}

PUBLIC void *prairie_calloc(size_t count, size_t size)
{
    struct cache *cache = thread_cache();
    unsigned class_index;
    size_t bytes;
    void *block;

    if (unlikely(__builtin_mul_overflow(count, size, &bytes))) return refuse_memory();
    if (unlikely(bytes > SMALL_BYTES_MAX)) return calloc_large(bytes);
    class_index = class_of_size(bytes);
    block = magazine_take(&cache->magazine[class_index]);
    if (unlikely(block == NULL)) return calloc_miss(cache, bytes);
    if (CHECKED) (void)misuse_note_take(block);
    return __builtin_memset(block, 0, class_bytes[class_index]);
}
