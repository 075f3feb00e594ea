/* beside.h - a second thread that sleeps: a process with it is one of several threads.
 * SPDX-License-Identifier: MIT
 *
 * The C library and some allocators leave locks out while they are sure that there is one
 * thread. */
#ifndef PRAIRIE_LAB_BESIDE_H
#define PRAIRIE_LAB_BESIDE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

struct beside {
    pthread_t thread;
    sem_t ready, over;
};

static void *sleep_beside(void *argument)
{
    struct beside *beside = argument;

    sem_post(&beside->ready);
    while (sem_wait(&beside->over) != 0) {}
    return NULL;
}

/* Returns when the thread sleeps, or is a few instructions from it. */
static inline void beside_start(struct beside *beside)
{
    if (sem_init(&beside->ready, 0, 0) != 0 || sem_init(&beside->over, 0, 0) != 0
        || pthread_create(&beside->thread, NULL, sleep_beside, beside) != 0)
        abort();
    while (sem_wait(&beside->ready) != 0) {}
    usleep(20 * 1000);
}

static inline void beside_end(struct beside *beside)
{
    sem_post(&beside->over);
    pthread_join(beside->thread, NULL);
}

#endif
