/* expect: abort "prairie: wrong size in sized delete" flavours: plain arguments: 64:4096 4096:64 24:1000 100000:24 */
/* free_sized_wrong_at_full.c - a block is freed again and again, as one of another size; the free
 * that finds the magazine of that size full tells. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    char *colon = argv[1];
    void *block = malloc(strtoull(argv[1], &colon, 10));
    void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    must(sized != NULL && *colon == ':');
    size_t told = strtoull(colon + 1, NULL, 10);
    free(malloc(told)); /* there is room in that magazine at first */
    for (int i = 0; i < 300; i++) sized(hidden(block), told);
    missed();
}
