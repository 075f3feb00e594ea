/* expect: abort "prairie: double free" flavours: plain */
/* double_free_in_background.c - a block is freed twice, and the background thread, which has a
 * table of descriptors of its own, finds it twice in full magazines. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

/* More than a thread keeps, and less than a depot. */
enum { BLOCKS = 127 * 12, LARGE = 40, LARGE_BYTES = 200000 };

static pthread_barrier_t barrier;

static void *stay(void *unused)
{
    free(malloc(10));
    pthread_barrier_wait(&barrier);
    sleep(60);
    return unused;
}

int main(void)
{
    static void *block[BLOCKS], *large[LARGE];
    pthread_t thread;
    require_prairie();
    must(pthread_barrier_init(&barrier, NULL, 2) == 0);
    must(pthread_create(&thread, NULL, stay, NULL) == 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < BLOCKS; i++) must((block[i] = malloc(64)) != NULL);
    for (int i = 0; i < BLOCKS; i++) {
        free(block[i]);
        if (i == BLOCKS / 3) free(hidden(block[0]));
    }
    /* Dirty pages bring the background thread; nobody else drains anything. */
    for (int i = 0; i < LARGE; i++) memset(large[i] = malloc(LARGE_BYTES), 1, LARGE_BYTES);
    for (int i = 0; i < LARGE; i++) free(large[i]);
    sleep_ms(12000);
    missed();
}
