/* sleepers.c - the protocol by which a cache is taken from a thread that sleeps.
 * SPDX-License-Identifier: MIT
 */
#include "sleepers.h"

#include "../arenas/decay.h"
#include "../base/options.h"
#include "../base/port.h"

#include "abandoned.h"
#include "cache_list.h"
#include "growth.h"

/* A thread is looked at when it has been still for so many looks of the background thread, at that
 * look and at the next ones: it may just be awake. */
enum { STILL_LOOKS = 8, SLEEPER_GIVEN_UP = STILL_LOOKS + 4 };
/* One takes some 30 us, under the lock, which is given in between only when a cache is drained. */
enum { NAPS_PER_LOOK = 128, AWAKE_PER_LOOK = 8 };
/* A look takes no time. After so many times 10 ms who looked may be gone, with the process that
 * this one began as a copy of. */
enum { SETTLE_MS = 10, SETTLE_TIMES = 1000 };

/* The word of the thread that is being looked at; NULL: none. Atomic, under threads_lock. */
static struct front **settling;
static uint32_t settled; /* atomic: how often that has ended; who waits for it sleeps on it */
/* The process that the threads' numbers are of: of a copy that nobody was told of they are others'.
 * 0: none is known. Atomic. */
static uint32_t numbers_of;

struct front *thread_front_settled(void)
{
    struct front *front = EMPTY_FRONT;
    bool waits = true;

    for (unsigned times = 0; waits && front == EMPTY_FRONT; times++) {
        uint32_t seen = __atomic_load_n(&settled, __ATOMIC_ACQUIRE);

        if (times >= SETTLE_TIMES && !decay_background_is_there()) break;
        waits = (uintptr_t)__atomic_load_n(&settling, __ATOMIC_ACQUIRE) == port_thread_mark();
        front = thread_word_again();
        if (waits && front == EMPTY_FRONT) os_sleep(&settled, seen, SETTLE_MS);
    }
    return front;
}

void sleepers_note_owner(struct cache *cache, bool is_front)
{
    union {
        uintptr_t mark;
        struct front **word;
    } mine = { port_thread_mark() };

    /* Sandboxes without a background thread need not allow the call. */
    cache->thread = OS_TELLS_NAPS && option_background_thread() ? os_thread_id() : 0;
    if (cache->thread != 0 && unlikely(RELAXED_LOAD(numbers_of) == 0))
        RELAXED_STORE(numbers_of, os_process_id());
    __atomic_store_n(&cache->owner.word, is_front && cache->thread != 0 ? mine.word : NULL,
                     __ATOMIC_RELEASE);
}

/* A fork in a signal handler may have come before a thread's front was set, after its number was
 * noted: without its cache the number of the process stays, too, and all are forgotten later. */
void sleepers_begin_in_child(bool forgot_others)
{
    struct cache *mine = thread_front()->cache;

    if (mine != NULL && mine->thread != 0) mine->thread = os_thread_id();
    if (RELAXED_LOAD(numbers_of) != 0 && (mine != NULL || forgot_others))
        RELAXED_STORE(numbers_of, os_process_id());
}

/* Under threads_lock. */
static void forget_numbers_of_another(void)
{
    uint32_t process = os_process_id();

    if (RELAXED_LOAD(numbers_of) == process) return;
    for (struct cache *cache = first_cache; cache != NULL; cache = cache->next)
        __atomic_store_n(&cache->owner.word, NULL, __ATOMIC_RELEASE);
    RELAXED_STORE(numbers_of, process);
}

/* Of one that may be awake it is a guess. */
static READS_UNLOCKED size_t held_bytes(const struct cache *cache)
{
    size_t bytes = abandoned_bytes(cache);

    return cache->large_cache == NULL ? bytes : bytes + large_cache_bytes(cache->large_cache);
}

/* Has it much, and nothing that its thread would miss? Of one that may be awake that is a guess. */
static READS_UNLOCKED bool holds_much(const struct cache *cache)
{
    return __atomic_load_n(&cache->owner.word, __ATOMIC_ACQUIRE) != NULL && cache->fixed == 0
        && !cache->is_off && cache->class_max == cached_class_max
        && held_bytes(cache) > SLEEPER_BYTES_MAX;
}

/* Counts the looks since the last slow call. */
static READS_UNLOCKED unsigned stillness(struct cache *cache)
{
    uint8_t still = RELAXED_LOAD(cache->owner.still);

    if (still < SLEEPER_GIVEN_UP) RELAXED_STORE(cache->owner.still, ++still);
    return still;
}

void sleepers_expect(const struct cache *cache)
{
    if (holds_much(cache)) decay_expect_sleepers();
}

/* Nobody may look any more at one that was given up. */
void sleepers_note_awake(struct cache *cache)
{
    bool was_given_up = RELAXED_LOAD(cache->owner.still) == SLEEPER_GIVEN_UP;

    RELAXED_STORE(cache->owner.still, (uint8_t)0);
    if (was_given_up) sleepers_expect(cache);
}

/* Steps 2 to 5. Its owner waits for threads_lock when it ends, so the word is there. */
static bool sleeps_elsewhere(struct cache *cache)
{
    struct front **word = cache->owner.word, *front = &cache->front;
    struct os_nap nap;
    bool sleeps = false;

    if (os_nap_begin(&nap, cache->thread, word)) {
        __atomic_store_n(&settling, word, __ATOMIC_RELEASE);
        if (__atomic_compare_exchange_n(word, &front, EMPTY_FRONT, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
            /* What it did until it fell asleep is seen now. */
            sleeps = holds_much(cache) && !cache->is_busy
                  && os_nap_lasts(&nap, (struct os_range){ (char *)cache, sizeof *cache });
            front = EMPTY_FRONT;
            if (!sleeps)
                (void)__atomic_compare_exchange_n(word, &front, &cache->front, false,
                                                  __ATOMIC_RELEASE, __ATOMIC_RELAXED);
        }
        __atomic_store_n(&settling, NULL, __ATOMIC_RELEASE);
        (void)__atomic_add_fetch(&settled, 1, __ATOMIC_RELEASE);
        port_wake(&settled, INT32_MAX);
    }
    os_nap_end(&nap);
    return sleeps;
}

bool sleepers_look(void)
{
    unsigned naps = 0, awake = 0;
    bool is_pending = false;

    if (!os_naps_are_told()) return false;
    lock_take(&threads_lock);
    forget_numbers_of_another();
    for (struct cache *cache = first_cache; cache != NULL;) {
        unsigned still = holds_much(cache) ? stillness(cache) : SLEEPER_GIVEN_UP;

        is_pending |= still < SLEEPER_GIVEN_UP;
        if (still < STILL_LOOKS || still == SLEEPER_GIVEN_UP) {
            cache = cache->next;
        } else if (naps++, sleeps_elsewhere(cache)) {
            cache = cache_list_drain_used(cache);
        } else {
            awake++;
            cache = cache->next;
        }
        if (naps == NAPS_PER_LOOK || awake == AWAKE_PER_LOOK) break;
    }
    lock_give(&threads_lock);
    return is_pending;
}

/* Where threads are several, caches that none of them needs go with what arenas keep. */
static bool look_above(bool alone)
{
    return alone ? cache_list_give_unneeded(CLEAR_UNNEEDED) : sleepers_look();
}

void sleepers_start(void) { decay_look_above = look_above; }
