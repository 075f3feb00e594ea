/* bits_test.c - words of bits, and sizes rounded at the edges where they could wrap. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

static void bits_are_found_where_they_are(void **state)
{
    (void)state;
    for (unsigned low = 0; low < 64; low++) {
        for (unsigned high = low; high < 64; high++) {
            uint64_t word = (uint64_t)1 << low | (uint64_t)1 << high;
            assert_int_equal(lowest_bit(word), low);
            assert_int_equal(highest_bit(word), high);
            assert_int_equal(bit_count(word), low == high ? 1 : 2);
        }
    }
    assert_int_equal(bit_count(0), 0);
    assert_int_equal(bit_count(~(uint64_t)0), 64);
}

static void ranges_of_bits_split_the_word(void **state)
{
    (void)state;
    for (unsigned index = 0; index <= 70; index++) {
        unsigned below = index < 64 ? index : 64;
        assert_int_equal(bit_count(bits_below(index)), below);
        assert_int_equal(bit_count(bits_from(index)), 64 - below);
        assert_true((bits_below(index) | bits_from(index)) == ~(uint64_t)0);
        if (index > 0) assert_true(bits_below(index) & 1);
        if (index < 64) assert_true(bits_from(index) >> 63);
    }
}

static void rounding_goes_to_the_next_unit(void **state)
{
    (void)state;
    for (size_t unit = 1; unit <= MiB; unit *= 2) {
        for (size_t near = 0; near < 8; near++) {
            size_t value = random_below((uint64_t)1 << 40) + near;
            size_t up = round_up(value, unit), down = round_down(value, unit);
            assert_true(up >= value && up - value < unit && is_aligned(up, unit));
            assert_true(down <= value && value - down < unit && is_aligned(down, unit));
            assert_true(is_aligned(value, unit) == (up == down));
        }
        assert_int_equal(round_up(0, unit), 0);
        assert_int_equal(round_up(unit, unit), unit);
        assert_int_equal(round_up(unit + 1, unit), 2 * unit);
        assert_true(round_up(SIZE_MAX - unit + 1, unit) == SIZE_MAX - unit + 1);
        assert_true(round_down(SIZE_MAX, unit) == SIZE_MAX - unit + 1);
    }
}

static void powers_of_two_are_told_apart(void **state)
{
    (void)state;
    assert_false(is_power_of_two(0));
    for (unsigned bit = 0; bit < SIZE_BITS; bit++) {
        size_t power = (size_t)1 << bit;
        assert_true(is_power_of_two(power));
        if (bit >= 2) assert_false(is_power_of_two(power - 1));
        if (bit >= 1) assert_false(is_power_of_two(power + 1));
        if (bit >= 1) assert_false(is_power_of_two(power | (power >> 1)));
    }
    assert_false(is_power_of_two(SIZE_MAX));
}

static void units_and_extremes(void **state)
{
    (void)state;
    assert_true(KiB * KiB == MiB && MiB * KiB == GiB && TiB == 1099511627776 && TiB / KiB == GiB);
    assert_true(2 * KiB / KiB == 2); /* the macros bind as one */
    assert_true(min_size(3, SIZE_MAX) == 3 && min_size(SIZE_MAX, 3) == 3);
    assert_true(max_size(3, SIZE_MAX) == SIZE_MAX && max_size(SIZE_MAX, 3) == SIZE_MAX);
}

static void setting_a_bit_tells_whether_it_was_set(void **state)
{
    (void)state;
    for (unsigned index = 0; index < 2 * WORD_BITS; index++) {
        uint64_t word = 0, others = ~((uint64_t)1 << index % WORD_BITS);

        assert_false(bit_test_and_set(&word, index));
        assert_true(word == ~others);
        assert_true(bit_test_and_set(&word, index));
        assert_true(word == ~others);
        assert_false(bit_test_and_set(&others, index));
        assert_true(others == ~(uint64_t)0);
    }
}

UNIT_MAIN(UNIT_TEST(setting_a_bit_tells_whether_it_was_set),
          UNIT_TEST(bits_are_found_where_they_are), UNIT_TEST(ranges_of_bits_split_the_word),
          UNIT_TEST(rounding_goes_to_the_next_unit), UNIT_TEST(powers_of_two_are_told_apart),
          UNIT_TEST(units_and_extremes))
