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
}

UNIT_MAIN(UNIT_TEST(the_first_threads_are_spread), UNIT_TEST(arenas_are_made_when_first_chosen),
          UNIT_TEST(a_thread_stays_where_it_was),
          UNIT_TEST(a_thread_that_finds_its_arena_busy_goes_to_its_core),
          UNIT_TEST(a_thread_waits_for_the_arena_of_its_core),
          UNIT_TEST(without_memory_the_first_arena_serves_all),
          UNIT_TEST(without_memory_a_busy_arena_is_waited_for))
