/* player.h - one thread of the sequence test: the blocks it holds, and what it knows of the
 * allocator.
 * SPDX-License-Identifier: MIT
 *
 * A player makes one random step after the other. Everything that a step does depends on the seed,
 * the player and the number of the step, and on what the slots hold: steps can be left out, and the
 * others stay what they were.
 *
 *   player -> slot[]      a live block each, or none: claimed and stamped (../stress/oracle.h)
 *             arena[]     manual arenas it made, and whose memory they have (hosts.h)
 *             tcache[]    caches it made
 *             line[]      what the last steps did, in words
 */
#ifndef PRAIRIE_SEQUENCE_PLAYER_H
#define PRAIRIE_SEQUENCE_PLAYER_H

#include "../stress/oracle.h"

#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
    PLAYERS_MAX = 4,
    SLOTS = 384,
    ARENAS_OWN = 5,
    TCACHES_OWN = 3,
    LINES = 24,
    LINE_CHARS = 200,
    BOX_BLOCKS = 32,
    LIVE_BYTES_MAX = 48 * 1024 * 1024,
};

/* In the place of an arena's number. */
enum { ARENA_AUTOMATIC = -1, ARENA_ANY = -2 };

struct slot {
    struct block block; /* base NULL: empty */
    int arena;          /* a manual arena's number, or ARENA_AUTOMATIC */
    bool is_busy;       /* a call is at work on it: nested steps leave it alone */
};

struct own_arena {
    bool is_made;
    unsigned index;
    unsigned birth;     /* number of arenas the player made before; for the lines */
    struct host *host;  /* whose hooks it has now; NULL: none of ours */
    bool is_shared;     /* others hold blocks of it: it is not reset any more */
    bool loses_extents; /* a host of it had nobody to take extents back */
    bool always_hooked; /* since it was made, with hosts of ours only: all its memory is in their
                           books */
};

struct own_tcache {
    bool is_made;
    unsigned index;
    int arena; /* that it was last asked to fill from; ARENA_AUTOMATIC; ARENA_ANY: its own choice */
};

struct player {
    unsigned index;
    uint64_t step;
    uint64_t random; /* of the step at hand */
    struct slot slot[SLOTS];
    unsigned taken_slots;
    size_t live_bytes; /* usable bytes of all slots */
    struct own_arena arena[ARENAS_OWN];
    struct own_tcache tcache[TCACHES_OWN];
    int bound; /* thread.arena was set to it; ARENA_ANY: it never was */
    bool has_no_cache;
    unsigned depth;  /* of nested steps: in a hook or a callback */
    unsigned nested; /* such steps so far */

    const uint64_t *allocated,
        *deallocated; /* thread.allocatedp and its sibling; NULL: not asked yet */
    int64_t counted_base;
    int64_t counted; /* usable bytes taken less those given since then */

    uint64_t calls, refusals, refused_by_hooks;
    char line[LINES][LINE_CHARS];
    unsigned line_used; /* of the newest */

    pthread_mutex_t box_lock;
    unsigned box_count;
    struct slot box[BOX_BLOCKS];
};

extern _Thread_local struct player *me;

struct world {
    uint64_t seed, steps;
    unsigned players;
    unsigned automatic_arenas;
    size_t page_bytes;
    bool junks, clears, samples;
    bool hardened; /* blocks end where they were asked to, and begin as zeros unless `junks` */
    bool has_space_limit;      /* RLIMIT_AS is set for all of the run, */
    size_t address_bytes;      /* to so much at most */
    _Atomic bool may_refuse;   /* a limit is set: NULL is an answer */
    _Atomic size_t hard_bytes; /* limit.hard; 0: none */
    _Atomic size_t
        hard_allowed;   /* what may be in use under it: what was when it was set, or the limit */
    size_t base_bytes;  /* stats.allocated before the first step, */
    size_t base_active; /* and what may be active at the end */
    bool says_steps;
    struct player *player;
};
extern struct world world;

/* ---- chance ---- */
uint32_t below(uint32_t bound);
bool chance(unsigned percent);
size_t log_uniform(size_t least, size_t most);

/* ---- words ---- */
/* Begins the line of a step, and adds to it. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void add(const char *format, ...) __attribute__((format(printf, 1, 2)));
void print_lines(int file);

/* ---- blocks.c ---- */
void step_blocks(void);
/* A malloc or a free of something else, from a hook or a callback. */
void step_nested(void);
/* Checks and frees it. */
void slot_free(struct slot *slot);
void slot_verify(const struct slot *slot, const char *when);
/* The blocks of the arena are nobody's any more. */
void slots_forget(unsigned arena);
bool blocks_hand_over(void);
void blocks_take_over(void);

/* ---- checks.c ---- */
/* What must be true between two steps. */
void check_totals(void);
void check_statistics(bool exact);
void check_all_blocks(void);
size_t active_now(void);
void check_nothing_left(void);

/* ---- controls.c and limits.c ---- */
void step_controls(void);
/* Frees all blocks, and destroys what the player made. */
void leave_everything(void);
int number_of(const char *name, size_t bytes, void *value);
size_t size_of(const char *name);
unsigned arena_at_address(const void *address);
struct own_arena *own_of(int arena);
bool is_own(int arena);
/* Nothing is refused in this run. */

/* The functions that the program has when prairie is preloaded. */
#pragma weak mallocx
#pragma weak rallocx
#pragma weak xallocx
#pragma weak sallocx
#pragma weak dallocx
#pragma weak sdallocx
#pragma weak nallocx
#pragma weak mallctl
#pragma weak malloc_stats_print
#pragma weak free_sized
#pragma weak free_aligned_sized

#endif
