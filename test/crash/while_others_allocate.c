/* expect: abort "prairie: double free" */
/* while_others_allocate.c - three threads are busy in the heap when a double free is found. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

/* Sizes of many classes, but none of the class that is misused. */
static void *allocate(void *unused)
{
    for (;;) {
        void *block[200];
        for (int i = 0; i < 200; i++) block[i] = malloc((size_t)(100 + i * 211 % 30000));
        for (int i = 0; i < 200; i++) free(block[i]);
    }
    return unused;
}

int main(void)
{
    require_prairie();
    pthread_t thread;
    for (int i = 0; i < 3; i++) must(pthread_create(&thread, NULL, allocate, NULL) == 0);
    crowd_take(64);
    sleep_ms(20);
    void *block = malloc(64);
    free(block);
    free(hidden(block));
    crowd_drain();
    missed();
}
