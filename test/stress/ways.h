/* ways.h - every way to get a block from the allocator and to give it back, as tables to choose
 * from. SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_STRESS_WAYS_H
#define PRAIRIE_STRESS_WAYS_H

#include "oracle.h"

/* A block goes back to the language that it came from; the bits are those of way_out.kinds. */
enum block_kind {
    KIND_C = 1,           /* malloc and its family, no alignment asked for */
    KIND_C_ALIGNED = 2,   /* aligned_alloc and its family */
    KIND_CXX = 4,         /* operator new */
    KIND_CXX_ALIGNED = 8, /* operator new with an alignment */
    KIND_C_PAGES = 16,    /* pvalloc: its size is not the one that was asked for */
};

struct way_in {
    const char *name;
    unsigned weight;
    unsigned kind;
    bool zeroed;
    bool page_aligned;     /* the alignment is the page size, whatever is asked for */
    bool never_zero_bytes; /* not called for 0 bytes */
    void *(*take)(size_t bytes, size_t align_bytes);
};

struct way_out {
    const char *name;
    unsigned weight;
    unsigned kinds;
    void (*give)(const struct block *block);
};

/* Leaves out what the subject lacks and, where refusals are allowed, what cannot answer NULL. */
void ways_start(bool refusals_allowed);
const struct way_in *choose_way_in(uint64_t random);
const struct way_out *choose_way_out(uint64_t random, unsigned kind);

#endif
