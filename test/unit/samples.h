/* samples.h - what the samples so far say was taken, for the tests of sampling. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_UNIT_SAMPLES_H
#define PRAIRIE_TEST_UNIT_SAMPLES_H

#include "unit.h"

enum { PERIOD = 4096 };

static inline void sample_from_now(uint64_t period)
{
    sampler_set_seed(random_word());
    sampler_set_period(period);
    sampling_active = true;
    assert_non_null(heap_attach());
    assert_true(sampling_start(UNWIND_DEPTH_MAX));
}

static inline size_t any_size(void)
{
    static const size_t bounds[] = { 64, 1024, 14336, 60000 };

    return random_below(bounds[random_below(ARRAY_COUNT(bounds))]);
}

static inline void *take_somehow(size_t size)
{
    void *block = NULL;

    switch (random_below(5)) {
    case 0: return prairie_calloc(1, size);
    case 1: return prairie_aligned_alloc(64, size);
    case 2: return prairie_realloc(NULL, max_size(size, 1));
    case 3: return prairie_posix_memalign(&block, 16, size) == 0 ? block : NULL;
    default: return prairie_malloc(size);
    }
}

struct estimate {
    double blocks, bytes, variance; /* of bytes */
    uint64_t live, taken;
};

static inline void add_site(const struct site *site, void *context)
{
    struct estimate *estimate = context;
    double probability = sampler_probability(site->bytes, sampler_period());
    double block = (double)site->bytes / probability;

    estimate->blocks += (double)site->taken / probability;
    estimate->bytes += (double)site->taken * block;
    estimate->variance += (double)site->taken * block * block * (1 - probability);
    estimate->live += site->live;
    estimate->taken += site->taken;
}

static inline struct estimate estimate_now(void)
{
    struct estimate estimate = { 0 };

    assert_true(samples_visit(add_site, &estimate));
    return estimate;
}

/* Within five standard deviations, which one run in two million misses by chance. */
static inline void expect_close(double true_bytes)
{
    struct estimate estimate = estimate_now();
    double off = estimate.bytes - true_bytes;

    assert_true(estimate.taken > 100);
    if (off * off > 25 * estimate.variance)
        fail_msg("%.0f bytes estimated from %llu samples, %.0f are true", estimate.bytes,
                 (unsigned long long)estimate.taken, true_bytes);
}

/* The next block of that size that is sampled. */
static inline void *sampled_block(size_t size)
{
    for (;;) {
        uint64_t before = estimate_now().live;
        void *block = prairie_malloc(size);

        assert_non_null(block);
        if (estimate_now().live > before) return block;
        prairie_free(block);
    }
}

#endif
