/* shims.h - what the preloaded library of shims.c notes for the program of shims_main.c. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_SHIMS_H
#define PRAIRIE_TEST_SHIMS_H

enum { SHIM_CALLERS_MAX = 4096 };

/* Where the calls came from; more than there is room for are counted only. */
struct shim_calls {
    int count; /* atomic */
    const void *caller[SHIM_CALLERS_MAX];
    const char *name[SHIM_CALLERS_MAX];
};

#endif
