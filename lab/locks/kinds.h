/* kinds.h - the locks that compete, each as a struct with three functions: make, take, give.
 * SPDX-License-Identifier: MIT
 *
 * prairie   the library's own (src/base/lock.h): three states, sleeps in the kernel, counts
 * sleeper   the same, told not to spin before it sleeps
 * bare      the lighter mutex of the mail: the three states of Drepper's paper and nothing else
 * normal    the C library's mutex as it is
 * adaptive  the C library's mutex that spins first; jemalloc's on Linux
 * spin      test, then exchange, then pause; never sleeps
 * none      no lock at all: what the loop itself costs
 */
#ifndef PRAIRIE_LAB_LOCK_KINDS_H
#define PRAIRIE_LAB_LOCK_KINDS_H

#include "../../src/base/lock.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

union any_lock {
    struct lock prairie;
    uint32_t word;
    pthread_mutex_t mutex;
};

/* ---- prairie and sleeper ---- */

static void prairie_make(union any_lock *lock) { lock_init(&lock->prairie, LOCK_META); }
static void sleeper_make(union any_lock *lock)
{
    lock_init(&lock->prairie, LOCK_META);
    lock_set_spin(0);
}
INLINE void prairie_take(union any_lock *lock) { lock_take(&lock->prairie); }
INLINE void prairie_give(union any_lock *lock) { lock_give(&lock->prairie); }

/* ---- bare ---- */

enum { BARE_FREE, BARE_HELD, BARE_HELD_WITH_SLEEPERS };

static void word_make(union any_lock *lock) { lock->word = BARE_FREE; }

static NOINLINE void bare_sleep(union any_lock *lock, uint32_t found)
{
    if (found != BARE_HELD_WITH_SLEEPERS)
        found = __atomic_exchange_n(&lock->word, BARE_HELD_WITH_SLEEPERS, __ATOMIC_ACQUIRE);
    while (found != BARE_FREE) {
        syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, BARE_HELD_WITH_SLEEPERS, NULL);
        found = __atomic_exchange_n(&lock->word, BARE_HELD_WITH_SLEEPERS, __ATOMIC_ACQUIRE);
    }
}

static NOINLINE void bare_wake(union any_lock *lock)
{
    __atomic_store_n(&lock->word, BARE_FREE, __ATOMIC_RELEASE);
    syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1);
}

INLINE void bare_take(union any_lock *lock)
{
    uint32_t found = BARE_FREE;

    if (unlikely(!__atomic_compare_exchange_n(&lock->word, &found, BARE_HELD, false,
                                              __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        bare_sleep(lock, found);
}

INLINE void bare_give(union any_lock *lock)
{
    if (unlikely(__atomic_sub_fetch(&lock->word, 1, __ATOMIC_RELEASE) != BARE_FREE))
        bare_wake(lock);
}

/* ---- the C library's ---- */

static void normal_make(union any_lock *lock)
{
    if (pthread_mutex_init(&lock->mutex, NULL) != 0) abort();
}

static void adaptive_make(union any_lock *lock)
{
    pthread_mutexattr_t attr;

    if (pthread_mutexattr_init(&attr) != 0
        || pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP) != 0
        || pthread_mutex_init(&lock->mutex, &attr) != 0)
        abort();
}

INLINE void mutex_take(union any_lock *lock) { (void)pthread_mutex_lock(&lock->mutex); }
INLINE void mutex_give(union any_lock *lock) { (void)pthread_mutex_unlock(&lock->mutex); }

/* ---- spin ---- */

INLINE void spin_take(union any_lock *lock)
{
    while (__atomic_exchange_n(&lock->word, 1, __ATOMIC_ACQUIRE) != 0)
        while (__atomic_load_n(&lock->word, __ATOMIC_RELAXED) != 0) cpu_relax();
}

INLINE void spin_give(union any_lock *lock) { __atomic_store_n(&lock->word, 0, __ATOMIC_RELEASE); }

/* ---- none ---- */

INLINE void none_take(union any_lock *lock) { __asm__ volatile("" : : "r"(lock) : "memory"); }
INLINE void none_give(union any_lock *lock) { __asm__ volatile("" : : "r"(lock) : "memory"); }

#endif
