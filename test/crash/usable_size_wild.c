/* expect: abort "prairie: malloc_usable_size of a foreign pointer"
 * arguments: 0x1 0x10 0xdeadbeef 0x800000000000 0x8000000000000000 0xffff800000000000
 * 0xfffffffffffffff0 */
/* usable_size_wild.c - the size of nothing is asked for. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    if (malloc_usable_size((void *)number_argument(argc, argv)) > 0) missed();
    missed();
}
