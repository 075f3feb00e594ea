/* expect: abort "prairie: double free" */
/* in_exit_handler.c - the misuse happens after main has returned. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static void *block;

static void handler(void)
{
    free(block);
    free(hidden(block));
    missed();
}

int main(void)
{
    require_prairie();
    block = malloc(50000);
    return atexit(handler);
}
