/* thread.c - the birth and the end of a thread, and which kind of front it has in between.
 * SPDX-License-Identifier: MIT
 */
#include "thread.h"

#include "../arenas/decay.h"
#include "../arenas/manual.h"
#include "cache_list.h"
#include "sleepers.h"

/* Every new thread has a front of that kind. */
static bool threads_are_sampled SEALED;  /* atomic, written under threads_lock */
static bool threads_are_hardened SEALED; /* atomic */
static bool sampled_at_birth = true;     /* atomic: does a sampled front begin with sampling? */

/* ---- the end ---- */

/* Blocks of manual arenas, which a sized free may have put among others, go home; and a thread may
 * end in a signal handler that came in the middle of a call. */
static bool may_be_abandoned(const struct cache *cache)
{
    return cache->fixed == 0 && !cache->is_off && !cache->is_busy
        && cache->class_max == cached_class_max && !RELAXED_LOAD(threads_are_hardened)
        && !RELAXED_LOAD(arenas_have_manual);
}

/* It may end from now on: no cache of the thread's has a block of it. */
static void leave_arena(struct arena *arena)
{
    (void)__atomic_fetch_sub(&arena->threads, 1, __ATOMIC_RELEASE);
}

static void unbind(struct cache *cache)
{
    if (cache_is_bound(cache)) leave_arena(cache->arena);
    cache->fixed &= (uint8_t)~CACHE_BOUND;
}

/* NULL: it is bound to none. */
static struct arena *bound_arena(const struct cache *cache)
{
    return cache_is_bound(cache) ? cache->arena : NULL;
}

/* What it gave back to the arena may leave extents free. Hooks that are being asked are not asked
 * again, and who leaves the arena does so after them, for it lives until then. */
static void settle_from(const struct cache *cache, struct arena *arena)
{
    if (!cache_is_away(cache)) arena_settle(arena);
}

static void settle_bound(const struct cache *cache) { settle_from(cache, bound_arena(cache)); }

static void end_front(struct front *front, unsigned forks)
{
    struct cache *cache = front->cache;

    if (front_is_counting(front)) counting_end((struct counting_front *)front);
    if (may_be_abandoned(cache) && cache_list_abandon(cache, forks)) return;
    cache_drain_all(cache);
    settle_bound(cache);
    if (cache_list_forgot(forks)) cache->fixed = 0;
    unbind(cache);
    cache->is_off = false;
    cache_update_keeps_runs(cache);
    cache_list_leave(cache, forks);
}

/* Its blocks go back. */
static void thread_end(void)
{
    struct front *front = thread_front();
    unsigned forks = RELAXED_LOAD(forks_to_child);

    thread_front_set(GONE_FRONT);
    if (front->cache == NULL) return; /* it was taken while the thread slept */
    end_front(front, forks);
    (void)decay_after_return();
}

/* ---- the kind of its front ---- */

/* The record goes under the lock, because the statistics read it. */
static void keep_no_runs(struct cache *cache)
{
    struct large_cache *large_cache = cache->large_cache;

    if (large_cache == NULL) return;
    large_cache_drain(cache);
    lock_take(&threads_lock);
    large_cache_pass_takes_on(large_cache);
    RELAXED_STORE(cache->large_cache, NULL);
    lock_give(&threads_lock);
    meta_give(large_cache, sizeof *large_cache);
}

/* Gives back those that it may no longer keep; C4. */
static void update_kept_runs(struct cache *cache)
{
    cache_update_keeps_runs(cache);
    if (!cache->front.keeps_runs) keep_no_runs(cache);
}

void thread_follow_hooks(void)
{
    struct cache *cache = thread_front()->cache;

    if (cache != NULL) update_kept_runs(cache);
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
    update_kept_runs(front->cache);
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
    settle_bound(front->cache);
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
    update_kept_runs(cache);
}

/* ---- the beginning ---- */

/* False: not of the kind that threads have by now. */
static bool add_made(struct cache *cache, bool is_sampled)
{
    bool is_right;

    lock_take(&threads_lock);
    is_right = is_sampled == threads_are_sampled;
    if (likely(is_right)) cache_list_add(cache);
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
    return counting_begin_sampled(cache, RELAXED_LOAD(sampled_at_birth));
}

void threads_sampling_init(bool sampled) { RELAXED_STORE(sampled_at_birth, sampled); }
bool threads_sampling_at_birth(void) { return RELAXED_LOAD(sampled_at_birth); }

struct front *thread_attach(bool off)
{
    struct cache *cache = cache_list_take();
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
    sleepers_note_owner(cache, front == &cache->front);
    thread_front_set(front); /* before the hook, which may allocate */
    /* Of whose end nobody tells us, the cache would be lost with it: it lives as after its end. */
    if (unlikely(!os_thread_end_hook(thread_end)) && !thread_is_first()) thread_end();
    return thread_front();
}

/* ---- all calls are seen: the thread's, or those of a sampled or hardened process ---- */

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
 * map, sized frees by sampling_start. */
static void separate_frees(void)
{
    class_map_offset = OFFSET_FOR_FREES;
    for (unsigned index = 0; index < space.region_count; index++) {
        uint32_t first = space.region[index].first_page;

        for (uint32_t page = first; page < first + space.region[index].open_pages; page++)
            if (page_record(page)->class_at != 0 && !slab_record(page_record(page)->slab)->hidden)
                class_map_set(page_address(page), page_bytes(), page_record(page)->class_at);
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
    fresh->staggered = old->staggered;
    if (old->large_cache != NULL) large_cache_pass_takes_on(old->large_cache);
    cache_list_replace_only(old, fresh);
    thread_front_set(front_for(fresh));
    update_kept_runs(fresh);
}

static bool sample_mine(void)
{
    struct cache *mine = thread_front()->cache;
    struct cache *fresh = thread_front()->kind == FRONT_CACHE ? counting_make_sampled() : NULL;
    bool alone;

    if (fresh == NULL) return false;
    (void)cache_list_drain_abandoned(CLEAR_ALL);
    cache_drain_all(mine);
    lock_take(&threads_lock);
    alone = cache_list_is_only(mine);
    if (alone) {
        RELAXED_STORE(threads_are_sampled, true);
        separate_frees();
        replace_only(mine, fresh);
    }
    lock_give(&threads_lock);
    if (!alone) {
        counting_give_sampled(fresh);
        return false;
    }
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

    (void)cache_list_drain_abandoned(CLEAR_ALL);
    lock_take(&threads_lock);
    alone = cache_list_is_only(mine);
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

/* ---- its arena ---- */

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
    struct arena *before = bound_arena(cache);

    (void)__atomic_fetch_add(&arena->threads, 1, __ATOMIC_RELAXED);
    cache_bind(cache, arena);
    if (before != arena) settle_from(cache, before);
    if (before != NULL) leave_arena(before);
    update_kept_runs(cache);
}

/* ---- up to which size threads hold blocks ---- */

/* What a constructor before ours has taken and given back lies with the calling thread. */
void threads_hold_up_to(unsigned class_index)
{
    (void)cache_list_drain_abandoned(CLEAR_ALL);
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
    settle_bound(cache);
}
