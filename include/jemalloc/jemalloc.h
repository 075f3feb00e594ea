/* jemalloc.h - the interface that jemalloc's users know, answered by prairie.
 *
 * A program that was written for jemalloc 5.3 compiles with this header and runs with prairie
 * unchanged: names, encodings of flags and meanings are the same. What differs is in
 * docs/switching.md.
 *
 * Flags are an int: bits 0 to 5 hold the base-2 logarithm of the alignment, bit 6 asks for zeros,
 * bits 8 to 19 name a cache and bits 20 to 31 an arena; 0 leaves the choice to prairie. All
 * functions may be called from any thread, except from a signal handler that interrupted one of
 * them.
 *
 * What a program may define before it includes this:
 *
 * JEMALLOC_MANGLE_PREFIX  the prefix of all names, for a library that was built with one. The
 *                         header that is built with such a library has it: #define
 *                         JEMALLOC_MANGLE_PREFIX je_
 * JEMALLOC_MANGLE         malloc, free and all other names mean those with the prefix from here on
 * JEMALLOC_NO_DEMANGLE    the names with je_ are understood after the header, whatever the prefix
 *                         is
 * JEMALLOC_NO_RENAME      the names are je_malloc and so on, whatever the prefix is
 * SPDX-License-Identifier: MIT
 */
#ifndef JEMALLOC_H_
#define JEMALLOC_H_

#include <limits.h>
#if defined(__linux__) || defined(_WIN32)
#include <malloc.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>

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
#define MALLOCX_ALIGN(a) ((int)(__builtin_ffsll((int64_t)(a)) - 1))
/* The block reads as zero; where a block grows, what is new of it does. */
#define MALLOCX_ZERO ((int)0x40)
/* A cache made by "tcache.create", or none: the block comes from its arena at once, and goes
 * there. */
#define MALLOCX_TCACHE(tc) ((int)(((unsigned)(tc) + 2u) << 8))
#define MALLOCX_TCACHE_NONE MALLOCX_TCACHE(-1)
/* An arena, as a rule one made by "arenas.create". */
#define MALLOCX_ARENA(a) ((int)(((unsigned)(a) + 1u) << 20))

/* In the place of an arena's number in control names: all of them, and those that were
 * destroyed. */
#define MALLCTL_ARENAS_ALL 4096
#define MALLCTL_ARENAS_DESTROYED 4097

/* ---- attributes, for declarations of a program's own ---- */

#if UINTPTR_MAX > 0xffffffff
#define LG_SIZEOF_PTR 3
#else
#define LG_SIZEOF_PTR 2
#endif
#define JEMALLOC_HAVE_ATTR
#define JEMALLOC_HAVE_ATTR_ALLOC_SIZE
#define JEMALLOC_HAVE_ATTR_FORMAT_ARG
#define JEMALLOC_HAVE_ATTR_FORMAT_PRINTF
#define JEMALLOC_HAVE_ATTR_FALLTHROUGH
#define JEMALLOC_HAVE_ATTR_COLD
#define JEMALLOC_HAVE_ATTR_DEPRECATED
#define JEMALLOC_OVERRIDE_MEMALIGN
#define JEMALLOC_OVERRIDE_VALLOC
#define JEMALLOC_OVERRIDE_PVALLOC
#define JEMALLOC_USABLE_SIZE_CONST
#define JEMALLOC_USE_CXX_THROW

#define JEMALLOC_ATTR(attribute) __attribute__((attribute))
#define JEMALLOC_ALIGNED(bytes) JEMALLOC_ATTR(aligned(bytes))
#define JEMALLOC_ALLOC_SIZE(size) JEMALLOC_ATTR(alloc_size(size))
#define JEMALLOC_ALLOC_SIZE2(count, size) JEMALLOC_ATTR(alloc_size(count, size))
#ifndef JEMALLOC_EXPORT
#define JEMALLOC_EXPORT JEMALLOC_ATTR(visibility("default"))
#endif
#define JEMALLOC_FORMAT_ARG(index) JEMALLOC_ATTR(__format_arg__(index))
#ifdef __clang__
#define JEMALLOC_FORMAT_PRINTF(format_index, first) \
    JEMALLOC_ATTR(format(printf, format_index, first))
#else
#define JEMALLOC_HAVE_ATTR_FORMAT_GNU_PRINTF
#define JEMALLOC_FORMAT_PRINTF(format_index, first) \
    JEMALLOC_ATTR(format(gnu_printf, format_index, first))
#endif
#define JEMALLOC_FALLTHROUGH JEMALLOC_ATTR(fallthrough)
#define JEMALLOC_NOINLINE JEMALLOC_ATTR(noinline)
#define JEMALLOC_NOTHROW JEMALLOC_ATTR(nothrow)
#define JEMALLOC_SYS_NOTHROW JEMALLOC_NOTHROW
#define JEMALLOC_SECTION(name) JEMALLOC_ATTR(section(name))
#define JEMALLOC_RESTRICT_RETURN
#define JEMALLOC_ALLOCATOR
#define JEMALLOC_COLD JEMALLOC_ATTR(__cold__)
#define JEMALLOC_WARN_ON_USAGE(message) JEMALLOC_ATTR(deprecated(message))
#if defined(__cplusplus) && __cplusplus >= 201103L
#define JEMALLOC_CXX_THROW noexcept(true)
#elif defined(__cplusplus)
#define JEMALLOC_CXX_THROW throw()
#else
#define JEMALLOC_CXX_THROW
#endif

/* ---- names ---- */

/* A name is handed over in two parts that nobody defines, for the whole may be a macro of
 * JEMALLOC_MANGLE. */
#ifdef JEMALLOC_MANGLE_PREFIX
#define JEMALLOC_JOIN_AGAIN(prefix, first, rest) prefix##first##rest
#define JEMALLOC_JOIN(prefix, first, rest) JEMALLOC_JOIN_AGAIN(prefix, first, rest)
#define JEMALLOC_RENAME(first, rest) JEMALLOC_JOIN(JEMALLOC_MANGLE_PREFIX, first, rest)
#else
#define JEMALLOC_RENAME(first, rest) first##rest
#endif

/* Here, and with JEMALLOC_NO_DEMANGLE after the end, all names begin with je_. */
#ifndef JEMALLOC_NO_RENAME
#define je_malloc JEMALLOC_RENAME(ma, lloc)
#define je_calloc JEMALLOC_RENAME(ca, lloc)
#define je_realloc JEMALLOC_RENAME(re, alloc)
#define je_free JEMALLOC_RENAME(fr, ee)
#define je_aligned_alloc JEMALLOC_RENAME(al, igned_alloc)
#define je_posix_memalign JEMALLOC_RENAME(po, six_memalign)
#define je_memalign JEMALLOC_RENAME(me, malign)
#define je_valloc JEMALLOC_RENAME(va, lloc)
#define je_pvalloc JEMALLOC_RENAME(pv, alloc)
#define je_malloc_usable_size JEMALLOC_RENAME(ma, lloc_usable_size)
#define je_free_sized JEMALLOC_RENAME(fr, ee_sized)
#define je_free_aligned_sized JEMALLOC_RENAME(fr, ee_aligned_sized)
#define je_mallocx JEMALLOC_RENAME(ma, llocx)
#define je_rallocx JEMALLOC_RENAME(ra, llocx)
#define je_xallocx JEMALLOC_RENAME(xa, llocx)
#define je_sallocx JEMALLOC_RENAME(sa, llocx)
#define je_dallocx JEMALLOC_RENAME(da, llocx)
#define je_sdallocx JEMALLOC_RENAME(sd, allocx)
#define je_nallocx JEMALLOC_RENAME(na, llocx)
#define je_mallctl JEMALLOC_RENAME(ma, llctl)
#define je_mallctlnametomib JEMALLOC_RENAME(ma, llctlnametomib)
#define je_mallctlbymib JEMALLOC_RENAME(ma, llctlbymib)
#define je_malloc_stats_print JEMALLOC_RENAME(ma, lloc_stats_print)
#define je_malloc_message JEMALLOC_RENAME(ma, lloc_message)
#define je_malloc_conf JEMALLOC_RENAME(ma, lloc_conf)
#define je_malloc_conf_2_conf_harder JEMALLOC_RENAME(ma, lloc_conf_2_conf_harder)
#endif

/* The standard's functions keep the declarations of the C library where they have its names. In
 * strict modes of C, such as -std=c11, which hide some of them there, they are declared here. */
#if defined(JEMALLOC_MANGLE_PREFIX) || defined(JEMALLOC_NO_RENAME) \
    || (defined(__STRICT_ANSI__) && !defined(__cplusplus))
JEMALLOC_EXPORT void *je_malloc(size_t size) JEMALLOC_CXX_THROW JEMALLOC_ALLOC_SIZE(1);
JEMALLOC_EXPORT void *je_calloc(size_t count, size_t size) JEMALLOC_CXX_THROW
    JEMALLOC_ALLOC_SIZE2(1, 2);
JEMALLOC_EXPORT void *je_realloc(void *block, size_t size) JEMALLOC_CXX_THROW
    JEMALLOC_ALLOC_SIZE(2);
JEMALLOC_EXPORT void je_free(void *block) JEMALLOC_CXX_THROW;
JEMALLOC_EXPORT void *je_aligned_alloc(size_t align, size_t size) JEMALLOC_CXX_THROW
    JEMALLOC_ALLOC_SIZE(2);
JEMALLOC_EXPORT int je_posix_memalign(void **block, size_t align, size_t size) JEMALLOC_CXX_THROW;
JEMALLOC_EXPORT void *je_memalign(size_t align, size_t size) JEMALLOC_CXX_THROW;
JEMALLOC_EXPORT void *je_valloc(size_t size) JEMALLOC_CXX_THROW;
JEMALLOC_EXPORT void *je_pvalloc(size_t size) JEMALLOC_CXX_THROW;
JEMALLOC_EXPORT size_t je_malloc_usable_size(void *block) JEMALLOC_CXX_THROW;
#endif

/* Frees a block whose size the caller knows: the size asked for, or any up to the usable one. */
JEMALLOC_EXPORT void je_free_sized(void *block, size_t size) JEMALLOC_CXX_THROW;
JEMALLOC_EXPORT void je_free_aligned_sized(void *block, size_t align,
                                           size_t size) JEMALLOC_CXX_THROW;

/* ---- functions with flags ---- */

/* A block of at least `size` bytes. NULL with ENOMEM: no memory, or no such arena or cache. */
JEMALLOC_EXPORT JEMALLOC_NOTHROW void *je_mallocx(size_t size, int flags) JEMALLOC_ALLOC_SIZE(1);
/* The block with another size, moved if need be. NULL: no memory, the block is as it was. */
JEMALLOC_EXPORT JEMALLOC_NOTHROW void *je_rallocx(void *block, size_t size, int flags)
    JEMALLOC_ALLOC_SIZE(2);
/* Resizes in place to size + extra bytes, or at least `size`; the block never moves. Returns its
 * usable size, which is less than `size` when it could not grow. */
JEMALLOC_EXPORT JEMALLOC_NOTHROW size_t je_xallocx(void *block, size_t size, size_t extra,
                                                   int flags);
/* The usable size of a block. */
JEMALLOC_EXPORT JEMALLOC_NOTHROW size_t je_sallocx(const void *block, int flags);
/* Frees a block; NULL is nothing. */
JEMALLOC_EXPORT JEMALLOC_NOTHROW void je_dallocx(void *block, int flags);
/* As dallocx, faster: `size` is what was asked for, or any up to the usable size; the alignment in
 * `flags` is the one that was asked for. */
JEMALLOC_EXPORT JEMALLOC_NOTHROW void je_sdallocx(void *block, size_t size, int flags);
/* The usable size that mallocx would give; 0 for sizes that no block can have. */
JEMALLOC_EXPORT JEMALLOC_NOTHROW size_t je_nallocx(size_t size, int flags);

#ifdef JEMALLOC_MANGLE_PREFIX
/* 1: the heap would be smaller if this block were replaced by a new one, both with
 * MALLOCX_TCACHE_NONE. */
#define JEMALLOC_FRAG_HINT
JEMALLOC_EXPORT JEMALLOC_NOTHROW int JEMALLOC_RENAME(get_, defrag_hint)(void *block);
#endif

/* ---- control ---- */

/* Reads and writes the value of a name; 0, or EINVAL, ENOENT, EPERM, EAGAIN, EFAULT. */
JEMALLOC_EXPORT JEMALLOC_NOTHROW int je_mallctl(const char *name, void *old_value,
                                                size_t *old_bytes, void *new_value,
                                                size_t new_bytes);
/* A name as numbers, which spare the look-up when it is used often. */
JEMALLOC_EXPORT JEMALLOC_NOTHROW int je_mallctlnametomib(const char *name, size_t *mib,
                                                         size_t *mib_length);
JEMALLOC_EXPORT JEMALLOC_NOTHROW int je_mallctlbymib(const size_t *mib, size_t mib_length,
                                                     void *old_value, size_t *old_bytes,
                                                     void *new_value, size_t new_bytes);
/* Writes the statistics as text, or as JSON with J in `options`; to the standard error when `write`
 * is NULL. */
JEMALLOC_EXPORT JEMALLOC_NOTHROW void je_malloc_stats_print(void (*write)(void *context,
                                                                          const char *text),
                                                            void *context, const char *options);
/* Where malloc_stats_print writes without a function of its own; NULL: the standard error. Other
 * messages always go to the standard error. */
JEMALLOC_EXPORT extern void (*je_malloc_message)(void *context, const char *text);
/* Options that the program defines for itself, "name:value,name:value". */
JEMALLOC_EXPORT extern const char *je_malloc_conf __attribute__((weak));
JEMALLOC_EXPORT extern const char *je_malloc_conf_2_conf_harder __attribute__((weak));

/* ---- hooks for the memory of an arena ---- */

typedef struct extent_hooks_s extent_hooks_t;

/* Memory at a multiple of `align`; at new_addr unless that is NULL. *zero: it must, and then does,
 * read as zero; *commit: likewise usable. NULL: none. */
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

/* The standard's names mean this allocator from here on; without a prefix they do anyway. */
#ifdef JEMALLOC_MANGLE
#ifndef JEMALLOC_NO_DEMANGLE
#define JEMALLOC_NO_DEMANGLE
#endif
#endif
#if defined(JEMALLOC_MANGLE) && (defined(JEMALLOC_MANGLE_PREFIX) || defined(JEMALLOC_NO_RENAME))
#define malloc je_malloc
#define calloc je_calloc
#define realloc je_realloc
#define free je_free
#define aligned_alloc je_aligned_alloc
#define posix_memalign je_posix_memalign
#define memalign je_memalign
#define valloc je_valloc
#define pvalloc je_pvalloc
#define malloc_usable_size je_malloc_usable_size
#define free_sized je_free_sized
#define free_aligned_sized je_free_aligned_sized
#define mallocx je_mallocx
#define rallocx je_rallocx
#define xallocx je_xallocx
#define sallocx je_sallocx
#define dallocx je_dallocx
#define sdallocx je_sdallocx
#define nallocx je_nallocx
#define mallctl je_mallctl
#define mallctlnametomib je_mallctlnametomib
#define mallctlbymib je_mallctlbymib
#define malloc_stats_print je_malloc_stats_print
#define malloc_message je_malloc_message
#define malloc_conf je_malloc_conf
#define malloc_conf_2_conf_harder je_malloc_conf_2_conf_harder
#endif

#ifndef JEMALLOC_NO_DEMANGLE
#undef je_malloc
#undef je_calloc
#undef je_realloc
#undef je_free
#undef je_aligned_alloc
#undef je_posix_memalign
#undef je_memalign
#undef je_valloc
#undef je_pvalloc
#undef je_malloc_usable_size
#undef je_free_sized
#undef je_free_aligned_sized
#undef je_mallocx
#undef je_rallocx
#undef je_xallocx
#undef je_sallocx
#undef je_dallocx
#undef je_sdallocx
#undef je_nallocx
#undef je_mallctl
#undef je_mallctlnametomib
#undef je_mallctlbymib
#undef je_malloc_stats_print
#undef je_malloc_message
#undef je_malloc_conf
#undef je_malloc_conf_2_conf_harder
#endif

#endif
