/* expect: abort "prairie: double free" arguments: 20000 300000 */
/* double_free_large_merged.c - the block has become the middle of a longer free run when it is
 * freed again. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    char *block[3];
    for (int i = 0; i < 3; i++) block[i] = malloc(bytes);
    free(block[0]);
    free(block[2]);
    free(block[1]);
    free(hidden(block[1]));
    missed();
}
