/* purge.c - the budget, and the pieces in which pages go back.
 * SPDX-License-Identifier: MIT
 */
#include "purge.h"

#include "../base/options.h"
#include "huge.h"

enum { REGRET_MS = 2000 };

struct purge_stats purge_stats;
size_t purge_alarm_pages;
bool purge_hard;

static struct {
    size_t peak_pages;          /* atomic: the most pages in use, of late */
    size_t bonus_pages;         /* under the run lock: what regrets added to the budget */
    size_t last_pages;          /* under the run lock: given back lately, beyond the budget */
    uint64_t last_ms;           /* under the run lock: when */
    uint64_t last_clean_leased; /* under the run lock: keeper.clean_leased then */
} purge;

static size_t pages_in(size_t bytes) { return bytes >> plain.page_shift; }

/* Shorter pieces cost more in calls than in pages: they go only when longer ones do not suffice. */
static size_t long_piece_pages(void) { return max_size(pages_in(64 * KiB), 1); }

/* Near a limit, and with dirty_decay_ms:0. */
INLINE bool nothing_may_stay(void)
{
    return unlikely(RELAXED_LOAD(purge_hard) || option_decay_ms() == 0);
}

/* What may stay without regrets: a share of the most that was in use of late, and of what is in use. */
INLINE size_t share_pages(void)
{
    if (nothing_may_stay()) return 0;
    return max_size(pages_in(PURGE_KEEP_BYTES), RELAXED_LOAD(purge.peak_pages) / PURGE_PEAK_SHARE)
         + run_used_pages() / PURGE_USED_SHARE;
}

/* What may stay because of regrets. */
INLINE_READS_UNLOCKED size_t bonus_pages(void)
{
    return nothing_may_stay() ? 0 : purge.bonus_pages;
}

/* The pages in use, and those that were a moment ago. A race with another thread loses one such look. */
static READS_UNLOCKED void note_peak(void)
{
    size_t pages = run_used_pages() + keeper.free_pages[FREE_DIRTY];

    if (pages > RELAXED_LOAD(purge.peak_pages)) RELAXED_STORE(purge.peak_pages, pages);
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
    if (page != 0) huge_before_purge(page_record(page)->run_pages);
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

    while (wanted - purged >= piece_min) {
        size_t part = purge_piece(piece_min, min_size(wanted - purged, piece_max));
        if (part == 0) break;
        purged += part;
    }
    return purged;
}

/* What is as long as a huge page. */
static size_t purge_longest(size_t wanted)
{
    return purge_pieces(wanted, max_size(huge_pages_each(), long_piece_pages()));
}

/* What is long, then everything. */
static size_t purge_shorter(size_t wanted)
{
    size_t purged = purge_pieces(wanted, long_piece_pages());

    return purged + purge_pieces(wanted - purged, 1);
}

size_t purge_all(void)
{
    size_t purged = purge_longest(SIZE_MAX);

    return (purged + purge_shorter(SIZE_MAX)) << plain.page_shift;
}

/* What was given back lately is one breath out, however many calls it took; was it breathed in again
 * soon? Where nothing may stay it always is, which is no reason for a budget. Under the run lock. */
static void learn(uint64_t now)
{
    uint64_t wanted_back = keeper.clean_leased - purge.last_clean_leased;

    if (purge.last_pages == 0) return;
    if (now >= purge.last_ms + REGRET_MS) {
        purge.peak_pages -= purge.peak_pages / 4;
        note_peak();
        purge.bonus_pages -= purge.bonus_pages / 4;
        purge.last_pages = 0;
    } else if (wanted_back >= purge.last_pages / 2) {
        purge_stats.regrets++;
        if (!nothing_may_stay()) purge.bonus_pages += purge.last_pages;
        purge.last_pages = 0;
    }
}

/* What asks for more than the budget is asked each time: dirty_decay_ms:0 and oversize_threshold. */
static bool alarm_is_fixed(void)
{
    return option_decay_ms() <= 0 || option_is_set(OPTION_OVERSIZE_THRESHOLD);
}

void purge_beyond_budget(void)
{
    uint64_t now = os_now_ms();
    size_t excess, share, budget, purged;

    lock_take(&keeper.lock);
    learn(now);
    share = share_pages();
    budget = share + bonus_pages();
    excess = keeper.free_pages[FREE_DIRTY] > budget ? keeper.free_pages[FREE_DIRTY] - budget : 0;
    lock_give(&keeper.lock);
    if (excess == 0) return;

    /* Huge pages are not broken for little. */
    purged = purge_longest(excess);
    if (excess - purged > (RELAXED_LOAD(huge.wanted) ? share : 0))
        purged += purge_shorter(excess - purged);

    lock_take(&keeper.lock);
    if (excess - purged <= share
        && !alarm_is_fixed()) /* left on purpose: not to be looked at again at once */
        RELAXED_STORE(purge_alarm_pages, keeper.free_pages[FREE_DIRTY] + share / 4);
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
    size_t unneeded, wanted, purged;

    lock_take(&keeper.lock);
    unneeded = keeper.dirty_low;
    lock_give(&keeper.lock);
    wanted = unneeded >= long_piece_pages() && option_decay_ms() >= 0 ? (unneeded + 1) / 2 : 0;
    purged = purge_longest(wanted);
    purged += purge_shorter(wanted - purged);
    purge_watch_unneeded();
    return purged;
}

static READS_UNLOCKED size_t kept_pages_max(void)
{
    size_t share = share_pages();

    return share + share / 2 + bonus_pages();
}

READS_UNLOCKED bool purge_oversize(void)
{
    uint64_t bytes = option_value(OPTION_OVERSIZE_THRESHOLD);
    size_t pages = max_size(pages_for(min_size(bytes, SIZE_MAX / 2)), 1);

    if (bytes == 0) return false;
    while (purge_piece(pages, SIZE_MAX) != 0) {}
    return option_decay_ms() < 0 || keeper.free_pages[FREE_DIRTY] <= kept_pages_max();
}

void purge_obey_options(void) { RELAXED_STORE(purge_alarm_pages, 0); }

void purge_set_hard(bool hard)
{
    if (hard == RELAXED_LOAD(purge_hard)) return;
    RELAXED_STORE(purge_hard, hard);
    RELAXED_STORE(purge_alarm_pages, (size_t)0);
}

READS_UNLOCKED bool purge_is_within_live_budget(void)
{
    size_t most;

    note_peak();
    if (RELAXED_LOAD(purge_hard)) return keeper.free_pages[FREE_DIRTY] < long_piece_pages();
    if (unlikely(alarm_is_fixed())) {
        bool never = option_decay_ms() < 0 && !option_is_set(OPTION_OVERSIZE_THRESHOLD);
        RELAXED_STORE(purge_alarm_pages, never ? SIZE_MAX : 0);
        return never || keeper.free_pages[FREE_DIRTY] == 0;
    }
    most = kept_pages_max();
    /* The least that it will be: memory in use only adds to it. */
    RELAXED_STORE(purge_alarm_pages, most - run_used_pages() / PURGE_USED_SHARE * 3 / 2);
    return keeper.free_pages[FREE_DIRTY] <= most;
}
