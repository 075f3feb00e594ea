/* sizes.h - the random sizes and alignments that a lane asks for.
 * SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_STRESS_SIZES_H
#define PRAIRIE_STRESS_SIZES_H

#include "lane.h"

uint64_t random_next(uint64_t *state);
/* Uniform in 0..bound-1, bound > 0. */
uint32_t random_below(uint64_t *state, uint32_t bound);
/* Log-uniform in least..most: every doubling is equally likely; least > 0. */
size_t random_log_bytes(uint64_t *state, size_t least, size_t most);

size_t system_page_bytes(void);

/* A request by the size habit of the lane's phase: 0 to 16 MB. */
size_t random_size(struct lane *lane);
/* The new size of a block of that many bytes: near, half, double, or any. Never 0. */
size_t random_resize(struct lane *lane, size_t bytes);
/* 8 bytes to 1 MiB, mostly small. */
size_t random_align(struct lane *lane);

#endif
