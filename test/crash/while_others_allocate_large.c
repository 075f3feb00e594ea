/* expect: abort "prairie: free of an interior pointer" */
/* while_others_allocate_large.c - three threads are busy with large blocks when a misuse is
 * found. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static void *allocate(void *unused)
{
    for (;;) {
        void *block[20];
        for (int i = 0; i < 20; i++) block[i] = malloc((size_t)(20000 + i * 2111));
        for (int i = 0; i < 20; i++) free(block[i]);
    }
    return unused;
}

int main(void)
{
    require_prairie();
    pthread_t thread;
    for (int i = 0; i < 3; i++) must(pthread_create(&thread, NULL, allocate, NULL) == 0);
    sleep_ms(20);
    char *block = malloc(60000);
    free(hidden(block + 4096));
    missed();
}
