/* relay.c - batches of all sizes that one thread allocates and the next one frees.
 * SPDX-License-Identifier: MIT
 *
 * Idea: stress tests of mallocs with short runs over many threads: eight lanes, in each of which a
 * thread lives for some 50 ms. It frees the batch that its predecessor left, renews random blocks
 * of its own, and leaves them to its successor. Sizes go from 8 bytes to 1 MB, every doubling as
 * likely as the next up to 4 KB and half as likely beyond. It strains what a thread's end and its
 * successor's first calls cost, and how soon memory of all sizes serves another thread. */
#include "sizes.h"

#include <pthread.h>
#include <stdlib.h>

enum { BATCH_BLOCKS = 1500, RENEWALS = 60000 };

struct shape {
    unsigned lanes;
    unsigned generations;
};

struct lane {
    _Alignas(OWN_LINES) void *left[BATCH_BLOCKS]; /* by the thread before */
    uint64_t random, sum, renewals;
};

/* From 8 bytes to 4 KB, and one in 32 from there to 1 MB. */
static size_t any_size(uint64_t *random)
{
    uint64_t bits = random_next(random);
    unsigned doubling = (unsigned)(bits % 9);
    size_t base;

    if ((bits >> 8 & 31) == 0) doubling = 9 + (unsigned)__builtin_ctzll((bits >> 13) | 1u << 7);
    base = (size_t)8 << doubling;
    return base + (size_t)(((bits >> 32) * base) >> 32);
}

static void renew(struct lane *lane, void **slot)
{
    size_t bytes = any_size(&lane->random);
    if (*slot != NULL) lane->sum += block_word(*slot);
    free(*slot);
    *slot = need(malloc(bytes));
    block_write(*slot, bytes, PAGE, lane->random ^ bytes);
}

static void *live(void *argument)
{
    struct lane *lane = argument;
    for (unsigned i = 0; i < BATCH_BLOCKS; i++) {
        if (lane->left[i] != NULL) lane->sum += block_word(lane->left[i]);
        free(lane->left[i]);
        lane->left[i] = NULL;
    }
    for (uint64_t i = 0; i < lane->renewals; i++)
        renew(lane, &lane->left[random_below(&lane->random, BATCH_BLOCKS)]);
    return NULL;
}

static struct outcome run_relay(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    uint64_t generations = scaled(job, shape->generations), sum = 0;
    struct lane *lane = own_memory(shape->lanes * sizeof *lane);

    for (unsigned i = 0; i < shape->lanes; i++) {
        lane[i].random = random_start(job->seed, i);
        lane[i].renewals = RENEWALS;
    }
    for (uint64_t i = 0; i < generations; i++) run_threads(shape->lanes, live, lane, sizeof *lane);
    for (unsigned i = 0; i < shape->lanes; i++) lane[i].renewals = 0;
    run_threads(shape->lanes, live, lane, sizeof *lane);
    for (unsigned i = 0; i < shape->lanes; i++) sum += lane[i].sum;
    return (struct outcome){ sum, generations * shape->lanes * RENEWALS };
}

static const struct shape eight = { 8, 20 };

static const struct workload workloads[] = {
    { "relay-8", "threads",
      "20 times 8 threads free what the last ones left, renew 1,500 blocks of 8 bytes to 1 MB, and "
      "leave them",
      "stress tests of mallocs with short runs", 8, &eight, run_relay, SUITE_TIMED, NULL, NULL },
};

const struct workload_list relay_list = { workloads, sizeof workloads / sizeof *workloads };
