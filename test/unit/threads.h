/* threads.h - for tests that run one thread after another, or beside one that does nothing. */
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

static uint32_t bystander_stands, bystander_may_end; /* atomic */

static inline void *stand_by(void *unused)
{
    prairie_free(prairie_malloc(1));
    __atomic_store_n(&bystander_stands, 1, __ATOMIC_RELEASE);
    wait_until_set(&bystander_may_end);
    return unused;
}

/* A second thread with a cache, which does no more than live. */
static inline pthread_t begin_bystander(void)
{
    pthread_t thread;

    RELAXED_STORE(bystander_stands, 0);
    RELAXED_STORE(bystander_may_end, 0);
    prairie_free(prairie_malloc(1));
    assert_int_equal(pthread_create(&thread, NULL, stand_by, NULL), 0);
    wait_until_set(&bystander_stands);
    assert_int_equal(inside_threads_with_caches(), 2);
    return thread;
}

static inline void end_bystander(pthread_t thread)
{
    RELAXED_STORE(bystander_may_end, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

#endif
