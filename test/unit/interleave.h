/* interleave.h - lets something happen between two reads that the library makes without a lock. */
/* SPDX-License-Identifier: MIT */
/*
 * In src/, one line between the reads: BETWEEN_READS(place). The name is the function's, or one of
 * its own. A test arranges what is to happen there, and calls what reads:
 *
 *      let_happen("place", 0, another_thread_leases);
 *      assert_true(what_reads());
 *      assert_true(it_happened());
 *
 * It happens once, in the reading thread, or in another if the act starts one. What locks the
 * reader holds, the act must not take. Between calls of the kernel, fake_on_call does the same.
 */
#ifndef PRAIRIE_TEST_UNIT_INTERLEAVE_H
#define PRAIRIE_TEST_UNIT_INTERLEAVE_H

/* None that reads <features.h>: prairie.c chooses what that shows. */
#include <stdbool.h>
#include <stddef.h>

#define BETWEEN_READS(place) interleave(#place)

extern struct interleaving {
    const char *place;
    unsigned skip; /* times that the place is passed before */
    void (*act)(void);
} interleaving;

void interleave(const char *place);

static inline void let_happen(const char *place, unsigned skip, void (*act)(void))
{
    interleaving.place = place;
    interleaving.skip = skip;
    interleaving.act = act;
}

static inline bool it_happened(void) { return interleaving.act == NULL; }

#endif
