/* notify_test.c - who is told of a shortage: everybody once, in turn, whatever they do
 * meanwhile. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "harms.h"

#include <pthread.h>
#include <sys/wait.h>

enum { TOLD_MAX = 64 };

static char told[TOLD_MAX + 1]; /* the names of who was told, in order */
static size_t told_count;

static void start(void) { assert_true(heap_start()); }

static void listen(void *name, reserve_cnd_t condition, size_t size)
{
    (void)condition, (void)size;
    told[told_count++] = *(const char *)name;
}

static void *called(const char *name) { return (void *)(uintptr_t)name; }

static void tell_all(reserve_cnd_t condition)
{
    struct event event;

    told_count = 0;
    memset(told, 0, sizeof told);
    if (event_begin(&event, condition, 1))
        while (event_next(&event)) {}
}

static void add(reserve_cb_t *call, const char *name)
{
    assert_true(notify_add(call, called(name)));
}

static void everybody_once_from_another_start(void **state)
{
    (void)state;
    start();
    add(listen, "a");
    add(listen, "b");
    add(listen, "c");
    tell_all(RESERVE_CND_LOW);
    assert_string_equal(told, "abc");
    tell_all(RESERVE_CND_LOW);
    assert_string_equal(told, "bca");
    tell_all(RESERVE_CND_CRIT);
    assert_string_equal(told, "cab");
    tell_all(RESERVE_CND_LOW);
    assert_string_equal(told, "abc");
    assert_int_equal(notify_stats.events[RESERVE_CND_LOW], 3);
    assert_int_equal(notify_stats.events[RESERVE_CND_CRIT], 1);
    assert_int_equal(notify_stats.calls, 12);
}

static void nobody_listens(void **state)
{
    struct event event;

    (void)state;
    start();
    assert_false(event_begin(&event, RESERVE_CND_LOW, 1));
    assert_false(notify_remove(listen, NULL));
    add(listen, "a");
    assert_false(notify_remove(listen, NULL));
    assert_true(notify_remove(listen, called("a")));
    assert_false(event_begin(&event, RESERVE_CND_LOW, 1));
    assert_int_equal(notify_stats.events[RESERVE_CND_LOW], 0);
}

static void a_pair_may_come_twice(void **state)
{
    static const char name[] = "a";

    (void)state;
    start();
    add(listen, name);
    add(listen, "b");
    add(listen, name);
    tell_all(RESERVE_CND_LOW);
    assert_string_equal(told, "aba");
    assert_true(notify_remove(listen, called(name))); /* the youngest */
    tell_all(RESERVE_CND_LOW);
    assert_string_equal(told, "ba");
    assert_true(notify_remove(listen, called(name)));
    assert_false(notify_remove(listen, called(name)));
}

/* ---- what callbacks do ---- */

static char a[] = "a", b[] = "b", c[] = "c", d[] = "d";

static void go_away(void *name, reserve_cnd_t condition, size_t size)
{
    listen(name, condition, size);
    assert_true(notify_remove(go_away, name));
}

static void they_leave_by_themselves(void **state)
{
    (void)state;
    start();
    add(listen, a);
    add(go_away, b);
    add(listen, c);
    tell_all(RESERVE_CND_LOW);
    assert_string_equal(told, "abc");
    tell_all(RESERVE_CND_LOW);
    assert_string_equal(told, "ca");
}

/* The one before, who was told, and the one after, who will not be. */
static void send_others_away(void *name, reserve_cnd_t condition, size_t size)
{
    listen(name, condition, size);
    (void)notify_remove(listen, a);
    (void)notify_remove(listen, c);
}

static void they_send_others_away(void **state)
{
    (void)state;
    start();
    add(listen, a);
    add(send_others_away, b);
    add(listen, c);
    add(listen, d);
    tell_all(RESERVE_CND_LOW);
    assert_string_equal(told, "abd");
    tell_all(RESERVE_CND_LOW);
    assert_string_equal(told, "bd");
}

static void bring_another(void *name, reserve_cnd_t condition, size_t size)
{
    listen(name, condition, size);
    assert_true(notify_add(listen, d));
}

static void who_comes_later_hears_of_the_next(void **state)
{
    (void)state;
    start();
    add(bring_another, a);
    add(listen, b);
    tell_all(RESERVE_CND_LOW);
    assert_string_equal(told, "ab");
    assert_true(notify_remove(bring_another, a));
    tell_all(RESERVE_CND_LOW);
    assert_string_equal(told, "bd");
}

/* ---- events within events ---- */

static void begin_another(void *name, reserve_cnd_t condition, size_t size)
{
    struct event event;

    listen(name, condition, size);
    assert_true(notify_runs_here());
    assert_false(event_begin(&event, RESERVE_CND_LOW, 1));
    assert_false(event_begin(&event, RESERVE_CND_CRIT, 1));
    if (condition == RESERVE_CND_FAIL) {
        assert_false(event_begin(&event, RESERVE_CND_FAIL, 1));
        return;
    }
    assert_true(event_begin(&event, RESERVE_CND_FAIL, 1));
    while (event_next(&event)) {}
}

/* The one that runs is not met by itself. */
static void only_an_end_interrupts(void **state)
{
    (void)state;
    start();
    add(begin_another, a);
    add(listen, b);
    add(listen, c);
    assert_false(notify_runs_here());
    tell_all(RESERVE_CND_LOW);
    assert_string_equal(told, "abcbc");
    assert_false(notify_runs_here());
}

static void no_lock_is_held(void *name, reserve_cnd_t condition, size_t size)
{
    require(inside_holds_no_lock());
    prairie_free(prairie_malloc(100));
    prairie_check_all();
    listen(name, condition, size);
}

static void callbacks_run_without_locks(void **state)
{
    (void)state;
    start();
    add(no_lock_is_held, a);
    tell_all(RESERVE_CND_LOW);
    assert_string_equal(told, a);
}

/* ---- threads ---- */

static struct {
    uint32_t inside, leave; /* atomic */
} meeting;

static void wait_inside(void *name, reserve_cnd_t condition, size_t size)
{
    (void)name, (void)condition, (void)size;
    __atomic_store_n(&meeting.inside, 1, __ATOMIC_RELEASE);
    wait_until_set(&meeting.leave);
    __atomic_store_n(&meeting.inside, 0, __ATOMIC_RELEASE);
}

static void *tell_one(void *unused)
{
    struct event event;

    (void)unused;
    assert_true(event_begin(&event, RESERVE_CND_LOW, 1));
    while (event_next(&event)) {}
    return NULL;
}

static void *let_leave(void *unused)
{
    struct timespec moment = { 0, 20000000 };

    (void)unused;
    nanosleep(&moment, NULL);
    __atomic_store_n(&meeting.leave, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Its context may be freed when it has been taken away. */
static void taking_away_waits_for_calls(void **state)
{
    pthread_t teller, opener;

    (void)state;
    start();
    add(wait_inside, a);
    pthread_create(&teller, NULL, tell_one, NULL);
    wait_until_set(&meeting.inside);
    pthread_create(&opener, NULL, let_leave, NULL);
    assert_true(notify_remove(wait_inside, a));
    assert_int_equal(__atomic_load_n(&meeting.inside, __ATOMIC_ACQUIRE), 0);
    pthread_join(teller, NULL);
    pthread_join(opener, NULL);
}

enum { TELLERS = 4, LISTENERS = 5 };

static struct {
    unsigned events_each;
    ON_ONE_LINE uint64_t heard[LISTENERS]; /* atomic: by each, of all events */
    uint64_t heard_of[TELLERS][LISTENERS]; /* by the teller's own thread: who heard of its event */
    uint64_t passing_heard;                /* atomic */
    uint32_t tellers_left;                 /* atomic */
} storm;

/* The size tells whose event it is. */
static void count_one(void *context, reserve_cnd_t condition, size_t size)
{
    size_t listener = (size_t)(uintptr_t)context;

    (void)condition;
    (void)__atomic_fetch_add(&storm.heard[listener], 1, __ATOMIC_RELAXED);
    storm.heard_of[size][listener]++;
}

static void count_passing(void *context, reserve_cnd_t condition, size_t size)
{
    (void)condition, (void)size;
    (void)__atomic_fetch_add(&storm.passing_heard, 1, __ATOMIC_RELAXED);
    if ((uintptr_t)context % 3 == 0) (void)notify_remove(count_passing, context);
}

static void *tell_many(void *context)
{
    size_t teller = (size_t)(uintptr_t)context;

    for (unsigned i = 1; i <= storm.events_each; i++) {
        struct event event;

        assert_true(event_begin(&event, i % 2 ? RESERVE_CND_LOW : RESERVE_CND_CRIT, teller));
        while (event_next(&event)) {}
        for (size_t listener = 0; listener < LISTENERS; listener++)
            if (storm.heard_of[teller][listener] != i)
                fail_msg("event %u: listener %zu heard %llu", i, listener,
                         (unsigned long long)storm.heard_of[teller][listener]);
    }
    (void)__atomic_fetch_sub(&storm.tellers_left, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void *come_and_go(void *unused)
{
    (void)unused;
    for (uintptr_t i = 1; __atomic_load_n(&storm.tellers_left, __ATOMIC_ACQUIRE) != 0; i++) {
        assert_true(notify_add(count_passing, (void *)i));
        if (i % 2) sched_yield();
        (void)notify_remove(count_passing, (void *)i);
    }
    return NULL;
}

/* Each of a million events is heard once by each who is there all the time, while others come and
 * go. */
static void nothing_is_lost_or_told_twice(void **state)
{
    pthread_t tellers[TELLERS], passer;

    (void)state;
    start();
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    storm.events_each = 20000 / TELLERS;
#else
    storm.events_each = 1000000 / TELLERS;
#endif
    storm.tellers_left = TELLERS;
    for (uintptr_t i = 0; i < LISTENERS; i++) assert_true(notify_add(count_one, (void *)i));
    for (uintptr_t i = 0; i < TELLERS; i++) pthread_create(&tellers[i], NULL, tell_many, (void *)i);
    pthread_create(&passer, NULL, come_and_go, NULL);
    for (unsigned i = 0; i < TELLERS; i++) pthread_join(tellers[i], NULL);
    pthread_join(passer, NULL);
    for (unsigned i = 0; i < LISTENERS; i++)
        assert_int_equal(storm.heard[i], (uint64_t)TELLERS * storm.events_each);
    assert_int_equal(notify_stats.calls,
                     (uint64_t)LISTENERS * TELLERS * storm.events_each + storm.passing_heard);
    prairie_check_all();
}

/* ---- fork ---- */

static void fork_inside(void *name, reserve_cnd_t condition, size_t size)
{
    int status;

    listen(name, condition, size);
    if (fake_fork() == 0) {
        struct event event;
        if (!notify_runs_here() || event_begin(&event, RESERVE_CND_LOW, 1)) _exit(1);
        return; /* the child goes on with the event */
    }
    wait(&status);
    assert_int_equal(status, 0);
}

static void a_child_goes_on_with_its_event(void **state)
{
    pid_t parent = getpid();

    (void)state;
    assert_non_null(heap_attach());
    add(fork_inside, a);
    add(listen, b);
    tell_all(RESERVE_CND_LOW);
    assert_string_equal(told, "ab");
    if (getpid() != parent) _exit(notify_runs_here() ? 2 : 0);
}

static void a_child_forgets_other_threads(void **state)
{
    pthread_t teller;
    int status;

    (void)state;
    assert_non_null(heap_attach());
    add(wait_inside, a);
    pthread_create(&teller, NULL, tell_one, NULL);
    wait_until_set(&meeting.inside);
    if (fake_fork() == 0) _exit(notify_remove(wait_inside, a) ? 0 : 1); /* would wait for ever */
    wait(&status);
    assert_int_equal(status, 0);
    __atomic_store_n(&meeting.leave, 1, __ATOMIC_RELEASE);
    pthread_join(teller, NULL);
}

static void n1_a_number_above_all(void) { inside_forget_newest_listener(); }
static void n1_a_number_twice(void) { inside_number_two_listeners_alike(); }

static void broken_invariants_are_found(void **state)
{
    static const struct harm harms[] = { HARM(n1_a_number_above_all), HARM(n1_a_number_twice) };

    (void)state;
    start();
    add(listen, "a");
    add(listen, "b");
    expect_harms_found(harms, ARRAY_COUNT(harms), notify_check);
}

static void without_memory_nobody_is_added(void **state)
{
    unsigned added = 0;

    (void)state;
    start();
    fake_fail_all(true);
    while (added < 100000 && notify_add(listen, a)) added++;
    assert_true(added < 100000);
    while (added-- > 0) assert_true(notify_remove(listen, a));
    assert_false(notify_has_listeners());
}

UNIT_MAIN(UNIT_TEST(everybody_once_from_another_start), UNIT_TEST(nobody_listens),
          UNIT_TEST(a_pair_may_come_twice), UNIT_TEST(they_leave_by_themselves),
          UNIT_TEST(they_send_others_away), UNIT_TEST(who_comes_later_hears_of_the_next),
          UNIT_TEST(only_an_end_interrupts), UNIT_TEST(callbacks_run_without_locks),
          UNIT_TEST(taking_away_waits_for_calls), UNIT_TEST(nothing_is_lost_or_told_twice),
          UNIT_TEST(a_child_goes_on_with_its_event), UNIT_TEST(a_child_forgets_other_threads),
          UNIT_TEST(broken_invariants_are_found), UNIT_TEST(without_memory_nobody_is_added))
