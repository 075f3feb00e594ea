/* realloc.c - changing the size of a block, in place where that is right.
 * SPDX-License-Identifier: MIT
 */
#include "doors.h"
#include "guarded_doors.h"
#include "hardened_held.h"
#include "hardened_large.h"

#include "../base/options.h"
#include "../page_heap/page_heap.h"

#include <errno.h>

/* The words of zero_realloc. */
enum { ZERO_REALLOC_ALLOC, ZERO_REALLOC_FREE, ZERO_REALLOC_ABORT };

/* A shrinking block may end up in a class with room beyond its size; a growing one has room for
 * all. */
void copy_contents(void *moved, const void *block, size_t old_bytes, size_t size)
{
    size_t bytes = old_bytes;

    if (bytes > size) bytes = min_size(bytes, prairie_usable_size(moved));
    __builtin_memcpy(moved, block, bytes);
}

/* No block of its class is ready. */
static NOINLINE void *move_slowly(void *block, size_t old_bytes, size_t size)
{
    void *moved = alloc_from(FRAME_HERE(), size, 1, false);

    if (unlikely(moved == NULL)) return NULL;
    copy_contents(moved, block, old_bytes, size);
    prairie_free(block);
    return moved;
}

static NOINLINE void *move_block(void *block, size_t old_bytes, size_t size)
{
    unsigned class_index = class_of_request(size, 1);
    void *moved = class_hit(class_index);

    if (unlikely(moved == NULL)) return move_slowly(block, old_bytes, size);
    __builtin_memcpy(moved, block, min_size(old_bytes, class_bytes[class_index]));
    prairie_free(block);
    return moved;
}

/* What grows once will grow again: a growing block gets one of four sizes to a doubling, where
 * classes lie closer, so that it is copied less often. A power of two is one of them: buffers that
 * double, and nodes that are filled up to one, get no room that they never use
 * (docs/decisions/0024). */
static size_t with_room(size_t size)
{
    size_t step = (size_t)1 << (highest_bit(size - 1) - 2);

    check(size > TABLE_BYTES_MAX && size <= SMALL_BYTES_MAX);
    return round_up(size, step);
}

static NOINLINE void *move_small(void *block, unsigned class_index, size_t size)
{
    misuse_check_moved(block, class_index);
    return move_block(block, class_bytes[class_index], size);
}

/* Room to grow, and what shrinks by less than a quarter stays: only beyond the sizes for which a
 * sized free believes the size. */
static void *resize_small(void *block, unsigned class_index, size_t size)
{
    size_t old_bytes = class_bytes[class_index];

    if (size <= TABLE_BYTES_MAX || size > SMALL_BYTES_MAX) {
        if (size <= TABLE_BYTES_MAX && class_of_size(size) == class_index) return block;
        return move_small(block, class_index, size);
    }
    /* A hardened block ends where it was asked to. */
    if (size > old_bytes)
        return move_small(block, class_index, hardening.is_on ? size : with_room(size));
    return is_resized_from(size, old_bytes) ? block : move_small(block, class_index, size);
}

static COLD void *resize_hardened(void *block, uint32_t page, size_t size)
{
    int saved_errno = errno;
    enum hardened_door door = hardened_check(CALL_REALLOC, block, page);
    size_t old_bytes = hardened_size(block, page);
    void *moved;

    hardened_expect_same(block, door, DOOR_MALLOC);
    if (hardened_resize(block, page, size, false, true)) return block;
    moved = alloc_from(FRAME_HERE(), size, 1, false);
    if (unlikely(moved == NULL)) {
        /* Two of them did not fit below a limit; what was given back may let one grow. */
        if (!hardened_resize(block, page, size, false, false)) return NULL;
        errno = saved_errno;
        return block;
    }
    if (hardened_move_pages(block, page, min_size(old_bytes, size), moved)) return moved;
    copy_contents(moved, block, old_bytes, size);
    prairie_free(block);
    return moved;
}

INLINE bool are_bytes_of_class(size_t bytes)
{
    return bytes <= SMALL_BYTES_MAX && class_bytes[class_of_size(bytes)] == bytes;
}

/* Jumped to, so that the caller of realloc is the first in the stack of a sample. A sampled block
 * with the bytes of a class is resized as if it were in a slab. One that is not sampled and large
 * by its alignment moves: it may be staggered. */
static NOINLINE void *resize_by_kind(void *block, size_t size)
{
    uint32_t page;
    enum pointer_kind kind = pointer_kind(block, &page);
    struct alloc_request request;
    size_t old_bytes;
    void *resized;

    if (unlikely(kind == POINTER_HARDENED)) return resize_hardened(block, page, size);
    old_bytes = pointer_bytes(kind, block, page);
    if (unlikely(old_bytes == 0))
        return move_block(block, other_bytes(CALL_REALLOC, kind, block), size);
    if (kind == POINTER_GUARDED) guarded_note_size(block, size);
    if (kind != POINTER_LARGE && are_bytes_of_class(old_bytes))
        return resize_small(block, class_of_size(old_bytes), size);
    if (size <= SMALL_BYTES_MAX) return move_block(block, old_bytes, size);
    request = (struct alloc_request){ .size = size, .align = 1, .frame = FRAME_HERE() };
    resized = resize_large(block, &request);
    FRAME_LASTS();
    return likely(resized != NULL) ? resized : refuse_memory();
}

/* A buffer that is cut down to what was read into it often comes here: of a plain run the length is
 * known without asking whether it is vast. */
static NOINLINE void *resize_other(void *block, size_t size)
{
    uint32_t page = page_at(block);

    if (size <= SMALL_BYTES_MAX && is_plain_large(block, page))
        return move_block(block, large_plain_bytes(page), size);
    return resize_by_kind(block, size);
}

static uint64_t zero_calls; /* atomic */

uint64_t realloc_zero_calls(void) { return RELAXED_LOAD(zero_calls); }

static COLD void *resize_to_zero(void *block)
{
    (void)__atomic_fetch_add(&zero_calls, 1, __ATOMIC_RELAXED);
    switch (option_value(OPTION_ZERO_REALLOC)) {
    case ZERO_REALLOC_ABORT: fatal("zero_realloc:abort, and realloc was called with size 0");
    case ZERO_REALLOC_ALLOC: return prairie_realloc(block, 1);
    default: prairie_free(block); return NULL;
    }
}

PUBLIC void *prairie_realloc(void *block, size_t size)
{
    unsigned class_index;

    if (CHECKED) misuse_check(CALL_REALLOC, block);
    if (unlikely(block == NULL)) return prairie_malloc(size);
    if (unlikely(size == 0)) return resize_to_zero(block);
    class_index = class_at(block);
    if (likely(class_index != 0)) return resize_small(block, class_index, size);
    return resize_other(block, size);
}

PUBLIC void *prairie_reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;

    if (unlikely(__builtin_mul_overflow(count, size, &bytes))) return refuse_memory();
    return prairie_realloc(block, bytes);
}

size_t usable_beyond_map(enum misused_call call, const void *block)
{
    enum pointer_kind kind;
    uint32_t page;
    size_t bytes;

    if (block == NULL) return 0;
    kind = pointer_kind(block, &page);
    if (unlikely(kind == POINTER_HARDENED)) return hardened_bytes(call, block, page);
    bytes = pointer_bytes(kind, block, page);
    return likely(bytes != 0) ? bytes : other_bytes(call, kind, block);
}

PUBLIC size_t prairie_usable_size(const void *block)
{
    if (CHECKED) misuse_check(CALL_USABLE_SIZE, block);
    return usable_bytes(CALL_USABLE_SIZE, block);
}
