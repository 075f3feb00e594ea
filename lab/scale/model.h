/* model.h - cores that share lines of memory: who moves which line, and what that costs in time.
 *
 * Each core is a thread of which one runs at a time: the one whose clock is least. The compiler's
 * calls for ThreadSanitizer, which stand before each load and store, come here instead. A line is
 * in the caches of no core, of some that only read it, or of one that wrote it (MESI, with caches
 * that never run out of room), and what an access costs is told by that. A line that moves, or is
 * claimed, is nobody else's until it has come: who wants it meanwhile waits, so that a word that
 * all cores change makes them no faster than one. What the same arguments give they give again.
 *
 * It knows no allocator: who uses it says what an address belongs to, and which words are locks.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_LAB_SCALE_MODEL_H
#define PRAIRIE_LAB_SCALE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum { CORES_MAX = 64 };

/* Cycles. */
struct model_costs {
    uint32_t access;  /* of each load or store, with the instructions around it */
    uint32_t atomic;  /* more, when it is a read-modify-write */
    uint32_t moved;   /* more, when another core wrote the line, or has it and must lose it */
    uint32_t shared;  /* more, when others only read it, and so does this one */
    uint32_t claimed; /* more, when it is here, and others that read it must lose it */
    uint32_t pause;   /* more, when a lock is looked at and found held: who looks waits a little */
    uint32_t woken;   /* between a wake and the first step of the one that slept */
    uint32_t slice;   /* how far a core may run ahead of the others */
};

struct model_user {
    const char *(*place_of)(uintptr_t address);   /* a constant text */
    const char *(*lock_of)(const uint32_t *word); /* a constant text; NULL: no lock */
};

/* Runs `body` on so many cores, each with its number, until all have returned; once in a process,
 * whose threads never end. What is counted begins when all have come to model_begin, and ends when
 * the first one returns, so all shall do alike. */
void model_run(unsigned cores, const struct model_costs *costs, const struct model_user *user,
               void (*body)(unsigned core));
void model_begin(void);
/* So many cycles pass, as where a program waits. */
void model_rest(uint32_t cycles);
/* So many operations more of this core are done. */
void model_done(uint64_t operations);
unsigned model_core(void);   /* 0 outside of model_run */
uint64_t model_cycles(void); /* of this core's clock, or 0 */
/* What was counted, as JSON on standard output. Addresses of code are told by what they are beyond
 * `code`. */
void model_print(const void *code);

#endif
