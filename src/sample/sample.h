/* sample.h - which blocks were sampled, and who took them.
 *
 * A site is a stack, a size and the name of a thread; it counts the samples that were taken there
 * and those that live. A sampled block has a record, whose number stands in the page map
 * (space/page_map.h).
 *
 *      first page of a sampled block --> record --> site | bytes, name, counts | return addresses
 *                                                    ^ table by hash
 *
 * A sampled block lies in pages of its own, so that every free of it is seen. Sized frees look into
 * a table, which has offset 0 while a sampled block of the class lives.
 *
 * G1  live is the number of records that lead to the site; a reset gives all sites back, and the
 *     records from before it lead nowhere
 * G2  offset_of_sized_free is 0 for a class while a record of its size lives, or a guarded block
 *     of it is watched (guarded.h)
 * All of it is under one lock, during which nothing but memory for records is asked of anybody.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_SAMPLE_SAMPLE_H
#define PRAIRIE_SAMPLE_SAMPLE_H

#include "../base/lock.h"
#include "../slabs/size_class.h"
#include "unwind.h"

struct site {
    struct site *next;    /* in its bucket */
    uint64_t live, taken; /* samples; G1 */
    size_t bytes;         /* constant: usable, of each block */
    uint64_t hash;        /* constant */
    uint32_t depth;       /* constant */
    uint32_t name;        /* constant: of the thread; 0: none */
    uintptr_t return_address[];
};

/* Where a block was taken, and by whom. */
struct origin {
    const uintptr_t *return_address;
    unsigned depth;
    unsigned name;
};

struct sample_totals {
    uint64_t sites;
    uint64_t addresses; /* of all sites' stacks */
};

/* A block of that many usable bytes was taken. Returns the number of its record; 0: no memory. */
uint32_t sample_note(const struct origin *origin, size_t bytes);
void sample_forget(uint32_t record);
size_t sample_bytes(uint32_t record);

/* A block of the class begins to need that its sized frees look at the address, 1, or ends to,
 * -1. G2 */
void sized_free_look(unsigned class_index, int step);
bool sized_free_looks(unsigned class_index);
/* Those of all classes go where class_map_offset says by now. */
void sized_frees_aim(void);

/* A number for the name of a thread; 0: for no name, or when there are too many. */
unsigned sample_name(const char *name);
const char *sample_name_text(unsigned number);

/* Forgets what was sampled until now, with all sites; blocks that live are not missed when they are
 * freed. */
void samples_reset(void);

struct sample_totals samples_totals(void);
/* Calls `visit` for each site, under the lock. False: the lock stayed taken, by a thread that a
 * signal interrupted, perhaps this one. May be called anywhere. */
bool samples_visit(void (*visit)(const struct site *site, void *context), void *context);

extern PRIVATE struct lock samples_lock;

#endif
