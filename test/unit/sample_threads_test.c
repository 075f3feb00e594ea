/* sample_threads_test.c - samples of many threads, and what changes while they are taken. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "samples.h"
#include "threads.h"

#include <unistd.h>

static void *free_for_another(void *block)
{
    prairie_free(block);
    for (unsigned i = 0; i < 1000; i++) prairie_free(prairie_malloc(i));
    return NULL;
}

static void another_thread_frees_it(void **state)
{
    (void)state;
    sample_from_now(1);
    for (unsigned i = 0; i < 4; i++) run_thread(free_for_another, sampled_block(50 + i * 700));
    assert_int_equal(estimate_now().live, 0);
    prairie_check_all();
}

static void walk_cancelled(void **return_address, unsigned *depth, unsigned most)
{
    pthread_testcancel();
    sampling_walk(return_address, depth, most);
}

static void take_cancelled(const void *block, size_t size, void **return_address, unsigned depth,
                           size_t bytes)
{
    (void)block, (void)size, (void)return_address, (void)depth, (void)bytes;
    pthread_testcancel();
}

static void give_cancelled(const void *block, size_t bytes)
{
    (void)block, (void)bytes;
    pthread_testcancel();
}

static bool came_back;

static void *sample_while_cancelled(void *unused)
{
    (void)unused;
    assert_int_equal(pthread_cancel(pthread_self()), 0);
    for (unsigned i = 0; i < 100; i++) prairie_free(sampled_block(100));
    came_back = true;
    pthread_testcancel();
    return NULL;
}

/* A hook that is a cancellation point does not end its thread in the midst of malloc or free. */
static void hooks_do_not_cancel_their_thread(void **state)
{
    (void)state;
    sample_from_now(1);
    sampling_hooks[HOOK_WALK].walk = walk_cancelled;
    sampling_hooks[HOOK_TAKEN].taken = take_cancelled;
    sampling_hooks[HOOK_GIVEN].given = give_cancelled;
    run_thread(sample_while_cancelled, NULL);
    assert_true(came_back);
    assert_int_equal(estimate_now().live, 0);
    prairie_check_all();
}

/* Of a test and its thread: once to begin, once to go on. */
static pthread_barrier_t meeting;

static void *wait_with_a_cache(void *unused)
{
    (void)unused;
    prairie_free(prairie_malloc(1));
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    return NULL;
}

/* A plain cache knows no magazines for frees, so a thread that has one must not meet the others. */
static void it_must_begin_alone(void **state)
{
    pthread_t thread;

    (void)state;
    pthread_barrier_init(&meeting, NULL, 2);
    pthread_create(&thread, NULL, wait_with_a_cache, NULL);
    pthread_barrier_wait(&meeting);
    assert_non_null(heap_attach());
    assert_false(sampling_start(UNWIND_DEPTH_MAX));
    prairie_free(prairie_malloc(100));
    pthread_barrier_wait(&meeting);
    pthread_join(thread, NULL);
    prairie_check_all();
}

static void *use_a_cache(void *is_sampled)
{
    for (unsigned i = 0; i < 1000; i++) prairie_free(prairie_malloc(i));
    *(bool *)is_sampled = thread_front()->kind == FRONT_SAMPLED;
    return NULL;
}

/* Is a new thread sampled? */
static bool new_thread_is_sampled(void)
{
    bool is_sampled = false;

    run_thread(use_a_cache, &is_sampled);
    return is_sampled;
}

/* What threads had before is of no use to those that come. */
static void it_may_begin_after_others_ended(void **state)
{
    void *block[100], *first_cache_of_all;

    (void)state;
    for (unsigned i = 0; i < 100; i++) block[i] = prairie_malloc(i * 20);
    assert_false(new_thread_is_sampled());
    first_cache_of_all = thread_front()->cache;
    sample_from_now(1);
    assert_ptr_not_equal(thread_front()->cache, first_cache_of_all);
    prairie_check_all();
    for (unsigned i = 0; i < 3; i++) assert_true(new_thread_is_sampled());
    assert_true(estimate_now().taken > 1000);
    for (unsigned i = 0; i < 100; i++) prairie_free(block[i]);
    assert_int_equal(estimate_now().live, 0);
    prairie_check_all();
}

static void *hold_metadata(void *unused)
{
    (void)unused;
    lock_take(&meta.lock);
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    lock_give(&meta.lock);
    return NULL;
}

/* The cache of a thread that calls for the first time while sampling begins. */
static void one_that_begins_meanwhile_is_sampled(void **state)
{
    pthread_t holder, late;
    struct cache *fresh;
    bool is_sampled = false;

    (void)state;
    pthread_barrier_init(&meeting, NULL, 2);
    prairie_free(prairie_malloc(1));
    fresh = counting_make_sampled();
    pthread_create(&holder, NULL, hold_metadata, NULL);
    pthread_barrier_wait(&meeting);
    pthread_create(&late, NULL, use_a_cache, &is_sampled);
    /* Until it asks for the memory of a plain cache. */
    while (RELAXED_LOAD(meta.lock.sleepers) == 0) usleep(100);
    inside_sample_this_thread(fresh);
    pthread_barrier_wait(&meeting);
    pthread_join(holder, NULL);
    pthread_join(late, NULL);
    assert_true(is_sampled);
    prairie_check_all();
}

/* Whether a thread asks for its totals says nothing about its blocks. */
static void *ask_between_two_blocks(void *totals_too)
{
    void *block = prairie_malloc(48);

    if (totals_too != NULL) (void)prairie_thread_totals();
    prairie_free(prairie_malloc(48));
    prairie_free(block);
    return NULL;
}

static void short_threads_are_estimated(void **state)
{
    enum { THREADS = 3000, BYTES_EACH = 2 * 48 };
    uint64_t before;

    (void)state;
    sample_from_now(PERIOD / 4);
    before = sampler_taken_bytes();
    for (unsigned i = 0; i < THREADS; i++)
        run_thread(ask_between_two_blocks, i % 2 == 0 ? &before : NULL);
    assert_int_equal(sampler_taken_bytes() - before, THREADS * BYTES_EACH);
    expect_close(THREADS * BYTES_EACH);
}

/* What belonged to the thread before is not the next one's. */
static void *take_a_name(void *was_new)
{
    struct sampler *sampler;

    prairie_free(prairie_malloc(1));
    sampler = ((struct counting_front *)thread_front())->sampler;
    *(bool *)was_new = sampler->name == 0 && !sampler->is_off;
    sampler->name = 1;
    sampler->is_off = true;
    (void)prairie_thread_totals();
    return NULL;
}

static void a_record_is_as_new_for_the_next_thread(void **state)
{
    (void)state;
    sample_from_now(PERIOD);
    for (unsigned i = 0; i < 3; i++) {
        bool was_new = false;

        run_thread(take_a_name, &was_new);
        assert_true(was_new);
    }
}

/* Blocks that might still pass under the old one may not. */
static void a_new_period_is_followed_at_the_next_look(void **state)
{
    (void)state;
    sample_from_now((uint64_t)1 << 50);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        prairie_free(prairie_malloc(class_bytes[class_index]));
    sampler_set_period(1);
    prairie_free(prairie_malloc(1 << 20)); /* large blocks always look */
    assert_int_equal(estimate_now().taken, 1);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        prairie_free(prairie_malloc(class_bytes[class_index]));
    assert_int_equal(estimate_now().taken, CLASS_COUNT);
}

/* Its arena is the one it is bound to, as before. */
static void a_bound_thread_stays_so(void **state)
{
    struct arena *arena;

    (void)state;
    prairie_free(prairie_malloc(1));
    arena = thread_arena();
    thread_bind(arena);
    assert_int_equal(arena->threads, 1);
    sample_from_now(PERIOD);
    assert_ptr_equal(thread_arena(), arena);
    assert_int_equal(thread_front()->cache->fixed, CACHE_BOUND);
    assert_int_equal(arena->threads, 1);
}

UNIT_MAIN(UNIT_TEST(it_may_begin_after_others_ended),
          UNIT_TEST(one_that_begins_meanwhile_is_sampled), UNIT_TEST(short_threads_are_estimated),
          UNIT_TEST(a_record_is_as_new_for_the_next_thread),
          UNIT_TEST(a_new_period_is_followed_at_the_next_look), UNIT_TEST(a_bound_thread_stays_so),
          UNIT_TEST(another_thread_frees_it), UNIT_TEST(it_must_begin_alone),
          UNIT_TEST(hooks_do_not_cancel_their_thread))
