/* holder.h - a thread that holds an arena's lock until it is told to let go. */
/* SPDX-License-Identifier: MIT */
/*
 * Include it after library.h.
 */
#ifndef PRAIRIE_TEST_UNIT_HOLDER_H
#define PRAIRIE_TEST_UNIT_HOLDER_H

#include "unit.h"

#include <pthread.h>

static uint32_t held, release; /* atomic */

static inline void *hold_arena(void *arena)
{
    lock_take(&((struct arena *)arena)->lock);
    __atomic_store_n(&held, 1, __ATOMIC_RELEASE);
    wait_until_set(&release);
    lock_give(&((struct arena *)arena)->lock);
    return NULL;
}

static inline pthread_t holder_of(struct arena *arena)
{
    pthread_t thread;

    held = release = 0;
    assert_int_equal(pthread_create(&thread, NULL, hold_arena, arena), 0);
    wait_until_set(&held);
    return thread;
}

static inline void let_go(pthread_t thread)
{
    __atomic_store_n(&release, 1, __ATOMIC_RELEASE);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

#endif
