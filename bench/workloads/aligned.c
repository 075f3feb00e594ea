/* aligned.c - blocks with an alignment: cache lines and vectors, pages and buffers for devices.
 * SPDX-License-Identifier: MIT
 *
 * Idea: databases and numeric code, which align records to cache lines and buffers to pages;
 * Lever and Boreham ask for the same of a server's allocator. Half of the calls go to
 * posix_memalign. */
#define _GNU_SOURCE
#include "sizes.h"

#include <stdlib.h>

struct shape {
    unsigned log_min, log_max;   /* alignment is a power of two between these */
    size_t bytes_min, bytes_max; /* aligned_alloc gets it rounded up to the alignment */
    uint32_t live_count;
    uint32_t operations;
};

static void *new_aligned(const struct shape *shape, uint64_t *random)
{
    size_t alignment = (size_t)1 << random_between(random, shape->log_min, shape->log_max);
    size_t bytes = size_between(random, shape->bytes_min, shape->bytes_max);
    void *block = NULL;
    if (random[0] & 1) {
        if (posix_memalign(&block, alignment, bytes) != 0) block = NULL;
    } else {
        bytes = (bytes + alignment - 1) & ~(alignment - 1);
        block = aligned_alloc(alignment, bytes);
    }
    if (((uintptr_t)need(block) & (alignment - 1)) != 0) stop("a block is not aligned as asked");
    block_write(block, bytes, PAGE, random[0] ^ alignment);
    return block;
}

static struct outcome run_aligned(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    uint64_t operations = scaled(job, shape->operations), sum = 0;
    uint64_t random = random_start(job->seed, shape->log_max);
    void **live = own_memory(shape->live_count * sizeof *live);
    for (uint32_t i = 0; i < shape->live_count; i++) live[i] = new_aligned(shape, &random);
    for (uint64_t i = 0; i < operations; i++) {
        void **victim = &live[random_below(&random, shape->live_count)];
        sum = sum * 3 + block_word(*victim);
        free(*victim);
        *victim = new_aligned(shape, &random);
    }
    for (uint32_t i = 0; i < shape->live_count; i++) {
        sum = sum * 3 + block_word(live[i]);
        free(live[i]);
    }
    return (struct outcome){ sum, operations + shape->live_count };
}

static const struct shape lines = { 5, 8, 32, 1024, 10000, 18000000 };
static const struct shape pages = { 9, 15, 4096, 131072, 400, 2000000 };

static const struct workload workloads[] = {
    { "aligned-lines", "aligned",
      "10,000 live blocks of 32 to 1,024 bytes aligned to 32 to 256, a random one replaced",
      "records on cache lines; Lever and Boreham", 1, &lines, run_aligned, SUITE_TIMED, NULL,
      NULL },
    { "aligned-pages", "aligned",
      "400 live buffers of 4 to 128 KB aligned to 512 bytes to 32 KB, a random one replaced",
      "buffers of databases; Lever and Boreham", 1, &pages, run_aligned, SUITE_TIMED, NULL, NULL },
};

const struct workload_list aligned_list = { workloads, sizeof workloads / sizeof *workloads };
