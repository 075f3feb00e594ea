/* expect: abort "prairie: double free" arguments: 24 64 1000 14336 */
/* double_free_across_live_threads.c - two threads free the same small block, and crowds of
 * others. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static pthread_barrier_t barrier;
static void *block;

static void *free_it(void *half)
{
    pthread_barrier_wait(&barrier);
    free(hidden(block));
    for (size_t i = (size_t)half; i < CROWD_COUNT; i += 2) free(crowd_block[i]);
    return NULL;
}

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    pthread_t thread[2];
    pthread_barrier_init(&barrier, NULL, 2);
    crowd_take(bytes);
    block = malloc(bytes);
    for (size_t i = 0; i < 2; i++) must(pthread_create(&thread[i], NULL, free_it, (void *)i) == 0);
    for (size_t i = 0; i < 2; i++) must(pthread_join(thread[i], NULL) == 0);
    malloc_trim(0);
    missed();
}
