/* expect: abort "prairie: double free" arguments: 24 64 1000 14336 */
/* double_free_across_threads.c - a thread that is gone has freed the small block already. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static void *free_it(void *block)
{
    free(block);
    return NULL;
}

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    pthread_t thread;
    crowd_take(bytes);
    void *block = malloc(bytes);
    must(pthread_create(&thread, NULL, free_it, hidden(block)) == 0);
    must(pthread_join(thread, NULL) == 0);
    free(hidden(block));
    crowd_drain();
    missed();
}
