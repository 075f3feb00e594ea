/* lives.h - three whole lives, for a sweep that refuses kernel calls meanwhile. */
/* SPDX-License-Identifier: MIT */
/*
 * A life is a process of its own, in which prairie starts. What it tells of itself lies in memory
 * that it shares with the sweep.
 *
 *      threads    three threads that hand blocks to each other and die, a fork, time that passes:
 *                 random sizes, mostly small; every block has an oracle's pattern
 *      large      blocks from 14 KiB to 64 GiB that grow and shrink, page by page given back
 *      services   calloc and aligned blocks, manual arenas, explicit caches, the reserve and its
 *                 callbacks, limits, samples, guarded blocks, statistics, the background thread
 */
#ifndef PRAIRIE_TEST_FAULT_LIVES_H
#define PRAIRIE_TEST_FAULT_LIVES_H

#include <stdbool.h>
#include <stdint.h>

struct account {
    uint64_t seen, refused;      /* kernel calls of the rule */
    uint64_t requests;           /* that got no memory */
    uint64_t walks;              /* of everything that prairie knows */
    long resident_kb, mapped_kb; /* at the end, when all is given back */
    bool ended;
};

struct life {
    const char *name;
    const char *options;
    long
        left_kb; /* more than that is not left in memory after a life in which calls were refused */
    void (*live)(uint64_t seed);
    void (*give_back)(void); /* all that it still has */
};

extern bool lives_are_hardened;

enum { LIFE_COUNT = 3 };
extern const struct life lives[LIFE_COUNT];

/* Lives, goes on when nothing is refused any more, gives all back, and ends the process. */
_Noreturn void live_whole_life(const struct life *life, uint64_t seed, struct account *account);

#endif
