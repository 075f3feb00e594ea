/* expect: abort "prairie: double free" arguments: 8 24 64 1000 4096 14336 */
/* double_free_at_end.c - a block is freed twice where the thread's magazine has room for both, and
 * the program ends. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    enum { FEW = 10 };
    void *block[FEW];

    require_prairie();
    size_t bytes = number_argument(argc, argv);
    crowd_take(bytes);
    crowd_free();
    for (int i = 0; i < FEW; i++) {
        block[i] = malloc(bytes);
        must(block[i] != NULL);
    }
    free(block[0]);
    free(block[1]);
    free(hidden(block[0]));
    return 0;
}
