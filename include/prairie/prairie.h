/* prairie.h - the allocator under its own names, and what it tells about itself.
 *
 * A program needs none of this to run on prairie: malloc and its family, and C++'s operator new and
 * delete, are answered under their usual names. These names are for programs that want prairie
 * beside another allocator, or want to ask it something. All functions may be called from any
 * thread at any time, except from a signal handler that interrupted one of them.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_PRAIRIE_H
#define PRAIRIE_PRAIRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRAIRIE_VERSION "0.1.0"

/* The version of the library that answers, which may be newer than this header. */
const char *prairie_version(void);

/* The C functions of the same names. NULL with ENOMEM when there is no memory; a size of 0 gives a
 * pointer of its own. Blocks of 16 bytes and more are aligned to 16; in a library that was built
 * with PRAIRIE_QUANTUM=8 those of a multiple of 16 bytes. */
void *prairie_malloc(size_t size);
void *prairie_calloc(size_t count, size_t size);
/* realloc(block, 0) frees the block and returns NULL, as the GNU C library does. */
void *prairie_realloc(void *block, size_t size);
void *prairie_reallocarray(void *block, size_t count, size_t size);
void prairie_free(void *block);
/* The size must be the one that was asked for. */
void prairie_free_sized(void *block, size_t size);
void prairie_free_aligned_sized(void *block, size_t align, size_t size);

/* `align` is a power of two, else NULL with EINVAL. */
void *prairie_aligned_alloc(size_t align, size_t size);
/* As aligned_alloc, but rounds `align` up to a power of two. */
void *prairie_memalign(size_t align, size_t size);
/* Returns 0, EINVAL or ENOMEM; *block is written only on success, errno never. */
int prairie_posix_memalign(void **block, size_t align, size_t size);

/* A block aligned to a page; pvalloc also rounds the size up to whole pages, at least one. */
void *prairie_valloc(size_t size);
void *prairie_pvalloc(size_t size);

/* Bytes that may be used in a block, at least what was asked for; 0 for NULL. */
size_t prairie_usable_size(const void *block);

/* The same with flags in one word; <jemalloc/jemalloc.h> declares them under their usual names,
 * with the macros that make the flags, and says what they do. */
void *prairie_mallocx(size_t size, int flags);
void *prairie_rallocx(void *block, size_t size, int flags);
size_t prairie_xallocx(void *block, size_t size, size_t extra, int flags);
size_t prairie_sallocx(const void *block, int flags);
void prairie_dallocx(void *block, int flags);
void prairie_sdallocx(void *block, size_t size, int flags);
size_t prairie_nallocx(size_t size, int flags);

/* For programs that move their blocks to make the heap smaller: 1 when this one lies in a sparse
 * slab and should be replaced by a new block, both of them with MALLOCX_TCACHE_NONE; else 0. */
int prairie_defrag_hint(void *block);

/* Gives free memory back to the kernel now: this thread's and the shared caches, then all free
 * pages. Returns bytes given back. Takes as long as the kernel needs. */
size_t prairie_purge(void);

/* Numbers in bytes unless they say otherwise. Members are only ever added at the end. */
struct prairie_stats {
    size_t struct_bytes;      /* set by the caller: sizeof(struct prairie_stats) */
    size_t allocated;         /* blocks that the program holds */
    size_t active;            /* pages with such blocks in them */
    size_t cached;            /* free blocks that threads and depots hold ready */
    size_t dirty;             /* free pages that the kernel has not got back */
    size_t clean;             /* free pages that it has, or never gave */
    size_t metadata;          /* prairie's own records */
    size_t mapped;            /* opened address space, with metadata */
    size_t large_allocated;   /* of allocated: blocks above 14 KiB */
    uint64_t large_count;     /* number of those */
    uint64_t purged;          /* given back so far */
    uint64_t purges;          /* calls that gave back */
    uint64_t refills;         /* times a thread's magazine was empty */
    uint64_t overflows;       /* times one was full */
    uint64_t slab_fills;      /* times magazines were filled from slabs */
    uint64_t slab_drains;     /* times magazines were drained into slabs */
    uint64_t depot_trades;    /* full magazines exchanged */
    uint64_t run_leases;      /* runs of pages taken */
    uint64_t run_returns;     /* runs of pages given back */
    uint64_t arena_hops;      /* times a thread changed arenas because its own was busy */
    uint64_t lock_acquired;   /* locks taken, all kinds */
    uint64_t lock_contended;  /* of these, found held */
    uint64_t lock_waits;      /* of these, slept for */
    unsigned arenas;          /* made so far */
    unsigned threads;         /* with a cache now */
    size_t reserve_cur;       /* kept in reserve now; see reserve.h */
    size_t reserve_min;       /* to be kept */
    uint64_t reserve_uses;    /* times that the reserve gave pages away */
    uint64_t reserve_refills; /* pieces that it was filled up with */
    uint64_t events_low;      /* conditions that callbacks were told of: LOW */
    uint64_t events_crit;     /* CRIT */
    uint64_t event_calls;     /* calls of callbacks */
};

/* Fills *stats as of now. False: struct_bytes is not a size that this library knows. Other threads
 * go on while it counts, so the numbers may be apart by what they do meanwhile. */
bool prairie_stats_read(struct prairie_stats *stats);
/* Prints them to the standard error, without allocating. */
void prairie_stats_print(void);

/* Hands the numbers of now out as OpenMetrics text, which Prometheus reads, in pieces that end with
 * a NUL, without allocating. `write` NULL: to the standard error. False: no memory. A library that
 * was built with PRAIRIE_OWN_NAMES has it with the control tree only (PRAIRIE_OWN_NAMES=2). */
bool prairie_stats_metrics(void (*write)(void *context, const char *text), void *context);

/* In C++ a function of a struct's name hides it, for which g++ has a warning. */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/* Bytes of all blocks that the calling thread took and gave back since it first asked, by their
 * usable sizes; exact after every call. A realloc that moves the block, or changes its usable size,
 * is both. Asking makes each of the thread's calls a little slower from then on, until it ends; who
 * does not ask pays nothing. The numbers may be read without another call while the thread lives.
 * NULL: no memory. */
struct prairie_thread_totals {
    uint64_t allocated, deallocated;
};
const struct prairie_thread_totals *prairie_thread_totals(void);

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

/* Walks everything prairie knows and aborts with one line when something is broken. Stops all
 * allocation meanwhile; for tests and for suspicion. */
void prairie_check_all(void);

#ifdef __cplusplus
}
#endif

#endif
