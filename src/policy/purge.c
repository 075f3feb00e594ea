/* purge.c - the budget, and the runs that go back.
 * SPDX-License-Identifier: MIT
 */
#include "purge.h"

#include "../base/options.h"

enum { REGRET_MS = 2000 };
/* Runs that the kernel would not take in one pass before the pass ends: locked in memory,
 * perhaps. */
enum { REFUSALS_MAX = 2 };
/* Pages that the kernel would not take are offered again when so many more are dirty. */
enum { REFUSED_SHARE = 8 };

/* Shorter runs cost more in calls than in pages: nobody purges for their sake alone. */
#define LONG_RUN_BYTES (64 * KiB)
/* What is on its way to the kernel cannot be leased meanwhile. */
#define RUN_BYTES_MAX (32 * MiB)

struct purge purge;

/* Near a limit, and with dirty_decay_ms:0. */
static bool nothing_may_stay(void)
{
    return unlikely(purge_is_urgent()) || unlikely(option_decay_ms() == 0);
}

/* How many dirty pages may stay, as of one moment. */
struct budget {
    size_t share; /* without regrets: of the most that was in use of late, and of what is in use */
    size_t of_used; /* the latter part of it */
    size_t total;   /* with what regrets added */
    size_t most;    /* beyond this somebody purges */
    size_t dirty;   /* how many there are */
    size_t used;    /* pages that somebody holds */
};

/* Notes the peak: the pages in use, and those that were a moment ago. Regrets count in full only
 * while somebody looks in the background; before he comes who would, neither they nor what is in
 * use count. Under the page heap's lock. */
static struct budget budget_now(bool background)
{
    bool is_coming = !background && RELAXED_LOAD(purge.on_call);
    size_t bonus = is_coming ? 0 : purge.bonus_pages;
    struct page_counts counts = page_heaps_count();
    struct budget budget = { .dirty = counts.dirty, .used = counts.used };

    purge.peak_pages = max_size(purge.peak_pages, budget.used + budget.dirty);
    if (nothing_may_stay()) return budget;
    if (!background) bonus = min_size(bonus, pages_for(PURGE_UNATTENDED_BYTES));
    if (!is_coming) budget.of_used = budget.used / PURGE_USED_SHARE;
    budget.share =
        max_size(pages_for(PURGE_KEEP_BYTES), purge.peak_pages / PURGE_PEAK_SHARE) + budget.of_used;
    budget.total = budget.share + bonus;
    budget.most = budget.total + budget.share / 2;
    return budget;
}

/* ---- giving back ---- */

/* One pass of giving back. What the kernel would not take stays out of the bins until the pass
 * ends, or it would be tried again and again while it is the longest. */
struct pass {
    size_t wanted, purged; /* pages */
    unsigned calls, refusal_count;
    uint32_t refused[2 * REFUSALS_MAX * PAGE_HEAPS]; /* first pages; of two rounds */
};

/* Of a run on its way. False: the kernel would not. */
static bool purge_run(uint32_t page)
{
    return os_purge((struct os_range){ page_address(page),
                                       (size_t)page_record(page)->run_pages << space.page_shift });
}

/* Under the page heap's lock. */
static void count_calls(size_t calls, size_t purged_pages)
{
    purge.calls += calls;
    purge.purged_pages += purged_pages;
}

/* Until so many pages are purged, the longest runs first, of at least run_min and at most run_max.
 */
static void purge_heap(struct page_heap *heap, struct pass *pass, size_t run_min, size_t run_max)
{
    unsigned refusals_max = pass->refusal_count + REFUSALS_MAX;

    while (pass->wanted - pass->purged >= run_min && pass->refusal_count < refusals_max) {
        size_t most = min_size(pass->wanted - pass->purged, run_max), pages;
        uint32_t page = run_take_dirty(heap, run_min, most);

        if (page == 0) return;
        pages = page_record(page)->run_pages;
        pass->calls++;
        if (purge_run(page)) {
            run_put_free(page, PAGE_CLEAN);
            pass->purged += pages;
        } else {
            pass->refused[pass->refusal_count++] = page;
        }
    }
}

static void purge_runs(struct pass *pass, size_t run_min, size_t run_max)
{
    for (unsigned i = 0; i < PAGE_HEAPS; i++) purge_heap(&page_heap[i], pass, run_min, run_max);
}

/* Puts back what was refused. A kernel that took nothing is not asked again at the next free, but
 * when so many more pages are dirty. Returns pages that were purged. */
static size_t end_pass(const struct pass *pass)
{
    size_t dirty;

    for (unsigned i = 0; i < pass->refusal_count; i++) run_put_free(pass->refused[i], PAGE_DIRTY);
    lock_take(&page_heap->lock);
    dirty = page_heaps_count().dirty;
    count_calls(pass->calls, pass->purged);
    if (pass->calls != 0) purge.refused = pass->purged == 0;
    if (purge.refused)
        RELAXED_STORE(purge.trigger_pages,
                      dirty + max_size(dirty / REFUSED_SHARE, pages_for(PURGE_KEEP_BYTES)));
    lock_give(&page_heap->lock);
    return pass->purged;
}

/* A hard limit would count what is on its way as used. */
static bool may_take_clean(void) { return RELAXED_LOAD(page_heap->lease_pages_max) != 0; }

/* Once huge pages are not wanted any more: clean pages beside those that were touched. Each run is
 * put back when the next is taken, so that the walk knows where it is. */
static void purge_left_behind(void)
{
    uint32_t at = 0, held = 0, page;
    size_t calls = 0, purged = 0;

    if (!may_take_clean() || !huge_take_left_behind()) return;
    while (!RELAXED_LOAD(huge.wanted) && (page = run_take_clean_edge(&at)) != 0) {
        calls++;
        if (purge_run(page)) purged += page_record(page)->run_pages;
        if (held != 0) run_put_free(held, PAGE_CLEAN);
        held = page;
    }
    if (held != 0) run_put_free(held, PAGE_CLEAN);
    lock_take(&page_heap->lock);
    count_calls(calls, purged);
    lock_give(&page_heap->lock);
}

size_t purge_all(void)
{
    struct pass pass = { .wanted = SIZE_MAX };

    purge_runs(&pass, 1, pages_for(RUN_BYTES_MAX));
    purge_left_behind();
    return end_pass(&pass) << space.page_shift;
}

/* What was given back lately is one breath out, however many calls it took; was it breathed in
 * again soon? Where nothing may stay it always is, which is no reason for a budget. Under the page
 * heap's lock. */
static void learn(uint64_t now)
{
    uint64_t wanted_back = page_heaps_count().clean_leased - purge.last_clean_leased;

    if (purge.last_pages == 0) return;
    if (now >= purge.last_ms + REGRET_MS) {
        purge.peak_pages -= purge.peak_pages / 4;
        purge.bonus_pages -= purge.bonus_pages / 4;
        purge.last_pages = 0;
    } else if (wanted_back >= purge.last_pages / 2) {
        purge.regrets++;
        if (!nothing_may_stay()) purge.bonus_pages += purge.last_pages;
        purge.last_pages = 0;
    }
}

/* What asks for more than the budget is asked each time: dirty_decay_ms:0 and
 * oversize_threshold. */
static bool trigger_is_fixed(void)
{
    return option_decay_ms() <= 0 || option_is_set(OPTION_OVERSIZE_THRESHOLD);
}

void purge_beyond_budget(void)
{
    uint64_t now = os_now_ms();
    struct page_counts counts;
    struct budget budget;
    struct pass pass = { 0 };

    lock_take(&page_heap->lock);
    learn(now);
    budget = budget_now(RELAXED_LOAD(purge.background));
    lock_give(&page_heap->lock);
    if (budget.dirty <= budget.total) return;

    /* Huge pages are not broken for little. */
    pass.wanted = budget.dirty - budget.total;
    purge_runs(&pass, huge_pages_each(), pages_for(RUN_BYTES_MAX));
    if (pass.wanted - pass.purged > budget.share) purge_runs(&pass, 1, pages_for(RUN_BYTES_MAX));

    lock_take(&page_heap->lock);
    counts = page_heaps_count();
    if (pass.wanted - pass.purged <= budget.share && (!trigger_is_fixed() || purge.refused)) {
        /* Left on purpose: not to be looked at again at once. */
        RELAXED_STORE(purge.trigger_pages, counts.dirty + budget.share / 4);
    }
    if (purge.last_pages == 0) purge.last_clean_leased = counts.clean_leased;
    purge.last_pages += pass.purged;
    purge.last_ms = now;
    lock_give(&page_heap->lock);
    (void)end_pass(&pass);
    purge_left_behind();
}

/* ---- later ---- */

void purge_set_background(bool runs)
{
    RELAXED_STORE(purge.background, runs);
    RELAXED_STORE(purge.trigger_pages, (size_t)0); /* the budget is another one */
}

void purge_set_on_call(bool comes)
{
    if (comes == RELAXED_LOAD(purge.on_call)) return;
    RELAXED_STORE(purge.on_call, comes);
    RELAXED_STORE(purge.trigger_pages, (size_t)0);
}

bool purge_wants_background(void)
{
    uint64_t now = os_now_ms();
    bool wants;

    lock_take(&page_heap->lock);
    learn(now);
    wants = !nothing_may_stay() && purge.bonus_pages > pages_for(PURGE_UNATTENDED_BYTES);
    lock_give(&page_heap->lock);
    return wants;
}

bool purge_rests_on_background(void)
{
    struct budget budget;
    bool rests;

    lock_take(&page_heap->lock);
    budget = budget_now(false);
    rests = option_decay_ms() >= 0 && !purge.refused && budget.dirty > budget.most;
    lock_give(&page_heap->lock);
    return rests;
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
    for (unsigned i = 0; i < PAGE_HEAPS; i++) (void)begin_dirty_low(&page_heap[i]);
}

size_t purge_unneeded(void)
{
    struct pass pass = { 0 };

    for (unsigned i = 0; i < PAGE_HEAPS; i++) {
        size_t unneeded = begin_dirty_low(&page_heap[i]);

        if (unneeded < pages_for(LONG_RUN_BYTES) || option_decay_ms() < 0) continue;
        pass.wanted = pass.purged + (unneeded + 1) / 2;
        purge_heap(&page_heap[i], &pass, 1, pages_for(RUN_BYTES_MAX));
    }
    (void)end_pass(&pass);
    purge_begin_unneeded();
    return pass.purged;
}

/* ---- is it time? ---- */

bool purge_is_within_live_budget(void)
{
    struct budget budget;
    size_t trigger;

    lock_take(&page_heap->lock);
    budget = budget_now(RELAXED_LOAD(purge.background));
    /* The least that it will be: memory in use only adds to it. */
    trigger = budget.most - min_size(budget.most, budget.of_used * 3 / 2);
    if (purge_is_urgent()) {
        budget.most = pages_for(LONG_RUN_BYTES) - 1;
        trigger = purge.trigger_pages;
    } else if (unlikely(trigger_is_fixed())) {
        bool never = option_decay_ms() < 0 && !option_is_set(OPTION_OVERSIZE_THRESHOLD);
        budget.most = trigger = never ? SIZE_MAX : 0;
    }
    RELAXED_STORE(purge.trigger_pages, trigger);
    lock_give(&page_heap->lock);
    return budget.dirty <= budget.most;
}

bool purge_oversize(void)
{
    uint64_t bytes = option_value(OPTION_OVERSIZE_THRESHOLD);
    size_t run_min = max_size(pages_for(min_size(bytes, SIZE_MAX / 2)), 1);
    struct pass pass = { .wanted = SIZE_MAX };
    struct budget budget;

    if (bytes == 0) return false;
    purge_runs(&pass, run_min, SIZE_MAX);
    (void)end_pass(&pass);
    lock_take(&page_heap->lock);
    budget = budget_now(RELAXED_LOAD(purge.background));
    lock_give(&page_heap->lock);
    return option_decay_ms() < 0 || budget.dirty <= budget.most;
}

void purge_obey_options(void)
{
    lock_take(&page_heap->lock);
    RELAXED_STORE(purge.trigger_pages, (size_t)0);
    lock_give(&page_heap->lock);
}

void purge_set_hard(bool hard)
{
    if (hard == RELAXED_LOAD(purge.is_hard)) return;
    RELAXED_STORE(purge.is_hard, hard);
    purge_obey_options();
}
