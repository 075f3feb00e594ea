/* expect: ok arguments: 0 8 64 1000 14336 14337 100000 */
/* ok_reuse.c - the same address is given out and taken back over and over, each time rightly. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    for (int i = 0; i < 20000; i++) {
        void *first = malloc(bytes);
        free(first);
        void *second = malloc(bytes);
        void *third = malloc(bytes);
        must(second != third);
        free(second);
        free(third);
    }
    crowd_take(bytes < 20000 ? bytes : 20000);
    crowd_free();
    crowd_take(bytes < 20000 ? bytes : 20000);
    for (int i = CROWD_COUNT - 1; i >= 0; i--) free(crowd_block[i]);
    malloc_trim(0);
    return 0;
}
