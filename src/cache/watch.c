/* watch.c - calls that are seen, one by one.
 * SPDX-License-Identifier: MIT
 */
#include "watch.h"

_Static_assert(offsetof(struct watch, behind) == offsetof(struct cache, behind)
                   && offsetof(struct watch, left) == offsetof(struct cache, left),
               "all that a slot may point at begin alike");
_Static_assert(offsetof(struct watch, large) == offsetof(struct cache, large), "these too");
_Static_assert(offsetof(struct exact_watch, put) == PLACES_FOR_FREES * sizeof(void *)
                   && offsetof(struct metered_watch, cache) == PLACES_FOR_FREES * sizeof(void *)
                   && offsetof(struct cache, magazine) == 0 && PLACE_PER_CLASS == sizeof(uint16_t)
                   && PLACES_FOR_FREES + 2 * CLASS_COUNT <= 256,
               "frees find their magazines");

static void no_magazines(struct watch *watch, struct magazine *magazine)
{
    for (unsigned class_index = 0; class_index < CLASS_COUNT; class_index++)
        magazine[class_index] = (struct magazine){ &watch->nothing, &watch->nothing };
}

struct watch *watch_begin_exact(const struct cache *front)
{
    struct exact_watch *exact = meta_take(sizeof *exact);

    if (exact == NULL) return NULL;
    no_magazines(&exact->watch, exact->watch.magazine);
    no_magazines(&exact->watch, exact->put);
    exact->watch.behind = front->behind;
    exact->watch.left = (uint16_t *)front->left;
    exact->watch.large = front->large;
    if (cache_is_metered(front)) exact->watch.meter = ((const struct watch *)front)->meter;
    return &exact->watch;
}

struct metered_watch *watch_make_metered(void)
{
    struct metered_watch *metered = meta_take(sizeof *metered);

    if (metered == NULL) return NULL;
    no_magazines(&metered->watch, metered->watch.magazine);
    metered->watch.behind = &metered->cache;
    metered->watch.meter = &metered->meter;
    metered->watch.left = metered->left;
    cache_init(&metered->cache);
    metered->cache.class_max = (uint8_t)cached_class_max;
    metered->watch.large = metered->cache.large = &metered->cache;
    return metered;
}

void watch_give_metered(struct metered_watch *metered) { meta_give(metered, sizeof *metered); }

static struct metered_watch *metered_of(struct cache *cache)
{
    return (struct metered_watch *)((char *)cache - offsetof(struct metered_watch, cache));
}

struct watch *watch_metered_of(struct cache *cache) { return &metered_of(cache)->watch; }

struct watch *watch_begin_metered(struct cache *cache, bool sampled)
{
    struct metered_watch *metered = metered_of(cache);

    meter_init(&metered->meter, sampled);
    return &metered->watch;
}

void watch_pass_back(struct watch *watch)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        meter_pass_back(watch->meter, class_index, watch->left[class_index]);
        watch->left[class_index] = 0;
    }
}

void watch_end(struct watch *watch)
{
    if (watch->meter != NULL) {
        watch_pass_back(watch);
        meter_tell(watch->meter);
    }
    if (!cache_is_metered((struct cache *)watch)) meta_give(watch, sizeof(struct exact_watch));
}

/* ---- taking ---- */

static unsigned stretch_blocks(unsigned class_index)
{
    unsigned blocks = STRETCH_BYTES / class_bytes[class_index];

    return blocks > STRETCH_BLOCKS_MIN ? blocks : STRETCH_BLOCKS_MIN;
}

/* What may still pass was drawn for a period that is over. */
INLINE void follow_period_of(struct watch *watch)
{
    if (unlikely(meter_is_stale(watch->meter))) watch_pass_back(watch);
}

bool watch_block_is_due(struct watch *watch, unsigned class_index)
{
    struct meter *meter = watch->meter;

    if (meter == NULL) return false;
    follow_period_of(watch);
    if (watch->left[class_index] == 0) {
        if (meter_block_is_due(meter, class_index)) return true;
        watch->left[class_index] =
            (uint16_t)meter_pass(meter, class_index, stretch_blocks(class_index));
    }
    watch->left[class_index]--;
    return false;
}

bool watch_large_is_due(struct watch *watch, size_t bytes)
{
    if (watch->meter == NULL) return false;
    follow_period_of(watch);
    return meter_large_is_due(watch->meter, bytes);
}

void *watch_take(struct watch *watch, unsigned class_index)
{
    void *block = magazine_take(&watch->behind->magazine[class_index]);

    if (block == NULL) {
        if (!cache_refill(watch->behind, class_index)) return NULL;
        block = magazine_take(&watch->behind->magazine[class_index]);
    }
    watch_count_take(watch, class_bytes[class_index]);
    return block;
}

/* ---- putting ---- */

void watch_put(struct watch *watch, unsigned class_index, void *block)
{
    watch_count_put(watch, class_bytes[class_index]);
    if (unlikely(!magazine_put(&watch->behind->magazine[class_index], block)))
        cache_overflow(watch->behind, class_index, block);
}
