/* sleepers_test.c - what is taken from threads that sleep, what is not, and how they go on. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "cache/abandoned.h"
#include "cache/cache_list.h"
#include "cache/sleepers.h"
#include "threads.h"

enum { BLOCKS = 1000, BLOCK_BYTES = 100, BLOCK_BYTES_MAX = 2000, LOOKS_ENOUGH = 30 };

/* A thread that does what it is told, one thing after another. */
enum order {
    ORDER_END,
    ORDER_WORK,
    ORDER_ONE_CALL,
    ORDER_BIND,
    ORDER_CACHE_OFF,
    ORDER_COUNT,
    ORDER_HOLD_LESS
};

static pthread_t other;
static pthread_barrier_t begins, ends;
static enum order order;
static struct cache *cache_of_other;
static void *block_of_other[BLOCKS];

static void work_with(unsigned blocks)
{
    for (size_t bytes = BLOCK_BYTES; bytes <= BLOCK_BYTES_MAX; bytes += BLOCK_BYTES) {
        for (unsigned i = 0; i < blocks; i++)
            block_of_other[i] = memset(prairie_malloc(bytes), 7, bytes);
        for (unsigned i = 0; i < blocks; i++) prairie_free(block_of_other[i]);
    }
}

static void work(void) { work_with(BLOCKS); }

static void *other_body(void *unused)
{
    for (enum order now = ORDER_WORK; now != ORDER_END;) {
        pthread_barrier_wait(&begins);
        now = order;
        if (now == ORDER_WORK) work();
        if (now == ORDER_ONE_CALL) prairie_free(prairie_malloc(BLOCK_BYTES));
        if (now == ORDER_BIND) thread_bind(thread_arena());
        if (now == ORDER_CACHE_OFF) assert_true(thread_cache_off());
        if (now == ORDER_COUNT) assert_non_null(thread_count_calls());
        if (now == ORDER_HOLD_LESS) {
            thread_hold_up_to(class_of_size(BLOCK_BYTES_MAX));
            work();
        }
        cache_of_other = thread_front()->cache;
        pthread_barrier_wait(&ends);
    }
    return unused;
}

static void let_other(enum order what)
{
    order = what;
    pthread_barrier_wait(&begins);
    pthread_barrier_wait(&ends);
    if (what == ORDER_END) assert_int_equal(pthread_join(other, NULL), 0);
}

static void begin_other(void)
{
    if (!OS_TELLS_NAPS) skip();
    prairie_free(prairie_malloc(1));
    assert_int_equal(pthread_barrier_init(&begins, NULL, 2), 0);
    assert_int_equal(pthread_barrier_init(&ends, NULL, 2), 0);
    assert_int_equal(pthread_create(&other, NULL, other_body, NULL), 0);
    let_other(ORDER_WORK);
}

static bool sleeps_on(bool since)
{
    (void)since;
    return true;
}
static bool woke_up(bool since) { return !since; }

/* As often as the background thread does until it has no more to expect. */
static unsigned look_until_done(void)
{
    unsigned looks = 0;

    while (sleepers_look()) assert_true(++looks < LOOKS_ENOUGH);
    return looks;
}

static void what_a_sleeper_holds_goes_back(void **state)
{
    struct cache *before;

    (void)state;
    begin_other();
    before = cache_of_other;
    (void)fake_naps(sleeps_on);
    assert_true(look_until_done() > 1); /* not at once */
    assert_int_equal(fake_naps(NULL), 1);
    assert_int_equal(inside_threads_with_caches(), 1);
    assert_false(inside_is_alone()); /* it is there still, and stalls are looked for */
    assert_int_equal(abandoned_bytes(before), 0);
    prairie_check_all();
    let_other(ORDER_WORK);
    assert_int_equal(inside_threads_with_caches(), 2);
    assert_ptr_equal(cache_of_other, before); /* drained, it waited for the next thread */
    let_other(ORDER_END);
    prairie_check_all();
}

static uint32_t one_call_ended;

static void *call_once(void *unused)
{
    let_other(ORDER_ONE_CALL);
    RELAXED_STORE(one_call_ended, 1);
    return unused;
}

/* It waits in its call until the look is over. */
static bool wakes_and_calls(bool since)
{
    pthread_t thread;

    if (!since) return true;
    assert_int_equal(pthread_create(&thread, NULL, call_once, NULL), 0);
    assert_int_equal(pthread_detach(thread), 0);
    os_pause(20);
    assert_int_equal(RELAXED_LOAD(one_call_ended), 0);
    (void)fake_naps(woke_up);
    return false;
}

static void one_that_wakes_waits_and_keeps_its_cache(void **state)
{
    struct cache *before;

    (void)state;
    begin_other();
    before = cache_of_other;
    (void)fake_naps(wakes_and_calls);
    (void)look_until_done();
    wait_until_set(&one_call_ended);
    assert_ptr_equal(cache_of_other, before);
    assert_true(abandoned_bytes(before) > SLEEPER_BYTES_MAX);
    let_other(ORDER_END);
    prairie_check_all();
}

/* One that is never found asleep outside of us is looked at a few times, until its next slow
 * call. */
static void one_that_cannot_be_taken_from_is_given_up(void **state)
{
    unsigned times;

    (void)state;
    begin_other();
    (void)fake_naps(woke_up);
    (void)look_until_done();
    times = fake_naps(sleeps_on);
    assert_true(times > 1 && times < 10);
    assert_false(sleepers_look());
    assert_int_equal(fake_naps(sleeps_on), 0);
    let_other(ORDER_WORK);
    assert_true(sleepers_look());
    (void)look_until_done();
    assert_int_equal(fake_naps(NULL), 1);
    assert_int_equal(inside_threads_with_caches(), 1);
    let_other(ORDER_END);
}

/* While it makes slow calls nobody looks, and the background thread stays. */
static void one_that_works_is_left_alone(void **state)
{
    (void)state;
    begin_other();
    (void)fake_naps(sleeps_on);
    for (unsigned i = 0; i < LOOKS_ENOUGH; i++) {
        assert_true(sleepers_look());
        let_other(ORDER_WORK);
    }
    assert_int_equal(fake_naps(NULL), 0);
    let_other(ORDER_END);
}

static void expect_not_looked_at(enum order what)
{
    let_other(what);
    (void)fake_naps(sleeps_on);
    (void)look_until_done();
    assert_int_equal(fake_naps(NULL), 0);
    assert_int_equal(inside_threads_with_caches(), 2);
    let_other(ORDER_ONE_CALL);
    let_other(ORDER_END);
    prairie_check_all();
}

static void one_that_is_bound_to_an_arena_keeps_what_it_holds(void **state)
{
    (void)state;
    begin_other();
    expect_not_looked_at(ORDER_BIND);
}

static void one_without_blocks_is_not_looked_at(void **state)
{
    (void)state;
    begin_other();
    expect_not_looked_at(ORDER_CACHE_OFF);
}

/* What the program has set for that thread would be lost with it. */
static void one_that_may_hold_less_than_others_keeps_it(void **state)
{
    (void)state;
    begin_other();
    expect_not_looked_at(ORDER_HOLD_LESS);
}

static void one_with_little_keeps_it(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    assert_int_equal(pthread_barrier_init(&begins, NULL, 2), 0);
    assert_int_equal(pthread_barrier_init(&ends, NULL, 2), 0);
    assert_int_equal(pthread_create(&other, NULL, other_body, NULL), 0);
    expect_not_looked_at(ORDER_ONE_CALL);
}

/* Its word leads to its totals, and no longer to its cache. */
static void the_totals_of_one_that_is_counted_stay(void **state)
{
    (void)state;
    begin_other();
    let_other(ORDER_COUNT);
    (void)fake_naps(sleeps_on);
    (void)look_until_done();
    assert_int_equal(inside_threads_with_caches(), 2);
    let_other(ORDER_WORK);
    let_other(ORDER_END);
}

static void a_thread_that_comes_to_hold_much_asks_for_the_background_thread(void **state)
{
    (void)state;
    begin_other();
    assert_true(fake_thread_waits());
    let_other(ORDER_END);
}

static void a_program_of_one_thread_does_not(void **state)
{
    (void)state;
    do work_with(BLOCKS / 50); /* too little to purge */
    while (abandoned_bytes(thread_front()->cache) <= SLEEPER_BYTES_MAX);
    sleepers_expect(thread_front()->cache);
    assert_false(fake_thread_waits());
}

static void what_came_while_it_was_alone_is_expected_with_the_second(void **state)
{
    pthread_t second;

    (void)state;
    if (!OS_TELLS_NAPS) skip();
    a_program_of_one_thread_does_not(NULL);
    second = begin_bystander();
    assert_true(fake_thread_waits());
    end_bystander(second);
}

/* ---- whose numbers they are ---- */

static void the_child_of_a_fork_has_a_number_of_its_own(void **state)
{
    (void)state;
    if (!OS_TELLS_NAPS) skip();
    prairie_free(prairie_malloc(1));
    assert_int_equal(thread_front()->cache->thread, 7);
    fake_ids(2, 9);
    heap_fork_ends_in_child();
    assert_int_equal(thread_front()->cache->thread, 9);
    begin_other();
    (void)fake_naps(sleeps_on);
    (void)look_until_done();
    assert_int_equal(fake_naps(NULL), 1);
    let_other(ORDER_END);
}

/* In a copy that nobody was told of they may be other threads'. */
static void numbers_of_another_process_are_of_nobody(void **state)
{
    (void)state;
    begin_other();
    fake_ids(2, 7);
    (void)fake_naps(sleeps_on);
    (void)look_until_done();
    assert_int_equal(fake_naps(NULL), 0);
    assert_int_equal(inside_threads_with_caches(), 2);
    let_other(ORDER_END);
}

UNIT_MAIN(UNIT_TEST(what_a_sleeper_holds_goes_back),
          UNIT_TEST(one_that_wakes_waits_and_keeps_its_cache),
          UNIT_TEST(one_that_cannot_be_taken_from_is_given_up),
          UNIT_TEST(one_that_works_is_left_alone),
          UNIT_TEST(one_that_is_bound_to_an_arena_keeps_what_it_holds),
          UNIT_TEST(one_without_blocks_is_not_looked_at),
          UNIT_TEST(one_that_may_hold_less_than_others_keeps_it),
          UNIT_TEST(one_with_little_keeps_it), UNIT_TEST(the_totals_of_one_that_is_counted_stay),
          UNIT_TEST(a_thread_that_comes_to_hold_much_asks_for_the_background_thread),
          UNIT_TEST(a_program_of_one_thread_does_not),
          UNIT_TEST(what_came_while_it_was_alone_is_expected_with_the_second),
          UNIT_TEST(the_child_of_a_fork_has_a_number_of_its_own),
          UNIT_TEST(numbers_of_another_process_are_of_nobody))
