/* cache_list.c - caches on their way from one thread to the next.
 * SPDX-License-Identifier: MIT
 */
#include "cache_list.h"

#include "../arenas/decay.h"
#include "../base/port.h"
#include "abandoned.h"
#include "growth.h"
#include "quarantine.h"

struct lock threads_lock = { .state = LOCK_FREE, .rank = LOCK_THREADS };
struct cache *first_cache;
static unsigned in_use; /* under threads_lock: how many */
/* Under threads_lock. 1: a sleeping thread's cache was taken, and that thread may be there still,
 * so that the process has more threads than one. */
static unsigned sleeper;
static struct cache *oldest;    /* under threads_lock: the first of all, while its thread lives */
static uintptr_t oldest_thread; /* atomic, under threads_lock: the mark of that thread */
static struct {
    struct cache *first; /* linked by next */
    unsigned count, low; /* low: the least that count was since cache_list_give_unneeded */
} drained_caches;        /* under threads_lock */
unsigned forks_to_child;

/* So many drained caches stay, for threads of which one begins when another one has ended; and so
 * many are worth a look. */
enum { DRAINED_KEPT = 8, DRAINED_PER_LOOK = 64 };

const void *cache_list_address(void) { return &first_cache; }

/* ---- parts, under threads_lock ---- */

static void list_add(struct cache *cache)
{
    cache->next = first_cache;
    cache->previous = NULL;
    if (first_cache != NULL) first_cache->previous = cache;
    first_cache = cache;
}

static void list_remove(struct cache *cache)
{
    if (cache->next != NULL) cache->next->previous = cache->previous;
    if (cache->previous != NULL) cache->previous->next = cache->next;
    else first_cache = cache->next;
}

static void count_use(unsigned count)
{
    in_use = count;
    decay_thread_count(count + sleeper);
}

static void begin_use(void) { count_use(in_use + 1); }
static void end_use(struct cache *cache)
{
    if (cache == oldest) oldest = NULL;
    if (cache->large_cache != NULL) large_cache_pass_takes_on(cache->large_cache);
    large_cache_count_staggered(NULL, cache->staggered);
    RELAXED_STORE(cache->staggered, 0);
    count_use(in_use - 1);
}

/* One that is in no list, for the next thread. */
static void keep_drained(struct cache *cache)
{
    cache->next = drained_caches.first;
    drained_caches.first = cache;
    if (++drained_caches.count % DRAINED_PER_LOOK == 0) purge_ask_for_look();
}

/* NULL: there is none. */
static struct cache *take_drained(void)
{
    struct cache *cache = drained_caches.first;

    if (cache == NULL) return NULL;
    drained_caches.first = cache->next;
    drained_caches.count--;
    drained_caches.low = (unsigned)min_size(drained_caches.low, drained_caches.count);
    return cache;
}

/* ---- a thread begins ---- */

/* One that another thread left, with the arena that it filled from: threads of which each begins
 * when one has ended would else be spread over all arenas, and what each left would lie in another
 * one. */
static struct cache *take_left(void)
{
    struct cache *cache = abandoned_take();

    if (cache == NULL && (cache = take_drained()) != NULL) list_add(cache);
    if (cache == NULL) return NULL;
    if (!arena_is_for_all(cache->arena)) cache->arena = NULL;
    cache->owner.word = NULL;
    cache->is_busy = false; /* its thread may have ended in the middle of a call, or of a hook */
    RELAXED_STORE(cache->fixed, (uint8_t)0);
    cache->class_max = (uint8_t)cached_class_max;
    begin_use();
    return cache;
}

/* The loader may have reset the slot of the first thread (os/linux_early.c). */
struct cache *cache_list_take(void)
{
    struct cache *cache;

    lock_take(&threads_lock);
    cache = oldest_thread == port_thread_mark() ? oldest : NULL;
    if (cache == NULL) cache = take_left();
    lock_give(&threads_lock);
    return cache;
}

void cache_list_add(struct cache *cache)
{
    list_add(cache);
    begin_use();
    if (oldest_thread == 0) {
        oldest = cache;
        RELAXED_STORE(oldest_thread, port_thread_mark());
    }
}

bool thread_is_first(void) { return RELAXED_LOAD(oldest_thread) == port_thread_mark(); }

/* ---- a thread ends ---- */

NOINLINE bool cache_list_abandon(struct cache *cache, unsigned forks)
{
    size_t bytes = abandoned_bytes(cache);
    bool done;

    if (bytes > ABANDONED_BYTES_MAX) return false;
    cache_expect_once(cache);
    if (cache->large_cache != NULL) large_cache_drain(cache);
    lock_take(&threads_lock);
    done = !cache_list_forgot(forks) && abandoned_put(cache, bytes);
    if (done) end_use(cache);
    lock_give(&threads_lock);
    return done;
}

void cache_list_leave(struct cache *cache, unsigned forks)
{
    lock_take(&threads_lock);
    if (!cache_list_forgot(forks)) {
        end_use(cache);
        list_remove(cache);
    }
    keep_drained(cache);
    lock_give(&threads_lock);
}

/* ---- draining what was abandoned ---- */

static struct cache *next_to_drain(enum clear_what what)
{
    struct cache *cache;

    lock_take(&threads_lock);
    cache = abandoned_take_to_drain(what);
    lock_give(&threads_lock);
    return cache;
}

/* Under threads_lock. */
static void end_draining(struct cache *cache, unsigned forks)
{
    if (!cache_list_forgot(forks)) list_remove(cache);
    RELAXED_STORE(cache->fixed, (uint8_t)0);
    keep_drained(cache);
}

static void drain_one(struct cache *cache)
{
    unsigned forks = RELAXED_LOAD(forks_to_child);

    cache_drain_all(cache);
    lock_take(&threads_lock);
    end_draining(cache, forks);
    lock_give(&threads_lock);
}

struct cache *cache_list_drain_used(struct cache *cache)
{
    unsigned forks = RELAXED_LOAD(forks_to_child);
    struct cache *next;

    RELAXED_STORE(cache->fixed, (uint8_t)CACHE_ABANDONED);
    sleeper = 1;
    end_use(cache);
    lock_give(&threads_lock);
    cache_drain_all(cache);
    lock_take(&threads_lock);
    next = cache->next;
    end_draining(cache, forks);
    return next;
}

/* No more than there were: threads may go on ending. */
static COLD bool drain_each(enum clear_what what)
{
    unsigned drained = 0;

    for (struct cache *cache; drained < ABANDONED_MAX && (cache = next_to_drain(what)) != NULL;
         drained++)
        drain_one(cache);
    return drained > 0;
}

bool cache_list_drain_abandoned(enum clear_what what)
{
    bool drained = !abandoned_is_empty() && drain_each(what);

    (void)cache_list_give_unneeded(what);
    return drained;
}

/* ---- giving back what is drained ---- */

/* In a process that is sampled they are parts of larger records, which stay. */
static struct cache *next_to_give(void)
{
    struct cache *cache;

    lock_take(&threads_lock);
    cache = class_map_offset == 0 ? take_drained() : NULL;
    lock_give(&threads_lock);
    return cache;
}

/* Threads may begin and end meanwhile. */
static COLD bool give_each(unsigned most)
{
    struct cache *cache;
    bool gave = false;

    while (most-- > 0 && (cache = next_to_give()) != NULL) {
        cache_give(cache);
        gave = true;
    }
    if (gave) meta_purge_pages();
    return gave;
}

/* As of a moment ago. */
static READS_UNLOCKED bool few_are_drained(void) { return drained_caches.count <= DRAINED_KEPT; }

bool cache_list_give_unneeded(enum clear_what what)
{
    unsigned beyond, count;

    if (few_are_drained()) return false;
    lock_take(&threads_lock);
    beyond = drained_caches.count > DRAINED_KEPT ? drained_caches.count - DRAINED_KEPT : 0;
    count = what == CLEAR_ALL || drained_caches.low > beyond ? beyond : drained_caches.low;
    drained_caches.low = drained_caches.count - count;
    lock_give(&threads_lock);
    return count > 0 && give_each(count);
}

void cache_list_start(void) { arenas_clear_above = cache_list_drain_abandoned; }

void cache_list_replace_only(const struct cache *old, struct cache *fresh)
{
    struct cache *cache;

    while ((cache = take_drained()) != NULL) cache_give(cache);
    if (oldest == old) oldest = fresh;
    first_cache = fresh;
}

/* ---- fork and visits ---- */

/* Staggered blocks of threads that the child has not are its own. Their caches are not written to:
 * the parent has the same pages. Those that are abandoned count none. */
static void count_staggered_of_others(const struct cache *mine)
{
    uint32_t sum = 0;

    for (const struct cache *cache = first_cache; cache != NULL; cache = cache->next)
        if (cache != mine) sum += cache->staggered;
    large_cache_count_staggered(NULL, sum);
}

/* The blocks in the other threads' magazines are lost to the child: their owners may have been in
 * the middle of a push when the memory was copied. */
void cache_list_forget_others(void)
{
    struct cache *mine = thread_front()->cache;

    RELAXED_STORE(forks_to_child, forks_to_child + 1);
    count_staggered_of_others(mine);
    EACH_ARENA (arena) arena->threads = 0;
    if (mine != NULL && cache_is_bound(mine)) mine->arena->threads = 1;
    first_cache = NULL;
    oldest = NULL;
    sleeper = 0;
    abandoned_visit(list_add);
    if (mine != NULL) list_add(mine);
    count_use(mine != NULL);
    cache_forget_wide_of_others(mine);
    quarantines_forget_others(mine);
}

struct large_cache_numbers cache_list_visit(void (*visit)(const struct cache *cache, void *context),
                                            void *context)
{
    struct large_cache_numbers before = { 0 };

    lock_take(&threads_lock);
    for (const struct cache *cache = first_cache; cache != NULL; cache = cache->next)
        visit(cache, context);
    before.takes = large_cache_takes_before;
    before.staggered = RELAXED_LOAD(large_staggered_before);
    lock_give(&threads_lock);
    return before;
}
