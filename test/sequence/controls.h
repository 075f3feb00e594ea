/* controls.h - what steps through the control tree share.
 * SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_SEQUENCE_CONTROLS_H
#define PRAIRIE_SEQUENCE_CONTROLS_H

#include "hosts.h"

#include <prairie/prairie.h>

/* ---- names ---- */
int write_number(const char *name, size_t bytes, const void *value);
int act(const char *name);
/* start.index.leaf, until the next call. */
const char *of_arena(const char *start, unsigned index, const char *leaf);
/* May a call answer EAGAIN, since so many refusals of hooks? */
bool has_reason_to_refuse(uint64_t refused_before);

/* ---- controls.c ---- */
/* The explicit caches, or those that fill from the arena. */
void flush_tcaches(bool all, int arena);

/* ---- limits.c ---- */
void step_limits(void);
/* No more is in use than the hard limit allows. */
void check_hard(void);
/* What the limits are compared with. */
size_t used_now(void);
/* Figures were taken, for which some records pass the hard limit the first time. */
void allow_figures(size_t used_before);
void lift_limits(void);
struct prairie_stats numbers_now(void);

/* ---- checks.c ---- */
void step_look(void);

#endif
