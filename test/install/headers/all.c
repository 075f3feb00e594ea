/* all.c - every public header but that for C++ alone, and what their macros expand to; C and C++, of any
 * standard. */
/* SPDX-License-Identifier: MIT */
#include <prairie/inline.h>
#include <prairie/prairie.h>
#include <prairie/reserve.h>

#include <jemalloc/jemalloc.h>

#ifdef __cplusplus
#define FLAG(value) 0
#else
#define FLAG(value) value
#endif

int use_headers(size_t size);
JEMALLOC_EXPORT JEMALLOC_ALLOCATOR JEMALLOC_RESTRICT_RETURN void JEMALLOC_NOTHROW *use_attributes(
    size_t size) JEMALLOC_ATTR(malloc) JEMALLOC_ALLOC_SIZE(1);

/* Casts are C's, of which a C++ compiler can be asked to warn. */
void JEMALLOC_NOTHROW *use_attributes(size_t size)
{
    return mallocx(size, FLAG(MALLOCX_ALIGN(4096) | MALLOCX_ZERO | MALLOCX_TCACHE_NONE)
                             | FLAG(MALLOCX_LG_ALIGN(6) | MALLOCX_ARENA(0) | MALLOCX_TCACHE(1)));
}

int use_headers(size_t size)
{
    struct prairie_stats stats;
    void *block = prairie_inline_malloc(48), *other = prairie_inline_malloc(size);
    unsigned long sizes = PRAIRIE_INLINE_CLASS(200) + sizeof(extent_hooks_t);

    stats.struct_bytes = sizeof stats;
    prairie_inline_free(block, 48);
    prairie_inline_free(other, size);
    xmalloc(size);
    return prairie_stats_read(&stats) && sizes != 0 && use_attributes(size) != NULL;
}
