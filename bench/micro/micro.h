/* micro.h - what a pattern of allocator calls is, and the few tools that the patterns share.
 * SPDX-License-Identifier: MIT
 *
 * A pattern is one way of calling malloc and free that stresses one property of an allocator.
 * Everything that a pattern needs besides the blocks under test (pointer tables, random orders,
 * size tables) comes from bench_memory(), which is mmap and never the allocator under test.
 *
 * Life of a pattern in one process: prepare() once, untimed; round() again and again, each timed as
 * a whole; the process ends without tearing down, so that peak memory and faults belong to this
 * pattern alone. */
#ifndef PRAIRIE_BENCH_MICRO_H
#define PRAIRIE_BENCH_MICRO_H

#include "../random.h"

#include <stddef.h>
#include <stdint.h>

struct pattern {
    const char *name;
    const char *stresses;  /* what of an allocator this pattern strains, for --list */
    unsigned thread_count; /* above 1: the figure is wall time, else processor time */
    const void *shape;     /* the family's own parameters, or NULL */
    void (*prepare)(const struct pattern *pattern);   /* untimed, may be NULL */
    uint64_t (*round)(const struct pattern *pattern); /* timed; returns the operations done */
};

struct family {
    const struct pattern *patterns;
    unsigned count;
};

extern const struct family small_family;    /* small.c: pairs, replacement, bursts */
extern const struct family tree_family;     /* tree.c: binary trees */
extern const struct family thread_family;   /* thread.c: blocks that cross threads */
extern const struct family large_family;    /* large.c: blocks of 9 KB to 25 MB */
extern const struct family resize_family;   /* resize.c: realloc growth and calloc */
extern const struct family fragment_family; /* fragment.c: sizes that change from phase to phase */

/* Zeroed memory from the kernel, never given back; ends the program when there is none. */
void *bench_memory(size_t bytes);

/* Marks the border between the two halves of the running round, for patterns that build and then
 * tear down. */
void bench_lap(void);

/* Ends the program when an allocation under test failed: a figure with failures in it means
 * nothing. */
void *bench_need(void *block);

/* A program writes what it allocates: the first word of a new block is written by every small
 * pattern. */
static inline void touch_first_word(void *block) { *(volatile uint64_t *)block = (uintptr_t)block; }

#endif
