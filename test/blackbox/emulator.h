/* emulator.h - how many times slower than the processor an emulator is that a test runs on. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_EMULATOR_H
#define PRAIRIE_TEST_EMULATOR_H

#include <stdlib.h>

/* PRAIRIE_TEST_SLOWER; 1: there is none. */
static inline unsigned times_slower(void)
{
    const char *given = getenv("PRAIRIE_TEST_SLOWER");

    return given != NULL && given[0] != '\0' ? (unsigned)strtoul(given, NULL, 10) : 1;
}

#endif
