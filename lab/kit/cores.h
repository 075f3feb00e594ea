/* cores.h - threads dealt out to the cores that the process may use.
 * SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_LAB_CORES_H
#define PRAIRIE_LAB_CORES_H

#include <sched.h>

/* The calling thread stays on the turn-th core, counted round. Needs _GNU_SOURCE. */
static inline void core_stay(unsigned turn)
{
    cpu_set_t allowed, mine;
    int left;

    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    left = (int)(turn % (unsigned)CPU_COUNT(&allowed));
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &allowed) || left-- > 0) continue;
        CPU_ZERO(&mine);
        CPU_SET(core, &mine);
        (void)sched_setaffinity(0, sizeof mine, &mine);
        return;
    }
}

#endif
