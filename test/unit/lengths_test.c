/* lengths_test.c - large blocks and free runs counted by length, for one arena and for all. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "control_tree.h"
#include "hooks.h"
#include "pages.h"

static void a_size_has_the_last_step_that_is_not_longer(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    assert_int_equal(last_step_below(0, STEPS_MAX), 0);
    assert_int_equal(last_step_below(1, STEPS_MAX), 0);
    for (unsigned step = 0; step < 40; step++) {
        size_t bytes = step_bytes(step), next = step_bytes(step + 1);

        assert_true(bytes < next);
        assert_int_equal(last_step_below(bytes, STEPS_MAX), step);
        assert_int_equal(last_step_below(next - 1, STEPS_MAX), step);
        assert_int_equal(last_step_below(next, step + 1), step); /* there are no more */
        assert_int_equal(last_step_below(SIZE_MAX, step + 1), step);
        assert_int_equal(last_step_below(next, step + 2), step + 1);
    }
}

/* What a walk over all runs finds, step by step. */
static void count_run(enum page_state state, size_t pages, void *context)
{
    struct lengths *found = context;
    unsigned step = 0;

    if (state == PAGE_LARGE) found->large[lextent_of(bytes_of(pages))]++;
    if (state != PAGE_DIRTY && state != PAGE_CLEAN) return;
    for (unsigned i = 1; i < STEPS_MAX && step_bytes(i) <= bytes_of(pages); i++) step = i;
    (state == PAGE_DIRTY ? found->dirty : found->clean)[step]++;
    (state == PAGE_DIRTY ? found->dirty_pages : found->clean_pages)[step] += pages;
}

static void expect_walk(void)
{
    static struct lengths found, lengths;

    memset(&found, 0, sizeof found);
    memset(&lengths, 0xff, sizeof lengths);
    runs_visit(count_run, &found);
    lengths_count(&lengths, 0);
    assert_memory_equal(&found, &lengths, sizeof found);
}

static uint64_t sum_of(const uint32_t *counts)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < STEPS_MAX; i++) sum += counts[i];
    return sum;
}

/* Blocks and holes of each length up to some; of the holes, those that were there before a purge
 * are clean. */
static void blocks_and_holes_are_counted(void **state)
{
    enum { LENGTHS = 24, FIRST = 5 };
    static struct lengths lengths;
    void *block[2][LENGTHS], *hole[2][LENGTHS];

    (void)state;
    prairie_free(prairie_malloc(1));
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < LENGTHS; i++) {
            hole[round][i] = prairie_malloc(bytes_of(FIRST + i));
            block[round][i] = prairie_malloc(bytes_of(FIRST + i));
        }
    }
    lengths_count(&lengths, 0);
    assert_int_equal(sum_of(lengths.large), 4 * LENGTHS);
    assert_int_equal(lengths.large[lextent_of(bytes_of(FIRST))], 4);
    expect_walk();
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < LENGTHS; i++) prairie_free(hole[round][i]);
        if (round == 0) (void)prairie_purge();
    }
    thread_flush();
    lengths_count(&lengths, 0);
    assert_int_equal(sum_of(lengths.large), 2 * LENGTHS);
    assert_true(sum_of(lengths.dirty) >= LENGTHS / 2);
    assert_true(sum_of(lengths.clean) >= LENGTHS / 2);
    expect_walk();
    for (unsigned i = 0; i < LENGTHS; i++) prairie_free(block[0][i]);
    expect_walk();
    prairie_check_all();
}

static void count_arena(struct lengths *lengths, unsigned arena)
{
    memset(lengths, 0xff, sizeof *lengths);
    lengths_count(lengths, arena);
}

/* Large blocks of automatic arenas, and the heap's free runs, are the first one's. */
static void each_arena_has_its_own(void **state)
{
    static struct lengths first, second, manual, hooked, all, none;
    struct arena *plain, *of_hooks;
    unsigned step;
    void *block;

    (void)state;
    of_hooks = hooked_arena();
    step = lextent_of(bytes_of(25));
    plain = arena_create();
    assert_int_equal(plain->index, of_hooks->index + 1);
    for (unsigned i = 0; i < 2; i++) assert_non_null(prairie_malloc(bytes_of(25)));
    for (unsigned i = 0; i < 3; i++)
        assert_non_null(prairie_mallocx(bytes_of(25), MALLOCX_ARENA(plain->index)));
    for (unsigned i = 0; i < 4; i++)
        assert_non_null(prairie_mallocx(bytes_of(25), MALLOCX_ARENA(of_hooks->index)));
    block = prairie_mallocx(bytes_of(25), MALLOCX_ARENA(of_hooks->index));
    assert_non_null(prairie_mallocx(bytes_of(25), MALLOCX_ARENA(of_hooks->index)));
    prairie_free(block);
    count_arena(&first, 0);
    count_arena(&second, 1);
    count_arena(&manual, plain->index);
    count_arena(&hooked, of_hooks->index);
    count_arena(&all, CONTROL_ARENAS_ALL);
    count_arena(&none, plain->index + 1);
    assert_int_equal(first.large[step], 2);
    assert_int_equal(manual.large[step], 3);
    assert_int_equal(hooked.large[step], 5);
    assert_int_equal(all.large[step], 10);
    assert_true(all_bytes_are(&none, 0, sizeof none));
    assert_true(all_bytes_are(&second, 0, sizeof second));
    assert_int_equal(sum_of(manual.dirty) + sum_of(manual.clean), 0);
    assert_true(sum_of(hooked.dirty) + sum_of(hooked.clean) > 0);
    assert_true(sum_of(first.clean) > 0);
    for (unsigned i = 0; i < STEPS_MAX; i++) {
        assert_int_equal(all.large[i], first.large[i] + manual.large[i] + hooked.large[i]);
        assert_int_equal(all.dirty[i], first.dirty[i] + hooked.dirty[i]);
        assert_int_equal(all.clean[i], first.clean[i] + hooked.clean[i]);
        assert_int_equal(all.dirty_pages[i], first.dirty_pages[i] + hooked.dirty_pages[i]);
        assert_int_equal(all.clean_pages[i], first.clean_pages[i] + hooked.clean_pages[i]);
    }
}

/* With hooks the first one has large blocks, and free runs, of its own beside those that are
 * nobody's. */
static void the_first_may_have_hooks(void **state)
{
    static struct lengths first, all;
    unsigned step;

    (void)state;
    (void)hooked_arena(); /* where hooks find memory */
    step = lextent_of(bytes_of(25));
    assert_non_null(prairie_malloc(bytes_of(25)));
    assert_non_null(arena_set_hooks(arenas[0], &test_hooks));
    assert_non_null(prairie_mallocx(bytes_of(25), MALLOCX_ARENA(0)));
    count_arena(&first, 0);
    count_arena(&all, CONTROL_ARENAS_ALL);
    assert_true(arenas[0]->active_pages >= 25);
    assert_int_equal(first.large[step], 2);
    assert_memory_equal(&first, &all, sizeof all);
}

static unsigned large_of_epoch(uint64_t epoch, unsigned arena)
{
    const struct lengths *lengths;
    uint64_t large;

    lock_take(&control_lock);
    lengths = lengths_of_epoch(epoch, arena);
    assert_non_null(lengths);
    large = sum_of(lengths->large);
    lock_give(&control_lock);
    return (unsigned)large;
}

/* One arena's counts are kept for an epoch, as they were when they were first asked for. */
static void counts_are_kept_for_an_epoch(void **state)
{
    struct arena *arena;

    (void)state;
    prairie_free(prairie_malloc(1));
    arena = arena_create();
    fake_fail_all(true);
    while (meta_take(64) != NULL) {}
    lock_take(&control_lock);
    assert_null(lengths_of_epoch(1, 0));
    lock_give(&control_lock);
    fake_fail_all(false);
    assert_non_null(prairie_malloc(bytes_of(25)));
    assert_int_equal(large_of_epoch(1, 0), 1);
    assert_non_null(prairie_malloc(bytes_of(25)));
    assert_int_equal(large_of_epoch(1, 0), 1);
    assert_int_equal(large_of_epoch(1, arena->index), 0);
    assert_non_null(prairie_mallocx(bytes_of(25), MALLOCX_ARENA(arena->index)));
    assert_int_equal(large_of_epoch(1, arena->index), 0);
    assert_int_equal(large_of_epoch(2, arena->index), 1);
    assert_int_equal(large_of_epoch(2, 0), 2);
    assert_non_null(prairie_malloc(bytes_of(25)));
    assert_int_equal(large_of_epoch(2, 0), 2);
    assert_int_equal(large_of_epoch(3, 0), 3);
}

/* As all that is told of memory there. */
static void at_the_hard_limit_lengths_are_told(void **state)
{
    size_t count = 0, length = sizeof count;

    (void)state;
    assert_non_null(prairie_malloc(bytes_of(25)));
    commit.limit_bytes = commit_taken_bytes();
    assert_int_equal(control_by_name("stats.arenas.0.extents.0.ndirty", &count, &length, NULL, 0),
                     0);
    assert_null(meta_take(META_UNIT_BYTES));
    commit.limit_bytes = SIZE_MAX;
}

UNIT_MAIN(UNIT_TEST(a_size_has_the_last_step_that_is_not_longer),
          UNIT_TEST(blocks_and_holes_are_counted), UNIT_TEST(each_arena_has_its_own),
          UNIT_TEST(the_first_may_have_hooks), UNIT_TEST(counts_are_kept_for_an_epoch),
          UNIT_TEST(at_the_hard_limit_lengths_are_told))
