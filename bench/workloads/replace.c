/* replace.c - a fixed number of live blocks of which a random one is replaced, again and again.
 * SPDX-License-Identifier: MIT
 *
 * Idea: the random replacement in Larson and Krishnan's server, in alloc-test and in the C
 * library's bench-malloc-thread, here by one thread with a program's mix of sizes. It strains the
 * caches for freed blocks when classes are drawn at random and, with a million live blocks, the
 * locality of the allocator's own data. The last one reads a few other live blocks between
 * replacements, as programs use what they hold: it tells how densely blocks lie. */
#include "sizes.h"

#include <stdlib.h>

struct shape {
    uint32_t live_count;
    uint32_t operations;
    uint32_t reads; /* of other live blocks between two replacements */
};

static struct outcome run_replace(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    uint64_t operations = scaled(job, shape->operations), sum = 0;
    uint64_t random = random_start(job->seed, shape->live_count);
    void **live = own_memory(shape->live_count * sizeof *live);

    for (uint32_t i = 0; i < shape->live_count; i++) live[i] = new_program_block(&random);
    for (uint64_t i = 0; i < operations; i++) {
        void **victim = &live[random_below(&random, shape->live_count)];
        sum = sum * 3 + block_word(*victim);
        free(*victim);
        *victim = new_program_block(&random);
        for (uint32_t j = 0; j < shape->reads; j++)
            sum += block_word(live[random_below(&random, shape->live_count)]);
    }
    for (uint32_t i = 0; i < shape->live_count; i++) {
        sum = sum * 3 + block_word(live[i]);
        free(live[i]);
    }
    return (struct outcome){ sum, operations + shape->live_count };
}

static const struct shape live_1k = { 1000, 55000000, 0 };
static const struct shape live_100k = { 100000, 30000000, 0 };
static const struct shape live_1m = { 1000000, 5000000, 0 };
static const struct shape live_read = { 300000, 6000000, 4 };

#define IDEA "Larson and Krishnan's server without its threads; alloc-test; bench-malloc-thread"

static const struct workload workloads[] = {
    { "replace-1k", "small",
      "1,000 live blocks of a program's sizes, a random one replaced: fits the caches", IDEA, 1,
      &live_1k, run_replace, SUITE_TIMED, NULL, NULL },
    { "replace-100k", "small", "100,000 live blocks of a program's sizes, a random one replaced",
      IDEA, 1, &live_100k, run_replace, SUITE_TIMED, NULL, NULL },
    { "replace-1m", "small",
      "a million live blocks of a program's sizes, a random one replaced: cold metadata", IDEA, 1,
      &live_1m, run_replace, SUITE_TIMED, NULL, NULL },
    { "replace-read", "small",
      "300,000 live blocks, a random one replaced and four others read: how densely blocks lie",
      IDEA, 1, &live_read, run_replace, SUITE_TIMED, NULL, NULL },
};

const struct workload_list replace_list = { workloads, sizeof workloads / sizeof *workloads };
