/* sampler.c - exponential gaps, drawn without the C library's mathematics.
 * SPDX-License-Identifier: MIT
 */
#include "sampler.h"

/* Bytes that a thread takes before it tells. */
enum { TELL_BYTES = 64 * 1024 };

static uint64_t period_bytes = 512 * KiB; /* atomic */
static uint32_t period_number = 1;        /* atomic: counts changes of the period */
static uint64_t next_seed;                /* atomic */
static uint64_t told_bytes;               /* atomic */

void sampler_set_period(uint64_t bytes)
{
    RELAXED_STORE(period_bytes, bytes);
    __atomic_fetch_add(&period_number, 1, __ATOMIC_RELAXED);
}

uint64_t sampler_period(void) { return RELAXED_LOAD(period_bytes); }
uint64_t sampler_taken_bytes(void) { return RELAXED_LOAD(told_bytes); }
void sampler_set_seed(uint64_t seed) { RELAXED_STORE(next_seed, seed); }

/* splitmix64: neighbouring seeds do no harm. */
static uint64_t next_random(uint64_t *state)
{
    return bits_mixed(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* Of 1 <= x < 2: the series of the inverse hyperbolic tangent, exact to 1e-11 around the root of
 * 2. */
static double log_of_fraction(double x)
{
    double offset = 0, s, square, power, sum = 0;

    if (x > 1.4142135623730951) {
        x /= 2;
        offset = 0.69314718055994531;
    }
    s = (x - 1) / (x + 1);
    square = s * s;
    power = s;
    for (unsigned odd = 1; odd < 15; odd += 2) {
        sum += power / odd;
        power *= square;
    }
    return offset + 2 * sum;
}

/* -ln of a uniform number in (0, 1]. */
static double exponential(uint64_t *state)
{
    uint64_t word = next_random(state) >> 11; /* 53 bits */
    double uniform = (double)(word + 1);      /* of 2^53 */
    unsigned exponent = highest_bit(word + 1);

    return (53.0 - exponent) * 0.69314718055994531
         - log_of_fraction(uniform / (double)((uint64_t)1 << exponent));
}

static double draw_gap(struct sampler *sampler)
{
    uint64_t period = sampler_period();

    return period <= 1 ? 0 : exponential(&sampler->random) * (double)period;
}

static uint64_t draw_blocks(struct sampler *sampler, unsigned class_index)
{
    double blocks = draw_gap(sampler) / class_bytes[class_index];

    return blocks < 4e18 ? (uint64_t)blocks : (uint64_t)4e18;
}

static void draw_all(struct sampler *sampler)
{
    sampler->drawn_for = RELAXED_LOAD(period_number);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        sampler->until[class_index] = draw_blocks(sampler, class_index);
    sampler->until_large_bytes = draw_gap(sampler);
}

void sampler_init(struct sampler *sampler, bool sampled)
{
    sampler->name = 0;
    sampler->is_off = !sampled;
    sampler->in_hook = false;
    sampler->frame = NULL;
    sampler->random =
        __atomic_add_fetch(&next_seed, UINT64_C(0xd1342543de82ef95), __ATOMIC_RELAXED);
    (void)next_random(&sampler->random);
    draw_all(sampler);
}

bool sampler_is_stale(const struct sampler *sampler)
{
    return sampler->drawn_for != RELAXED_LOAD(period_number);
}

/* A change of the period takes effect at a thread's next slow call. */
INLINE void follow_period(struct sampler *sampler)
{
    if (unlikely(sampler_is_stale(sampler))) draw_all(sampler);
}

void sampler_tell(struct sampler *sampler)
{
    __atomic_fetch_add(&told_bytes, (uint64_t)sampler->taken_bytes, __ATOMIC_RELAXED);
    sampler->taken_bytes = 0;
}

INLINE void count_bytes(struct sampler *sampler, size_t bytes)
{
    sampler->taken_bytes += (int64_t)bytes;
    if (sampler->taken_bytes >= TELL_BYTES) sampler_tell(sampler);
}

bool sampler_block_is_due(struct sampler *sampler, unsigned class_index)
{
    follow_period(sampler);
    if (likely(sampler->until[class_index] > 0)) return false;
    sampler->until[class_index] = draw_blocks(sampler, class_index);
    count_bytes(sampler, class_bytes[class_index]);
    return true;
}

bool sampler_large_is_due(struct sampler *sampler, size_t bytes)
{
    follow_period(sampler);
    count_bytes(sampler, bytes);
    if (sampler->until_large_bytes >= (double)bytes) {
        sampler->until_large_bytes -= (double)bytes;
        return false;
    }
    sampler->until_large_bytes = draw_gap(sampler);
    return true;
}

unsigned sampler_pass(struct sampler *sampler, unsigned class_index, unsigned wanted)
{
    uint64_t until = sampler->until[class_index];
    unsigned passed = until < wanted ? (unsigned)until : wanted;

    sampler->until[class_index] = until - passed;
    count_bytes(sampler, (size_t)passed * class_bytes[class_index]);
    return passed;
}

void sampler_pass_back(struct sampler *sampler, unsigned class_index, unsigned count)
{
    sampler->until[class_index] += count;
    sampler->taken_bytes -= (int64_t)count * class_bytes[class_index];
}

/* 1 - exp(-x), with x = bytes / period: by halving x until the series is short. */
double sampler_probability(size_t bytes, uint64_t period)
{
    double x = (double)bytes / (double)period, less = 0, term;
    unsigned halvings = 0;

    if (period <= 1 || x > 40) return 1;
    while (x > 0.05) {
        x /= 2;
        halvings++;
    }
    term = x;
    for (unsigned i = 2; i < 9; i++) {
        less += term;
        term *= -x / i;
    }
    /* 1 - e^-2x = p (2 - p) for p = 1 - e^-x */
    while (halvings-- > 0) less *= 2 - less;
    return less;
}
