/* pair.c - hot pairs of malloc and free: the shortest path through the allocator.
 * SPDX-License-Identifier: MIT
 *
 * Idea: the object that is made and dropped again at once, for which Bonwick's slab allocator keeps
 * constructed objects at hand; the C library's own bench-malloc-simple measures the same. In the
 * mixed one, blocks live like the temporaries of nested calls: up to eight, last in, first out. */
#include "sizes.h"

#include <stdlib.h>

enum { NESTING_MAX = 8 };

static struct outcome run_same(const struct job *job)
{
    uint64_t pairs = scaled(job, 140000000), sum = 0;
    for (uint64_t i = 0; i < pairs; i++) {
        uint64_t *block = need(malloc(48));
        *(volatile uint64_t *)block = i ^ job->seed;
        sum += *(volatile uint64_t *)block;
        free(block);
    }
    return (struct outcome){ sum, pairs };
}

static struct outcome run_nested(const struct job *job)
{
    uint64_t pairs = scaled(job, 40000000), sum = 0, made = 0;
    uint64_t random = random_start(job->seed, 0);
    void *block[NESTING_MAX];
    while (made < pairs) {
        unsigned depth = 1 + random_below(&random, NESTING_MAX);
        for (unsigned i = 0; i < depth; i++) block[i] = new_program_block(&random);
        for (unsigned i = depth; i-- > 0;) {
            sum += block_word(block[i]) * (i + 1);
            free(block[i]);
        }
        made += depth;
    }
    return (struct outcome){ sum, made };
}

static const struct workload workloads[] = {
    { "pair-48", "small",
      "one block of 48 bytes allocated and freed again and again: the bare fast path",
      "Bonwick's object caching; bench-malloc-simple", 1, NULL, run_same, SUITE_TIMED, NULL, NULL },
    { "pair-nested", "small",
      "1 to 8 blocks of mixed sizes allocated and freed in reverse: temporaries of nested calls",
      "Bonwick's object caching; bench-malloc-simple", 1, NULL, run_nested, SUITE_TIMED, NULL,
      NULL },
};

const struct workload_list pair_list = { workloads, sizeof workloads / sizeof *workloads };
