/* guarded_doors.h - when a guarded block is given out, how it comes back, and what happens when
 * somebody does wrong with one.
 *
 * A block is due after so many refills of a thread's cache, counted where a magazine is empty: the
 * hits know nothing of it. The pool (guard/guarded.h) is reserved, and faults are watched, when the
 * first one is due.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_GUARDED_DOORS_H
#define PRAIRIE_HEAP_GUARDED_DOORS_H

#include "misuse.h"
#include "slow.h"

#include "../guard/guarded.h"

/* Before main. */
void guarded_obey_options(void);

/* In the child of a fork, under the pool's lock: another thread may have been about to open it. */
void guarded_forget_opener(void);

INLINE bool guarded_is_due(const struct cache *cache)
{
    return likely(cache != NULL)
        && unlikely((int16_t)(uint16_t)(cache->refills - cache->front.guarded_from) >= 0);
}
/* For a small block that is due. NULL: this one is none. */
COLD void *guarded_take_due(struct cache *cache, const struct alloc_request *request);

/* An address in the pool is freed. Jumped to. */
NOINLINE void guarded_put(void *block);
/* Of an address in the pool. */
enum pointer_kind guarded_pointer_kind(const void *pointer);
/* A block that stays where it is has another size now, as far as reports go. */
void guarded_note_size(const void *block, size_t size);
/* Is the program to go on, when it was told of? */
bool guarded_goes_on(void);
/* Reports a call, in those words, with an address in the pool that is no block. False: nothing was
 * ever there, or there was a report of it. */
COLD bool guarded_tell_misuse(const char *what, const void *pointer, const void *frame);

#endif
