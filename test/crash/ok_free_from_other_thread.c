/* expect: ok arguments: 8 64 1000 14336 20000 */
/* ok_free_from_other_thread.c - blocks of a live thread and of a dead one are freed elsewhere. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"

static size_t bytes;

static void *take_all(void *unused)
{
    crowd_take(bytes);
    return unused;
}

static void *give_all(void *unused)
{
    crowd_free();
    return unused;
}

int main(int argc, char **argv)
{
    require_prairie();
    bytes = number_argument(argc, argv);
    void *(*step[])(void *) = { take_all, give_all };
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 2; i++) {
            pthread_t thread;
            /* By turns: taken here and given there, both there, taken there and given here. */
            if ((round + i) % 3 == 0) {
                step[i](NULL);
                continue;
            }
            must(pthread_create(&thread, NULL, step[i], NULL) == 0);
            must(pthread_join(thread, NULL) == 0);
        }
    }
    malloc_trim(0);
    return 0;
}
