/* large_resize.c - large blocks grow and shrink where they are, or move, by their pages or their
 * bytes.
 * SPDX-License-Identifier: MIT
 */
#include "large.h"

#include "doors.h"
#include "hardened_large.h"
#include "shortage.h"
#include "slow.h"
#include "vast.h"

#include "../arenas/decay.h"
#include "../arenas/manual.h"
#include "../cache/thread.h"
#include "../guard/fill.h"
#include "../page_heap/run_fence.h"

/* Moves of pages within the heap so far; atomic. Each piece that is moved stays a mapping of its
 * own, so moves are rationed by the size of the heap. */
static size_t moves_in_heap;

static READS_UNLOCKED bool moves_are_left(void)
{
    return RELAXED_LOAD(moves_in_heap) < REMAP_COUNT_MIN + space.open_bytes / REMAP_SHARE_BYTES;
}

bool large_may_move(size_t bytes)
{
    if (bytes < REMAP_BYTES_MIN || !moves_are_left()) return false;
    /* A move maps as many bytes more for a moment, which a limit of address space may refuse. */
    if (!os_address_space_has_room(bytes)) return false;
    (void)__atomic_fetch_add(&moves_in_heap, 1, __ATOMIC_RELAXED);
    return true;
}

/* What a block gained is filled like a new one; but the pages that a vast one gained read as zero,
 * and are not to become resident. */
static COLD void fill_gained(uint32_t page, size_t old_bytes)
{
    size_t bytes = large_bytes(page);

    if (bytes <= old_bytes) return;
    if (page_record(page)->state == PAGE_VAST && fill_clears())
        bytes = min_size(bytes, round_up(old_bytes, page_bytes()));
    (void)fill_taken(large_begin(page) + old_bytes, bytes - old_bytes);
}

/* In a hardened process it reads as zero, as new blocks do. The pages that a vast one gained do
 * anyway. */
static COLD void wipe_gained(uint32_t page, size_t old_bytes)
{
    char *begin = large_begin(page) + old_bytes;

    if (page_record(page)->state != PAGE_VAST) large_clear_from(page, begin);
    else __builtin_memset(begin, 0, round_up(old_bytes, page_bytes()) - old_bytes);
}

/* Where a block begins behind the start of its page it stays staggered, whatever its size. */
static size_t spare_after(uint32_t page, size_t size)
{
    return page_begin_offset(page_record(page)) != 0 ? PAGE_STAGGERED
                                                     : large_spare(size, page_bytes());
}

size_t large_bytes_for(uint32_t page, size_t size)
{
    size_t spare = spare_after(page, size);

    return round_up(size + spare, page_bytes()) - spare;
}

/* It begins with its page, or is staggered already. */
static void set_spare(uint32_t page, size_t spare)
{
    struct page *record = page_record(page);

    if (spare == page_spare_bytes(record)) return;
    if (unlikely(page_is_manual(page))) {
        manual_set_staggered(page, spare != 0);
        return;
    }
    if (spare != 0) page_mark_staggered(record, 0);
    else page_unmark_staggered(record);
    large_cache_count_staggered(thread_word()->cache, spare != 0 ? 1 : UINT32_MAX);
}

/* To so many pages. False: there is no room; the block is as it was, but without its fence. */
static bool resize_pages(uint32_t page, size_t pages, bool may_move)
{
    run_take_fence_away(page);
    if (unlikely(page_record(page)->state == PAGE_VAST))
        return vast_resize(page, pages << space.page_shift, may_move);
    if (unlikely(page_is_manual(page))) return manual_resize(page, pages);
    return run_resize(page_heap_of(page), page, pages);
}

/* Limits are counted by the size of the region, which vast blocks are not part of. */
INLINE void look_after_growth(uint32_t page)
{
    if (unlikely(page_record(page)->state == PAGE_VAST)) shortage_look(0);
}

/* In a hardened process. What a block loses is wiped before its pages go back. False: it may not
 * lose any where it is, for hooks may refuse that later. */
static COLD bool wipe_lost(uint32_t page, size_t bytes)
{
    if (page_record(page)->state == PAGE_VAST) return true;
    if (page_is_hooked(page)) return false;
    large_clear_from(page, large_begin(page) + bytes);
    return true;
}

/* To that size, where it is, or where the kernel moves a vast one. False: there is no room; the
 * block is as it was, but without its fence. */
static bool resize_here(uint32_t page, size_t size, bool may_move)
{
    size_t old_bytes = large_bytes(page), old_spare = page_spare_bytes(page_record(page));
    size_t bytes = large_bytes_for(page, size), spare = spare_after(page, size);

    if (bytes == old_bytes) return true; /* and what fence there is stays */
    if (bytes > old_bytes && decay_limits_are_due(bytes - old_bytes))
        shortage_look(bytes - old_bytes);
    if (unlikely(hardening.is_on) && bytes < old_bytes && !wipe_lost(page, bytes)) return false;
    if (bytes + spare != old_bytes + old_spare && !resize_pages(page, pages_for(bytes), may_move))
        return false;
    set_spare(page, spare);
    if (unlikely(hardening.is_on) && bytes > old_bytes) wipe_gained(page, old_bytes);
    if (unlikely(fill_is_wanted())) fill_gained(page, old_bytes);
    if (bytes < old_bytes && unlikely(decay_after_return())) thread_flush();
    if (bytes > old_bytes) look_after_growth(page);
    return true;
}

/* The kernel moves a mapping of its own to where it likes. */
static bool may_lie_anywhere(const struct alloc_request *request)
{
    return request->align <= page_bytes();
}

/* Where no moves are left, a block that grows by a little each time would be copied whole each
 * time. As a mapping of its own the kernel moves it from now on, and it leaves no piece behind. One
 * that grows by more is copied seldom, and has warm pages where it is freed and made again. Not
 * under a limit of address space, of which it would take the program's part. */
static bool grows_bit_by_bit(uint32_t page, size_t size)
{
    size_t bytes = large_bytes(page);

    return size > bytes && size - bytes <= bytes / GROWN_VAST_SHARE && !moves_are_left()
        && class_map.mask != 0 && vast_count_now() < GROWN_VAST_MAX;
}

static bool is_to_become_vast(uint32_t page, const struct alloc_request *request)
{
    return may_lie_anywhere(request)
        && (vast_is_better(request->size, 1) || grows_bit_by_bit(page, request->size));
}

/* A run that becomes vast takes its pages along, in one mapping. NULL: it cannot. */
static COLD void *move_to_vast(uint32_t page, size_t size)
{
    size_t old_bytes = large_bytes(page);
    bool was_staggered = page_is_staggered(page_record(page));
    void *moved;

    if (page_record(page)->state != PAGE_LARGE || old_bytes < REMAP_BYTES_MIN) return NULL;
    if (page_begin_offset(page_record(page)) != 0) return NULL;
    moved = vast_take_from(page, round_up(size, page_bytes()));
    if (moved == NULL) return NULL;
    if (was_staggered) large_cache_count_staggered(thread_word()->cache, UINT32_MAX);
    set_spare(page_at(moved), large_spare(size, page_bytes()));
    if (unlikely(fill_is_wanted())) fill_gained(page_at(moved), old_bytes);
    if (unlikely(decay_after_return())) thread_flush();
    look_after_growth(page_at(moved));
    return moved;
}

/* Pages move rather than bytes when there are enough of them, both blocks begin with theirs, and
 * neither place is an arena's; those of a vast one always then, each of the mappings that it has
 * become. What was to spare comes along. Bytes that are copied stay behind, too, and are filled as
 * those of a freed block, as are those that had no room in a smaller one. True: all pages moved, and
 * what they left reads as zero. */
static bool move_contents(char *moved, void *block, uint32_t page, size_t size)
{
    size_t bytes = min_size(large_bytes(page), large_bytes(page_at(moved)));
    struct os_range from = { block, round_up(bytes, page_bytes()) }, to = { moved, from.bytes };
    bool is_vast = page_record(page)->state == PAGE_VAST;
    bool are_pages = is_page_start(block) && is_page_start(moved);

    if (unlikely(page_is_manual(page)) || unlikely(page_is_manual(page_at(moved)))) {
        copy_contents(moved, block, large_bytes(page), size);
    } else if (are_pages && (is_vast || large_may_move(bytes)) && os_move(from, to)) {
        if (unlikely(hardening.is_on)) __builtin_memset(moved + bytes, 0, from.bytes - bytes);
        if (unlikely(fill_is_wanted())) (void)fill_taken(moved + bytes, from.bytes - bytes);
        if (likely(bytes == large_bytes(page))) return true;
    } else {
        __builtin_memcpy(moved, block, bytes);
    }
    large_drop_contents(block, page);
    return false;
}

/* Of no arena, and no vast block: as large_give, but its pages have moved away, and what is left
 * reads as zero. */
static void give_emptied(void *block, uint32_t page)
{
    (void)large_end_stagger(thread_word()->cache, page_record(page), block);
    run_take_fence_away(page);
    run_return_clean(page);
}

/* Only to something larger, but for blocks that cannot be trimmed, or are to be aligned. The new
 * place was filled when it was leased; in a hardened process it is filled after it was cleared. */
static void *move_large(void *block, uint32_t page, const struct alloc_request *request)
{
    struct alloc_request place = *request;
    void *moved = NULL;

    if (unlikely(is_to_become_vast(page, request))) moved = move_to_vast(page, request->size);
    if (moved != NULL) return moved;
    place.zero = hardening.is_on;
    moved = large_lease(&place);
    if (moved == NULL) return NULL;
    if (unlikely(place.zero) && fill_is_wanted()) fill_gained(page_at(moved), large_bytes(page));
    if (move_contents(moved, block, page, request->size) && page_record(page)->state != PAGE_VAST)
        give_emptied(block, page);
    else large_give(block, page);
    return moved;
}

/* What begins behind the start of its page, and grows to where pages are moved rather than bytes,
 * is copied once, so that they can be from then on. */
static bool is_to_leave(uint32_t page, size_t size)
{
    return size >= REMAP_BYTES_MIN && size > large_bytes(page)
        && page_begin_offset(page_record(page)) != 0;
}

void *large_resize(void *block, uint32_t page, const struct alloc_request *request)
{
    size_t size = request->size;
    bool is_well_placed = is_aligned((uintptr_t)block, request->align);
    bool may_move = may_lie_anywhere(request);
    void *moved;

    if (large_is_too_long(size, request->align)) return NULL;
    if (is_well_placed && !is_to_leave(page, size) && resize_here(page, size, may_move))
        return large_begin(page);
    moved = move_large(block, page, request);
    if (likely(moved != NULL) || !is_well_placed) return moved;
    /* Two of them did not fit below a limit; what was given back meanwhile may let one grow. */
    return large_bytes_for(page, size) < large_bytes(page) || resize_here(page, size, may_move)
             ? large_begin(page)
             : NULL;
}

size_t large_resize_in_place(uint32_t page, size_t least, size_t most)
{
    size_t limit = space.block_bytes_max;

    /* A sized free takes a size of up to SMALL_BYTES_MAX for that of a class. */
    if (most <= SMALL_BYTES_MAX || least > limit) return large_bytes(page);
    most = min_size(most, limit);
    if (page_begin_offset(page_record(page)) != 0)
        most = min_size(most, round_up(most, page_bytes()) - PAGE_STAGGERED);
    if (most < least) return large_bytes(page); /* it would be longer than nallocx tells */
    if (!resize_here(page, most, false) && least > large_bytes(page))
        (void)resize_here(page, least, false);
    return large_bytes(page);
}
