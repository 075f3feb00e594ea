/* size_class_test.c - the size classes: every size up to the limit fits its class and no smaller
 * one. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

static void the_size_classes_rise(void **state)
{
    (void)state;
    assert_int_equal(class_bytes[0], 0);
    assert_int_equal(class_bytes[CLASS_COUNT - 1], SMALL_BYTES_MAX);
    for (unsigned i = 1; i < CLASS_COUNT; i++) {
        assert_true(class_bytes[i] > class_bytes[i - 1]);
        assert_int_equal(class_bytes[i] % 8, 0);
        if (class_bytes[i] >= (CLASS_COUNT == 40 ? 64 : 16))
            assert_int_equal(class_bytes[i] % 16, 0);
        /* Four steps to a doubling: at most a fifth of a block is lost, and a step of 16 below
         * 128. */
        if (class_bytes[i] > 128) assert_true(class_bytes[i] * 4 <= class_bytes[i - 1] * 5);
        else assert_true(class_bytes[i] - class_bytes[i - 1] <= 16);
    }
}

static void every_size_has_the_smallest_class_that_fits(void **state)
{
    (void)state;
    for (size_t size = 1; size <= SMALL_BYTES_MAX; size++) {
        unsigned class_index = class_of_size(size);
        assert_in_range(class_index, 1, CLASS_COUNT - 1);
        assert_true(class_bytes[class_index] >= size);
        if (size > 8) assert_true(class_bytes[class_index - 1] < size);
    }
    assert_int_equal(class_of_size(0), 0);
}

static void the_table_and_the_formula_agree_on_their_border(void **state)
{
    (void)state;
    assert_int_equal(class_bytes[CLASS_OF_1024], TABLE_BYTES_MAX);
    assert_int_equal(class_of_size(TABLE_BYTES_MAX), CLASS_OF_1024);
    assert_int_equal(class_beyond_table(TABLE_BYTES_MAX + 1), CLASS_OF_1024 + 1);
    for (size_t size = 0; size <= TABLE_BYTES_MAX; size++)
        assert_int_equal(offset_of_size[size], offset_of_class(class_of_size(size)));
}

static void offsets_name_classes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CLASS_COUNT; i++) {
        assert_int_equal(class_of_offset(offset_of_class(i)), i);
        assert_int_equal(offset_of_class(i) * sizeof(void *), i * sizeof(struct magazine));
    }
}

/* Every power-of-two class is aligned to itself: aligned requests are ordinary ones. */
static void powers_of_two_are_classes(void **state)
{
    (void)state;
    for (size_t power = 8; power <= 8192; power *= 2)
        assert_int_equal(class_bytes[class_of_size(power)], power);
}

/* The smallest class of at least so many bytes, a multiple of the alignment; 0: none. */
static unsigned search(size_t size, size_t align)
{
    for (unsigned i = 1; i < CLASS_COUNT; i++)
        if (class_bytes[i] >= size && class_bytes[i] % align == 0) return i;
    return 0;
}

/* A multiple of the alignment has such a class, in either list of classes. */
static void aligned_classes_are_aligned_and_the_smallest(void **state)
{
    (void)state;
    for (size_t align = 1; align <= 4096; align *= 2)
        for (size_t size = 1; size <= SMALL_BYTES_MAX; size++)
            assert_int_equal(class_of_aligned(size, align), search(size, align));
}

static void what_no_class_can_align_has_none(void **state)
{
    (void)state;
    assert_int_equal(class_of_aligned(8, 8192), 0);
    assert_int_equal(class_of_aligned(0, SIZE_MAX / 2 + 1), 0);
    assert_int_equal(class_of_aligned(SMALL_BYTES_MAX + 1, 8), 0);
    assert_int_equal(class_of_aligned(SIZE_MAX, 1), 0);
    assert_int_equal(class_of_aligned(SMALL_BYTES_MAX, 4096), 0);
    assert_int_not_equal(class_of_aligned(SMALL_BYTES_MAX, 2048), 0);
}

UNIT_MAIN(UNIT_TEST(the_size_classes_rise), UNIT_TEST(every_size_has_the_smallest_class_that_fits),
          UNIT_TEST(the_table_and_the_formula_agree_on_their_border),
          UNIT_TEST(offsets_name_classes), UNIT_TEST(powers_of_two_are_classes),
          UNIT_TEST(aligned_classes_are_aligned_and_the_smallest),
          UNIT_TEST(what_no_class_can_align_has_none))
