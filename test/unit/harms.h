/* harms.h - a check finds each harm that is done to what it checks. */
/* SPDX-License-Identifier: MIT */
/*
 * Each harm is done in a child of its own, so that none meets another:
 *
 *      static const struct harm harms[] = { HARM(s1_bit_lost), HARM(s1_count_too_high) };
 *      expect_harms_found(harms, ARRAY_COUNT(harms), check_the_slab);
 */
#ifndef PRAIRIE_TEST_UNIT_HARMS_H
#define PRAIRIE_TEST_UNIT_HARMS_H

#include "unit.h"

struct harm {
    const char *name;
    void (*act)(void);
};

#define HARM(function)      \
    {                       \
#function, function \
    }

/* What the child does: in variables, for a child's body has no arguments. */
static struct {
    void (*act)(void), (*walk)(void);
} harm_in_child;

static inline void harm_and_walk(void)
{
    if (harm_in_child.act != NULL) harm_in_child.act();
    harm_in_child.walk();
}

/* The walk aborts with a line that starts so. */
static inline void expect_harm_found(void (*act)(void), void (*walk)(void), const char *line_start)
{
    harm_in_child.act = act;
    harm_in_child.walk = walk;
    expect_abort(harm_and_walk, line_start);
}

/* And it is content without any. */
static inline void expect_harms_found(const struct harm *harms, size_t count, void (*walk)(void))
{
    harm_in_child.act = NULL;
    harm_in_child.walk = walk;
    expect_survival(harm_and_walk);
    for (size_t i = 0; i < count; i++) {
        print_message("%s\n", harms[i].name);
        expect_harm_found(harms[i].act, walk, "prairie: broken invariant: ");
    }
}

#endif
