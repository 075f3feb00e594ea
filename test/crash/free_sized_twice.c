/* expect: abort "prairie: double free" arguments: 24 1000 14336 50000 */
/* free_sized_twice.c - free_sized gives the same block back twice. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    must(sized != NULL);
    if (bytes <= 14336) crowd_take(bytes);
    void *block = malloc(bytes);
    sized(block, bytes);
    sized(hidden(block), bytes);
    crowd_drain();
    missed();
}
