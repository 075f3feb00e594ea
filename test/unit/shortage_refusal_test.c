/* shortage_refusal_test.c - CRIT before a door refuses, and doors that never do. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "shortage.h"

#include <sys/wait.h>

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

/* A block that can neither grow nor move is refused by one event. */
static void each_resize_tells_once(void **state)
{
    void *block;

    (void)state;
    options_parse("reserve_malloc:true", "MALLOC_CONF");
    add(hear, "a");
    assert_false(reserve_min_set(0));
    block = prairie_mallocx(100000, 0);
    exhaust();
    errno = 0;
    assert_null(prairie_rallocx(block, 200000, 0));
    assert_int_equal(errno, ENOMEM);
    assert_string_equal(told.conditions, "C");
    forget_told();
    assert_null(prairie_realloc(block, 200000));
    assert_string_equal(told.conditions, "C");
    assert_int_equal(prairie_usable_size(block), prairie_nallocx(100000, 0));
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
    expect_abort(end_in_xmemalign, "prairie: xmemalign: no alignment is as large as that");
    expect_abort(end_in_xcalloc, "prairie: xcalloc: count times size overflows");
}

/* CRIT to each, then FAIL to each, then the end: the last who hears looks at it all. */
static void hear_the_end(void *name, reserve_cnd_t condition, size_t size)
{
    hear(name, condition, size);
    if (condition != RESERVE_CND_FAIL || told.count < 4) return;
    _exit(strcmp(told.conditions, "CCFF") == 0 && strcmp(told.names, "abba") == 0 ? 0 : 1);
}

/* In a child without memory, `a` and `b` hear of a request; one of them ends it, with 0 when all
 * was well. */
static void expect_good_end(reserve_cb_t *hears, size_t size)
{
    int status;

    add(hears, "a");
    add(hears, "b");
    assert_false(reserve_min_set(0));
    exhaust();
    if (fork() == 0) {
        (void)xmalloc(size);
        _exit(2);
    }
    wait(&status);
    assert_int_equal(status, 0);
}

static void fail_comes_last_and_to_all(void **state)
{
    (void)state;
    expect_good_end(hear_the_end, 100000);
}

/* With reserve_malloc the door has told CRIT: nobody hears of one request twice. */
static void crit_is_told_once(void **state)
{
    (void)state;
    options_parse("reserve_malloc:true", "MALLOC_CONF");
    expect_good_end(hear_the_end, 100000);
}

static void x_in_callback(void *name, reserve_cnd_t condition, size_t size)
{
    hear(name, condition, size);
    if (condition == RESERVE_CND_FAIL) _exit(*(char *)name == 'b' && told.count == 2 ? 0 : 1);
    (void)xmalloc(1 * MiB);
}

static void an_x_door_in_a_callback_goes_on_to_the_end(void **state)
{
    (void)state;
    expect_good_end(x_in_callback, 1 * MiB);
}

/* ---- memory that lies there in pieces ---- */

/* Dirty runs and clean ones alternate, and longer clean ones elsewhere draw the search away. */
static void dirty_and_clean_pages_serve_together(void **state)
{
    enum { ALONE = 10, PIECES = 100, PAGES = 4, WANTED = PIECES * PAGES - 10 };
    uint32_t alone[ALONE], piece[PIECES];

    (void)state;
    prairie_free(prairie_malloc(1));
    for (unsigned i = 0; i < ALONE; i++) {
        alone[i] = run_lease(2 * PAGES, 1, PAGE_USED).page;
        assert_int_not_equal(run_lease(1, 1, PAGE_USED).page, 0);
    }
    for (unsigned i = 0; i < PIECES; i++) piece[i] = run_lease(PAGES, 1, PAGE_USED).page;
    assert_int_equal(piece[PIECES - 1] - piece[0], (PIECES - 1) * PAGES);
    exhaust();
    for (unsigned i = 0; i < ALONE; i++) run_return(alone[i]);
    for (unsigned i = 0; i < PIECES; i += 2) run_return(piece[i]);
    assert_true(purge_all() > 0);
    for (unsigned i = 1; i < PIECES; i += 2) run_return(piece[i]);
    assert_int_equal(run_lease(WANTED, 1, PAGE_USED).page, 0);
    assert_non_null(prairie_malloc(WANTED * page_bytes()));
}

/* ---- memory that is held ready ---- */

/* A full magazine of an arena's, in its depot; no block is left in that arena's slabs. */
static void fill_depot_of(struct arena *arena, unsigned class_index)
{
    unsigned capacity = magazine_capacity(class_index), got = 0;
    void **full = meta_take(magazine_bytes(capacity)), *rest[8];
    bool drain = true;

    assert_non_null(full);
    lock_take(&arena->lock);
    while (got < capacity) got += arena_fill(arena, class_index, full + got, capacity - got, true);
    while (arena_fill(arena, class_index, rest, ARRAY_COUNT(rest) - 1, false) != 0) {}
    full = depot_trade_full(arena, class_index, full, false, &drain);
    lock_give(&arena->lock);
    assert_false(drain);
    meta_give(full, magazine_bytes(capacity));
}

static void a_depot_of_others_is_emptied_before_a_refusal(void **state)
{
    unsigned class_index = class_of_size(1024);
    struct arena *other;

    (void)state;
    prairie_free(prairie_malloc(1));
    other = arena_at(1);
    assert_non_null(other);
    assert_ptr_not_equal(thread_arena(), other);
    fill_depot_of(other, class_index);
    exhaust_runs();
    assert_non_null(prairie_malloc(1024));
    assert_int_equal(other->bin[class_index].depot.full.count, 0);
    prairie_check_all();
}

/* The thread's own magazines hold a slab open. */
static void a_threads_magazines_are_emptied_before_a_refusal(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(SMALL_BYTES_MAX));
    exhaust_runs();
    assert_non_null(prairie_malloc(1024));
    prairie_check_all();
}

static void a_threads_runs_are_emptied_before_a_refusal(void **state)
{
    struct large_cache_numbers kept = { 0 };
    void *block[2];

    (void)state;
    assert_non_null(prairie_malloc(1 * MiB)); /* the program does not shrink */
    for (unsigned i = 0; i < LARGE_CACHE_AFTER; i++) prairie_free(prairie_malloc(4 * page_bytes()));
    for (unsigned i = 0; i < 2; i++) block[i] = prairie_malloc((5 + i) * page_bytes());
    (void)purge_all();
    limit_hard_set(commit_taken_bytes() + page_bytes());
    for (unsigned i = 0; i < 2; i++) prairie_free(block[i]);
    large_cache_add_numbers(thread_front()->cache, &kept);
    assert_int_equal(kept.pages, 5 + 6);
    assert_non_null(prairie_malloc(10 * page_bytes()));
    prairie_check_all();
    assert_null(prairie_malloc(20 * page_bytes()));
}

UNIT_MAIN(UNIT_TEST(a_depot_of_others_is_emptied_before_a_refusal),
          UNIT_TEST(a_threads_magazines_are_emptied_before_a_refusal),
          UNIT_TEST(a_threads_runs_are_emptied_before_a_refusal),
          UNIT_TEST(dirty_and_clean_pages_serve_together), UNIT_TEST(malloc_tells_and_tries_again),
          UNIT_TEST(each_resize_tells_once), UNIT_TEST(without_the_option_malloc_is_silent),
          UNIT_TEST(x_doors_are_doors), UNIT_TEST(x_doors_tell_until_somebody_helps),
          UNIT_TEST(x_doors_end_the_process), UNIT_TEST(fail_comes_last_and_to_all),
          UNIT_TEST(crit_is_told_once), UNIT_TEST(an_x_door_in_a_callback_goes_on_to_the_end))
