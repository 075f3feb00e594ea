/* expect: abort "prairie: free of a foreign pointer" flavours: checking
 * arguments: 8 64 14336 100000 */
/* free_sized_foreign.c - an address on the stack is freed with a size that looks right. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    char local[64];
    memset(local, 1, sizeof local);
    void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    must(sized != NULL);
    sized(hidden(local), number_argument(argc, argv));
    missed();
}
