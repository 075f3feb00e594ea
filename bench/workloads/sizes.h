/* sizes.h - the sizes that programs ask for, and how blocks of them are written and read back.
 * SPDX-License-Identifier: MIT
 *
 * Published traces agree on three things: most blocks are below 128 bytes; most of them have one of
 * few exact sizes (the program's structs); the rest, strings and buffers, falls off like a power
 * law, so that every doubling holds about the same number of bytes. size_program() is drawn so:
 * three in four from a table of 64 struct sizes, one in four with 2^-k in the k-th doubling from 16
 * bytes to 32 KiB. Mean about 103 bytes, median 48, a tenth above 152, 0.1 % above 4 KiB. */
#ifndef PRAIRIE_BENCH_SIZES_H
#define PRAIRIE_BENCH_SIZES_H

#include "workload.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE_PROGRAM_MAX = 32 * 1024, PAGE = 4096 };

static const uint16_t struct_bytes[64] = {
    16, 16, 16, 16,  16,  24,  24,  24,  24,  24,  24,  24,  32,  32,  32,  32,
    32, 32, 32, 32,  40,  40,  40,  40,  40,  40,  48,  48,  48,  48,  48,  48,
    56, 56, 56, 56,  64,  64,  64,  64,  72,  72,  72,  80,  80,  80,  88,  88,
    96, 96, 96, 104, 112, 120, 128, 128, 144, 152, 168, 200, 256, 320, 416, 1040,
};

/* Any size from 16 bytes to 32 KiB, every doubling half as likely as the one below. */
static inline size_t size_power_law(uint64_t *random)
{
    uint64_t bits = random_next(random);
    unsigned doubling = (unsigned)__builtin_ctzll(bits | (1ull << 10));
    size_t base = (size_t)16 << doubling;
    return base + (size_t)(((bits >> 32) * base) >> 32);
}

static inline size_t size_program(uint64_t *random)
{
    uint64_t bits = random_next(random) >> 40;
    if ((bits & 3) != 0) return struct_bytes[bits >> 2 & 63];
    return size_power_law(random);
}

/* Uniform: every size from least to most, as published benchmarks with plain ranges ask. */
static inline size_t size_between(uint64_t *random, size_t least, size_t most)
{
    return least + random_below(random, (uint32_t)(most - least + 1));
}

/* A program writes what it allocates. Here: the first word, and one in every `step` bytes. Blocks
 * have at least 8 bytes. */
static inline void block_write(void *block, size_t bytes, size_t step, uint64_t value)
{
    for (size_t at = 0; at + sizeof value <= bytes; at += step)
        memcpy((char *)block + at, &value, sizeof value);
}

static inline uint64_t block_word(const void *block)
{
    uint64_t value;
    memcpy(&value, block, sizeof value);
    return value;
}

/* What block_write wrote, each word weighed by where it stands. */
static inline uint64_t block_sum(const void *block, size_t bytes, size_t step)
{
    uint64_t sum = 0, weight = 1;
    for (size_t at = 0; at + sizeof sum <= bytes; at += step, weight += 2)
        sum += weight * block_word((const char *)block + at);
    return sum;
}

/* A small block of the mix, its first word written and every page of the larger ones. */
static inline void *new_program_block(uint64_t *random)
{
    size_t bytes = size_program(random);
    void *block = need(malloc(bytes));
    block_write(block, bytes, PAGE, random[0] ^ bytes);
    return block;
}

#endif
