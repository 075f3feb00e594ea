/* shortage.c - what the doors do when memory runs short, in this order.
 *
 *      the kernel, or a limit, refuses         the reserve gives pages; LOW until it is full again
 *      the reserve has not got it either       with reserve_malloc: CRIT, a try after each
 *                                              callback; else NULL
 *      a limit or the end of a group is near   LOW until it is not (shortage_look); near the end
 *                                              of a group without listeners, pages of slabs on
 *                                              which no block lives go back
 *
 * Here no lock is held, and callbacks run. A program that keeps no reserve, registers nobody
 * and has no limit comes here to be refused, and for nothing else.
 * SPDX-License-Identifier: MIT
 */
#include "shortage.h"

#include "large.h"
#include "notify.h"
#include "slow.h"

#include "../arenas/decay.h"
#include "../arenas/sparse.h"
#include "../base/options.h"
#include "../base/report.h"
#include "../cache/thread.h"
#include "../policy/limits.h"
#include "../policy/purge.h"
#include "../policy/reserve.h"

/* The reserve is tried again so soon when nothing was returned meanwhile. */
enum { REFILL_MS = 50 };
/* Another thread may lease what was released for this one, or what callbacks freed. */
enum { RELEASES_MAX = 4, ROUNDS_MAX = 8 };

static struct {
    size_t wanted;      /* atomic: one more than the bytes that the reserve was said to have; 0:
                           nobody said */
    uint64_t refill_ms; /* atomic: when it was last tried */
    size_t clean_seen;  /* atomic: page_heaps_clean_leased_now at the last look at limits */
} shortage;

/* From the slabs of any automatic arena. */
static void *take_anywhere(const struct alloc_request *request)
{
    if (request->class_index == 0 || large_owner(request) != NULL) return NULL;
    return arenas_take_one(request->class_index);
}

/* The run that it takes, at most: its own, or one for a slab. */
static size_t pages_coming(const struct alloc_request *request)
{
    return request->class_index != 0 ? slab_pages(request->class_index) : request_pages(request);
}

/* What it lies in until it is cut out at its alignment. */
static size_t pages_wanted(const struct alloc_request *request)
{
    return pages_coming(request) + request_align_pages(request) - 1;
}

/* Who looked at limits here would fill the reserve with what it gave up for the request. */
static void *serve_once(const struct alloc_request *request)
{
    struct alloc_request again = *request;
    void *block;

    again.looked = true;
    limits_bar_clean_for(pages_coming(request) << space.page_shift);
    block = alloc_once(&again);
    return block != NULL ? block : take_anywhere(request);
}

/* ---- recovering ---- */

/* What threads and depots hold ready keeps pages from being whole. */
void shortage_gather(void)
{
    thread_flush();
    (void)arenas_clear(CLEAR_ALL);
}

bool shortage_make_room(void)
{
    shortage_gather();
    (void)purge_all();
    purge_await_others(page_bytes());
    if (commit_allows(page_bytes())) return true;
    if (!reserve_release(1)) return false;
    (void)purge_all();
    shortage_set_look();
    return true;
}

static void look_from(size_t coming)
{
    decay_look_at_limits_from(reserve_is_short() ? 0 : limits_look_from(coming));
}

void shortage_set_look(void) { look_from(0); }

static bool has_recovered(void)
{
    shortage_gather();
    return reserve_refill() && limits_are_clear();
}

/* ---- refused ---- */

static void *serve_from_reserve(const struct alloc_request *request)
{
    void *block = NULL;

    for (unsigned i = 0; i < RELEASES_MAX && block == NULL; i++) {
        if (!reserve_release(pages_wanted(request))) break;
        block = serve_once(request);
    }
    return block;
}

static void *serve_somehow(const struct alloc_request *request)
{
    void *block = serve_once(request);

    return block != NULL ? block : serve_from_reserve(request);
}

/* Has memory recovered, and is the waiting request (NULL: none) served? The request is tried again
 * if memory has recovered, or in any case with `anyway`. */
static bool recover(const struct alloc_request *request, void **block, bool anyway)
{
    bool recovered = has_recovered();

    if (request == NULL || *block != NULL || !(recovered || anyway)) return recovered;
    *block = serve_somehow(request);
    return *block != NULL && has_recovered();
}

/* When nobody listens, who would free more: pages of slabs on which no block lives. They are in the
 * group's account, and in no other limit's. */
static bool purge_for_group(void)
{
    return !notify_has_listeners() && limits_group_is_crowded() && sparse_purge_all() != 0;
}

/* Tells LOW to one callback after the other until `recover` says yes; purge_for_group is the last
 * resort. `request` NULL: none waits; `block` is what has served it already, or NULL. */
static void *tell_low(const struct alloc_request *request, size_t size, void *block)
{
    struct event event;
    bool recovered = recover(request, &block, false);

    if (!recovered && event_begin(&event, RESERVE_CND_LOW, size))
        while (!recovered && event_next(&event)) recovered = recover(request, &block, true);
    if (!recovered && purge_for_group()) (void)recover(request, &block, true);
    look_from(0);
    return block;
}

/* One callback, then another try, until it is served or all have been told. */
static void *serve_after_telling(const struct alloc_request *request)
{
    struct event event;
    void *block = NULL;

    if (!event_begin(&event, RESERVE_CND_CRIT, request_bytes(request))) return NULL;
    while (block == NULL && event_next(&event)) {
        shortage_gather();
        block = serve_once(request);
    }
    shortage_set_look();
    return block;
}

/* What other threads are giving back may be all that is missing. */
static void *serve_after_others(const struct alloc_request *request)
{
    if (!page_heaps_have_in_flight()) return NULL;
    purge_await_others(bytes_with_records(pages_wanted(request)));
    return serve_once(request);
}

/* What the reserve gives up is of no use to hooks, and neither are pages of others. A request that
 * is larger than all of the reserve is nothing that the reserve is for. */
void *shortage_serve(const struct alloc_request *request)
{
    const struct arena *owner = large_owner(request);
    bool is_hooked = owner != NULL && RELAXED_LOAD(owner->extents) != NULL;
    void *block = take_anywhere(request);

    if (block == NULL && !is_hooked) block = serve_after_others(request);
    if (block == NULL && reserve_is_kept() && !is_hooked) {
        bool fits = pages_wanted(request) <= RELAXED_LOAD(reserve.wanted_pages);
        size_t bytes = request_bytes(request);

        /* Clean pages may be barred for another thread's request, which takes more. */
        if (page_heaps_are_barred()) block = serve_once(request);
        if (block == NULL) block = serve_from_reserve(request);
        if (reserve_is_short() || page_heaps_are_barred()) block = tell_low(request, bytes, block);
        for (unsigned i = 0; i < ROUNDS_MAX && block == NULL && fits; i++) {
            block = tell_low(request, bytes, NULL);
            /* Other threads may have taken what the reserve gave up. */
            if (block == NULL) block = serve_from_reserve(request);
        }
    }
    if (block == NULL && option_is_set(OPTION_RESERVE_MALLOC)) block = serve_after_telling(request);
    return block;
}

/* ---- near a limit ---- */

static size_t free_pages_now(void)
{
    return page_heaps_free_now(FREE_DIRTY) + page_heaps_free_now(FREE_CLEAN);
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

bool shortage_is_seen(void)
{
    return RELAXED_LOAD(decay_limits_at_bytes) == LOOK_AT_LEASES
        && RELAXED_LOAD(shortage.clean_seen) == (size_t)page_heaps_clean_leased_now();
}

void shortage_look(size_t size)
{
    size_t clean = (size_t)page_heaps_clean_leased_now();
    enum limits_state state;

    if (notify_runs_here()) return;
    state = limits_look(size);
    if (state == LIMITS_STALLED) {
        notify_all(RESERVE_CND_LOW, size);
        (void)has_recovered();
    } else if (state == LIMITS_NEAR) {
        (void)tell_low(NULL, size, NULL);
    } else if (refill_is_due()) {
        (void)reserve_refill();
    }
    if (state != LIMITS_CALM) limits_bar_clean_for(size); /* who recovered looked anew */
    RELAXED_STORE(shortage.clean_seen, clean);
    look_from(size);
}

/* ---- the life of the process ---- */

void shortage_start(void)
{
    page_heaps_follow_limits();
    limits_follow_group(option_is_set(OPTION_LIMIT_GROUP));
    shortage_set_look();
}

static COLD NOINLINE void say_reserve_is_short(void)
{
    struct report line = { .write = report_to_error };
    uint64_t bytes = (uint64_t)RELAXED_LOAD(reserve.pages) << space.page_shift;

    report_print(&line,
                 "prairie: reserve_min: only %" PRIu64 " of %" PRIu64 " bytes could be had\n",
                 bytes, option_value(OPTION_RESERVE_MIN));
    report_flush(&line);
}

void shortage_obey_options(void)
{
    if (option_is_set(OPTION_LIMIT_GROUP) != RELAXED_LOAD(limits.follows_group))
        limits_follow_group(option_is_set(OPTION_LIMIT_GROUP));
    /* The program may have set others before. */
    if (option_is_set(OPTION_LIMIT_SOFT)) limits_set_soft(option_value(OPTION_LIMIT_SOFT));
    if (option_is_set(OPTION_LIMIT_HARD)) limits_set_hard(option_value(OPTION_LIMIT_HARD));
    if (option_is_set(OPTION_RESERVE_MIN) && !shortage_reserve(option_value(OPTION_RESERVE_MIN))
        && reserve_missing_pages() != 0)
        say_reserve_is_short();
    shortage_set_look();
}

/* What was said last counts: who finds that something else was said meanwhile tries again. */
static bool reserve_as_wanted(void)
{
    size_t bytes;
    bool full;

    do {
        bytes = RELAXED_LOAD(shortage.wanted) - 1;
        limits_set_bars_clean(bytes != 0);
        full = reserve_resize(bytes);
    } while (RELAXED_LOAD(shortage.wanted) - 1 != bytes);
    if (!full) (void)tell_low(NULL, bytes, NULL);
    shortage_set_look();
    if (decay_after_return()) thread_flush(); /* it may have become smaller */
    return full;
}

bool shortage_reserve(size_t bytes)
{
    RELAXED_STORE(shortage.wanted, min_size(bytes, SIZE_MAX - 1) + 1);
    return reserve_as_wanted();
}

void shortage_reserve_default(void)
{
    size_t nobody_said = 0;

    if (__atomic_compare_exchange_n(&shortage.wanted, &nobody_said, RESERVE_BYTES_DEFAULT + 1,
                                    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        (void)reserve_as_wanted();
}
