/* burst.c - many small blocks allocated together and freed in order, in reverse or at random.
 * SPDX-License-Identifier: MIT
 *
 * Idea: MicroQuill's sh6bench and sh8bench, whose frees come in the order of allocation, against
 * it, and interleaved from several batches. It strains the shape of free lists and how well a cache
 * lets go of thousands of blocks and takes them back. */
#include "sizes.h"

#include <stdlib.h>

enum { BURST_BLOCKS = 100000, BATCHES = 8, BATCH_BLOCKS = 20000 };

enum order { IN_ORDER, REVERSE, AT_RANDOM };

struct shape {
    enum order order;
    uint32_t bursts;
};

static uint32_t *order_of_frees(enum order order, uint64_t *random)
{
    uint32_t *index = own_memory(BURST_BLOCKS * sizeof *index);
    for (uint32_t i = 0; i < BURST_BLOCKS; i++)
        index[i] = order == REVERSE ? BURST_BLOCKS - 1 - i : i;
    for (uint32_t i = BURST_BLOCKS - 1; order == AT_RANDOM && i > 0; i--) {
        uint32_t other = random_below(random, i + 1), swapped = index[i];
        index[i] = index[other];
        index[other] = swapped;
    }
    return index;
}

static struct outcome run_burst(const struct job *job)
{
    const struct shape *shape = job->workload->shape;
    uint64_t bursts = scaled(job, shape->bursts), sum = 0;
    uint64_t random = random_start(job->seed, 0);
    const uint32_t *index = order_of_frees(shape->order, &random);
    void **block = own_memory(BURST_BLOCKS * sizeof *block);

    for (uint64_t i = 0; i < bursts; i++) {
        for (uint32_t j = 0; j < BURST_BLOCKS; j++) block[j] = new_program_block(&random);
        for (uint32_t j = 0; j < BURST_BLOCKS; j++) {
            sum = sum * 3 + block_word(block[index[j]]);
            free(block[index[j]]);
        }
    }
    return (struct outcome){ sum, bursts * BURST_BLOCKS };
}

static uint64_t free_some(void **block, uint32_t first, uint32_t step)
{
    uint64_t sum = 0;
    for (uint32_t i = first; i < BATCH_BLOCKS; i += step) {
        if (block[i] == NULL) continue;
        sum += block_word(block[i]) * (i + 1);
        free(block[i]);
        block[i] = NULL;
    }
    return sum;
}

/* Eight batches are alive. When a batch comes round again it is freed for good; the two before it
 * lose every second and every third of their blocks, from either end of their age. */
static struct outcome run_interleaved(const struct job *job)
{
    uint64_t batches = scaled(job, 1400), sum = 0;
    uint64_t random = random_start(job->seed, 0);
    void *(*block)[BATCH_BLOCKS] = own_memory(BATCHES * sizeof *block);

    for (uint64_t i = 0; i < batches; i++) {
        sum += free_some(block[i % BATCHES], 0, 1);
        for (uint32_t j = 0; j < BATCH_BLOCKS; j++)
            block[i % BATCHES][j] = new_program_block(&random);
        sum += free_some(block[(i + 3) % BATCHES], 0, 2);
        sum += free_some(block[(i + 6) % BATCHES], 1, 3);
    }
    for (unsigned i = 0; i < BATCHES; i++) sum += free_some(block[i], 0, 1);
    return (struct outcome){ sum, batches * BATCH_BLOCKS };
}

static const struct shape in_order = { IN_ORDER, 350 };
static const struct shape reverse = { REVERSE, 350 };
static const struct shape at_random = { AT_RANDOM, 300 };

static const struct workload workloads[] = {
    { "burst-order", "small",
      "100,000 blocks of mixed sizes allocated, then freed in the same order", "sh6bench", 1,
      &in_order, run_burst, SUITE_TIMED, NULL, NULL },
    { "burst-reverse", "small", "100,000 blocks of mixed sizes allocated, then freed last to first",
      "sh6bench", 1, &reverse, run_burst, SUITE_TIMED, NULL, NULL },
    { "burst-random", "small",
      "100,000 blocks of mixed sizes allocated, then freed in a random order",
      "sh6bench; Wilson's survey on the order of frees", 1, &at_random, run_burst, SUITE_TIMED,
      NULL, NULL },
    { "burst-mixed", "small",
      "8 batches of 20,000 blocks; old ones lose every second, every third, then all blocks",
      "sh8bench", 1, NULL, run_interleaved, SUITE_TIMED, NULL, NULL },
};

const struct workload_list burst_list = { workloads, sizeof workloads / sizeof *workloads };
