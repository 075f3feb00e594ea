/* expect: abort "prairie: free of a foreign pointer" */
/* free_literal.c - a string literal is freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(void)
{
    require_prairie();
    free(hidden("a string literal"));
    missed();
}
