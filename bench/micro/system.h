/* system.h - what the measuring program asks the system: memory, clocks, and figures of the
 * process.
 * SPDX-License-Identifier: MIT
 *
 * One file for each kind of system (system_posix.c, system_windows.c). None of these calls the
 * allocator under test, but the last two before the first and after the last round. */
#ifndef PRAIRIE_BENCH_SYSTEM_H
#define PRAIRIE_BENCH_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

struct moment {
    uint64_t cpu_ns; /* processor time of all threads; Windows counts it in ticks of 10 to 16 ms */
    uint64_t wall_ns;
};

/* Zeroed pages; NULL: the system has none. */
void *system_memory(size_t bytes);
struct moment system_now(void);
long system_faults(void);              /* minor ones; on Windows all */
long system_peak_kb(void);             /* the most that was resident; -1: not told */
const char *system_malloc_owner(void); /* path of the library or program */

#endif
