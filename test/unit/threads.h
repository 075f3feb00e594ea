/* threads.h - for tests that run one thread after another. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_UNIT_THREADS_H
#define PRAIRIE_TEST_UNIT_THREADS_H

#include "unit.h"

#include <pthread.h>

/* A new thread, to its end. */
static inline void run_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, body, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

#endif
