/* arenas.h - what the checks of arenas and their hooks share. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_CONTRACT_ARENAS_H
#define PRAIRIE_TEST_CONTRACT_ARENAS_H

#include "control.h"

#include <jemalloc/jemalloc.h>

static int (*control)(const char *, void *, size_t *, void *, size_t);
static void *(*take)(size_t, int);
static void (*give)(void *, int);

static inline void next_epoch(void)
{
    uint64_t epoch = 1;
    assert_int_equal(control("epoch", NULL, NULL, &epoch, sizeof epoch), 0);
}

static inline unsigned arena_of(void *block)
{
    unsigned index = 0xdead;
    size_t length = sizeof index;
    assert_int_equal(control("arenas.lookup", &index, &length, &block, sizeof block), 0);
    return index;
}

static inline const char *of_arena(unsigned index, const char *leaf)
{
    static char name[80];
    snprintf(name, sizeof name, "arena.%u.%s", index, leaf);
    return name;
}

static inline int call_arena(unsigned index, const char *leaf)
{
    return control(of_arena(index, leaf), NULL, NULL, NULL, 0);
}

static inline unsigned create_arena(void) { return read_unsigned("arenas.create"); }

static inline size_t stat(unsigned arena, const char *leaf)
{
    char name[80];

    snprintf(name, sizeof name, "stats.arenas.%u.%s", arena, leaf);
    next_epoch();
    return read_size(name);
}

static inline void arena_checks_begin(void)
{
    checks_begin();
    control =
        (int (*)(const char *, void *, size_t *, void *, size_t))dlsym(RTLD_DEFAULT, "mallctl");
    take = (void *(*)(size_t, int))dlsym(RTLD_DEFAULT, "mallocx");
    give = (void (*)(void *, int))dlsym(RTLD_DEFAULT, "dallocx");
    must(control != NULL && take != NULL && give != NULL);
}

#endif
