/* guarded.h - blocks between pages that nobody may touch: the pool of cells for them.
 *
 * A guarded block has a page of its own, and lies at its left or its right end by chance. The page
 * is closed when the block comes back, and is used again when all cells that came back before it
 * were:
 *
 *      page        | guard | cell 0 | guard | cell 1 | guard | ...
 *      left        | .....   block--- | .....                       before its first byte: a fault
 *      right       | .....   ---block | .....                       beyond its class: a fault
 *      given back  | ..................................             anywhere: a fault
 *
 * The block has the bytes of its size class, as every other block of that size has. A sized free
 * does not look where a block lies, so while a guarded block is *watched*, offset_of_sized_free is
 * 0 for its class (sample.h). That costs the sized frees of all blocks of the class, so it ends
 * after so many of them; what is freed with its size then is a stray (slabs/stray.h).
 *
 *      FREED --take--> COMING --> HELD --give--> GOING --> FREED, last in the queue
 *                     the kernel is asked without the lock
 *
 * U1  `queue` has the cells that are FREED and were used before, those given back first in front
 * U2  held is the number of cells that are not FREED, and at most held_max
 * U3  strays.block[i] is the block of cell i while it is HELD, else NULL
 * U4  the sized frees of a class are watched at least while a cell of it is HELD whose watch is
 *     the current one
 * U5  guarded_numbers.held[c] is the number of cells of class c that are HELD
 * All of it is under guarded_lock, but for the kernel's part of COMING and GOING.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_GUARD_GUARDED_H
#define PRAIRIE_GUARD_GUARDED_H

#include "../os/os.h"
#include "../sample/sample.h"
#include "../slabs/stray.h"

enum { GUARDED_DEPTH = 20 };

/* Where a thread was. */
struct guarded_trace {
    uint32_t thread; /* 0: nobody knows */
    uint32_t depth;
    uintptr_t return_address[GUARDED_DEPTH];
};

enum guarded_state { GUARDED_FREED, GUARDED_COMING, GUARDED_HELD, GUARDED_GOING };

struct guarded_cell {
    char *block;   /* that is held or was the last one; NULL: never used */
    size_t size;   /* that was asked for; the block has those of its class */
    uint32_t site; /* hash of the first callers */
    uint32_t watch;
    uint8_t class_index, state;
    uintptr_t mover;       /* whose it is while it is COMING or GOING: the thread's mark */
    uint32_t is_told;      /* a report was printed of this block */
    uint32_t page_is_open; /* atomic: a report opened the page, after the block was given back */
    struct guarded_trace taken, given;
};

extern PRIVATE struct lock guarded_lock;

/* So many cells, at most STRAYS_MAX. False: no memory. Once. */
bool guarded_start(unsigned cells);

/* A block of the class for a request of that size and alignment, taken at `taken`. NULL: the pool
 * has none, or enough of that site. */
void *guarded_take(size_t size, size_t align, unsigned class_index,
                   const struct guarded_trace *taken);
/* False: there is no such block, or no longer. */
bool guarded_give(const void *block, const struct guarded_trace *given);
/* Sized frees need no longer look. */
void guarded_end_watch(void);

/* What an address in the pool is. */
enum guarded_kind {
    GUARDED_NONE,   /* nothing was ever there */
    GUARDED_BLOCK,  /* a block that is held begins there */
    GUARDED_INSIDE, /* in a block that is held, or beside one on its page */
    GUARDED_BEFORE, /* on the page before a block that is held */
    GUARDED_BEHIND, /* on the page after it */
    GUARDED_GONE    /* where a block was, or beside it */
};
struct guarded_finding {
    enum guarded_kind kind;
    bool is_watched; /* or was, when it came back */
    struct guarded_cell cell;
};
/* As of now, of any address. */
struct guarded_finding guarded_find(const void *address);
/* The same for callers that may have interrupted anybody, and hold any locks: when whoever holds
 * the pool's lock does not give it in time, half of it may be of a moment later. */
struct guarded_finding guarded_find_anywhere(const void *address);
/* The first report of the block? There is none after it. May be called anywhere. */
bool guarded_tell_once(const struct guarded_finding *finding);
/* Opens the page of the address, so that an access that was told of can be made. False: no memory.
 * May be called anywhere. */
bool guarded_let_pass(const void *address);

/* Does it lie in a block that is held? */
bool guarded_holds(const void *address);

/* A block that is held has another size now. */
void guarded_set_size(const void *block, size_t size);

void guarded_trace_from(struct guarded_trace *trace, const void *frame);

/* Blocks that are held, and taken so far, of each class. */
struct guarded_numbers {
    uint64_t held[CLASS_COUNT], taken[CLASS_COUNT]; /* under guarded_lock; U5 */
};
extern PRIVATE struct guarded_numbers guarded_numbers;
/* As of now, after what came back was fetched. */
void guarded_count(struct guarded_numbers *numbers);

/* In the child of a fork, under the lock. */
void guarded_forget_others(void);
/* Aborts on a broken invariant; under the lock. */
void guarded_check(void);

#endif
