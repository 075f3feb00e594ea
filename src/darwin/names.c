/* names.c - the names that programs on macOS call, and what happens before main.
 *
 * A library that is inserted into a program (DYLD_INSERT_LIBRARIES), or linked with it, has its
 * table of interposed functions obeyed by the loader: calls by those names lead here straight away.
 * Calls out of the system's own cache of libraries may not, from macOS 26 on most do not; they come
 * through the zone. So blocks of all zones come to each of these.
 * SPDX-License-Identifier: MIT
 */
#include "zone.h"

#include "../control/conf.h"

#include <errno.h>
#include <stdlib.h>

static void *reallocf_here(void *block, size_t size)
{
    void *moved = darwin_realloc(block, size);

    if (moved == NULL) prairie_free(block);
    return moved;
}

/* 0 for what is no zone's, as the system answers. */
static size_t size_here(const void *block)
{
    size_t bytes = block != NULL ? prairie_zone.zone.size(&prairie_zone.zone, block) : 0;

    if (bytes != 0 || block == NULL) return bytes;
    bytes = os_other_bytes(block);
    return bytes != SIZE_MAX ? bytes : 0;
}

#define INTERPOSED(name, function)                                       \
    {                                                                    \
        (const void *)(uintptr_t)function, (const void *)(uintptr_t)name \
    }

/* The loader looks for it by this section's name. */
__attribute__((used, section("__DATA,__interpose"))) static const struct {
    const void *with, *what;
} interposed[] = {
    INTERPOSED(malloc, prairie_malloc),
    INTERPOSED(calloc, prairie_calloc),
    INTERPOSED(valloc, prairie_valloc),
    INTERPOSED(free, prairie_free),
    INTERPOSED(realloc, darwin_realloc),
    INTERPOSED(reallocf, reallocf_here),
    INTERPOSED(aligned_alloc, prairie_aligned_alloc),
    INTERPOSED(posix_memalign, prairie_posix_memalign),
    INTERPOSED(malloc_size, size_here),
    INTERPOSED(malloc_good_size, darwin_good_size),
};

/* Second names, which this format has for the assembler only: jemalloc's. */
#define SECOND_NAME(name, function) __asm__(".globl _" #name "\n.set _" #name ", _" #function)

SECOND_NAME(mallocx, prairie_mallocx);
SECOND_NAME(rallocx, prairie_rallocx);
SECOND_NAME(xallocx, prairie_xallocx);
SECOND_NAME(sallocx, prairie_sallocx);
SECOND_NAME(dallocx, prairie_dallocx);
SECOND_NAME(sdallocx, prairie_sdallocx);
SECOND_NAME(nallocx, prairie_nallocx);
SECOND_NAME(mallctl, control_by_name);
SECOND_NAME(mallctlnametomib, control_path_of);
SECOND_NAME(mallctlbymib, control_by_path);

/* The system has started its own zones by now, and a few blocks are taken. */
__attribute__((constructor)) static void prepare_process(void)
{
    conf_start();
    zone_install();
}
