/* meter.c - exponential gaps, drawn without the C library's mathematics.
 * SPDX-License-Identifier: MIT
 */
#include "meter.h"

/* Bytes that a thread takes before it tells. */
enum { TELL_BYTES = 64 * 1024 };

static uint64_t period_bytes = 512 * KiB; /* atomic */
static uint32_t period_number = 1;        /* atomic: counts changes of the period */
static uint64_t next_seed;                /* atomic */
static uint64_t told_bytes;               /* atomic */

void meter_set_period(uint64_t bytes)
{
    RELAXED_STORE(period_bytes, bytes);
    __atomic_fetch_add(&period_number, 1, __ATOMIC_RELAXED);
}

uint64_t meter_period(void) { return RELAXED_LOAD(period_bytes); }
uint64_t meter_taken_bytes(void) { return RELAXED_LOAD(told_bytes); }
void meter_set_seed(uint64_t seed) { RELAXED_STORE(next_seed, seed); }

/* splitmix64: every state is followed by one that looks unrelated, so neighbouring seeds do no harm. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t word = *state += UINT64_C(0x9e3779b97f4a7c15);

    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

/* Of 1 <= x < 2: the series of the inverse hyperbolic tangent, exact to 1e-11 around the root of 2. */
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

static double draw_gap(struct meter *meter)
{
    uint64_t period = meter_period();

    return period <= 1 ? 0 : exponential(&meter->random) * (double)period;
}

static uint64_t draw_blocks(struct meter *meter, unsigned class_index)
{
    double blocks = draw_gap(meter) / class_bytes[class_index];

    return blocks < 4e18 ? (uint64_t)blocks : (uint64_t)4e18;
}

static void draw_all(struct meter *meter)
{
    meter->drawn_for = RELAXED_LOAD(period_number);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        meter->until[class_index] = draw_blocks(meter, class_index);
    meter->until_large_bytes = draw_gap(meter);
}

void meter_init(struct meter *meter, bool sampled)
{
    meter->name = 0;
    meter->is_off = !sampled;
    meter->in_hook = false;
    meter->frame = NULL;
    meter->random = __atomic_add_fetch(&next_seed, UINT64_C(0xd1342543de82ef95), __ATOMIC_RELAXED);
    (void)next_random(&meter->random);
    draw_all(meter);
}

bool meter_is_stale(const struct meter *meter)
{
    return meter->drawn_for != RELAXED_LOAD(period_number);
}

/* A change of the period takes effect at a thread's next slow call. */
INLINE void follow_period(struct meter *meter)
{
    if (unlikely(meter_is_stale(meter))) draw_all(meter);
}

void meter_tell(struct meter *meter)
{
    __atomic_fetch_add(&told_bytes, (uint64_t)meter->taken_bytes, __ATOMIC_RELAXED);
    meter->taken_bytes = 0;
}

INLINE void count_bytes(struct meter *meter, size_t bytes)
{
    meter->taken_bytes += (int64_t)bytes;
    if (meter->taken_bytes >= TELL_BYTES) meter_tell(meter);
}

bool meter_block_is_due(struct meter *meter, unsigned class_index)
{
    follow_period(meter);
    if (likely(meter->until[class_index] > 0)) return false;
    meter->until[class_index] = draw_blocks(meter, class_index);
    count_bytes(meter, class_bytes[class_index]);
    return true;
}

bool meter_large_is_due(struct meter *meter, size_t bytes)
{
    follow_period(meter);
    count_bytes(meter, bytes);
    if (meter->until_large_bytes >= (double)bytes) {
        meter->until_large_bytes -= (double)bytes;
        return false;
    }
    meter->until_large_bytes = draw_gap(meter);
    return true;
}

unsigned meter_pass(struct meter *meter, unsigned class_index, unsigned wanted)
{
    uint64_t until = meter->until[class_index];
    unsigned passed = until < wanted ? (unsigned)until : wanted;

    meter->until[class_index] = until - passed;
    count_bytes(meter, (size_t)passed * class_bytes[class_index]);
    return passed;
}

void meter_pass_back(struct meter *meter, unsigned class_index, unsigned count)
{
    meter->until[class_index] += count;
    meter->taken_bytes -= (int64_t)count * class_bytes[class_index];
}

/* 1 - exp(-x), with x = bytes / period: by halving x until the series is short. */
double meter_probability(size_t bytes)
{
    double x = (double)bytes / (double)max_size(meter_period(), 1), less = 0, term;
    unsigned halvings = 0;

    if (meter_period() <= 1 || x > 40) return 1;
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
