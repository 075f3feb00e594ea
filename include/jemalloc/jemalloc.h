/* jemalloc.h - the interface that jemalloc's users know, answered by prairie.
 *
 * A program that was written for jemalloc 5.3 compiles with this header and runs with prairie unchanged:
 * names, encodings of flags and meanings are the same. What differs is in docs/switching.md.
 *
 * Flags are an int: bits 0 to 5 hold the base-2 logarithm of the alignment, bit 6 asks for zeros, bits 8 to
 * 19 name a cache and bits 20 to 31 an arena; 0 leaves the choice to prairie. All functions may be called
 * from any thread, except from a signal handler that interrupted one of them.
 *
 * JEMALLOC_MANGLE_PREFIX  the prefix of all names, for a library that was built with one:
 *                         #define JEMALLOC_MANGLE_PREFIX je_
 * JEMALLOC_NO_RENAME      without it, and without a prefix, the names with je_ are understood too
 * SPDX-License-Identifier: MIT
 */
#ifndef JEMALLOC_H_
#define JEMALLOC_H_

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JEMALLOC_VERSION "5.3.1-0-gprairie"
#define JEMALLOC_VERSION_MAJOR 5
#define JEMALLOC_VERSION_MINOR 3
#define JEMALLOC_VERSION_BUGFIX 1
#define JEMALLOC_VERSION_NREV 0
#define JEMALLOC_VERSION_GID "prairie"
#define JEMALLOC_VERSION_GID_IDENT prairie

/* ---- flags ---- */

/* Alignment, as its logarithm or as a power of two. */
#define MALLOCX_LG_ALIGN(la) ((int)(la))
#define MALLOCX_ALIGN(a) ((int)(__builtin_ffsll((long long)(a)) - 1))
/* The block reads as zero; where a block grows, what is new of it does. */
#define MALLOCX_ZERO ((int)0x40)
/* A cache made by "tcache.create", or none: the block comes from its arena at once, and goes there. */
#define MALLOCX_TCACHE(tc) ((int)(((unsigned)(tc) + 2u) << 8))
#define MALLOCX_TCACHE_NONE MALLOCX_TCACHE(-1)
/* An arena, as a rule one made by "arenas.create". */
#define MALLOCX_ARENA(a) ((int)(((unsigned)(a) + 1u) << 20))

/* In the place of an arena's number in control names: all of them, and those that were destroyed. */
#define MALLCTL_ARENAS_ALL 4096
#define MALLCTL_ARENAS_DESTROYED 4097

/* ---- names ---- */

#ifdef JEMALLOC_MANGLE_PREFIX
#define JEMALLOC_JOIN_AGAIN(a, b) a##b
#define JEMALLOC_JOIN(a, b) JEMALLOC_JOIN_AGAIN(a, b)
#define JEMALLOC_NAME(name) JEMALLOC_JOIN(JEMALLOC_MANGLE_PREFIX, name)
#else
#define JEMALLOC_NAME(name) name
#ifndef JEMALLOC_NO_RENAME
#define je_malloc malloc
#define je_calloc calloc
#define je_realloc realloc
#define je_free free
#define je_aligned_alloc aligned_alloc
#define je_posix_memalign posix_memalign
#define je_memalign memalign
#define je_valloc valloc
#define je_pvalloc pvalloc
#define je_malloc_usable_size malloc_usable_size
#define je_free_sized free_sized
#define je_free_aligned_sized free_aligned_sized
#define je_mallocx mallocx
#define je_rallocx rallocx
#define je_xallocx xallocx
#define je_sallocx sallocx
#define je_dallocx dallocx
#define je_sdallocx sdallocx
#define je_nallocx nallocx
#define je_mallctl mallctl
#define je_mallctlnametomib mallctlnametomib
#define je_mallctlbymib mallctlbymib
#define je_malloc_stats_print malloc_stats_print
#define je_malloc_message malloc_message
#define je_malloc_conf malloc_conf
#define je_malloc_conf_2_conf_harder malloc_conf_2_conf_harder
#endif
#endif

#if defined(__cplusplus) && __cplusplus >= 201103L
#define JEMALLOC_NOTHROW noexcept(true)
#elif defined(__cplusplus)
#define JEMALLOC_NOTHROW throw()
#else
#define JEMALLOC_NOTHROW
#endif
#define JEMALLOC_EXPORT __attribute__((visibility("default")))
#define JEMALLOC_CXX_THROW JEMALLOC_NOTHROW

/* The standard's functions keep their own declarations where a header of the C library is there, too. */
#ifdef JEMALLOC_MANGLE_PREFIX
JEMALLOC_EXPORT void *JEMALLOC_NAME(malloc)(size_t size) JEMALLOC_NOTHROW;
JEMALLOC_EXPORT void *JEMALLOC_NAME(calloc)(size_t count, size_t size) JEMALLOC_NOTHROW;
JEMALLOC_EXPORT void *JEMALLOC_NAME(realloc)(void *block, size_t size) JEMALLOC_NOTHROW;
JEMALLOC_EXPORT void JEMALLOC_NAME(free)(void *block) JEMALLOC_NOTHROW;
JEMALLOC_EXPORT void *JEMALLOC_NAME(aligned_alloc)(size_t align, size_t size) JEMALLOC_NOTHROW;
JEMALLOC_EXPORT int JEMALLOC_NAME(posix_memalign)(void **block, size_t align,
                                                  size_t size) JEMALLOC_NOTHROW;
JEMALLOC_EXPORT void *JEMALLOC_NAME(memalign)(size_t align, size_t size) JEMALLOC_NOTHROW;
JEMALLOC_EXPORT void *JEMALLOC_NAME(valloc)(size_t size) JEMALLOC_NOTHROW;
JEMALLOC_EXPORT void *JEMALLOC_NAME(pvalloc)(size_t size) JEMALLOC_NOTHROW;
JEMALLOC_EXPORT size_t JEMALLOC_NAME(malloc_usable_size)(void *block) JEMALLOC_NOTHROW;
#else
#include <malloc.h>
#include <stdlib.h>
#endif

/* Frees a block whose size the caller knows: the size asked for, or any up to the usable one. */
JEMALLOC_EXPORT void JEMALLOC_NAME(free_sized)(void *block, size_t size) JEMALLOC_NOTHROW;
JEMALLOC_EXPORT void JEMALLOC_NAME(free_aligned_sized)(void *block, size_t align,
                                                       size_t size) JEMALLOC_NOTHROW;

/* ---- functions with flags ---- */

/* A block of at least `size` bytes. NULL with ENOMEM: no memory, or no such arena or cache. */
JEMALLOC_EXPORT void *JEMALLOC_NAME(mallocx)(size_t size, int flags) JEMALLOC_NOTHROW;
/* The block with another size, moved if need be. NULL: no memory, the block is as it was. */
JEMALLOC_EXPORT void *JEMALLOC_NAME(rallocx)(void *block, size_t size, int flags) JEMALLOC_NOTHROW;
/* Resizes in place to size + extra bytes, or at least `size`; the block never moves. Returns its usable size,
 * which is less than `size` when it could not grow. */
JEMALLOC_EXPORT size_t JEMALLOC_NAME(xallocx)(void *block, size_t size, size_t extra,
                                              int flags) JEMALLOC_NOTHROW;
/* The usable size of a block. */
JEMALLOC_EXPORT size_t JEMALLOC_NAME(sallocx)(const void *block, int flags) JEMALLOC_NOTHROW;
JEMALLOC_EXPORT void JEMALLOC_NAME(dallocx)(void *block, int flags) JEMALLOC_NOTHROW;
/* As dallocx, faster: `size` is what was asked for, or any up to the usable size; the alignment in `flags` is the
 * one that was asked for. */
JEMALLOC_EXPORT void JEMALLOC_NAME(sdallocx)(void *block, size_t size, int flags) JEMALLOC_NOTHROW;
/* The usable size that mallocx would give; 0 for sizes that no block can have. */
JEMALLOC_EXPORT size_t JEMALLOC_NAME(nallocx)(size_t size, int flags) JEMALLOC_NOTHROW;

#ifdef JEMALLOC_MANGLE_PREFIX
/* 1: the heap would be smaller if this block were replaced by a new one, both with MALLOCX_TCACHE_NONE. */
#define JEMALLOC_FRAG_HINT
JEMALLOC_EXPORT int JEMALLOC_NAME(get_defrag_hint)(void *block) JEMALLOC_NOTHROW;
#endif

/* ---- control ---- */

/* Reads and writes the value of a name; 0, or EINVAL, ENOENT, EPERM, EAGAIN, EFAULT. */
JEMALLOC_EXPORT int JEMALLOC_NAME(mallctl)(const char *name, void *old_value, size_t *old_bytes,
                                           void *new_value, size_t new_bytes) JEMALLOC_NOTHROW;
/* A name as numbers, which spare the look-up when it is used often. */
JEMALLOC_EXPORT int JEMALLOC_NAME(mallctlnametomib)(const char *name, size_t *mib,
                                                    size_t *mib_length) JEMALLOC_NOTHROW;
JEMALLOC_EXPORT int JEMALLOC_NAME(mallctlbymib)(const size_t *mib, size_t mib_length,
                                                void *old_value, size_t *old_bytes, void *new_value,
                                                size_t new_bytes) JEMALLOC_NOTHROW;
/* Writes the statistics as text, or as JSON with J in `options`; to the standard error when `write` is NULL. */
JEMALLOC_EXPORT void JEMALLOC_NAME(malloc_stats_print)(void (*write)(void *context,
                                                                     const char *text),
                                                       void *context,
                                                       const char *options) JEMALLOC_NOTHROW;
/* What writes messages; NULL: they go to the standard error. */
JEMALLOC_EXPORT extern void (*JEMALLOC_NAME(malloc_message))(void *context, const char *text);
/* Options that the program defines for itself, "name:value,name:value". */
JEMALLOC_EXPORT extern const char *JEMALLOC_NAME(malloc_conf) __attribute__((weak));
JEMALLOC_EXPORT extern const char *JEMALLOC_NAME(malloc_conf_2_conf_harder) __attribute__((weak));

/* ---- hooks for the memory of an arena ---- */

typedef struct extent_hooks_s extent_hooks_t;

/* Memory at a multiple of `align`; at new_addr unless that is NULL. *zero: it must, and then does, read as zero;
 * *commit: likewise usable. NULL: none. */
typedef void *(extent_alloc_t)(extent_hooks_t *hooks, void *new_addr, size_t size, size_t align,
                               bool *zero, bool *commit, unsigned arena);
/* The others return true when they refuse. */
typedef bool(extent_dalloc_t)(extent_hooks_t *hooks, void *base, size_t size, bool committed,
                              unsigned arena);
typedef void(extent_destroy_t)(extent_hooks_t *hooks, void *base, size_t size, bool committed,
                               unsigned arena);
typedef bool(extent_commit_t)(extent_hooks_t *hooks, void *base, size_t size, size_t offset,
                              size_t length, unsigned arena);
typedef bool(extent_decommit_t)(extent_hooks_t *hooks, void *base, size_t size, size_t offset,
                                size_t length, unsigned arena);
typedef bool(extent_purge_t)(extent_hooks_t *hooks, void *base, size_t size, size_t offset,
                             size_t length, unsigned arena);
typedef bool(extent_split_t)(extent_hooks_t *hooks, void *base, size_t size, size_t size_a,
                             size_t size_b, bool committed, unsigned arena);
typedef bool(extent_merge_t)(extent_hooks_t *hooks, void *base_a, size_t size_a, void *base_b,
                             size_t size_b, bool committed, unsigned arena);

struct extent_hooks_s {
    extent_alloc_t *alloc;
    extent_dalloc_t *dalloc;
    extent_destroy_t *destroy;
    extent_commit_t *commit;
    extent_decommit_t *decommit;
    extent_purge_t *purge_lazy;
    extent_purge_t *purge_forced;
    extent_split_t *split;
    extent_merge_t *merge;
};

#ifdef __cplusplus
}
#endif

#endif
