/* thread.c - the birth and the end of a thread, as far as prairie is concerned.
 * SPDX-License-Identifier: MIT
 */
#include "thread.h"

#include "../arenas/decay.h"
#include "../base/port.h"
#include "large_cache.h"

static struct lock list_lock = { .state = LOCK_FREE, .rank = LOCK_THREADS };
static struct cache *first_cache; /* under list_lock: caches in use */
static unsigned in_use;           /* under list_lock: how many */
static struct cache *oldest;    /* under list_lock: the first one of all, while its thread lives */
static bool sampled_fronts;     /* under list_lock: every new thread is counted for samples */
static bool unsampled_at_birth; /* atomic */
static uintptr_t oldest_thread; /* under list_lock: the mark of that thread */
static struct cache *waiting;   /* under list_lock: drained ones, linked by next */

void threads_start(void) { lock_init(&list_lock, LOCK_THREADS); }

static void list_add(struct cache *cache)
{
    cache->next = first_cache;
    cache->previous = NULL;
    if (first_cache != NULL) first_cache->previous = cache;
    first_cache = cache;
    decay_thread_count(++in_use);
}

static void list_remove(struct cache *cache)
{
    if (cache->next != NULL) cache->next->previous = cache->previous;
    if (cache->previous != NULL) cache->previous->next = cache->next;
    else first_cache = cache->next;
    if (cache == oldest) RELAXED_STORE(oldest, NULL);
    decay_thread_count(--in_use);
}

static void leave_cache(struct cache *cache)
{
    lock_take(&list_lock);
    list_remove(cache);
    cache->next = waiting;
    waiting = cache;
    lock_give(&list_lock);
}

static bool is_bound(const struct cache *cache) { return (cache->fixed & CACHE_BOUND) != 0; }

static void unbind(struct cache *cache)
{
    if (is_bound(cache)) (void)__atomic_fetch_sub(&cache->arena->threads, 1, __ATOMIC_RELAXED);
    cache->fixed &= (uint8_t)~CACHE_BOUND;
}

/* The cache waits for the next thread. */
static void end_front(struct cache *front)
{
    struct cache *cache = front->behind;

    if (front != cache) counting_end((struct counting_front *)front);
    cache_drain_all(cache);
    unbind(cache);
    cache->is_off = false;
    cache->large = cache;
    if (RELAXED_LOAD(sampled_fronts)) counting_sampled_of(cache)->large = cache;
    leave_cache(cache);
}

/* Its blocks go back. */
static void thread_end(void)
{
    struct cache *front = thread_cache();

    if (front->behind == NULL) return;
    thread_cache_set(CACHE_GONE);
    end_front(front);
    (void)decay_after_return();
}

/* The record goes under the lock, because the statistics read it. */
static void keep_no_runs(struct cache *cache)
{
    struct large_cache *large_cache = cache->large_cache;

    if (large_cache == NULL) return;
    large_cache_drain(cache);
    lock_take(&list_lock);
    RELAXED_STORE(cache->large_cache, NULL);
    lock_give(&list_lock);
    meta_give(large_cache, sizeof *large_cache);
}

/* C4 */
static void aim(struct cache *front)
{
    struct cache *cache = front->behind;

    cache_aim(cache);
    front->large = cache->large;
    if (cache->large == NULL) keep_no_runs(cache);
}

void thread_follow_hooks(void)
{
    struct cache *front = thread_cache();

    if (!cache_is_constant(front)) aim(front);
}

static bool is_exact(const struct cache *front)
{
    return !cache_is_plain(front) && !cache_is_sampled(front);
}

/* The same thread, whose cache may hold no blocks; every call is seen, for none may end in the
 * cache. NULL: no memory. */
static struct cache *front_without_blocks(struct cache *front)
{
    struct cache *off = is_exact(front) ? front : (struct cache *)counting_begin_exact(front);

    if (off == NULL) return NULL;
    cache_drain_all(off->behind);
    off->behind->is_off = true;
    aim(off);
    return off;
}

bool thread_cache_off(void)
{
    struct cache *front = thread_cache();

    if (cache_is_constant(front)) return true;
    if ((front->behind->fixed & CACHE_AWAY) != 0) return false;
    front = front_without_blocks(front);
    if (front == NULL) return false;
    thread_cache_set(front);
    (void)decay_after_return();
    return true;
}

/* As it was before every call was seen. */
static struct cache *usual_front(struct cache *cache)
{
    return RELAXED_LOAD(sampled_fronts) ? (struct cache *)counting_sampled_of(cache) : cache;
}

void thread_cache_on(void)
{
    struct cache *front = thread_cache(), *cache = front->behind;
    struct counting_front *exact = (struct counting_front *)front;

    if (cache == NULL || !cache->is_off) return;
    cache->is_off = false;
    if (!exact->is_told) {
        front = usual_front(cache);
        thread_cache_set(front);
        counting_end(exact);
    }
    aim(front);
}

static struct cache *take_waiting(void)
{
    struct cache *cache;

    lock_take(&list_lock);
    cache = waiting;
    if (cache != NULL) {
        waiting = cache->next;
        cache->arena = NULL;
        cache->class_max = (uint8_t)cached_class_max;
        list_add(cache);
    }
    lock_give(&list_lock);
    return cache;
}

/* The loader may have reset the slot of the first thread (os/linux_early.c). */
static struct cache *find_oldest(void)
{
    struct cache *cache = NULL;

    if (RELAXED_LOAD(oldest) == NULL) return NULL;
    lock_take(&list_lock);
    if (oldest != NULL && oldest_thread == port_thread_mark()) cache = oldest;
    lock_give(&list_lock);
    return cache;
}

static struct cache *make_sampled(void)
{
    struct sampled_front *counting = counting_make_sampled();

    return counting != NULL ? &counting->cache : NULL;
}

/* False: not of the kind that threads have by now. */
static bool add_made(struct cache *cache, bool is_sampled)
{
    bool is_right;

    lock_take(&list_lock);
    is_right = is_sampled == sampled_fronts;
    if (likely(is_right)) {
        list_add(cache);
        if (oldest_thread == 0) {
            RELAXED_STORE(oldest, cache);
            oldest_thread = port_thread_mark();
        }
    }
    lock_give(&list_lock);
    return is_right;
}

/* Once frees have magazines of their own a plain one will not do. That may have begun meanwhile. */
static struct cache *make_cache(void)
{
    bool is_sampled = RELAXED_LOAD(sampled_fronts);
    struct cache *cache = is_sampled ? make_sampled() : cache_make();

    if (cache == NULL || likely(add_made(cache, is_sampled))) return cache;
    cache_give(cache);
    return make_cache();
}

static struct cache *front_for(struct cache *cache)
{
    if (!RELAXED_LOAD(sampled_fronts)) return cache;
    return (struct cache *)counting_begin_sampled(cache, !RELAXED_LOAD(unsampled_at_birth));
}

void threads_sampling_init(bool sampled) { RELAXED_STORE(unsampled_at_birth, !sampled); }
bool threads_sampling_at_birth(void) { return !RELAXED_LOAD(unsampled_at_birth); }

struct cache *thread_attach(bool off)
{
    struct cache *cache = find_oldest(), *begun, *front;

    if (cache == NULL) cache = take_waiting();
    if (cache == NULL) cache = make_cache();
    if (cache == NULL) return NULL;
    begun = front = front_for(cache);
    if (off || cache->is_off) front = front_without_blocks(begun);
    if (front == NULL) {
        end_front(begun);
        return NULL;
    }
    thread_cache_set(front); /* before the hook, which may allocate */
    (void)os_thread_end_hook(thread_end);
    return front;
}

void thread_flush(void)
{
    struct cache *cache = thread_cache()->behind;

    if (cache != NULL) cache_drain_all(cache);
}

struct counting_front *thread_count_calls(void)
{
    struct cache *front = thread_cache();
    struct counting_front *counting;

    if (cache_is_constant(front)) return NULL;
    counting = is_exact(front) ? (struct counting_front *)front : counting_begin_exact(front);
    if (counting == NULL) return NULL;
    counting->is_told = true;
    thread_cache_set((struct cache *)counting);
    return counting;
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

/* The only cache there is makes way for another one, which fills from the same arena. */
static void replace_only(struct cache *old, struct cache *fresh)
{
    fresh->arena = old->arena;
    fresh->fixed = old->fixed;
    fresh->class_max = old->class_max;
    fresh->refills = old->refills;
    fresh->overflows = old->overflows;
    if (oldest == old) RELAXED_STORE(oldest, fresh);
    first_cache = fresh;
    thread_cache_set(front_for(fresh));
    aim(thread_cache());
}

static bool sample_mine(void)
{
    struct cache *mine = thread_cache();
    struct sampled_front *fresh = cache_is_plain(mine) ? counting_make_sampled() : NULL;
    bool alone;

    if (fresh == NULL) return false;
    lock_take(&list_lock);
    alone = in_use == 1 && first_cache == mine;
    if (alone) {
        give_waiting();
        RELAXED_STORE(sampled_fronts, true);
        separate_frees();
        replace_only(mine, &fresh->cache);
    }
    lock_give(&list_lock);
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

struct arena *thread_arena(void)
{
    struct cache *cache = thread_cache()->behind;

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
    struct cache *cache = thread_cache()->behind;

    (void)__atomic_fetch_add(&arena->threads, 1, __ATOMIC_RELAXED);
    unbind(cache);
    cache_bind(cache, arena);
    aim(thread_cache());
}

/* ---- how large blocks are held ---- */

void threads_hold_up_to(unsigned class_index)
{
    lock_take(&list_lock);
    cached_class_max = class_index;
    for (struct cache *cache = first_cache; cache != NULL; cache = cache->next)
        RELAXED_STORE(cache->class_max, (uint8_t)class_index);
    lock_give(&list_lock);
}

void thread_hold_up_to(unsigned class_index)
{
    struct cache *cache = thread_cache()->behind;

    cache_drain_all(cache);
    RELAXED_STORE(cache->class_max, (uint8_t)class_index);
    if (class_index < CLASS_COUNT - 1) keep_no_runs(cache);
}

/* ---- blocks that no cache holds ---- */

static void *take_uncached(unsigned class_index)
{
    struct arena *arena = arena_choose_unhooked();
    void *slots[2] = { NULL, NULL };

    if (arena == NULL) arena = arena_choose(NULL);
    if (arena == NULL) return NULL;
    (void)arena_fill(arena, class_index, slots, 1, true);
    lock_give(&arena->lock);
    return slots[1];
}

void *uncached_thread_take(unsigned class_index)
{
    void *block = take_uncached(class_index);

    if (likely(block != NULL)) return block;
    decay_before_refusal();
    return take_uncached(class_index);
}

void uncached_thread_put(unsigned class_index, void *block)
{
    arenas_drain(class_index, &block, 1);
    (void)decay_after_return();
}

/* ---- fork and visits ---- */

void threads_each_lock(void (*visit)(struct lock *lock)) { visit(&list_lock); }

/* The blocks in the other threads' magazines are lost to the child: their owners may have been in
 * the middle of a push when the memory was copied. */
void threads_forget_others(void)
{
    struct cache *mine = thread_cache()->behind;

    for (unsigned index = 0; index < arenas_end(); index++)
        if (arenas[index] != NULL) arenas[index]->threads = 0;
    if (mine != NULL && is_bound(mine)) mine->arena->threads = 1;
    first_cache = NULL;
    RELAXED_STORE(oldest, NULL);
    in_use = 0;
    if (mine != NULL) list_add(mine);
}

void threads_visit(void (*visit)(const struct cache *cache, void *context), void *context)
{
    lock_take(&list_lock);
    for (const struct cache *cache = first_cache; cache != NULL; cache = cache->next)
        visit(cache, context);
    lock_give(&list_lock);
}
