/* shortage.c - what the doors do when memory runs short, in this order.
 *
 *      the kernel, or a limit, refuses           the reserve gives pages; LOW, until it is full
 * again the reserve has not got it either         with reserve_malloc: CRIT, a try after each
 * callback; else NULL a limit or the end of a group is near     LOW, until it is not
 * (shortage_look)
 *
 * Here no lock is held, and callbacks run. A program that keeps no reserve and registers nobody
 * comes here to be refused, and for nothing else.
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include "../arenas/decay.h"
#include "../base/options.h"
#include "../guard/fill.h"
#include "../policy/limits.h"
#include "../policy/purge.h"
#include "../policy/reserve.h"
#include "notify.h"

/* The reserve is tried again so soon when nothing was returned meanwhile. */
enum { REFILL_MS = 50 };
/* Another thread may lease what was released for this one, or what callbacks freed. */
enum { RELEASES_MAX = 4, ROUNDS_MAX = 8 };

struct need {
    size_t size;
    unsigned class_index;      /* 0: large */
    size_t pages, align_pages; /* of a large one */
    bool zero;
    struct arena *owner; /* of a large one: the arena that the thread is bound to; NULL: none */
};

static struct {
    bool chosen;        /* atomic: somebody said how large the reserve is to be */
    uint64_t refill_ms; /* atomic: when it was last tried */
} shortage;

/* The arena that the calling thread's blocks come from and no other; NULL: any will do. */
static struct arena *only_arena(void)
{
    const struct cache *cache = thread_cache()->behind;

    return cache != NULL ? cache_large_arena(cache) : NULL;
}

/* From the slabs of any automatic arena. */
static void *take_anywhere(unsigned class_index)
{
    void *block = only_arena() == NULL ? arenas_take_one(class_index) : NULL;

    if (thread_cache_is_off()) (void)fill_taken(block, class_bytes[class_index]);
    return counted(block, class_bytes[class_index]);
}

static void *serve_once(struct need need)
{
    void *block;

    if (need.owner != NULL)
        return manual_take_once(need.owner, need.pages, need.align_pages, need.zero);
    if (need.class_index == 0) return large_take_once(need.pages, need.align_pages, need.zero);
    block = class_take_once(need.class_index);
    return block != NULL ? block : take_anywhere(need.class_index);
}

/* ---- recovering ---- */

/* What threads and depots hold ready keeps pages from being whole. */
void shortage_gather(void)
{
    thread_flush();
    arenas_clear();
}

static void counting(size_t coming)
{
    decay_look_from(reserve_is_short() ? 0 : limits_look_from(coming));
}

void shortage_set_look(void) { counting(0); }

static bool has_recovered(void)
{
    shortage_gather();
    return reserve_refill() && limits_are_clear();
}

/* ---- refused ---- */

static size_t pages_wanted(struct need need)
{
    return need.class_index != 0 ? slab_pages(need.class_index) : need.pages + need.align_pages - 1;
}

static void *serve_from_reserve(struct need need)
{
    void *block = NULL;

    for (unsigned i = 0; i < RELEASES_MAX && block == NULL; i++) {
        if (!reserve_release(pages_wanted(need))) break;
        block = serve_once(need);
    }
    return block;
}

static void *serve_somehow(struct need need)
{
    void *block = serve_once(need);

    return block != NULL ? block : serve_from_reserve(need);
}

/* Each callback in turn, until there is enough again, and the request is served; `block` is what
 * has served it already, or NULL. */
static void *tell_low(struct need need, void *block)
{
    struct event event;

    if (has_recovered() && block == NULL) block = serve_somehow(need);
    if ((block == NULL || !has_recovered()) && event_begin(&event, RESERVE_CND_LOW, need.size))
        while (event_next(&event)) {
            bool recovered = has_recovered();
            if (block == NULL) {
                block = serve_somehow(need);
                recovered = block != NULL && has_recovered();
            }
            if (recovered) break;
        }
    counting(0);
    return block;
}

/* As tell_low, when no request waits. */
static void tell_low_of(size_t size)
{
    struct event event;

    if (!has_recovered() && event_begin(&event, RESERVE_CND_LOW, size))
        while (event_next(&event) && !has_recovered()) {}
    counting(0);
}

/* One callback, then another try, until it is served or all have been told. */
static void *serve_after_telling(struct need need)
{
    struct event event;
    void *block = NULL;

    if (!event_begin(&event, RESERVE_CND_CRIT, need.size)) return NULL;
    while (block == NULL && event_next(&event)) {
        shortage_gather();
        block = serve_once(need);
    }
    shortage_set_look();
    return block;
}

static bool is_hooked(const struct arena *arena)
{
    return arena != NULL && RELAXED_LOAD(arena->extents) != NULL;
}

/* What the reserve gives up is of no use to hooks. A request that is larger than all of the reserve
 * is nothing that the reserve is for. */
static void *serve_in_shortage(struct need need)
{
    void *block = need.class_index != 0 ? take_anywhere(need.class_index) : NULL;
    const struct arena *owner = need.class_index != 0 ? only_arena() : need.owner;

    if (block == NULL && reserve_is_kept() && !is_hooked(owner)) {
        bool fits = pages_wanted(need) <= RELAXED_LOAD(reserve.wanted_pages);

        block = serve_from_reserve(need);
        if (reserve_is_short() || page_heap_is_barred(&page_heap)) block = tell_low(need, block);
        for (unsigned i = 0; i < ROUNDS_MAX && block == NULL && fits; i++)
            block = tell_low(need, NULL);
    }
    if (block == NULL && option_reserve_malloc()) block = serve_after_telling(need);
    return block;
}

void *shortage_small(unsigned class_index)
{
    return serve_in_shortage(
        (struct need){ .size = class_bytes[class_index], .class_index = class_index });
}

void *shortage_large(size_t pages, size_t align_pages, bool zero)
{
    return serve_in_shortage((struct need){ .size = pages << space.page_shift,
                                            .pages = pages,
                                            .align_pages = align_pages,
                                            .zero = zero });
}

void *shortage_manual(struct arena *arena, size_t pages, size_t align_pages, bool zero)
{
    return serve_in_shortage((struct need){ .size = pages << space.page_shift,
                                            .pages = pages,
                                            .align_pages = align_pages,
                                            .zero = zero,
                                            .owner = arena });
}

/* ---- near a limit ---- */

static void tell_all_low(size_t size)
{
    struct event event;

    if (event_begin(&event, RESERVE_CND_LOW, size))
        while (event_next(&event)) {}
    (void)has_recovered();
}

static READS_UNLOCKED size_t free_pages_now(void)
{
    return page_heap.free_pages[FREE_DIRTY] + page_heap.free_pages[FREE_CLEAN];
}

/* Now, when so many pages are free; else only now and then, for the kernel may have changed its
 * mind. */
static bool refill_is_due(void)
{
    uint64_t now;

    if (!reserve_is_short()) return false;
    now = os_now_ms();
    if (reserve_missing_pages() > free_pages_now()
        && now - RELAXED_LOAD(shortage.refill_ms) < REFILL_MS)
        return false;
    RELAXED_STORE(shortage.refill_ms, now);
    return true;
}

void shortage_look(size_t size)
{
    if (notify_runs_here()) return;
    switch (limits_look()) {
    case LIMITS_STALLED: tell_all_low(size); break;
    case LIMITS_NEAR: tell_low_of(size); break;
    default:
        if (refill_is_due()) (void)reserve_refill();
    }
    counting(size);
}

/* ---- the life of the process ---- */

void shortage_start(void)
{
    page_heap_limit_clean(&page_heap, limits_hard() != SIZE_MAX);
    RELAXED_STORE(limits.follows_group, option_limit_group());
    shortage_set_look();
}

void shortage_apply_options(void)
{
    RELAXED_STORE(limits.follows_group, option_limit_group());
    limits_set_soft(option_limit_soft());
    limits_set_hard(option_limit_hard());
    if (option_reserve_min() != 0) (void)shortage_reserve(option_reserve_min());
    shortage_set_look();
}

bool shortage_reserve_is_chosen(void) { return RELAXED_LOAD(shortage.chosen); }

bool shortage_reserve(size_t bytes)
{
    bool full;

    RELAXED_STORE(shortage.chosen, true);
    RELAXED_STORE(limits.bars_clean, bytes != 0);
    full = reserve_resize(bytes);
    if (!full) tell_low_of(bytes);
    shortage_set_look();
    return full;
}
