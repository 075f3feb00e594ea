/* resize.c - patterns of realloc growth and of zeroed memory, one thread.
 * SPDX-License-Identifier: MIT
 *
 * Growing patterns write every byte that growth added, as a program that appends does. An operation
 * is one realloc; in the calloc patterns one calloc with its free. */
#include "micro.h"

#include <stdlib.h>
#include <string.h>

struct growth_shape {
    size_t first_bytes, last_bytes;
    size_t step_bytes;     /* 0: grow by half of the present size */
    unsigned buffer_count; /* grown in turns, so that none has its neighbourhood for itself */
    unsigned repeat;
};

struct calloc_shape {
    uint32_t bytes_min, bytes_max; /* 0, 0: random_small_bytes() */
    uint32_t live_count;
    uint32_t operations;
    uint32_t read_step_bytes; /* one word is read and written in every so many bytes */
};

enum { BUFFERS_MAX = 64 };

static void **blocks;
static uint64_t stream = 0xA0761D6478BD642Full;

static size_t next_bytes(const struct growth_shape *shape, size_t bytes)
{
    return bytes + (shape->step_bytes != 0 ? shape->step_bytes : bytes / 2);
}

static uint64_t growth_round(const struct pattern *pattern)
{
    const struct growth_shape *shape = pattern->shape;
    char *buffers[BUFFERS_MAX] = { 0 };
    uint64_t operations = 0;

    for (unsigned i = 0; i < shape->repeat; i++) {
        size_t had = 0;
        for (size_t bytes = shape->first_bytes; bytes <= shape->last_bytes;
             bytes = next_bytes(shape, bytes)) {
            for (unsigned j = 0; j < shape->buffer_count; j++) {
                buffers[j] = bench_need(realloc(buffers[j], bytes));
                memset(buffers[j] + had, (int)j, bytes - had);
            }
            had = bytes;
            operations += shape->buffer_count;
        }
        for (unsigned j = 0; j < shape->buffer_count; j++) {
            free(buffers[j]);
            buffers[j] = NULL;
        }
    }
    return operations;
}

static void *new_zeroed(const struct calloc_shape *shape)
{
    size_t bytes =
        shape->bytes_max == 0
            ? random_small_bytes(&stream)
            : shape->bytes_min + random_below(&stream, shape->bytes_max - shape->bytes_min + 1);
    char *block = bench_need(calloc(1, bytes));
    for (size_t offset = 0; offset < bytes; offset += shape->read_step_bytes) {
        if (*(volatile char *)(block + offset) != 0) abort();
        *(volatile char *)(block + offset) = 1;
    }
    return block;
}

static void calloc_prepare(const struct pattern *pattern)
{
    const struct calloc_shape *shape = pattern->shape;
    blocks = bench_memory(shape->live_count * sizeof *blocks);
    for (uint32_t i = 0; i < shape->live_count; i++) blocks[i] = new_zeroed(shape);
}

static uint64_t calloc_round(const struct pattern *pattern)
{
    const struct calloc_shape *shape = pattern->shape;
    for (uint32_t i = 0; i < shape->operations; i++) {
        uint32_t victim = random_below(&stream, shape->live_count);
        free(blocks[victim]);
        blocks[victim] = new_zeroed(shape);
    }
    return shape->operations;
}

static const struct growth_shape grow_half = { 16, 1 << 20, 0, 1, 200 };
static const struct growth_shape grow_step = { 4096, 8 << 20, 4096, 1, 2 };
static const struct growth_shape grow_many = { 16, 1 << 18, 0, BUFFERS_MAX, 4 };
static const struct growth_shape grow_append = { 64, 32 << 10, 64, 1, 40 };
static const struct calloc_shape calloc_small = { 0, 0, 10000, 500000, 64 };
static const struct calloc_shape calloc_64k = { 16384, 262144, 64, 5000, 4096 };
static const struct calloc_shape calloc_5m = { 5000000, 25000000, 10, 40, 4096 };

static const struct pattern patterns[] = {
    { "realloc-half", "one buffer grown by halves from 16 bytes to 1 MB: class changes and copies",
      1, &grow_half, NULL, growth_round },
    { "realloc-append",
      "one buffer grown by 64 bytes to 32 KB: growth that mostly stays in its class", 1,
      &grow_append, NULL, growth_round },
    { "realloc-step", "one buffer grown by 4 KiB to 8 MB: growth in place or by remapping", 1,
      &grow_step, NULL, growth_round },
    { "realloc-many",
      "64 buffers grown by halves in turns to 256 KB: growth without a free neighbour", 1,
      &grow_many, NULL, growth_round },
    { "calloc-small",
      "10,000 live zeroed blocks of 16..511 bytes, one replaced at random: zeroing small blocks", 1,
      &calloc_small, calloc_prepare, calloc_round },
    { "calloc-64k",
      "64 live zeroed blocks of 16..256 KB, replaced at random: knowing what is still zero", 1,
      &calloc_64k, calloc_prepare, calloc_round },
    { "calloc-5m",
      "10 live zeroed blocks of 5..25 MB, replaced at random: fresh pages against zeroing", 1,
      &calloc_5m, calloc_prepare, calloc_round },
};

const struct family resize_family = { patterns, sizeof patterns / sizeof *patterns };
