/* lock_model.c - the lock: one holder at a time, and nobody sleeps for ever. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "explore.h"

static struct lock lock;
static unsigned counter, inside;

static void setup(void)
{
    lock_set_spin(0);
    lock_init(&lock, LOCK_META);
}

static void body(unsigned thread)
{
    for (unsigned round = 0; round < (thread == 0 ? 2 : 1); round++) {
        unsigned seen;

        lock_take(&lock);
        expect(inside++ == 0);
        seen = counter;
        explore_point(&counter);
        counter = seen + 1;
        inside--;
        lock_give(&lock);
    }
}

static void finish(void)
{
    expect(counter == 4);
    expect(lock.state == LOCK_FREE && lock.taken == 4 && lock.sleepers == 0);
}

static void split(void) { explore_split(&lock.state); }

const struct model lock_model = {
    .name = "lock",
    .threads = 3,
    .interruptions = 3,
    .setup = setup,
    .body = body,
    .finish = finish,
    .breakages = { { "who sleeps is not woken", explore_lose_wakes },
                   { "taking is not one step", split } },
};
