/* thread.c - the birth and the end of a thread, as far as prairie is concerned.
 * SPDX-License-Identifier: MIT
 */
#include "thread.h"

#include "../arenas/decay.h"
#include "../base/port.h"
#include "abandoned.h"
#include "growth.h"
#include "large_cache.h"
#include "quarantine.h"

struct lock threads_lock = { .state = LOCK_FREE, .rank = LOCK_THREADS };
struct cache *first_cache;
static unsigned in_use;      /* under threads_lock: how many */
static struct cache *oldest; /* under threads_lock: the first one of all, while its thread lives */
static bool threads_are_sampled
    SEALED; /* under threads_lock: every new thread has a sampled front */
static bool threads_are_hardened SEALED; /* atomic: every new thread has a hardened front */
static bool unsampled_at_birth;          /* atomic */
static uintptr_t oldest_thread;          /* atomic, under threads_lock: the mark of that thread */
static struct cache *waiting;            /* under threads_lock: drained ones, linked by next */
static unsigned forks_to_child;          /* atomic: how often this process began as a child */

const void *threads_list_address(void) { return &first_cache; }

static void list_add(struct cache *cache)
{
    cache->next = first_cache;
    cache->previous = NULL;
    if (first_cache != NULL) first_cache->previous = cache;
    first_cache = cache;
}

/* Both under threads_lock. */
static void begin_use(void) { decay_thread_count(++in_use); }
static void end_use(struct cache *cache)
{
    if (cache == oldest) oldest = NULL;
    if (cache->large_cache != NULL) large_cache_pass_takes_on(cache->large_cache);
    large_cache_count_staggered(NULL, cache->staggered);
    RELAXED_STORE(cache->staggered, 0);
    decay_thread_count(--in_use);
}

static void list_remove(struct cache *cache)
{
    if (cache->next != NULL) cache->next->previous = cache->previous;
    if (cache->previous != NULL) cache->previous->next = cache->next;
    else first_cache = cache->next;
}

/* A drained one that is in no list waits for the next thread. Under threads_lock. */
static void wait_for_thread(struct cache *cache)
{
    cache->next = waiting;
    waiting = cache;
}

/* A signal handler has forked since forks_to_child was this: in the child no list and no count
 * knows of this thread. */
static bool is_forgotten(unsigned forks) { return forks != RELAXED_LOAD(forks_to_child); }

static void leave_cache(struct cache *cache, unsigned forks)
{
    lock_take(&threads_lock);
    if (!is_forgotten(forks)) {
        end_use(cache);
        list_remove(cache);
    }
    wait_for_thread(cache);
    lock_give(&threads_lock);
}

/* ---- caches that threads abandon ---- */

/* Blocks of manual arenas, which a sized free may have put among others, go home; and a thread may
 * end in a signal handler that came in the middle of a call. */
static bool may_be_abandoned(const struct cache *cache)
{
    return cache->fixed == 0 && !cache->is_off && !cache->is_busy
        && cache->class_max == cached_class_max && !RELAXED_LOAD(threads_are_hardened)
        && !RELAXED_LOAD(arenas_have_manual);
}

/* False: it is not one for any thread, has too much, or enough are there. */
static NOINLINE bool abandon(struct cache *cache, unsigned forks)
{
    size_t bytes = may_be_abandoned(cache) ? abandoned_bytes(cache) : SIZE_MAX;
    bool done;

    if (bytes > ABANDONED_BYTES_MAX) return false;
    cache_expect_once(cache);
    if (cache->large_cache != NULL) large_cache_drain(cache->large_cache);
    lock_take(&threads_lock);
    done = !is_forgotten(forks) && abandoned_put(cache, bytes);
    if (done) end_use(cache);
    lock_give(&threads_lock);
    return done;
}

static struct cache *next_to_drain(enum clear_what what)
{
    struct cache *cache;

    lock_take(&threads_lock);
    cache = abandoned_take_to_drain(what);
    lock_give(&threads_lock);
    return cache;
}

static void drain_one(struct cache *cache)
{
    unsigned forks = RELAXED_LOAD(forks_to_child);

    cache_drain_all(cache);
    lock_take(&threads_lock);
    if (!is_forgotten(forks)) list_remove(cache);
    RELAXED_STORE(cache->fixed, (uint8_t)0);
    wait_for_thread(cache);
    lock_give(&threads_lock);
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

static bool drain_abandoned(enum clear_what what)
{
    return !abandoned_is_empty() && drain_each(what);
}

void threads_start(void) { arenas_clear_above = drain_abandoned; }

/* ---- the end ---- */

static bool is_bound(const struct cache *cache) { return (cache->fixed & CACHE_BOUND) != 0; }

/* It may end from now on: no cache of the thread's has a block of it. */
static void leave_arena(struct arena *arena)
{
    (void)__atomic_fetch_sub(&arena->threads, 1, __ATOMIC_RELEASE);
}

static void unbind(struct cache *cache)
{
    if (is_bound(cache)) leave_arena(cache->arena);
    cache->fixed &= (uint8_t)~CACHE_BOUND;
}

static void end_front(struct front *front, unsigned forks)
{
    struct cache *cache = front->cache;

    if (front_is_counting(front)) counting_end((struct counting_front *)front);
    if (abandon(cache, forks)) return;
    cache_drain_all(cache);
    if (is_forgotten(forks)) cache->fixed = 0;
    unbind(cache);
    cache->is_off = false;
    cache_aim(cache);
    leave_cache(cache, forks);
}

/* Its blocks go back. */
static void thread_end(void)
{
    struct front *front = thread_front();
    unsigned forks = RELAXED_LOAD(forks_to_child);

    if (front->cache == NULL) return;
    thread_front_set(GONE_FRONT);
    end_front(front, forks);
    (void)decay_after_return();
}

/* The record goes under the lock, because the statistics read it. */
static void keep_no_runs(struct cache *cache)
{
    struct large_cache *large_cache = cache->large_cache;

    if (large_cache == NULL) return;
    large_cache_drain(large_cache);
    lock_take(&threads_lock);
    large_cache_pass_takes_on(large_cache);
    RELAXED_STORE(cache->large_cache, NULL);
    lock_give(&threads_lock);
    meta_give(large_cache, sizeof *large_cache);
}

/* C4 */
static void aim(struct cache *cache)
{
    cache_aim(cache);
    if (!cache->front.keeps_runs) keep_no_runs(cache);
}

void thread_follow_hooks(void)
{
    struct cache *cache = thread_front()->cache;

    if (cache != NULL) aim(cache);
}

static enum front_kind exact_kind(void)
{
    return RELAXED_LOAD(threads_are_hardened) ? FRONT_HARDENED : FRONT_COUNTED;
}

static struct counting_front *exact_front(struct front *front)
{
    bool is_exact = front->kind >= FRONT_OFF && front->kind <= FRONT_COUNTED;

    return is_exact ? (struct counting_front *)front : counting_begin_exact(front, exact_kind());
}

/* The same thread, whose cache may hold no blocks; every call is seen, for none may end in the
 * cache. NULL: no memory. */
static struct front *front_without_blocks(struct front *front)
{
    struct counting_front *exact = exact_front(front);

    if (exact == NULL) return NULL;
    cache_drain_all(front->cache);
    front->cache->is_off = true;
    exact->front.kind = FRONT_OFF;
    aim(front->cache);
    return &exact->front;
}

bool thread_cache_off(void)
{
    struct front *front = thread_front();

    if (front->cache == NULL) return true;
    if (cache_is_away(front->cache)) return false;
    front = front_without_blocks(front);
    if (front == NULL) return false;
    thread_front_set(front);
    (void)decay_after_return();
    return true;
}

/* The front is as it was before every call was seen, unless the program wants that. */
void thread_cache_on(void)
{
    struct counting_front *exact = (struct counting_front *)thread_front();
    struct cache *cache = exact->front.cache;
    bool is_sampled = RELAXED_LOAD(threads_are_sampled);

    if (exact->front.kind != FRONT_OFF) return;
    cache->is_off = false;
    exact->front.kind = (uint8_t)exact_kind();
    if (!exact->is_told && exact->front.kind != FRONT_HARDENED) {
        thread_front_set(is_sampled ? counting_sampled_of(cache) : &cache->front);
        counting_end(exact);
    }
    aim(cache);
}

/* One that another thread left. Under threads_lock. */
static struct cache *take_left(void)
{
    struct cache *cache = abandoned_take();

    if (cache == NULL && (cache = waiting) != NULL) {
        waiting = cache->next;
        list_add(cache);
    }
    if (cache == NULL) return NULL;
    cache->arena = NULL;
    cache->is_busy = false; /* its thread may have ended in the middle of a call, or of a hook */
    RELAXED_STORE(cache->fixed, (uint8_t)0);
    cache->class_max = (uint8_t)cached_class_max;
    begin_use();
    return cache;
}

/* One that is there. The loader may have reset the slot of the first thread (os/linux_early.c). */
static struct cache *find_cache(void)
{
    struct cache *cache;

    lock_take(&threads_lock);
    cache = oldest_thread == port_thread_mark() ? oldest : NULL;
    if (cache == NULL) cache = take_left();
    lock_give(&threads_lock);
    return cache;
}

/* False: not of the kind that threads have by now. */
static bool add_made(struct cache *cache, bool is_sampled)
{
    bool is_right;

    lock_take(&threads_lock);
    is_right = is_sampled == threads_are_sampled;
    if (likely(is_right)) {
        list_add(cache);
        begin_use();
        if (oldest_thread == 0) {
            oldest = cache;
            RELAXED_STORE(oldest_thread, port_thread_mark());
        }
    }
    lock_give(&threads_lock);
    return is_right;
}

/* Once frees have magazines of their own a plain one will not do. That may have begun meanwhile. */
static struct cache *make_cache(void)
{
    bool is_sampled = RELAXED_LOAD(threads_are_sampled);
    struct cache *cache = is_sampled ? counting_make_sampled() : cache_make();

    if (cache == NULL || likely(add_made(cache, is_sampled))) return cache;
    cache_give(cache);
    return make_cache();
}

static struct front *front_for(struct cache *cache)
{
    if (!RELAXED_LOAD(threads_are_sampled)) return &cache->front;
    return counting_begin_sampled(cache, !RELAXED_LOAD(unsampled_at_birth));
}

void threads_sampling_init(bool sampled) { RELAXED_STORE(unsampled_at_birth, !sampled); }
bool threads_sampling_at_birth(void) { return !RELAXED_LOAD(unsampled_at_birth); }

/* The first thread of all keeps its cache as long as the process lives, if need be. */
static bool is_first_thread(void) { return RELAXED_LOAD(oldest_thread) == port_thread_mark(); }

struct front *thread_attach(bool off)
{
    struct cache *cache = find_cache();
    struct front *begun, *front;

    if (cache == NULL) cache = make_cache();
    if (cache == NULL) return NULL;
    begun = front = front_for(cache);
    if (RELAXED_LOAD(threads_are_hardened)) front = (struct front *)exact_front(begun);
    if (front != NULL && (off || cache->is_off)) front = front_without_blocks(front);
    if (front == NULL) {
        end_front(begun, RELAXED_LOAD(forks_to_child));
        return NULL;
    }
    thread_front_set(front); /* before the hook, which may allocate */
    /* Of whose end nobody tells us, the cache would be lost with it: it lives as after its end. */
    if (unlikely(!os_thread_end_hook(thread_end)) && !is_first_thread()) thread_end();
    return thread_front();
}

struct counting_front *thread_count_calls(void)
{
    struct front *front = thread_front();
    struct counting_front *exact = front->cache != NULL ? exact_front(front) : NULL;

    if (exact == NULL) return NULL;
    counting_tell(exact);
    thread_front_set(&exact->front);
    return exact;
}

/* Frees of slabs' blocks go to magazines of their own from now on. Open slabs are told in the class
 * map. */
static void separate_frees(void)
{
    class_map_offset = OFFSET_FOR_FREES;
    for (unsigned index = 0; index < space.region_count; index++) {
        uint32_t first = space.region[index].first_page;

        for (uint32_t page = first; page < first + space.region[index].open_pages; page++)
            if (page_record(page)->class_at != 0 && !slab_record(page_record(page)->slab)->hidden)
                class_map_set(page_address(page), page_bytes(), page_record(page)->class_at);
    }
    for (unsigned class_index = 1; class_index <= CLASS_OF_1024; class_index++)
        sized_free_goes_to(class_index, offset_of_class(class_index) + OFFSET_FOR_FREES);
}

static void give_waiting(void)
{
    while (waiting != NULL) {
        struct cache *next = waiting->next;

        cache_give(waiting);
        waiting = next;
    }
}

/* And no abandoned one is there. Under threads_lock. */
static bool is_only_cache(const struct cache *cache)
{
    return first_cache == cache && cache->next == NULL;
}

/* The only cache there is makes way for another one, which fills from the same arena. */
static void replace_only(struct cache *old, struct cache *fresh)
{
    fresh->arena = old->arena;
    fresh->fixed = old->fixed;
    fresh->class_max = old->class_max;
    fresh->refills = old->refills;
    fresh->overflows = old->overflows;
    fresh->staggered = old->staggered;
    if (old->large_cache != NULL) large_cache_pass_takes_on(old->large_cache);
    if (oldest == old) oldest = fresh;
    first_cache = fresh;
    thread_front_set(front_for(fresh));
    aim(fresh);
}

static bool sample_mine(void)
{
    struct cache *mine = thread_front()->cache;
    struct cache *fresh = thread_front()->kind == FRONT_CACHE ? counting_make_sampled() : NULL;
    bool alone;

    if (fresh == NULL) return false;
    (void)drain_abandoned(CLEAR_ALL);
    lock_take(&threads_lock);
    alone = in_use == 1 && is_only_cache(mine);
    if (alone) {
        give_waiting();
        RELAXED_STORE(threads_are_sampled, true);
        separate_frees();
        replace_only(mine, fresh);
    }
    lock_give(&threads_lock);
    if (!alone) {
        counting_give_sampled(fresh);
        return false;
    }
    cache_drain_all(mine);
    cache_give(mine);
    return true;
}

/* A thread that shall hold no blocks has another cache meanwhile, which holds none either. */
bool threads_sample(void)
{
    bool is_off = thread_cache_is_off(), done;

    thread_cache_on();
    done = sample_mine();
    return (!is_off || thread_cache_off()) && done;
}

/* What it holds is of arenas that nobody fills from any more, also when a constructor before ours
 * has bound the thread to one. Its totals go on, and a cache that is off stays so. */
static void harden_mine(struct counting_front *exact)
{
    struct cache *cache = exact->front.cache;

    cache_drain_all(cache);
    unbind(cache);
    cache->arena = NULL;
    if (!cache->is_off) exact->front.kind = FRONT_HARDENED;
    thread_front_set(&exact->front);
}

bool threads_harden(void)
{
    struct front *front = thread_front();
    struct cache *mine = front->cache;
    struct counting_front *exact = NULL;
    bool alone;

    (void)drain_abandoned(CLEAR_ALL);
    lock_take(&threads_lock);
    alone = in_use == 0 ? first_cache == NULL : in_use == 1 && is_only_cache(mine);
    lock_give(&threads_lock);
    if (!alone || (mine != NULL && (exact = exact_front(front)) == NULL)) return false;
    if (!arenas_harden()) {
        if (exact != NULL && &exact->front != front) counting_end(exact);
        return false;
    }
    if (exact != NULL) harden_mine(exact);
    RELAXED_STORE(threads_are_hardened, true);
    return true;
}

struct arena *thread_arena(void)
{
    struct cache *cache = thread_front()->cache;

    if (cache->arena == NULL) {
        struct arena *arena = arena_choose(NULL);
        if (arena == NULL) return NULL;
        lock_give(&arena->lock);
        cache->arena = arena;
    }
    return cache->arena;
}

void thread_bind(struct arena *arena)
{
    struct cache *cache = thread_front()->cache;
    struct arena *before = is_bound(cache) ? cache->arena : NULL;

    (void)__atomic_fetch_add(&arena->threads, 1, __ATOMIC_RELAXED);
    cache_bind(cache, arena);
    if (before != NULL) leave_arena(before);
    aim(cache);
}

/* ---- up to which size threads hold blocks ---- */

/* What a constructor before ours has taken and given back lies with the calling thread. */
void threads_hold_up_to(unsigned class_index)
{
    (void)drain_abandoned(CLEAR_ALL);
    lock_take(&threads_lock);
    cached_class_max = class_index;
    for (struct cache *cache = first_cache; cache != NULL; cache = cache->next)
        RELAXED_STORE(cache->class_max, (uint8_t)class_index);
    lock_give(&threads_lock);
    if (class_index < CLASS_COUNT - 1 && thread_front()->cache != NULL)
        thread_hold_up_to(class_index);
}

void thread_hold_up_to(unsigned class_index)
{
    struct cache *cache = thread_front()->cache;

    cache_drain_all(cache);
    RELAXED_STORE(cache->class_max, (uint8_t)class_index);
    if (class_index < CLASS_COUNT - 1) keep_no_runs(cache);
}

/* ---- fork and visits ---- */

/* Staggered blocks of threads that the child has not are its own. Their caches are not written to:
 * the parent has the same pages. Those that are abandoned count none. */
static void count_staggered_of_others(const struct cache *mine)
{
    uint32_t sum = 0;

    for (const struct cache *cache = first_cache; cache != NULL; cache = cache->next)
        if (cache != mine) sum += cache->staggered;
    RELAXED_STORE(large_staggered_before, large_staggered_before + sum);
}

/* The blocks in the other threads' magazines are lost to the child: their owners may have been in
 * the middle of a push when the memory was copied. */
void threads_forget_others(void)
{
    struct cache *mine = thread_front()->cache;

    RELAXED_STORE(forks_to_child, forks_to_child + 1);
    count_staggered_of_others(mine);
    EACH_ARENA (arena) arena->threads = 0;
    if (mine != NULL && is_bound(mine)) mine->arena->threads = 1;
    first_cache = NULL;
    oldest = NULL;
    in_use = 0;
    abandoned_visit(list_add);
    if (mine != NULL) {
        list_add(mine);
        begin_use();
    } else {
        decay_thread_count(in_use);
    }
    RELAXED_STORE(cached_wide_bytes, mine != NULL ? (ptrdiff_t)cache_wide_bytes(mine) : 0);
    quarantines_forget_others(mine);
}

struct large_cache_numbers threads_visit(void (*visit)(const struct cache *cache, void *context),
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
