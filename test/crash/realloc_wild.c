/* expect: abort "prairie: realloc of a foreign pointer"
 * arguments: 0x1 0x10 0xdeadbeef 0x800000000000 0x8000000000000000 0xffff800000000000
 * 0xfffffffffffffff0 */
/* realloc_wild.c - addresses that nothing can have are given to realloc. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    void *moved = realloc((void *)number_argument(argc, argv), 100);
    must(moved != NULL);
    missed();
}
