/* shrink.h - which steps are made, and the search for those that a failure needs.
 * SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_SEQUENCE_SHRINK_H
#define PRAIRIE_SEQUENCE_SHRINK_H

#include "player.h"

enum { KIND_CHARS = 160, CHILD_SECONDS = 60 };

/* Shared with the run that shortens: one byte a step, after the step that is being made. */
struct kept_steps {
    _Atomic uint64_t step;
    char kind[KIND_CHARS]; /* of the failure; empty: there was none */
    unsigned char keep[];
};
extern struct kept_steps *kept; /* NULL: all are made */
void map_kept(int file);

/* The sentence without its numbers, so that the same failure is known again elsewhere. */
void note_kind(const char *text);

/* Runs the program again with fewer and fewer steps, and then aloud. Returns its exit status. */
int shrink(int argc, char **argv);

#endif
