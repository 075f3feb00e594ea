/* expect: abort "prairie: double free" flavours: plain arguments: 8 24 64 1000 14336 */
/* double_free_at_full.c - a block is freed again and again; the free that finds the thread's
 * magazine full tells. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    void *block = malloc(number_argument(argc, argv));
    for (int i = 0; i < 300; i++) free(hidden(block));
    missed();
}
