/* allocator.h - the functions under test, under the names that this build of the stress test uses.
 * SPDX-License-Identifier: MIT
 *
 * Preloaded, the subject is whatever owns malloc in the process; names that it may lack are weak,
 * and NULL when it does. In the builds that contain prairie under its own names, those stand in;
 * what has no such name is NULL. */
#ifndef PRAIRIE_STRESS_ALLOCATOR_H
#define PRAIRIE_STRESS_ALLOCATOR_H

#include <malloc.h>
#include <prairie/prairie.h>
#include <stddef.h>
#include <stdlib.h>

#define WEAK __attribute__((weak))

#ifdef PRAIRIE_OWN_NAMES

#define malloc prairie_malloc
#define calloc prairie_calloc
#define realloc prairie_realloc
#define reallocarray prairie_reallocarray
#define free prairie_free
#define free_sized prairie_free_sized
#define free_aligned_sized prairie_free_aligned_sized
#define aligned_alloc prairie_aligned_alloc
#define memalign prairie_memalign
#define posix_memalign prairie_posix_memalign
#define malloc_usable_size prairie_usable_size

#define ABSENT(type) ((type)NULL)
#define valloc ABSENT(void *(*)(size_t))
#define pvalloc ABSENT(void *(*)(size_t))
#define cfree ABSENT(void (*)(void *))
#define _Znwm ABSENT(void *(*)(size_t))
#define _ZnwmRKSt9nothrow_t ABSENT(void *(*)(size_t, const void *))
#define _ZnwmSt11align_val_tRKSt9nothrow_t ABSENT(void *(*)(size_t, size_t, const void *))
#define _ZdlPv ABSENT(void (*)(void *))
#define _ZdlPvm ABSENT(void (*)(void *, size_t))
#define _ZdlPvmSt11align_val_t ABSENT(void (*)(void *, size_t, size_t))

#else

extern WEAK void free_sized(void *block, size_t bytes);
extern WEAK void free_aligned_sized(void *block, size_t align_bytes, size_t bytes);
extern WEAK void *valloc(size_t bytes);
extern WEAK void *pvalloc(size_t bytes);
extern WEAK void cfree(void *block);

/* C++ operators under the names that the linker knows, for 64-bit machines (m is unsigned long). */
extern WEAK void *_Znwm(size_t bytes);
extern WEAK void *_ZnwmRKSt9nothrow_t(size_t bytes, const void *nothrow);
extern WEAK void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t bytes, size_t align_bytes,
                                                     const void *nothrow);
extern WEAK void _ZdlPv(void *block);
extern WEAK void _ZdlPvm(void *block, size_t bytes);
extern WEAK void _ZdlPvmSt11align_val_t(void *block, size_t bytes, size_t align_bytes);

#endif

/* What only prairie has. */
#pragma weak prairie_check_all
#pragma weak prairie_stats_read

#endif
