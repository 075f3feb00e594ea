/* sleepers_model.c - a thread calls at any moment of a look at whether it sleeps: its cache is taken
 * from it when it was between two calls all the time, and else it keeps it. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "cache/cache_list.h"
#include "cache/sleepers.h"
#include "heap/misuse.h"

#include "explore.h"

enum {
    CALLS = 1,
    BYTES = 200,
    WARM_TIMES = 10,
    LARGE_BYTES = 32 * 1024,
    OTHER_LARGE_BYTES = 28 * 1024
};

/* What the kernel knows of it. */
static bool is_between_calls, never_wakes;
static unsigned calls, calls_at_look;
static void *block[CALLS];

static bool sleeps(bool since)
{
    bool result;

    explore_point(&calls);
    result = is_between_calls && (!since || calls == calls_at_look);
    calls_at_look = calls;
    return result || (since && never_wakes);
}

/* What is under the locks of other floors is other models' business. */
static void ignore_lock(struct lock *lock)
{
    if (lock != &threads_lock) explore_ignore(&lock->state);
}

static void setup(void)
{
    prairie_free(prairie_malloc(1));
    lock_take(&making_lock);
    inside_each_lock(ignore_lock, WALK_TAKES);
    lock_give(&making_lock);
    (void)fake_naps(sleeps);
}

/* The one that is looked at comes to hold much, in two runs, which are soon given back, and rests until
 * the next look is the one. */
static void warm(unsigned thread)
{
    if (thread == 1) return;
    for (unsigned i = 0; i < WARM_TIMES; i++) prairie_free(prairie_malloc(LARGE_BYTES));
    prairie_free(prairie_malloc(OTHER_LARGE_BYTES));
    for (unsigned i = 0; i < CALLS; i++) block[i] = prairie_malloc(BYTES);
    for (unsigned i = 0; i < CALLS; i++) prairie_free(block[i]);
    while (fake_naps(sleeps) == 0) expect(sleepers_look());
    is_between_calls = true;
}

/* As a door does, but that it may be interrupted in the middle of its short way. */
static void *take(void)
{
    struct magazine *magazine = &thread_word()->magazine[class_of_size(BYTES)];
    void *taken = *magazine->top;

    explore_point(&calls);
    if (taken == NULL) return prairie_malloc(BYTES);
    magazine->top--;
    return misuse_note_take(taken);
}

static void body(unsigned thread)
{
    if (thread == 1) {
        (void)sleepers_look();
        return;
    }
    for (unsigned i = 0; i < CALLS; i++) {
        calls++;
        is_between_calls = false;
        explore_point(&calls);
        block[i] = take();
        is_between_calls = true;
        explore_point(&calls);
    }
}

static void finish(void)
{
    for (unsigned i = 0; i < CALLS; i++) {
        expect(block[i] != NULL);
        prairie_free(block[i]);
    }
    expect(inside_holds_no_lock());
    prairie_check_all();
}

static void take_from_one_that_woke(void) { never_wakes = true; }

const struct model sleepers_model = {
    .name = "sleepers",
    .threads = 2,
    .interruptions = 2,
    .setup = setup,
    .warm = warm,
    .body = body,
    .finish = finish,
    .breakages = { { "one that woke up is taken for one that sleeps", take_from_one_that_woke } },
};
