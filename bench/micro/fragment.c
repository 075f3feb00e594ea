/* fragment.c - a long-lived heap of constant size whose blocks change their sizes from phase to
 * phase.
 * SPDX-License-Identifier: MIT
 *
 * 20 MB are live all the time. In each of the four phases of a round as many bytes are allocated as
 * are live, in the sizes of that phase, and blocks chosen at random among all are freed to make
 * room. So every phase starts in the holes of the others, and blocks of each outlive it. An
 * operation is one malloc with its free. Peak memory beyond these 20 MB and the table of blocks (up
 * to 8 MB) is what fragmentation and caches cost. */
#include "micro.h"

#include <stdlib.h>

enum { LIVE_BYTES = 20000000, BLOCKS_MAX = LIVE_BYTES / 16, PHASE_COUNT = 4 };

struct live_block {
    void *block;
    uint32_t bytes;
};

static const uint32_t phase_bytes_min[PHASE_COUNT] = { 16, 1024, 64, 256 };

static struct live_block *live;
static uint32_t live_count, live_bytes;
static uint64_t stream = 0xA0761D6478BD642Full;

static void free_one(void)
{
    uint32_t victim = random_below(&stream, live_count);
    free(live[victim].block);
    live_bytes -= live[victim].bytes;
    live[victim] = live[--live_count];
}

/* Returns how many blocks it allocated. */
static uint64_t run_phase(uint32_t bytes_min)
{
    uint64_t allocated_bytes = 0, count = 0;
    while (allocated_bytes < LIVE_BYTES) {
        uint32_t bytes = bytes_min + random_below(&stream, 3 * bytes_min);
        while (live_bytes + bytes > LIVE_BYTES) free_one();
        void *block = bench_need(malloc(bytes));
        touch_first_word(block);
        live[live_count++] = (struct live_block){ block, bytes };
        live_bytes += bytes;
        allocated_bytes += bytes;
        count++;
    }
    return count;
}

static uint64_t phases_round(const struct pattern *pattern)
{
    uint64_t count = 0;
    (void)pattern;
    for (unsigned i = 0; i < PHASE_COUNT; i++) count += run_phase(phase_bytes_min[i]);
    return count;
}

static void phases_prepare(const struct pattern *pattern)
{
    live = bench_memory(BLOCKS_MAX * sizeof *live);
    (void)phases_round(pattern);
}

static const struct pattern patterns[] = {
    { "size-phases",
      "20 MB live, blocks replaced at random while their sizes change: fragmentation, see the peak",
      1, NULL, phases_prepare, phases_round },
};

const struct family fragment_family = { patterns, sizeof patterns / sizeof *patterns };
