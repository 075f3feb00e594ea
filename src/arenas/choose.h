/* choose.h - how often threads had to change arenas.
 *
 * Statistics only: the counts are written without a lock and may miss some.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_ARENAS_CHOOSE_H
#define PRAIRIE_ARENAS_CHOOSE_H

#include "../base/attrs.h"

struct arena_choices {
    uint64_t hops; /* the last arena was busy */
};

extern PRIVATE struct arena_choices arena_choices;

#endif
