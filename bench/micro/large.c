/* large.c - patterns of random replacement of blocks of 9 KB to 25 MB, one thread.
 * SPDX-License-Identifier: MIT
 *
 * An operation frees one of the live blocks, chosen at random, and allocates another of a uniform
 * size in the range. The patterns write one word in every 4 KiB of the new block, which shows page
 * faults and placement; those named -whole write every byte, as a program that fills its buffers
 * does. */
#include "micro.h"

#include <stdlib.h>
#include <string.h>

struct large_shape {
    uint32_t bytes_min, bytes_max;
    uint32_t live_count;
    uint32_t operations;
    int write_whole;
};

static void **blocks;
static uint64_t stream = 0xD1B54A32D192ED03ull;

static void *new_block(const struct large_shape *shape)
{
    size_t bytes =
        shape->bytes_min + random_below(&stream, shape->bytes_max - shape->bytes_min + 1);
    char *block = bench_need(malloc(bytes));
    if (shape->write_whole) {
        memset(block, (int)bytes, bytes);
        return block;
    }
    for (size_t offset = 0; offset < bytes; offset += 4096) *(volatile char *)(block + offset) = 1;
    return block;
}

static void large_prepare(const struct pattern *pattern)
{
    const struct large_shape *shape = pattern->shape;
    blocks = bench_memory(shape->live_count * sizeof *blocks);
    for (uint32_t i = 0; i < shape->live_count; i++) blocks[i] = new_block(shape);
}

static uint64_t large_round(const struct pattern *pattern)
{
    const struct large_shape *shape = pattern->shape;
    for (uint32_t i = 0; i < shape->operations; i++) {
        uint32_t victim = random_below(&stream, shape->live_count);
        free(blocks[victim]);
        blocks[victim] = new_block(shape);
    }
    return shape->operations;
}

static const struct large_shape large_9k = { 9000, 60000, 500, 20000, 0 };
static const struct large_shape large_70k = { 70000, 500000, 200, 4000, 0 };
static const struct large_shape large_300k = { 300000, 3000000, 40, 800, 0 };
static const struct large_shape large_5m = { 5000000, 25000000, 10, 40, 0 };
static const struct large_shape large_9k_whole = { 9000, 60000, 500, 10000, 1 };
static const struct large_shape large_70k_whole = { 70000, 500000, 200, 1000, 1 };
static const struct large_shape large_300k_whole = { 300000, 3000000, 40, 200, 1 };
static const struct large_shape large_5m_whole = { 5000000, 25000000, 10, 20, 1 };

static const struct pattern patterns[] = {
    { "large-9k", "500 live blocks of 9..60 KB (17 MB): medium sizes packed by pages", 1, &large_9k,
      large_prepare, large_round },
    { "large-70k", "200 live blocks of 70..500 KB (58 MB): splitting and merging page runs", 1,
      &large_70k, large_prepare, large_round },
    { "large-300k",
      "40 live blocks of 0.3..3 MB (77 MB): reuse of dirty pages against giving them back", 1,
      &large_300k, large_prepare, large_round },
    { "large-5m", "10 live blocks of 5..25 MB (190 MB): page faults of big buffers", 1, &large_5m,
      large_prepare, large_round },
    { "large-9k-whole", "large-9k with every byte written", 1, &large_9k_whole, large_prepare,
      large_round },
    { "large-70k-whole", "large-70k with every byte written", 1, &large_70k_whole, large_prepare,
      large_round },
    { "large-300k-whole", "large-300k with every byte written", 1, &large_300k_whole, large_prepare,
      large_round },
    { "large-5m-whole", "large-5m with every byte written", 1, &large_5m_whole, large_prepare,
      large_round },
};

const struct family large_family = { patterns, sizeof patterns / sizeof *patterns };
