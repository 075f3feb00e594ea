/* shortage_group_test.c - a control group almost full, and threads that wait. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "holes.h"
#include "shortage.h"

#include <pthread.h>
#include <unistd.h>

/* ---- the group ---- */

static void follow_group(size_t limit, size_t used)
{
    prairie_free(prairie_malloc(1));
    RELAXED_STORE(limits.follows_group, true);
    fake_group(limit, used);
    limits.group_known = false;
    decay_look_at_limits_from(0);
}

static void a_crowded_group_is_told(void **state)
{
    (void)state;
    add(hear, "a");
    follow_group(64 * MiB, 10 * MiB);
    spare_block(20000);
    assert_string_equal(told.conditions, "");
    fake_group(64 * MiB, 58 * MiB);
    decay_look_at_limits_from(0);
    fake_clock_ms(10);
    limits.group_known = false;
    spare_block(20000);
    assert_string_equal(told.conditions, "L");
}

/* What was known of it is of before. */
static void a_group_that_counts_again_is_read_again(void **state)
{
    (void)state;
    follow_group(64 * MiB, 60 * MiB);
    limits_know_group();
    assert_in_range(limits_room_bytes(), 0, 4 * MiB);
    limits_follow_group(false);
    fake_group(64 * MiB, 8 * MiB);
    limits_follow_group(true);
    limits_know_group();
    assert_in_range(limits_room_bytes(), 50 * MiB, 56 * MiB);
}

/* The first fill of a reserve looks at the group, which nobody did before. */
static void a_reserve_does_not_take_the_last_of_a_group(void **state)
{
    (void)state;
    follow_group(64 * MiB, 60 * MiB);
    assert_true(reserve_min_set(32 * MiB));
    assert_true(reserve_cur_get() <= 4 * MiB);
    assert_int_equal(reserve_min_get(), 32 * MiB);
}

/* However much is left: a request that is larger than that would be served, and its pages charged
 * when they are touched. Callbacks that free nothing change nothing. */
static void a_request_beyond_the_room_of_a_group_is_refused(void **state)
{
    void *block;

    (void)state;
    assert_false(reserve_min_set(1 * MiB));
    add(hear, "a");
    for (size_t used = 20 * MiB; used < 62 * MiB; used += 6 * MiB) {
        follow_group(64 * MiB, used);
        assert_null(prairie_malloc(64 * MiB - used - 1 * MiB));
        assert_int_equal(errno, ENOMEM);
    }
    follow_group(64 * MiB, 20 * MiB);
    assert_null(prairie_malloc(1024 * MiB));
    assert_non_null(block = prairie_malloc(1 * MiB));
    assert_null(prairie_realloc(block, 43 * MiB));
    assert_non_null(block = prairie_realloc(block, 10 * MiB));
    prairie_free(block);
    prairie_check_all();
}

/* Another thread is about to take more than there is: others go on without the reserve. */
static void a_request_beyond_the_room_bars_no_other(void **state)
{
    (void)state;
    follow_group(64 * MiB, 20 * MiB);
    assert_false(reserve_min_set(1 * MiB));
    add(hear, "a");
    assert_false(page_heaps_are_barred());
    for (size_t size = 1000; size < 3 * MiB; size = size * 17 + 1) {
        decay_look_at_limits_from(SIZE_MAX); /* this thread has looked */
        limits_bar_clean_for(60 * MiB);
        assert_true(page_heaps_are_barred());
        assert_non_null(prairie_malloc(size));
    }
    assert_int_equal(reserve.releases, 0);
    assert_int_equal(told.count, 0);
    prairie_check_all();
}

/* Small blocks and large ones: what it gives up for one is not taken back for it. */
static void the_reserve_serves_in_the_last_of_a_group(void **state)
{
    (void)state;
    for (size_t size = 1000; size < 300000; size = size * 17 + 1) {
        follow_group(64 * MiB, 10 * MiB);
        (void)limits_look(0);
        assert_false(reserve_min_set(1 * MiB));
        follow_group(64 * MiB, 63 * MiB);
        for (size_t bytes = 0; bytes < 600000; bytes += size) assert_non_null(prairie_malloc(size));
        assert_true(reserve_cur_get() <= 1 * MiB - 500000);
    }
}

/* Descriptors may be used up just when memory is. */
static void a_group_that_cannot_be_read_is_what_it_was(void **state)
{
    (void)state;
    follow_group(64 * MiB, 40 * MiB);
    (void)limits_look(0);
    assert_int_equal(limits.group.limit_bytes, 64 * MiB);
    fake_group_fails(true);
    limits.group_open_bytes = 0;
    for (unsigned i = 0; i < 40; i++) assert_non_null(prairie_malloc(400 * KiB));
    (void)limits_are_clear();
    assert_int_equal(limits.group.limit_bytes, 64 * MiB);
    assert_in_range(limits_room_bytes(), 0, 10 * MiB);
    fake_group_fails(false);
    (void)limits_are_clear();
    assert_in_range(limits_room_bytes(), 10 * MiB, 24 * MiB);
}

/* A table may stay sparse: half of the room is for what else there is. */
static void what_is_not_touched_takes_half_of_the_room(void **state)
{
    (void)state;
    follow_group(64 * MiB, 4 * MiB);
    fake_own(0);
    assert_non_null(prairie_malloc(100 * MiB));
    limits.group_known = false;
    (void)limits_look(0);
    assert_in_range(limits_room_bytes(), 29 * MiB, 30 * MiB);
}

/* They are no clean pages of a page heap's. */
static void a_vast_block_takes_from_the_group(void **state)
{
    uint64_t reads;

    (void)state;
    needs_addresses(2 * VAST_BYTES_MIN);
    follow_group(2 * VAST_BYTES_MIN, 0);
    fake_own(SIZE_MAX);
    (void)limits_look(0);
    reads = fake_calls(FAKE_READ_GROUP);
    assert_non_null(prairie_malloc(VAST_BYTES_MIN));
    assert_true(fake_calls(FAKE_READ_GROUP) > reads);
}

static void crowd_the_group(const char *option)
{
    options_parse(option, "MALLOC_CONF");
    shortage_obey_options();
    fake_group(64 * MiB, 58 * MiB);
    limits.group_known = false;
    decay_look_at_limits_from(0);
    spare_block(20000);
}

static void a_group_may_be_left_to_itself(void **state)
{
    unsigned reads;

    (void)state;
    add(hear, "a");
    reads = fake_calls(FAKE_READ_GROUP);
    crowd_the_group("limit_group:false");
    assert_string_equal(told.conditions, "");
    assert_int_equal(fake_calls(FAKE_READ_GROUP), reads);
    crowd_the_group("limit_group:true");
    assert_string_equal(told.conditions, "L");
}

static uint32_t looked; /* atomic */

static void *look(void *unused)
{
    (void)limits_look(0);
    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
    return unused;
}

static pthread_t looker;

static void look_meanwhile(enum fake_call kind)
{
    if (kind != FAKE_READ_GROUP || looker != 0) return;
    assert_int_equal(pthread_create(&looker, NULL, look, NULL), 0);
    usleep(20000);
    assert_int_equal(__atomic_load_n(&looked, __ATOMIC_ACQUIRE), 0);
}

/* While the group is read, what was taken since it was read last still counts: others wait. */
static void who_looks_meanwhile_waits(void **state)
{
    (void)state;
    follow_group(64 * MiB, 10 * MiB);
    (void)limits_look(0);
    assert_non_null(prairie_malloc(40 * MiB));
    fake_group(64 * MiB, 50 * MiB);
    fake_on_call(look_meanwhile);
    (void)limits_look(0);
    fake_on_call(NULL);
    assert_int_not_equal(looker, 0);
    assert_int_equal(pthread_join(looker, NULL), 0);
    assert_int_equal(looked, 1);
}

static size_t looks_for; /* what the other thread is about to take */

static void *look_for_room(void *unused)
{
    shortage_look(looks_for);
    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
    return unused;
}

static void look_beside(enum fake_call kind)
{
    bool waits = looks_for >= 1 * MiB;

    if (kind != FAKE_READ_GROUP || looker != 0) return;
    assert_int_equal(pthread_create(&looker, NULL, look_for_room, NULL), 0);
    for (unsigned ms = 0; ms < (waits ? 20 : 5000); ms++) {
        usleep(1000);
        if (__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) break;
    }
    assert_int_equal(__atomic_load_n(&looked, __ATOMIC_ACQUIRE), !waits);
}

/* The group is read by the clock, and nobody has taken from it. */
static void look_beside_who_reads(size_t coming)
{
    start_with_reserve();
    follow_group(64 * MiB, 58 * MiB);
    (void)limits_look(0);
    assert_false(page_heaps_are_barred());
    looks_for = coming;
    fake_clock_ms(10);
    fake_on_call(look_beside);
    (void)limits_look(0);
    fake_on_call(NULL);
    assert_int_not_equal(looker, 0);
    assert_int_equal(pthread_join(looker, NULL), 0);
}

static void who_has_room_waits_for_no_look(void **state)
{
    (void)state;
    look_beside_who_reads(1000);
    assert_false(page_heaps_are_barred());
}

static void who_would_take_the_last_waits(void **state)
{
    (void)state;
    look_beside_who_reads(5 * MiB);
    assert_true(page_heaps_are_barred());
}

/* A look bars clean pages once, and not for what can be had when dirty ones have gone. */
static void a_look_bars_for_what_is_coming(void **state)
{
    (void)state;
    start_with_reserve();
    follow_group(64 * MiB, 50 * MiB);
    assert_int_equal(limits_look(1 * MiB), LIMITS_CALM);
    assert_false(page_heaps_are_barred());
    assert_int_equal(limits_look(13 * MiB), LIMITS_CALM);
    assert_true(page_heaps_are_barred());
    assert_int_equal(limits_look(1 * MiB), LIMITS_CALM);
    assert_false(page_heaps_are_barred());
}

/* With a reserve the last of the group is left alone: what is asked for comes from pages it has
 * paid for. */
static void the_last_of_a_group_is_not_taken(void **state)
{
    void *kept;

    (void)state;
    start_with_reserve();
    kept = prairie_malloc(100000);
    prairie_free(prairie_malloc(4 * MiB));
    (void)prairie_purge();
    follow_group(64 * MiB, 64 * MiB - 100000);
    prairie_free(kept); /* dirty: paid for */
    assert_non_null(prairie_malloc(50000));
    assert_null(prairie_malloc(3 * MiB)); /* it would be clean pages */
    assert_true(page_heaps_are_barred());
    assert_non_null(prairie_malloc(100));
    fake_group(64 * MiB, 10 * MiB);
    fake_clock_ms(100);
    assert_non_null(prairie_malloc(3 * MiB));
    assert_false(page_heaps_are_barred());
    prairie_check_all();
}

/* Growth is looked at early where clean pages, which count only when they are written, may fill
 * half of the room. */
static void idle_pages_are_counted_before_growth(void **state)
{
    void *block[256];

    (void)state;
    follow_group(256 * MiB, 10 * MiB);
    for (unsigned i = 0; i < 256; i++) block[i] = prairie_malloc(256 * KiB);
    assert_true(limits_look_from(0) > space.open_bytes);
    for (unsigned i = 0; i < 256; i++) prairie_free(block[i]);
    thread_flush();
    (void)prairie_purge();
    assert_true(page_heaps_free_now(FREE_CLEAN) << space.page_shift >= 64 * MiB);
    fake_group(128 * MiB, 10 * MiB);
    limits.group_known = false;
    assert_int_equal(limits_look(0), LIMITS_CALM);
    assert_true(limits.group.room_bytes / 2 < 64 * MiB);
    assert_int_equal(limits_look_from(0), LOOK_AT_LEASES);
}

/* A process that has shrunk in such a group: who takes no pages looks no more, and keeps runs. */
static void idle_pages_cost_who_leases_none_nothing(void **state)
{
    enum { FEW = 10 }; /* of 100; others take that lock as well, who ask how many cores there are */
    uint64_t looks;

    idle_pages_are_counted_before_growth(state);
    shortage_set_look();
    for (unsigned i = 0; i <= LARGE_CACHE_AFTER; i++) prairie_free(prairie_malloc(20000));
    assert_int_equal(decay_limits_at_bytes, LOOK_AT_LEASES);
    looks = limits.lock.taken;
    for (unsigned i = 0; i < 100; i++) prairie_free(prairie_malloc(20000));
    assert_true(thread_front()->cache->large_cache->takes >= 100);
    assert_in_range(limits.lock.taken, looks, looks + FEW);
    prairie_free(prairie_malloc(100));
    assert_true(thread_cache_off());
    looks = limits.lock.taken;
    for (unsigned i = 0; i < 100; i++) prairie_free(prairie_malloc(100));
    assert_in_range(limits.lock.taken, looks, looks + FEW);
    looks = limits.lock.taken;
    assert_non_null(prairie_malloc(1 * MiB)); /* which are clean pages */
    assert_true(limits.lock.taken > looks);
}

static void without_a_reserve_a_full_group_is_the_kernels_business(void **state)
{
    (void)state;
    follow_group(64 * MiB, 64 * MiB);
    assert_non_null(prairie_malloc(3 * MiB));
}

static void a_group_without_a_limit_is_asked_seldom(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    RELAXED_STORE(limits.follows_group, true);
    shortage_set_look();
    for (unsigned i = 0; i < 64; i++) assert_non_null(prairie_malloc(GROUP_OPEN_BYTES_MIN / 16));
    assert_true(limits.group_known);
    assert_true(limits.group_open_bytes >= space.open_bytes / 4);
    assert_true(decay_limits_at_bytes > space.open_bytes / 2);
}

/* While there is room, time alone is no reason to read it again; while there is little, others may
 * have taken it or given it back, and it is read from time to time. */
static void a_group_is_read_again_by_the_clock_only_when_crowded(void **state)
{
    uint64_t reads;

    (void)state;
    follow_group(64 * MiB, 10 * MiB);
    (void)limits_look(0);
    (void)purge_all();
    reads = fake_calls(FAKE_READ_GROUP);
    for (unsigned ms = 0; ms < 1000; ms++) {
        fake_clock_ms(1);
        (void)limits_look(0);
    }
    assert_int_equal(fake_calls(FAKE_READ_GROUP), reads);
    fake_group(64 * MiB, 62 * MiB);
    limits.group_known = false;
    (void)limits_look(0);
    reads = fake_calls(FAKE_READ_GROUP);
    for (unsigned i = 0; i < 1000; i++) (void)limits_look(0); /* all at the same moment */
    assert_int_equal(fake_calls(FAKE_READ_GROUP), reads);
    for (unsigned ms = 0; ms < 1000; ms++) {
        fake_clock_ms(1);
        (void)limits_look(0);
    }
    assert_in_range(fake_calls(FAKE_READ_GROUP) - reads, 100, 250);
}

/* Whether it is over is asked after each callback, which may have let go of what other processes
 * share. */
static void what_others_give_back_ends_the_telling(void **state)
{
    (void)state;
    follow_group(64 * MiB, 62 * MiB);
    assert_int_equal(limits_look(0), LIMITS_NEAR);
    assert_false(limits_are_clear());
    fake_group(64 * MiB, 10 * MiB);
    assert_true(limits_are_clear());
    fake_group(64 * MiB, 62 * MiB);
    assert_false(limits_are_clear());
}

/* Clean pages count at once; what is leased and not touched yet, where the kernel has not counted
 * it. */
static void what_was_taken_is_no_room_any_more(void **state)
{
    (void)state;
    assert_int_equal(limits_room_bytes(), SIZE_MAX);
    follow_group(64 * MiB, 10 * MiB);
    (void)limits_look(0);
    assert_int_equal(limits_room_bytes(), 54 * MiB);
    assert_non_null(prairie_malloc(8 * MiB));
    assert_in_range(limits_room_bytes(), 45 * MiB, 46 * MiB);
    fake_own(commit_taken_bytes() - 3 * MiB);
    limits.group_known = false;
    (void)limits_look(0);
    assert_int_equal(limits_room_bytes(), 51 * MiB);
}

/* An eighth of a small group, a sixteenth of a larger one, and 64 MiB at most. */
static void expect_crowded_below(size_t limit, size_t room)
{
    fake_group(limit, limit - room);
    assert_true(limits_are_clear());
    fake_group(limit, limit - room + 1);
    assert_false(limits_are_clear());
}

static void a_group_is_crowded_from_a_line_on(void **state)
{
    (void)state;
    follow_group(64 * MiB, 10 * MiB);
    (void)limits_look(0);
    expect_crowded_below(16 * MiB, 2 * MiB);
    expect_crowded_below(64 * MiB, 8 * MiB);
    expect_crowded_below(512 * MiB, 32 * MiB);
    expect_crowded_below(2047 * MiB, 64 * MiB);
}

static void look_with_room(size_t room)
{
    fake_group(1 * GiB, 1 * GiB - room);
    limits.group_known = false;
    (void)limits_look(0);
}

/* Each first touch of a huge page takes 2 MiB. Once they are barred there must be twice the
 * room. */
static void a_group_with_little_room_has_no_huge_pages(void **state)
{
    (void)state;
    follow_group(1 * GiB, 0);
    huge_obey_option(HUGE_ALWAYS);
    assert_non_null(prairie_malloc(8 * MiB));
    look_with_room(257 * MiB);
    assert_false(huge.barred);
    assert_int_equal(huge.wanted,
                     OS_HEEDS_HUGE_WISHES && REGION_BYTES_FIRST >= HUGE_REGION_BYTES_MIN);
    look_with_room(255 * MiB);
    assert_true(huge.barred);
    assert_false(huge.wanted);
    look_with_room(511 * MiB);
    assert_true(huge.barred);
    look_with_room(512 * MiB);
    assert_false(huge.barred);
    fake_group(SIZE_MAX, 0);
    limits.group_known = false;
    (void)limits_look(0);
    assert_false(huge.barred);
    prairie_check_all();
}

/* ---- stalls ---- */

static void look_while_stalled(void)
{
    static unsigned looks;

    fake_stall(200000);
    if (++looks == 3) inside_let_background_end();
}

static void stalls_are_seen_by_the_background_thread_and_told_by_a_thread(void **state)
{
    (void)state;
    add(hear, "a");
    decay_thread_count(2);
    decay_resume_looking();
    fake_on_sleep(look_while_stalled);
    assert_true(fake_thread_run());
    assert_string_equal(told.conditions, ""); /* not by the background thread */
    assert_non_null(prairie_malloc(20000));
    assert_string_equal(told.conditions, "L");
    assert_non_null(prairie_malloc(20000));
    assert_string_equal(told.conditions, "L");
    assert_false(RELAXED_LOAD(purge_mode.keeps_none));
}

/* Not even a block that comes from what the thread keeps is given before. */
static void a_stall_is_told_to_who_keeps_runs(void **state)
{
    const struct large_cache *kept;

    (void)state;
    add(hear, "a");
    for (unsigned i = 0; i < LARGE_CACHE_AFTER; i++) prairie_free(prairie_malloc(20000));
    kept = thread_front()->cache->large_cache;
    assert_non_null(kept);
    assert_int_equal(kept->takes, 0);
    prairie_free(prairie_malloc(20000));
    assert_int_equal(kept->takes, 1);
    decay_thread_count(2);
    decay_resume_looking();
    fake_on_sleep(look_while_stalled);
    assert_true(fake_thread_run());
    assert_string_equal(told.conditions, "");
    assert_non_null(prairie_malloc(20000));
    assert_string_equal(told.conditions, "L");
}

static void quiet_is_not_told(void **state)
{
    (void)state;
    add(hear, "a");
    for (unsigned i = 0; i < 10; i++) {
        fake_stall(1000);
        fake_clock_ms(600);
        assert_false(limits_look_for_stalls());
    }
}

static bool stalled_for(uint64_t ms, uint64_t us)
{
    fake_stall(us);
    fake_clock_ms(ms);
    return limits_look_for_stalls();
}

/* Looks that come sooner than others wait for the next; what was before the first one is
 * nobody's. */
static void a_tenth_of_the_time_is_a_stall(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    assert_false(stalled_for(STALL_LOOK_MS, 1000000));
    RELAXED_STORE(limits.looks_for_stalls, true);
    assert_false(stalled_for(STALL_LOOK_MS, 1000000));
    assert_false(stalled_for(STALL_LOOK_MS, STALL_LOOK_MS * 100 - 1));
    assert_true(stalled_for(STALL_LOOK_MS, STALL_LOOK_MS * 100));
    assert_true(stalled_for(STALL_LOOK_MS, 0)); /* until it is told */
    assert_int_equal(limits_look(0), LIMITS_STALLED);
    assert_int_equal(limits_look(0), LIMITS_CALM);
    assert_false(stalled_for(STALL_LOOK_MS - 1, 1000000));
    assert_true(stalled_for(1, 0));
}

static void waits_that_nobody_could_tell_are_no_stall(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    RELAXED_STORE(limits.looks_for_stalls, true);
    assert_false(stalled_for(STALL_LOOK_MS, 1000));
    assert_false(stalled_for(STALL_LOOK_MS, UINT64_MAX - 1000)); /* it cannot be told now */
    assert_false(stalled_for(STALL_LOOK_MS, 1 + 1000000));
    assert_true(stalled_for(STALL_LOOK_MS, STALL_LOOK_MS * 100));
}

static unsigned background_looks;

static void look_often(void)
{
    if (++background_looks == 100) inside_let_background_end();
}

static void the_background_thread_stays_for_listeners(void **state)
{
    (void)state;
    add(hear, "a");
    assert_false(fake_thread_waits()); /* one thread */
    decay_thread_count(2);
    add(hear, "b");
    assert_true(fake_thread_waits());
    fake_on_sleep(look_often);
    assert_true(fake_thread_run());
    assert_true(background_looks >= 100);
}

/* ---- pages between blocks ---- */

static void crowd_with_pages_between(void)
{
    follow_group(64 * MiB, 10 * MiB);
    take_and_make_holes();
    assert_int_equal(hole_pages_gone(), 0);
    fake_group(64 * MiB, 60 * MiB);
    limits.group_known = false;
    decay_look_at_limits_from(0);
    spare_block(20000);
}

static void pages_between_blocks_go_when_nobody_listens(void **state)
{
    (void)state;
    crowd_with_pages_between();
    assert_true(hole_pages_gone() > 0);
    prairie_check_all();
}

/* Who listens fills the holes again. */
static void pages_between_blocks_stay_while_somebody_listens(void **state)
{
    (void)state;
    add(hear, "a");
    crowd_with_pages_between();
    assert_string_equal(told.conditions, "L");
    assert_int_equal(hole_pages_gone(), 0);
}

/* Which count slabs, whatever lies behind them. */
static void pages_between_blocks_stay_for_other_limits(void **state)
{
    (void)state;
    follow_group(64 * MiB, 10 * MiB);
    take_and_make_holes();
    limits_set_soft(commit_taken_bytes() / 2);
    decay_look_at_limits_from(0);
    spare_block(20000);
    assert_true(RELAXED_LOAD(purge_mode.keeps_none)); /* somebody has looked */
    assert_int_equal(hole_pages_gone(), 0);
}

/* limit_group:false, when a constructor had it read already. */
static void a_group_that_is_followed_no_more_is_no_limit(void **state)
{
    (void)state;
    follow_group(64 * MiB, 40 * MiB);
    (void)limits_look(0);
    assert_in_range(limits_room_bytes(), 1, 24 * MiB);
    assert_true(RELAXED_LOAD(huge.barred));
    limits_follow_group(false);
    assert_int_equal(limits_room_bytes(), SIZE_MAX);
    assert_false(RELAXED_LOAD(huge.barred));
}

UNIT_MAIN(UNIT_TEST(a_crowded_group_is_told), UNIT_TEST(a_group_that_counts_again_is_read_again),
          UNIT_TEST(a_reserve_does_not_take_the_last_of_a_group),
          UNIT_TEST(a_request_beyond_the_room_of_a_group_is_refused),
          UNIT_TEST(a_request_beyond_the_room_bars_no_other),
          UNIT_TEST(the_reserve_serves_in_the_last_of_a_group),
          UNIT_TEST(a_group_that_cannot_be_read_is_what_it_was),
          UNIT_TEST(what_is_not_touched_takes_half_of_the_room),
          UNIT_TEST(a_vast_block_takes_from_the_group), UNIT_TEST(a_group_may_be_left_to_itself),
          UNIT_TEST(who_looks_meanwhile_waits), UNIT_TEST(who_has_room_waits_for_no_look),
          UNIT_TEST(who_would_take_the_last_waits), UNIT_TEST(a_look_bars_for_what_is_coming),
          UNIT_TEST(the_last_of_a_group_is_not_taken),
          UNIT_TEST(idle_pages_are_counted_before_growth),
          UNIT_TEST(idle_pages_cost_who_leases_none_nothing),
          UNIT_TEST(without_a_reserve_a_full_group_is_the_kernels_business),
          UNIT_TEST(a_group_without_a_limit_is_asked_seldom),
          UNIT_TEST(a_group_is_read_again_by_the_clock_only_when_crowded),
          UNIT_TEST(what_others_give_back_ends_the_telling),
          UNIT_TEST(what_was_taken_is_no_room_any_more),
          UNIT_TEST(a_group_is_crowded_from_a_line_on),
          UNIT_TEST(a_group_with_little_room_has_no_huge_pages),
          UNIT_TEST(a_tenth_of_the_time_is_a_stall),
          UNIT_TEST(waits_that_nobody_could_tell_are_no_stall),
          UNIT_TEST(stalls_are_seen_by_the_background_thread_and_told_by_a_thread),
          UNIT_TEST(a_stall_is_told_to_who_keeps_runs), UNIT_TEST(quiet_is_not_told),
          UNIT_TEST(the_background_thread_stays_for_listeners),
          UNIT_TEST(pages_between_blocks_go_when_nobody_listens),
          UNIT_TEST(pages_between_blocks_stay_while_somebody_listens),
          UNIT_TEST(pages_between_blocks_stay_for_other_limits),
          UNIT_TEST(a_group_that_is_followed_no_more_is_no_limit))
