/* expect: abort "prairie: " */
/* realloc_foreign_to_zero.c - an address on the stack is freed by way of realloc. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(void)
{
    require_prairie();
    char local[64];
    memset(local, 1, sizeof local);
    if (realloc(hidden(local), 0) == NULL) missed();
    missed();
}
