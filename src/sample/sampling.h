/* sampling.h - what is sampled now, and functions of the program that see it.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SAMPLE_SAMPLING_H
#define PRAIRIE_SAMPLE_SAMPLING_H

#include "../cache/counting.h"
#include "sample.h"

/* Makes every thread ready to be sampled, with stacks of up to `depth` callers. The calling thread
 * has a cache. False: no memory, or not alone (threads_sample). */
bool sampling_start(unsigned depth);
/* The calling thread's; every thread has one from then on, before its end. NULL: it has none. */
struct sampler *sampler_here(void);
extern PRIVATE bool sampling_active; /* atomic: nothing is sampled while it is false */
/* Functions of the program that see samples; NULL: it has none. They are called without a lock, and
 * what they allocate is not sampled. Blocks of an arena that is reset are not told of. */
enum sampling_hook_kind { HOOK_WALK, HOOK_TAKEN, HOOK_GIVEN, HOOK_DUMP, HOOK_COUNT };
union sampling_hook {
    void *pointer; /* any of them, as the caller has it */
    /* Return addresses of the callers, in the place of those that frames tell. */
    void (*walk)(void **return_address, unsigned *depth, unsigned most);
    void (*taken)(const void *block, size_t size, void **return_address, unsigned depth,
                  size_t bytes);
    void (*given)(const void *block, size_t bytes);
    void (*dump)(const char *path); /* of each profile that was written */
};
extern PRIVATE union sampling_hook sampling_hooks[HOOK_COUNT]; /* atomic, each by itself */
/* Walks as if no hook were there: within `walk` the stack of the sample, else the caller's. */
void sampling_walk(void **return_address, unsigned *depth, unsigned most);
/* Somebody wants to look now and then: profile_poll. */
extern PRIVATE bool sampling_polls; /* atomic */

/* A stack, and the room for it. */
struct stack_trace {
    struct origin origin;
    uintptr_t return_address[UNWIND_DEPTH_MAX];
};

/* Notes that a block of that many usable bytes is taken, by who called the door of the frame.
 * Returns the number of the new record; 0: nothing is sampled now, or no memory. */
uint32_t sampling_note(const struct counting_front *counting, size_t bytes, const void *frame,
                       struct stack_trace *trace);
/* Tell the program's functions, if it has any: before the record is forgotten. */
void sampling_tell_taken(const void *block, const struct origin *origin, size_t bytes);
void sampling_tell_given(const void *block, uint32_t number);
void sampling_tell_dumped(const char *path);

#endif
