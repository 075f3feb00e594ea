/* first_use_model.c - the first calls of a process, by several threads at once: everything is made
 * once. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "explore.h"

enum { THREADS = 2 };

static struct arena *made[THREADS];
static void *blocks[THREADS];
static struct lock *start_lock;

static void note_lock(struct lock *lock)
{
    if (lock->rank == LOCK_START) start_lock = lock;
}

/* The lock of the first call is static: a walk over all locks finds it; it takes none. */
static void setup(void)
{
    lock_take(&making_lock);
    inside_each_lock(note_lock, WALK_TAKES);
    lock_give(&making_lock);
}

static void body(unsigned thread)
{
    blocks[thread] = prairie_malloc(40 + thread);
    made[thread] = arena_at(1);
}

static void finish(void)
{
    expect(blocks[0] != NULL && blocks[1] != NULL && blocks[0] != blocks[1]);
    expect(made[0] != NULL && made[0] == made[1] && arenas[1] == made[0]);
    expect(fake_calls(FAKE_RESERVE) <= 3);
    expect(arenas_end() == 2);
    prairie_free(blocks[0]);
    prairie_free(blocks[1]);
    prairie_check_all();
}

static void split_making(void) { explore_split(&making_lock.state); }
static void split_start(void) { explore_split(&start_lock->state); }

const struct model first_use_model = {
    .name = "first_use",
    .threads = THREADS,
    .interruptions = 2,
    .setup = setup,
    .body = body,
    .finish = finish,
    .breakages = { { "taking the lock of making is not one step", split_making },
                   { "taking the lock of the start is not one step", split_start } },
};
