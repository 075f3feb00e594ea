/* depot_model.c - threads that trade magazines at one depot: no block has two holders. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "explore.h"

enum { THREADS = 2, BLOCKS = 10, BLOCK_BYTES = 64 };

static void *blocks[THREADS][BLOCKS];
static struct arena *arena;

static void setup(void)
{
    prairie_free(prairie_malloc(1));
    arena = arena_at(0);
}

static void take_all(unsigned thread)
{
    for (unsigned i = 0; i < BLOCKS; i++) blocks[thread][i] = prairie_malloc(BLOCK_BYTES);
}

/* Full magazines, some of them at the depot. */
static void warm(unsigned thread)
{
    take_all(thread);
    for (unsigned i = 0; i < BLOCKS; i++) prairie_free(blocks[thread][i]);
    take_all(thread);
    for (unsigned i = 0; i < BLOCKS / 2; i++) prairie_free(blocks[thread][i]);
}

static void body(unsigned thread)
{
    for (unsigned i = BLOCKS / 2; i < BLOCKS; i++) prairie_free(blocks[thread][i]);
    take_all(thread);
}

static void finish(void)
{
    for (unsigned i = 0; i < THREADS * BLOCKS; i++) {
        void *block = blocks[i / BLOCKS][i % BLOCKS];

        expect(block != NULL);
        for (unsigned j = 0; j < i; j++) expect(blocks[j / BLOCKS][j % BLOCKS] != block);
    }
    for (unsigned i = 0; i < THREADS * BLOCKS; i++) prairie_free(blocks[i / BLOCKS][i % BLOCKS]);
    thread_flush();
    prairie_check_all();
}

static void split(void) { explore_split(&arena->lock.state); }

const struct model depot_model = {
    .name = "depot",
    .threads = THREADS,
    .interruptions = 2,
    .setup = setup,
    .warm = warm,
    .body = body,
    .finish = finish,
    .breakages = { { "taking the arena's lock is not one step", split } },
};
