/* expect: abort "prairie: wrong size" flavours: checking
 * arguments: 64:4096 64:1 4096:64 24:100000 100000:24 100000:200000 */
/* free_sized_wrong.c - free_sized is told another size than the block has. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    char *colon = argv[1];
    size_t bytes = strtoull(argv[1], &colon, 10);
    void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    must(sized != NULL && *colon == ':');
    sized(malloc(bytes), strtoull(colon + 1, NULL, 10));
    missed();
}
