/* expect: abort "prairie: free of a foreign pointer" */
/* free_code.c - a function is freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(void)
{
    require_prairie();
    free(hidden((const void *)(uintptr_t)main));
    missed();
}
