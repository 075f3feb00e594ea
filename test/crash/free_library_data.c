/* expect: abort "prairie: free of a foreign pointer" */
/* free_library_data.c - data of the C library is freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(void)
{
    require_prairie();
    free(hidden(stdout));
    missed();
}
