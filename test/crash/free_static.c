/* expect: abort "prairie: free of a foreign pointer" */
/* free_static.c - static data is freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static char data[128] = { 1 };

int main(void)
{
    require_prairie();
    free(hidden(data));
    missed();
}
