/* longlived.c - a long-lived heap with a churning part: what fragmentation costs over time.
 * SPDX-License-Identifier: MIT
 *
 * Idea: Wilson, Johnstone, Neely and Boles' survey and Johnstone's thesis: real programs keep most
 * of what they build, while short-lived blocks come and go between. The memory that such a process
 * holds over its life matters as much as its time. In the drifting one the typical size changes
 * from epoch to epoch, so that holes of old sizes have to serve new ones. */
#include "sizes.h"

#include <stdlib.h>

enum { KEPT = 250000, PASSING = 20000, KEPT_ONE_IN = 12, EPOCHS = 12 };

struct shape {
    uint32_t operations;
    unsigned drifts; /* 1: the typical size is multiplied by an epoch's factor */
};

/* In quarters. The last one returns to where it began. */
static const unsigned factors[EPOCHS] = { 4, 6, 3, 8, 5, 12, 2, 7, 10, 3, 9, 4 };

static void *new_block(uint64_t *random, unsigned quarters, size_t *bytes)
{
    *bytes = size_program(random) * quarters / 4;
    void *block = need(malloc(*bytes));
    block_write(block, *bytes, PAGE, random[0] ^ *bytes);
    return block;
}

struct heap {
    void **block;
    uint32_t *bytes;
    uint64_t live_bytes, live_bytes_max, sum;
};

static void replace(struct heap *heap, uint32_t index, uint64_t *random, unsigned quarters)
{
    size_t bytes;
    heap->sum = heap->sum * 3 + block_word(heap->block[index]);
    heap->live_bytes -= heap->bytes[index];
    free(heap->block[index]);
    heap->block[index] = new_block(random, quarters, &bytes);
    heap->bytes[index] = (uint32_t)bytes;
    heap->live_bytes += bytes;
    if (heap->live_bytes > heap->live_bytes_max) heap->live_bytes_max = heap->live_bytes;
}

static struct outcome run_longlived(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    uint64_t operations = scaled(job, shape->operations);
    uint64_t random = random_start(job->seed, 0);
    struct heap heap = { .block = own_resident_memory((KEPT + PASSING) * sizeof *heap.block),
                         .bytes = own_resident_memory((KEPT + PASSING) * sizeof *heap.bytes) };
    double before = resident_kb();

    for (uint32_t i = 0; i < KEPT + PASSING; i++) {
        size_t bytes;
        heap.block[i] = new_block(&random, 4, &bytes);
        heap.bytes[i] = (uint32_t)bytes;
        heap.live_bytes += bytes;
    }
    for (uint64_t i = 0; i < operations; i++) {
        unsigned quarters = shape->drifts ? factors[i * EPOCHS / operations] : 4;
        uint32_t index = i % KEPT_ONE_IN == 0 ? random_below(&random, KEPT)
                                              : KEPT + random_below(&random, PASSING);
        replace(&heap, index, &random, quarters);
    }
    report_figure("resident_per_live_end",
                  (resident_kb() - before) * 1024 / (double)heap.live_bytes, "ratio");
    report_figure("peak_per_live_peak",
                  (resident_peak_kb() - before) * 1024 / (double)heap.live_bytes_max, "ratio");
    for (uint32_t i = 0; i < KEPT + PASSING; i++) {
        heap.sum = heap.sum * 3 + block_word(heap.block[i]);
        free(heap.block[i]);
    }
    return (struct outcome){ heap.sum, operations + KEPT + PASSING };
}

static const struct shape steady = { 18000000, 0 };
static const struct shape drifting = { 15000000, 1 };

static const struct workload workloads[] = {
    { "longlived", "fragmentation",
      "250,000 long-lived blocks, 20,000 short-lived ones between them, one in 12 replaces a "
      "long-lived one",
      "Wilson's survey; Johnstone's thesis on fragmentation", 1, &steady, run_longlived,
      SUITE_TIMED, NULL, NULL },
    { "drift", "fragmentation",
      "the same, while the typical size changes twelve times between a half and three times the "
      "first",
      "Wilson's survey; Johnstone's thesis on fragmentation", 1, &drifting, run_longlived,
      SUITE_TIMED, NULL, NULL },
};

const struct workload_list longlived_list = { workloads, sizeof workloads / sizeof *workloads };
