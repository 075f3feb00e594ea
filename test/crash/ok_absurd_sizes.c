/* expect: ok */
/* ok_absurd_sizes.c - overflowing sizes are refused, which is no misuse. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(void)
{
    require_prairie();
    size_t volatile most = SIZE_MAX;
    void *aligned = NULL;
    char *block = malloc(100);
    memset(block, 7, 100);
    for (size_t k = 0; k < 100; k++) {
        must(malloc(most - k) == NULL);
        must(calloc(most - k, 2) == NULL);
        must(realloc(block, most - k) == NULL);
        must(reallocarray(block, most - k, 3) == NULL);
        must(aligned_alloc(4096, most - k) == NULL);
        must(posix_memalign(&aligned, 64, most - k) == ENOMEM);
        must(memalign(64, most - k) == NULL);
    }
    for (int i = 0; i < 100; i++) must(block[i] == 7);
    free(block);
    return 0;
}
