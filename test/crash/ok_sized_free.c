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
    must(sized != NULL && aligned != NULL);
    for (size_t bytes = 0; bytes < 70000; bytes += bytes < 2000 ? 1 : 97) {
        sized(malloc(bytes), bytes);
        sized(calloc(1, bytes), bytes);
        sized(realloc(malloc(10), bytes + 1), bytes + 1);
    }
    for (size_t align = 8; align <= 1 << 20; align *= 2)
        for (size_t bytes = 0; bytes < 3 * align; bytes += align / 4 + 1)
            aligned(aligned_alloc(align, bytes), align, bytes);
    return 0;
}
