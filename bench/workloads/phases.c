/* phases.c - a heap that grows, rests, shrinks, and grows again with other sizes.
 * SPDX-License-Identifier: MIT
 *
 * Idea: Wilson's survey on plateaus, ramps and peaks: programs work in phases, and what one phase
 * leaves must serve the next or go back. An allocator that purges in each rest pays with faults in
 * the next phase; one that never does holds every phase's peak of its own sizes. */
#include "sizes.h"

#include <stdlib.h>

enum {
    PHASES = 6,
    SURVIVORS_ONE_IN = 20,
    PHASE_BYTES = 60 << 20,
    BLOCKS_MAX = PHASE_BYTES / 24 + 1
};

struct band {
    size_t bytes_min, bytes_max;
};

static const struct band bands[PHASES] = {
    { 24, 80 }, { 3000, 9000 }, { 100, 300 }, { 20000, 90000 }, { 400, 1500 }, { 24, 200 },
};

struct state {
    void **block;
    uint32_t count;
    uint64_t sum, operations, random;
};

static void grow(struct state *state, const struct band *band)
{
    for (size_t total = 0; total < PHASE_BYTES && state->count < BLOCKS_MAX;) {
        size_t bytes = size_between(&state->random, band->bytes_min, band->bytes_max);
        void *block = need(malloc(bytes));
        block_write(block, bytes, PAGE, state->random ^ bytes);
        state->block[state->count++] = block;
        state->operations++;
        total += bytes;
    }
}

/* Replaces a random tenth, as a program does that works with what it built. */
static void work(struct state *state, const struct band *band)
{
    for (uint32_t i = 0; i < state->count / 10; i++) {
        void **victim = &state->block[random_below(&state->random, state->count)];
        size_t bytes = size_between(&state->random, band->bytes_min, band->bytes_max);
        state->sum = state->sum * 3 + block_word(*victim);
        free(*victim);
        *victim = need(malloc(bytes));
        block_write(*victim, bytes, PAGE, state->random ^ bytes);
        state->operations++;
    }
}

static void shrink(struct state *state, uint32_t survivors_one_in)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < state->count; i++) {
        if (survivors_one_in != 0 && random_below(&state->random, survivors_one_in) == 0) {
            state->block[kept++] = state->block[i];
            continue;
        }
        state->sum = state->sum * 3 + block_word(state->block[i]);
        free(state->block[i]);
    }
    state->count = kept;
}

static struct outcome run_phases(const struct job *job)
{
    uint64_t rounds = scaled(job, 3);
    struct state state = { .block = own_memory(BLOCKS_MAX * sizeof *state.block),
                           .random = random_start(job->seed, 0) };
    for (uint64_t round = 0; round < rounds; round++)
        for (unsigned i = 0; i < PHASES; i++) {
            grow(&state, &bands[i]);
            work(&state, &bands[i]);
            pause_ms(20);
            shrink(&state, SURVIVORS_ONE_IN);
            pause_ms(20);
        }
    shrink(&state, 0);
    return (struct outcome){ state.sum, state.operations };
}

static const struct workload workloads[] = {
    { "phases", "fragmentation",
      "grow by 60 MB, work, rest, free all but one in 20, rest, and again with five other ranges "
      "of sizes",
      "plateaus, ramps and peaks in Wilson's survey", 1, NULL, run_phases, SUITE_TIMED, NULL,
      NULL },
};

const struct workload_list phases_list = { workloads, sizeof workloads / sizeof *workloads };
