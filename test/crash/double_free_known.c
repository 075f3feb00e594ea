/* expect: abort "prairie: double free" flavours: checking arguments: 24 64 1000 14336 */
/* double_free_known.c - long after the first free, with no further call, a checking flavour
 * sees the second at once. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    void *block = malloc(bytes);
    crowd_take(bytes);
    free(block);
    crowd_free();
    free(hidden(block));
    missed();
}
