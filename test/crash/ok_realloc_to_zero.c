/* expect: ok arguments: 1 64 14336 14337 1000000 */
/* ok_realloc_to_zero.c - realloc to nothing frees, and realloc of nothing takes. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    for (int i = 0; i < 2000; i++) {
        void *block = realloc(NULL, bytes);
        must(block != NULL);
        must(realloc(block, 0) == NULL);
    }
    void *nothing = realloc(NULL, 0);
    must(nothing != NULL);
    free(nothing);
    return 0;
}
