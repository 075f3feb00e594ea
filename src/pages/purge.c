/* purge.c - the budget, and the pieces in which pages go back.
 * SPDX-License-Identifier: MIT
 */
#include "purge.h"

enum { REGRET_MS = 2000, REGRETS_NEEDED = 2 };

struct purge_stats purge_stats;
size_t purge_alarm_pages;

static struct {
    size_t bonus_pages;         /* under the run lock: what regrets added to the budget */
    size_t last_pages;          /* under the run lock: given back lately, beyond the budget */
    uint64_t last_ms;           /* under the run lock: when */
    uint64_t last_clean_leased; /* under the run lock: keeper.clean_leased then */
    unsigned regrets_running;   /* under the run lock */
} purge;

static size_t pages_in(size_t bytes) { return bytes >> plain.page_shift; }

/* Shorter pieces cost more in calls than in pages: they go only when longer ones do not suffice. */
static size_t long_piece_pages(void) { return max_size(pages_in(64 * KiB), 1); }

INLINE size_t budget_pages(void)
{
    return pages_in(PURGE_KEEP_BYTES) + run_used_pages() / 64 + purge.bonus_pages;
}

/* Gives one piece back. Takes the run lock and gives it while the kernel works. Returns pages; 0: there is
 * no piece of that length. */
static size_t purge_piece(size_t pages_min, size_t pages_max)
{
    uint32_t page;
    size_t pages;
    bool gone;

    lock_take(&keeper.lock);
    page = run_take_dirty(pages_min, pages_max);
    lock_give(&keeper.lock);
    if (page == 0) return 0;
    pages = page_record(page)->run_pages; /* nobody else's meanwhile */

    gone = os_purge((struct os_range){ page_address(page), pages << plain.page_shift });

    lock_take(&keeper.lock);
    run_put_free(page, gone ? PAGE_CLEAN : PAGE_DIRTY);
    purge_stats.purged_pages += gone ? pages : 0;
    purge_stats.calls++;
    lock_give(&keeper.lock);
    return gone ? pages : 0;
}

static size_t purge_pieces(size_t wanted, size_t piece_min)
{
    size_t piece_max = max_size(pages_in(32 * MiB), 1);
    size_t purged = 0;

    while (purged < wanted) {
        size_t part =
            purge_piece(piece_min, min_size(max_size(wanted - purged, piece_min), piece_max));
        if (part == 0) break;
        purged += part;
    }
    return purged;
}

static size_t purge_pages(size_t wanted)
{
    size_t purged = purge_pieces(wanted, long_piece_pages());

    return purged < wanted ? purged + purge_pieces(wanted - purged, 1) : purged;
}

size_t purge_all(void) { return purge_pages(SIZE_MAX) << plain.page_shift; }

/* What was given back lately is one breath out, however many calls it took; was it breathed in again
 * soon? Under the run lock. */
static void learn(uint64_t now)
{
    uint64_t wanted_back = keeper.clean_leased - purge.last_clean_leased;

    if (purge.last_pages == 0) return;
    if (now >= purge.last_ms + REGRET_MS) {
        purge.regrets_running = 0;
        purge.bonus_pages -= purge.bonus_pages / 4;
        purge.last_pages = 0;
    } else if (wanted_back >= purge.last_pages / 2) {
        purge_stats.regrets++;
        if (++purge.regrets_running >= REGRETS_NEEDED) purge.bonus_pages += purge.last_pages;
        purge.last_pages = 0;
    }
}

void purge_beyond_budget(void)
{
    uint64_t now = os_now_ms();
    size_t excess, budget, purged;

    lock_take(&keeper.lock);
    learn(now);
    budget = budget_pages();
    excess = keeper.free_pages[FREE_DIRTY] > budget ? keeper.free_pages[FREE_DIRTY] - budget : 0;
    lock_give(&keeper.lock);
    if (excess == 0) return;

    purged = purge_pages(excess);

    lock_take(&keeper.lock);
    if (purge.last_pages == 0) purge.last_clean_leased = keeper.clean_leased;
    purge.last_pages += purged;
    purge.last_ms = now;
    lock_give(&keeper.lock);
}

void purge_watch_unneeded(void)
{
    lock_take(&keeper.lock);
    keeper.dirty_low = keeper.free_pages[FREE_DIRTY];
    lock_give(&keeper.lock);
}

size_t purge_unneeded(void)
{
    size_t unneeded;

    lock_take(&keeper.lock);
    unneeded = keeper.dirty_low;
    lock_give(&keeper.lock);
    if (unneeded >= long_piece_pages()) unneeded = purge_pages((unneeded + 1) / 2);
    else unneeded = 0;
    purge_watch_unneeded();
    return unneeded;
}

READS_UNLOCKED bool purge_is_within_live_budget(void)
{
    size_t most = budget_pages() + pages_in(PURGE_KEEP_BYTES) / 2;

    /* The least that it will be: memory in use only adds to it. */
    RELAXED_STORE(purge_alarm_pages, most - run_used_pages() / 64);
    return keeper.free_pages[FREE_DIRTY] <= most;
}
