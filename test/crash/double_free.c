/* expect: abort "prairie: double free" flavours: checking arguments: 0 8 24 64 1000 4096 14336 */
/* double_free.c - a small block is freed twice in a row. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    void *block = malloc(number_argument(argc, argv));
    free(block);
    free(hidden(block));
    missed();
}
