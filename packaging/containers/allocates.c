/* allocates.c - what runs in the image: it takes and gives back some blocks. */
/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

int main(void)
{
    char *volatile blocks[100];

    for (int i = 0; i < 100; i++) {
        blocks[i] = malloc((size_t)1 << (i % 20));
        if (blocks[i] == NULL) return 1;
        memset(blocks[i], i, (size_t)1 << (i % 20));
    }
    for (int i = 0; i < 100; i++) free(blocks[i]);
    return 0;
}
