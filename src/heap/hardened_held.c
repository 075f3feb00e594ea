/* hardened_held.c - blocks that the program holds: whether all of them is whole, their sizes,
 * another size in place, and the doors they came by.
 * SPDX-License-Identifier: MIT
 */
#include "hardened_held.h"

#include "hardened_large.h"
#include "heap.h"
#include "large.h"
#include "marks.h"

#include "../guard/fill.h"

NORETURN static COLD void tell_mark(enum misused_call call, const void *block, uint64_t mark)
{
    if (mark == 0) misuse_abort(call, POINTER_FREED, block);
    fatal_address("write past the end of a block", block);
}

/* The block before this one ends with a mark that was never written by prairie: somebody wrote from
 * here downwards, or from there on. */
INLINE void check_before(const struct slab *slab, const char *block, size_t class_size)
{
    const char *before = block - class_size;
    uint64_t mark;

    if (block == slab->base) return;
    mark = mark_read(before, class_size);
    if (unlikely(mark != 0 && !is_mark(before, mark)))
        fatal_address("write before the start of a block", block);
}

uint64_t hardened_check_small(enum misused_call call, const char *block, const struct slab *slab,
                              const struct slab_shape *shape)
{
    size_t class_size = shape->block_bytes, room = class_size - HARDENED_MARK_BYTES, slack;
    uint64_t mark;

    if (unlikely(!slab_offset_is_block(shape, (uintptr_t)block - (uintptr_t)slab->base)))
        misuse_abort(call, POINTER_INTERIOR, block);
    mark = mark_read(block, class_size);
    slack = slack_of(mark);
    if (unlikely(!is_mark(block, mark)) || unlikely(slack > room)) tell_mark(call, block, mark);
    if (unlikely(!canaries_are_whole(block + room, slack)))
        fatal_address("write past the end of a block", block);
    check_before(slab, block, class_size);
    return mark;
}

enum hardened_door hardened_check(enum misused_call call, const void *block, uint32_t page)
{
    const struct page *record = page_record(page);

    if (record->class_at == 0) hardened_large_check(block, page);
    else
        (void)hardened_check_small(call, block, slab_record(record->slab),
                                   &slab_shape[class_of_offset(record->class_at)]);
    return hardened_door_of(block, page);
}

enum hardened_door hardened_door_of(const void *block, uint32_t page)
{
    unsigned class_index = class_of_offset(page_record(page)->class_at);

    if (class_index != 0) return door_of(mark_read(block, class_bytes[class_index]));
    return (enum hardened_door)(hardened_large_record(page)->bin.previous & DOOR_MASK);
}

size_t hardened_size(const void *block, uint32_t page)
{
    const struct page *record = page_record(page);
    size_t class_size;

    if (record->class_at == 0) return hardened_large_size(page);
    class_size = class_bytes[class_of_offset(record->class_at)];
    return class_size - HARDENED_MARK_BYTES - slack_of(mark_read(block, class_size));
}

size_t hardened_bytes(enum misused_call call, const void *block, uint32_t page)
{
    (void)hardened_check(call, block, page);
    return hardened_size(block, page);
}

/* H1. Another thread may be about to take the block: its mark comes at once, canaries after it.
 * They are looked at when it comes back. */
size_t hardened_held_bytes(const void *block, uint32_t page)
{
    unsigned class_index = class_of_offset(page_record(page)->class_at);
    uint64_t mark;

    if (class_index == 0) return hardened_size(block, page);
    mark = mark_read(block, class_bytes[class_index]);
    if (mark == 0) return 0;
    if (!is_mark(block, mark)) tell_mark(CALL_USABLE_SIZE, block, mark);
    return hardened_size(block, page);
}

static size_t marked_room(uint32_t page)
{
    unsigned class_index = class_of_offset(page_record(page)->class_at);

    return class_index != 0 ? class_bytes[class_index] : large_bytes(page);
}

/* What a new block of that size would have. */
static size_t marked_room_for(size_t size)
{
    struct alloc_request request = alloc_request(size, 1, false, NULL);
    struct alloc_request wider = hardened_request(&request);

    return request_bytes(&wider);
}

void hardened_count_in_place(size_t old_size, size_t size)
{
    struct counting_front *counting = counting_of(thread_word());

    if (counting == NULL) return;
    counting_add_given(counting, old_size);
    counting_add_taken(counting, size);
}

/* What it gains reads as zero. */
static bool resize_held(void *block, uint32_t page, size_t old_bytes, size_t size, bool may_move)
{
    unsigned class_index = class_of_offset(page_record(page)->class_at);
    size_t room = class_index != 0 ? (size_t)class_bytes[class_index] - HARDENED_MARK_BYTES
                                   : hardened_large_room(page);

    if (size > room || marked_room_for(size) != marked_room(page))
        return class_index == 0 && hardened_large_resize(block, page, old_bytes, size, may_move);
    if (size != old_bytes) hardened_count_in_place(old_bytes, size);
    if (size > old_bytes) __builtin_memset((char *)block + old_bytes, 0, size - old_bytes);
    if (class_index != 0)
        mark_small(block, class_bytes[class_index], size,
                   mark_read(block, class_bytes[class_index]) >> DOOR_SHIFT & DOOR_TO_MANUAL, true);
    else hardened_large_set_size(block, page, size);
    return true;
}

bool hardened_resize(void *block, uint32_t page, size_t size, bool zero, bool may_move)
{
    size_t old_bytes = hardened_size(block, page);

    if (!resize_held(block, page, old_bytes, size, may_move)) return false;
    if (!zero && unlikely(fill_is_wanted()) && size > old_bytes)
        (void)fill_taken((char *)block + old_bytes, size - old_bytes);
    return true;
}

/* ---- doors ---- */

static void write_door(void *block, uint32_t page, enum hardened_door door)
{
    unsigned class_index = class_of_offset(page_record(page)->class_at);
    uint64_t mark;

    if (class_index == 0) {
        hardened_large_set_door(page, door);
        return;
    }
    mark = mark_read(block, class_bytes[class_index]);
    mark_write(block, class_bytes[class_index],
               held_mark(block, slack_of(mark), (mark >> DOOR_SHIFT & DOOR_TO_MANUAL) | door));
}

void hardened_set_door(void *block, enum hardened_door door)
{
    uint32_t page;

    if (block != NULL && pointer_kind(block, &page) == POINTER_HARDENED)
        write_door(block, page, door);
}

void hardened_check_door(void *block, enum hardened_door door)
{
    uint32_t page;

    if (block == NULL || pointer_kind(block, &page) != POINTER_HARDENED) return;
    hardened_expect_same(block, hardened_check(CALL_FREE, block, page), door);
    write_door(block, page, DOOR_MALLOC);
}
