/* lock_test.c - locks: exclusion, sleeping, counts, forks, and the order that is enforced. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

#include <sched.h>

static struct lock lock, other;

static void what_takers_count_lies_on_one_line(void **state)
{
    (void)state;
    assert_true(is_aligned(_Alignof(struct lock), sizeof lock.sleepers));
    assert_true(is_aligned(offsetof(struct lock, sleepers), sizeof lock.sleepers));
}

static void a_free_lock_is_taken_once(void **state)
{
    (void)state;
    lock_init(&lock, LOCK_META);
    assert_true(lock_try(&lock));
    assert_true(lock_is_mine(&lock));
    assert_false(lock_try(&lock));
    lock_give(&lock);
    assert_false(lock_is_mine(&lock));
    lock_take(&lock);
    lock_give(&lock);
    assert_int_equal(lock.taken, 2);
    assert_int_equal(lock.contended, 0);
    assert_int_equal(lock.waits, 0);
    assert_int_equal(fake_calls(FAKE_WAIT) + fake_calls(FAKE_WAKE), 0);
}

static void *take_and_give(void *unused)
{
    (void)unused;
    lock_take(&lock);
    lock_give(&lock);
    return NULL;
}

/* A sleeper is counted as contended and as waiting, and costs one wake-up. */
static void a_taker_sleeps_until_the_holder_gives(void **state)
{
    pthread_t thread;

    (void)state;
    lock_init(&lock, LOCK_META);
    lock_set_spin(0);
    lock_take(&lock);
    assert_int_equal(pthread_create(&thread, NULL, take_and_give, NULL), 0);
    while (fake_calls(FAKE_WAIT) == 0) sched_yield();
    assert_int_equal(lock.taken, 1);
    assert_int_equal(RELAXED_LOAD(lock.state), LOCK_HELD_WITH_SLEEPERS);
    lock_give(&lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(lock.taken, 2);
    assert_int_equal(lock.contended, 1);
    assert_int_equal(lock.waits, 1);
    assert_true(fake_calls(FAKE_WAKE) >= 1);
    assert_int_equal(lock.state, LOCK_FREE);
}

/* How long takers slept, and how many at a time, is noted until somebody wants it forgotten. */
static void waiting_is_measured(void **state)
{
    pthread_t thread[2];

    (void)state;
    lock_init(&lock, LOCK_META);
    lock_set_spin(0);
    lock_take(&lock);
    assert_int_equal(pthread_create(&thread[0], NULL, take_and_give, NULL), 0);
    while (fake_calls(FAKE_WAIT) == 0) sched_yield();
    fake_clock_ms(30);
    assert_int_equal(pthread_create(&thread[1], NULL, take_and_give, NULL), 0);
    while (RELAXED_LOAD(lock.sleepers) != 2) sched_yield();
    while (fake_calls(FAKE_WAIT) == 1) sched_yield();
    fake_clock_ms(20);
    lock_give(&lock);
    for (unsigned i = 0; i < 2; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(lock.waits, 2);
    assert_int_equal(lock.wait_ns, 70 * 1000000);
    assert_int_equal(lock.wait_ns_max, 50 * 1000000);
    assert_int_equal(lock.sleepers_max, 2);
    assert_int_equal(lock.sleepers, 0);
    lock_take(&lock);
    lock_forget_numbers(&lock);
    lock_give(&lock);
    assert_int_equal(lock.taken + lock.contended + lock.waits + lock.wait_ns, 0);
    assert_int_equal(lock.wait_ns_max + lock.sleepers_max, 0);
}

static uint32_t is_given, clock_held; /* atomic: once it is; the clock was asked by its holder */

static void look_who_asks(enum fake_call kind)
{
    if (kind == FAKE_CLOCK && RELAXED_LOAD(is_given) && RELAXED_LOAD(lock.state) != LOCK_FREE)
        RELAXED_STORE(clock_held, 1);
}

/* The others would wait for the kernel's answer, too. */
static void nobody_asks_for_the_time_under_the_lock(void **state)
{
    pthread_t thread;

    (void)state;
    lock_init(&lock, LOCK_META);
    lock_set_spin(0);
    fake_on_call(look_who_asks);
    lock_take(&lock);
    assert_int_equal(pthread_create(&thread, NULL, take_and_give, NULL), 0);
    while (fake_calls(FAKE_WAIT) == 0) sched_yield();
    RELAXED_STORE(is_given, 1);
    lock_give(&lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(lock.waits, 1);
    assert_int_equal(clock_held, 0);
}

/* With enough patience a taker gets the lock without a system call. */
static void a_spinning_taker_needs_no_kernel(void **state)
{
    pthread_t thread;

    (void)state;
    lock_init(&lock, LOCK_META);
    lock_set_spin(~0u);
    lock_take(&lock);
    assert_int_equal(pthread_create(&thread, NULL, take_and_give, NULL), 0);
    usleep(20 * 1000);
    lock_give(&lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(lock.taken, 2);
    assert_int_equal(lock.waits, 0);
    assert_int_equal(fake_calls(FAKE_WAIT), 0);
}

/* Once it has slept a taker looks for as long as it takes, however slow the machine is. */
static void patient_once_woken(enum fake_call kind)
{
    if (kind == FAKE_WAIT) lock_set_spin(~0u);
}

/* Who is woken and finds the lock held again has a while before it sleeps again, and leaves word
 * that others may sleep. */
static void a_woken_taker_spins_again(void **state)
{
    pthread_t thread;

    (void)state;
    lock_init(&lock, LOCK_META);
    lock_set_spin(0);
    fake_on_call(patient_once_woken);
    lock_take(&lock);
    assert_int_equal(pthread_create(&thread, NULL, take_and_give, NULL), 0);
    while (fake_calls(FAKE_WAIT) == 0) sched_yield();
    usleep(5 * 1000);
    port_wake(&lock.state, 1);
    usleep(1000);
    lock_give(&lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(lock.waits, 1);
    assert_int_equal(fake_calls(FAKE_WAIT), 1);
    assert_int_equal(fake_calls(FAKE_WAKE), 3); /* the test's, ours, and that of the woken one */
}

enum { THREADS = 4, ROUNDS = 20000 };

static uint64_t volatile shared_count;

static void *count_under_lock(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < ROUNDS; i++) {
        lock_take(&lock);
        shared_count = shared_count + 1;
        if (i % 64 == 0) sched_yield(); /* while holding it, so that the others meet it held */
        lock_give(&lock);
    }
    return NULL;
}

static void threads_exclude_each_other(void **state)
{
    pthread_t thread[THREADS];

    (void)state;
    lock_init(&lock, LOCK_META);
    lock_take(&lock);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, count_under_lock, NULL), 0);
    while (fake_calls(FAKE_WAIT) == 0) usleep(100); /* so that somebody meets it held */
    lock_give(&lock);
    for (unsigned i = 0; i < THREADS; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(shared_count, THREADS * ROUNDS);
    assert_int_equal(lock.taken, 1 + THREADS * ROUNDS);
    assert_true(lock.contended > 0 && lock.contended <= lock.taken);
    assert_true(lock.waits <= lock.contended);
    assert_int_equal(lock.state, LOCK_FREE);
}

/* ---- fork ---- */

/* Its holder counts while they are read, and another reader may have them begin anew. */
static void numbers_fit_each_other_at_any_moment(void **state)
{
    struct lock lock;

    (void)state;
    lock_init(&lock, LOCK_PAGE_HEAP);
    for (unsigned i = 0; i < 64; i++) {
        struct lock_numbers numbers;

        lock.waits = i % 4;
        lock.contended = i / 4 % 4;
        lock.taken = i / 16;
        numbers = lock_numbers(&lock);
        assert_true(numbers.waits <= numbers.contended && numbers.contended <= numbers.taken);
        assert_true(numbers.taken >= lock.taken && numbers.contended >= lock.contended);
        assert_int_equal(numbers.waits, lock.waits);
    }
}

/* Times and counts of several locks are added; of the longest wait and the most sleepers the larger
 * one stays, whichever comes first. */
static void numbers_of_several_locks_are_one(void **state)
{
    static const struct lock_numbers part[] = { { 100, 50, 20, 30, 7000, 900, 3 },
                                                { 10, 6, 4, 2, 500, 1000, 2 },
                                                { 1, 1, 1, 1, 1, 1, 1 } };
    static const unsigned order[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 2, 0 } };

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(order); i++) {
        struct lock_numbers sum = { 0 };

        for (unsigned at = 0; at < ARRAY_COUNT(order[i]); at++)
            lock_numbers_add(&sum, part[order[i][at]]);
        assert_int_equal(sum.taken, 111);
        assert_int_equal(sum.contended, 57);
        assert_int_equal(sum.waits, 25);
        assert_int_equal(sum.spins, 33);
        assert_int_equal(sum.wait_ns, 7501);
        assert_int_equal(sum.wait_ns_max, 1000);
        assert_int_equal(sum.sleepers_max, 3);
    }
}

static void a_remade_lock_is_free(void **state)
{
    (void)state;
    lock_init(&lock, LOCK_META);
    lock_take_for_fork(&lock);
    assert_true(lock_is_mine(&lock));
    lock_remake(&lock);
    assert_false(lock_is_mine(&lock));
    assert_int_equal(lock.state, LOCK_FREE);
    assert_true(lock_try(&lock));
    lock_remake(&lock); /* not marked: somebody's business */
    assert_true(lock_is_mine(&lock));
    lock_give(&lock);
    assert_int_equal(fake_calls(FAKE_WAKE), 0); /* nobody sleeps in the child */
}

/* Other handlers of the same fork may need what is locked: the forking thread passes through. */
static void the_forking_thread_passes_through_its_locks(void **state)
{
    (void)state;
    lock_init(&lock, LOCK_META);
    lock_init(&other, LOCK_PAGE_HEAP);
    lock_take_for_fork(&other);
    lock_take_for_fork(&lock);
    assert_false(lock_fork_is_mine());
    lock_fork_begins();
    assert_true(lock_fork_is_mine());
    for (unsigned i = 0; i < 3; i++) {
        lock_take(&lock); /* out of order, and held already */
        lock_take(&other);
        assert_true(lock_is_mine(&lock) && lock_is_mine(&other));
        lock_give(&other);
        lock_give(&lock);
        assert_int_equal(lock.state, LOCK_FORKING);
    }
    lock_fork_ends();
    lock_give_after_fork(&other);
    lock_give_after_fork(&lock);
    assert_false(lock_is_mine(&lock) || lock_is_mine(&other));
    assert_int_equal(lock.state, LOCK_FREE);
    lock_take(&lock);
    lock_give_after_fork(&lock); /* not marked */
    assert_true(lock_is_mine(&lock));
    lock_give(&lock);
}

/* And through those that it makes meanwhile, for which the others wait as for all. */
static void a_lock_made_during_a_fork_is_marked(void **state)
{
    (void)state;
    lock_fork_begins();
    lock_init(&lock, LOCK_META);
    lock_init(&other, LOCK_PAGE_HEAP);
    assert_int_equal(lock.state, LOCK_FORKING);
    assert_true(lock_is_mine(&lock) && lock_is_mine(&other));
    lock_take(&lock);
    lock_give(&lock);
    lock_fork_ends();
    lock_give_after_fork(&lock);
    assert_false(lock_is_mine(&lock));
    assert_int_equal(lock.state, LOCK_FREE);
    lock_remake(&other); /* as in the child */
    assert_false(lock_is_mine(&other));
    assert_int_equal(other.state, LOCK_FREE);
}

/* Also with more locks than the witness can name. */
static void a_lock_passed_through_is_still_held(void **state)
{
    static struct lock many[8];

    (void)state;
    lock_init(&lock, LOCK_MAKING);
    lock_take_for_fork(&lock);
    for (unsigned i = 0; i < ARRAY_COUNT(many); i++) {
        lock_init(&many[i], LOCK_ARENA);
        lock_take_for_fork(&many[i]);
    }
    lock_fork_begins();
    lock_take(&lock);
    lock_give(&lock);
    lock_fork_ends();
    for (unsigned i = ARRAY_COUNT(many); i-- > 0;) {
        lock_give_after_fork(&many[i]);
        assert_true(lock_is_mine(&lock));
    }
    lock_give_after_fork(&lock);
    assert_false(lock_is_mine(&lock));
}

/* Those who slept before the fork and those who came meanwhile are all woken when it is over. */
static void the_others_wait_for_the_end_of_the_fork(void **state)
{
    pthread_t thread[6];

    (void)state;
    lock_init(&lock, LOCK_META);
    lock_set_spin(0);
    lock_take(&lock);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, take_and_give, NULL), 0);
    while (fake_calls(FAKE_WAIT) < 3) sched_yield();
    lock_give(&lock);
    lock_take_for_fork(&lock);
    lock_fork_begins();
    for (unsigned i = 3; i < 6; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, take_and_give, NULL), 0);
    usleep(20 * 1000);
    assert_int_equal(RELAXED_LOAD(lock.state), LOCK_FORKING);
    lock_fork_ends();
    lock_give_after_fork(&lock);
    for (unsigned i = 0; i < 6; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(lock.state, LOCK_FREE);
    assert_int_equal(lock.taken, 8);
}

/* For a moment a lock that the forking thread gives is marked as one less: nobody may take it
 * then. */
static void a_lock_on_its_way_back_is_still_marked(void **state)
{
    pthread_t thread;

    (void)state;
    lock_init(&lock, LOCK_META);
    lock_set_spin(10);
    lock_take_for_fork(&lock);
    lock_fork_begins();
    lock_take(&lock);
    assert_false(lock_give_unless_contended(&lock));
    assert_int_equal(pthread_create(&thread, NULL, take_and_give, NULL), 0);
    while (fake_calls(FAKE_WAIT) < 1) sched_yield();
    assert_int_equal(RELAXED_LOAD(lock.state), LOCK_FORKING - 1);
    lock_give_contended(&lock);
    assert_int_equal(RELAXED_LOAD(lock.state), LOCK_FORKING);
    lock_fork_ends();
    lock_give_after_fork(&lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(lock.state, LOCK_FREE);
}

/* ---- the order ---- */

static void take_upwards(void)
{
    struct lock held[LOCK_RANK_COUNT];

    for (unsigned rank = 0; rank < LOCK_RANK_COUNT; rank++) {
        lock_init(&held[rank], (enum lock_rank)rank);
        lock_take(&held[rank]);
    }
    for (unsigned rank = 0; rank < LOCK_RANK_COUNT; rank++) lock_give(&held[rank]);
}

static enum lock_rank first_rank, second_rank;

static void take_two(void)
{
    lock_init(&lock, first_rank);
    lock_init(&other, second_rank);
    lock_take(&lock);
    lock_take(&other);
    lock_give(&other);
    lock_give(&lock);
}

static void ranks_are_taken_upwards_only(void **state)
{
    (void)state;
    expect_survival(take_upwards);
    for (unsigned first = 0; first < LOCK_RANK_COUNT; first++) {
        for (unsigned second = 0; second < LOCK_RANK_COUNT; second++) {
            first_rank = (enum lock_rank)first;
            second_rank = (enum lock_rank)second;
            if (second > first || (first == second && first == LOCK_ARENA)
                || (PAGE_HEAPS > 1 && first == second && first == LOCK_PAGE_HEAP))
                expect_survival(take_two);
            else expect_abort(take_two, "prairie: broken invariant: ");
        }
    }
}

static void *take_the_other(void *unused)
{
    (void)unused;
    lock_take(&other);
    lock_give(&other);
    return NULL;
}

static void each_thread_has_its_own_order(void **state)
{
    pthread_t thread;

    (void)state;
    lock_init(&lock, LOCK_META);
    lock_init(&other, LOCK_START);
    lock_take(&lock);
    assert_int_equal(pthread_create(&thread, NULL, take_the_other, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    lock_give(&lock);
}

static void give_what_is_not_held(void)
{
    lock_init(&lock, LOCK_PAGE_HEAP);
    lock_give(&lock);
}

static void giving_what_is_not_held_aborts(void **state)
{
    (void)state;
    expect_abort(give_what_is_not_held,
                 "prairie: broken invariant: witness.rank_count[lock->rank] > 0");
}

/* As a signal handler would that interrupted the holder: it does not wait for itself. */
static void take_twice(void)
{
    lock_init(&lock, LOCK_ARENA);
    lock_take(&lock);
    lock_take(&lock);
}

static void waiting_for_oneself_aborts(void **state)
{
    (void)state;
    expect_abort(take_twice, "prairie: broken invariant: !lock_is_surely_mine(lock)");
}

/* Fork takes every arena's lock at once; the witness loses none of them. */
static void many_arena_locks_at_once(void **state)
{
    static struct lock many[ARENA_COUNT_MAX];

    (void)state;
    for (unsigned i = 0; i < ARENA_COUNT_MAX; i++) {
        lock_init(&many[i], LOCK_ARENA);
        lock_take(&many[i]);
    }
    assert_true(lock_is_mine(&many[0]));
    assert_true(lock_is_mine(&many[ARENA_COUNT_MAX - 1]));
    for (unsigned i = 0; i < ARENA_COUNT_MAX; i++) lock_give(&many[i]);
    assert_false(lock_is_mine(&many[0]));
    assert_false(lock_is_mine(&many[ARENA_COUNT_MAX - 1]));
    expect_survival(take_upwards);
}

UNIT_MAIN(UNIT_TEST(what_takers_count_lies_on_one_line), UNIT_TEST(a_free_lock_is_taken_once),
          UNIT_TEST(a_taker_sleeps_until_the_holder_gives), UNIT_TEST(waiting_is_measured),
          UNIT_TEST(nobody_asks_for_the_time_under_the_lock),
          UNIT_TEST(a_spinning_taker_needs_no_kernel), UNIT_TEST(a_woken_taker_spins_again),
          UNIT_TEST(threads_exclude_each_other), UNIT_TEST(numbers_fit_each_other_at_any_moment),
          UNIT_TEST(numbers_of_several_locks_are_one), UNIT_TEST(a_remade_lock_is_free),
          UNIT_TEST(the_forking_thread_passes_through_its_locks),
          UNIT_TEST(a_lock_made_during_a_fork_is_marked),
          UNIT_TEST(a_lock_passed_through_is_still_held),
          UNIT_TEST(the_others_wait_for_the_end_of_the_fork),
          UNIT_TEST(a_lock_on_its_way_back_is_still_marked),
          UNIT_TEST(ranks_are_taken_upwards_only), UNIT_TEST(each_thread_has_its_own_order),
          UNIT_TEST(giving_what_is_not_held_aborts), UNIT_TEST(waiting_for_oneself_aborts),
          UNIT_TEST(many_arena_locks_at_once))
