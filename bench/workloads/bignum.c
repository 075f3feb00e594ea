/* bignum.c - arithmetic on long numbers, each result a new block and each operand soon freed.
 * SPDX-License-Identifier: MIT
 *
 * Idea: cfrac (Zorn and Grunwald's program set, mimalloc-bench), which factors by continued
 * fractions with very short-lived numbers of a few dozen bytes. Here the squares of Lucas and
 * Lehmer's test run modulo four Mersenne numbers, whose remainders need only shifts and sums. */
#include "sizes.h"

#include <stdlib.h>

struct number {
    uint32_t count; /* of limbs; the highest is not 0 unless the number is */
    uint32_t limb[];
};

static struct number *new_number(uint32_t limbs)
{
    struct number *number = need(malloc(sizeof *number + limbs * sizeof *number->limb));
    number->count = limbs;
    return number;
}

static struct number *trimmed(struct number *number)
{
    while (number->count > 0 && number->limb[number->count - 1] == 0) number->count--;
    return number;
}

static uint32_t limb_of(const struct number *number, uint32_t index)
{
    return index < number->count ? number->limb[index] : 0;
}

static struct number *square(const struct number *a)
{
    struct number *result = new_number(a->count * 2);
    memset(result->limb, 0, result->count * sizeof *result->limb);
    for (uint32_t i = 0; i < a->count; i++) {
        uint64_t carry = 0;
        for (uint32_t j = 0; j < a->count; j++) {
            carry += (uint64_t)a->limb[i] * a->limb[j] + result->limb[i + j];
            result->limb[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        result->limb[i + a->count] = (uint32_t)carry;
    }
    return trimmed(result);
}

static struct number *sum_of(const struct number *a, const struct number *b)
{
    uint32_t longer = a->count > b->count ? a->count : b->count;
    struct number *result = new_number(longer + 1);
    uint64_t carry = 0;
    for (uint32_t i = 0; i <= longer; i++) {
        carry += (uint64_t)limb_of(a, i) + limb_of(b, i);
        result->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return trimmed(result);
}

static struct number *high_part(const struct number *a, unsigned bits)
{
    uint32_t skip = bits / 32, shift = bits % 32;
    if (a->count <= skip) return new_number(0);
    struct number *result = new_number(a->count - skip);
    for (uint32_t i = 0; i < result->count; i++) {
        uint64_t pair = limb_of(a, i + skip) | (uint64_t)limb_of(a, i + skip + 1) << 32;
        result->limb[i] = (uint32_t)(pair >> shift);
    }
    return trimmed(result);
}

static struct number *low_part(const struct number *a, unsigned bits)
{
    uint32_t limbs = (bits + 31) / 32;
    struct number *result = new_number(a->count < limbs ? a->count : limbs);
    memcpy(result->limb, a->limb, result->count * sizeof *a->limb);
    if (result->count == limbs) result->limb[limbs - 1] &= 0xFFFFFFFFu >> (limbs * 32 - bits);
    return trimmed(result);
}

/* The remainder modulo 2^bits - 1, up to that number itself; frees its operand. */
static struct number *reduced(struct number *a, unsigned bits)
{
    for (;;) {
        struct number *high = high_part(a, bits);
        if (high->count == 0) {
            free(high);
            return a;
        }
        struct number *low = low_part(a, bits);
        free(a);
        a = sum_of(high, low);
        free(high);
        free(low);
    }
}

static struct number *small_number(uint32_t value)
{
    struct number *number = new_number(1);
    number->limb[0] = value;
    return trimmed(number);
}

static struct outcome run_bignum(const struct job *job)
{
    static const unsigned exponents[] = { 61, 89, 127, 521 };
    uint64_t steps = scaled(job, 1200000), sum = 0;
    struct number *value[4];
    for (unsigned i = 0; i < 4; i++) value[i] = small_number((uint32_t)(job->seed + 3 + i));
    for (uint64_t step = 0; step < steps; step++) {
        for (unsigned i = 0; i < 4; i++) {
            struct number *squared = square(value[i]);
            struct number *one = small_number((uint32_t)step | 1);
            free(value[i]);
            value[i] = reduced(sum_of(squared, one), exponents[i]);
            free(squared);
            free(one);
        }
        sum = sum * 5 + limb_of(value[step % 4], 0);
    }
    for (unsigned i = 0; i < 4; i++) free(value[i]);
    return (struct outcome){ sum, steps * 4 * 7 };
}

static const struct workload workloads[] = {
    { "bignum", "programs",
      "numbers of up to 34 limbs, every result a new block: very short-lived small blocks", "cfrac",
      1, NULL, run_bignum, SUITE_TIMED, NULL, NULL },
};

const struct workload_list bignum_list = { workloads, sizeof workloads / sizeof *workloads };
