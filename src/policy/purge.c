/* purge.c - the budget, and the runs that go back.
 * SPDX-License-Identifier: MIT
 */
#include "purge.h"

#include "../base/options.h"
#include "../space/commit.h"
#include "../page_heap/huge.h"

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

bool purge_is_urgent(struct page_heap *heap)
{
    return RELAXED_LOAD(heap->decay.is_hard) || commit_is_over();
}

/* Near a limit, and with dirty_decay_ms:0. */
static bool nothing_may_stay(struct page_heap *heap)
{
    return unlikely(purge_is_urgent(heap)) || unlikely(option_decay_ms() == 0);
}

/* How many dirty pages may stay, as of one moment. */
struct budget {
    size_t share; /* without regrets: of the most that was in use of late, and of what is in use */
    size_t total; /* with what regrets added */
    size_t most;  /* beyond this somebody purges */
};

/* Regrets count in full only while somebody looks in the background. Under the page heap's lock. */
static struct budget budget_now(struct page_heap *heap, bool background)
{
    size_t share, bonus = heap->decay.bonus_pages;

    check(lock_is_mine(&heap->lock));
    if (nothing_may_stay(heap)) return (struct budget){ 0, 0, 0 };
    share = max_size(pages_for(PURGE_KEEP_BYTES), heap->decay.peak_pages / PURGE_PEAK_SHARE)
          + page_heap_used_pages(heap) / PURGE_USED_SHARE;
    if (!background) bonus = min_size(bonus, pages_for(PURGE_UNATTENDED_BYTES));
    return (struct budget){ share, share + bonus, share + share / 2 + bonus };
}

/* The pages in use, and those that were a moment ago. Under the page heap's lock. */
static void note_peak(struct page_heap *heap)
{
    size_t pages = page_heap_used_pages(heap) + heap->free_pages[FREE_DIRTY];

    if (pages > heap->decay.peak_pages) heap->decay.peak_pages = pages;
}

/* One pass of giving back. What the kernel would not take stays out of the bins until the pass
 * ends, or it would be tried again and again while it is the longest. */
struct pass {
    size_t purged; /* pages */
    unsigned refusal_count;
    uint32_t refused[REFUSALS_MAX]; /* first pages */
};

/* Until so many pages are purged, the longest runs first, in runs of at least run_min and at
 * most run_max. Takes the page heap's lock and gives it while the kernel works. */
static void purge_runs(struct page_heap *heap, struct pass *pass, size_t wanted, size_t run_min,
                       size_t run_max)
{
    while (wanted - pass->purged >= run_min && pass->refusal_count < REFUSALS_MAX) {
        size_t pages = 0;
        uint32_t page;
        bool purged;

        lock_take(&heap->lock);
        page = run_take_dirty(heap, run_min, min_size(wanted - pass->purged, run_max));
        if (page != 0) {
            pages = page_record(page)->run_pages;
            huge_before_purge(heap, pages);
        }
        lock_give(&heap->lock);
        if (page == 0) return;

        purged = os_purge((struct os_range){ page_address(page), pages << space.page_shift });
        lock_take(&heap->lock);
        heap->decay.calls++;
        if (purged) {
            run_put_free(heap, page, PAGE_CLEAN);
            heap->decay.purged_pages += pages;
            pass->purged += pages;
        } else {
            pass->refused[pass->refusal_count++] = page;
        }
        lock_give(&heap->lock);
    }
}

/* What asks for more than the budget is asked each time: dirty_decay_ms:0 and
 * oversize_threshold. */
static bool trigger_is_fixed(void)
{
    return option_decay_ms() <= 0 || option_is_set(OPTION_OVERSIZE_THRESHOLD);
}

/* Puts back what was refused. A kernel that took nothing is not asked again at the next free, but
 * when so many more pages are dirty. */
static void end_pass(struct page_heap *heap, struct pass *pass)
{
    size_t dirty;

    lock_take(&heap->lock);
    for (unsigned i = 0; i < pass->refusal_count; i++)
        run_put_free(heap, pass->refused[i], PAGE_DIRTY);
    dirty = heap->free_pages[FREE_DIRTY];
    if (pass->purged != 0 || pass->refusal_count != 0) heap->decay.refused = pass->purged == 0;
    if (heap->decay.refused)
        RELAXED_STORE(heap->decay.trigger_pages,
                      dirty + max_size(dirty / REFUSED_SHARE, pages_for(PURGE_KEEP_BYTES)));
    lock_give(&heap->lock);
}

/* Gives back so many pages, or all there are. Returns pages. */
static size_t purge_pages(struct page_heap *heap, size_t wanted)
{
    struct pass pass = { 0 };

    purge_runs(heap, &pass, wanted, 1, pages_for(RUN_BYTES_MAX));
    end_pass(heap, &pass);
    return pass.purged;
}

size_t purge_all(struct page_heap *heap) { return purge_pages(heap, SIZE_MAX) << space.page_shift; }

/* What was given back lately is one breath out, however many calls it took; was it breathed in
 * again soon? Where nothing may stay it always is, which is no reason for a budget. Under the page
 * heap's lock. */
static void learn(struct page_heap *heap, uint64_t now)
{
    uint64_t wanted_back = heap->clean_leased - heap->decay.last_clean_leased;

    if (heap->decay.last_pages == 0) return;
    if (now >= heap->decay.last_ms + REGRET_MS) {
        heap->decay.peak_pages -= heap->decay.peak_pages / 4;
        note_peak(heap);
        heap->decay.bonus_pages -= heap->decay.bonus_pages / 4;
        heap->decay.last_pages = 0;
    } else if (wanted_back >= heap->decay.last_pages / 2) {
        heap->decay.regrets++;
        if (!nothing_may_stay(heap)) heap->decay.bonus_pages += heap->decay.last_pages;
        heap->decay.last_pages = 0;
    }
}

void purge_beyond_budget(struct page_heap *heap)
{
    uint64_t now = os_now_ms();
    struct pass pass = { 0 };
    struct budget budget;
    size_t dirty, excess;

    lock_take(&heap->lock);
    learn(heap, now);
    budget = budget_now(heap, RELAXED_LOAD(heap->decay.background));
    dirty = heap->free_pages[FREE_DIRTY];
    excess = dirty - min_size(dirty, budget.total);
    lock_give(&heap->lock);
    if (excess == 0) return;

    /* Huge pages are not broken for little. */
    purge_runs(heap, &pass, excess, huge_pages_each(&heap->huge), pages_for(RUN_BYTES_MAX));
    if (excess - pass.purged > budget.share)
        purge_runs(heap, &pass, excess, 1, pages_for(RUN_BYTES_MAX));

    lock_take(&heap->lock);
    if (excess - pass.purged <= budget.share && (!trigger_is_fixed() || heap->decay.refused)) {
        /* Left on purpose: not to be looked at again at once. */
        RELAXED_STORE(heap->decay.trigger_pages, heap->free_pages[FREE_DIRTY] + budget.share / 4);
    }
    if (heap->decay.last_pages == 0) heap->decay.last_clean_leased = heap->clean_leased;
    heap->decay.last_pages += pass.purged;
    heap->decay.last_ms = now;
    lock_give(&heap->lock);
    end_pass(heap, &pass);
}

/* ---- later ---- */

void purge_set_background(struct page_heap *heap, bool runs)
{
    RELAXED_STORE(heap->decay.background, runs);
    RELAXED_STORE(heap->decay.trigger_pages, (size_t)0); /* the budget is another one */
}

bool purge_wants_background(struct page_heap *heap)
{
    uint64_t now = os_now_ms();
    bool wants;

    lock_take(&heap->lock);
    learn(heap, now);
    wants = !nothing_may_stay(heap) && heap->decay.bonus_pages > pages_for(PURGE_UNATTENDED_BYTES);
    lock_give(&heap->lock);
    return wants;
}

bool purge_rests_on_background(struct page_heap *heap)
{
    bool rests;

    lock_take(&heap->lock);
    rests = option_decay_ms() >= 0 && !heap->decay.refused
         && heap->free_pages[FREE_DIRTY] > budget_now(heap, false).most;
    lock_give(&heap->lock);
    return rests;
}

void purge_begin_unneeded(struct page_heap *heap)
{
    lock_take(&heap->lock);
    heap->dirty_low = heap->free_pages[FREE_DIRTY];
    lock_give(&heap->lock);
}

size_t purge_unneeded(struct page_heap *heap)
{
    size_t unneeded, purged;

    lock_take(&heap->lock);
    unneeded = heap->dirty_low;
    lock_give(&heap->lock);
    if (unneeded < pages_for(LONG_RUN_BYTES) || option_decay_ms() < 0) unneeded = 0;
    purged = purge_pages(heap, (unneeded + 1) / 2);
    purge_begin_unneeded(heap);
    return purged;
}

/* ---- is it time? ---- */

bool purge_is_within_live_budget(struct page_heap *heap)
{
    size_t most, trigger;
    bool within;

    lock_take(&heap->lock);
    note_peak(heap);
    trigger = heap->decay.trigger_pages;
    if (purge_is_urgent(heap)) {
        most = pages_for(LONG_RUN_BYTES) - 1;
    } else if (unlikely(trigger_is_fixed())) {
        bool never = option_decay_ms() < 0 && !option_is_set(OPTION_OVERSIZE_THRESHOLD);
        most = trigger = never ? SIZE_MAX : 0;
    } else {
        most = budget_now(heap, RELAXED_LOAD(heap->decay.background)).most;
        /* The least that it will be: memory in use only adds to it. */
        trigger = most - page_heap_used_pages(heap) / PURGE_USED_SHARE * 3 / 2;
    }
    RELAXED_STORE(heap->decay.trigger_pages, trigger);
    within = heap->free_pages[FREE_DIRTY] <= most;
    lock_give(&heap->lock);
    return within;
}

bool purge_oversize(struct page_heap *heap)
{
    uint64_t bytes = option_value(OPTION_OVERSIZE_THRESHOLD);
    size_t pages = max_size(pages_for(min_size(bytes, SIZE_MAX / 2)), 1);
    struct pass pass = { 0 };
    bool within;

    if (bytes == 0) return false;
    purge_runs(heap, &pass, SIZE_MAX, pages, SIZE_MAX);
    end_pass(heap, &pass);
    lock_take(&heap->lock);
    within =
        heap->free_pages[FREE_DIRTY] <= budget_now(heap, RELAXED_LOAD(heap->decay.background)).most;
    lock_give(&heap->lock);
    return option_decay_ms() < 0 || within;
}

void purge_obey_options(struct page_heap *heap)
{
    lock_take(&heap->lock);
    RELAXED_STORE(heap->decay.trigger_pages, (size_t)0);
    lock_give(&heap->lock);
}

void purge_set_hard(struct page_heap *heap, bool hard)
{
    if (hard == RELAXED_LOAD(heap->decay.is_hard)) return;
    lock_take(&heap->lock);
    RELAXED_STORE(heap->decay.is_hard, hard);
    RELAXED_STORE(heap->decay.trigger_pages, (size_t)0);
    lock_give(&heap->lock);
}
