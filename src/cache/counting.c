/* counting.c - when a front that counts begins and ends, and when a sample is due.
 * SPDX-License-Identifier: MIT
 */
#include "counting.h"

_Static_assert(offsetof(struct counting_front, front) == 0
                   && offsetof(struct exact_front, put) == OFFSET_FOR_FREES * sizeof(void *)
                   && offsetof(struct sampled_front, cache) == OFFSET_FOR_FREES * sizeof(void *)
                   && OFFSET_PER_CLASS == sizeof(uint16_t)
                   && OFFSET_FOR_FREES + 2 * CLASS_COUNT <= 256,
               "frees find their magazines");

struct counting_front *counting_begin_exact(struct front *front, enum front_kind kind)
{
    struct exact_front *exact = meta_take(sizeof *exact);
    const struct counting_front *before = counting_of(front);

    if (exact == NULL) return NULL;
    front_clear(&exact->counting.front, kind);
    __builtin_memcpy(exact->put, exact->counting.front.magazine, sizeof exact->put);
    exact->counting.front.cache = front->cache;
    exact->counting.front.left = front->left;
    exact->counting.sampler = before != NULL ? before->sampler : NULL;
    return &exact->counting;
}

struct cache *counting_make_sampled(void)
{
    struct sampled_front *sampled = meta_take(sizeof *sampled);

    if (sampled == NULL) return NULL;
    front_clear(&sampled->counting.front, FRONT_SAMPLED);
    sampled->counting.front.cache = &sampled->cache;
    sampled->counting.front.left = sampled->left;
    sampled->counting.sampler = &sampled->sampler;
    cache_init(&sampled->cache);
    return &sampled->cache;
}

static struct sampled_front *sampled_of(struct cache *cache)
{
    return (struct sampled_front *)((char *)cache - offsetof(struct sampled_front, cache));
}

void counting_give_sampled(struct cache *cache)
{
    meta_give(sampled_of(cache), sizeof(struct sampled_front));
}

struct front *counting_sampled_of(struct cache *cache)
{
    return &sampled_of(cache)->counting.front;
}

struct front *counting_begin_sampled(struct cache *cache, bool is_sampled)
{
    sampler_init(&sampled_of(cache)->sampler, is_sampled);
    return counting_sampled_of(cache);
}

void counting_pass_back(struct counting_front *counting)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        uint16_t *left = left_at(counting->front.left, offset_of_class(class_index));

        sampler_pass_back(counting->sampler, class_index, *left);
        *left = 0;
    }
}

void counting_end(struct counting_front *counting)
{
    if (counting->sampler != NULL) {
        counting_pass_back(counting);
        sampler_tell(counting->sampler);
    }
    if (counting->front.kind != FRONT_SAMPLED) meta_give(counting, sizeof(struct exact_front));
}

/* ---- what is due ---- */

static unsigned stretch_blocks(unsigned class_index)
{
    unsigned blocks = STRETCH_BYTES / class_bytes[class_index];

    return blocks > STRETCH_BLOCKS_MIN ? blocks : STRETCH_BLOCKS_MIN;
}

/* What may still pass was drawn for a period that is over. */
INLINE void follow_period_of(struct counting_front *counting)
{
    if (unlikely(sampler_is_stale(counting->sampler))) counting_pass_back(counting);
}

bool counting_block_is_due(struct counting_front *counting, unsigned class_index)
{
    struct sampler *sampler = counting->sampler;
    uint16_t *left = left_at(counting->front.left, offset_of_class(class_index));

    if (sampler == NULL) return false;
    follow_period_of(counting);
    if (*left == 0) {
        if (sampler_block_is_due(sampler, class_index)) return true;
        *left = (uint16_t)sampler_pass(sampler, class_index, stretch_blocks(class_index));
    }
    --*left;
    return false;
}

bool counting_large_is_due(struct counting_front *counting, size_t bytes)
{
    if (counting->sampler == NULL) return false;
    follow_period_of(counting);
    return sampler_large_is_due(counting->sampler, bytes);
}
