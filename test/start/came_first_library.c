/* came_first_library.c - a library whose constructor starts a thread that holds a block until main
 * lets it go. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/blackbox.h"

#include <pthread.h>

static pthread_t first;
static pthread_barrier_t holds, ends;

static void *hold_a_block(void *unused)
{
    void *block = malloc(100);

    must(block != NULL);
    pthread_barrier_wait(&holds);
    pthread_barrier_wait(&ends);
    free(block);
    return unused;
}

__attribute__((constructor)) static void start(void)
{
    must(pthread_barrier_init(&holds, NULL, 2) == 0 && pthread_barrier_init(&ends, NULL, 2) == 0);
    must(pthread_create(&first, NULL, hold_a_block, NULL) == 0);
    pthread_barrier_wait(&holds);
}

void came_first_end(void)
{
    pthread_barrier_wait(&ends);
    must(pthread_join(first, NULL) == 0);
}
