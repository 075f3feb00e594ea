/* expect: abort "prairie: malloc_usable_size of a foreign pointer" */
/* usable_size_foreign.c - the size of something on the stack is asked for. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(void)
{
    require_prairie();
    char local[64];
    memset(local, 1, sizeof local);
    if (malloc_usable_size(hidden(local)) > 0) missed();
    missed();
}
