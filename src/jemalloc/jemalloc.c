/* jemalloc.c - the names that jemalloc's users call, beside the C library's.
 * SPDX-License-Identifier: MIT
 */
#include "../../include/prairie/prairie.h"
#include "../control/control.h"

void *mallocx(size_t size, int flags) ALIAS_OF(prairie_mallocx);
void *rallocx(void *block, size_t size, int flags) ALIAS_OF(prairie_rallocx);
size_t xallocx(void *block, size_t size, size_t extra, int flags) ALIAS_OF(prairie_xallocx);
size_t sallocx(const void *block, int flags) ALIAS_OF(prairie_sallocx);
void dallocx(void *block, int flags) ALIAS_OF(prairie_dallocx);
void sdallocx(void *block, size_t size, int flags) ALIAS_OF(prairie_sdallocx);
size_t nallocx(size_t size, int flags) ALIAS_OF(prairie_nallocx);

int mallctl(const char *name, void *old_buffer, size_t *old_length, void *new_buffer,
            size_t new_length) ALIAS_OF(control_by_name);
int mallctlnametomib(const char *name, size_t *path, size_t *length) ALIAS_OF(control_path_of);
int mallctlbymib(const size_t *path, size_t length, void *old_buffer, size_t *old_length,
                 void *new_buffer, size_t new_length) ALIAS_OF(control_by_path);

#ifdef PRAIRIE_PREFIX
/* Servers that carry their allocator along look for this name. */
int get_defrag_hint(void *block) ALIAS_OF(prairie_defrag_hint);
#endif
