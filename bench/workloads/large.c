/* large.c - random replacement of blocks of 4 KB to 25 MB.
 * SPDX-License-Identifier: MIT
 *
 * Idea: malloc-large of mimalloc-bench (5 to 25 MB, few live), and the same for the ranges below,
 * where allocators change from slabs to runs of pages and from those to mappings. A block gets a
 * word written in every `step` bytes and every fourth of them is read before it is freed: faults,
 * huge pages, and what is done with freed runs decide. */
#include "sizes.h"

#include <stdlib.h>

struct shape {
    size_t bytes_min, bytes_max;
    uint32_t live_count;
    uint32_t operations;
    size_t step;
};

struct held {
    void *block;
    size_t bytes;
};

static struct held new_held(const struct shape *shape, uint64_t *random)
{
    size_t bytes = size_between(random, shape->bytes_min, shape->bytes_max);
    struct held held = { need(malloc(bytes)), bytes };
    block_write(held.block, bytes, shape->step, random[0] ^ bytes);
    return held;
}

static struct outcome run_large(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    uint64_t operations = scaled(job, shape->operations), sum = 0;
    uint64_t random = random_start(job->seed, shape->bytes_min);
    struct held *live = own_memory(shape->live_count * sizeof *live);
    for (uint32_t i = 0; i < shape->live_count; i++) live[i] = new_held(shape, &random);
    for (uint64_t i = 0; i < operations; i++) {
        struct held *victim = &live[random_below(&random, shape->live_count)];
        sum = sum * 3 + block_sum(victim->block, victim->bytes, shape->step * 4);
        free(victim->block);
        *victim = new_held(shape, &random);
    }
    for (uint32_t i = 0; i < shape->live_count; i++) {
        sum = sum * 3 + block_sum(live[i].block, live[i].bytes, shape->step * 4);
        free(live[i].block);
    }
    return (struct outcome){ sum, operations + shape->live_count };
}

static const struct shape to_60k = { 4000, 60000, 500, 2400000, 512 };
static const struct shape to_500k = { 70000, 500000, 200, 270000, 1024 };
static const struct shape to_3m = { 300000, 3000000, 40, 60000, PAGE };
static const struct shape to_25m = { 5000000, 25000000, 10, 900, PAGE };

#define IDEA "malloc-large of mimalloc-bench, and the ranges below it"

static const struct workload workloads[] = {
    { "large-60k", "large", "500 live blocks of 4 to 60 KB, a random one replaced", IDEA, 1,
      &to_60k, run_large, SUITE_TIMED, NULL, NULL },
    { "large-500k", "large", "200 live blocks of 70 to 500 KB, a random one replaced", IDEA, 1,
      &to_500k, run_large, SUITE_TIMED, NULL, NULL },
    { "large-3m", "large", "40 live blocks of 0.3 to 3 MB, a random one replaced", IDEA, 1, &to_3m,
      run_large, SUITE_TIMED, NULL, NULL },
    { "large-25m", "large", "10 live blocks of 5 to 25 MB, a random one replaced", IDEA, 1, &to_25m,
      run_large, SUITE_TIMED, NULL, NULL },
};

const struct workload_list large_list = { workloads, sizeof workloads / sizeof *workloads };
