/* sampler_test.c - when samples are due, and what they stand for. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "samples.h"

static void the_probability_is_that_of_the_process(void **state)
{
    (void)state;
    assert_true(sampler_probability(1, 1000) > 0.0009994);
    assert_true(sampler_probability(1, 1000) < 0.0009996);
    assert_true(sampler_probability(1000, 1000) > 0.632120);
    assert_true(sampler_probability(1000, 1000) < 0.632121);
    assert_true(sampler_probability(5000, 1000) > 0.993262);
    assert_true(sampler_probability(5000, 1000) < 0.993263);
    assert_true(sampler_probability(100000, 1000) == 1);
    assert_true(sampler_probability(1, 1) == 1);
    assert_true(sampler_probability(1, 0) == 1);
    /* Longer than a size has bits for, on 32. */
    assert_true(sampler_probability(MiB, (uint64_t)1 << 40) > 0.9e-6);
    assert_true(sampler_probability(MiB, (uint64_t)1 << 40) < 1e-6);
}

static void gaps_are_exponential(void **state)
{
    uint64_t random = random_word();
    double sum = 0, squares = 0;
    unsigned long beyond_one = 0, beyond_three = 0, count = 400000;

    (void)state;
    for (unsigned long i = 0; i < count; i++) {
        double gap = inside_exponential(&random);

        assert_true(gap >= 0);
        sum += gap;
        squares += gap * gap;
        beyond_one += gap > 1;
        beyond_three += gap > 3;
    }
    sum /= (double)count;
    squares /= (double)count;
    assert_true(sum > 0.99 && sum < 1.01);
    assert_true(squares > 1.95 && squares < 2.05);
    assert_true(beyond_one > count * 0.3629 && beyond_one < count * 0.3729);
    assert_true(beyond_three > count * 0.0480 && beyond_three < count * 0.0516);
}

/* A large block that ends where the gap does is not the sample; the next one is. */
static void a_gap_is_passed_to_its_last_byte(void **state)
{
    struct sampler sampler = { .random = 1 };

    (void)state;
    sampler_set_period(MiB);
    (void)sampler_large_is_due(&sampler, 1); /* draws the gaps */
    sampler.until_large_bytes = 100000;
    assert_false(sampler_large_is_due(&sampler, 100000));
    assert_true(sampler_large_is_due(&sampler, 1));
}

/* A block that is freed and taken again at once is seen as often as any other. */
static void hot_pairs_are_seen(void **state)
{
    size_t sizes[] = { 8, 48, 500, 1024, 3000, 14336, 20000, 300000 };

    (void)state;
    sample_from_now(PERIOD);
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        double true_bytes = 0;

        samples_reset();
        while (true_bytes < 400.0 * max_size(sizes[i], PERIOD)) {
            void *block = prairie_malloc(sizes[i]);
            true_bytes += (double)prairie_usable_size(block);
            prairie_free(block);
        }
        if (sizes[i] < 100000) expect_close(true_bytes);
        else assert_true(estimate_now().bytes == true_bytes);
    }
    assert_int_equal(estimate_now().live, 0);
    prairie_check_all();
}

/* All doors, all kinds of sizes, blocks that live long and short. */
static void a_mixed_life_is_estimated(void **state)
{
    enum { SLOTS = 700 };
    static void *block[SLOTS];
    double taken = 0, live = 0;

    (void)state;
    sample_from_now(PERIOD);
    for (unsigned i = 0; i < 60000; i++) {
        size_t slot = random_below(SLOTS);

        live -= (double)prairie_usable_size(block[slot]);
        prairie_free(block[slot]);
        block[slot] = take_somehow(any_size());
        assert_non_null(block[slot]);
        taken += (double)prairie_usable_size(block[slot]);
        live += (double)prairie_usable_size(block[slot]);
    }
    expect_close(taken);
    prairie_check_all();
    for (unsigned i = 0; i < SLOTS; i++) prairie_free(block[i]);
    assert_int_equal(estimate_now().live, 0);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(the_probability_is_that_of_the_process), UNIT_TEST(gaps_are_exponential),
          UNIT_TEST(a_gap_is_passed_to_its_last_byte), UNIT_TEST(hot_pairs_are_seen),
          UNIT_TEST(a_mixed_life_is_estimated))
