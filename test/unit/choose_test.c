/* choose_test.c - which arena a thread gets: the next one, its own, or its core's. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "holder.h"

enum { ARENAS = 4 };

static void start(void)
{
    page_heaps_start();
    assert_true(space_start());
    slabs_start();
    arenas_start(ARENAS);
}

static struct arena *choose(struct arena *last)
{
    struct arena *arena = arena_choose(last);

    if (arena == NULL) return NULL;
    assert_true(lock_is_mine(&arena->lock));
    lock_give(&arena->lock);
    return arena;
}

static void *let_go_when_waited_for(void *unused)
{
    while (fake_calls(FAKE_WAIT) == 0) usleep(100);
    __atomic_store_n(&release, 1, __ATOMIC_RELEASE);
    return unused;
}

/* ---- the tests ---- */

static void the_first_threads_are_spread(void **state)
{
    (void)state;
    start();
    fake_core_current(2);
    for (unsigned i = 0; i < ARENAS; i++) assert_int_equal(choose(NULL)->index, i);
    for (unsigned i = 0; i < 3; i++) assert_int_equal(choose(NULL)->index, 2); /* then by core */
    fake_core_current(1001);
    assert_int_equal(choose(NULL)->index, 1001 % ARENAS);
}

static void arenas_are_made_when_first_chosen(void **state)
{
    (void)state;
    start();
    (void)choose(NULL);
    assert_non_null(arenas[0]);
    assert_null(arenas[1]);
    (void)choose(NULL);
    assert_non_null(arenas[1]);
}

static void a_thread_stays_where_it_was(void **state)
{
    struct arena *mine;

    (void)state;
    start();
    mine = choose(NULL);
    for (unsigned core = 0; core < 2 * ARENAS; core++) {
        fake_core_current(core);
        assert_ptr_equal(choose(mine), mine);
    }
    assert_int_equal(arena_hops, 0);
}

static void a_thread_that_finds_its_arena_busy_goes_to_its_core(void **state)
{
    struct arena *mine;
    pthread_t holder;

    (void)state;
    start();
    mine = choose(NULL);
    fake_core_current(3);
    holder = holder_of(mine);
    assert_int_equal(choose(mine)->index, 3);
    assert_int_equal(arena_hops, 1);
    let_go(holder);
    assert_ptr_equal(choose(mine), mine);
    assert_int_equal(arena_hops, 1);
}

/* Its own core's arena is the busy one: it waits. */
static void a_thread_waits_for_the_arena_of_its_core(void **state)
{
    struct arena *mine;
    pthread_t holder, timer;

    (void)state;
    start();
    mine = choose(NULL);
    fake_core_current(0);
    holder = holder_of(mine);
    assert_int_equal(pthread_create(&timer, NULL, let_go_when_waited_for, NULL), 0);
    assert_ptr_equal(choose(mine), mine);
    let_go(holder);
    assert_int_equal(pthread_join(timer, NULL), 0);
    assert_int_equal(mine->lock.contended, 1);
    assert_int_equal(arena_hops, 0);
}

/* Opens every byte of metadata that could still be had. */
static void use_up_metadata(void)
{
    fake_fail_all(true);
    for (size_t bytes = META_RECORD_BYTES_MAX; bytes >= META_UNIT_BYTES; bytes /= 2)
        while (meta_take(bytes) != NULL) {}
}

static void without_memory_the_first_arena_serves_all(void **state)
{
    (void)state;
    start();
    use_up_metadata();
    assert_null(choose(NULL));
    fake_fail_all(false);
    assert_int_equal(choose(NULL)->index, 1); /* the second turn */
    assert_non_null(arena_at(0));
    use_up_metadata();
    assert_int_equal(choose(NULL)->index, 0);
    fake_fail_all(false);
}

/* No memory for the arena of this core is no reason to refuse: its own arena is only busy. */
static void without_memory_a_busy_arena_is_waited_for(void **state)
{
    struct arena *mine;
    pthread_t holder, timer;

    (void)state;
    start();
    mine = choose(NULL);
    use_up_metadata();
    fake_core_current(2);
    holder = holder_of(mine);
    assert_int_equal(pthread_create(&timer, NULL, let_go_when_waited_for, NULL), 0);
    assert_ptr_equal(choose(mine), mine);
    let_go(holder);
    assert_int_equal(pthread_join(timer, NULL), 0);
    assert_null(arenas[2]);
    assert_int_equal(arena_hops, 0);
}

/* Groups are looked at once, and not for two threads. */
static void expect_spread_over(unsigned arena_count, unsigned cores)
{
    fake_core_quota(cores);
    start();
    fake_core_current(3);
    for (unsigned i = 0; i < 2; i++) assert_int_equal(choose(NULL)->index, i);
    assert_int_equal(fake_core_quota_asked(), 0);
    for (unsigned i = 2; i < arena_count; i++) assert_int_equal(choose(NULL)->index, i);
    for (unsigned core = 0; core < 2 * ARENAS; core++) {
        fake_core_current(core);
        assert_int_equal(choose(NULL)->index, core % arena_count);
    }
    assert_int_equal(fake_core_quota_asked(), 1);
    assert_int_equal(arena_limit, ARENAS);
}

static void threads_are_spread_over_as_many_arenas_as_a_group_has_cores(void **state)
{
    (void)state;
    expect_spread_over(3, 3);
}

static void a_group_of_one_core_has_two_arenas(void **state)
{
    (void)state;
    expect_spread_over(2, 1);
}

static void a_group_with_more_cores_than_there_are_changes_nothing(void **state)
{
    (void)state;
    fake_core_quota(ARENAS + 1);
    start();
    for (unsigned i = 0; i < ARENAS; i++) assert_int_equal(choose(NULL)->index, i);
}

/* Nor is it looked at. */
static void who_says_how_many_arenas_there_are_gets_them(void **state)
{
    (void)state;
    fake_core_quota(2);
    options_parse("narenas:3", "test");
    start();
    for (unsigned i = 0; i < 3; i++) assert_int_equal(choose(NULL)->index, i);
    assert_int_equal(fake_core_quota_asked(), 0);
}

static void with_an_arena_for_each_core_a_groups_cores_do_not_count(void **state)
{
    (void)state;
    fake_core_quota(2);
    options_parse("percpu_arena:percpu", "test");
    start();
    fake_core_current(3);
    assert_int_equal(choose(NULL)->index, 3);
    assert_int_equal(fake_core_quota_asked(), 0);
}

UNIT_MAIN(UNIT_TEST(the_first_threads_are_spread), UNIT_TEST(arenas_are_made_when_first_chosen),
          UNIT_TEST(a_thread_stays_where_it_was),
          UNIT_TEST(a_thread_that_finds_its_arena_busy_goes_to_its_core),
          UNIT_TEST(a_thread_waits_for_the_arena_of_its_core),
          UNIT_TEST(without_memory_the_first_arena_serves_all),
          UNIT_TEST(without_memory_a_busy_arena_is_waited_for),
          UNIT_TEST(threads_are_spread_over_as_many_arenas_as_a_group_has_cores),
          UNIT_TEST(a_group_of_one_core_has_two_arenas),
          UNIT_TEST(a_group_with_more_cores_than_there_are_changes_nothing),
          UNIT_TEST(who_says_how_many_arenas_there_are_gets_them),
          UNIT_TEST(with_an_arena_for_each_core_a_groups_cores_do_not_count))
