/* lane.h - one line of work: its blocks, its random stream, its phase, and the box others send to.
 * SPDX-License-Identifier: MIT
 *
 * A lane outlives the threads that work on it, one at a time: blocks of a thread that has died are
 * checked and freed by its successor, or by whoever they are handed to. Only the thread that works
 * on a lane touches it, except for the box, which has a lock. */
#ifndef PRAIRIE_STRESS_LANE_H
#define PRAIRIE_STRESS_LANE_H

#include "oracle.h"

#include <stdatomic.h>

enum { LANE_BLOCKS_MAX = 20000, BOX_BLOCKS_MAX = 128, HANDOVER_MAX = 64 };

/* Deliberate damage, to prove that the oracle sees it. */
enum sabotage {
    SABOTAGE_NONE,
    SABOTAGE_OVERLAP,  /* an allocation answers with a piece of a live block */
    SABOTAGE_SCRIBBLE, /* a byte of a live block is changed */
    SABOTAGE_DIRTY,    /* calloc answers with a byte that is not zero */
    SABOTAGE_MISALIGN, /* an allocation of 16 bytes or more answers with an odd multiple of 8 */
    SABOTAGE_FORGET,   /* realloc loses a byte */
    SABOTAGE_ERRNO,    /* free changes errno */
    SABOTAGE_REFUSE,   /* an allocation that fits is refused */
    SABOTAGE_LEAK,     /* blocks are lost all the time (drift.c) */
};

/* What all lanes share; constant while they work, except for the counter. */
struct world {
    uint64_t seed;
    size_t live_bytes_max;
    unsigned lane_count;
    bool refusals_allowed; /* NULL with ENOMEM is an answer: some system call is made to fail */
    enum sabotage sabotage;
    uint64_t sabotage_step;    /* of lane 0 */
    _Atomic size_t live_bytes; /* requested bytes of all live blocks; relaxed: only a limit */
    struct lane *lanes;
};
extern struct world world;

enum size_habit { SIZES_MIXED, SIZES_SMALL, SIZES_ONE, SIZES_EDGES, SIZES_MEDIUM, SIZES_LARGE };
enum free_habit { FREE_RANDOM, FREE_OLDEST, FREE_NEWEST };

/* A stretch of steps with one habit, so that caches fill, slabs empty and runs merge. */
struct phase {
    uint64_t steps_left;
    enum size_habit sizes;
    enum free_habit frees;
    size_t one_size_bytes;
    unsigned grow_percent; /* of allocations among allocations and frees */
};

struct box {
    atomic_flag lock; /* spun on; held for one copy */
    unsigned count;   /* under lock */
    struct block blocks[BOX_BLOCKS_MAX];
};

struct lane {
    unsigned index;
    uint64_t random;
    uint64_t step;
    uint64_t operations; /* calls into the allocator under test */
    uint64_t refusals;
    struct phase phase;
    unsigned count;
    struct block *blocks; /* LANE_BLOCKS_MAX, the first count are live */
    struct box box;
};

void lane_open(struct lane *lane, unsigned index);
/* One random step: one or a few calls into the allocator, each checked. */
void lane_step(struct lane *lane);
/* Checks and frees all blocks of the lane and of its box. */
void lane_close(struct lane *lane);

#endif
