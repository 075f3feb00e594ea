/* rules.h - six rules by which a thread chooses the arena that it fills from, and their counts.
 * SPDX-License-Identifier: MIT
 *
 * Included after a library that was built with PRAIRIE_RULE_ELSEWHERE: rules.c brings its
 * rule_choose, which asks the rule that rule_use set and counts what it chose. */
#ifndef PRAIRIE_LAB_ARENA_RULES_H
#define PRAIRIE_LAB_ARENA_RULES_H

#include "../../src/arenas/arena_set.h"

struct rule {
    const char *name;
    unsigned arenas_per_core;
    /* As arena_choose: locked; NULL: no memory. */
    struct arena *(*choose)(struct arena *last);
};

struct arena_tally { /* under the lock of its arena */
    uint64_t choices;
    uint64_t busy;  /* of these, by threads that say of themselves that they are */
    uint64_t moved; /* the thread filled from another arena before */
    uint64_t stale; /* the thread runs on a core that this arena does not belong to */
};

extern const struct rule rules[];
extern struct arena_tally arena_tally[ARENA_COUNT_MAX];
extern __thread bool thread_is_busy;

/* NULL: there is no rule of that name. */
const struct rule *rule_named(const char *name);
/* Before the first choice. Needs the library started, and sets how many arenas there may be. */
void rule_use(const struct rule *rule, unsigned core_count);

#endif
