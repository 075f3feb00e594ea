/* expect: abort "prairie: free of a foreign pointer" arguments: 0 1 8 16 100 */
/* free_stack.c - an address on the stack is freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    char local[256] __attribute__((aligned(64)));
    memset(local, 1, sizeof local);
    free((char *)hidden(local) + number_argument(argc, argv));
    missed();
}
