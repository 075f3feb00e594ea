/* oracle.h - what must be true of every live block, kept and checked outside of the allocator.
 * SPDX-License-Identifier: MIT
 *
 * Two independent records. The territory is a bitmap over the address space, one bit for each 8
 * bytes that belong to a live block: a block that touches another one is found when it is born.
 * The stamp fills a block with a pattern that only this block can have: a foreign write is found
 * when the block is next looked at.
 *
 * Nothing here calls the allocator under test. All memory is from mmap.
 *
 *   O1  a territory bit is set exactly while one block that was claimed and not released covers it
 *   O2  bytes 0..stamped_bytes-1 of a claimed and stamped block hold its pattern
 *
 * A block is released before it is freed and claimed after it was allocated, so that the bits never
 * cover memory that the allocator may rightly give to another thread. */
#ifndef PRAIRIE_STRESS_ORACLE_H
#define PRAIRIE_STRESS_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of a block that is live. Its holder is the only one who reads or writes this. */
struct block {
    unsigned char *base;
    size_t requested_bytes;
    size_t usable_bytes;  /* claimed: what malloc_usable_size said, at least requested_bytes */
    size_t stamped_bytes; /* requested_bytes, or usable_bytes in some blocks */
    size_t align_bytes;   /* what was asked for, 0: nothing */
    unsigned kind;        /* enum block_kind of ways.h: who may take it back */
    uint64_t stamp;       /* first word of the pattern: hash of key, address, size and owner */
};

/* Ends the process with status 1 and one line on stderr: "stress: VIOLATION: ... (seed ...)". */
_Noreturn void violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Where the running thread is in its work, for the message of a violation. */
struct whereabouts {
    unsigned lane;
    uint64_t step;
    const char *action;
};
extern _Thread_local struct whereabouts whereabouts;
/* Called before a violation ends the process; NULL: there is no more to say. */
extern void (*oracle_last_words)(const char *text);

void oracle_start(uint64_t seed);

/* Zeroed memory from the kernel for the tables of the test. */
void *oracle_memory(size_t bytes);

/* Checks the alignment, marks the territory, and checks that nobody lives there. */
void oracle_claim(const struct block *block);
void oracle_release(const struct block *block);

/* Gives the block a pattern of its own and writes it. */
void oracle_stamp(struct block *block, uint64_t owner);
/* The first bytes still hold the pattern; what says when that was found out. */
void oracle_verify(const struct block *block, size_t bytes, const char *what);
/* The first bytes are zero, as calloc promises. */
void oracle_verify_zero(const struct block *block);

#endif
