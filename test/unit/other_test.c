/* other_test.c - blocks of another heap, which was there before prairie, go back to it. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

static char theirs[100];

static void is_given_back(void **state)
{
    (void)state;
    fake_other_block(theirs, sizeof theirs);
    prairie_free(theirs);
    assert_int_equal(fake_other_frees(), 1);
}

static void is_given_back_by_a_thread_with_blocks(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(100));
    fake_other_block(theirs, sizeof theirs);
    prairie_free(theirs);
    assert_int_equal(fake_other_frees(), 1);
    prairie_check_all();
}

static void its_length_is_what_its_heap_says(void **state)
{
    (void)state;
    fake_other_block(theirs, sizeof theirs);
    assert_int_equal(prairie_usable_size(theirs), sizeof theirs);
    assert_int_equal(fake_other_frees(), 0);
}

static void resized_it_is_ours(void **state)
{
    char *moved;

    (void)state;
    memset(theirs, 7, sizeof theirs);
    fake_other_block(theirs, sizeof theirs);
    moved = prairie_realloc(theirs, 5000);
    assert_non_null(moved);
    assert_true(moved != theirs && all_bytes_are(moved, 7, sizeof theirs));
    assert_int_equal(fake_other_frees(), 1);
    prairie_free(moved);

    fake_other_block(theirs, sizeof theirs);
    moved = prairie_realloc(theirs, 10);
    assert_non_null(moved);
    assert_true(all_bytes_are(moved, 7, 10));
    assert_int_equal(fake_other_frees(), 2);
    prairie_free(moved);
}

static void without_memory_it_stays_theirs(void **state)
{
    (void)state;
    fake_other_block(theirs, sizeof theirs);
    fake_fail_all(true);
    assert_null(prairie_realloc(theirs, 5000));
    fake_fail_all(false);
    assert_int_equal(fake_other_frees(), 0);
    prairie_free(theirs);
    assert_int_equal(fake_other_frees(), 1);
}

static void free_theirs(void) { prairie_free(theirs); }

static void twice_is_once_too_often(void **state)
{
    (void)state;
    fake_other_block(theirs, sizeof theirs);
    prairie_free(theirs);
    expect_abort(free_theirs, "prairie: free of a foreign pointer: ");
}

UNIT_MAIN(UNIT_TEST(is_given_back), UNIT_TEST(is_given_back_by_a_thread_with_blocks),
          UNIT_TEST(its_length_is_what_its_heap_says), UNIT_TEST(resized_it_is_ours),
          UNIT_TEST(without_memory_it_stays_theirs), UNIT_TEST(twice_is_once_too_often))
