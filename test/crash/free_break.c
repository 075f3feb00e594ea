/* expect: abort "prairie: free of a foreign pointer" */
/* free_break.c - memory from sbrk is freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(void)
{
    require_prairie();
    char *mine = sbrk(8192);
    must(mine != (char *)-1);
    free(hidden(mine + 64));
    missed();
}
