/* pins.c - ever larger blocks, of which a few of each size stay behind and pin memory.
 * SPDX-License-Identifier: MIT
 *
 * Idea: the program of Robson's bound for non-moving allocators: fill memory with blocks of one
 * size, free all but a few, so that the next, larger size fits nowhere between them. Here one in 16
 * stays, at random places, and sizes go from 16 bytes to 52,597 by factors of 1.5; then all that
 * stayed is freed, and the next round begins. */
#include "sizes.h"

#include <stdlib.h>

enum { FILL_BYTES = 24 << 20, PINNED_ONE_IN = 16, SIZES = 21, BLOCKS_MAX = FILL_BYTES / 16 };
/* All sizes together have three times the blocks of the first, of which a sixteenth stays. */
enum { PINNED_MAX = BLOCKS_MAX / 4 };

struct state {
    void **block;  /* of the size that is being filled */
    void **pinned; /* of all sizes so far */
    uint32_t pinned_count;
    uint64_t pinned_bytes, sum, operations, random;
};

static void fill_and_pin(struct state *state, size_t bytes)
{
    uint32_t count = (uint32_t)(FILL_BYTES / bytes);
    for (uint32_t i = 0; i < count; i++) {
        state->block[i] = need(malloc(bytes));
        block_write(state->block[i], bytes, PAGE, bytes * 31 + i);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (random_below(&state->random, PINNED_ONE_IN) == 0) {
            if (state->pinned_count == PINNED_MAX) stop("more pinned blocks than the table holds");
            state->pinned[state->pinned_count++] = state->block[i];
            state->pinned_bytes += bytes;
        } else {
            state->sum = state->sum * 3 + block_word(state->block[i]);
            free(state->block[i]);
        }
    }
    state->operations += count;
}

static void free_pinned(struct state *state)
{
    for (uint32_t i = 0; i < state->pinned_count; i++) {
        state->sum = state->sum * 3 + block_word(state->pinned[i]);
        free(state->pinned[i]);
    }
    state->pinned_count = 0;
    state->pinned_bytes = 0;
}

static struct outcome run_pins(const struct job *job)
{
    uint64_t rounds = scaled(job, 5);
    struct state state = { .block = own_resident_memory(BLOCKS_MAX * sizeof *state.block),
                           .pinned = own_resident_memory(PINNED_MAX * sizeof *state.pinned),
                           .random = random_start(job->seed, 0) };
    double before = resident_kb();
    for (uint64_t round = 0; round < rounds; round++) {
        size_t bytes = 16;
        for (unsigned i = 0; i < SIZES; i++, bytes += bytes / 2) fill_and_pin(&state, bytes);
        double live_bytes = (double)(state.pinned_bytes + FILL_BYTES);
        if (round == 0)
            report_figure("peak_per_live_peak", (resident_peak_kb() - before) * 1024 / live_bytes,
                          "ratio");
        free_pinned(&state);
    }
    return (struct outcome){ state.sum, state.operations };
}

static const struct workload workloads[] = {
    { "pins", "fragmentation",
      "24 MB of one size, all but one in 16 freed, then the next larger size, 16 bytes to 51 KB",
      "Robson's bound for allocators that cannot move", 1, NULL, run_pins, SUITE_TIMED, NULL,
      NULL },
};

const struct workload_list pins_list = { workloads, sizeof workloads / sizeof *workloads };
