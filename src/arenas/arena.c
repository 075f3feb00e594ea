/* arena.c - an arena's slabs: blocks out of them, and back into them.
 * SPDX-License-Identifier: MIT
 */
#include "arena.h"

#include "../space/commit.h"
#include "arena_set.h"
#include "extents.h"
#include "sparse.h"

/* ---- lists of slabs ---- */

/* The list of partial slabs; that of closed ones; and in a manual arena, which must find all of its
 * slabs again when it is reset, that of full ones. A slab is on one of them at most. */
static void list_slab(struct slab_list *list, struct slab *slab)
{
    uint32_t number = slab_number(slab);

    slab->next = list->first;
    slab->previous = number;
    if (slab->next != 0) {
        struct slab *next = slab_record(slab->next);

        slab->previous = next->previous;
        next->previous = number;
    }
    list->first = number;
    list->count++;
}

/* After the last one comes the first. */
static struct slab *unlist_slab(struct slab_list *list, struct slab *slab)
{
    uint32_t number = slab_number(slab);

    sparse_unlist(number, slab->next);
    slab_record(slab->next != 0 ? slab->next : list->first)->previous = slab->previous;
    if (list->first == number) list->first = slab->next;
    else slab_record(slab->previous)->next = slab->next;
    list->count--;
    return slab;
}

/* NULL: there is none. */
static struct slab *last_slab(const struct slab_list *list)
{
    return list->first != 0 ? slab_record(slab_record(list->first)->previous) : NULL;
}

/* ---- fill ---- */

/* Records of slabs that were just closed are kept for the next ones: bursts open and close many. */
enum { CLOSED_MAX = 64 };

/* Under a limit on data the free pages of the region may be what keeps records from growing.
 * Towards the hard limit clean ones count nothing, and dirty ones are the caller's to give back. */
static COLD struct slab *take_record_closing(size_t bytes)
{
    bool may_help = commit_allows(round_up(bytes, page_bytes()));

    return may_help && page_heaps_close_tail(true) ? meta_take(bytes) : NULL;
}

/* The record of a slab that is not open yet. NULL: no memory. */
static struct slab *take_record(struct arena *arena, unsigned class_index)
{
    struct class_bin *bin = &arena->bin[class_index];
    size_t bytes = slab_shape[class_index].record_bytes;
    struct slab *slab;

    if (bin->closed.count != 0) return unlist_slab(&bin->closed, slab_record(bin->closed.first));
    slab = meta_take_from_row(&arena->row, bytes);
    return likely(slab != NULL) ? slab : take_record_closing(bytes);
}

static void keep_record(struct class_bin *bin, struct slab *slab, unsigned class_index)
{
    if (bin->closed.count < CLOSED_MAX) list_slab(&bin->closed, slab);
    else meta_give(slab, slab_shape[class_index].record_bytes);
}

/* Slabs of a class that are open before runs for it are leased ahead. */
enum { SLABS_BEFORE_AHEAD = 4 };

/* A run for a slab. In a hardened arena it reads as zero, as free blocks do there. */
static uint32_t take_run(struct arena *arena, const struct class_bin *bin, size_t pages)
{
    bool is_hardened = arena->is_hardened;
    bool ahead = !is_hardened && bin->slab_count >= SLABS_BEFORE_AHEAD;
    struct run run = { 0, false };

    if (unlikely(arena->extents != NULL)) run.page = extents_take(arena->extents, pages, 1);
    else run = stock_take(&arena->stock[pages], arena->page_heap, pages, ahead);
    if (unlikely(is_hardened) && run.page != 0 && !run.zero)
        __builtin_memset(page_address(run.page), 0, pages << space.page_shift);
    return run.page;
}

static uint8_t hidden_as(const struct arena *arena)
{
    return (uint8_t)((arena->is_manual ? SLAB_HIDDEN | SLAB_MANUAL : 0)
                     | (arena->is_hardened ? SLAB_HIDDEN | SLAB_HARDENED : 0)
                     | (arena->extents != NULL ? SLAB_HIDDEN : 0));
}

static bool open_slab(struct arena *arena, unsigned class_index, bool may_grow)
{
    struct class_bin *bin = &arena->bin[class_index];
    size_t pages = slab_pages(class_index);
    struct slab *slab;
    uint32_t page;

    if (!may_grow && arena->stock[pages].count == 0
        && run_lease_would_grow(arena->page_heap, pages))
        return false;
    slab = take_record(arena, class_index);
    if (slab == NULL) return false;
    page = take_run(arena, bin, pages);
    if (page == 0) {
        keep_record(bin, slab, class_index);
        return false;
    }
    /* So that a free takes the rare way and finds home. The class map knows no foreign extents. */
    slab->hidden = hidden_as(arena);
    slab_open(slab, class_index, (uint16_t)arena->index, page);
    if (unlikely(RELAXED_LOAD(depots_closed))) RELAXED_STORE(depots_closed, false);
    bin->slab_count++;
    bin->flow.slabs_opened++;
    arena_count_active(arena, pages);
    bin->slab_free_blocks += slab->free_count;
    list_slab(&bin->partial, slab);
    return true;
}

unsigned arena_fill(struct arena *arena, unsigned class_index, void **slots, unsigned wanted,
                    bool may_grow)
{
    struct class_bin *bin = &arena->bin[class_index];
    void **end = slots + wanted + 1;
    unsigned left = wanted;

    check(lock_is_mine(&arena->lock));
    bin->flow.fills++;
    while (left > 0) {
        struct slab *slab;
        unsigned got;

        if (bin->partial.count == 0 && (left < wanted || !open_slab(arena, class_index, may_grow)))
            break;
        slab = slab_record(bin->partial.first);
        if (unlikely(slab->purged != 0)) sparse_retake(arena, slab);
        got = slab_fill(slab, end, left);
        end -= got;
        left -= got;
        if (slab->free_count == 0) {
            (void)unlist_slab(&bin->partial, slab);
            if (unlikely(arena->is_manual)) list_slab(&bin->full, slab);
        }
    }
    if (left > 0) __builtin_memmove(slots + 1, end, (wanted - left) * sizeof *slots);
    bin->slab_free_blocks -= wanted - left;
    bin->flow.blocks_taken += wanted - left;
    return wanted - left;
}

/* ---- drain ---- */

/* A block that lies in no slab of the class it was freed as. */
static NORETURN COLD void misplaced(const void *block)
{
    uint32_t page = page_at(block);
    const struct page *record = page_record(page);

    if (page == 0 && !guarded_pool_has(block)) fatal_address("free of a foreign pointer", block);
    if (page == 0 || record->class_at != 0 || is_block_state(record->state))
        fatal_address("double free or wrong size in sized delete", block);
    fatal_address("double free", block);
}

/* The lock is given first: the program may have a handler for SIGABRT that allocates. */
static NORETURN COLD void drained_misuse(struct arena *arena, enum slab_fault fault,
                                         const void *block)
{
    lock_give(&arena->lock);
    if (fault == SLAB_FAULT_ELSEWHERE) misplaced(block);
    fatal_address(fault == SLAB_FAULT_TWICE ? "double free" : "free of an interior pointer", block);
}

static void close_slab(struct arena *arena, struct class_bin *bin, struct slab *slab)
{
    if (unlikely(slab->purged != 0)) sparse_retake(arena, slab);
    arena_count_active(arena, 0 - slab_pages(slab->class_index));
    (void)unlist_slab(&bin->partial, slab);
    bin->slab_count--;
    bin->slab_free_blocks -= slab->block_count;
    slab_close(slab);
    if (likely(arena->extents == NULL) || !extents_put(arena->extents, slab->page))
        stock_put(&arena->stock[slab_pages(slab->class_index)], slab->page);
    keep_record(bin, slab, slab->class_index);
}

/* The first of its blocks that came back put the slab on the list. A slab whose blocks are all free
 * goes back, unless no other has free blocks: the next fill would have to open one again. Those
 * that come later are listed before it (A3). */
INLINE void after_put(struct arena *arena, struct class_bin *bin, struct slab *slab, unsigned put)
{
    if (unlikely(slab->free_count == put)) {
        if (unlikely(arena->is_manual)) (void)unlist_slab(&bin->full, slab);
        list_slab(&bin->partial, slab);
    }
    if (unlikely(slab->free_count == slab->block_count) && bin->partial.count > 1)
        close_slab(arena, bin, slab);
}

unsigned arena_drain(struct arena *arena, unsigned class_index, void **blocks, unsigned count)
{
    const struct slab_shape *shape = &slab_shape[class_index];
    struct class_bin *bin = &arena->bin[class_index];
    void **const end = blocks + count, **at = blocks, **others = blocks;

    check(lock_is_mine(&arena->lock));
    bin->flow.drains++;
    bin->slab_free_blocks += count; /* less one for each below that is not put */
    while (at != end) {
        struct slab *slab = slab_of(*at, class_index);
        enum slab_fault fault;
        unsigned put;

        if (unlikely(slab == NULL)) {
            if (*at != NULL && !stray_put(*at, class_index))
                drained_misuse(arena, SLAB_FAULT_ELSEWHERE, *at);
            at++; /* M3 */
            bin->slab_free_blocks--;
            continue;
        }
        if (unlikely(slab->arena != arena->index)) {
            *others++ = *at++;
            bin->slab_free_blocks--;
            continue;
        }
        /* Blocks come in runs of neighbours, or at random. */
        if (at + 1 != end && (uintptr_t)at[1] - (uintptr_t)slab->base < shape->span_bytes)
            put = slab_put(slab, at, (unsigned)(end - at), &fault);
        else put = (fault = slab_put_one(slab, shape, *at)) == SLAB_FAULT_NONE;
        if (unlikely(fault != SLAB_FAULT_NONE)) drained_misuse(arena, fault, at[put]);
        at += put;
        after_put(arena, bin, slab, put);
    }
    sparse_note_drain(bin, class_index);
    return (unsigned)(others - blocks);
}

struct arena *arena_of_block(unsigned class_index, const void *block)
{
    const struct slab *slab = slab_of(block, class_index);

    if (likely(slab != NULL)) return arenas[slab->arena];
    if (block != NULL && guarded_pool_class(block) != class_index) misplaced(block);
    return NULL; /* M3 */
}

/* The bit of a block that the program holds is clear, and nobody else changes it. */
READS_UNLOCKED void arena_expect_block(unsigned class_index, const void *block)
{
    const struct slab_shape *shape = &slab_shape[class_index];
    const struct slab *slab = slab_of(block, class_index);
    uintptr_t offset;

    if (unlikely(slab == NULL)) {
        (void)arena_of_block(class_index, block);
        return;
    }
    offset = (uintptr_t)block - (uintptr_t)slab->base;
    if (unlikely(!slab_offset_is_block(shape, offset)))
        fatal_address("free of an interior pointer", block);
    if (unlikely(slab_has_free(slab, slab_quotient_index(slab_quotient(shape, offset)))))
        fatal_address("double free", block);
}

void arenas_drain(unsigned class_index, void **blocks, unsigned count)
{
    while (count > 0) {
        struct arena *arena = arena_of_block(class_index, blocks[0]);

        if (unlikely(arena == NULL)) {
            if (blocks[0] != NULL && !stray_put(blocks[0], class_index)) misplaced(blocks[0]);
            blocks++, count--;
            continue;
        }
        lock_take(&arena->lock);
        count = arena_drain(arena, class_index, blocks, count);
        lock_give(&arena->lock);
    }
}

void arena_reset_slabs(struct arena *arena)
{
    check(lock_is_mine(&arena->lock) && arena->is_manual);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        struct class_bin *bin = &arena->bin[class_index];

        while (bin->full.count != 0)
            list_slab(&bin->partial, unlist_slab(&bin->full, slab_record(bin->full.first)));
        while (bin->partial.count != 0) {
            struct slab *slab = slab_record(bin->partial.first);
            bin->slab_free_blocks += (uint64_t)slab->block_count - slab->free_count;
            slab_reset(slab);
            close_slab(arena, bin, slab);
        }
    }
}

static void return_stocks(struct arena *arena)
{
    for (unsigned pages = 1; pages <= STOCK_PAGES_MAX; pages++)
        stock_return(&arena->stock[pages], arena->stock[pages].count);
}

void arena_give_stocks(struct arena *arena)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        struct class_bin *bin = &arena->bin[class_index];

        while (bin->closed.count != 0)
            meta_give(take_record(arena, class_index), slab_shape[class_index].record_bytes);
    }
    meta_end_row(&arena->row);
    return_stocks(arena);
}

/* ---- all arenas ---- */

void *arenas_take_one(unsigned class_index)
{
    void *slots[2] = { NULL, NULL };

    EACH_ARENA (arena) {
        if (arena->is_manual || arena->index < arena_first) continue;
        lock_take(&arena->lock);
        if (arena->bin[class_index].partial.count != 0)
            (void)arena_fill(arena, class_index, slots, 1, false);
        lock_give(&arena->lock);
        if (slots[1] != NULL) break;
    }
    return slots[1];
}

void arenas_close_empty(void)
{
    EACH_ARENA (arena) {
        lock_take(&arena->lock);
        for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
            struct class_bin *bin = &arena->bin[class_index];
            struct slab *slab = last_slab(&bin->partial);

            if (slab != NULL && slab->free_count == slab->block_count)
                close_slab(arena, bin, slab); /* A3 */
        }
        return_stocks(arena);
        lock_give(&arena->lock);
    }
}
