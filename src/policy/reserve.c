/* reserve.c - filling the reserve with real pages, and giving them away.
 * SPDX-License-Identifier: MIT
 */
#include "reserve.h"

#include "limits.h"
#include "../space/meta.h"

struct reserve reserve = { .lock = { .state = LOCK_FREE, .rank = LOCK_RESERVE } };

/* Of records, for each page of the reserve: what its slabs of small blocks need, and some caches of
 * threads. */
enum { RECORDS_SHARE = 32, RECORDS_BYTES_MIN = 16 * 1024 };
/* Runs are halved down to this when no longer one can be had: every slab fits into one. */
enum { RUN_PAGES_MIN = 16 };

/* ---- giving away ---- */

/* Gives the last `pages` of a run to the page heap. False: the kernel would not treat them as
 * ordinary pages again; they stay, because a child would find them empty. */
static bool give_tail(uint32_t index, size_t pages)
{
    uint32_t page = reserve.run[index];
    size_t left = page_record(page)->run_pages - pages;

    if (!os_keep_from_child(page_range(page + (uint32_t)left, pages), false)) return false;
    RELAXED_STORE(reserve.pages, reserve.pages - pages);
    if (left == 0) {
        reserve.run[index] = reserve.run[--reserve.run_count];
        run_return(page);
    } else {
        run_trim(page_heap_of(page), page, left);
    }
    return true;
}

/* The shortest run that is long enough, so that long ones stay for those who need them; run_count:
 * none. */
static uint32_t run_for(size_t pages)
{
    uint32_t best = reserve.run_count;
    size_t best_pages = SIZE_MAX;

    for (uint32_t i = 0; i < reserve.run_count; i++) {
        size_t run_pages = page_record(reserve.run[i])->run_pages;
        if (run_pages < pages || run_pages >= best_pages) continue;
        best = i;
        best_pages = run_pages;
    }
    return best;
}

bool reserve_release(size_t pages)
{
    bool given = false;
    uint32_t index;

    lock_take(&reserve.lock);
    index = run_for(pages);
    if (index < reserve.run_count) {
        given =
            give_tail(index, pages) || give_tail(index, page_record(reserve.run[index])->run_pages);
        reserve.releases += given;
    }
    if (given) {
        reserve.records_short = true;
        (void)meta_hold_back(0);
    }
    lock_give(&reserve.lock);
    return given;
}

static void shrink(void)
{
    while (reserve.pages > reserve.wanted_pages) {
        size_t run_pages = page_record(reserve.run[reserve.run_count - 1])->run_pages;
        if (!give_tail(reserve.run_count - 1,
                       min_size(run_pages, reserve.pages - reserve.wanted_pages)))
            return;
    }
}

/* ---- filling ---- */

/* Makes pages that were just added real. Keeping them from children is a wish: without it a fork
 * shares them, and the first write afterwards needs a page of the kernel's. */
static bool make_real(uint32_t page, size_t pages)
{
    if (!os_touch(page_range(page, pages))) return false;
    (void)os_keep_from_child(page_range(page, pages), true);
    return true;
}

static bool extend_some_run(size_t missing)
{
    for (uint32_t i = 0; i < reserve.run_count; i++) {
        uint32_t page = reserve.run[i];
        size_t old_pages = page_record(page)->run_pages;

        if (!run_extend(page_heap_of(page), page, old_pages + missing)) continue;
        if (!make_real(page + (uint32_t)old_pages, missing)) {
            run_trim(page_heap_of(page), page, old_pages);
            return false;
        }
        RELAXED_STORE(reserve.pages, reserve.pages + missing);
        return true;
    }
    return false;
}

static bool add_run(size_t pages, bool dirty_only)
{
    uint32_t page;

    if (reserve.run_count == RESERVE_RUNS_MAX) return false;
    page = dirty_only ? run_lease_dirty(pages) : run_lease(pages, 1, PAGE_USED).page;
    if (page == 0) return false;
    if (!make_real(page, pages)) {
        run_return(page);
        return false;
    }
    reserve.run[reserve.run_count++] = page;
    RELAXED_STORE(reserve.pages, reserve.pages + pages);
    return true;
}

/* One run for all that is missing if possible, else shorter ones. A full array of short runs
 * gives the shortest back, so that there is room for a longer one. */
static void add_runs(bool dirty_only)
{
    size_t pages = SIZE_MAX;

    if (reserve.run_count == RESERVE_RUNS_MAX) {
        uint32_t shortest = run_for(1);
        (void)give_tail(shortest, page_record(reserve.run[shortest])->run_pages);
    }
    while (reserve.pages < reserve.wanted_pages) {
        pages = min_size(pages, reserve.wanted_pages - reserve.pages);
        if ((!dirty_only && extend_some_run(pages)) || add_run(pages, dirty_only)) {
            reserve.refills++;
            continue;
        }
        if (pages <= RUN_PAGES_MIN) return;
        pages = max_size(pages / 2, RUN_PAGES_MIN);
    }
}

/* Filling must not take the last of a group's memory, nor what the machine has not got, for then
 * the kernel kills. Dirty pages are in these accounts already. */
static bool has_room_for(size_t pages)
{
    size_t bytes = pages << space.page_shift, left;

    if (limits_room_bytes() / 2 < bytes) return false;
    if (bytes < RESERVE_ASKS_FROM_BYTES) return true;
    left = os_machine_room_bytes();
    return bytes <= left - left / RESERVE_LEAVES_SHARE;
}

/* One long run for several short ones, when so much is free: requests are served by one run. Not
 * while there are runs that the kernel did not let go. */
static void join_runs(void)
{
    size_t wanted = reserve.wanted_pages;

    if (reserve.run_count < 2 || reserve.run_count == RESERVE_RUNS_MAX || reserve.pages > wanted)
        return;
    if (run_lease_would_grow(page_heap, wanted) || !has_room_for(wanted) || !add_run(wanted, false))
        return;
    for (uint32_t i = reserve.run_count - 1; i-- > 0;)
        (void)give_tail(i, page_record(reserve.run[i])->run_pages);
}

/* In a child: the pages that it inherited as zeros. */
static void touch_again(void)
{
    for (uint32_t i = 0; i < reserve.run_count; i++)
        if (!os_touch(page_range(reserve.run[i], page_record(reserve.run[i])->run_pages))) return;
    reserve.untouched = false;
}

static bool fill_up(void)
{
    size_t wanted = reserve.wanted_pages, before = reserve.pages;

    if (before < wanted) add_runs(!has_room_for(wanted - before));
    join_runs();
    if (reserve.untouched) touch_again();
    reserve.records_short |= reserve.pages > before;
    if (reserve.records_short) {
        size_t pages = min_size(reserve.pages, wanted);
        size_t bytes = max_size((pages << space.page_shift) / RECORDS_SHARE, RECORDS_BYTES_MIN);
        reserve.records_short = !meta_hold_back(wanted != 0 ? bytes : 0);
    }
    return reserve.pages >= wanted && !reserve.untouched && !reserve.records_short;
}

bool reserve_refill(void)
{
    bool full;

    lock_take(&reserve.lock);
    full = fill_up();
    lock_give(&reserve.lock);
    return full;
}

bool reserve_resize(size_t bytes)
{
    bool full;

    lock_take(&reserve.lock);
    RELAXED_STORE(reserve.wanted_pages,
                  pages_for(min_size(bytes, (size_t)space.page_count_max << space.page_shift)));
    reserve.records_short = true;
    shrink();
    full = fill_up();
    lock_give(&reserve.lock);
    return full;
}

READS_UNLOCKED bool reserve_is_short(void)
{
    return reserve_missing_pages() != 0 || reserve.untouched || reserve.records_short;
}

/* ---- fork and walks ---- */

void reserve_forget_pages(void)
{
    reserve.untouched = reserve.pages != 0;
    reserve.records_short = reserve.wanted_pages != 0;
}

void reserve_check(void)
{
    size_t pages = 0;

    for (uint32_t i = 0; i < reserve.run_count; i++) {
        const struct page *record = page_record(reserve.run[i]);
        require(record->state == PAGE_USED && record->class_at == 0); /* B2 */
        pages += record->run_pages;
    }
    require(pages == reserve.pages); /* B1 */
}
