/* thread_local.h - a zeroed variable that each thread has for itself, for the checking flavours.
 *
 * THREAD_LOCAL(struct x, name) defines it in a .c file, and name_place() is this thread's.
 * Thread-local storage is scarce in a library that is loaded late, so the plain flavour has one
 * word of it and no more (os/thread_slot.h).
 *
 * On Windows gcc's own thread-local variables call malloc. There the variable is a place in the
 * section of which the loader gives each thread a copy, as that word is (os/windows_slot.h).
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_BASE_THREAD_LOCAL_H
#define PRAIRIE_BASE_THREAD_LOCAL_H

#include "attrs.h"

#if defined(_WIN32)
#define THREAD_LOCAL(type, name)                                             \
    static type name##_first __attribute__((section(".tls$PRAIRIE"), used)); \
    static NOINLINE type *name##_place(void)                                 \
    {                                                                        \
        size_t index;                                                        \
        char **blocks;                                                       \
        type *place;                                                         \
                                                                             \
        __asm__("movl _tls_index(%%rip), %k0" : "=r"(index));                \
        __asm__ volatile("movq %%gs:0x58, %0" : "=r"(blocks));               \
        __asm__ volatile("leaq " #name "_first@SECREL32(%1), %0"             \
                         : "=r"(place)                                       \
                         : "r"(blocks[index]));                              \
        return place;                                                        \
    }
#else
#define THREAD_LOCAL(type, name)                                                  \
    static __thread type name##_first __attribute__((tls_model("initial-exec"))); \
    INLINE type *name##_place(void) { return &name##_first; }
#endif

#endif
