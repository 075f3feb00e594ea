/* reserve.h - a reserve of real memory, functions that never return NULL, and limits.
 *
 * Source-compatible with the memory reserve that a jemalloc of 2008 had: the same names, types and
 * return values. In the library each function has the prefix prairie_, so that a program with an
 * xmalloc of its own clashes with nothing; this header leads the old names there.
 *
 * The reserve is memory that prairie keeps ready, committed and touched. When the kernel refuses
 * memory, or a limit does, allocations are served from it, and callbacks are told, so that the
 * program can let go of what it can spare. docs/reserve.md says what is guaranteed, how large to
 * make it, and how to use it.
 *
 * All functions may be called from any thread at any time, except from a signal handler that
 * interrupted one of prairie's. Sizes are in bytes.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_RESERVE_H
#define PRAIRIE_RESERVE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The name under which the library has a function, with what the compiler puts before names. */
#define PRAIRIE_RESERVE_TEXT(words) #words
#define PRAIRIE_RESERVE_PREFIX(words) PRAIRIE_RESERVE_TEXT(words)
#define PRAIRIE_RESERVE_NAME(name) \
    __asm__(PRAIRIE_RESERVE_PREFIX(__USER_LABEL_PREFIX__) "prairie_" #name)

/* As malloc, calloc, realloc and memalign, but they never return NULL. When there is no memory,
 * each callback in turn is told RESERVE_CND_CRIT and the request is tried again; when all have been
 * told, every callback is told RESERVE_CND_FAIL, and the program ends with a line on the standard
 * error and SIGABRT. A size of 0 counts as 1. xcalloc ends the program at once when the product
 * overflows. xmemalign rounds the alignment up to a power of two, and does the same when there is
 * none. Under the option xmalloc:true the first refusal ends the program, and nobody is told. */
void *xmalloc(size_t size) PRAIRIE_RESERVE_NAME(xmalloc);
void *xcalloc(size_t count, size_t size) PRAIRIE_RESERVE_NAME(xcalloc);
void *xrealloc(void *block, size_t size) PRAIRIE_RESERVE_NAME(xrealloc);
void *xmemalign(size_t align, size_t size) PRAIRIE_RESERVE_NAME(xmemalign);

typedef enum {
    RESERVE_CND_LOW,  /* the reserve is below its minimum, a limit is near, or processes wait for
                         memory */
    RESERVE_CND_CRIT, /* a request could not be served, and is tried again after this callback */
    RESERVE_CND_FAIL  /* no callback could help: the program ends when all have been told */
} reserve_cnd_t;

/* Called in the thread whose request met the condition, in the middle of an allocation, with no
 * lock of prairie's held. `size` is that of the request. It may allocate, free, register and
 * unregister, itself as well. It must return: no exception, no longjmp. Threads may be in it at the
 * same time. While a thread is in a callback, its own requests start no LOW and no CRIT. The thread
 * cannot be cancelled meanwhile. */
typedef void reserve_cb_t(void *ctx, reserve_cnd_t cnd, size_t size);

/* Adds a callback. The same pair may be added several times, and is then told as often. The first
 * one of the program makes a reserve of 2 MiB, when nobody chose another size. Returns false when
 * it worked, true when there is no memory, or `cb` is NULL. */
bool reserve_cb_register(reserve_cb_t *cb, void *ctx) PRAIRIE_RESERVE_NAME(reserve_cb_register);
/* Takes one registration of the pair away, the youngest. When it returns, no other thread is in
 * that callback for this registration any more, and none will be; called from within any callback,
 * it does not wait for others. So that it can wait, hold no lock that the callback takes. Returns
 * false when it worked, true when there is no such pair. */
bool reserve_cb_unregister(reserve_cb_t *cb, void *ctx) PRAIRIE_RESERVE_NAME(reserve_cb_unregister);

/* What the reserve holds now, what it is to hold, and what it holds at most: the last two are the
 * same. */
size_t reserve_cur_get(void) PRAIRIE_RESERVE_NAME(reserve_cur_get);
size_t reserve_min_get(void) PRAIRIE_RESERVE_NAME(reserve_min_get);
size_t reserve_max_get(void) PRAIRIE_RESERVE_NAME(reserve_max_get);
/* Sets what the reserve is to hold, rounded up to whole pages, and fills or empties it; 0 means
 * none. Returns false when it is full then, true when it could not be filled: the new minimum
 * stays, and callbacks are told RESERVE_CND_LOW. */
bool reserve_min_set(size_t min) PRAIRIE_RESERVE_NAME(reserve_min_set);

/* The soft limit: when blocks, what is cached for them and prairie's records take more, free pages
 * go back to the kernel at once and callbacks are told RESERVE_CND_LOW, again for each 32nd of the
 * limit that it grows. The hard limit: what is in use, cached, or free and not given back to the
 * kernel yet, and prairie's records, grow no further than this; requests that would need more are
 * refused as if the kernel had refused them. A limit below what is in use refuses all growth until
 * so much was freed. 0 means none. */
size_t limit_soft_get(void) PRAIRIE_RESERVE_NAME(limit_soft_get);
void limit_soft_set(size_t bytes) PRAIRIE_RESERVE_NAME(limit_soft_set);
size_t limit_hard_get(void) PRAIRIE_RESERVE_NAME(limit_hard_get);
void limit_hard_set(size_t bytes) PRAIRIE_RESERVE_NAME(limit_hard_set);

#ifdef __cplusplus
}
#endif

#endif
