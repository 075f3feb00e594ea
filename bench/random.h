/* random.h - the random numbers of all measuring programs: the same stream under every allocator.
 * SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_BENCH_RANDOM_H
#define PRAIRIE_BENCH_RANDOM_H

#include <stdint.h>

/* xorshift64*; the state is never 0. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545F4914F6CDD1Dull;
}

/* Uniform in 0..bound-1 for bound < 2^32, by multiplication instead of division. */
static inline uint32_t random_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)(((random_next(state) >> 32) * bound) >> 32);
}

#endif
