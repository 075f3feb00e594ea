/* expect: abort "prairie: malloc_usable_size of an interior pointer" arguments: 16 4096 */
/* usable_size_interior_large.c - the size of the inside of a large block is asked for. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    char *block = malloc(300000);
    if (malloc_usable_size(hidden(block + number_argument(argc, argv))) > 0) missed();
    missed();
}
