/* expect: abort "prairie: wrong size in sized delete" flavours: plain check audit-tiny hardened
 * arguments: free:100000:50000 free:100000:5000 free:20000:200000 free:24:100000 free:100000:0
 *            free:24:0 free:5000:0 sdallocx:100000:50000 sdallocx:4000:2000 sdallocx:100000:0 sdallocx:24:0
 *            sdallocx:24:100000 */
/* sized_wrong_large.c - a sized free is told a wrong size that no table of small ones knows. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static void (*give_sized)(void *, size_t);
static void (*give_flagged)(void *, size_t, int);

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    char *colon = strchr(argv[1], ':');
    must(colon != NULL);
    char *block = malloc(strtoull(colon + 1, &colon, 10));
    must(block != NULL && *colon == ':');
    size_t told = strtoull(colon + 1, NULL, 10);
    give_sized = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    give_flagged = (void (*)(void *, size_t, int))dlsym(RTLD_DEFAULT, "sdallocx");
    must(give_sized != NULL && give_flagged != NULL);
    if (argv[1][0] == 'f') give_sized(hidden(block), told);
    else give_flagged(hidden(block), told, 0);
    missed();
}
