/* expect: abort "prairie: double free" arguments: 14337 20000 100000 1048576 67108864 */
/* double_free_large.c - a large block is freed twice. */
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
