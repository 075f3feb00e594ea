/* types.c - every public type and number as something that can be seen in an object (dev/abi). */
/* SPDX-License-Identifier: MIT */
#include <jemalloc/jemalloc.h>
#include <prairie/prairie.h>
#include <prairie/reserve.h>

/* No function names these: they pass through mallctl. */
extent_hooks_t *extent_hooks;

struct prairie_stats *stats;
struct prairie_thread_totals *totals;
reserve_cb_t *reserve_callback;

/* Programs contain the values of these macros. */
enum numbers {
    LG_ALIGN_12 = MALLOCX_LG_ALIGN(12),
    ALIGN_64 = MALLOCX_ALIGN(64),
    ZERO = MALLOCX_ZERO,
    TCACHE_1 = MALLOCX_TCACHE(1),
    TCACHE_NONE = MALLOCX_TCACHE_NONE,
    ARENA_1 = MALLOCX_ARENA(1),
    ARENAS_ALL = MALLCTL_ARENAS_ALL,
    ARENAS_DESTROYED = MALLCTL_ARENAS_DESTROYED
} numbers;
