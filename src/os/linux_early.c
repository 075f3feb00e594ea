/* linux_early.c - makes the first thread's slot usable while the program is still being relocated.
 *
 * Not part of the unity file: only the shared library is linked with it. The loader gives every
 * object its thread-local block zeroed, runs the program's ifunc resolvers, and copies the initial
 * values in only after that. A resolver that allocates would find NULL in the slot, and the fast
 * path does not test for NULL. But a resolver of our own runs when we are relocated, which is
 * before the program is; it puts the initial value in. The loader's later copy loses the cache that
 * was made meanwhile, and thread_attach finds it again.
 * SPDX-License-Identifier: MIT
 */
#include "thread_slot.h"

static void nothing_to_do(void) {}

/* Beside the constructor: the last page of the code would cost a fault of its own
 * (docs/decisions/0013). */
__attribute__((section(".text.startup"))) static void (*set_slot(void))(void)
{
    if (thread_front() == NULL) thread_front_set((struct front *)&front_empty);
    return nothing_to_do;
}

static void slot_is_set(void) __attribute__((ifunc("set_slot")));

/* The reference that makes the loader call the resolver. */
PRIVATE extern void (*const prairie_slot_is_set)(void);
PRIVATE void (*const prairie_slot_is_set)(void) __attribute__((used)) = slot_is_set;

/* What the compiler's start files would define, which the library is linked without: they look up
 * four names that nobody has and run what is empty. The C library asks for it when somebody
 * registers an exit handler. Weak, for what is linked with start files after all. */
PRIVATE extern void *const __dso_handle;
PRIVATE __attribute__((weak)) void *const __dso_handle = (void *)&__dso_handle;
