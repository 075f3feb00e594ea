/* expect: abort "prairie: double free" arguments: 100 50000 */
/* double_free_after_realloc_to_zero.c - realloc(p, 0) has freed the block already. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    if (bytes < 10000) crowd_take(bytes);
    void *block = malloc(bytes);
    must(realloc(block, 0) == NULL);
    free(hidden(block));
    crowd_drain();
    missed();
}
