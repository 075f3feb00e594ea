/* cache_list_test.c - what becomes of caches that are drained and wait for a thread. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "cache/cache_list.h"
#include "heap/hardened.h"
#include "space/commit.h"
#include "threads.h"

enum { SIZE = 48, CROWD = 100, KEPT = 8 };

static pthread_barrier_t together;

/* Leaves a drained cache: nothing of one that is bound is for the next thread. */
static void *live(void *unused)
{
    prairie_free(prairie_malloc(SIZE));
    thread_bind(arenas[0]);
    pthread_barrier_wait(&together);
    return unused;
}

/* So many threads, all at once. */
static void crowd(unsigned count)
{
    pthread_t thread[CROWD];

    assert_int_equal(pthread_barrier_init(&together, NULL, count), 0);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, live, NULL), 0);
    for (unsigned i = 0; i < count; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    pthread_barrier_destroy(&together);
}

static size_t pages_of(unsigned caches) { return (size_t)caches * 4 * KiB; }

/* What a crowd leaves in records beside its caches is there for the next one. */
static size_t start_with_crowd(void)
{
    size_t before;

    fake_cores(1);
    prairie_free(prairie_malloc(SIZE));
    before = commit.record_bytes;
    crowd(CROWD);
    assert_true(commit.record_bytes >= before + pages_of(CROWD));
    return commit.record_bytes;
}

static void what_no_thread_needs_goes_to_the_kernel(void **state)
{
    size_t records = start_with_crowd();
    uint64_t purged = fake_purged_bytes();

    (void)state;
    assert_false(cache_list_give_unneeded(CLEAR_UNNEEDED)); /* learns how many there are */
    crowd(CROWD / 4);
    assert_int_equal(commit.record_bytes, records);
    assert_true(cache_list_give_unneeded(CLEAR_UNNEEDED));
    assert_int_equal(commit.record_bytes, records - pages_of(CROWD - CROWD / 4));
    /* one of the pages names the others */
    assert_int_equal(fake_purged_bytes() - purged, pages_of(CROWD - CROWD / 4 - 1));
    assert_true(cache_list_give_unneeded(CLEAR_UNNEEDED));
    assert_int_equal(commit.record_bytes, records - pages_of(CROWD - KEPT));
    assert_false(cache_list_give_unneeded(CLEAR_UNNEEDED));
    assert_int_equal(fake_purged_bytes() - purged, pages_of(CROWD - KEPT - 1));
    crowd(CROWD);
    assert_int_equal(commit.record_bytes, records);
    prairie_check_all();
}

static void all_but_few_go_when_memory_is_wanted(void **state)
{
    size_t records = start_with_crowd();

    (void)state;
    (void)arenas_clear(CLEAR_ALL);
    assert_int_equal(commit.record_bytes, records - pages_of(CROWD - KEPT));
}

static void *fill_and_end(void *cache)
{
    prairie_free(prairie_malloc(SIZE));
    thread_bind(arenas[0]);
    *(struct cache **)cache = thread_front()->cache;
    return NULL;
}

static void threads_one_after_another_have_the_same_one(void **state)
{
    struct cache *first, *later;
    uint64_t purged;

    (void)state;
    fake_cores(1);
    prairie_free(prairie_malloc(SIZE));
    run_thread(fill_and_end, &first);
    purged = fake_purged_bytes();
    for (unsigned i = 0; i < 3; i++) {
        (void)arenas_clear(CLEAR_ALL);
        (void)arenas_clear(CLEAR_UNNEEDED);
        run_thread(fill_and_end, &later);
        assert_ptr_equal(later, first);
    }
    assert_int_equal(fake_purged_bytes(), purged);
}

/* Two looks are all that it takes after the last thread but one has ended. */
static void the_background_thread_of_one_thread_gives_them_back(void **state)
{
    size_t records = start_with_crowd();

    (void)state;
    if (!fake_thread_waits()) assert_true(inside_want_background());
    assert_true(fake_thread_run());
    assert_int_equal(commit.record_bytes, records - pages_of(CROWD - KEPT));
}

static void a_crowd_that_ends_asks_for_a_look(void **state)
{
    pthread_t bystander;

    (void)state;
    bystander = begin_bystander();
    assert_false(fake_thread_waits());
    crowd(CROWD / 2);
    assert_false(fake_thread_waits());
    crowd(CROWD);
    assert_true(fake_thread_waits());
    end_bystander(bystander);
}

/* Those lie in records of another size, which stay as they are. */
static void caches_of_a_sampled_process_stay(void **state)
{
    size_t records;

    (void)state;
    fake_cores(1);
    prairie_free(prairie_malloc(SIZE));
    assert_true(threads_sample());
    crowd(CROWD);
    records = commit.record_bytes;
    assert_false(cache_list_give_unneeded(CLEAR_ALL));
    assert_int_equal(commit.record_bytes, records);
    crowd(CROWD);
    assert_int_equal(commit.record_bytes, records);
    prairie_check_all();
}

static void caches_of_a_hardened_process_go(void **state)
{
    size_t before;

    (void)state;
    fake_cores(1);
    prairie_free(prairie_malloc(SIZE));
    assert_true(hardened_start());
    before = commit.record_bytes;
    crowd(CROWD);
    assert_true(commit.record_bytes >= before + pages_of(CROWD));
    assert_true(cache_list_give_unneeded(CLEAR_ALL));
    assert_true(commit.record_bytes < before + pages_of(CROWD));
    crowd(CROWD);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(what_no_thread_needs_goes_to_the_kernel),
          UNIT_TEST(all_but_few_go_when_memory_is_wanted),
          UNIT_TEST(threads_one_after_another_have_the_same_one),
          UNIT_TEST(the_background_thread_of_one_thread_gives_them_back),
          UNIT_TEST(a_crowd_that_ends_asks_for_a_look), UNIT_TEST(caches_of_a_sampled_process_stay),
          UNIT_TEST(caches_of_a_hardened_process_go))
