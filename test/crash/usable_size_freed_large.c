/* expect: abort "prairie: malloc_usable_size of a freed pointer" */
/* usable_size_freed_large.c - the size of a large block is asked for after it was freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(void)
{
    require_prairie();
    void *block = malloc(300000);
    free(block);
    if (malloc_usable_size(hidden(block)) > 0) missed();
    missed();
}
