/* rules.c - the rules. Each one chooses real arenas of the real library.
 * SPDX-License-Identifier: MIT */
#include "rules.h"

/* The rule that prairie is built with, as it is: not a copy. */
#undef arena_choose
static struct arena *choose_shipped(struct arena *last) { return arena_choose(last); }

struct arena_tally arena_tally[ARENA_COUNT_MAX];
__thread bool thread_is_busy;

static const struct rule *rule_in_use;
static unsigned rule_cores = 1;               /* constant after rule_use */
static unsigned turns;                        /* atomic: threads that were given a turn */
static uintptr_t last_owner[ARENA_COUNT_MAX]; /* atomic: mark of the last thread to choose it */

static struct arena *arena_of_core(void) { return arena_at(os_core_current() % arena_limit); }

/* ---- turns, four: bound for life ---- */

static struct arena *choose_turns(struct arena *last)
{
    if (last == NULL)
        last = arena_at(__atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED) % arena_limit);
    return take_arena(last);
}

/* ---- core: asked every time ---- */

static struct arena *choose_core(struct arena *last)
{
    (void)last;
    return take_arena(arena_of_core());
}

/* ---- owner: the mail's ---- */

/* The first threads take turns until every arena is used. Then a thread stays while it was the last
 * one to choose its arena and nobody holds it; otherwise it goes to the arena of its core. */
static struct arena *choose_owner(struct arena *last)
{
    uintptr_t me = port_thread_mark();
    struct arena *arena = last;
    unsigned turn;

    if (last == NULL) {
        turn = __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
        arena = take_arena(turn < arena_limit ? arena_at(turn) : arena_of_core());
    } else if (RELAXED_LOAD(last_owner[last->index]) != me || !lock_try(&last->lock)) {
        arena = take_arena(arena_of_core());
    }
    if (arena != NULL) RELAXED_STORE(last_owner[arena->index], me);
    return arena;
}

/* ---- neighbour: the core's, or the next one when that is held ---- */

static struct arena *choose_neighbour(struct arena *last)
{
    struct arena *arena = arena_of_core();

    (void)last;
    if (arena == NULL || lock_try(&arena->lock)) return arena;
    return take_arena(arena_at((arena->index + 1) % arena_limit));
}

/* ---- the door ---- */

const struct rule rules[] = {
    { "turns", 1, choose_turns },
    { "four", 4, choose_turns },
    { "core", 1, choose_core },
    { "owner", 1, choose_owner },
    { "hop", 1, choose_shipped },
    { "neighbour", 1, choose_neighbour },
    { NULL, 0, NULL },
};

const struct rule *rule_named(const char *name)
{
    for (const struct rule *rule = rules; rule->name != NULL; rule++)
        if (__builtin_strcmp(rule->name, name) == 0) return rule;
    return NULL;
}

void rule_use(const struct rule *rule, unsigned core_count)
{
    rule_in_use = rule;
    rule_cores = core_count;
    arena_limit = (unsigned)min_size((size_t)core_count * rule->arenas_per_core, ARENA_COUNT_MAX);
}

struct arena *rule_choose(struct arena *last)
{
    struct arena *arena = rule_in_use->choose(last);
    struct arena_tally *tally;

    if (arena == NULL) return NULL;
    tally = &arena_tally[arena->index];
    tally->choices++;
    tally->busy += thread_is_busy;
    tally->moved += last != NULL && last != arena;
    tally->stale += arena->index % rule_cores != os_core_current() % rule_cores;
    return arena;
}
