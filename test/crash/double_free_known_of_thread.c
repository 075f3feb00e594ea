/* expect: abort "prairie: double free" flavours: checking arguments: 24 64 1000 14336 */
/* double_free_known_of_thread.c - a live thread holds the freed block; a checking flavour sees
 * the second free at once. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static pthread_barrier_t freed;

static void *free_and_wait(void *block)
{
    free(block);
    pthread_barrier_wait(&freed);
    for (;;) pause();
    return NULL;
}

int main(int argc, char **argv)
{
    require_prairie();
    pthread_t thread;
    pthread_barrier_init(&freed, NULL, 2);
    void *block = malloc(number_argument(argc, argv));
    must(pthread_create(&thread, NULL, free_and_wait, hidden(block)) == 0);
    pthread_barrier_wait(&freed);
    free(hidden(block));
    missed();
}
