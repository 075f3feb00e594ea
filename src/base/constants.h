/* constants.h - the constants that shape prairie, and their tiny twins.
 *
 * Owns no state. With PRAIRIE_TINY every cache, step and region is small, so that a test of seconds
 * walks the paths that a server walks once a day.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_BASE_CONSTANTS_H
#define PRAIRIE_BASE_CONSTANTS_H

#include "units.h"

/* Where addresses have 64 bits, and where they have 32 and all that is reserved must be little. */
#define BY_WORD(with_64, with_32) ((size_t)(sizeof(size_t) > 4 ? (with_64) : (with_32)))

#define SMALL_BYTES_MAX ((size_t)14336) /* the largest block cut from a slab */
#define TABLE_BYTES_MAX ((size_t)1024)  /* sizes whose class one table load tells */
#define ARENA_COUNT_MAX 256u            /* automatic ones */
#define ARENA_INDEX_END \
    4095u /* manual ones have the numbers between; what MALLOCX_ARENA can name */
#define LINE_BYTES ((size_t)64) /* of a cache */
#define STAGGER_PAGES 64u       /* staggered blocks in as many pages begin with the same line */
#define REGION_COUNT_MAX 64u
#define REGION_CRUMB_SHARE 16u                 /* less than a 16th of the first region is a crumb */
#define RUN_PAGES_MAX (((size_t)15 << 26) - 1) /* what bins can hold */
#define META_BYTES_MAX BY_WORD(TiB / 4, SIZE_MAX) /* what numbers of records can name */
#define FOREIGN_COUNT_MAX ((size_t)1 << 20)       /* foreign extents, at once */
#define HUGE_PAGE_BYTES (2 * MiB)
#define PURGE_PEAK_SHARE 32u /* a 32nd of what was in use at the peak may be dirty, */
#define PURGE_USED_SHARE 8u  /* and an 8th of what is in use */
#define HUGE_SHORT_SHARE 8u  /* an 8th of what is in use may go back in less than huge pages */

#define HUGE_SLOW_US 2000u  /* the first touch of a huge page may take as long */
#define HUGE_FOUND_US 50u   /* what takes less was there: to clear 2 MiB takes longer */
#define HUGE_TRY_MIN 4u     /* the first touch of each 4th huge page is timed, */
#define HUGE_TRY_SHARE 16u  /* or as many as are a 16th of what is in use */
#define HUGE_BACKOFF_MAX 6u /* the wait for the next wish is doubled so often at most */

/* How many page heaps arenas share at most, a power of two (docs/decisions/0043). */
#ifndef PRAIRIE_PAGE_HEAPS
#define PRAIRIE_PAGE_HEAPS 64
#endif
#define PAGE_HEAPS ((unsigned)PRAIRIE_PAGE_HEAPS)

#if defined(PRAIRIE_TINY)
#define MAGAZINE_BLOCKS_MAX 3u
#define MAGAZINE_BYTES_MAX (1 * KiB)
#define WIDE_BLOCKS_MAX 16u
#define CACHE_WIDE_BYTES_MAX (64 * KiB)
#define CACHES_WIDE_BYTES_MAX (128 * KiB)
#define CACHES_WIDE_SHARE 64u
#define DEPOT_BYTES_MAX_TO_128 (4 * KiB)
#define DEPOT_BYTES_MAX_BEYOND_128 (2 * KiB)
#define SWING_BYTES_MAX (4 * KiB)
#define DEPOT_MAGAZINES_MAX 2u
#define COOLING_BYTES_MAX (4 * KiB)
#define STRETCH_BYTES 256u
#define STRETCH_BLOCKS_MIN 2u
#define SLAB_BYTES_MIN (4 * KiB)
#define SLAB_BLOCKS_MIN 2u
#define SLAB_BLOCKS_WANTED ((size_t)2)
#define SLAB_BYTES_WANTED_MAX (4 * KiB)
#define REGION_BYTES_FIRST (8 * MiB)
#define REGION_BYTES_LAST (8 * MiB)
#define SPACE_BYTES_PER_REGION ((size_t)8192)
#define VAST_BYTES_MIN (64 * MiB)
#define VAST_REFUGE_BYTES (1 * MiB)
#define OPEN_BYTES_MIN (64 * KiB)
#define META_OPEN_BYTES (16 * KiB)
#define PURGE_KEEP_BYTES (64 * KiB)
#define PURGE_UNATTENDED_BYTES (128 * KiB)
#define FALL_BYTES_MIN (1 * MiB)
#define REMAP_BYTES_MIN (64 * KiB)
#define REMAP_COUNT_MIN ((size_t)1000)
#define REMAP_SHARE_BYTES (64 * MiB)
#define GROWN_VAST_MAX ((size_t)16)
#define GROWN_VAST_SHARE ((size_t)8)
#define CLEAR_BYTES_MAX (128 * KiB)
#define RECLAIM_BYTES_MIN (128 * KiB)
#define HUGE_FROM_BYTES (1 * MiB)
#define HUGE_REGION_BYTES_MIN (8 * MiB)
#define GROUP_OPEN_BYTES_MIN (1 * MiB)
#define RESERVE_BYTES_DEFAULT (64 * KiB)
#define LARGE_CACHE_PAGES_MAX 8u
#define LARGE_CACHE_BYTES_MAX (64 * KiB)
#define AUDIT_PERIOD 64u
#else
#define MAGAZINE_BLOCKS_MAX 127u        /* with its empty bottom slot exactly 1 KiB of pointers */
#define MAGAZINE_BYTES_MAX (32 * KiB)   /* of blocks in one magazine */
#define WIDE_BLOCKS_MAX 127u            /* in a wide magazine */
#define CACHE_WIDE_BYTES_MAX (1 * MiB)  /* of blocks beyond full-size magazines, of one thread, */
#define CACHES_WIDE_BYTES_MAX (4 * MiB) /* and of all together, */
#define CACHES_WIDE_SHARE 16u           /* and a 16th of what is open */
#define DEPOT_BYTES_MAX_TO_128 \
    (512 * KiB) /* of blocks in one class of one depot, up to 128 bytes a block */
#define DEPOT_BYTES_MAX_BEYOND_128 (32 * KiB) /* of larger blocks */
#define SWING_BYTES_MAX (2 * MiB) /* of blocks that come back together, if depots shall keep them */
#define DEPOT_MAGAZINES_MAX 128u
#define COOLING_BYTES_MAX (1 * MiB) /* of blocks in an arena: as much as a core's own caches hold */
#define STRETCH_BYTES \
    (32 * KiB) /* of one class that a thread may take before it asks if a sample is due, */
#define STRETCH_BLOCKS_MIN 8u /* and at least so many */
#define SLAB_BYTES_MIN (16 * KiB)
#define SLAB_BLOCKS_MIN 4u
#define SLAB_BLOCKS_WANTED ((size_t)64) /* up to */
#define SLAB_BYTES_WANTED_MAX (32 * KiB)
#define REGION_BYTES_FIRST BY_WORD(TiB, 64 * MiB) /* the largest reservation to try */
#define REGION_BYTES_LAST (16 * MiB)              /* the smallest */
#define SPACE_BYTES_PER_REGION BY_WORD(16, 1024)  /* room in the page map, in first regions */
#define VAST_BYTES_MIN \
    BY_WORD(64 * GiB, 64 * MiB) /* blocks from here on are mappings of their own, */
#define VAST_REFUGE_BYTES \
    BY_WORD(1 * GiB, 1 * MiB) /* and when the page map is full, from here on */
#define OPEN_BYTES_MIN (1 * MiB)
#define META_OPEN_BYTES (64 * KiB)
#define PURGE_KEEP_BYTES (1 * MiB)
#define PURGE_UNATTENDED_BYTES \
    (2 * MiB)                        /* of a larger budget, while nobody looks in the background */
#define FALL_BYTES_MIN (16 * MiB)    /* of slabs' peak, from which on a fall is waited for */
#define REMAP_BYTES_MIN (4 * MiB)    /* realloc moves pages from here on, */
#define REMAP_COUNT_MIN ((size_t)4)  /* so many times, */
#define REMAP_SHARE_BYTES (64 * MiB) /* and once more for each of these in the heap; */
#define GROWN_VAST_MAX ((size_t)64)  /* then it makes them vast, as long as no more of those live */
#define GROWN_VAST_SHARE ((size_t)8) /* and they grow by at most such a share */
#define CLEAR_BYTES_MAX (32 * MiB) /* calloc clears stale pages up to here, beyond it purges them */
#define RECLAIM_BYTES_MIN (1 * MiB)     /* free memory in slabs worth emptying caches for */
#define HUGE_FROM_BYTES (8 * MiB)       /* open, from where on huge pages are wanted */
#define HUGE_REGION_BYTES_MIN (1 * GiB) /* the least region for which they are */
#define GROUP_OPEN_BYTES_MIN (16 * MiB) /* smaller heaps do not ask for their group's limit */
#define RESERVE_BYTES_DEFAULT (2 * MiB) /* for who listens and says nothing about the size */
#define LARGE_CACHE_PAGES_MAX 32u /* a thread keeps runs of large blocks up to so many pages, */
#define LARGE_CACHE_BYTES_MAX (256 * KiB) /* and so many bytes of all lengths */
#define AUDIT_PERIOD 4096u
#endif

#endif
