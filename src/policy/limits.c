/* limits.c - the three limits, and when to look at them.
 * SPDX-License-Identifier: MIT
 */
#include "limits.h"

#include "../base/constants.h"
#include "purge.h"

/* The last part of a group's limit. When there is a reserve, clean pages that would use that part
 * up are not leased. The kernel does its accounts in batches of some 100 KiB, and other threads are
 * at work. */
#define LAST_BYTES_MIN (2 * MiB)
#define LAST_BYTES_MAX (16 * MiB)
enum { LAST_SHARE = 64, LAST_SHARE_MAX = 16, CROWDED_LASTS = 4, CROWDED_SHARE_MAX = 8 };
/* Huge pages are for groups with much room. */
#define HUGE_ROOM_MIN (32 * MiB)
enum { HUGE_ROOM_SHARE = 4 };
/* A measure that stays beyond its line is told again each time that it grows by such a share of the
 * line. Beyond the group's line there is not far to go. */
enum { SOFT_TOLD_SHARE = 32, CROWDED_TOLD_SHARE = 128 };
/* Processes wait for memory when somebody did for a tenth of the time. */
enum { STALL_SHARE = 10 };
/* Reading the group costs some 30 microseconds. */
enum { GROUP_READ_PAGES_MIN = 16, GROUP_READ_MS = 4 };

struct limits limits = { .lock = { .state = LOCK_FREE, .rank = LOCK_LIMITS },
                         .soft_bytes = SIZE_MAX };

void limits_set_soft(size_t bytes)
{
    RELAXED_STORE(limits.soft_bytes, bytes == 0 ? SIZE_MAX : bytes);
}
void limits_set_hard(size_t bytes)
{
    RELAXED_STORE(commit.limit_bytes, bytes == 0 ? SIZE_MAX : bytes);
    page_heaps_follow_limits();
    purge_obey_options();
    if (commit_is_over()) (void)purge_all();
}

/* ---- measures ---- */

/* Vast blocks are no runs. */
size_t limits_held_bytes(void)
{
    return (page_heaps_used() << space.page_shift) + RELAXED_LOAD(commit.vast_bytes);
}

static size_t free_bytes(unsigned kind) { return page_heaps_free_now(kind) << space.page_shift; }

/* What the group was not charged for when it was read: clean pages that were leased since, vast
 * blocks, and pages of slabs that had gone to the kernel. */
static READS_UNLOCKED uint64_t taken_pages(void)
{
    uint64_t clean = limits.group_clean;
    size_t retaken = limits.group_retaken, vast = limits.group_vast_bytes, vast_now;

    /* Counters only grow: who reads the group meanwhile must not be seen to have counted more. */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    vast_now = RELAXED_LOAD(commit.vast_bytes);
    return page_heaps_clean_leased_now() - clean + (RELAXED_LOAD(limits.retaken_pages) - retaken)
         + ((vast_now - min_size(vast_now, vast)) >> space.page_shift);
}

/* ---- the group ---- */

static READS_UNLOCKED bool group_is_limited(void)
{
    return RELAXED_LOAD(limits.follows_group) && limits.group_known
        && limits.group.limit_bytes != SIZE_MAX;
}

/* What is left of the room that was read, if nobody else took any. */
static READS_UNLOCKED size_t room_now(void)
{
    uint64_t taken = taken_pages() << space.page_shift;

    return limits.group.room_bytes - min_size(limits.group.room_bytes, (size_t)taken);
}

/* Every first touch of a huge page takes 2 MiB at once. */
static void bar_huge_pages(void)
{
    size_t least = max_size(limits.group.limit_bytes / HUGE_ROOM_SHARE, HUGE_ROOM_MIN);
    bool barred =
        group_is_limited() && room_now() < (RELAXED_LOAD(huge.barred) ? 2 * least : least);

    if (barred != RELAXED_LOAD(huge.barred)) huge_bar(barred);
}

/* Pages that were leased and not touched yet are not in the group's account, and will be; but at
 * most half of the room goes for them, for a table may stay sparse. A group that cannot be read
 * now, for want of a descriptor perhaps, is what it was. Who looks meanwhile sees what was read
 * before, and all that was taken since: the count of that begins anew when all else is there. */
static READS_UNLOCKED void read_group(void)
{
    uint64_t clean = page_heaps_clean_leased_now();
    size_t retaken = RELAXED_LOAD(limits.retaken_pages);
    size_t vast = RELAXED_LOAD(commit.vast_bytes);
    struct os_group group = os_group_memory();
    size_t taken, untouched;

    if (group.failed && group_is_limited()) {
        group = (struct os_group){ limits.group.limit_bytes, room_now(), false };
    } else if (group.limit_bytes != SIZE_MAX) {
        taken = commit_taken_bytes();
        untouched = taken - min_size(taken, os_own_bytes());
        group.room_bytes -= min_size(group.room_bytes / 2, untouched);
    }
    limits.group = group;
    limits.group_known = true;
    limits.group_open_bytes = space.open_bytes;
    limits.group_ms = os_now_ms();
    limits.group_clean = clean;
    limits.group_vast_bytes = vast;
    limits.group_retaken = retaken;
    bar_huge_pages();
}

static size_t last_of_group(void)
{
    size_t limit = limits.group.limit_bytes;
    size_t last = min_size(max_size(limit / LAST_SHARE, LAST_BYTES_MIN), LAST_BYTES_MAX);

    return min_size(last, limit / LAST_SHARE_MAX);
}

/* A group with less room than this is crowded. */
static size_t crowded_of_group(void)
{
    return min_size(CROWDED_LASTS * last_of_group(), limits.group.limit_bytes / CROWDED_SHARE_MAX);
}

READS_UNLOCKED bool limits_group_is_crowded(void)
{
    return group_is_limited() && room_now() < crowded_of_group();
}

/* May we have taken a quarter of the room since it was read? */
static READS_UNLOCKED bool group_is_taken_from(void)
{
    size_t quarter =
        max_size(limits.group.room_bytes / 4 >> space.page_shift, GROUP_READ_PAGES_MIN);

    return !limits.group_known || (group_is_limited() && taken_pages() >= quarter);
}

bool limits_note_retaken(size_t pages)
{
    (void)__atomic_add_fetch(&limits.retaken_pages, pages, __ATOMIC_RELAXED);
    return group_is_limited() && group_is_taken_from();
}

static READS_UNLOCKED bool group_is_stale(void)
{
    if (group_is_taken_from()) return true;
    if (!group_is_limited()) return space.open_bytes / 2 >= limits.group_open_bytes;
    return limits_group_is_crowded() && os_now_ms() - limits.group_ms >= GROUP_READ_MS;
}

/* What is about to be taken must leave it there. Pages that are barred need twice as much. */
static READS_UNLOCKED bool is_to_bar(bool is_barred, size_t coming)
{
    size_t line = is_barred ? 2 * last_of_group() : last_of_group();
    size_t room = room_now();

    return RELAXED_LOAD(limits.bars_clean) && group_is_limited()
        && room - min_size(room, coming) < line;
}

static void set_barred(bool barred)
{
    if (barred != page_heaps_are_barred()) page_heaps_bar_clean(barred);
}

READS_UNLOCKED size_t limits_room_bytes(void) { return group_is_limited() ? room_now() : SIZE_MAX; }

/* ---- stalls ---- */

/* Has somebody waited for long since it was looked at last? */
static bool has_stalled(void)
{
    uint64_t now, stalled, passed, waited;
    bool first = limits.stalled_ms == 0;

    if (!RELAXED_LOAD(limits.looks_for_stalls)) return false;
    now = os_now_ms();
    passed = now - limits.stalled_ms;
    if (!first && passed < STALL_LOOK_MS) return false;
    stalled = os_stalled_us();
    /* What was waited while it could not be told is no wait of this look, nor is another
     * group's. */
    waited = stalled > limits.stalled_us && stalled != UINT64_MAX ? stalled - limits.stalled_us : 0;
    if (stalled != 0) limits.stalled_us = stalled;
    limits.stalled_ms = now;
    return !first && waited >= passed * 1000 / STALL_SHARE;
}

bool limits_look_for_stalls(void)
{
    if (!RELAXED_LOAD(limits.looks_for_stalls) || !lock_try(&limits.lock)) return false;
    if (has_stalled()) RELAXED_STORE(limits.stall_due, true);
    lock_give(&limits.lock);
    return RELAXED_LOAD(limits.stall_due);
}

/* ---- looking ---- */

/* Has a measure beyond a line grown enough to be told again? */
static bool is_to_tell(size_t *told_bytes, size_t measure, size_t line, unsigned told_share)
{
    size_t step = max_size(line / told_share, 1);

    if (measure <= line - step) *told_bytes = 0;
    if (measure <= line || (*told_bytes != 0 && measure - step < *told_bytes)) return false;
    *told_bytes = measure;
    return true;
}

static bool is_over_soft(void) { return commit_taken_bytes() > limits_soft(); }

/* Beyond a line no dirty pages may stay, and those there are go back now. When they are all that
 * may be leased they stay, unless they make enough room together. Pages that are barred for what is
 * coming alone are no reason for that: it may be had when the others have gone. */
static void purge_beyond_lines(size_t coming)
{
    bool beyond = is_over_soft() || limits_group_is_crowded() || RELAXED_LOAD(limits.stall_due);
    bool barred = is_to_bar(page_heaps_are_barred(), 0);

    if (barred) set_barred(true);
    if (barred && room_now() + free_bytes(FREE_DIRTY) < 2 * last_of_group()) beyond = false;
    purge_keep_none(beyond);
    if (beyond && purge_all() != 0 && group_is_limited()) {
        read_group();
        barred = is_to_bar(barred, 0);
    }
    set_barred(barred || is_to_bar(false, coming));
}

void limits_know_group(void)
{
    lock_take(&limits.lock);
    if (RELAXED_LOAD(limits.follows_group) && !limits.group_known) read_group();
    lock_give(&limits.lock);
}

unsigned limits_cores(void)
{
    unsigned cores = RELAXED_LOAD(limits.cores);

    if (likely(cores != 0)) return cores;
    lock_take(&limits.lock);
    if (limits.cores == 0) { /* another thread may have been here first */
        cores = os_core_quota();
        RELAXED_STORE(limits.cores, cores != 0 ? cores : UINT32_MAX);
    }
    cores = limits.cores;
    lock_give(&limits.lock);
    return cores;
}

void limits_follow_group(bool follows)
{
    lock_take(&limits.lock);
    RELAXED_STORE(limits.follows_group, follows);
    limits.group_known = false;
    bar_huge_pages();
    set_barred(false); /* nobody knows of a group now */
    lock_give(&limits.lock);
}

void limits_set_bars_clean(bool bars)
{
    RELAXED_STORE(limits.bars_clean, bars);
    if (bars) limits_know_group();
}

void limits_set_looks_for_stalls(bool looks)
{
    lock_take(&limits.lock);
    if (looks && !limits.looks_for_stalls) limits.stalled_ms = 0; /* what was before is none */
    RELAXED_STORE(limits.looks_for_stalls, looks);
    lock_give(&limits.lock);
}

/* While the lock's holder reads or purges, others could take all that is left. */
static bool is_worth_a_wait(size_t coming)
{
    return RELAXED_LOAD(limits.follows_group)
        && (group_is_taken_from() || (!page_heaps_are_barred() && is_to_bar(false, coming)));
}

enum limits_state limits_look(size_t coming)
{
    enum limits_state state = LIMITS_CALM;
    size_t limit;

    if (!lock_try(&limits.lock)) {
        if (!is_worth_a_wait(coming)) return state;
        lock_take(&limits.lock);
    }
    if (RELAXED_LOAD(limits.follows_group) && group_is_stale()) read_group();
    if (has_stalled()) RELAXED_STORE(limits.stall_due, true);
    purge_beyond_lines(coming);
    if (is_to_tell(&limits.soft_told_bytes, commit_taken_bytes(), limits_soft(), SOFT_TOLD_SHARE))
        state = LIMITS_NEAR;
    limit = limits.group.limit_bytes;
    if (group_is_limited()
        && is_to_tell(&limits.crowded_told_bytes, limit - min_size(room_now(), limit),
                      limit - crowded_of_group(), CROWDED_TOLD_SHARE))
        state = LIMITS_NEAR;
    if (RELAXED_LOAD(limits.stall_due)) state = LIMITS_STALLED;
    RELAXED_STORE(limits.stall_due, false);
    lock_give(&limits.lock);
    return state;
}

void limits_bar_clean_for(size_t coming)
{
    bool is_barred = page_heaps_are_barred();

    if (is_to_bar(is_barred, coming) == is_barred) return;
    lock_take(&limits.lock);
    set_barred(is_to_bar(page_heaps_are_barred(), coming));
    lock_give(&limits.lock);
}

bool limits_are_clear(void)
{
    bool clear;

    lock_take(&limits.lock);
    if (group_is_limited()) read_group();
    purge_beyond_lines(0);
    clear = !is_over_soft() && !limits_group_is_crowded();
    lock_give(&limits.lock);
    return clear;
}

/* A line is to be seen before the growth that crosses it: large requests look only when they grow
 * the region, unless they always do. */
static size_t before_growth(size_t line, size_t open_bytes, size_t coming)
{
    size_t step = max_size(max_size(OPEN_BYTES_MIN, open_bytes / 8), coming) + HUGE_PAGE_BYTES;

    return line <= step || open_bytes >= line - step ? 0 : line - step;
}

static READS_UNLOCKED size_t look_at_group_from(size_t open_bytes, size_t coming)
{
    size_t idle = free_bytes(FREE_CLEAN), half = limits.group.room_bytes / 2;

    if (!limits.group_known) return GROUP_OPEN_BYTES_MIN;
    if (!group_is_limited())
        return max_size(2 * min_size(limits.group_open_bytes, SIZE_MAX / 2), GROUP_OPEN_BYTES_MIN);
    if (limits_group_is_crowded() || page_heaps_are_barred()) return 0;
    if (half <= idle) return LOOK_AT_LEASES;
    return before_growth(open_bytes + min_size(half - idle, SIZE_MAX - open_bytes), open_bytes,
                         coming);
}

READS_UNLOCKED size_t limits_look_from(size_t coming)
{
    size_t open_bytes = space.open_bytes, soft = limits_soft(), from = SIZE_MAX;
    size_t line = soft - soft / 16;

    if (RELAXED_LOAD(limits.stall_due) || RELAXED_LOAD(purge_mode.keeps_none)) return 0;
    /* The region is no measure of vast blocks. */
    line -= min_size(line, RELAXED_LOAD(commit.vast_bytes));
    if (soft != SIZE_MAX) from = before_growth(line, open_bytes, coming);
    if (RELAXED_LOAD(limits.follows_group))
        from = min_size(from, look_at_group_from(open_bytes, coming));
    return from;
}
