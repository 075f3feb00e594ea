/* expect: abort "prairie: free of an interior pointer" arguments: 24 64 1000 4096 14336 */
/* free_interior_at_end.c - the inside of a block is freed where the thread's magazine has room, and
 * the program ends. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    crowd_take(bytes);
    crowd_free();
    char *block = malloc(bytes), *other = malloc(bytes);
    must(block != NULL && other != NULL);
    free((char *)hidden(block) + 8);
    return 0;
}
