/* random.h - random numbers, and sizes that several programs draw: the same under every allocator.
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

/* 16 to 511 bytes, each of the five doublings equally likely and uniform inside it (mean 149 bytes,
 * median 96): small sizes are the common ones in programs. */
static inline uint32_t random_small_bytes(uint64_t *state)
{
    uint32_t base = 16u << random_below(state, 5);
    return base + random_below(state, base);
}

/* 8 to 16,000 bytes with linearly falling probability: mean 5.3 KB. */
static inline uint32_t random_medium_bytes(uint64_t *state)
{
    uint32_t one = random_below(state, 15993);
    uint32_t other = random_below(state, 15993);
    return 8 + (one < other ? one : other);
}

/* 1 to `most` for most < 2^20, of 64 random bits; the chance of at least n is about 1/n. */
static inline uint32_t random_length(uint64_t bits, uint32_t most)
{
    uint64_t length = (1ull << 20) / ((bits >> 44) + 1);
    return length < 1 ? 1 : length > most ? most : (uint32_t)length;
}

#endif
