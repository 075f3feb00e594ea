/* expect: abort "prairie: realloc of a foreign pointer" */
/* reallocarray_foreign.c - static data is given to reallocarray. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static char data[64] = { 1 };

int main(void)
{
    require_prairie();
    void *moved = reallocarray(hidden(data), 10, 20);
    must(moved != NULL);
    missed();
}
