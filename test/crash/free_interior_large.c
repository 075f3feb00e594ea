/* expect: abort "prairie: free of an interior pointer"
 * arguments: 1 8 16 4095 4096 8192 16384 19999 */
/* free_interior_large.c - the inside of a large block is freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    char *block = malloc(20000);
    free(hidden(block + number_argument(argc, argv)));
    missed();
}
