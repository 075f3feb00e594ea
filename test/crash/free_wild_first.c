/* expect: abort "prairie: free of a foreign pointer" arguments: 0x10 0x5555 0x8000000000000000 */
/* free_wild_first.c - a wild pointer is the first thing that a fresh thread has to do with the
 * heap. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static void *free_it(void *pointer)
{
    free(pointer);
    return NULL;
}

int main(int argc, char **argv)
{
    require_prairie();
    pthread_t thread;
    must(pthread_create(&thread, NULL, free_it, (void *)number_argument(argc, argv)) == 0);
    must(pthread_join(thread, NULL) == 0);
    missed();
}
