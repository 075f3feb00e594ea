/* sampled.h - blocks that were sampled, of any size, in pages of their own.
 *
 * Those of a manual arena are in state PAGE_MANUAL, so that it knows them; vast ones stay in
 * PAGE_VAST.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_SAMPLED_H
#define PRAIRIE_HEAP_SAMPLED_H

#include "../sample/sampling.h"

/* A new one of `bytes`, of this arena; NULL for `arena`: of the one that the thread's blocks come
 * from. NULL: nothing is sampled now, or no memory. */
void *sampled_take(struct counting_front *counting, struct arena *arena, size_t bytes,
                   const void *frame);
/* Makes a large block a sampled one, if there is memory for that. */
void sampled_begin(struct counting_front *counting, void *block, const void *frame);
/* A block that is not small is about to go; sampled or not. */
void sampled_end(uint32_t page);
size_t sampled_bytes(uint32_t page);
/* The number of the record of a block that begins there; 0: it is not sampled. */
uint32_t sampled_number(uint32_t page);
/* Before a manual arena is reset: its sampled blocks are gone. */
void sampled_forget_all(struct arena *arena);
/* The two stand around a change of size, in which the block is a plain large one. sampled_pause
 * returns the number of its sample, 0 if it has none. sampled_go_on makes the block a sampled one
 * again, or with `resized` ends the sample; `block` is the address before the change, where it may
 * no longer be. */
uint32_t sampled_pause(uint32_t page);
void sampled_go_on(const void *block, uint32_t number, bool resized);

#endif
