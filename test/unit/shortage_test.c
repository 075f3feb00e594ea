/* shortage_test.c - what the doors do when memory runs short: the reserve, LOW, CRIT, FAIL, limits. */
/* SPDX-License-Identifier: MIT */
#include "prairie.c"

#include "unit.h"

#include <sys/wait.h>

enum { TOLD_MAX = 10000, CHAIN_MAX = 4096 };

static struct {
    char conditions[TOLD_MAX + 1]; /* a letter for each call: L, C or F */
    char names[TOLD_MAX + 1];      /* who was told, for each call */
    size_t count, last_size;
} told;

/* What a callback can let go of. */
static struct {
    void *block[CHAIN_MAX];
    unsigned count;
} spare;

static void *called(const char *name) { return (void *)(uintptr_t)name; }

static void hear(void *name, reserve_cnd_t condition, size_t size)
{
    if (told.count == TOLD_MAX) return;
    told.conditions[told.count] = "LCF"[condition];
    told.names[told.count++] = *(const char *)name;
    told.last_size = size;
}

static void hear_and_free_all(void *name, reserve_cnd_t condition, size_t size)
{
    hear(name, condition, size);
    while (spare.count > 0) prairie_free(spare.block[--spare.count]);
}

static void hear_and_free_one(void *name, reserve_cnd_t condition, size_t size)
{
    hear(name, condition, size);
    if (spare.count > 0) prairie_free(spare.block[--spare.count]);
}

static void forget_told(void) { memset(&told, 0, sizeof told); }

static void add(reserve_cb_t *call, const char *name)
{
    assert_false(reserve_cb_register(call, called(name)));
}

static size_t reserve_small(void) { return 32 * page_bytes(); }

static void start_with_reserve(void)
{
    assert_false(reserve_min_set(256 * KiB));
    assert_int_equal(reserve_cur_get(), 256 * KiB);
}

/* The kernel has nothing from now on, and nothing is free. */
static void exhaust(void)
{
    struct run run;

    fake_fail_kind(FAKE_COMMIT, true);
    fake_fail_kind(FAKE_RESERVE, true);
    tidy_before_refusal();
    thread_flush();
    arenas_clear();
    for (size_t pages = 256; pages > 0; pages /= 2)
        while ((run = run_lease(pages, 1, PAGE_USED)).page != 0) {}
}

static void *spare_block(size_t bytes)
{
    void *block = prairie_malloc(bytes);

    assert_non_null(block);
    assert_true(spare.count < CHAIN_MAX);
    return spare.block[spare.count++] = block;
}

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

static void what_the_reserve_has_not_got_is_refused_in_silence(void **state)
{
    (void)state;
    start_with_reserve();
    add(hear, "a");
    exhaust();
    assert_null(prairie_malloc(1 * MiB));
    assert_int_equal(errno, ENOMEM);
    assert_null(prairie_malloc((size_t)1 << 46));
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
    assert_int_not_equal(tidy_watch_at_bytes, 0); /* nobody looks always any more */
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
    shortage_apply_options();
    assert_int_equal(reserve_min_get(), round_up(100000, page_bytes()));
    assert_int_equal(reserve_cur_get(), reserve_min_get());
    assert_int_equal(limit_soft_get(), 50000000);
    assert_int_equal(limit_hard_get(), 60000000);
    add(hear, "a");
    assert_int_equal(reserve_min_get(), round_up(100000, page_bytes()));
}

/* ---- CRIT, when malloc is to tell ---- */

static void malloc_tells_and_tries_again(void **state)
{
    (void)state;
    options_parse("reserve_malloc:true", "MALLOC_CONF");
    add(hear, "a");
    add(hear_and_free_one, "b");
    add(hear, "c");
    assert_false(reserve_min_set(0));
    spare_block(100000);
    exhaust();
    assert_non_null(prairie_malloc(100000));
    assert_string_equal(told.names, "ab");
    assert_string_equal(told.conditions, "CC");
    forget_told();
    assert_null(prairie_malloc(100000));
    assert_int_equal(told.count, 3);
    assert_string_equal(told.conditions, "CCC");
    forget_told();
    assert_null(prairie_malloc(5000));
    assert_int_equal(told.count, 3);
}

static void without_the_option_malloc_is_silent(void **state)
{
    (void)state;
    add(hear_and_free_one, "a");
    assert_false(reserve_min_set(0));
    spare_block(100000);
    exhaust();
    assert_null(prairie_malloc(100000));
    assert_string_equal(told.conditions, "");
}

/* ---- never NULL ---- */

static void x_doors_are_doors(void **state)
{
    char *block, *aligned;

    (void)state;
    assert_non_null(block = xmalloc(0));
    assert_non_null(block = xrealloc(block, 100));
    memset(block, 7, 100);
    assert_non_null(block = xrealloc(block, 100000));
    assert_true(all_bytes_are(block, 7, 100));
    assert_non_null(block = xrealloc(block, 0));
    prairie_free(block);
    assert_non_null(block = xcalloc(10, 10));
    assert_true(all_bytes_are(block, 0, 100));
    assert_non_null(xcalloc(0, 10));
    assert_non_null(aligned = xmemalign(1024, 10));
    assert_true(is_aligned((uintptr_t)aligned, 1024));
    assert_non_null(aligned = xmemalign(48, 10));
    assert_true(is_aligned((uintptr_t)aligned, 64));
}

static void x_doors_tell_until_somebody_helps(void **state)
{
    (void)state;
    add(hear, "a");
    add(hear_and_free_one, "b");
    add(hear, "c");
    assert_false(reserve_min_set(0));
    for (unsigned i = 0; i < 5; i++) spare_block(100000);
    exhaust();
    errno = 4711;
    assert_non_null(xmalloc(100000));
    assert_int_equal(errno, 4711);
    assert_string_equal(told.names, "ab");
    assert_string_equal(told.conditions, "CC");
    forget_told();
    assert_non_null(xcalloc(10, 10000)); /* starts at b */
    assert_string_equal(told.names, "b");
    assert_non_null(xrealloc(xmemalign(4096, 50000), 100000));
}

static void end_in_xmalloc(void)
{
    add(hear, "a");
    add(hear, "b");
    (void)reserve_min_set(0);
    exhaust();
    (void)xmalloc(100000);
}

static void end_in_xcalloc(void)
{
    add(hear, "a");
    (void)xcalloc(SIZE_MAX / 2, 3);
}

static void end_in_xrealloc(void)
{
    void *block = xmalloc(100);

    exhaust();
    (void)xrealloc(block, 10 * MiB);
}

static void end_in_xmemalign(void) { (void)xmemalign(SIZE_MAX, 1); }

static void x_doors_end_the_process(void **state)
{
    (void)state;
    expect_abort(end_in_xmalloc,
                 "prairie: out of memory in xmalloc, xcalloc, xrealloc or xmemalign");
    expect_abort(end_in_xrealloc, "prairie: out of memory in xmalloc, xcalloc, xrealloc or");
    expect_abort(end_in_xmemalign, "prairie: out of memory in xmalloc, xcalloc, xrealloc or");
    expect_abort(end_in_xcalloc, "prairie: xcalloc: count times size overflows");
}

/* CRIT to each, then FAIL to each, then the end: the last who hears looks at it all. */
static void hear_the_end(void *name, reserve_cnd_t condition, size_t size)
{
    hear(name, condition, size);
    if (condition != RESERVE_CND_FAIL || told.count < 4) return;
    _exit(strcmp(told.conditions, "CCFF") == 0 && strcmp(told.names, "abba") == 0 ? 0 : 1);
}

static void fail_comes_last_and_to_all(void **state)
{
    int status;

    (void)state;
    add(hear_the_end, "a");
    add(hear_the_end, "b");
    assert_false(reserve_min_set(0));
    exhaust();
    if (fork() == 0) {
        (void)xmalloc(100000);
        _exit(2);
    }
    wait(&status);
    assert_int_equal(status, 0);
}

/* With reserve_malloc the door has told CRIT: nobody hears of one request twice. */
static void crit_is_told_once(void **state)
{
    int status;

    (void)state;
    options_parse("reserve_malloc:true", "MALLOC_CONF");
    add(hear_the_end, "a");
    add(hear_the_end, "b");
    assert_false(reserve_min_set(0));
    exhaust();
    if (fork() == 0) {
        (void)xmalloc(100000);
        _exit(2);
    }
    wait(&status);
    assert_int_equal(status, 0);
}

static void x_in_callback(void *name, reserve_cnd_t condition, size_t size)
{
    hear(name, condition, size);
    if (condition == RESERVE_CND_FAIL) _exit(*(char *)name == 'b' && told.count == 2 ? 0 : 1);
    (void)xmalloc(1 * MiB);
}

static void an_x_door_in_a_callback_goes_on_to_the_end(void **state)
{
    int status;

    (void)state;
    add(x_in_callback, "a");
    add(x_in_callback, "b");
    assert_false(reserve_min_set(0));
    exhaust();
    if (fork() == 0) {
        (void)xmalloc(1 * MiB);
        _exit(2);
    }
    wait(&status);
    assert_int_equal(status, 0);
}

/* ---- limits ---- */

static void the_hard_limit_is_a_wall(void **state)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    size_t bytes = 0;

    (void)state;
    limit_hard_set(4 * MiB);
    while (prairie_malloc(50000) != NULL) bytes += 50000;
    assert_int_equal(errno, ENOMEM);
    assert_true(bytes > 3 * MiB);
    assert_true(prairie_stats_read(&stats));
    assert_true(stats.mapped <= 4 * MiB);
    while (prairie_malloc(100) != NULL) {}
    assert_true(prairie_stats_read(&stats));
    assert_true(stats.mapped <= 4 * MiB);
    limit_hard_set(0);
    assert_int_equal(limit_hard_get(), 0);
    assert_non_null(prairie_malloc(2 * MiB));
}

static void the_reserve_serves_at_the_wall(void **state)
{
    (void)state;
    start_with_reserve();
    add(hear, "a");
    limit_hard_set(3 * MiB);
    while (told.count == 0) assert_non_null(prairie_malloc(16 * KiB));
    assert_string_equal(told.conditions, "L");
    assert_true(reserve_cur_get() < reserve_min_get());
}

static void the_soft_limit_is_told_and_told_again(void **state)
{
    const size_t soft = 3 * MiB;
    size_t first;

    (void)state;
    assert_false(reserve_min_set(0));
    add(hear, "a");
    limit_soft_set(soft);
    assert_int_equal(limit_soft_get(), soft);
    while (told.count == 0) spare_block(16 * KiB);
    first = ceiling_used_bytes();
    assert_in_range(first, soft - soft / 8, soft + soft / 8);
    assert_string_equal(told.conditions, "L");
    while (told.count == 1) spare_block(16 * KiB);
    assert_in_range(ceiling_used_bytes() - first, soft / 64, soft / 8);
    while (spare.count > 0) prairie_free(spare.block[--spare.count]);
    spare_block(16 * KiB); /* it hears that there is less */
    forget_told();
    while (told.count == 0) spare_block(16 * KiB);
    assert_in_range(ceiling_used_bytes(), soft - soft / 8, soft + soft / 8);
}

/* Small blocks come the other way through the doors. */
static void small_blocks_reach_the_soft_limit(void **state)
{
    size_t bytes = 0;

    (void)state;
    add(hear, "a");
    assert_false(reserve_min_set(0));
    limit_soft_set(2 * MiB);
    for (; told.count == 0 && bytes < 4 * MiB; bytes += 100) (void)prairie_malloc(100);
    assert_int_equal(told.count, 1);
    assert_true(bytes > 1 * MiB);
}

static void beyond_the_soft_limit_nothing_stays_dirty(void **state)
{
    void *block[8];

    (void)state;
    limit_soft_set(1 * MiB);
    for (unsigned i = 0; i < 8; i++) assert_non_null(block[i] = prairie_malloc(256 * KiB));
    prairie_free(block[0]);
    assert_true(keeper.free_pages[FREE_DIRTY] << plain.page_shift < 64 * KiB);
    assert_true(RELAXED_LOAD(purge_hard));
    for (unsigned i = 1; i < 8; i++) prairie_free(block[i]);
    prairie_free(prairie_malloc(20000)); /* looks, and sees that all is well */
    assert_false(RELAXED_LOAD(purge_hard));
}

/* ---- the group ---- */

static void follow_group(size_t limit, size_t used)
{
    prairie_free(prairie_malloc(1));
    RELAXED_STORE(ceiling.follows_group, true);
    fake_group(limit, used);
    ceiling.group_known = false;
    tidy_watch(0);
}

static void a_crowded_group_is_told(void **state)
{
    (void)state;
    add(hear, "a");
    follow_group(64 * MiB, 10 * MiB);
    spare_block(20000);
    assert_string_equal(told.conditions, "");
    fake_group(64 * MiB, 62 * MiB);
    tidy_watch(0);
    fake_clock_ms(10);
    ceiling.group_known = false;
    spare_block(20000);
    assert_string_equal(told.conditions, "L");
}

/* With a reserve the last of the group is left alone: what is asked for comes from pages it has paid for. */
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
    assert_true(runs_are_barred());
    assert_non_null(prairie_malloc(100));
    fake_group(64 * MiB, 10 * MiB);
    fake_clock_ms(100);
    assert_non_null(prairie_malloc(3 * MiB));
    assert_false(runs_are_barred());
    prairie_check_all();
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
    RELAXED_STORE(ceiling.follows_group, true);
    shortage_watch();
    for (unsigned i = 0; i < 64; i++) assert_non_null(prairie_malloc(GROUP_OPEN_BYTES_MIN / 16));
    assert_true(ceiling.group_known);
    assert_true(ceiling.group_open_bytes >= plain.open_bytes / 4);
    assert_true(tidy_watch_at_bytes > plain.open_bytes / 2);
}

/* ---- stalls ---- */

static void look_while_stalled(void)
{
    static unsigned looks;

    fake_stall(200000);
    if (++looks == 3) RELAXED_STORE(tidy.kept, false);
}

static void stalls_are_seen_by_the_helper_and_told_by_a_thread(void **state)
{
    (void)state;
    add(hear, "a");
    tidy_thread_count(2);
    tidy_resume_watching();
    fake_on_sleep(look_while_stalled);
    assert_true(fake_thread_run());
    assert_string_equal(told.conditions, ""); /* not by the helper */
    assert_non_null(prairie_malloc(20000));
    assert_string_equal(told.conditions, "L");
    assert_non_null(prairie_malloc(20000));
    assert_string_equal(told.conditions, "L");
    assert_false(RELAXED_LOAD(purge_hard));
}

static void quiet_is_not_told(void **state)
{
    (void)state;
    add(hear, "a");
    for (unsigned i = 0; i < 10; i++) {
        fake_stall(1000);
        fake_clock_ms(600);
        assert_false(ceiling_watch_stalls());
    }
}

static unsigned helper_looks;

static void look_often(void)
{
    if (++helper_looks == 100) RELAXED_STORE(tidy.kept, false);
}

static void the_helper_stays_for_listeners(void **state)
{
    (void)state;
    add(hear, "a");
    assert_false(fake_thread_waits()); /* one thread */
    tidy_thread_count(2);
    add(hear, "b");
    assert_true(fake_thread_waits());
    fake_on_sleep(look_often);
    assert_true(fake_thread_run());
    assert_true(helper_looks >= 100);
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

UNIT_MAIN(UNIT_TEST(an_unaware_program_is_refused), UNIT_TEST(every_door_is_served_by_the_reserve),
          UNIT_TEST(low_ends_when_the_reserve_is_full_again),
          UNIT_TEST(what_caches_hold_is_used_first),
          UNIT_TEST(what_the_reserve_has_not_got_is_refused_in_silence),
          UNIT_TEST(it_lasts_until_it_is_empty), UNIT_TEST(it_is_full_again_when_memory_returns),
          UNIT_TEST(callbacks_allocate_without_events_of_their_own),
          UNIT_TEST(a_reserve_that_cannot_be_filled_says_so),
          UNIT_TEST(the_first_listener_brings_a_reserve), UNIT_TEST(who_wants_none_gets_none),
          UNIT_TEST(options_make_a_reserve), UNIT_TEST(malloc_tells_and_tries_again),
          UNIT_TEST(without_the_option_malloc_is_silent), UNIT_TEST(x_doors_are_doors),
          UNIT_TEST(x_doors_tell_until_somebody_helps), UNIT_TEST(x_doors_end_the_process),
          UNIT_TEST(fail_comes_last_and_to_all), UNIT_TEST(crit_is_told_once),
          UNIT_TEST(an_x_door_in_a_callback_goes_on_to_the_end),
          UNIT_TEST(the_hard_limit_is_a_wall), UNIT_TEST(the_reserve_serves_at_the_wall),
          UNIT_TEST(the_soft_limit_is_told_and_told_again),
          UNIT_TEST(small_blocks_reach_the_soft_limit),
          UNIT_TEST(beyond_the_soft_limit_nothing_stays_dirty), UNIT_TEST(a_crowded_group_is_told),
          UNIT_TEST(the_last_of_a_group_is_not_taken),
          UNIT_TEST(without_a_reserve_a_full_group_is_the_kernels_business),
          UNIT_TEST(a_group_without_a_limit_is_asked_seldom),
          UNIT_TEST(stalls_are_seen_by_the_helper_and_told_by_a_thread),
          UNIT_TEST(quiet_is_not_told), UNIT_TEST(the_helper_stays_for_listeners),
          UNIT_TEST(a_child_has_a_reserve_of_its_own), UNIT_TEST(the_first_call_may_be_any),
          UNIT_TEST(statistics_tell))
