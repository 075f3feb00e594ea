/* abandoned.c - a stack of a few caches, and how deep it was not reached.
 * SPDX-License-Identifier: MIT
 */
#include "abandoned.h"

#include "growth.h"

static struct {
    struct abandoned {
        struct cache *cache;
        size_t bytes;
    } each[ABANDONED_MAX];
    unsigned count, low; /* low: the least that count was since abandoned_take_to_drain last
                            returned NULL */
    size_t bytes;
} abandoned;

READS_UNLOCKED size_t abandoned_bytes(const struct cache *cache)
{
    size_t bytes = 0;

    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct spare *spare = &cache->spare[class_index];
        size_t blocks;

        if (spare->capacity == 0) continue;
        if (is_wide(cache, class_index)) return SIZE_MAX;
        blocks = loaded_count(cache, class_index) + spare->count;
        bytes += blocks * class_bytes[class_index];
        if (!is_in_place(cache, cache_loaded(cache, class_index)))
            bytes += magazine_bytes(spare->capacity);
        if (spare->slots != NULL) bytes += magazine_bytes(spare->capacity);
    }
    return bytes;
}

bool abandoned_put(struct cache *cache, size_t bytes)
{
    if (abandoned.count == ABANDONED_MAX || abandoned.bytes + bytes > ALL_ABANDONED_BYTES_MAX)
        return false;
    RELAXED_STORE(cache->fixed, (uint8_t)CACHE_ABANDONED);
    abandoned.each[abandoned.count++] = (struct abandoned){ cache, bytes };
    abandoned.bytes += bytes;
    return true;
}

static struct cache *take_at(unsigned index)
{
    struct abandoned taken = abandoned.each[index];

    abandoned.count--;
    abandoned.bytes -= taken.bytes;
    __builtin_memmove(&abandoned.each[index], &abandoned.each[index + 1],
                      (abandoned.count - index) * sizeof taken);
    return taken.cache;
}

struct cache *abandoned_take(void)
{
    struct cache *cache;

    if (abandoned.count == 0) return NULL;
    cache = take_at(abandoned.count - 1);
    abandoned.low = (unsigned)min_size(abandoned.low, abandoned.count);
    return cache;
}

struct cache *abandoned_take_to_drain(enum clear_what what)
{
    if ((what == CLEAR_ALL ? abandoned.count : abandoned.low) == 0) {
        abandoned.low = abandoned.count;
        return NULL;
    }
    if (abandoned.low > 0) abandoned.low--;
    return take_at(0);
}

READS_UNLOCKED bool abandoned_is_empty(void) { return abandoned.count == 0; }

void abandoned_visit(void (*visit)(struct cache *cache))
{
    for (unsigned i = 0; i < abandoned.count; i++) visit(abandoned.each[i].cache);
}
