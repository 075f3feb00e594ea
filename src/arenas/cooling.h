/* cooling.h - what came of late from threads of other cores.
 *
 * A block that another core wrote to or read lies in that core's caches, and perhaps still in those
 * of the core that wants it next: who writes to it at once waits for each of its lines. So it waits
 * until both have had other things to do, which is a matter of some time
 * (docs/decisions/0046). What came is counted in steps of time, so that nothing need be noted of
 * each magazine. All of it is under the arena's lock.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_ARENAS_COOLING_H
#define PRAIRIE_ARENAS_COOLING_H

#include "../base/port.h"

enum { COOLING_STEPS = 4 };

struct cooling {
    uint16_t step;                 /* port_step, which comes round in some seconds */
    uint16_t count[COOLING_STEPS]; /* in that step, and in those before it */
};

INLINE uint16_t cooling_now(void) { return (uint16_t)port_step(); }

/* How many they are as of the step `now`. */
INLINE unsigned cooling_advance(struct cooling *cooling, uint16_t now)
{
    unsigned passed = (uint16_t)(now - cooling->step), sum = 0;

    for (unsigned i = COOLING_STEPS; i-- > 0;) {
        cooling->count[i] = i >= passed ? cooling->count[i - passed] : 0;
        sum += cooling->count[i];
    }
    cooling->step = now;
    return sum;
}

/* It was counted as of this step. */
INLINE void cooling_add(struct cooling *cooling, unsigned more)
{
    cooling->count[0] = (uint16_t)(cooling->count[0] + more);
}

/* As of when it was last counted: for who would spare himself the clock. */
INLINE bool cooling_was_any(const struct cooling *cooling)
{
    unsigned any = 0;

    for (unsigned i = 0; i < COOLING_STEPS; i++) any |= cooling->count[i];
    return any != 0;
}

#endif
