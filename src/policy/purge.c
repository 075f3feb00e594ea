/* purge.c - the budget, and who purges when.
 * SPDX-License-Identifier: MIT
 */
#include "purge_pass.h"

#include "../base/bits.h"
#include "../base/options.h"

enum { REGRET_MS = 2000 };
/* The kernel takes some milliseconds for the longest run; a thread that purges may not run at all
 * for a while. */
enum { AWAIT_MS_MAX = 20 };
/* What may stay in any case is shared among so many page heaps at most: a smaller share is not
 * worth a pass. */
enum { KEEPERS_MAX = 16 };

struct purge purge[PAGE_HEAPS] SPARSE;
struct purge_mode purge_mode;

/* Near a limit, and with dirty_decay_ms:0. */
static bool nothing_may_stay(void)
{
    return unlikely(purge_is_urgent()) || unlikely(option_decay_ms() == 0);
}

/* How many dirty pages of a page heap may stay, as of one moment. */
struct budget {
    size_t share;      /* in any case: a part of the peak, and of_used */
    size_t of_used;    /* the part of share that comes from the pages in use now */
    size_t total;      /* with what may be wanted again */
    size_t most;       /* beyond this somebody purges */
    size_t dirty;      /* how many there are */
    bool took_nothing; /* the kernel took none of them */
};

/* What slabs had at their peak and have no more. Under the page heap's lock. */
static size_t fall_of(struct page_heap *heap)
{
    return heap->slab_peak - min_size(heap->slab_peak, page_heap_slab_pages(heap));
}

/* Pages that may be wanted again soon: a program whose objects go often makes as many anew. Large
 * blocks do not count, for the next one is longer; and a small heap's fall is not worth a thread
 * that looks after it. Under the page heap's lock. */
static size_t wanted_again(struct page_heap *heap)
{
    size_t fall = heap->slab_peak >= pages_for(FALL_BYTES_MIN) ? fall_of(heap) : 0;

    return max_size(purge_of(heap)->bonus_pages, fall);
}

/* What may stay in any case: of each page heap; where somebody would come, of all of them together,
 * or what a burst left would stay for good where it is spread over many. A page of each, at least:
 * they may be long. */
static size_t kept_pages(bool is_coming)
{
    unsigned heaps = is_coming ? page_heap_count() : 1;

    return max_size(pages_for(PURGE_KEEP_BYTES) / min_size(heaps, KEEPERS_MAX), 1);
}

/* Notes the peak as well. Under the page heap's lock. What may stay beside the share of the peak:
 *   while the background thread looks, a share of what is in use, and what may be wanted again;
 *   while it would come if it was asked, nothing, so that it is asked early;
 *   while nobody looks, a share of what is in use, and a little of what regrets added. */
static struct budget budget_now(struct page_heap *heap, bool background)
{
    struct purge *own = purge_of(heap);
    bool is_coming = !background && RELAXED_LOAD(purge_mode.on_call);
    size_t used = page_heap_used_pages(heap), bonus = 0;
    struct budget budget = { .dirty = heap->free_pages[FREE_DIRTY],
                             .took_nothing = own->took_nothing };

    own->peak_pages = max_size(own->peak_pages, used + budget.dirty);
    if (nothing_may_stay()) return budget;
    if (background) bonus = wanted_again(heap);
    else if (!is_coming) bonus = min_size(own->bonus_pages, pages_for(PURGE_UNATTENDED_BYTES));
    if (!is_coming) budget.of_used = used / PURGE_USED_SHARE;
    budget.share =
        max_size(kept_pages(is_coming), own->peak_pages / PURGE_PEAK_SHARE) + budget.of_used;
    budget.total = budget.share + bonus;
    budget.most = budget.total + budget.share / 2;
    return budget;
}

static struct budget budget_of(struct page_heap *heap, bool background)
{
    struct budget budget;

    lock_take(&heap->lock);
    budget = budget_now(heap, background);
    lock_give(&heap->lock);
    return budget;
}

/* ---- giving back ---- */

/* All runs of at least run_min and at most run_max, as many pages as are dirty now: what others
 * return meanwhile could go on for ever. Returns pages. */
static size_t purge_all_runs(size_t run_min, size_t run_max)
{
    size_t purged = 0;

    for (unsigned i = 0; i < page_heap_count(); i++) {
        struct purge_pass pass = { .heap = &page_heap[i],
                                   .wanted = page_heap_free_now(&page_heap[i], FREE_DIRTY) };

        purge_runs(&pass, run_min, run_max);
        purged += purge_end_pass(&pass);
    }
    return purged;
}

size_t purge_all(void)
{
    size_t purged = purge_all_runs(1, pages_for(PURGE_RUN_BYTES_MAX));

    purge_left_behind(NULL);
    return purged << space.page_shift;
}

void purge_count_tally(struct page_heap *heap, struct purge_tally tally)
{
    if (tally.calls == 0) return;
    lock_take(&heap->lock);
    purge_count_calls(heap, tally.calls, tally.pages);
    if (tally.more_pages != 0) huge_note_short(heap, tally.more_pages);
    lock_give(&heap->lock);
}

/* What is on its way counts as taken and is no free page, though it may be all that is missing. */
void purge_await_others(size_t bytes)
{
    if (page_heaps_are_barred()) return; /* they come back clean */
    for (unsigned ms = 0; ms < AWAIT_MS_MAX && page_heaps_have_in_flight(); ms++) {
        if (commit_is_limited() && commit_allows(bytes)) return;
        os_pause(1);
    }
}

/* What was given back lately is one breath out, however many calls it took; was it breathed in
 * again soon? Where nothing may stay it always is, which is no reason for a budget. Under the page
 * heap's lock. */
static void learn(struct page_heap *heap, uint64_t now)
{
    struct purge *own = purge_of(heap);

    if (own->last_pages == 0) return;
    if (now >= own->last_ms + REGRET_MS) {
        own->peak_pages -= own->peak_pages / 4;
        heap->slab_peak -= fall_of(heap) / 4;
        own->bonus_pages -= own->bonus_pages / 4;
        own->last_pages = 0;
    } else if (heap->clean_leased - own->last_clean_leased >= (own->last_pages + 1) / 2) {
        own->regrets++;
        if (!nothing_may_stay()) own->bonus_pages += own->last_pages;
        own->last_pages = 0;
    }
}

/* What asks for more than the budget is asked each time: dirty_decay_ms:0 and
 * oversize_threshold. */
static bool trigger_is_fixed(void)
{
    return option_decay_ms() <= 0 || option_is_set(OPTION_OVERSIZE_THRESHOLD);
}

static void purge_heap_beyond_budget(struct page_heap *heap)
{
    struct purge *own = purge_of(heap);
    struct purge_pass pass = { .heap = heap };
    uint64_t now = os_now_ms();
    struct budget budget;

    lock_take(&heap->lock);
    learn(heap, now);
    budget = budget_now(heap, RELAXED_LOAD(purge_mode.background));
    lock_give(&heap->lock);
    if (budget.dirty <= budget.total) return;

    /* Huge pages are not broken for little. */
    pass.wanted = budget.dirty - budget.total;
    pass.keep = budget.total;
    purge_runs(&pass, huge_pages_each(), pages_for(PURGE_RUN_BYTES_MAX));
    if (purge_left(&pass) > budget.share) purge_runs(&pass, 1, pages_for(PURGE_RUN_BYTES_MAX));

    lock_take(&heap->lock);
    if (purge_left(&pass) <= budget.share && !trigger_is_fixed()) {
        /* Left on purpose: not to be looked at again at once. */
        RELAXED_STORE(heap->trigger_pages, heap->free_pages[FREE_DIRTY] + budget.share / 4);
    }
    if (own->last_pages == 0) own->last_clean_leased = heap->clean_leased;
    own->last_pages += pass.purged;
    own->last_ms = now;
    lock_give(&heap->lock);
    (void)purge_end_pass(&pass);
}

void purge_dirty_beyond_budget(void)
{
    if (option_decay_ms() < 0 && !purge_is_urgent()) return;
    for (unsigned i = 0; i < page_heap_count(); i++) purge_heap_beyond_budget(&page_heap[i]);
}

/* As of a moment ago. */
static bool is_past_trigger(const struct page_heap *heap)
{
    return page_heap_free_now(heap, FREE_DIRTY) > RELAXED_LOAD(heap->trigger_pages);
}

void purge_past_triggers(void)
{
    for (unsigned i = 0; i < page_heap_count(); i++)
        if (is_past_trigger(&page_heap[i]) || purge_is_urgent())
            purge_heap_beyond_budget(&page_heap[i]);
    purge_left_behind(NULL);
}

void purge_beyond_budget(void)
{
    purge_dirty_beyond_budget();
    purge_left_behind(NULL);
}

/* ---- what huge pages left behind ---- */

/* A hard limit counts what is on its way as used: there must be room for so many parts of huge
 * pages. */
static bool may_take_clean(size_t parts)
{
    return !OS_PURGE_CLOSES && page_heap_may_take_clean(page_heap, parts * pages_of_huge_page());
}

/* Each run is put back when the next is taken, so that the walk knows where it is: two are on their
 * way at once. */
void purge_left_behind(const uint32_t *stop)
{
    uint32_t at = 0, held = 0, page;
    struct purge_tally tally = { 0, 0, 0 };

    if (!may_take_clean(2) || !huge_take_left_behind()) return;
    while (!RELAXED_LOAD(huge.wanted) && !purge_is_stopped(stop) && may_take_clean(1)
           && (page = run_take_clean_edge(&at)) != 0) {
        size_t pages = page_record(page)->run_pages;

        tally.calls++;
        if (os_purge(page_range(page, pages))) tally.pages += pages;
        if (held != 0) run_put_free(held, PAGE_CLEAN);
        held = page;
    }
    if (held != 0) run_put_free(held, PAGE_CLEAN);
    if (purge_is_stopped(stop) || !may_take_clean(2)) RELAXED_STORE(huge.left_behind, true);
    purge_count_tally(page_heap, tally);
}

/* ---- later ---- */

/* The budgets have changed: each trigger falls to the least that any budget allows, so that all are
 * looked at anew. `waits`: under each lock, so that who computed a trigger by the old budgets does
 * not write it after us. */
static void reset_triggers(bool waits)
{
    size_t least = kept_pages(RELAXED_LOAD(purge_mode.on_call));

    if (nothing_may_stay() || trigger_is_fixed()) least = 0;

    for (unsigned i = 0; i < page_heap_count(); i++) {
        if (waits) lock_take(&page_heap[i].lock);
        RELAXED_STORE(page_heap[i].trigger_pages, least);
        if (waits) lock_give(&page_heap[i].lock);
    }
    __atomic_store_n(&page_heaps_past_trigger, UINT64_MAX >> (64 - page_heap_count()),
                     __ATOMIC_RELEASE);
}

void purge_set_background(bool runs)
{
    RELAXED_STORE(purge_mode.background, runs);
    reset_triggers(false);
}

void purge_set_on_call(bool comes)
{
    if (comes == RELAXED_LOAD(purge_mode.on_call)) return;
    RELAXED_STORE(purge_mode.on_call, comes);
    reset_triggers(false);
}

bool purge_wants_background(void)
{
    uint64_t now = os_now_ms();
    bool wants = false;

    for (unsigned i = 0; i < page_heap_count(); i++) {
        struct page_heap *heap = &page_heap[i];

        lock_take(&heap->lock);
        learn(heap, now);
        wants |=
            !purge_of(heap)->took_nothing && wanted_again(heap) > pages_for(PURGE_UNATTENDED_BYTES);
        lock_give(&heap->lock);
    }
    return wants && !nothing_may_stay();
}

/* It leaves alone what is not worth a pass. */
bool purge_needs_background(void)
{
    size_t least = pages_for(PURGE_WORTH_BYTES) - 1;
    bool needs = false;

    for (unsigned i = 0; i < page_heap_count(); i++) {
        struct budget budget = budget_of(&page_heap[i], false);

        needs |= !budget.took_nothing && budget.dirty > max_size(budget.most, least);
    }
    return needs && option_decay_ms() >= 0;
}

/* Returns what it was. */
static size_t begin_dirty_low(struct page_heap *heap)
{
    size_t low;

    lock_take(&heap->lock);
    low = heap->dirty_low;
    heap->dirty_low = heap->free_pages[FREE_DIRTY];
    lock_give(&heap->lock);
    return low;
}

void purge_begin_unneeded(void)
{
    for (unsigned i = 0; i < page_heap_count(); i++) (void)begin_dirty_low(&page_heap[i]);
}

/* Under the page heap's lock. */
static void raise_trigger(struct page_heap *heap)
{
    if (!trigger_is_fixed()) purge_raise_trigger(heap);
}

/* So many pages were not needed after all, and what is dirty from now on is looked at anew. */
static void forget_unneeded(struct page_heap *heap, size_t pages)
{
    if (pages == 0) return;
    lock_take(&heap->lock);
    heap->slab_peak -= min_size(fall_of(heap), pages);
    raise_trigger(heap);
    lock_give(&heap->lock);
}

size_t purge_unneeded(const uint32_t *stop)
{
    size_t purged = 0;

    for (unsigned i = 0; i < page_heap_count(); i++) {
        struct purge_pass pass = { .heap = &page_heap[i], .stop = stop };
        size_t unneeded = begin_dirty_low(pass.heap);

        if (unneeded < pages_for(PURGE_WORTH_BYTES) || option_decay_ms() < 0) continue;
        pass.wanted = (unneeded + 1) / 2;
        purge_runs(&pass, 1, pages_for(PURGE_RUN_BYTES_MAX));
        purged += purge_end_pass(&pass);
        forget_unneeded(pass.heap, pass.purged);
    }
    purge_begin_unneeded();
    return purged;
}

/* ---- is it time? ---- */

/* The least that a budget will be, for memory in use only adds to it; but what is in use changes
 * with each call, so a look that finds enough room lasts until most of it is taken. */
static size_t next_look(struct budget budget)
{
    size_t least = budget.most - min_size(budget.most, budget.of_used * 3 / 2);
    size_t room = budget.most - min_size(budget.most, budget.dirty);

    return room == 0 ? least : max_size(least, budget.dirty + room / 4 * 3);
}

/* Is what may be wanted again left alone without a question? A program of one thread asks each
 * time: only that thread may empty depots and magazines, which hold slabs open. */
static bool is_attended(void)
{
    return RELAXED_LOAD(purge_mode.background) && RELAXED_LOAD(purge_mode.on_call);
}

static bool is_within_budget(struct page_heap *heap)
{
    struct budget budget;

    lock_take(&heap->lock);
    budget = budget_now(heap, is_attended());
    if (purge_is_urgent()) {
        budget.most = pages_for(PURGE_WORTH_BYTES) - 1;
    } else {
        size_t trigger_pages = next_look(budget);

        if (unlikely(trigger_is_fixed())) {
            bool never = option_decay_ms() < 0 && !option_is_set(OPTION_OVERSIZE_THRESHOLD);
            budget.most = trigger_pages = never ? SIZE_MAX : 0;
        }
        RELAXED_STORE(heap->trigger_pages, trigger_pages);
    }
    lock_give(&heap->lock);
    return budget.dirty <= budget.most;
}

/* Who returns pages meanwhile is seen now, or says so again. Partner: note_dirty. */
bool purge_is_within_live_budget(void)
{
    uint64_t past = __atomic_exchange_n(&page_heaps_past_trigger, 0, __ATOMIC_ACQUIRE);
    bool within = !RELAXED_LOAD(purge_mode.is_asked);

    if (!within) RELAXED_STORE(purge_mode.is_asked, false);
    for (; past != 0; past &= past - 1) {
        struct page_heap *heap = &page_heap[lowest_bit(past)];

        if (is_past_trigger(heap)) within &= is_within_budget(heap);
    }
    return within;
}

/* That the first page heap is looked at, too, does no harm. */
void purge_ask_for_look(void)
{
    RELAXED_STORE(purge_mode.is_asked, true);
    (void)__atomic_fetch_or(&page_heaps_past_trigger, 1, __ATOMIC_RELEASE);
}

void purge_raise_triggers(void)
{
    for (unsigned i = 0; i < page_heap_count(); i++) {
        struct page_heap *heap = &page_heap[i];

        if (!is_past_trigger(heap)) continue;
        lock_take(&heap->lock);
        raise_trigger(heap);
        lock_give(&heap->lock);
    }
}

/* Judged and raised in one moment: who no longer looks says so under the same lock. */
static bool raise_trigger_within_budget(struct page_heap *heap)
{
    struct budget budget;
    bool fits;

    lock_take(&heap->lock);
    budget = budget_now(heap, RELAXED_LOAD(purge_mode.background));
    fits = budget.dirty <= budget.most;
    if (fits) raise_trigger(heap);
    lock_give(&heap->lock);
    return fits;
}

bool purge_raise_triggers_within_budget(void)
{
    bool fits = true;

    for (unsigned i = 0; i < page_heap_count(); i++)
        if (is_past_trigger(&page_heap[i])) fits &= raise_trigger_within_budget(&page_heap[i]);
    if (fits) purge_left_behind(NULL);
    return fits;
}

bool purge_oversize(void)
{
    uint64_t bytes = option_value(OPTION_OVERSIZE_THRESHOLD);
    bool within = true;

    if (bytes == 0) return false;
    (void)purge_all_runs(
        max_size(pages_for(bytes < SIZE_MAX / 2 ? (size_t)bytes : SIZE_MAX / 2), 1), SIZE_MAX);
    for (unsigned i = 0; i < page_heap_count() && option_decay_ms() >= 0; i++) {
        struct budget budget = budget_of(&page_heap[i], is_attended());

        within &= budget.dirty <= budget.most;
    }
    return within;
}

void purge_obey_options(void) { reset_triggers(true); }

void purge_keep_none(bool none)
{
    if (none == RELAXED_LOAD(purge_mode.keeps_none)) return;
    RELAXED_STORE(purge_mode.keeps_none, none);
    purge_obey_options();
}
