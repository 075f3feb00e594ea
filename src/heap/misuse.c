/* misuse.c - what a pointer is, and what to say when it should not have come.
 * SPDX-License-Identifier: MIT
 */
#include "doors.h"
#include "guarded_doors.h"
#include "hardened_held.h"
#include "large.h"
#include "sampled.h"
#include "vast.h"
#include "zero_size.h"

#include "../arenas/manual.h"
#include "../base/port.h"

/* Does the page lie in a large block? Walks back to the first page. All that is neither a large
 * block nor a slab is free, or was and is between two uses. Only for pointers that are about to be
 * refused. */
static bool is_in_large(uint32_t page)
{
    const struct page *record;

    while (page > 1 && page_record(page)->state == PAGE_INSIDE) page--;
    record = page_record(page);
    if (record->state == PAGE_USED && record->run_pages <= page) { /* the last one, perhaps */
        const struct page *first = record - (record->run_pages - 1);
        if (first->run_pages == record->run_pages) record = first;
    }
    return page_is_held_block(record);
}

/* In no open page. Where a vast block was may be anybody's memory by now. */
static enum pointer_kind outside_kind(const void *pointer)
{
    enum pointer_kind kind =
        guarded_pool_has(pointer) ? guarded_pointer_kind(pointer) : zero_size_kind(pointer);

    if (kind != POINTER_FOREIGN || !vast_was_there(pointer)) return kind;
    return os_other_bytes(pointer) == SIZE_MAX ? POINTER_FREED : POINTER_FOREIGN;
}

enum pointer_kind pointer_kind(const void *pointer, uint32_t *page)
{
    const struct page *record;

    *page = page_at(pointer);
    if (*page == 0) return outside_kind(pointer);
    if (is_plain_large(pointer, *page)) return POINTER_LARGE;
    record = page_record(*page);
    if (record->class_at != 0)
        return unlikely(hardening.is_on) && is_hardened_slab(record) ? POINTER_HARDENED
                                                                     : POINTER_SMALL;
    if (!page_is_held_block(record) || !begins_at(pointer, *page))
        return is_in_large(*page) ? POINTER_INTERIOR : POINTER_FREED;
    if (page_is_held_hardened(record)) return POINTER_HARDENED;
    return sampled_number(*page) != 0 ? POINTER_SAMPLED : POINTER_LARGE;
}

size_t pointer_bytes(enum pointer_kind kind, const void *pointer, uint32_t page)
{
    switch (kind) {
    case POINTER_SMALL: return class_bytes[class_of_offset(page_record(page)->class_at)];
    case POINTER_LARGE: return large_bytes(page);
    case POINTER_SAMPLED: return sampled_bytes(page);
    case POINTER_HARDENED: return hardened_bytes(CALL_USABLE_SIZE, pointer, page);
    case POINTER_GUARDED: return class_bytes[guarded_pool_class(pointer)];
    default: return 0;
    }
}

static const char *wording(enum misused_call call, enum pointer_kind kind)
{
    static const char *const words[][MISUSED_CALL_COUNT] = {
        { "double free", "realloc of a freed pointer", "malloc_usable_size of a freed pointer" },
        { "free of a foreign pointer", "realloc of a foreign pointer",
          "malloc_usable_size of a foreign pointer" },
        { "free of an interior pointer", "realloc of an interior pointer",
          "malloc_usable_size of an interior pointer" },
    };
    unsigned row = kind == POINTER_FREED ? 0 : kind == POINTER_FOREIGN ? 1 : 2;

    return words[row][call];
}

void misuse_abort(enum misused_call call, enum pointer_kind kind, const void *pointer)
{
    if (guarded_pool_has(pointer)
        && guarded_tell_misuse(wording(call, kind), pointer, FRAME_HERE()))
        port_abort();
    fatal_address(wording(call, kind), pointer);
}

size_t other_bytes(enum misused_call call, enum pointer_kind kind, const void *pointer)
{
    size_t bytes = kind == POINTER_FOREIGN ? os_other_bytes(pointer) : SIZE_MAX;

    if (kind == POINTER_ZERO_SIZE) return 0;
    if (likely(bytes != SIZE_MAX)) return bytes;
    if (kind == POINTER_FOREIGN || !guarded_pool_has(pointer) || !guarded_goes_on())
        misuse_abort(call, kind, pointer);
    (void)guarded_tell_misuse(wording(call, kind), pointer, FRAME_HERE());
    return 0;
}

void free_other(enum pointer_kind kind, void *pointer)
{
    if (kind == POINTER_ZERO_SIZE ? zero_size_put(pointer)
                                  : kind == POINTER_FOREIGN && os_other_free(pointer))
        return;
    misuse_abort(CALL_FREE, kind == POINTER_ZERO_SIZE ? POINTER_FREED : kind, pointer);
}

void misuse_wrong_size(const void *pointer)
{
    if (guarded_pool_has(pointer)) {
        bool is_told = guarded_tell_misuse("wrong size in sized delete", pointer, FRAME_HERE());

        if (guarded_goes_on()) return;
        if (is_told) port_abort();
    }
    fatal_address("wrong size in sized delete", pointer);
}

/* Of a block that has so many bytes: may it have been asked for with that size, which `wanted`
 * bytes serve? */
static bool may_be_of_size(uint32_t page, size_t usable, size_t size, size_t wanted)
{
    if (wanted <= SMALL_BYTES_MAX) return usable == wanted || is_resized_from(size, usable);
    if (page != 0 && is_block_state(page_record(page)->state)) {
        wanted = large_bytes_for(page, size);
        /* What hooks refuse to cut stays longer than the program asked for last. */
        if (usable > wanted && page_is_manual(page)) return true;
    }
    return usable == wanted;
}

/* Those of a block that is asked for like that, and has no mark. */
static size_t bytes_serving(size_t size, size_t align)
{
    struct alloc_request request = alloc_request(max_size(size, 1), align, false, NULL);

    return request_bytes(&request);
}

/* In a hardened process, of a block that has so many bytes and no mark: it may be as long as if it
 * had one, with a page more behind its whole pages. What is told may be any size up to the usable
 * one. */
static COLD bool has_room_for_mark(size_t usable, size_t size, size_t align)
{
    unsigned class_index;

    size = max_size(size, 1);
    class_index = hardened_class(size, align);
    if (class_index != 0) return usable == class_bytes[class_index];
    return size <= usable && usable - size < 2 * page_bytes();
}

/* Of a block without a mark. What has no bytes is for the free itself to judge, and what was asked
 * for with size 0 may have those of the smallest block. */
static bool may_be_told(enum pointer_kind kind, const void *pointer, uint32_t page, size_t size,
                        size_t align)
{
    size_t bytes = pointer_bytes(kind, pointer, page);

    return bytes == 0 || may_be_of_size(page, bytes, size, bytes_serving(size, align))
        || (hardening.is_on && has_room_for_mark(bytes, size, align));
}

/* In a hardened process most blocks have a mark that says their size. */
void misuse_check_told_size(const void *pointer, size_t size, size_t align)
{
    uint32_t page;
    enum pointer_kind kind;
    bool is_right;

    if (pointer == NULL) return;
    kind = pointer_kind(pointer, &page);
    if (kind == POINTER_HARDENED) {
        (void)hardened_check(CALL_FREE, pointer, page);
        is_right = hardened_size(pointer, page) == max_size(size, 1);
    } else {
        is_right = may_be_told(kind, pointer, page, size, align);
    }
    if (!is_right) misuse_wrong_size(pointer);
}

/* A block that grows bit by bit is moved often: half of the looks at what is freed. */
enum { MOVED_LOOKS = 7 };

/* The bit of a block that the program holds is clear, and nobody else changes it. */
READS_UNLOCKED void misuse_check_moved(const void *pointer, unsigned class_index)
{
    const struct slab_shape *shape = &slab_shape[class_index];
    const struct slab *slab = slab_of(pointer, class_index);
    uintptr_t offset = slab != NULL ? (uintptr_t)pointer - (uintptr_t)slab->base : 0;
    unsigned index = slab_quotient_index(slab_quotient(shape, offset));
    const struct cache *cache = thread_front()->cache;

    if (!slab_offset_is_block(shape, offset)) misuse_abort(CALL_REALLOC, POINTER_INTERIOR, pointer);
    if ((cache != NULL
         && magazine_has_lately(&cache->front.magazine[class_index], pointer, MOVED_LOOKS))
        || (slab != NULL && slab_has_free(slab, index)))
        misuse_abort(CALL_REALLOC, POINTER_FREED, pointer);
}

void misuse_check_end(void)
{
    const struct cache *cache = thread_front()->cache;

    if (cache != NULL) cache_expect_blocks(cache);
}

/* ---- the checking flavours ---- */

struct held {
    uint64_t *word;
    uint64_t bit;
};

/* The bit that says whether the program holds a small block; aborts when the pointer is not at a
 * block's start. */
static struct held held_bit(enum misused_call call, const void *pointer, uint32_t page)
{
    struct slab *slab = slab_record(page_record(page)->slab);
    const struct slab_shape *shape = &slab_shape[slab->class_index];
    uintptr_t offset = (uintptr_t)pointer - (uintptr_t)slab->base;
    unsigned index = slab_quotient_index(slab_quotient(shape, offset));

    if (!slab_offset_is_block(shape, offset)) misuse_abort(call, POINTER_INTERIOR, pointer);
    return (struct held){ slab_held_word(slab, index), (uint64_t)1 << (index % 64) };
}

/* Neighbours' bits are written by other threads at the same time. */
void *misuse_note_take(void *block)
{
    uint32_t page = 0;
    struct held held;

    if (block == NULL || pointer_kind(block, &page) != POINTER_SMALL) return block;
    held = held_bit(CALL_FREE, block, page);
    if (__atomic_fetch_or(held.word, held.bit, __ATOMIC_RELAXED) & held.bit)
        fatal_address("broken invariant: a block was handed out twice", block);
    return block;
}

/* The same of a block that the program should hold; no word: of NULL, and of one that is not small.
 * Aborts for anything else. */
static struct held held_by_program(enum misused_call call, const void *pointer)
{
    struct held held = { NULL, 0 };
    uint32_t page;
    enum pointer_kind kind;

    /* Of guarded ones the pool itself knows all. */
    if (pointer == NULL || guarded_pool_has(pointer)) return held;
    kind = pointer_kind(pointer, &page);
    if (kind == POINTER_LARGE || kind == POINTER_SAMPLED) return held;
    if (kind == POINTER_HARDENED) {
        (void)hardened_check(call, pointer, page);
        return held;
    }
    if (kind != POINTER_SMALL) {
        (void)other_bytes(call, kind, pointer);
        return held;
    }
    held = held_bit(call, pointer, page);
    if (!(__atomic_load_n(held.word, __ATOMIC_RELAXED) & held.bit))
        misuse_abort(call, POINTER_FREED, pointer);
    return held;
}

void misuse_check(enum misused_call call, const void *pointer)
{
    (void)held_by_program(call, pointer);
}

void misuse_note_free(const void *pointer)
{
    struct held held = held_by_program(CALL_FREE, pointer);

    if (held.word != NULL
        && !(__atomic_fetch_and(held.word, ~held.bit, __ATOMIC_RELAXED) & held.bit))
        misuse_abort(CALL_FREE, POINTER_FREED, pointer);
}

void misuse_check_told(const void *pointer, size_t size, size_t align)
{
    size_t usable, wanted;

    if (pointer == NULL || !is_power_of_two(align)) return;
    misuse_check(CALL_FREE, pointer);
    if (unlikely(hardening.is_on)) return misuse_check_told_size(pointer, size, align);
    if (guarded_pool_has(pointer) && guarded_pool_class(pointer) == 0)
        return; /* the free itself says so */
    usable = prairie_usable_size(pointer);
    wanted = bytes_serving(size, align);
    /* Size 0 has no bytes, or those of the smallest block. */
    if (size == 0 && usable <= max_size(wanted, class_bytes[1])) return;
    if (!may_be_of_size(page_at(pointer), usable, size, wanted)) misuse_wrong_size(pointer);
}
