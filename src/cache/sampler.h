/* sampler.h - when the next sample is due.
 *
 * Samples are a Poisson process over the bytes that programs take: each block of s bytes is one
 * with the probability 1 - exp(-s / period). The exponential gaps of different classes and threads
 * are drawn apart: the sum of such processes is one again.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_CACHE_SAMPLER_H
#define PRAIRIE_CACHE_SAMPLER_H

#include "../slabs/size_class.h"

struct sampler {
    uint64_t until[CLASS_COUNT]; /* owner thread: blocks to pass before the next sample, beyond
                                    those passed */
    double until_large_bytes;    /* owner thread */
    uint64_t random;             /* owner thread */
    int64_t taken_bytes; /* owner thread: not yet told to sampler_taken_bytes; what was passed back
                            is less */
    uint32_t drawn_for;  /* owner thread: the sampler_period that gaps were drawn for */
    uint32_t name;       /* owner thread: number of its name in samples; 0: none */
    bool is_off;         /* owner thread: it is not to be sampled */
    bool in_hook;        /* owner thread: a function of the program looks at a sample */
    const void *frame;   /* owner thread: of the door whose block that is to be; NULL: of none */
};

/* Means of the gaps. 1 and less: every block is sampled. */
void sampler_set_period(uint64_t bytes);
uint64_t sampler_period(void);
/* The probability that a block of that many bytes is sampled with that period. */
double sampler_probability(size_t bytes, uint64_t period);
/* For tests: where random numbers start from. */
void sampler_set_seed(uint64_t seed);

/* Of a thread that begins. */
void sampler_init(struct sampler *sampler, bool sampled);
bool sampler_block_is_due(struct sampler *sampler, unsigned class_index);
bool sampler_large_is_due(struct sampler *sampler, size_t bytes);
/* How many of `wanted` blocks of the class may pass, of which none is due: at least one. They are
 * passed. */
unsigned sampler_pass(struct sampler *sampler, unsigned class_index, unsigned wanted);
/* So many blocks that passed were not taken. */
void sampler_pass_back(struct sampler *sampler, unsigned class_index, unsigned count);
/* Has the period changed since gaps were drawn? The next question for a block draws them anew. */
bool sampler_is_stale(const struct sampler *sampler);
/* Tells what was taken since the last time. */
void sampler_tell(struct sampler *sampler);

/* What all sampled threads took so far. Of one that lives it may be 64 KiB short, or ahead by what
 * may pass of each class. */
uint64_t sampler_taken_bytes(void);

#endif
