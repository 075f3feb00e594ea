/* expect: abort "prairie: double free" arguments: 64 100000 */
/* handler_allocates.c - a SIGABRT handler that uses the heap must find no lock held. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static void handler(int signal)
{
    (void)signal;
    for (size_t bytes = 1; bytes < 1 << 20; bytes *= 2) {
        void *block[40];
        for (int i = 0; i < 40; i++) block[i] = malloc(bytes);
        for (int i = 0; i < 40; i++) free(block[i]);
    }
}

int main(int argc, char **argv)
{
    require_prairie();
    size_t bytes = number_argument(argc, argv);
    if (bytes < 10000) crowd_take(bytes);
    signal(SIGABRT, handler);
    void *block = malloc(bytes);
    free(block);
    free(hidden(block));
    crowd_drain();
    missed();
}
