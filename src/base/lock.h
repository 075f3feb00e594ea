/* lock.h - a mutex of one word that sleeps in the kernel, and counts how often it had to.
 *
 * Three states after Drepper's futex paper: free, held, held with sleepers. Taking a free lock is
 * one compare-and-swap and giving it one subtraction; only a lock with sleepers costs a system
 * call. A contended taker spins for a short while first, unless the process has one core.
 *
 * A fork takes all locks and marks them: the forking thread passes through marked locks, because
 * other handlers of the same fork may allocate; all others wait.
 *
 * The ranks below are the order: a thread may take a lock only when every lock it holds has a lower
 * rank (equal for arenas and page heaps, which fork takes by index). The check flavours abort when
 * it is broken.
 *
 * Before all of them stand the C library's: a thread may hold any of those when it comes here, as
 * getline holds a file's, and calls nothing that takes one while it holds a lock of ours. So a
 * fork, which waits for the lock of the C library's list of files, takes that one first
 * (os_fork_begins).
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_BASE_LOCK_H
#define PRAIRIE_BASE_LOCK_H

#include "attrs.h"
#include "check.h"

/* None is 0, so that locks which are there before any call are no zeroed data (heap/start.c). */
enum lock_rank {
    LOCK_CONTROL = 1,     /* the control tree's snapshot and names */
    LOCK_START,           /* the first call of the process */
    LOCK_THREADS,         /* the list of thread caches */
    LOCK_EXPLICIT_CACHES, /* the table of explicit caches */
    LOCK_DECAY,           /* the background thread's life */
    LOCK_NOTIFY,          /* who is called when memory runs short */
    LOCK_MAKING,          /* the making of arenas */
    LOCK_ARENA,           /* one per arena: its slabs and its depot */
    LOCK_RESERVE,         /* the pages of the reserve */
    LOCK_LIMITS,          /* what is known of limits */
    LOCK_PAGE_HEAP,       /* page heaps, the page map */
    LOCK_SPACE,           /* regions, page numbers that are given, and foreign extents */
    LOCK_GUARDED,         /* the pool of guarded blocks */
    LOCK_SAMPLES,         /* the table of samples */
    LOCK_META,            /* prairie's own records */
    LOCK_RANK_COUNT
};

/* Giving counts the state down by one; only from LOCK_HELD does that lead to LOCK_FREE. */
enum { LOCK_FREE, LOCK_HELD, LOCK_HELD_WITH_SLEEPERS, LOCK_FORKING = 16 };

struct lock {
    uint32_t state;                /* atomic; partner of itself */
    uint32_t rank;                 /* constant after lock_init */
    uint64_t taken;                /* written by the holder */
    uint64_t contended;            /* written by the holder: takes that found it held */
    uint64_t waits;                /* written by the holder: takes that slept at least once */
    uint64_t wait_ns;              /* written by the holder: how long those slept */
    uint64_t wait_ns_max;          /* written by the holder: the longest of them */
    ON_ONE_LINE uint64_t sleepers; /* atomic: takers that sleep, or are about to */
    uint64_t sleepers_max;         /* written by the holder: at once */
};

/* What a lock counted, as of a moment ago, while its holder counts: every take that waited was
 * contended, and every contended one is among all of them. Or the sum of several locks, the last
 * two the largest. */
struct lock_numbers {
    uint64_t taken, contended, waits, spins; /* of the contended ones, slept for, and not */
    uint64_t wait_ns, wait_ns_max, sleepers_max;
};

/* A fork, and a walk over everything, take all locks in the order of their ranks and give them in
 * the reverse one (heap/start.c). */
enum lock_walk { WALK_TAKES, WALK_GIVES };

void lock_init(struct lock *lock, enum lock_rank rank);
NOINLINE void lock_take_contended(struct lock *lock);
/* The rest of giving, after lock_give_unless_contended said no. */
NOINLINE void lock_give_contended(struct lock *lock);
/* The three of a fork: take and mark; give in the parent; make free in the child, where nobody
 * sleeps. */
void lock_take_for_fork(struct lock *lock);
void lock_give_after_fork(struct lock *lock);
void lock_remake(struct lock *lock);
/* Called when all are taken, and before the first is given or remade, by the thread that forks. */
void lock_fork_begins(void);
void lock_fork_ends(void);
struct lock_numbers lock_numbers(const struct lock *lock);
INLINE void lock_numbers_add(struct lock_numbers *sum, struct lock_numbers part)
{
    sum->taken += part.taken;
    sum->contended += part.contended;
    sum->waits += part.waits;
    sum->spins += part.spins;
    sum->wait_ns += part.wait_ns;
    if (part.wait_ns_max > sum->wait_ns_max) sum->wait_ns_max = part.wait_ns_max;
    if (part.sleepers_max > sum->sleepers_max) sum->sleepers_max = part.sleepers_max;
}
/* This thread is between the two. */
bool lock_fork_is_mine(void);
/* Counts anew; the caller holds it. */
void lock_forget_numbers(struct lock *lock);
/* How many pauses a taker spins before it sleeps; 0 with one core. */
void lock_set_spin(unsigned pauses);

#if defined(PRAIRIE_CHECK) && PRAIRIE_CHECK >= 1
void lock_witness_take(const struct lock *lock);
void lock_witness_give(const struct lock *lock);
bool lock_is_mine(const struct lock *lock);
/* The same, but no where it cannot be told: only so many locks of a thread are noted. */
bool lock_is_surely_mine(const struct lock *lock);
#else
INLINE void lock_witness_take(const struct lock *lock) { (void)lock; }
INLINE void lock_witness_give(const struct lock *lock) { (void)lock; }
INLINE bool lock_is_mine(const struct lock *lock)
{
    (void)lock;
    return true;
}
INLINE bool lock_is_surely_mine(const struct lock *lock)
{
    (void)lock;
    return false;
}
#endif

/* For code that may have interrupted a thread which holds any locks: takes the lock if it is free.
 * No rank is checked and nothing is counted. False: it is taken. Given back with
 * lock_give_anywhere. */
INLINE bool lock_try_anywhere(struct lock *lock)
{
    uint32_t expected = LOCK_FREE;

    return __atomic_compare_exchange_n(&lock->state, &expected, LOCK_HELD, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

INLINE bool lock_try(struct lock *lock)
{
    if (!lock_try_anywhere(lock)) return false;
    lock->taken++;
    lock_witness_take(lock);
    return true;
}

INLINE void lock_take(struct lock *lock)
{
    if (unlikely(!lock_try(lock))) lock_take_contended(lock);
}

/* False: somebody sleeps, or we are forking. The lock is still held: lock_give_contended must
 * follow. */
INLINE bool lock_give_unless_contended(struct lock *lock)
{
    lock_witness_give(lock);
    return likely(__atomic_sub_fetch(&lock->state, 1, __ATOMIC_RELEASE) == LOCK_FREE);
}

INLINE void lock_give_anywhere(struct lock *lock)
{
    if (__atomic_sub_fetch(&lock->state, 1, __ATOMIC_RELEASE) != LOCK_FREE)
        lock_give_contended(lock);
}

INLINE void lock_give(struct lock *lock)
{
    if (!lock_give_unless_contended(lock)) lock_give_contended(lock);
}

#endif
