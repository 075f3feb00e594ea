/* lock.c - the ways a lock is taken and given when somebody else wants it too.
 * SPDX-License-Identifier: MIT
 */
#include "lock.h"

#include "constants.h"
#include "port.h"
#include "thread_local.h"

static unsigned spin_pauses SEALED = 64; /* constant after start-up */
static uintptr_t forking_thread;         /* atomic: its mark; compared by all with their own */

bool lock_fork_is_mine(void) { return RELAXED_LOAD(forking_thread) == port_thread_mark(); }

void lock_set_spin(unsigned pauses) { spin_pauses = pauses; }

/* One that a handler of a fork makes is marked as all others are, and given with them. Or another
 * thread takes it, and holds it while it waits for a marked one. */
void lock_init(struct lock *lock, enum lock_rank rank)
{
    bool forking = lock_fork_is_mine();

    *lock = (struct lock){ .state = forking ? LOCK_FORKING : LOCK_FREE, .rank = (uint32_t)rank };
    if (forking) lock_witness_take(lock);
}

/* By a fork; one less for a moment while the forking thread, which passed through, gives it. */
static bool is_marked(uint32_t state) { return state >= LOCK_FORKING - 1; }

/* For a while. `held`: what the lock's state is when it is taken. */
static bool spin_and_try(struct lock *lock, uint32_t held)
{
    if (is_marked(__atomic_load_n(&lock->state, __ATOMIC_RELAXED))) return false;
    for (unsigned pause = 0; pause < spin_pauses; pause++) {
        if (__atomic_load_n(&lock->state, __ATOMIC_RELAXED) == LOCK_FREE) {
            uint32_t expected = LOCK_FREE;
            if (__atomic_compare_exchange_n(&lock->state, &expected, held, false, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED))
                return true;
        }
        cpu_relax();
    }
    return false;
}

/* One taker's sleep. The clock is read by the kernel, and so never under the lock. */
struct lock_sleep {
    uint64_t since_ns, until_ns; /* until it was last woken */
    uint64_t sleepers;           /* with it; 0: it has not slept */
};

static void begin_sleep(struct lock *lock, struct lock_sleep *sleep)
{
    sleep->sleepers = __atomic_add_fetch(&lock->sleepers, 1, __ATOMIC_RELAXED);
    sleep->since_ns = port_now_ns();
}

/* By the new holder. */
static void note_sleep(struct lock *lock, const struct lock_sleep *sleep)
{
    uint64_t waited_ns = sleep->until_ns - sleep->since_ns;

    lock->waits++;
    lock->wait_ns += waited_ns;
    if (waited_ns > lock->wait_ns_max) lock->wait_ns_max = waited_ns;
    if (sleep->sleepers > lock->sleepers_max) lock->sleepers_max = sleep->sleepers;
}

/* Sleeps until the lock was free, and leaves it in the state that says "wake somebody": we cannot
 * know whether others still sleep. Who was woken and comes too late spins again, or it would pay
 * for each waking and never be in time. False: it is ours already, because we are forking. */
static bool sleep_and_take(struct lock *lock, struct lock_sleep *sleep)
{
    for (;;) {
        uint32_t state = __atomic_load_n(&lock->state, __ATOMIC_RELAXED);

        if (is_marked(state)) {
            if (lock_fork_is_mine()) return false;
        } else if (state != LOCK_HELD_WITH_SLEEPERS) {
            if (!__atomic_compare_exchange_n(&lock->state, &state, LOCK_HELD_WITH_SLEEPERS, false,
                                             __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                continue;
            if (state == LOCK_FREE) return true;
            state = LOCK_HELD_WITH_SLEEPERS;
        }
        if (sleep->sleepers == 0) begin_sleep(lock, sleep);
        port_wait(&lock->state, state);
        sleep->until_ns = port_now_ns();
        if (spin_and_try(lock, LOCK_HELD_WITH_SLEEPERS)) return true;
    }
}

/* A thread that waits for itself waits for ever: a signal handler that interrupted a call into the
 * heap, and makes one. */
void lock_take_contended(struct lock *lock)
{
    struct lock_sleep sleep = { 0, 0, 0 };
    bool taken;

    check(!lock_is_surely_mine(lock) || lock_fork_is_mine());
    taken = spin_and_try(lock, LOCK_HELD) || sleep_and_take(lock, &sleep);
    if (sleep.sleepers != 0) (void)__atomic_sub_fetch(&lock->sleepers, 1, __ATOMIC_RELAXED);
    if (!taken) return;
    lock->taken++;
    lock->contended++;
    if (sleep.sleepers != 0) note_sleep(lock, &sleep);
    lock_witness_take(lock);
}

static uint64_t at_least(uint64_t value, uint64_t least) { return value > least ? value : least; }

struct lock_numbers lock_numbers(const struct lock *lock)
{
    struct lock_numbers numbers = { .waits = RELAXED_LOAD(lock->waits),
                                    .wait_ns = RELAXED_LOAD(lock->wait_ns),
                                    .wait_ns_max = RELAXED_LOAD(lock->wait_ns_max),
                                    .sleepers_max = RELAXED_LOAD(lock->sleepers_max) };

    numbers.contended = at_least(RELAXED_LOAD(lock->contended), numbers.waits);
    numbers.taken = at_least(RELAXED_LOAD(lock->taken), numbers.contended);
    numbers.spins = numbers.contended - numbers.waits;
    return numbers;
}

void lock_forget_numbers(struct lock *lock)
{
    lock->taken = lock->contended = lock->waits = 0;
    lock->wait_ns = lock->wait_ns_max = lock->sleepers_max = 0;
}

void lock_give_contended(struct lock *lock)
{
    if (__atomic_load_n(&lock->state, __ATOMIC_RELAXED) == LOCK_FORKING - 1) {
        __atomic_store_n(&lock->state, LOCK_FORKING, __ATOMIC_RELAXED);
        return;
    }
    __atomic_store_n(&lock->state, LOCK_FREE, __ATOMIC_RELEASE);
    port_wake(&lock->state, 1);
}

/* ---- fork ---- */

void lock_fork_begins(void) { RELAXED_STORE(forking_thread, port_thread_mark()); }
void lock_fork_ends(void) { RELAXED_STORE(forking_thread, (uintptr_t)0); }

void lock_take_for_fork(struct lock *lock)
{
    lock_take(lock);
    /* Those who sleep for HELD_WITH_SLEEPERS stay asleep, and are woken with the others at the
     * end. */
    __atomic_store_n(&lock->state, LOCK_FORKING, __ATOMIC_RELAXED);
}

/* One that is not marked is somebody's own. */
void lock_give_after_fork(struct lock *lock)
{
    if (__atomic_load_n(&lock->state, __ATOMIC_RELAXED) != LOCK_FORKING) return;
    lock_witness_give(lock);
    __atomic_store_n(&lock->state, LOCK_FREE, __ATOMIC_RELEASE);
    port_wake(&lock->state, INT32_MAX);
}

void lock_remake(struct lock *lock)
{
    if (__atomic_load_n(&lock->state, __ATOMIC_RELAXED) != LOCK_FORKING) return;
    lock_witness_give(lock);
    RELAXED_STORE(lock->sleepers, (uint64_t)0);
    __atomic_store_n(&lock->state, LOCK_FREE, __ATOMIC_RELAXED);
}

#if defined(PRAIRIE_CHECK) && PRAIRIE_CHECK >= 1

enum { HELD_MAX = 8 };

struct witness {
    uint16_t held_count;
    uint16_t rank_count[LOCK_RANK_COUNT];
    /* The most recent ones; arenas beyond that are counted only. */
    const struct lock *held[HELD_MAX];
};

THREAD_LOCAL(struct witness, witness)
#define witness (*witness_place())

/* A signal handler that comes in between takes and gives locks of its own: its places are behind
 * those that are counted, and a lock stays counted until its place is free. */
void lock_witness_take(const struct lock *lock)
{
    unsigned at;

    for (unsigned rank = lock->rank + 1; rank < LOCK_RANK_COUNT && !lock_fork_is_mine(); rank++)
        require(witness.rank_count[rank] == 0);
    require(lock->rank == LOCK_ARENA || (PAGE_HEAPS > 1 && lock->rank == LOCK_PAGE_HEAP)
            || witness.rank_count[lock->rank] == 0 || lock_fork_is_mine());
    witness.rank_count[lock->rank]++;
    at = witness.held_count++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (at < HELD_MAX) witness.held[at] = lock;
}

/* Passed through by the thread that forks, which holds it before and after. */
static bool is_passed(const struct lock *lock)
{
    return lock_fork_is_mine() && is_marked(RELAXED_LOAD(lock->state));
}

void lock_witness_give(const struct lock *lock)
{
    if (is_passed(lock)) return;
    require(witness.rank_count[lock->rank] > 0);
    witness.rank_count[lock->rank]--;
    for (unsigned i = 0; i < HELD_MAX; i++) {
        if (witness.held[i] != lock) continue;
        for (unsigned j = i; j + 1 < HELD_MAX; j++) witness.held[j] = witness.held[j + 1];
        witness.held[HELD_MAX - 1] = NULL;
        break;
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    witness.held_count--;
}

bool lock_is_surely_mine(const struct lock *lock)
{
    for (unsigned i = 0; i < HELD_MAX; i++)
        if (witness.held[i] == lock) return true;
    return false;
}

bool lock_is_mine(const struct lock *lock)
{
    return lock_is_surely_mine(lock) || witness.held_count > HELD_MAX;
}

#endif
