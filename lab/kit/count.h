/* count.h - marks the stretches of a program whose instructions and cache misses callgrind counts.
 * SPDX-License-Identifier: MIT
 *
 * kit/count.py starts the program under callgrind with counting off. Each stretch between
 * count_begin and count_end becomes one line of figures under its label. Outside of callgrind
 * both cost a few instructions and do nothing. */
#ifndef PRAIRIE_LAB_COUNT_H
#define PRAIRIE_LAB_COUNT_H

#include <stdbool.h>
#include <valgrind/callgrind.h>

static inline bool is_counted(void) { return RUNNING_ON_VALGRIND != 0; }

/* A stretch may consist of several pieces: clear, then on and off as often as needed, then dump. */
static inline void count_clear(void)
{
    CALLGRIND_START_INSTRUMENTATION; /* what comes before the first stretch runs faster */
    CALLGRIND_ZERO_STATS;
}
static inline void count_on(void) { CALLGRIND_TOGGLE_COLLECT; }
static inline void count_off(void) { CALLGRIND_TOGGLE_COLLECT; }
static inline void count_dump(const char *label) { CALLGRIND_DUMP_STATS_AT(label); }

static inline void count_begin(void)
{
    count_clear();
    count_on();
}

static inline void count_end(const char *label)
{
    count_off();
    count_dump(label);
}

#endif
