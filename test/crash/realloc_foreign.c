/* expect: abort "prairie: realloc of a foreign pointer" arguments: 1 100 100000 */
/* realloc_foreign.c - an address on the stack is given to realloc. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    char local[64];
    memset(local, 1, sizeof local);
    void *moved = realloc(hidden(local), number_argument(argc, argv));
    must(moved != NULL);
    missed();
}
