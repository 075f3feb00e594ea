/* extended.c - the doors that take flags: alignment, zeros, a cache and an arena in one word.
 *
 * Flags of 0 are what programs pass most, and take the same way as malloc and the sized free; an
 * alignment of up to TABLE_BYTES_MAX needs one rounding more. Everything else is decided in the
 * ways behind.
 * SPDX-License-Identifier: MIT
 */
#include "placed.h"

/* The size of a block that a request aligned like that is served with, where a table tells the
 * class: rounding up to the alignment leads to the smallest class whose blocks are all aligned
 * (test/unit/extended_test.c). More than TABLE_BYTES_MAX: no table tells. */
INLINE size_t table_bytes_of(size_t size, size_t align)
{
    if (unlikely(size > TABLE_BYTES_MAX) || unlikely(align > TABLE_BYTES_MAX)) return SIZE_MAX;
    return round_up(size | (size == 0), align);
}

/* ---- taking ---- */

/* Any flags. The frame counts for the stack of a sample; NULL, where there will be none. NULL: no
 * memory. */
static void *take_flagged(size_t size, unsigned flags, const void *frame)
{
    size_t align = flags_align(flags);
    bool zero = (flags & FLAG_ZERO) != 0;
    unsigned class_index = class_of_aligned(size, align);
    void *block;

    if ((flags & (FLAG_ARENA | FLAG_CACHE)) != 0)
        return placed_take(size, class_index, flags, frame);
    if (class_index == 0) return large_take(size, align, zero);
    block = class_take(class_index);
    return zero && block != NULL ? __builtin_memset(block, 0, class_bytes[class_index]) : block;
}

/* Here the frame counts, for the stack of a sample. */
static NOINLINE void *mallocx_unusual(size_t size, unsigned flags)
{
    void *block;

    if ((flags & (FLAG_ARENA | FLAG_CACHE)) == 0)
        block = take_unusual_for(FRAME_HERE(), size, flags_align(flags), (flags & FLAG_ZERO) != 0);
    else block = take_flagged(size, flags, FRAME_HERE());
    if (unlikely(block == NULL)) return refuse_memory();
    FRAME_LASTS();
    return block;
}

static NOINLINE void *mallocx_flagged(size_t size, unsigned flags)
{
    void *block = NULL;

    if (likely((flags & ~FLAG_ALIGN) == 0)) {
        size_t bytes = table_bytes_of(size, flags_align(flags));
        if (likely(bytes <= TABLE_BYTES_MAX)) block = malloc_hit(thread_cache(), bytes);
        if (likely(block != NULL)) return block;
    }
    if (unlikely(!cache_is_plain(thread_cache()))) return mallocx_unusual(size, flags);
    block = take_flagged(size, flags, NULL);
    return likely(block != NULL) ? block : refuse_memory();
}

PUBLIC void *prairie_mallocx(size_t size, int flags)
{
    struct cache *cache = thread_cache();
    void *block;

    if (unlikely(flags != 0)) return mallocx_flagged(size, (unsigned)flags);
    if (unlikely(size > TABLE_BYTES_MAX)) return malloc_beyond_table(size);

    block = malloc_hit(cache, size);
    if (unlikely(block == NULL)) return malloc_miss(size, cache, offset_of_size[size]);
    return block;
}

PUBLIC size_t prairie_nallocx(size_t size, int flags)
{
    size_t align = flags_align((unsigned)flags);
    unsigned class_index = class_of_aligned(size, align);

    if (likely(class_index != 0)) return class_bytes[class_index];
    if (size > LARGE_BYTES_MAX || align > LARGE_BYTES_MAX) return 0;
    return round_up(max_size(size, 1), os_page_bytes());
}

PUBLIC size_t prairie_sallocx(const void *block, int flags)
{
    (void)flags;
    return prairie_usable_size(block);
}

/* ---- giving ---- */

PUBLIC void prairie_dallocx(void *block, int flags)
{
    if (likely(flags_cache((unsigned)flags) == CACHE_OWN)) prairie_free(block);
    else if (flags_cache((unsigned)flags) == CACHE_NONE) uncached_free(block);
    else placed_free(block, (unsigned)flags);
}

static NOINLINE void sdallocx_flagged(void *block, size_t size, unsigned flags)
{
    if (likely((flags & ~FLAG_ALIGN) == 0) && !CHECKED) {
        size_t bytes = table_bytes_of(size, flags_align(flags));
        if (likely(bytes <= TABLE_BYTES_MAX)
            && likely(cache_put(thread_cache(), offset_of_sized_free[bytes], block)))
            return;
    }
    prairie_dallocx(block, (int)flags);
}

/* As prairie_free_sized: the size names the class, so the map need not be read. */
PUBLIC void prairie_sdallocx(void *block, size_t size, int flags)
{
    struct cache *cache;

    if (CHECKED) misuse_check_told(block, size, prairie_nallocx(size, flags));
    if (CHECKED || unlikely(flags != 0) || unlikely(size > TABLE_BYTES_MAX)) {
        sdallocx_flagged(block, size, (unsigned)flags);
        return;
    }
    cache = thread_cache();
    if (unlikely(!cache_put(cache, offset_of_sized_free[size], block)))
        free_sized_overflow(cache, block);
}

/* ---- resizing ---- */

/* What a vast block gained must not become resident: only the rest of a page is written. */
static void zero_from(void *block, size_t from, size_t to)
{
    size_t written = to;

    if (to <= from) return;
    if (to - from >= CLEAR_BYTES_MAX && page_record(page_at(block))->state == PAGE_VAST)
        written = round_up(from, page_bytes());
    __builtin_memset((char *)block + from, 0, written - from);
    if (written < to) large_clear((char *)block + written, to - written);
}

static void *move_flagged(void *block, size_t old_bytes, size_t size, unsigned flags,
                          const void *frame)
{
    void *moved;

    if (likely(cache_is_plain(thread_cache())) || (flags & (FLAG_ARENA | FLAG_CACHE)) != 0)
        moved = take_flagged(size, flags & ~FLAG_ZERO, frame);
    else moved = take_unusual_for(frame, size, flags_align(flags), false);
    if (unlikely(moved == NULL)) return NULL;
    copy_contents(moved, block, old_bytes, size);
    prairie_dallocx(block, (int)flags);
    return moved;
}

/* One that has all of its pages for itself, because of its size. */
static bool is_large(const void *block, uint32_t *page)
{
    enum pointer_kind kind = pointer_kind(block, page);

    return kind == POINTER_LARGE
        || (kind == POINTER_SAMPLED && sampled_bytes(*page) > SMALL_BYTES_MAX);
}

/* Large to large, with nothing asked for that would make another place better. NULL: not that, or
 * no memory. */
static void *resize_large(void *block, size_t size, unsigned flags, const void *frame)
{
    uint32_t page;

    if (class_of_aligned(size, flags_align(flags)) != 0) return NULL;
    if (flags_align(flags) > os_page_bytes() || (flags & FLAG_ARENA) != 0) return NULL;
    if (!is_large(block, &page)) return NULL;
    if (unlikely(sampled_number(page) != 0 || !cache_is_plain(thread_cache())))
        return large_resize_counted(block, size, frame);
    return large_resize(block, page, size);
}

/* The block gets the very size that nallocx tells, unlike with realloc, which leaves room to
 * grow. */
PUBLIC void *prairie_rallocx(void *block, size_t size, int flags)
{
    size_t bytes = prairie_nallocx(size, flags), old_bytes;
    void *resized;

    if (CHECKED) misuse_check("realloc", block);
    if (unlikely(bytes == 0)) return refuse_memory();
    if (unlikely(block == NULL)) return prairie_mallocx(size, flags);
    old_bytes = prairie_usable_size(block);
    if (bytes == old_bytes && is_aligned((uintptr_t)block, flags_align((unsigned)flags)))
        return block;
    resized = resize_large(block, size, (unsigned)flags, FRAME_HERE());
    if (resized == NULL)
        resized = move_flagged(block, old_bytes, size, (unsigned)flags, FRAME_HERE());
    if (unlikely(resized == NULL)) return refuse_memory();
    if ((unsigned)flags & FLAG_ZERO) zero_from(resized, old_bytes, bytes);
    return resized;
}

/* A small block has the room of its class and no other; a large one takes from its right
 * neighbours, or gives to them. */
PUBLIC size_t prairie_xallocx(void *block, size_t size, size_t extra, int flags)
{
    size_t old_bytes = prairie_usable_size(block), bytes, most;
    uint32_t page;

    if (CHECKED) misuse_check("realloc", block);
    if (__builtin_add_overflow(size, extra, &most) || most > LARGE_BYTES_MAX)
        most = LARGE_BYTES_MAX;
    if (size > most || !is_aligned((uintptr_t)block, flags_align((unsigned)flags)))
        return old_bytes;
    if (!is_large(block, &page)) return old_bytes;
    if (unlikely(sampled_number(page) != 0 || !cache_is_plain(thread_cache())))
        bytes = large_resize_in_place_counted(block, size, most, FRAME_HERE());
    else bytes = large_resize_in_place(page, size, most);
    if ((unsigned)flags & FLAG_ZERO) zero_from(block, old_bytes, bytes);
    return bytes;
}
