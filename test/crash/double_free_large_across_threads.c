/* expect: abort "prairie: double free" arguments: 20000 3000000 */
/* double_free_large_across_threads.c - another thread has freed the large block already. */
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
    pthread_t thread;
    void *block = malloc(number_argument(argc, argv));
    must(pthread_create(&thread, NULL, free_it, hidden(block)) == 0);
    must(pthread_join(thread, NULL) == 0);
    free(hidden(block));
    missed();
}
