/* extended.c - the doors that take flags: alignment, zeros, a cache and an arena in one word.
 *
 * Flags of 0 are what programs pass most, and take the same way as malloc and the sized free; an
 * alignment of up to TABLE_BYTES_MAX needs one rounding more. Everything else is decided in the
 * ways behind.
 * SPDX-License-Identifier: MIT
 */
#include "extended.h"

#include "doors.h"
#include "hardened_held.h"
#include "hardened_large.h"
#include "large.h"
#include "placed.h"
#include "sampled.h"

#include <errno.h>

#include "../arenas/manual.h"
#include "../cache/explicit_cache.h"
#include "../guard/guarded.h"
#include "../os/os.h"

/* The size whose class serves a request aligned like that, as class_of_aligned finds it, where a
 * table tells the class. More than TABLE_BYTES_MAX: no table tells, as of size 0. */
INLINE size_t table_bytes_of(size_t size, size_t align)
{
    if (unlikely(size - 1 >= TABLE_BYTES_MAX) || unlikely(align > TABLE_BYTES_MAX)) return SIZE_MAX;
    return round_up(size, align);
}

/* ---- taking ---- */

/* What the flags name. False: there is no such arena, or no such cache. */
static bool find_place(struct alloc_request *request, unsigned flags)
{
    unsigned number = flags_cache(flags);

    if (number >= CACHE_FIRST_EXPLICIT) {
        request->cache = explicit_cache_at(number - CACHE_FIRST_EXPLICIT);
        if (request->cache == NULL) return false;
    }
    request->uncached = number == CACHE_NONE;
    if ((flags & FLAG_ARENA) == 0) return true;
    request->arena = placed_arena(flags_arena(flags));
    return request->arena != NULL;
}

static void *take_flagged(size_t size, unsigned flags, const void *frame)
{
    size_t align = flags_align(flags);
    bool zero = (flags & FLAG_ZERO) != 0;
    struct alloc_request request;

    if ((flags & (FLAG_ARENA | FLAG_CACHE)) == 0) return alloc_from(frame, size, align, zero);
    request = alloc_request(size, align, zero, frame);
    return find_place(&request, flags) ? alloc_missed(&request) : refuse_memory();
}

/* Jumped to, so that the caller of mallocx is the first in the stack of a sample. */
static NOINLINE void *mallocx_placed(size_t size, unsigned flags)
{
    void *block = take_flagged(size, flags, FRAME_HERE());

    FRAME_LASTS();
    return block;
}

/* As malloc_miss. */
static NOINLINE void *mallocx_miss(size_t size, unsigned flags)
{
    if (likely((flags & ~FLAG_ALIGN) == 0)) return prairie_aligned_alloc(flags_align(flags), size);
    return mallocx_placed(size, flags);
}

static NOINLINE void *mallocx_flagged(size_t size, unsigned flags)
{
    void *block = NULL;

    if (likely((flags & ~FLAG_ALIGN) == 0)) {
        size_t bytes = table_bytes_of(size, flags_align(flags));
        if (likely(bytes <= TABLE_BYTES_MAX)) block = malloc_hit(thread_word(), bytes);
    }
    return likely(block != NULL) ? block : mallocx_miss(size, flags);
}

PUBLIC void *prairie_mallocx(size_t size, int flags)
{
    struct front *front = thread_word();
    void *block;

    if (unlikely(flags != 0)) return mallocx_flagged(size, (unsigned)flags);
    if (unlikely(size > TABLE_BYTES_MAX)) return malloc_beyond_table(size);

    block = malloc_hit(front, size);
    if (unlikely(block == NULL)) return malloc_miss(size, front, offset_of_size[size]);
    return block;
}

/* Of a large block that is not hardened: those of manual arenas and sampled ones never are. */
static size_t large_bytes_of(size_t size)
{
    size = max_size(size, 1);
    return round_up(size, os_page_bytes()) - large_spare(size, os_page_bytes());
}

PUBLIC size_t prairie_nallocx(size_t size, int flags)
{
    size_t align = flags_align((unsigned)flags);
    unsigned class_index = class_of_aligned(max_size(size, 1), align);

    if (unlikely(hardening.is_on) && size != 0 && !hardened_large_is_vast(size, align)) return size;
    if (likely(class_index != 0)) return class_bytes[class_index];
    if (size > LARGE_BYTES_MAX || align > LARGE_BYTES_MAX) return 0;
    return large_bytes_of(size);
}

PUBLIC size_t prairie_sallocx(const void *block, int flags)
{
    (void)flags;
    return prairie_usable_size(block);
}

/* ---- giving ---- */

PUBLIC void prairie_dallocx(void *block, int flags)
{
    unsigned number = flags_cache((unsigned)flags);
    struct cache *cache =
        number >= CACHE_FIRST_EXPLICIT ? explicit_cache_at(number - CACHE_FIRST_EXPLICIT) : NULL;

    if (cache == NULL && number != CACHE_NONE) prairie_free(block);
    else free_placed(block, cache);
}

static NOINLINE void sdallocx_flagged(void *block, size_t size, unsigned flags)
{
    if (likely((flags & ~FLAG_ALIGN) == 0) && !CHECKED) {
        size_t bytes = table_bytes_of(size, flags_align(flags));
        if (likely(bytes <= TABLE_BYTES_MAX)
            && likely(front_put(thread_word(), offset_of_sized_free[bytes], block)))
            return;
    }
    hardened_expect_told(block, size, flags_align(flags));
    prairie_dallocx(block, (int)flags);
}

/* As prairie_free_sized: the size names the class, so the map need not be read. */
PUBLIC void prairie_sdallocx(void *block, size_t size, int flags)
{
    struct front *front;

    if (CHECKED) misuse_check_told(block, size, flags_align((unsigned)flags));
    if (CHECKED || unlikely(flags != 0)) {
        sdallocx_flagged(block, size, (unsigned)flags);
        return;
    }
    if (unlikely(size > TABLE_BYTES_MAX)) {
        free_sized_beyond_table(block, size);
        return;
    }
    front = thread_word();
    if (unlikely(!front_put(front, offset_of_sized_free[size], block)))
        free_sized_overflow(front, block, size);
}

/* ---- resizing ---- */

static void zero_gained(char *block, size_t old_bytes, size_t bytes)
{
    large_clear_part(page_at(block), block + old_bytes, block + bytes);
}

/* A hardened block, which was looked at, and where it is to go. False: bytes must be copied; nothing
 * happened. */
static COLD bool move_pages_of_marked(void *block, size_t bytes, void *moved)
{
    uint32_t page;

    if (bytes < REMAP_BYTES_MIN || pointer_kind(block, &page) != POINTER_HARDENED) return false;
    hardened_expect_same(block, hardened_door_of(block, page), DOOR_MALLOC);
    return hardened_move_pages(block, page, bytes, moved);
}

static void *move_flagged(void *block, size_t old_bytes, size_t size, unsigned flags,
                          const void *frame)
{
    void *moved = take_flagged(size, flags & ~FLAG_ZERO, frame);

    if (unlikely(moved == NULL)) return NULL;
    if (unlikely(hardening.is_on) && move_pages_of_marked(block, min_size(old_bytes, size), moved))
        return moved;
    copy_contents(moved, block, old_bytes, size);
    prairie_dallocx(block, (int)flags);
    return moved;
}

/* One that has all of its pages for itself, because of its size. */
static bool is_large(const void *block)
{
    uint32_t page;
    enum pointer_kind kind = pointer_kind(block, &page);

    return kind == POINTER_LARGE
        || (kind == POINTER_SAMPLED && sampled_bytes(page) > SMALL_BYTES_MAX);
}

/* Is a large block where the flags want it? Those of automatic arenas without hooks are of none. */
static bool is_of_arena(const void *block, unsigned flags)
{
    const struct page *record = page_record(page_at(block));
    struct arena *named;

    if (likely((flags & FLAG_ARENA) == 0)) return true;
    named = placed_arena(flags_arena(flags));
    return named != NULL && manual_arena_of_page(record) == arena_if_counts_large(named);
}

/* Large to large of the same arena, and where it stays as long as nallocx tells where it is not
 * hardened. */
static bool may_stay_large(const void *block, size_t size, unsigned flags)
{
    return size > SMALL_BYTES_MAX && is_large(block) && is_of_arena(block, flags)
        && large_bytes_for(page_at(block), size) == large_bytes_of(size);
}

/* Where it is, or in a place that is asked for with what the flags say: pages may move there. */
static void *resize_or_move(void *block, size_t size, unsigned flags, const void *frame)
{
    struct alloc_request request = { .size = size,
                                     .align = flags_align(flags),
                                     .uncached = flags_cache(flags) == CACHE_NONE,
                                     .frame = frame };
    void *resized;

    if ((flags & FLAG_ARENA) != 0) request.arena = placed_arena(flags_arena(flags));
    resized = resize_large(block, &request);
    return likely(resized != NULL) ? resized : refuse_memory();
}

/* Of a block that was looked at. What came from new is left alone, or told of where it is freed. */
static bool resize_marked(void *block, size_t size, unsigned flags, bool may_move)
{
    uint32_t page;

    if (size == 0 || (flags & FLAG_ARENA) != 0 || !is_aligned((uintptr_t)block, flags_align(flags))
        || pointer_kind(block, &page) != POINTER_HARDENED
        || hardened_door_of(block, page) != DOOR_MALLOC)
        return false;
    return hardened_resize(block, page, size, (flags & FLAG_ZERO) != 0, may_move);
}

/* Two of them did not fit below a limit; what was given back may let one grow. */
static COLD void *resize_after_all(void *block, size_t size, unsigned flags, int saved_errno)
{
    if (!hardening.is_on || !resize_marked(block, size, flags, false)) return NULL;
    errno = saved_errno;
    return block;
}

/* The block gets the very size that nallocx tells, unlike with realloc, which leaves room to
 * grow. */
PUBLIC void *prairie_rallocx(void *block, size_t size, int flags)
{
    size_t bytes = prairie_nallocx(size, flags), old_bytes;
    int saved_errno = errno;
    void *resized;

    if (CHECKED) misuse_check(CALL_REALLOC, block);
    if (unlikely(bytes == 0)) return refuse_memory();
    if (unlikely(block == NULL)) return prairie_mallocx(size, flags);
    old_bytes = usable_bytes(CALL_REALLOC, block);
    if (bytes == old_bytes && is_aligned((uintptr_t)block, flags_align((unsigned)flags))) {
        if (unlikely(guarded_pool_has(block))) guarded_set_size(block, size);
        return block;
    }
    if (unlikely(hardening.is_on) && resize_marked(block, size, (unsigned)flags, true))
        return block;
    resized = may_stay_large(block, size, (unsigned)flags)
                ? resize_or_move(block, size, (unsigned)flags, FRAME_HERE())
                : move_flagged(block, old_bytes, size, (unsigned)flags, FRAME_HERE());
    if (unlikely(resized == NULL))
        return resize_after_all(block, size, (unsigned)flags, saved_errno);
    if (((unsigned)flags & FLAG_ZERO) && size != 0)
        zero_gained(resized, old_bytes, prairie_usable_size(resized));
    return resized;
}

/* A small block has the room of its class and no other, which is all its own unless it is hardened;
 * a large one takes from its right neighbours, or gives to them. */
PUBLIC size_t prairie_xallocx(void *block, size_t size, size_t extra, int flags)
{
    size_t old_bytes, bytes, most;

    if (CHECKED) misuse_check(CALL_REALLOC, block);
    old_bytes = usable_bytes(CALL_REALLOC, block);
    if (__builtin_add_overflow(size, extra, &most) || most > LARGE_BYTES_MAX)
        most = LARGE_BYTES_MAX;
    if (size > most || !is_aligned((uintptr_t)block, flags_align((unsigned)flags)))
        return old_bytes;
    if (unlikely(hardening.is_on)) {
        unsigned here = (unsigned)flags & ~FLAG_ARENA;

        if (resize_marked(block, most, here, false)) return most;
        if (size > old_bytes && resize_marked(block, size, here, false)) return size;
    }
    if (!is_large(block)) return old_bytes;
    bytes = resize_in_place(block, size, most, FRAME_HERE());
    if ((unsigned)flags & FLAG_ZERO) zero_gained(block, old_bytes, bytes);
    return bytes;
}

/* ---- moving ---- */

/* Servers that move their own objects ask of each one whether the heap would be smaller if it
 * moved, take a new block past all caches when the answer is yes, and free the old one past them
 * too. Sparse slabs empty themselves into fuller ones that way.
 *
 * Not from a full slab, nor from the one that is filled from next, where the block would go. Else
 * when the slab is used no more than the average of those with free blocks; an eighth on top keeps
 * slabs that are all used alike from staying as they are. */
static bool is_sparse(const struct class_bin *bin, const struct slab *slab)
{
    uint64_t block_count, used;

    if (slab == NULL || slab->free_count == 0 || bin->partial.first == slab_number(slab))
        return false;
    block_count = slab->block_count;
    used = bin->partial.count * block_count - bin->slab_free_blocks;
    return (block_count - slab->free_count) * bin->partial.count <= used + used / 8;
}

PUBLIC int prairie_defrag_hint(void *block)
{
    uint32_t page = page_at(block);
    unsigned class_index;
    struct arena *arena;
    bool sparse;

    if (page == 0 || page_record(page)->class_at == 0) return 0;
    class_index = class_of_offset(page_record(page)->class_at);
    arena = arena_of_block(class_index, block);
    lock_take(&arena->lock);
    sparse = is_sparse(&arena->bin[class_index], slab_of(block, class_index));
    lock_give(&arena->lock);
    return sparse;
}
