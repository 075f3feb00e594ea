/* hardened_marks_test.c - marks and canaries of a hardened process: what is behind a block, which
 * door gave it, and what is said when they do not fit. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "hardened.h"

static size_t size_of_block;
static void expect_its_size(void) { misuse_check_told_size(block, size_of_block, 1); }
static void expect_door_of_new(void) { hardened_check_door(block, DOOR_NEW); }
static void delete_it(void) { (void)hardened_give(thread_front(), block, size_of_block, DOOR_NEW); }

static void each_byte_behind_a_block_is_watched(void **state)
{
    const size_t sizes[] = { 1, 7, 8, 24, 40, 41, 100, 1000, 5001, LARGE - 1 };

    (void)state;
    harden();
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++)
        for (size_t past = 0; past < 8; past++) {
            block = taken(sizes[i]);
            block[sizes[i] + past] ^= 0x41;
            size_of_block = sizes[i];
            expect_abort(free_it, "prairie: write past the end of a block: ");
            expect_abort(give_it, "prairie: write past the end of a block: ");
            expect_abort(expect_its_size, "prairie: write past the end of a block: ");
            expect_abort(realloc_it, "prairie: write past the end of a block: ");
            expect_abort(measure_it, "prairie: write past the end of a block: ");
            block[sizes[i] + past] ^= 0x41;
            prairie_free(block);
        }
}

static void expect_each_byte_of_slack_watched(size_t bytes)
{
    struct alloc_request request = alloc_request(bytes + HARDENED_MARK_BYTES, 1, false, NULL);
    size_t end = request_bytes(&request);

    for (size_t past = bytes; past < end; past++) {
        block = taken(bytes);
        memset(block, 0xff, bytes);
        block[past] ^= 0x41;
        expect_abort(free_it, "prairie: write past the end of a block: ");
        expect_abort(give_it, "prairie: write past the end of a block: ");
        block[past] ^= 0x41;
        prairie_free(block);
    }
}

/* Of long slacks many words are looked at at once. */
static void each_byte_of_a_long_slack_is_watched(void **state)
{
    const size_t sizes[] = { 513, 570, 2100, 5001 };

    (void)state;
    harden();
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) expect_each_byte_of_slack_watched(sizes[i]);
}

/* A word's slack is looked at as one word, a longer one as two and what lies between them. */
static void each_byte_of_a_short_slack_is_watched(void **state)
{
    (void)state;
    harden();
    for (size_t bytes = 150; bytes < 185; bytes++) expect_each_byte_of_slack_watched(bytes);
}

/* Its slack changes within the word that it ends in, or the one before. */
static void a_block_that_is_resized_within_its_class_keeps_its_bytes(void **state)
{
    (void)state;
    harden();
    for (size_t before = 25; before <= 40; before++)
        for (size_t after = 25; after <= 40; after++) {
            size_t kept = min_size(before, after);
            char *bytes = taken(before);

            memset(bytes, 0x11, before);
            assert_ptr_equal(prairie_realloc(bytes, after), bytes);
            assert_true(all_bytes_are((unsigned char *)bytes, 0x11, kept));
            assert_true(all_bytes_are((unsigned char *)bytes + kept, 0, after - kept));
            assert_int_equal(prairie_usable_size(bytes), after);
            prairie_free(bytes);
        }
}

static void a_string_ends_behind_its_block(void **state)
{
    (void)state;
    harden();
    for (size_t bytes = 1; bytes < 200; bytes++) {
        char *text = taken(bytes);
        memset(text, 'x', bytes);
        assert_int_equal(strlen(text), bytes);
    }
}

static void what_new_gave_is_watched_as_well(void **state)
{
    const size_t sizes[] = { 40, 100, 1000 };

    (void)state;
    harden();
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        block = taken(sizes[i]);
        size_of_block = SIZE_MAX;
        expect_abort(delete_it, "prairie: allocation and free do not match: ");
        hardened_set_door(block, DOOR_NEW);
        for (size_t past = 0; past < 8; past++) {
            block[sizes[i] + past] ^= 1;
            expect_abort(delete_it, "prairie: write past the end of a block: ");
            block[sizes[i] + past] ^= 1;
        }
        size_of_block = sizes[i] + 1;
        expect_abort(delete_it, "prairie: wrong size in sized delete: ");
        size_of_block = sizes[i];
        assert_true(hardened_give(thread_front(), block, sizes[i], DOOR_NEW));
        expect_abort(delete_it, "prairie: double free: ");
    }
}

static void each_door_has_its_counterpart(void **state)
{
    const size_t sizes[] = { 100, LARGE };

    (void)state;
    harden();
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        block = taken(sizes[i]);
        hardened_set_door(block, DOOR_NEW_ARRAY);
        assert_int_equal(prairie_usable_size(block), sizes[i]);
        expect_abort(free_it, "prairie: allocation and free do not match: ");
        expect_abort(expect_door_of_new, "prairie: allocation and free do not match: ");
        expect_abort(realloc_it, "prairie: allocation and free do not match: ");
        hardened_check_door(block, DOOR_NEW_ARRAY);
        prairie_free(block);
    }
}

UNIT_MAIN(UNIT_TEST(each_byte_behind_a_block_is_watched),
          UNIT_TEST(each_byte_of_a_long_slack_is_watched),
          UNIT_TEST(each_byte_of_a_short_slack_is_watched),
          UNIT_TEST(a_block_that_is_resized_within_its_class_keeps_its_bytes),
          UNIT_TEST(a_string_ends_behind_its_block), UNIT_TEST(what_new_gave_is_watched_as_well),
          UNIT_TEST(each_door_has_its_counterpart))
