/* pipeline.c - producers allocate, consumers free: memory stays bounded by what is on the way. */
/* SPDX-License-Identifier: MIT */
/* usage: pipeline BYTES_MAX: pairs of threads hand over blocks of 8 to BYTES_MAX bytes */
#include "../blackbox/use.h"

#include <stdatomic.h>

enum { PAIRS = 2, RING = 1024 };

struct ring {
    void *_Atomic slot[RING];
    pthread_t producer, consumer;
    uint64_t seed;
};

static struct ring ring[PAIRS];
static size_t bytes_max;
static long blocks_each;

/* Every block begins with its own length, by which the consumer checks it. */
static void *produce(void *argument)
{
    struct ring *mine = argument;
    for (long i = 0; i < blocks_each; i++) {
        size_t bytes = random_between(&mine->seed, sizeof(size_t), bytes_max);
        size_t *block = malloc(bytes);
        must(block != NULL);
        if (bytes > 64) ((char *)block)[bytes - 1] = 0x5a;
        *block = bytes;
        void *_Atomic *slot = &mine->slot[i % RING];
        while (atomic_load_explicit(slot, memory_order_acquire) != NULL) sched_yield();
        atomic_store_explicit(slot, block, memory_order_release);
    }
    return NULL;
}

static void *consume(void *argument)
{
    struct ring *mine = argument;
    for (long i = 0; i < blocks_each; i++) {
        void *_Atomic *slot = &mine->slot[i % RING];
        size_t *block;
        while ((block = atomic_load_explicit(slot, memory_order_acquire)) == NULL) sched_yield();
        must(*block <= bytes_max && (*block <= 64 || ((char *)block)[*block - 1] == 0x5a));
        free(block);
        atomic_store_explicit(slot, NULL, memory_order_release);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    bytes_max = strtoul(argv[1], NULL, 10);
    blocks_each = scaled(bytes_max > 1000 ? 1000000 : 3000000);
    uint64_t seed = seed_of_run();
    use_heap_once(1);
    long before_kb = resident_kb(), most_kb = 0;
    double start_ms = now_ms();
    for (int i = 0; i < PAIRS; i++) {
        ring[i].seed = random_next(&seed);
        must(pthread_create(&ring[i].producer, NULL, produce, &ring[i]) == 0);
        must(pthread_create(&ring[i].consumer, NULL, consume, &ring[i]) == 0);
    }
    while (pthread_tryjoin_np(ring[0].consumer, NULL) != 0) {
        long now_kb = resident_kb() - before_kb;
        if (now_kb > most_kb) most_kb = now_kb;
        sleep_ms(5);
    }
    for (int i = 0; i < PAIRS; i++) {
        must(pthread_join(ring[i].producer, NULL) == 0);
        if (i > 0) must(pthread_join(ring[i].consumer, NULL) == 0);
    }
    double rate = (double)(blocks_each * PAIRS) / (now_ms() - start_ms) / 1000;
    /* Full rings of the largest blocks, as much again for what caches hold, and 8 MiB for
     * everything fixed. */
    long bound_kb = (long)(2 * PAIRS * RING * bytes_max / 1024) + 8 * 1024;
    printf("pipeline: %d pairs, up to %zu bytes, %.1f million blocks a second, at most %ld KiB "
           "held of %ld\n",
           PAIRS, bytes_max, rate, most_kb, bound_kb);
    must(most_kb <= bound_kb);
    walk_heap();
    return 0;
}
