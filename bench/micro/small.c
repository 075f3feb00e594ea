/* small.c - patterns of small blocks in one thread: hot pairs, random replacement, bursts,
 * random-order frees. SPDX-License-Identifier: MIT
 *
 * An operation is one malloc with its free. Sizes are random_small_bytes() where nothing else is
 * said, taken from a table that is made beforehand. New blocks get their first word written; freed
 * blocks are not looked at, except in the patterns named -read, where the program reads the block
 * just before it frees it, as destructors do. */
#include "micro.h"

#include <stdlib.h>

enum { SIZE_TABLE = 1 << 16 };

struct replace_shape {
    uint32_t live_count;
    uint32_t operations;
};

enum free_order { FIRST_TO_LAST, LAST_TO_FIRST, RANDOM_ORDER };

struct burst_shape {
    uint32_t block_count;
    enum free_order order;
    int read_before_free;
};

static void **blocks;
static uint32_t *free_order; /* burst: which block is freed at step i */
static uint16_t *size_table;
static uint64_t stream; /* random stream of the rounds, continues from round to round */

static void make_sizes(void)
{
    uint64_t seed = 0x9E3779B97F4A7C15ull;
    size_table = bench_memory(SIZE_TABLE * sizeof *size_table);
    for (unsigned i = 0; i < SIZE_TABLE; i++) size_table[i] = (uint16_t)random_small_bytes(&seed);
    stream = seed;
}

static void *new_block(uint32_t step)
{
    void *block = bench_need(malloc(size_table[step % SIZE_TABLE]));
    touch_first_word(block);
    return block;
}

static uint64_t pair_round(const struct pattern *pattern)
{
    enum { LOOPS = 1000000 };
    (void)pattern;
    for (int i = 0; i < LOOPS; i++) {
        void *first = malloc(48);
        void *second = malloc(24);
        touch_first_word(first);
        touch_first_word(second);
        free(first);
        free(second);
    }
    return 2 * LOOPS;
}

static void replace_prepare(const struct pattern *pattern)
{
    const struct replace_shape *shape = pattern->shape;
    make_sizes();
    blocks = bench_memory(shape->live_count * sizeof *blocks);
    for (uint32_t i = 0; i < shape->live_count; i++) blocks[i] = new_block(i);
}

static uint64_t replace_round(const struct pattern *pattern)
{
    const struct replace_shape *shape = pattern->shape;
    uint64_t random = stream;
    for (uint32_t i = 0; i < shape->operations; i++) {
        uint32_t victim = random_below(&random, shape->live_count);
        free(blocks[victim]);
        blocks[victim] = new_block((uint32_t)random);
    }
    stream = random;
    return shape->operations;
}

static void burst_prepare(const struct pattern *pattern)
{
    const struct burst_shape *shape = pattern->shape;
    make_sizes();
    blocks = bench_memory(shape->block_count * sizeof *blocks);
    free_order = bench_memory(shape->block_count * sizeof *free_order);
    for (uint32_t i = 0; i < shape->block_count; i++)
        free_order[i] = shape->order == LAST_TO_FIRST ? shape->block_count - 1 - i : i;
    if (shape->order != RANDOM_ORDER) return;
    for (uint32_t i = shape->block_count - 1; i > 0; i--) {
        uint32_t j = random_below(&stream, i + 1);
        uint32_t kept = free_order[i];
        free_order[i] = free_order[j];
        free_order[j] = kept;
    }
}

static uint64_t burst_round(const struct pattern *pattern)
{
    const struct burst_shape *shape = pattern->shape;
    for (uint32_t i = 0; i < shape->block_count; i++) blocks[i] = new_block(i);
    bench_lap();
    if (!shape->read_before_free) {
        for (uint32_t i = 0; i < shape->block_count; i++) free(blocks[free_order[i]]);
        return shape->block_count;
    }
    for (uint32_t i = 0; i < shape->block_count; i++) {
        void *block = blocks[free_order[i]];
        if (*(volatile uint64_t *)block != (uintptr_t)block) abort();
        free(block);
    }
    return shape->block_count;
}

static const struct replace_shape replace_1k = { 1000, 2000000 };
static const struct replace_shape replace_100k = { 100000, 1000000 };
static const struct replace_shape replace_1m = { 1000000, 1000000 };
static const struct burst_shape burst_fifo = { 100000, FIRST_TO_LAST, 0 };
static const struct burst_shape burst_lifo = { 100000, LAST_TO_FIRST, 0 };
static const struct burst_shape burst_random = { 300000, RANDOM_ORDER, 0 };
static const struct burst_shape burst_random_read = { 300000, RANDOM_ORDER, 1 };

static const struct pattern patterns[] = {
    { "pair-hot", "the fast path alone: malloc 48 and 24 bytes, free both", 1, NULL, NULL,
      pair_round },
    { "replace-1k",
      "1,000 live blocks of 16..511 bytes, one replaced at random: everything in the caches", 1,
      &replace_1k, replace_prepare, replace_round },
    { "replace-100k",
      "100,000 live blocks (15 MB), one replaced at random: slabs with few free blocks", 1,
      &replace_100k, replace_prepare, replace_round },
    { "replace-1m", "1,000,000 live blocks (150 MB), one replaced at random: cold look-up tables",
      1, &replace_1m, replace_prepare, replace_round },
    { "random-300k",
      "allocate 300,000 blocks, free them in random order: frees that miss the cache", 1,
      &burst_random, burst_prepare, burst_round },
    { "random-300k-read",
      "the same, each block read just before its free: the miss is the program's own", 1,
      &burst_random_read, burst_prepare, burst_round },
    { "burst-fifo", "allocate 100,000 blocks, free them in the order of allocation: fill and drain",
      1, &burst_fifo, burst_prepare, burst_round },
    { "burst-lifo", "allocate 100,000 blocks, free them in reverse: fill and drain", 1, &burst_lifo,
      burst_prepare, burst_round },
};

const struct family small_family = { patterns, sizeof patterns / sizeof *patterns };
