/* thread_slot.h - the one word that each thread has for prairie, and the end of a thread.
 *
 * The word points at a front (cache/front.h); before the thread's first call that is a constant
 * one, which has nothing to give and room for nothing, so that the first call needs no branch of
 * its own: it finds an empty magazine. Where it is a variable, that one pointer of static
 * thread-local storage is all prairie takes, so it can be loaded late.
 *
 * The kernel calls up here: os_thread_end_hook is given what runs when a thread ends.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_OS_THREAD_SLOT_H
#define PRAIRIE_OS_THREAD_SLOT_H

#include "../base/attrs.h"

#if defined(__APPLE__)
#include "darwin_slot.h"
#elif defined(_WIN32)
#include "windows_slot.h"
#else
#include "elf_slot.h"
#endif

/* The word that include/prairie/inline.h looks at. In a checking flavour, and where there are
 * other size classes, it is one that stays as it is before a thread's first call, so that every
 * call comes to the doors. */
#if (defined(PRAIRIE_CHECK) && PRAIRIE_CHECK >= 1) \
    || (defined(PRAIRIE_QUANTUM) && PRAIRIE_QUANTUM != 16)
#define SLOT_SEEN_INLINE(name)                                                             \
    extern PRIVATE __thread struct front *name __attribute__((tls_model("initial-exec"))); \
    __thread struct front *name __attribute__((tls_model("initial-exec"), used)) =         \
        (struct front *)&front_empty
#else
#define SLOT_SEEN_INLINE(name) \
    SEEN_INLINE(__thread struct front *name __attribute__((tls_model("initial-exec"))), thread_slot)
#endif

/* Arranges that `hook` runs when this thread ends. May allocate: the thread's cache is already in
 * its slot. False: it could not be arranged. */
bool os_thread_end_hook(void (*hook)(void));

#endif
