/* libc.c - the C library's names for the doors, each a second name of the same code.
 *
 * All of the family is answered, so that no block of the C library's own allocator ever mixes with
 * ours. The __libc_ names let a static program leave glibc's malloc out.
 * SPDX-License-Identifier: MIT
 */
#include "../heap/doors.h"

void *malloc(size_t size) ALIAS_OF(prairie_malloc);
void *calloc(size_t count, size_t size) ALIAS_OF(prairie_calloc);
void *realloc(void *block, size_t size) ALIAS_OF(prairie_realloc);
void *reallocarray(void *block, size_t count, size_t size) ALIAS_OF(prairie_reallocarray);
void free(void *block) ALIAS_OF(prairie_free);
void cfree(void *block) ALIAS_OF(prairie_free);
void free_sized(void *block, size_t size) ALIAS_OF(prairie_free_sized);
void free_aligned_sized(void *block, size_t align, size_t size)
    ALIAS_OF(prairie_free_aligned_sized);
void *aligned_alloc(size_t align, size_t size) ALIAS_OF(prairie_aligned_alloc);
void *memalign(size_t align, size_t size) ALIAS_OF(prairie_memalign);
int posix_memalign(void **block, size_t align, size_t size) ALIAS_OF(prairie_posix_memalign);
void *valloc(size_t size) ALIAS_OF(prairie_valloc);
void *pvalloc(size_t size) ALIAS_OF(prairie_pvalloc);
size_t malloc_usable_size(void *block) ALIAS_OF(prairie_usable_size);

void *__libc_malloc(size_t size) ALIAS_OF(prairie_malloc);
void *__libc_calloc(size_t count, size_t size) ALIAS_OF(prairie_calloc);
void *__libc_realloc(void *block, size_t size) ALIAS_OF(prairie_realloc);
void *__libc_reallocarray(void *block, size_t count, size_t size) ALIAS_OF(prairie_reallocarray);
void __libc_free(void *block) ALIAS_OF(prairie_free);
void __libc_cfree(void *block) ALIAS_OF(prairie_free);
void *__libc_memalign(size_t align, size_t size) ALIAS_OF(prairie_memalign);
void *__libc_valloc(size_t size) ALIAS_OF(prairie_valloc);
void *__libc_pvalloc(size_t size) ALIAS_OF(prairie_pvalloc);
int __posix_memalign(void **block, size_t align, size_t size) ALIAS_OF(prairie_posix_memalign);
