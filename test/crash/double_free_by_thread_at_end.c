/* expect: abort "prairie: double free" arguments: 8 24 64 1000 14336 */
/* double_free_by_thread_at_end.c - main frees a block, a thread frees it again, and the program
 * ends. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static void *free_it(void *block)
{
    free(hidden(block));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    require_prairie();
    void *block = malloc(number_argument(argc, argv));
    free(block);
    must(pthread_create(&thread, NULL, free_it, hidden(block)) == 0);
    must(pthread_join(thread, NULL) == 0);
    return 0;
}
