/* expect: abort "prairie: free of a foreign pointer"
 * arguments: 0x20000000 0x400000000 0x1000000000 0x4000000000 */
/* free_beyond.c - far behind a block, where the heap may have reserved addresses but never used
 * them. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    char *block = malloc(100);
    free(hidden(block + number_argument(argc, argv)));
    missed();
}
