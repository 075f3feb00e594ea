/* lru.c - a cache of values with a bound on its bytes, the least recently used go first.
 * SPDX-License-Identifier: MIT
 *
 * Idea: memcached and the key-value stores behind the published complaints about memory: values of
 * very different sizes live for a time that depends on their use, not on their size, and the bound
 * counts payload, so that everything above it is the allocator's. Sizes drift over the run. */
#include "sizes.h"

#include <stdlib.h>

enum { BUCKETS = 1 << 16, KEYS = 400000, BOUND_BYTES = 64 << 20, EPOCHS = 8 };

struct item {
    struct item *newer, *older; /* by use */
    struct item *next;          /* in its bucket */
    uint32_t key, bytes;
    unsigned char value[];
};

struct cache {
    struct item **bucket;
    struct item *newest, *oldest;
    uint64_t bytes, sum;
};

static void unlink_use(struct cache *cache, struct item *item)
{
    *(item->newer != NULL ? &item->newer->older : &cache->newest) = item->older;
    *(item->older != NULL ? &item->older->newer : &cache->oldest) = item->newer;
}

static void link_newest(struct cache *cache, struct item *item)
{
    item->newer = NULL;
    item->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = item;
    cache->newest = item;
}

static struct item **find(struct cache *cache, uint32_t key)
{
    struct item **at = &cache->bucket[(key * 2654435761u) >> 16];
    while (*at != NULL && (*at)->key != key) at = &(*at)->next;
    return at;
}

static void evict_oldest(struct cache *cache)
{
    struct item *item = cache->oldest, **at = find(cache, item->key);
    *at = item->next;
    unlink_use(cache, item);
    cache->bytes -= sizeof *item + item->bytes;
    cache->sum = cache->sum * 3 + item->value[item->bytes / 2];
    free(item);
}

static void insert(struct cache *cache, uint32_t key, uint32_t bytes)
{
    struct item *item = need(malloc(sizeof *item + bytes));
    struct item **at = find(cache, key);
    *item = (struct item){ .key = key, .bytes = bytes, .next = *at };
    memset(item->value, (int)(key & 0xFF), bytes);
    *at = item;
    link_newest(cache, item);
    cache->bytes += sizeof *item + bytes;
}

/* Low keys are asked for more often: the product of two uniform numbers. */
static uint32_t skewed_key(uint64_t *random)
{
    return (uint32_t)((uint64_t)random_below(random, KEYS) * random_below(random, KEYS) / KEYS);
}

static struct outcome run_lru(const struct job *job)
{
    uint64_t gets = scaled(job, 4500000), random = random_start(job->seed, 0);
    double before = resident_kb();
    struct cache cache = { .bucket = need(calloc(BUCKETS, sizeof *cache.bucket)) };
    for (uint64_t i = 0; i < gets; i++) {
        uint32_t key = skewed_key(&random);
        struct item *item = *find(&cache, key);
        if (item != NULL) {
            unlink_use(&cache, item);
            link_newest(&cache, item);
            cache.sum += item->value[0];
            continue;
        }
        uint64_t epoch = i * EPOCHS / gets;
        insert(&cache, key, (uint32_t)(size_power_law(&random) * (4 + epoch) / 4) + 32);
        while (cache.bytes > BOUND_BYTES) evict_oldest(&cache);
    }
    double live_bytes = (double)(cache.bytes + BUCKETS * sizeof *cache.bucket);
    report_figure("resident_per_live_end", (resident_kb() - before) * 1024 / live_bytes, "ratio");
    while (cache.oldest != NULL) evict_oldest(&cache);
    free(cache.bucket);
    return (struct outcome){ cache.sum, gets };
}

static const struct workload workloads[] = {
    { "lru-cache", "fragmentation",
      "a cache of 64 MB of values of 48 bytes to 90 KB, least recently used out first, sizes drift",
      "memcached and other key-value caches", 1, NULL, run_lru, SUITE_TIMED, NULL, NULL },
};

const struct workload_list lru_list = { workloads, sizeof workloads / sizeof *workloads };
