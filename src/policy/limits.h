/* limits.h - how much memory there may be, and how near that is.
 *
 * There are three limits and a warning. The hard limit is a wall for what is in use, dirty or a
 * record; space/commit.h has the account. The soft limit and the limit of the process's control
 * group are lines: beyond them free pages go back to the kernel at once, and the doors call those
 * who want to know. That processes wait for memory (pressure stalls) is the warning.
 *
 * Nobody looks here in ordinary life. limits_look_from says from which size of the region on a look
 * is worth it; arenas/decay folds that into a comparison that is made anyway.
 *
 * What the group has left is read from files, and again when we may have taken a quarter of it
 * since: clean pages that were leased, vast blocks, and pages of slabs that are used again. How
 * many cores' time it leaves is read once.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_POLICY_LIMITS_H
#define PRAIRIE_POLICY_LIMITS_H

#include "../page_heap/page_heap.h"
#include "../space/commit.h"

struct limits {
    struct lock lock;
    size_t soft_bytes;       /* atomic; SIZE_MAX: none */
    bool follows_group;      /* atomic */
    bool bars_clean;         /* atomic: keep the process out of the last of its group's memory */
    bool looks_for_stalls;   /* atomic */
    bool group_known;        /* under lock */
    unsigned cores;          /* atomic: limits_cores; 0: nobody asked */
    struct os_group group;   /* under lock: as it was read last */
    uint64_t group_clean;    /* under lock: page_heaps_clean_leased_now then */
    size_t group_vast_bytes; /* under lock: commit.vast_bytes then */
    size_t retaken_pages; /* atomic: pages of slabs that went to the kernel, and are used again */
    size_t group_retaken; /* under lock: retaken_pages then */
    size_t group_open_bytes; /* under lock: space.open_bytes then */
    uint64_t group_ms;       /* under lock: when it was; one that is crowded is read again soon */
    uint64_t stalled_us;     /* under lock: os_stalled_us when it was read last */
    uint64_t stalled_ms;     /* under lock: when; 0: never */
    bool stall_due;          /* atomic: stalls were seen and not told */
    /* Under lock: what was used when listeners were last told that it is beyond its line; 0: not
     * told since it was last below. */
    size_t soft_told_bytes, crowded_told_bytes;
};

extern PRIVATE struct limits limits;

/* In pages that somebody holds, and vast blocks. Takes the lock of each page heap, one after the
 * other. */
size_t limits_held_bytes(void);

/* Below, `bytes` of 0 or SIZE_MAX mean that there is no limit. */
void limits_set_soft(size_t bytes);
void limits_set_hard(size_t bytes);
/* SIZE_MAX: none. */
INLINE size_t limits_soft(void) { return RELAXED_LOAD(limits.soft_bytes); }
INLINE size_t limits_hard(void) { return RELAXED_LOAD(commit.limit_bytes); }

/* What the group has left, as far as is known; SIZE_MAX when it has no limit or nobody has looked.
 */
size_t limits_room_bytes(void);
/* Looks, if nobody has. Called without a lock. */
void limits_know_group(void);
/* Is less of the group's room left than that free pages may stay? As of a moment ago. */
bool limits_group_is_crowded(void);
/* Whether the group counts; one that was read before is forgotten with all that followed from
 * it. */
void limits_follow_group(bool follows);
/* Whether the process is kept out of the last of its group's memory; looks, if nobody has. */
void limits_set_bars_clean(bool bars);
/* Whether stalls are looked for; what was waited for before is none. */
void limits_set_looks_for_stalls(bool looks);
/* How many cores' time the group leaves to the process, as of the first time that somebody asked;
 * UINT32_MAX: all, or it cannot be told. */
unsigned limits_cores(void);
/* A slab's pages that went to the kernel may be used again. True: it is time for a look. */
bool limits_note_retaken(size_t pages);

enum limits_state {
    LIMITS_CALM,   /* nothing that was not told */
    LIMITS_NEAR,   /* beyond a line: it is time to tell those who can free, until it is clear */
    LIMITS_STALLED /* processes wait for memory: it is time to tell all of them */
};
/* Gives back free pages beyond a line, or while processes wait for memory; then as
 * limits_bar_clean_for. Called without a lock, and waits for who looks already only where all that
 * is left may be taken meanwhile. */
enum limits_state limits_look(size_t coming);
/* So many bytes are about to be taken: where there is a reserve they get no clean pages if they
 * would take the last of the group's room. Until somebody looks again. Called without a lock. */
void limits_bar_clean_for(size_t coming);
/* Is everything below its line again, after reading anew? Called without a lock. */
bool limits_are_clear(void);
/* The size of the region from which on limits_look should be called, when `coming` bytes are about
 * to be taken; 0: always; LOOK_AT_LEASES: before each lease for a large block, and after clean
 * pages were leased for slabs, however large the region is; SIZE_MAX: never. */
enum { LOOK_AT_LEASES = 1 };
size_t limits_look_from(size_t coming);
/* For the background thread, every STALL_LOOK_MS while somebody wants to be told: looks for stalls.
 * True: there is something to tell. */
enum { STALL_LOOK_MS = 500 };
bool limits_look_for_stalls(void);
INLINE bool limits_stalls_are_told(void) { return RELAXED_LOAD(limits.looks_for_stalls); }

#endif
