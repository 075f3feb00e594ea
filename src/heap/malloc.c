/* malloc.c - the door for new blocks, and calloc beside it.
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include "../base/options.h"
#include "../guard/fill.h"

#include <errno.h>

void *refuse_memory(void)
{
    if (option_is_set(OPTION_XMALLOC)) fatal("xmalloc:true, and there is no memory");
    errno = ENOMEM;
    return NULL;
}

unsigned cached_class_max = CLASS_COUNT - 1;

PUBLIC void *prairie_malloc(size_t size)
{
    struct cache *cache = thread_cache();
    void *block;

    if (unlikely(size > TABLE_BYTES_MAX)) return malloc_beyond_table(size);

    block = malloc_hit(cache, size);
    if (unlikely(block == NULL)) return malloc_refill(cache, size);
    return block;
}

/* The magazine was empty: get the thread a cache, or the cache some blocks. */
static void *class_refill(struct cache *cache, unsigned class_index)
{
    if (cache_is_constant(cache)) {
        cache = heap_attach();
        if (cache == NULL) return NULL;
        if (cache_is_gone(cache))
            return fill_taken(stray_take(class_index), class_bytes[class_index]);
    }
    if (unlikely(class_index > cached_class_max)) return stray_take(class_index);
    if (AUDITED) heap_audit();
    if (!cache_refill(cache, class_index)) return NULL;
    return magazine_take(&cache->magazine[class_index]);
}

void *class_take(unsigned class_index)
{
    struct cache *cache = thread_cache();
    void *block = magazine_take(&cache->magazine[class_index]);

    if (unlikely(block == NULL)) block = class_refill(cache, class_index);
    return CHECKED ? misuse_note_take(block) : block;
}

void *malloc_refill(struct cache *cache, size_t size)
{
    void *block = class_refill(cache, class_of_size(size));

    if (unlikely(block == NULL)) return refuse_memory();
    return CHECKED ? misuse_note_take(block) : block;
}

void *malloc_beyond_table(size_t size)
{
    void *block =
        size <= SMALL_BYTES_MAX ? class_take(class_beyond_table(size)) : large_take(size, 1, false);

    return likely(block != NULL) ? block : refuse_memory();
}

PUBLIC void *prairie_calloc(size_t count, size_t size)
{
    size_t bytes;
    void *block;

    if (unlikely(__builtin_mul_overflow(count, size, &bytes))) return refuse_memory();
    if (likely(bytes <= SMALL_BYTES_MAX)) {
        unsigned class_index = class_of_size(bytes);
        block = class_take(class_index);
        if (likely(block != NULL)) return __builtin_memset(block, 0, class_bytes[class_index]);
    } else {
        block = large_take(bytes, 1, true);
        if (likely(block != NULL)) return block;
    }
    return refuse_memory();
}
