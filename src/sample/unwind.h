/* unwind.h - who called, by frame pointers.
 *
 * It allocates nothing, takes no lock and reads only where reading cannot fault, so it may run
 * anywhere. Code without frame pointers ends the walk early, or adds a frame that makes no sense:
 * the first caller is always true on x86 and aarch64, whose frames it knows. On other processors
 * none need be.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SAMPLE_UNWIND_H
#define PRAIRIE_SAMPLE_UNWIND_H

#include "../base/attrs.h"

enum { UNWIND_DEPTH_MAX = 128 };

/* Makes the calling function keep its caller's frame pointer and a frame of its own, whatever the
 * compiler's flags say; its address is where a walk begins. */
#define FRAME_HERE() __builtin_frame_address(0)
/* After the last use of FRAME_HERE(), where a function would otherwise end in a jump: its frame
 * lasts until here. */
#define FRAME_LASTS() __asm__ volatile("" ::: "memory")

/* Return addresses into return_address[], the function that called the frame's first. Returns how
 * many. */
unsigned unwind_from(const void *frame, uintptr_t *return_address, unsigned most);

/* A number for a stack; `hash` is what goes before it, 0 if nothing does. */
INLINE uint64_t stack_hash(uint64_t hash, const uintptr_t *return_address, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++) {
        hash = (hash ^ return_address[i]) * UINT64_C(0x9fb21c651e98df25);
        hash ^= hash >> 29;
    }
    return hash;
}

#endif
