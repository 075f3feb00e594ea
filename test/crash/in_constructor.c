/* expect: abort "prairie: free of an interior pointer" */
/* in_constructor.c - the misuse happens before main. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

__attribute__((constructor(101))) static void early(void)
{
    require_prairie();
    char *block = malloc(50000);
    free(hidden(block + 4096));
    missed();
}

int main(void) { missed(); }
