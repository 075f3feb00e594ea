/* shortage_reserve_test.c - what the reserve serves, who hears LOW, and forks. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "samples.h"
#include "shortage.h"

#include <jemalloc/jemalloc.h>

#include <sys/wait.h>

/* ---- nobody asked for anything ---- */

static void an_unaware_program_is_refused(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    exhaust();
    assert_null(prairie_malloc(100000));
    assert_int_equal(errno, ENOMEM);
    assert_null(prairie_malloc(5000));
    assert_int_equal(fake_touched_bytes(), 0);
}

/* ---- the reserve and LOW ---- */

static size_t reserve_small(void) { return 32 * page_bytes(); }

static void every_door_is_served_by_the_reserve(void **state)
{
    char *block;
    void *aligned = NULL;

    (void)state;
    start_with_reserve();
    add(hear, "a");
    exhaust();
    assert_non_null(prairie_malloc(5000));
    assert_string_equal(told.conditions, "L");
    assert_int_equal(told.last_size, class_bytes[class_of_size(5000)]);
    assert_non_null(prairie_malloc(20000));
    assert_int_equal(told.last_size, round_up(20000, page_bytes()));
    assert_non_null(block = prairie_calloc(1, 30000));
    assert_true(all_bytes_are(block, 0, 30000));
    assert_non_null(prairie_aligned_alloc(8192, 9000));
    assert_int_equal(prairie_posix_memalign(&aligned, 64, 20000), 0);
    assert_non_null(block = prairie_realloc(block, 40000));
    assert_true(all_bytes_are(block, 0, 30000));
    assert_non_null(block = prairie_realloc(block, 6000));
    assert_true(told.count >= 5);
    assert_true(reserve_cur_get() < reserve_min_get());
    prairie_check_all();
}

/* It is not left to the next one who frees. */
static void what_the_reserve_lets_go_of_goes_back(void **state)
{
    size_t taken;

    (void)state;
    prairie_free(prairie_malloc(1));
    taken = commit_taken_bytes();
    assert_false(reserve_min_set(64 * PURGE_KEEP_BYTES));
    assert_true(commit_taken_bytes() >= taken + 64 * PURGE_KEEP_BYTES);
    assert_false(reserve_min_set(0));
    assert_in_range(commit_taken_bytes(), taken, taken + 8 * PURGE_KEEP_BYTES);
}

/* Past all caches, too: only a call that names an arena or a cache wants no other place. */
static void blocks_past_the_cache_are_served_by_the_reserve(void **state)
{
    (void)state;
    start_with_reserve();
    exhaust();
    assert_non_null(prairie_mallocx(12000, MALLOCX_TCACHE_NONE));
    assert_true(reserve_cur_get() < reserve_min_get());
    prairie_check_all();
}

static void low_ends_when_the_reserve_is_full_again(void **state)
{
    (void)state;
    start_with_reserve();
    add(hear, "a");
    add(hear_and_free_all, "b");
    add(hear, "c");
    for (unsigned i = 0; i < 8; i++) spare_block(64 * KiB);
    exhaust();
    assert_non_null(prairie_malloc(20000));
    assert_string_equal(told.names, "ab"); /* c need not hear of it */
    assert_string_equal(told.conditions, "LL");
    assert_int_equal(reserve_cur_get(), reserve_min_get());
    prairie_check_all();
}

/* Blocks that lie in magazines are no reason to trouble anybody. */
static void what_caches_hold_is_used_first(void **state)
{
    enum { BLOCKS = 200 };
    static void *block[BLOCKS];

    (void)state;
    start_with_reserve();
    add(hear, "a");
    for (unsigned i = 0; i < BLOCKS; i++) assert_non_null(block[i] = prairie_malloc(12000));
    exhaust();
    for (unsigned i = 0; i < BLOCKS; i++) prairie_free(block[i]);
    assert_non_null(prairie_malloc(200 * KiB));
    assert_string_equal(told.conditions, "");
    assert_int_equal(reserve_cur_get(), reserve_min_get());
}

/* A sample takes a page; the block itself may lie in a magazine. */
static void a_sample_is_no_reason_either(void **state)
{
    enum { BLOCKS = 200 };
    static void *block[BLOCKS];

    (void)state;
    start_with_reserve();
    add(hear, "a");
    for (unsigned i = 0; i < BLOCKS; i++) assert_non_null(block[i] = prairie_malloc(64));
    sample_from_now(1);
    exhaust();
    for (unsigned i = 0; i < BLOCKS; i++) prairie_free(block[i]);
    for (unsigned i = 0; i < BLOCKS / 2; i++) assert_non_null(prairie_malloc(64));
    assert_string_equal(told.conditions, "");
    assert_int_equal(reserve_cur_get(), reserve_min_get());
}

static void what_the_reserve_has_not_got_is_refused_in_silence(void **state)
{
    (void)state;
    start_with_reserve();
    add(hear, "a");
    exhaust();
    assert_null(prairie_malloc(1 * MiB));
    assert_int_equal(errno, ENOMEM);
    assert_null(prairie_malloc(BY_WORD(64 * TiB, GiB)));
    assert_null(prairie_malloc(SIZE_MAX));
    assert_string_equal(told.conditions, "");
    assert_int_equal(reserve_cur_get(), reserve_min_get());
}

static void it_lasts_until_it_is_empty(void **state)
{
    unsigned served = 0;

    (void)state;
    start_with_reserve();
    exhaust();
    while (prairie_malloc(16 * KiB) != NULL) served++;
    assert_int_equal(served, 16);
    assert_int_equal(reserve_cur_get(), 0);
    prairie_check_all();
}

/* Listeners are told when the reserve is low, and some times more while the request that waits is
 * not served. */
static void who_can_give_nothing_is_told_nine_times(void **state)
{
    (void)state;
    start_with_reserve();
    add(hear, "a");
    exhaust();
    while (prairie_malloc(16 * KiB) != NULL) {}
    forget_told();
    assert_null(prairie_malloc(16 * KiB));
    assert_string_equal(told.conditions, "LLLLLLLLL");
}

static void it_is_full_again_when_memory_returns(void **state)
{
    (void)state;
    start_with_reserve();
    exhaust();
    assert_non_null(prairie_malloc(20000));
    assert_true(reserve_cur_get() < reserve_min_get());
    fake_fail_kind(FAKE_COMMIT, false);
    fake_fail_kind(FAKE_RESERVE, false);
    fake_clock_ms(1000);
    assert_non_null(prairie_malloc(20000));
    assert_int_equal(reserve_cur_get(), reserve_min_get());
    assert_int_not_equal(decay_limits_at_bytes, 0); /* nobody looks always any more */
}

static void take_in_callback(void *name, reserve_cnd_t condition, size_t size)
{
    hear(name, condition, size);
    prairie_free(prairie_malloc(3000));
    prairie_free(prairie_malloc(20000));
    assert_null(prairie_malloc(1 * MiB));
}

static void callbacks_allocate_without_events_of_their_own(void **state)
{
    (void)state;
    start_with_reserve();
    add(take_in_callback, "a");
    add(take_in_callback, "b");
    exhaust();
    assert_non_null(prairie_malloc(20000));
    assert_string_equal(told.names, "ab");
}

static void a_reserve_that_cannot_be_filled_says_so(void **state)
{
    (void)state;
    assert_false(reserve_min_set(reserve_small()));
    add(hear, "a");
    exhaust();
    assert_true(reserve_min_set(1 * MiB));
    assert_int_equal(reserve_min_get(), 1 * MiB);
    assert_string_equal(told.conditions, "L");
    assert_false(reserve_min_set(0));
    assert_int_equal(reserve_cur_get(), 0);
}

static void the_first_listener_brings_a_reserve(void **state)
{
    (void)state;
    assert_int_equal(reserve_min_get(), 0);
    add(hear, "a");
    assert_int_equal(reserve_min_get(), RESERVE_BYTES_DEFAULT);
    assert_int_equal(reserve_max_get(), RESERVE_BYTES_DEFAULT);
    assert_int_equal(reserve_cur_get(), RESERVE_BYTES_DEFAULT);
    assert_false(reserve_cb_unregister(hear, called("a")));
    assert_true(reserve_cb_unregister(hear, called("a")));
}

static void who_wants_none_gets_none(void **state)
{
    (void)state;
    assert_false(reserve_min_set(0));
    add(hear, "a");
    assert_int_equal(reserve_min_get(), 0);
}

static void options_make_a_reserve(void **state)
{
    (void)state;
    options_parse("reserve_min:100000,limit_soft:50000000,limit_hard:60000000", "MALLOC_CONF");
    prairie_free(prairie_malloc(1));
    shortage_obey_options();
    assert_int_equal(reserve_min_get(), round_up(100000, page_bytes()));
    assert_int_equal(reserve_cur_get(), reserve_min_get());
    assert_int_equal(limit_soft_get(), 50000000);
    assert_int_equal(limit_hard_get(), 60000000);
    add(hear, "a");
    assert_int_equal(reserve_min_get(), round_up(100000, page_bytes()));
}

/* As a constructor of the program may, before options are applied. */
static void what_was_set_before_options_stays(void **state)
{
    (void)state;
    limit_soft_set(50000000);
    limit_hard_set(60000000);
    assert_false(reserve_min_set(100000));
    shortage_obey_options();
    assert_int_equal(limit_soft_get(), 50000000);
    assert_int_equal(limit_hard_get(), 60000000);
    assert_int_equal(reserve_min_get(), round_up(100000, page_bytes()));
}

/* ---- fork ---- */

static void a_child_has_a_reserve_of_its_own(void **state)
{
    int status;

    (void)state;
    start_with_reserve();
    if (fake_fork() == 0) {
        uint64_t touched = fake_touched_bytes();
        if (!reserve_is_short()) _exit(1);
        prairie_free(prairie_malloc(20000));
        if (reserve_is_short()) _exit(2);
        _exit(fake_touched_bytes() - touched >= 256 * KiB ? 0 : 3);
    }
    wait(&status);
    assert_int_equal(status, 0);
}

static void the_first_call_may_be_any(void **state)
{
    (void)state;
    assert_int_equal(reserve_cur_get(), 0);
    assert_true(reserve_cb_unregister(hear, NULL));
    assert_int_equal(limit_soft_get(), 0);
    fake_fail_all(true);
    assert_true(reserve_cb_register(hear, NULL));
    assert_true(reserve_min_set(100000));
    fake_fail_all(false);
    assert_false(reserve_cb_register(hear, NULL));
}

/* Who could be called is told all the same. */
static void no_function_is_no_listener(void **state)
{
    (void)state;
    start_with_reserve();
    assert_true(reserve_cb_register(NULL, called("n")));
    assert_false(notify_has_listeners());
    add(hear, "a");
    exhaust();
    assert_non_null(prairie_malloc(5000));
    assert_string_equal(told.conditions, "L");
    assert_false(notify_runs_here());
    assert_true(reserve_cb_unregister(NULL, called("n")));
}

static void statistics_tell(void **state)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    (void)state;
    start_with_reserve();
    add(hear, "a");
    exhaust();
    assert_non_null(prairie_malloc(20000));
    assert_true(prairie_stats_read(&stats));
    assert_int_equal(stats.reserve_min, 256 * KiB);
    assert_int_equal(stats.reserve_cur, reserve_cur_get());
    assert_true(stats.reserve_uses >= 1 && stats.reserve_refills >= 1);
    assert_int_equal(stats.events_low, 1);
    assert_int_equal(stats.events_crit, 0);
    assert_int_equal(stats.event_calls, 1);
    prairie_stats_print();
    assert_non_null(strstr(fake_error_text(), "reserve to keep"));
}

static void stalls_are_looked_for_while_somebody_listens(void **state)
{
    (void)state;
    add(hear, "a");
    add(hear, "b");
    assert_true(limits_stalls_are_told());
    assert_false(reserve_cb_unregister(hear, called("a")));
    assert_true(limits_stalls_are_told());
    assert_false(reserve_cb_unregister(hear, called("b")));
    assert_false(limits_stalls_are_told());
    add(hear, "a");
    assert_true(limits_stalls_are_told());
}

UNIT_MAIN(UNIT_TEST(an_unaware_program_is_refused), UNIT_TEST(every_door_is_served_by_the_reserve),
          UNIT_TEST(what_the_reserve_lets_go_of_goes_back),
          UNIT_TEST(blocks_past_the_cache_are_served_by_the_reserve),
          UNIT_TEST(low_ends_when_the_reserve_is_full_again),
          UNIT_TEST(what_caches_hold_is_used_first), UNIT_TEST(a_sample_is_no_reason_either),
          UNIT_TEST(what_the_reserve_has_not_got_is_refused_in_silence),
          UNIT_TEST(it_lasts_until_it_is_empty), UNIT_TEST(who_can_give_nothing_is_told_nine_times),
          UNIT_TEST(it_is_full_again_when_memory_returns),
          UNIT_TEST(callbacks_allocate_without_events_of_their_own),
          UNIT_TEST(a_reserve_that_cannot_be_filled_says_so),
          UNIT_TEST(the_first_listener_brings_a_reserve), UNIT_TEST(who_wants_none_gets_none),
          UNIT_TEST(options_make_a_reserve), UNIT_TEST(what_was_set_before_options_stays),
          UNIT_TEST(a_child_has_a_reserve_of_its_own), UNIT_TEST(the_first_call_may_be_any),
          UNIT_TEST(no_function_is_no_listener), UNIT_TEST(statistics_tell),
          UNIT_TEST(stalls_are_looked_for_while_somebody_listens))
