/* expect: abort "prairie: free of a foreign pointer" */
/* cfree_foreign.c - the old name of free refuses the same. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(void)
{
    require_prairie();
    char local[64];
    memset(local, 1, sizeof local);
    void (*old_free)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "cfree");
    must(old_free != NULL);
    old_free(local);
    missed();
}
