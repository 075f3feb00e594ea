/* lock.c - the ways a lock is taken and given when somebody else wants it too.
 * SPDX-License-Identifier: MIT
 */
#include "lock.h"

#include "port.h"

static unsigned spin_pauses = 64;    /* constant after start-up */

void lock_set_spin(unsigned pauses) { spin_pauses = pauses; }

void lock_init(struct lock *lock, enum lock_rank rank)
{
    *lock = (struct lock){ .state = LOCK_FREE, .rank = (uint32_t)rank };
}

void lock_remake(struct lock *lock)
{
    lock_witness_give(lock);
    __atomic_store_n(&lock->state, LOCK_FREE, __ATOMIC_RELAXED);
}

static bool spin_and_try(struct lock *lock)
{
    for (unsigned pause = 0; pause < spin_pauses; pause++) {
        if (__atomic_load_n(&lock->state, __ATOMIC_RELAXED) == LOCK_FREE) {
            uint32_t expected = LOCK_FREE;
            if (__atomic_compare_exchange_n(&lock->state, &expected, LOCK_HELD, false,
                                            __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return true;
        }
        cpu_relax();
    }
    return false;
}

void lock_take_contended(struct lock *lock)
{
    bool slept = false;

    if (!spin_and_try(lock)) {
        /* From here on the lock is taken in the state that says "wake somebody", because we cannot
         * know whether others still sleep. */
        while (__atomic_exchange_n(&lock->state, LOCK_HELD_WITH_SLEEPERS, __ATOMIC_ACQUIRE)
               != LOCK_FREE) {
            port_wait(&lock->state, LOCK_HELD_WITH_SLEEPERS);
            slept = true;
        }
    }
    lock->taken++;
    lock->contended++;
    lock->waits += slept;
    lock_witness_take(lock);
}

void lock_wake(struct lock *lock) { port_wake(&lock->state); }

#if defined(PRAIRIE_CHECK) && PRAIRIE_CHECK >= 1

enum { HELD_MAX = 8 };

struct witness {
    uint16_t held_count;
    uint16_t rank_count[LOCK_RANK_COUNT];
    const struct lock *held[HELD_MAX];    /* the most recent ones; arenas beyond that are counted only */
};

/* Thread-local storage is as scarce as in the plain flavour only when loaded late; the check
 * flavours may use more. */
static __thread struct witness witness __attribute__((tls_model("initial-exec")));

void lock_witness_take(const struct lock *lock)
{
    for (unsigned rank = lock->rank + 1; rank < LOCK_RANK_COUNT; rank++)
        require(witness.rank_count[rank] == 0);
    require(lock->rank == LOCK_ARENA || witness.rank_count[lock->rank] == 0);
    witness.rank_count[lock->rank]++;
    if (witness.held_count < HELD_MAX) witness.held[witness.held_count] = lock;
    witness.held_count++;
}

void lock_witness_give(const struct lock *lock)
{
    require(witness.rank_count[lock->rank] > 0);
    witness.rank_count[lock->rank]--;
    witness.held_count--;
    for (unsigned i = 0; i < HELD_MAX; i++) {
        if (witness.held[i] != lock) continue;
        for (unsigned j = i; j + 1 < HELD_MAX; j++) witness.held[j] = witness.held[j + 1];
        witness.held[HELD_MAX - 1] = NULL;
        break;
    }
}

bool lock_is_mine(const struct lock *lock)
{
    for (unsigned i = 0; i < HELD_MAX; i++)
        if (witness.held[i] == lock) return true;
    return witness.held_count > HELD_MAX;
}

#endif
