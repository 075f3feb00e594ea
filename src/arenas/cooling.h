/* cooling.h - counts the magazines that threads of other arenas gave back a moment ago.
 *
 * Lines of such a block are in the caches of the core that gave it back, and perhaps still in those
 * of the core that wants it next. A thread that writes to it at once waits for each line. So the
 * magazine rests for a few steps of time before it is given out (docs/decisions/0046). They are
 * counted by steps, so that nothing need be noted of each magazine. All of it is under the arena's
 * lock.
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

    if (passed == UINT16_MAX) { /* another core's clock is a step ahead of ours (port_step) */
        passed = 0;
        now = cooling->step;
    }
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
