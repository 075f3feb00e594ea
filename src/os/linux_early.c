/* linux_early.c - what only the shared library needs: a start that is early enough, and one file
 * for all C libraries.
 *
 * Not part of the unity file: only the shared library is linked with it.
 *
 * The GNU loader gives every object its thread-local block zeroed, runs the program's ifunc
 * resolvers, and copies the initial values in only after that. A resolver that allocates would find
 * NULL in the slot, and the fast path does not test for NULL. But a resolver of our own runs when
 * we are relocated, which is before the program is; it puts the initial value in. The loader's
 * later copy loses the cache that was made meanwhile, and thread_attach finds it again.
 *
 * musl knows neither ifuncs nor versions of names, and runs nothing of a program before it has
 * copied. So the resolver stands behind a version of a name that is not the default one: the GNU
 * loader finds the version that is asked for and runs the resolver; musl finds the default one, a
 * usual function. A relocation that names no symbol, as compilers make for an ifunc, it would
 * refuse.
 * SPDX-License-Identifier: MIT
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "thread_slot.h"

#include <dlfcn.h>
#include <pthread.h>

/* What musl finds, and what the resolver finds: nothing to do. */
PUBLIC void prairie_early(void);
PUBLIC void prairie_early(void) {}

/* Where the linker puts the offset of the thread's word behind the reference to the resolver, as on
 * RISC-V, it is still 0 here: the word would be the first one of the program's own. */
INLINE bool slot_is_known(void)
{
    const void *pointer = NULL; /* the thread pointer */

#if defined(__riscv)
    __asm__("mv %0, tp" : "=r"(pointer));
#elif defined(__powerpc64__)
    __asm__("mr %0, 13" : "=r"(pointer));
#endif
    return (const void *)&thread_slot != pointer;
}

/* Beside the constructor: the last page of the code would cost a fault of its own
 * (docs/decisions/0013). */
__attribute__((section(".text.startup"))) static void (*set_slot(void))(void)
{
    if (slot_is_known() && thread_word() == NULL) thread_front_set((struct front *)&front_empty);
    return prairie_early;
}

PUBLIC void slot_is_set(void) __attribute__((ifunc("set_slot")));
__asm__(".symver slot_is_set, prairie_early@PRAIRIE_EARLY, remove");

/* The reference that makes the loader call the resolver. */
PRIVATE extern void (*const prairie_slot_is_set)(void);
PRIVATE void (*const prairie_slot_is_set)(void) __attribute__((used)) = slot_is_set;

/* What the compiler's start files would define, which the library is linked without: they look up
 * four names that nobody has and run what is empty. The C library asks for it when somebody
 * registers an exit handler. Weak, for what is linked with start files after all. */
PRIVATE extern void *const __dso_handle;
PRIVATE __attribute__((weak)) void *const __dso_handle = (void *)&__dso_handle;

/* The GNU C library puts its pthread_atfork into the object that calls it, and has another name for
 * what is behind; in others it is a usual function. */
extern int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void),
                             void *object);
#pragma weak __register_atfork
#pragma weak dlsym

PRIVATE int pthread_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    union {
        void *object;
        int (*function)(void (*)(void), void (*)(void), void (*)(void));
    } others = { NULL };

    if (__register_atfork != NULL)
        return __register_atfork(before, in_parent, in_child, (void *)&__dso_handle);
    if (dlsym != NULL) others.object = dlsym(RTLD_DEFAULT, "pthread_atfork");
    return others.function != NULL ? others.function(before, in_parent, in_child) : -1;
}
