/* guarded_strays_test.c - sized frees while guarded blocks are watched, and strays that they put
 * into magazines. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "guarded.h"
#include "threads.h"

/* ---- sized frees ---- */

static bool sized_frees_look(size_t size) { return offset_of_sized_free[size] == 0; }

static void sized_frees_look_while_it_is_watched(void **state)
{
    char *first, *second;

    (void)state;
    start_pool(16);
    assert_false(sized_frees_look(48));
    first = take_of(1, 48, 16);
    second = take_of(2, 48, 16);
    assert_true(sized_frees_look(48) && !sized_frees_look(64));
    give(first);
    assert_true(sized_frees_look(48));
    give(second);
    assert_false(sized_frees_look(48));
    first = take_of(1, 48, 16);
    second = take_of(2, 200, 16);
    guarded_end_watch();
    assert_false(sized_frees_look(48) || sized_frees_look(200));
    guarded_check();
    give(first);
    assert_false(sized_frees_look(48));
    first = take_of(1, 200, 16);
    assert_true(sized_frees_look(200));
    give(second);
    assert_true(sized_frees_look(200));
    give(first);
    assert_false(sized_frees_look(200));
    guarded_check();
}

static void free_told(void *block, size_t size)
{
    misuse_note_free(block);
    free_sized_overflow(thread_front(), block, size);
}

/* Frees of the right size that look count down, until the class is watched no more. */
static void sized_frees_look_for_a_while(void **state)
{
    char *guarded;

    (void)state;
    start_pool(16);
    for (unsigned round = 0; round < 2; round++) {
        guarded = take_of(1, 48, 16);
        for (unsigned i = 1; i < inside_watched_frees; i++) {
            free_told(prairie_malloc(48), 48);
            assert_true(sized_frees_look(48));
        }
        assert_int_equal(guarded_find(guarded).kind, GUARDED_BLOCK);
        assert_true(guarded_find(guarded).is_watched);
        free_sized_overflow(thread_front(), prairie_malloc(48), 48);
        assert_false(sized_frees_look(48));
        assert_false(guarded_find(guarded).is_watched);
        give(guarded);
    }
    prairie_check_all();
}

static void free_of_another_class(void) { free_told(prairie_malloc(100), 48); }
static void free_of_its_class(void) { free_told(prairie_malloc(48), 33); }

static void sized_frees_that_look_see_another_size(void **state)
{
    (void)state;
    start_pool(16);
    (void)take_of(1, 48, 16);
    expect_abort(free_of_another_class, "prairie: wrong size in sized delete: 0x");
    expect_survival(free_of_its_class);
}

static void sized_frees_that_look_find_it(void **state)
{
    char *guarded;

    (void)state;
    start_pool(16);
    guarded = take_of(1, 48, 16);
    free_sized_overflow(thread_front(), guarded, 48);
    assert_int_equal(guarded_find(guarded).kind, GUARDED_GONE);
    prairie_check_all();
}

/* ---- strays ---- */

/* As it comes out of a magazine, among other blocks. */
static void a_stray_is_taken_back(void **state)
{
    void *blocks[3] = { prairie_malloc(48), NULL, prairie_malloc(48) };
    struct guarded_finding finding;

    (void)state;
    start_pool(16);
    blocks[1] = take_of(1, 48, 16);
    guarded_end_watch();
    assert_int_equal(held_of(48), 1);
    thread_flush();
    misuse_note_free(blocks[0]);
    misuse_note_free(blocks[2]);
    arenas_drain(class_of_size(48), blocks, 3);
    assert_int_equal(held_of(48), 0);
    finding = guarded_find(blocks[1]);
    assert_int_equal(finding.kind, GUARDED_GONE);
    assert_false(finding.is_watched);
    assert_false(
        fake_is_committed((char *)round_down((uintptr_t)blocks[1], page_bytes()), page_bytes()));
    prairie_check_all();
}

/* As the last of them, and where a magazine had a hole. */
static void a_stray_that_comes_alone_is_taken_back(void **state)
{
    void *blocks[3] = { NULL, NULL, NULL };

    (void)state;
    start_pool(16);
    blocks[1] = take_of(1, 48, 16);
    guarded_end_watch();
    assert_int_equal(held_of(48), 1);
    thread_flush();
    arenas_drain(class_of_size(48), blocks, 2);
    assert_int_equal(held_of(48), 0);
    prairie_check_all();
}

static void *count_guarded(void *unused)
{
    (void)held_of(48);
    return unused;
}

static void another_counts(void) { run_thread(count_guarded, NULL); }

/* Of the last cells there can be, so that no cell comes after it. */
static void another_thread_takes_the_stray_back(void **state)
{
    unsigned held = 0;
    void *block;

    (void)state;
    start_pool(GUARDED_CELLS_MAX);
    for (unsigned i = 0; i < GUARDED_CELLS_MAX; i++) {
        block = take_of(held, 48, 16);
        if (i + 1 < GUARDED_CELLS_MAX && i >= GUARDED_CELLS_MAX / 2) give(block);
        else held++;
    }
    guarded_end_watch();
    arenas_drain(class_of_size(48), &block, 1);
    let_happen("fetch_strays", 0, another_counts);
    assert_int_equal(held_of(48), held - 1);
    assert_true(it_happened());
    assert_int_equal(guarded_find(block).kind, GUARDED_GONE);
    prairie_check_all();
}

/* Of the largest pool, wherever its cell is; more cells there are not. */
static void every_stray_is_taken_back(void **state)
{
    void *blocks[1 + GUARDED_CELLS_MAX] = { NULL };
    unsigned held = 0;

    (void)state;
    start_pool(GUARDED_CELLS_MAX + 1);
    assert_int_equal(guarded_pool.bytes, (2 * GUARDED_CELLS_MAX + 1) * page_bytes());
    while ((blocks[1 + held] = take_of(held, 48, 16)) != NULL) held++;
    assert_int_equal(held, GUARDED_CELLS_MAX / 4 * 3);
    for (unsigned i = 0; i < GUARDED_CELLS_MAX / 4; i++) give(blocks[1 + i]);
    for (unsigned i = 0; i < GUARDED_CELLS_MAX / 4; i++)
        assert_non_null(blocks[1 + i] = take_of(i, 48, 16));
    guarded_end_watch();
    assert_int_equal(held_of(48), held);
    arenas_drain(class_of_size(48), blocks + 1, held);
    assert_int_equal(held_of(48), 0);
    for (unsigned i = 0; i < held; i++)
        assert_int_equal(guarded_find(blocks[1 + i]).kind, GUARDED_GONE);
    prairie_check_all();
}

static char *stray;

static void drain_stray_twice(void)
{
    void *blocks[2] = { stray, stray };

    arenas_drain(class_of_size(48), blocks, 2);
}

static void drain_stray_of_another_class(void)
{
    void *block = stray;

    arenas_drain(class_of_size(64), &block, 1);
}

static void drain_within_stray(void)
{
    void *block = stray + 16;

    arenas_drain(class_of_size(48), &block, 1);
}

static void what_is_no_stray_is_misuse(void **state)
{
    (void)state;
    start_pool(16);
    stray = take_of(1, 48, 16);
    expect_abort(drain_stray_twice, "prairie: double free or wrong size in sized delete: 0x");
    expect_abort(drain_stray_of_another_class,
                 "prairie: double free or wrong size in sized delete: 0x");
    expect_abort(drain_within_stray, "prairie: double free or wrong size in sized delete: 0x");
}

UNIT_MAIN(UNIT_TEST(sized_frees_look_while_it_is_watched), UNIT_TEST(a_stray_is_taken_back),
          UNIT_TEST(a_stray_that_comes_alone_is_taken_back), UNIT_TEST(what_is_no_stray_is_misuse),
          UNIT_TEST(sized_frees_look_for_a_while),
          UNIT_TEST(sized_frees_that_look_see_another_size),
          UNIT_TEST(sized_frees_that_look_find_it), UNIT_TEST(every_stray_is_taken_back),
          UNIT_TEST(another_thread_takes_the_stray_back))
