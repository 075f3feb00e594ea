/* expect: ok */
/* ok_sized_free.c - sized ways to give back, each with the size that was asked for. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(void)
{
    require_prairie();
    void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    void (*aligned)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    void (*flagged)(void *, size_t, int) =
        (void (*)(void *, size_t, int))dlsym(RTLD_DEFAULT, "sdallocx");
    must(sized != NULL && aligned != NULL && flagged != NULL);
    for (size_t bytes = 0; bytes < 70000; bytes += bytes < 2000 ? 1 : 97) {
        sized(malloc(bytes), bytes);
        sized(calloc(1, bytes), bytes);
        sized(realloc(malloc(10), bytes + 1), bytes + 1);
        sized(realloc(malloc(80000), bytes + 1), bytes + 1);
        flagged(malloc(bytes), bytes, 0);
        char *block = malloc(bytes + 1); /* any size from the one asked for to the usable one */
        size_t usable = malloc_usable_size(block);
        flagged(block, bytes % 3 == 0 ? usable : (bytes + 1 + usable) / 2, 0);
    }
    sized(NULL, 100000);
    flagged(NULL, 100000, 0);
    for (size_t align = 8; align <= 1 << 20; align *= 2)
        for (size_t bytes = 0; bytes < 3 * align; bytes += align / 4 + 1)
            aligned(aligned_alloc(align, bytes), align, bytes);
    return 0;
}
