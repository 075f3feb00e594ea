/* counting.c - calls that are seen, one by one.
 * SPDX-License-Identifier: MIT
 */
#include "counting.h"

_Static_assert(offsetof(struct counting_front, behind) == offsetof(struct cache, behind)
                   && offsetof(struct counting_front, left) == offsetof(struct cache, left),
               "all that a slot may point at begin alike");
_Static_assert(offsetof(struct counting_front, large) == offsetof(struct cache, large),
               "these too");
_Static_assert(offsetof(struct exact_front, put) == OFFSET_FOR_FREES * sizeof(void *)
                   && offsetof(struct sampled_front, cache) == OFFSET_FOR_FREES * sizeof(void *)
                   && offsetof(struct cache, magazine) == 0 && OFFSET_PER_CLASS == sizeof(uint16_t)
                   && OFFSET_FOR_FREES + 2 * CLASS_COUNT <= 256,
               "frees find their magazines");

static void no_magazines(struct counting_front *counting, struct magazine *magazine)
{
    for (unsigned class_index = 0; class_index < CLASS_COUNT; class_index++)
        magazine[class_index] = (struct magazine){ &counting->nothing, &counting->nothing };
}

struct counting_front *counting_begin_exact(const struct cache *front)
{
    struct exact_front *exact = meta_take(sizeof *exact);

    if (exact == NULL) return NULL;
    no_magazines(&exact->counting, exact->counting.magazine);
    no_magazines(&exact->counting, exact->put);
    exact->counting.behind = front->behind;
    exact->counting.left = (uint16_t *)front->left;
    exact->counting.large = front->large;
    if (cache_is_sampled(front))
        exact->counting.sampler = ((const struct counting_front *)front)->sampler;
    return &exact->counting;
}

struct sampled_front *counting_make_sampled(void)
{
    struct sampled_front *sampled_fronts = meta_take(sizeof *sampled_fronts);

    if (sampled_fronts == NULL) return NULL;
    no_magazines(&sampled_fronts->counting, sampled_fronts->counting.magazine);
    sampled_fronts->counting.behind = &sampled_fronts->cache;
    sampled_fronts->counting.sampler = &sampled_fronts->sampler;
    sampled_fronts->counting.left = sampled_fronts->left;
    cache_init(&sampled_fronts->cache);
    sampled_fronts->cache.class_max = (uint8_t)cached_class_max;
    sampled_fronts->counting.large = sampled_fronts->cache.large = &sampled_fronts->cache;
    return sampled_fronts;
}

void counting_give_sampled(struct sampled_front *sampled_fronts)
{
    meta_give(sampled_fronts, sizeof *sampled_fronts);
}

static struct sampled_front *sampled_front_of(struct cache *cache)
{
    return (struct sampled_front *)((char *)cache - offsetof(struct sampled_front, cache));
}

struct counting_front *counting_sampled_of(struct cache *cache)
{
    return &sampled_front_of(cache)->counting;
}

struct counting_front *counting_begin_sampled(struct cache *cache, bool sampled)
{
    struct sampled_front *sampled_fronts = sampled_front_of(cache);

    sampler_init(&sampled_fronts->sampler, sampled);
    return &sampled_fronts->counting;
}

void counting_pass_back(struct counting_front *counting)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        sampler_pass_back(counting->sampler, class_index, counting->left[class_index]);
        counting->left[class_index] = 0;
    }
}

void counting_end(struct counting_front *counting)
{
    if (counting->sampler != NULL) {
        counting_pass_back(counting);
        sampler_tell(counting->sampler);
    }
    if (!cache_is_sampled((struct cache *)counting))
        meta_give(counting, sizeof(struct exact_front));
}

/* ---- taking ---- */

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

    if (sampler == NULL) return false;
    follow_period_of(counting);
    if (counting->left[class_index] == 0) {
        if (sampler_block_is_due(sampler, class_index)) return true;
        counting->left[class_index] =
            (uint16_t)sampler_pass(sampler, class_index, stretch_blocks(class_index));
    }
    counting->left[class_index]--;
    return false;
}

bool counting_large_is_due(struct counting_front *counting, size_t bytes)
{
    if (counting->sampler == NULL) return false;
    follow_period_of(counting);
    return sampler_large_is_due(counting->sampler, bytes);
}

void *counting_take(struct counting_front *counting, unsigned class_index)
{
    void *block = magazine_take(&counting->behind->magazine[class_index]);

    if (block == NULL) {
        if (!cache_refill(counting->behind, class_index)) return NULL;
        block = magazine_take(&counting->behind->magazine[class_index]);
    }
    counting_add_taken(counting, class_bytes[class_index]);
    return block;
}

/* ---- putting ---- */

void counting_put(struct counting_front *counting, unsigned class_index, void *block)
{
    counting_add_given(counting, class_bytes[class_index]);
    if (unlikely(!magazine_put(&counting->behind->magazine[class_index], block)))
        cache_overflow(counting->behind, class_index, block);
}
