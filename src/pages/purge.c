/* purge.c - the budget, the eager way and the helper's way.
 * SPDX-License-Identifier: MIT
 */
#include "purge.h"

#include "../base/options.h"

enum { LOOK_MS = 500, REGRET_MS = 2000, QUIET_LOOKS_MAX = 20, REGRETS_NEEDED = 2 };

struct purge_stats purge_stats;

static struct {
    struct lock lock;               /* the helper's life */
    bool helper_runs;               /* under lock */
    uint32_t threads;               /* atomic; threads with caches */
    size_t bonus_pages;             /* under the run lock: what regrets added to the budget */
    size_t last_pages;              /* under the run lock: given back by the last eager purge */
    uint64_t last_ms;               /* under the run lock: when */
    uint64_t last_clean_leased;     /* under the run lock: keeper.clean_leased then */
    unsigned regrets_running;       /* under the run lock */
} purge;

void purge_start(void) { lock_init(&purge.lock, LOCK_PURGER); }

void purge_thread_count(unsigned count) { RELAXED_STORE(purge.threads, count); }

static size_t pages_in(size_t bytes) { return bytes >> plain.page_shift; }

/* Pieces below this are left alone: the call costs more than the pages. */
static size_t piece_pages_min(void) { return max_size(pages_in(64 * KiB), 1); }

INLINE size_t budget_pages(void)
{
    return pages_in(PURGE_KEEP_BYTES) + run_used_pages() / 64 + purge.bonus_pages;
}

/* Gives one piece back. Takes the run lock and gives it while the kernel works. Returns pages; 0: there is
 * no piece of that length. */
static size_t purge_piece(size_t pages_min, size_t pages_max)
{
    struct run run;
    bool gone;

    lock_take(&keeper.lock);
    run = run_take_dirty(pages_min, pages_max);
    lock_give(&keeper.lock);
    if (run.page == 0) return 0;

    gone = os_purge((struct os_range){ page_address(run.page), (size_t)run.pages << plain.page_shift });

    lock_take(&keeper.lock);
    run_put_free(run.page, gone ? PAGE_CLEAN : PAGE_DIRTY);
    purge_stats.purged_pages += gone ? run.pages : 0;
    purge_stats.calls++;
    lock_give(&keeper.lock);
    return gone ? run.pages : 0;
}

static size_t purge_pages(size_t wanted, size_t piece_min)
{
    size_t piece_max = max_size(pages_in(32 * MiB), 1);
    size_t purged = 0;

    while (purged < wanted) {
        size_t part = purge_piece(piece_min, min_size(max_size(wanted - purged, piece_min), piece_max));
        if (part == 0) break;
        purged += part;
    }
    return purged;
}

size_t purge_all(void) { return purge_pages(SIZE_MAX, 1) << plain.page_shift; }

/* ---- one thread: at once, unless it was regretted ---- */

/* What was given back lately is one breath out, however many calls it took; was it breathed in again
 * soon? Under the run lock. */
static void learn(uint64_t now)
{
    uint64_t wanted_back = keeper.clean_leased - purge.last_clean_leased;

    if (purge.last_pages == 0) return;
    if (now - purge.last_ms >= REGRET_MS) {
        purge.regrets_running = 0;
        purge.bonus_pages -= purge.bonus_pages / 4;
        purge.last_pages = 0;
    } else if (wanted_back >= purge.last_pages / 2) {
        purge_stats.regrets++;
        if (++purge.regrets_running >= REGRETS_NEEDED) purge.bonus_pages += purge.last_pages;
        purge.last_pages = 0;
    }
}

static void purge_eagerly(void)
{
    uint64_t now = os_now_ms();
    size_t excess, budget, purged;

    lock_take(&keeper.lock);
    learn(now);
    budget = budget_pages();
    excess = keeper.free_pages[FREE_DIRTY] > budget ? keeper.free_pages[FREE_DIRTY] - budget : 0;
    lock_give(&keeper.lock);
    if (excess == 0) return;

    purged = purge_pages(excess, piece_pages_min());

    lock_take(&keeper.lock);
    if (purge.last_pages == 0) purge.last_clean_leased = keeper.clean_leased;
    purge.last_pages += purged;
    purge.last_ms = now;
    lock_give(&keeper.lock);
}

/* ---- threads: later, by a helper ---- */

static void *helper_body(void *unused)
{
    static const uint32_t never;
    unsigned quiet_looks = 0;

    (void)unused;
    while (quiet_looks < QUIET_LOOKS_MAX) {
        size_t unneeded;

        os_sleep(&never, 0, LOOK_MS);
        lock_take(&keeper.lock);
        unneeded = keeper.dirty_low;
        keeper.dirty_low = keeper.free_pages[FREE_DIRTY];
        lock_give(&keeper.lock);
        if (unneeded >= piece_pages_min() && purge_pages((unneeded + 1) / 2, piece_pages_min()) > 0)
            quiet_looks = 0;
        else
            quiet_looks++;
    }
    lock_take(&purge.lock);
    purge.helper_runs = false;
    lock_give(&purge.lock);
    return NULL;
}

static void want_helper(void)
{
    if (RELAXED_LOAD(purge.helper_runs)) return;
    if (!lock_try(&purge.lock)) return;     /* somebody else is at it */
    if (!purge.helper_runs) {
        keeper.dirty_low = 0;
        purge.helper_runs = os_thread_start(helper_body);
    }
    lock_give(&purge.lock);
}

/* ---- the door ---- */

static READS_UNLOCKED bool is_within_budget(void)
{
    return keeper.free_pages[FREE_DIRTY] <= budget_pages() + pages_in(PURGE_KEEP_BYTES) / 2;
}

void purge_after_return(void)
{
    if (likely(is_within_budget())) return;
    if (RELAXED_LOAD(purge.threads) > 1 && option_helper_thread()) want_helper();
    else purge_eagerly();
}

void purge_lock(void) { lock_take(&purge.lock); }
void purge_unlock(void) { lock_give(&purge.lock); }

void purge_remake(void)
{
    purge.helper_runs = false;
    os_threads_forget();
    lock_remake(&purge.lock);
}
