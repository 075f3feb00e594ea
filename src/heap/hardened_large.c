/* hardened_large.c - the guards, canaries and ends of hardened blocks of whole pages.
 * SPDX-License-Identifier: MIT
 */
#include "hardened_large.h"

#include "doors.h"
#include "hardened_held.h"
#include "large.h"
#include "marks.h"
#include "shortage.h"

#include "../arenas/decay.h"
#include "../arenas/manual.h"
#include "../cache/quarantine.h"
#include "../cache/thread.h"
#include "../guard/fill.h"
#include "../sample/sampling.h"

/* Larger runs are not closed: they count as used while they wait, and a guard has an entry for each
 * of its pages. With pages of 4 KiB the budget of all guards is less. */
#define WAITING_RUN_BYTES_MAX ((size_t)32 * MiB)

bool hardened_large_is_usual(const struct alloc_request *request)
{
    return !hardened_large_is_vast(request->size, request->align) && large_owner(request) == NULL
        && !cache_is_away(thread_front()->cache);
}

static void set_large(char *block, uint32_t page, size_t size, uint32_t door)
{
    size_t slack = hardened_large_room(page) - size;

    hardened_large_record(page)->bin.next = (uint32_t)slack;
    hardened_large_record(page)->bin.previous = door;
    write_canaries(block + size + slack, slack);
}

void hardened_large_begin(char *block, uint32_t page, size_t size, bool has_waited)
{
    struct page *record = page_record(page);
    struct os_range guard = { block + hardened_large_room(page), page_bytes() };
    uint32_t guarded = has_waited ? hardened_large_record(page)->bin.previous : 0;

    if (guarded == 0 && quarantine_may_close(1) && os_guard(guard)) guarded = RUN_GUARDED;
    page_mark_hardened(record);
    set_large(block, page, size, DOOR_MALLOC | guarded);
}

void hardened_large_set_size(char *block, uint32_t page, size_t size)
{
    set_large(block, page, size, hardened_large_record(page)->bin.previous);
}

void hardened_large_check(const void *block, uint32_t page)
{
    size_t slack = hardened_large_record(page)->bin.next;

    if (!canaries_are_whole((const char *)block + hardened_large_room(page), slack))
        fatal_address("write past the end of a block", block);
}

void hardened_large_set_door(uint32_t page, enum hardened_door door)
{
    struct page *record = hardened_large_record(page);

    record->bin.previous = (record->bin.previous & ~(uint32_t)DOOR_MASK) | door;
}

/* The usual end of one that the thread may close. False: nothing happened. */
static bool close_large(struct cache *cache, char *block, uint32_t page)
{
    struct os_range data = { block, hardened_large_room(page) };

    if ((hardened_large_record(page)->bin.previous & RUN_GUARDED) == 0
        || data.bytes > WAITING_RUN_BYTES_MAX
        || !quarantine_may_close(data.bytes >> space.page_shift) || !os_guard(data))
        return false;
    hardened_large_record(page)->bin.next = hardened_large_record(page)->bin.previous = 0; /* R3 */
    if (cache != NULL) quarantine_put_closed(cache, page);
    else quarantine_return_closed(page);
    return true;
}

/* One that cannot be closed is wiped, and waits open when it is short enough. False: nothing
 * happened. */
static bool keep_open(struct cache *cache, char *block, uint32_t page)
{
    size_t bytes = hardened_large_room(page);
    struct page *last = hardened_large_record(page);

    if (cache == NULL || bytes > WIPED_RUN_BYTES_MAX) return false;
    last->bin.next = 0; /* R3 */
    last->bin.previous &= RUN_GUARDED;
    __builtin_memset(block, 0, bytes);
    quarantine_put_open(cache, page);
    return true;
}

/* It goes to no quarantine. Contents that cannot be guarded are wiped. */
static void return_large(char *block, uint32_t page)
{
    size_t bytes = hardened_large_room(page);
    struct page *last = hardened_large_record(page);
    uint32_t guarded = last->bin.previous & RUN_GUARDED;

    last->bin.next = last->bin.previous = 0; /* R3 */
    if (guarded != 0 && !os_unguard((struct os_range){ block + bytes, page_bytes() })) {
        page_mark_cached(page_record(page)); /* lost, but nobody's */
        return;
    }
    page_unmark_cached(page_record(page));
    if (os_purge((struct os_range){ block, bytes + page_bytes() })) {
        run_return_clean(page);
    } else {
        __builtin_memset(block, 0, bytes);
        large_put(page);
    }
}

/* An open run may leave the quarantine for one that comes, even for a closed one: its pages are
 * dirty. To wipe one whose pages have moved away would bring others in their place. */
static void end_large(struct cache *cache, char *block, uint32_t page, bool has_pages)
{
    if (cache != NULL && cache->is_off) cache = NULL;
    if (!close_large(cache, block, page) && (!has_pages || !keep_open(cache, block, page)))
        return_large(block, page);
    else if (unlikely(decay_after_return())) thread_flush();
}

void hardened_large_end(struct cache *cache, char *block, uint32_t page)
{
    end_large(cache, block, page, true);
}

/* To so many bytes and the page of a guard; a guard that it has goes. False: there is no room, or
 * the kernel would not; it is as it was. */
static bool extend_here(char *block, uint32_t page, size_t old_size, size_t bytes)
{
    size_t old_bytes = hardened_large_room(page);
    uint32_t old_pages = page_record(page)->run_pages;
    uint32_t flags = hardened_large_record(page)->bin.previous;
    struct os_range guard = { block + old_bytes, page_bytes() };
    bool was_guarded = (flags & RUN_GUARDED) != 0;
    enum extended extended;

    hardened_large_record(page)->bin.next = 0; /* R3 */
    extended = run_extend(page_heap_of(page), page, (bytes >> space.page_shift) + 1);
    if (extended != EXTENDED_NOT) {
        if (!was_guarded || os_unguard(guard)) {
            __builtin_memset(block + old_size, 0, old_bytes - old_size);
            if (extended == EXTENDED) large_clear(block + old_bytes, bytes - old_bytes);
            else if (!was_guarded) __builtin_memset(guard.base, 0, guard.bytes);
            return true;
        }
        run_trim(page_heap_of(page), page, old_pages);
    }
    set_large(block, page, old_size, flags);
    return false;
}

/* The same for one that becomes no longer. */
static bool trim_here(char *block, uint32_t page, size_t bytes)
{
    struct page *last = hardened_large_record(page);
    size_t old_bytes = hardened_large_room(page);
    struct os_range guard = { block + old_bytes, page_bytes() };

    if ((last->bin.previous & RUN_GUARDED) != 0 && !os_unguard(guard)) return false;
    large_clear(block + bytes, old_bytes - bytes);
    last->bin.next = 0; /* R3 */
    run_trim(page_heap_of(page), page, (bytes >> space.page_shift) + 1);
    return true;
}

/* Its guard goes, and there may be another one; else what the page had is not to be read. */
static bool resize_run_here(char *block, uint32_t page, size_t old_size, size_t size)
{
    size_t old_bytes = hardened_large_room(page), bytes = round_up(size, page_bytes());
    uint32_t door = hardened_large_record(page)->bin.previous & DOOR_MASK;
    struct os_range guard = { block + bytes, page_bytes() };
    bool is_guarded;

    if (bytes > old_bytes && decay_limits_are_due(bytes - old_bytes))
        shortage_look(bytes - old_bytes);
    if (bytes > old_bytes ? !extend_here(block, page, old_size, bytes)
                          : !trim_here(block, page, bytes))
        return false;
    is_guarded = quarantine_may_close(1) && os_guard(guard);
    if (!is_guarded && bytes > old_bytes) __builtin_memset(guard.base, 0, guard.bytes);
    set_large(block, page, size, door | (is_guarded ? RUN_GUARDED : 0u));
    hardened_count_in_place(old_size, size);
    if (bytes < old_bytes && unlikely(decay_after_return())) thread_flush();
    return true;
}

/* In whole pages, of the page heap's, before and after. */
static bool stays_large(size_t size)
{
    struct alloc_request request = alloc_request(size, 1, false, NULL);

    return hardened_class(size, 1) == 0 && size <= SIZE_MAX / 2
        && hardened_large_is_usual(&request);
}

/* What grows is a sample by the same chance as a new block, and a sample has no mark: it moves. */
static bool may_become_sample(void)
{
    const struct counting_front *counting = counting_of(thread_word());

    return counting != NULL && counting->sampler != NULL && !counting->sampler->is_off
        && RELAXED_LOAD(sampling_active);
}

bool hardened_large_resize(char *block, uint32_t page, size_t old_size, size_t size, bool may_move)
{
    if (may_move && size > old_size && unlikely(may_become_sample())) return false;
    return stays_large(size) && resize_run_here(block, page, old_size, size);
}

bool hardened_move_pages(void *block, uint32_t page, size_t bytes, void *to)
{
    struct os_range from = { block, round_up(bytes, page_bytes()) };
    uint32_t to_page = page_at(to);
    size_t to_bytes = prairie_usable_size(to);
    struct counting_front *counting = counting_of(thread_word());

    if (page_record(page)->class_at != 0 || page_record(to_page)->class_at != 0) return false;
    /* Hooks have chosen what lies there. */
    if (page_is_manual(to_page)) return false;
    if (from.bytes > round_up(to_bytes, page_bytes()) || !large_may_move(bytes)) return false;
    if (!os_move(from, (struct os_range){ to, from.bytes })) return false;
    /* The last page came along whole. */
    __builtin_memset((char *)to + bytes, 0, from.bytes - bytes);
    if (unlikely(fill_is_wanted()))
        (void)fill_taken((char *)to + bytes, min_size(from.bytes, to_bytes) - bytes);
    if (page_is_held_hardened(page_record(to_page)))
        write_canaries((char *)to + hardened_large_room(to_page),
                       hardened_large_room(to_page) - to_bytes);
    if (counting != NULL) counting_add_given(counting, hardened_large_size(page));
    end_large(thread_front()->cache, block, page, false);
    return true;
}
