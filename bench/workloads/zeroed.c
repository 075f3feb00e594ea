/* zeroed.c - calloc: small records, tables of 1 to 256 KB, and zeroed blocks of 5 to 25 MB.
 * SPDX-License-Identifier: MIT
 *
 * Idea: malloc-large of mimalloc-bench zeroes its blocks; interpreters and hash tables ask for
 * zeroed memory most of the time. Knowing that fresh pages are zero already saves the clearing;
 * clearing a reused block may be cheaper than a fresh one. One word in each step of a block is
 * seen to be zero: 64 bytes, 512 or a page, as the blocks are large. */
#include "sizes.h"

#include <stdlib.h>

struct shape {
    size_t bytes_min, bytes_max; /* 0, 0: a program's mix */
    uint32_t live_count;
    uint32_t operations;
    size_t step; /* a word in every so many bytes is read, and written */
};

static void *new_zeroed(const struct shape *shape, uint64_t *random, uint64_t *sum)
{
    size_t bytes = shape->bytes_max == 0
                     ? (size_program(random) + 7) & ~(size_t)7
                     : size_between(random, shape->bytes_min / 8, shape->bytes_max / 8) * 8;
    char *block = need(calloc(bytes / 8, 8));
    uint64_t seen = 0;
    for (size_t at = 0; at < bytes; at += shape->step) {
        seen |= block_word(block + at);
        memcpy(block + at, &bytes, sizeof bytes);
    }
    if (seen != 0) stop("calloc returned a block that is not zero");
    *sum = *sum * 3 + bytes;
    return block;
}

static struct outcome run_zeroed(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    uint64_t operations = scaled(job, shape->operations), sum = 0;
    uint64_t random = random_start(job->seed, shape->bytes_max);
    void **live = own_memory(shape->live_count * sizeof *live);
    for (uint32_t i = 0; i < shape->live_count; i++) live[i] = new_zeroed(shape, &random, &sum);
    for (uint64_t i = 0; i < operations; i++) {
        void **victim = &live[random_below(&random, shape->live_count)];
        sum += block_word(*victim);
        free(*victim);
        *victim = new_zeroed(shape, &random, &sum);
    }
    for (uint32_t i = 0; i < shape->live_count; i++) {
        sum += block_word(live[i]);
        free(live[i]);
    }
    return (struct outcome){ sum, operations + shape->live_count };
}

static const struct shape small = { 0, 0, 20000, 18000000, 64 };
static const struct shape tables = { 1024, 262144, 100, 135000, 512 };
static const struct shape huge = { 5000000, 25000000, 20, 300, PAGE };

static const struct workload workloads[] = {
    { "calloc-small", "zeroed",
      "20,000 live zeroed blocks of a program's sizes, a random one replaced",
      "calloc in interpreters; malloc-large", 1, &small, run_zeroed, SUITE_TIMED, NULL, NULL },
    { "calloc-tables", "zeroed", "100 live zeroed tables of 1 to 256 KB, a random one replaced",
      "calloc of hash tables; malloc-large", 1, &tables, run_zeroed, SUITE_TIMED, NULL, NULL },
    { "calloc-25m", "zeroed", "20 live zeroed blocks of 5 to 25 MB, a random one replaced",
      "malloc-large of mimalloc-bench", 1, &huge, run_zeroed, SUITE_TIMED, NULL, NULL },
};

const struct workload_list zeroed_list = { workloads, sizeof workloads / sizeof *workloads };
