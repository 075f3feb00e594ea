/* expect: abort "prairie: " arguments: 1 8 16 64 4096 */
/* free_before.c - an address before a large block is freed, as if a header lay there. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    void *other = malloc(50000);
    char *block = malloc(50000);
    free(hidden(block - number_argument(argc, argv)));
    free(other);
    missed();
}
