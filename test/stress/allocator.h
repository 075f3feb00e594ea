/* allocator.h - the functions under test, under the names that this build of the stress test uses.
 * SPDX-License-Identifier: MIT
 *
 * Preloaded, the subject is whatever owns malloc in the process; names that it may lack are weak
 * and NULL when it does. In the builds that contain prairie under its own names, those stand in. */
#ifndef PRAIRIE_STRESS_ALLOCATOR_H
#define PRAIRIE_STRESS_ALLOCATOR_H

#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>

#define WEAK __attribute__((weak))

#ifdef PRAIRIE_OWN_NAMES

#include <prairie/prairie.h>
#define malloc prairie_malloc
#define calloc prairie_calloc
#define realloc prairie_realloc
#define free prairie_free
#define aligned_alloc prairie_aligned_alloc
#define memalign prairie_memalign
#define posix_memalign prairie_posix_memalign
#define malloc_usable_size prairie_usable_size

static void (*const subject_free_sized)(void *block, size_t bytes) = prairie_free_sized;
static void (*const subject_new)(void) = NULL; /* the operators are part of the other build */

#else

#define SUBJECT_HAS_LIBC_FACE 1

extern WEAK void free_sized(void *block, size_t bytes);
extern WEAK void free_aligned_sized(void *block, size_t align_bytes, size_t bytes);
extern WEAK void *valloc(size_t bytes);
extern WEAK void *pvalloc(size_t bytes);
extern WEAK void cfree(void *block);

/* C++ operators under the names that the linker knows, for 64-bit machines (m is unsigned long). */
extern WEAK void *_Znwm(size_t bytes);
extern WEAK void _ZdlPv(void *block);
extern WEAK void _ZdlPvm(void *block, size_t bytes);
extern WEAK void *_ZnwmSt11align_val_t(size_t bytes, size_t align_bytes);
extern WEAK void _ZdlPvmSt11align_val_t(void *block, size_t bytes, size_t align_bytes);

#endif

/* Walks the whole heap and aborts on a broken invariant, where the subject can do that. */
extern WEAK void prairie_check_all(void);

#endif
