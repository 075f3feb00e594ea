/* purge.c - the budget, and the pieces in which pages go back.
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

static size_t pages_in(size_t bytes) { return bytes >> space.page_shift; }

/* Shorter pieces cost more in calls than in pages: they go only when longer ones do not suffice. */
static size_t long_piece_pages(void) { return max_size(pages_in(64 * KiB), 1); }

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
    size_t bonus; /* because of regrets */
};

/* Under the page heap's lock. */
static struct budget budget_now(struct page_heap *heap)
{
    struct budget budget = { 0, 0 };

    check(lock_is_mine(&heap->lock));
    if (nothing_may_stay(heap)) return budget;
    budget.share = max_size(pages_in(PURGE_KEEP_BYTES), heap->decay.peak_pages / PURGE_PEAK_SHARE)
                 + page_heap_used_pages(heap) / PURGE_USED_SHARE;
    budget.bonus = heap->decay.bonus_pages;
    if (!RELAXED_LOAD(heap->decay.background))
        budget.bonus = min_size(budget.bonus, pages_in(PURGE_UNATTENDED_BYTES));
    return budget;
}

/* Beyond this somebody purges. */
static size_t most_of(struct budget budget)
{
    return budget.share + budget.share / 2 + budget.bonus;
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

static bool pass_is_over(const struct pass *pass) { return pass->refusal_count == REFUSALS_MAX; }

/* Gives one piece back. Takes the page heap's lock and gives it while the kernel works. Returns
 * pages; 0: there is no piece of that length, or the pass is over. */
static size_t purge_piece(struct page_heap *heap, struct pass *pass, size_t pages_min,
                          size_t pages_max)
{
    size_t pages = 0;

    while (pages == 0 && !pass_is_over(pass)) {
        uint32_t page;

        lock_take(&heap->lock);
        page = run_take_dirty(heap, pages_min, pages_max);
        if (page != 0)
            huge_before_purge(&heap->huge, page_record(page)->run_pages, heap->clean_leased,
                              page_heap_used_pages(heap));
        lock_give(&heap->lock);
        if (page == 0) return 0;
        pages = page_record(page)->run_pages; /* nobody else's meanwhile */

        if (!os_purge((struct os_range){ page_address(page), pages << space.page_shift })) {
            pass->refused[pass->refusal_count++] = page;
            pages = 0;
        }
        lock_take(&heap->lock);
        if (pages != 0) run_put_free(heap, page, PAGE_CLEAN);
        heap->decay.purged_pages += pages;
        heap->decay.calls++;
        lock_give(&heap->lock);
    }
    pass->purged += pages;
    return pages;
}

/* Until so many pages are purged, in pieces of at least that many. */
static void purge_pieces(struct page_heap *heap, struct pass *pass, size_t wanted, size_t piece_min)
{
    size_t piece_max = max_size(pages_in(32 * MiB), 1);

    while (wanted - pass->purged >= piece_min
           && purge_piece(heap, pass, piece_min, min_size(wanted - pass->purged, piece_max)) != 0) {
    }
}

/* What is as long as a huge page. */
static void purge_longest(struct page_heap *heap, struct pass *pass, size_t wanted)
{
    purge_pieces(heap, pass, wanted, max_size(huge_pages_each(&heap->huge), long_piece_pages()));
}

/* What is long, then everything. */
static void purge_shorter(struct page_heap *heap, struct pass *pass, size_t wanted)
{
    purge_pieces(heap, pass, wanted, long_piece_pages());
    purge_pieces(heap, pass, wanted, 1);
}

/* What asks for more than the budget is asked each time: dirty_decay_ms:0 and
 * oversize_threshold. */
static bool alarm_is_fixed(void)
{
    return option_decay_ms() <= 0 || option_is_set(OPTION_OVERSIZE_THRESHOLD);
}

/* Under the page heap's lock: so many more dirty pages are worth the next look. */
static void set_alarm_beyond(struct page_heap *heap, size_t more_pages)
{
    if (alarm_is_fixed() && !heap->decay.refused) return;
    RELAXED_STORE(heap->decay.alarm_pages, heap->free_pages[FREE_DIRTY] + more_pages);
}

/* Puts back what was refused. A kernel that took nothing is not asked again at the next free. */
static void end_pass(struct page_heap *heap, struct pass *pass)
{
    lock_take(&heap->lock);
    for (unsigned i = 0; i < pass->refusal_count; i++)
        run_put_free(heap, pass->refused[i], PAGE_DIRTY);
    if (pass->purged != 0 || pass->refusal_count != 0) heap->decay.refused = pass->purged == 0;
    if (heap->decay.refused)
        set_alarm_beyond(heap, max_size(heap->free_pages[FREE_DIRTY] / REFUSED_SHARE,
                                        pages_in(PURGE_KEEP_BYTES)));
    lock_give(&heap->lock);
}

size_t purge_all(struct page_heap *heap)
{
    struct pass pass = { 0 };

    purge_longest(heap, &pass, SIZE_MAX);
    purge_shorter(heap, &pass, SIZE_MAX);
    end_pass(heap, &pass);
    return pass.purged << space.page_shift;
}

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

static size_t excess_of(struct page_heap *heap, struct budget budget)
{
    size_t dirty = heap->free_pages[FREE_DIRTY], most = budget.share + budget.bonus;

    return dirty > most ? dirty - most : 0;
}

void purge_beyond_budget(struct page_heap *heap)
{
    uint64_t now = os_now_ms();
    struct pass pass = { 0 };
    struct budget budget;
    size_t excess;

    lock_take(&heap->lock);
    learn(heap, now);
    budget = budget_now(heap);
    excess = excess_of(heap, budget);
    lock_give(&heap->lock);
    if (excess == 0) return;

    /* Huge pages are not broken for little. */
    purge_longest(heap, &pass, excess);
    if (excess - pass.purged > (RELAXED_LOAD(heap->huge.wanted) ? budget.share : 0))
        purge_shorter(heap, &pass, excess);

    lock_take(&heap->lock);
    if (excess - pass.purged
        <= budget.share) /* left on purpose: not to be looked at again at once */
        set_alarm_beyond(heap, budget.share / 4);
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
    RELAXED_STORE(heap->decay.alarm_pages, (size_t)0); /* the budget is another one */
}

bool purge_wants_background(struct page_heap *heap)
{
    uint64_t now = os_now_ms();
    bool wants;

    lock_take(&heap->lock);
    learn(heap, now);
    wants = !nothing_may_stay(heap) && heap->decay.bonus_pages > pages_in(PURGE_UNATTENDED_BYTES);
    lock_give(&heap->lock);
    return wants;
}

bool purge_rests_on_background(struct page_heap *heap)
{
    struct budget budget;
    bool rests;

    lock_take(&heap->lock);
    budget = budget_now(heap);
    budget.bonus = min_size(budget.bonus, pages_in(PURGE_UNATTENDED_BYTES));
    rests = option_decay_ms() >= 0 && !heap->decay.refused
         && heap->free_pages[FREE_DIRTY] > most_of(budget);
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
    struct pass pass = { 0 };
    size_t unneeded, wanted;

    lock_take(&heap->lock);
    unneeded = heap->dirty_low;
    lock_give(&heap->lock);
    wanted = unneeded >= long_piece_pages() && option_decay_ms() >= 0 ? (unneeded + 1) / 2 : 0;
    purge_longest(heap, &pass, wanted);
    purge_shorter(heap, &pass, wanted);
    end_pass(heap, &pass);
    purge_begin_unneeded(heap);
    return pass.purged;
}

/* ---- is it time? ---- */

/* As purge_is_within_live_budget, under the page heap's lock. */
static bool is_within_budget(struct page_heap *heap)
{
    size_t dirty = heap->free_pages[FREE_DIRTY], most;

    note_peak(heap);
    if (purge_is_urgent(heap)) return dirty < long_piece_pages();
    if (unlikely(alarm_is_fixed())) {
        bool never = option_decay_ms() < 0 && !option_is_set(OPTION_OVERSIZE_THRESHOLD);
        RELAXED_STORE(heap->decay.alarm_pages, never ? SIZE_MAX : 0);
        return never || dirty == 0;
    }
    most = most_of(budget_now(heap));
    /* The least that it will be: memory in use only adds to it. */
    RELAXED_STORE(heap->decay.alarm_pages,
                  most - page_heap_used_pages(heap) / PURGE_USED_SHARE * 3 / 2);
    return dirty <= most;
}

bool purge_is_within_live_budget(struct page_heap *heap)
{
    bool within;

    lock_take(&heap->lock);
    within = is_within_budget(heap);
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
    while (purge_piece(heap, &pass, pages, SIZE_MAX) != 0) {}
    end_pass(heap, &pass);
    lock_take(&heap->lock);
    within = heap->free_pages[FREE_DIRTY] <= most_of(budget_now(heap));
    lock_give(&heap->lock);
    return option_decay_ms() < 0 || within;
}

void purge_obey_options(struct page_heap *heap)
{
    lock_take(&heap->lock);
    RELAXED_STORE(heap->decay.alarm_pages, (size_t)0);
    lock_give(&heap->lock);
}

void purge_set_hard(struct page_heap *heap, bool hard)
{
    if (hard == RELAXED_LOAD(heap->decay.is_hard)) return;
    lock_take(&heap->lock);
    RELAXED_STORE(heap->decay.is_hard, hard);
    RELAXED_STORE(heap->decay.alarm_pages, (size_t)0);
    lock_give(&heap->lock);
}
