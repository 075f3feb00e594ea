/* expect: abort "prairie: free of a foreign pointer" arguments: 0 16 4096 8191 */
/* free_mapped.c - memory from mmap is freed. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
    require_prairie();
    free(malloc(100));
    char *mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(mapped != MAP_FAILED);
    free(mapped + number_argument(argc, argv));
    missed();
}
