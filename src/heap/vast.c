/* vast.c - taking, resizing and giving back blocks that are mappings of their own.
 * SPDX-License-Identifier: MIT
 */
#include "vast.h"

#include "../policy/limits.h"
#include "../page_heap/huge.h"
#include "../policy/purge.h"

enum { FREED_COUNT = 16 };

/* A hint: what is read while it changes leads to another word in a message at worst. */
static struct {
    uintptr_t base[FREED_COUNT]; /* atomic, under the page heap's lock */
    size_t bytes[FREED_COUNT];   /* atomic, under the page heap's lock */
    unsigned next;               /* under the page heap's lock */
} freed SPARSE;

bool vast_is_refuge(size_t bytes)
{
    return bytes >= VAST_REFUGE_BYTES && !space_has_numbers(bytes);
}

/* ---- counting, under the page heap's lock ---- */

/* A block of `before` bytes has `after` now; 0: there is none. */
static void count_block(size_t before, size_t after)
{
    size_t came = after != 0, went = before != 0;

    RELAXED_STORE(commit.vast_bytes, commit.vast_bytes + after - before);
    RELAXED_STORE(commit.vast_count, commit.vast_count + came - went);
    page_heap->large_pages += (after >> space.page_shift) - (before >> space.page_shift);
    page_heap->large_leases += came;
    page_heap->large_returns += went;
}

static void count_coming(size_t bytes)
{
    RELAXED_STORE(commit.vast_coming, commit.vast_coming + bytes);
}

/* A fork's child that was in the middle of this expects nothing. */
static void uncount_coming(size_t bytes)
{
    RELAXED_STORE(commit.vast_coming, commit.vast_coming - min_size(bytes, commit.vast_coming));
}

/* ---- the hard limit ---- */

static bool may_come(size_t bytes)
{
    bool allowed;

    lock_take(&page_heap->lock);
    allowed = commit_allows(bytes) && !page_heaps_are_barred();
    if (allowed) count_coming(bytes);
    lock_give(&page_heap->lock);
    return allowed;
}

/* They count from now on, so that no two are allowed what is left for one. Dirty pages may be all
 * that the limit lacks, also those that another thread gives back. False: there may not be so many
 * more. */
static bool expect_bytes(size_t bytes)
{
    if (likely(may_come(bytes))) return true;
    if (page_heaps_are_barred() || bytes > limits_hard()) return false;
    (void)purge_all();
    purge_await_others(bytes);
    return may_come(bytes);
}

static void give_up(size_t bytes)
{
    lock_take(&page_heap->lock);
    uncount_coming(bytes);
    lock_give(&page_heap->lock);
}

void vast_forget_others(void)
{
    check(lock_is_mine(&page_heap->lock));
    RELAXED_STORE(commit.vast_coming, (size_t)0);
}

/* ---- taking ---- */

/* `gained` bytes of it were expected; a run whose pages it took along is given back. False: there
 * is no number for it, or it lies where the class map cannot tell it from a region. */
static bool number_block(struct os_range range, size_t gained, uint32_t emptied)
{
    uint32_t page;

    lock_take(&page_heap->lock);
    page = foreign_add_whole(range.base, range.bytes >> space.page_shift);
    if (page != 0) {
        page_record(page)->state = PAGE_VAST;
        page_record(page)->bin_index = 0; /* and no marks */
        uncount_coming(gained);
        count_block(0, range.bytes);
        page_heap->leases++;
        if (emptied != 0) run_return_emptied(emptied);
    }
    lock_give(&page_heap->lock);
    return page != 0;
}

char *vast_take(size_t bytes, size_t align)
{
    size_t align_least = page_bytes() == 4 * KiB ? HUGE_PAGE_BYTES : page_bytes();
    struct os_range range;

    if (!expect_bytes(bytes)) return NULL;
    range = os_reserve(bytes, max_size(align, align_least));
    if (range.base != NULL) {
        os_wish_huge_pages(range, huge_is_possible());
        if (os_commit(range) && number_block(range, bytes, 0)) return range.base;
        os_release(range);
    }
    give_up(bytes);
    return NULL;
}

char *vast_take_from(uint32_t page, size_t bytes)
{
    struct os_range run = page_range(page, page_record(page)->run_pages);
    size_t gained = bytes - min_size(run.bytes, bytes);
    struct os_range range;

    if (!expect_bytes(gained)) return NULL;
    range = os_move_out(run, bytes);
    if (range.base != NULL) {
        if (number_block(range, gained, page)) return range.base;
        os_move_back((struct os_range){ range.base, run.bytes }, run);
        if (bytes > run.bytes)
            os_release((struct os_range){ range.base + run.bytes, bytes - run.bytes });
    }
    give_up(gained);
    return NULL;
}

/* ---- giving ---- */

bool vast_was_there(const void *address)
{
    for (unsigned i = 0; i < FREED_COUNT; i++)
        if ((uintptr_t)address - RELAXED_LOAD(freed.base[i]) < RELAXED_LOAD(freed.bytes[i]))
            return true;
    return false;
}

size_t vast_bytes(uint32_t page) { return foreign_bytes(page); }
size_t vast_count_now(void) { return RELAXED_LOAD(commit.vast_count); }

/* The numbers go before the memory does: whoever maps some there next may have it added. */
void vast_put(uint32_t page)
{
    struct os_range range = { page_address(page), vast_bytes(page) };
    unsigned at;

    lock_take(&page_heap->lock);
    count_block(range.bytes, 0);
    page_heap->returns++;
    at = freed.next++ % FREED_COUNT;
    RELAXED_STORE(freed.base[at], (uintptr_t)range.base);
    RELAXED_STORE(freed.bytes[at], range.bytes);
    foreign_remove(page);
    lock_give(&page_heap->lock);
    os_release(range);
}

/* ---- resizing ---- */

/* What is gained was expected. */
static void note_length(uint32_t page, size_t before, size_t after)
{
    lock_take(&page_heap->lock);
    foreign_hide(page);
    foreign_show(page, page_address(page), after >> space.page_shift);
    if (after > before) uncount_coming(after - before);
    count_block(before, after);
    lock_give(&page_heap->lock);
}

/* While the block has no address, its bytes count as coming. */
static void hide_block(uint32_t page, size_t bytes)
{
    lock_take(&page_heap->lock);
    foreign_hide(page);
    count_block(bytes, 0);
    count_coming(bytes);
    lock_give(&page_heap->lock);
}

static void show_block(uint32_t page, struct os_range range, size_t came)
{
    lock_take(&page_heap->lock);
    foreign_show(page, range.base, range.bytes >> space.page_shift);
    uncount_coming(came);
    count_block(0, range.bytes);
    lock_give(&page_heap->lock);
}

/* Meanwhile it is nowhere: its old place may be somebody else's before the call is over. */
static bool grow_moving(uint32_t page, struct os_range old, size_t bytes)
{
    struct os_range grown;

    hide_block(page, old.bytes);
    grown = os_resize(old, bytes, true);
    if (grown.base != NULL) show_block(page, grown, bytes);
    else show_block(page, old, old.bytes);
    return grown.base != NULL;
}

/* In place, what lies behind a block becomes its own before it is told so. */
bool vast_resize(uint32_t page, size_t bytes, bool may_move)
{
    struct os_range old = { page_address(page), vast_bytes(page) };
    bool grown;

    if (bytes < old.bytes) {
        note_length(page, old.bytes, bytes);
        os_release((struct os_range){ old.base + bytes, old.bytes - bytes });
    }
    if (bytes <= old.bytes) return true;
    if (!expect_bytes(bytes - old.bytes)) return false;
    if (may_move) {
        grown = grow_moving(page, old, bytes);
    } else {
        grown = os_resize(old, bytes, false).base != NULL;
        if (grown) note_length(page, old.bytes, bytes);
    }
    if (!grown) give_up(bytes - old.bytes);
    return grown;
}
