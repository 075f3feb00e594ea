/* gate.h - what stands between the library and the real kernel: it counts calls, refuses some, and
 * moves the clock. */
/* SPDX-License-Identifier: MIT */
/*
 * The library is compiled so that each of its system calls comes by here (src/os/linux.h), and the
 * program is linked so that what it asks of the C library does, too. Calls that are not refused go
 * to the kernel. One rule stands at a time; all of it lies in memory that a process shares with its
 * children, so that they are counted with it.
 *
 * Time is the kernel's and what was added to it. A sleep of the background thread lasts a moment,
 * and its whole length is added.
 */
#ifndef PRAIRIE_TEST_FAULT_GATE_H
#define PRAIRIE_TEST_FAULT_GATE_H

#include <stdbool.h>
#include <stdint.h>

/* What the C library is asked for, among the numbers of system calls. */
enum { GATE_SIGACTION = 100001, GATE_KEY_CREATE, GATE_SET_SPECIFIC, GATE_CURRENT_CORE };

/* In the place of an error number: the call does half of what it should, and says so; or finds the
 * end of a file. */
enum { GATE_HALF = 100000, GATE_END };

enum { GATE_ANY = -1 };

/* Some calls, and what is answered in their place. */
struct gate_rule {
    long number;
    long word; /* of madvise the advice, of futex the operation; GATE_ANY */
    int error;
};

void gate_make(void); /* once; processes that are forked off after it share it */
/* From the n-th call of the rule on, from now on: that one, or all. 0: none, and they are counted
 * only. */
void gate_refuse(const struct gate_rule *rule, uint64_t nth, bool and_all_after);
bool gate_refuses_for_good(void); /* all from the n-th on */
uint64_t gate_seen(void);         /* calls of the rule since then */
uint64_t gate_refused(void);      /* of these */
void gate_clock_ms(uint64_t forward_ms);

#endif
