/* elf_slot.h - the thread's word where the loader gives every thread its copy of a variable.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_OS_ELF_SLOT_H
#define PRAIRIE_OS_ELF_SLOT_H

#include "../base/attrs.h"

struct front;

extern PRIVATE const union front_constant front_empty; /* cache/cache.c */

extern PRIVATE __thread struct front *thread_slot __attribute__((tls_model("initial-exec")));

INLINE struct front *thread_word(void) { return thread_slot; }
/* The same, read again: for the rarer end of a way whose usual end need not keep it then. */
INLINE struct front *thread_word_again(void) { return *(struct front *volatile *)&thread_slot; }
INLINE void thread_front_set(struct front *front) { thread_slot = front; }

#endif
