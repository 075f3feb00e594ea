/* expect: abort "prairie: free of an interior pointer" flavours: checking
 * arguments: 1 8 16 32 63 */
/* free_interior.c - the inside of a small block is freed, which a checking flavour sees at once. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    char *block = malloc(64);
    free(hidden(block + number_argument(argc, argv)));
    missed();
}
