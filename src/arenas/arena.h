/* arena.h - what threads share: slabs with free blocks, and a depot of full magazines for each
 * class.
 *
 * A block always goes back to the arena of its slab, whoever frees it. All of an arena is under its
 * one lock.
 *
 * A depot holds whole magazines, linked through slot 0: `full` ones, each with exactly the class's
 * capacity of blocks, and `empty` ones to trade against.
 *
 * D1  the counts of `full` and `empty` are the lengths of the lists
 * D2  each of the slots 1 to magazine_capacity(class) of a full magazine holds a block of its class
 *     and of no manual arena, or NULL (M3), or a stray (slabs/guarded_pool.h)
 * D3  opened_count blocks are left in the opened magazine, from slot 1 up; none exactly while there
 *     is none
 * A1  every slab on a partial list belongs to this arena and has a free block
 * A2  active_pages is how many pages the open slabs, without those of A4, and the blocks of
 *     manual_large have; staggered is how many of the latter are staggered
 * A3  of the slabs on a partial list only the last one may have all of its blocks free
 * A4  purged_pages is how many pages of the open slabs are marked as purged
 * X1  every open slab of a manual arena that is on no partial list is on a list of full ones
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_ARENAS_ARENA_H
#define PRAIRIE_ARENAS_ARENA_H

#include "../slabs/guarded_pool.h"
#include "../slabs/slab.h"
#include "cooling.h"
#include "magazine.h"
#include "stock.h"

struct magazine_list { /* D1 */
    void **first;
    uint32_t count;
    uint32_t low; /* of full ones: the fewest since the background thread last looked */
};

struct depot {
    struct magazine_list full; /* the oldest first; those that cool behind all others, but for what
                                  drain_oldest leaves of other arenas' blocks */
    void **full_last;          /* the youngest; meaningless while there are none */
    struct magazine_list empty;
    void **opened;         /* a magazine that small ones are filled from; NULL: none */
    uint32_t opened_count; /* D3 */
    uint32_t opened_seen;  /* what the background thread saw of it when it last looked */
};

/* Small blocks do: the others are few for the room there is. */
INLINE bool class_cools(unsigned class_index) { return class_index <= CLASS_OF_128; }

/* What cools in an arena's depots. */
struct cooling_depots {
    struct cooling kib;                        /* of blocks, in all of them */
    struct cooling of_class[CLASS_OF_128 + 1]; /* so many of the youngest full magazines */
};

/* How far a program breathes: what came back in full magazines, of all classes, and was not wanted
 * again yet. */
struct swing {
    size_t bytes;
    size_t bytes_peak; /* since bytes was 0 */
    bool is_deep;      /* the depots could not hold it: what is in order goes on into the slabs */
};

struct class_flow {         /* statistics */
    uint64_t fills, drains; /* calls that went to the slabs */
    uint64_t blocks_taken;  /* by fills */
    uint64_t slabs_opened;
};

struct slab_list {
    uint32_t first; /* its number; 0: there is none. The one before it is the last */
    uint32_t count;
};

struct class_bin {            /* what an arena has of one class */
    struct slab_list partial; /* A1, A3 */
    struct slab_list full;    /* X1: those without a free block */
    struct slab_list closed;  /* records of slabs that are not open; at most CLOSED_MAX */
    struct depot depot;
    uint64_t slab_count;       /* open slabs */
    uint64_t slab_free_blocks; /* free blocks in them */
    struct class_flow flow;
};

/* The blocks of its open slabs, free or not. Under the arena's lock. */
INLINE uint64_t bin_blocks(const struct class_bin *bin, unsigned class_index)
{
    return bin->slab_count * slab_shape[class_index].block_count;
}

struct arena {
    struct lock lock;
    uint32_t index;    /* constant */
    bool is_manual;    /* constant: made by arena_create (manual.h) */
    bool is_ending;    /* it is being destroyed: nobody else may do that or call its hooks */
    bool is_destroyed; /* atomic: a manual one whose number is free */
    bool is_hardened;  /* constant: its slabs are hidden, and free blocks in them read as zero */
    struct page_heap *page_heap; /* constant: what it leases from */
    struct swing swing;
    struct meta_row row;                     /* of records of slabs and empty magazines */
    struct cooling_depots *cooling;          /* NULL: nothing came from other cores yet */
    uint64_t trades;                         /* statistics: magazines exchanged at the depot */
    struct stock stock[STOCK_PAGES_MAX + 1]; /* by length */
    struct class_bin bin[CLASS_COUNT];
    struct manual_large *manual_large; /* the large blocks of a manual one, or of one with hooks */
    uint64_t manual_taken;             /* statistics: all of them so far */
    size_t active_pages;               /* A2; atomic: programs read it */
    struct extents *extents;           /* of one whose memory the program supplies (extents.h) */
    size_t grow_limit;                 /* that the program set for extents; 0: none */
    bool has_spare_extents;            /* atomic: two are wholly free, or were (arena_settle) */
    uint32_t threads;                  /* atomic: bound to it */
    uint32_t times_destroyed;          /* atomic */
    uint32_t staggered;                /* of the blocks of manual_large */
    uint32_t purged_pages;             /* A4 */
    uint32_t purged_pages_peak;        /* as far as the wish for huge pages knows of them */
    char name[32]; /* that the program gave it; under the control tree's lock, but that arena_create
                      clears it, when nobody knows the number yet */
};

/* So many more pages are active; 0 - pages: so many fewer. Under the arena's lock. */
INLINE void arena_count_active(struct arena *arena, size_t pages)
{
    RELAXED_STORE(arena->active_pages, arena->active_pages + pages);
}

/* Below, the caller holds arena->lock. */

/* Swaps an empty full-size magazine for a full one. NULL: the depot has none that is ready. */
void **depot_take_full(struct arena *arena, unsigned class_index, void **empty);
/* Takes a full one in, and gives an empty one for it. When the depot has enough, or there is no
 * memory for an empty one, it gives a full one instead (*drain), the oldest or the one that came,
 * which the caller drains and keeps. A manual arena keeps none: blocks of other arenas may lie in
 * it, too. `cools`: a thread of another core filled it with small blocks (class_cools), and it
 * cools if there is room. */
void **depot_trade_full(struct arena *arena, unsigned class_index, void **full, bool cools,
                        bool *drain);
/* A full magazine's blocks go past the depot into the slabs; those of other arenas move to the
 * front. Returns how many they are. */
unsigned depot_pass_full(struct arena *arena, unsigned class_index, void **full);

/* Up to `wanted` blocks out of a full magazine, into slots[1..]. Returns how many. */
unsigned depot_take_some(struct arena *arena, unsigned class_index, void **slots, unsigned wanted);

/* Up to `wanted` blocks into slots[1..]; lowest address on top. Returns how many; 0: no memory, or
 * none without growth, when the region may not grow. */
unsigned arena_fill(struct arena *arena, unsigned class_index, void **slots, unsigned wanted,
                    bool may_grow);
/* Of a manual arena: every block is free, whoever holds it, and every slab is closed. */
void arena_reset_slabs(struct arena *arena);
/* Gives back what it keeps for the slabs it would open next: runs, and records. */
void arena_give_stocks(struct arena *arena);
/* Takes back those of the blocks that are this arena's, and moves the others to the front.
 * Returns how many others. */
unsigned arena_drain(struct arena *arena, unsigned class_index, void **blocks, unsigned count);
void arena_check(const struct arena *arena);

/* Below, the caller holds no lock of this rank or later. */

/* The arena whose slab a block of the class was cut from; NULL for NULL, and for a stray. Aborts
 * when the block is in no such slab: it was freed twice, and its slab is gone. */
struct arena *arena_of_block(unsigned class_index, const void *block);
/* Aborts when no block of a slab of the class begins there, or one that is free in its slab.
 * NULL (M3) and strays may be among blocks. */
void arena_expect_block(unsigned class_index, const void *block);
/* Full magazines are drained rather than kept, until some arena opens a slab; atomic. */
extern PRIVATE bool depots_closed;
/* Drains the magazines of all depots and gives them back, returns the runs of the stocks, and
 * closes slabs that were kept empty: all there are, or half of the magazines and runs that nobody
 * took since the last call, and then all runs if there were magazines. True: there were any. */
enum clear_what { CLEAR_ALL, CLEAR_UNNEEDED };
bool arenas_clear(enum clear_what what);
/* What it does first: the floor above drains what no thread has, all of it or what none needed
 * since the last call. NULL: nothing. Written when the process starts. */
extern PRIVATE bool (*arenas_clear_above)(enum clear_what what);
/* Closes slabs that were kept empty, and returns the runs of the stocks. */
void arenas_close_empty(void);
/* What cools is ready: without it there is no memory. */
void depots_end_cooling(void);
/* A free block of the class from the slabs of any automatic arena; NULL: none has one. */
void *arenas_take_one(unsigned class_index);
/* Every block goes back to the arena of its slab, one arena's lock after the other. */
void arenas_drain(unsigned class_index, void **blocks, unsigned count);

#endif
