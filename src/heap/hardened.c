/* hardened.c - marks, canaries and zeros: written when a block comes, and looked at when it goes.
 * SPDX-License-Identifier: MIT
 */
#include "hardened.h"

#include "doors.h"
#include "hardened_held.h"
#include "hardened_large.h"
#include "heap.h"
#include "large.h"
#include "marks.h"

#include "../base/options.h"
#include "../cache/explicit_cache.h"
#include "../cache/quarantine.h"
#include "../cache/thread.h"
#include "../page_heap/run_fence.h"

struct hardening hardening SEALED;

enum { LOOKS_AT_ONCE = 2, WIPED_IN_PLACE_MAX = 128 };

/* Frees read it before they ask whether the address is in any page. */
static bool open_record_0(void)
{
    bool opened;

    if (!heap_start()) return false;
    lock_take(&space.lock);
    opened = space_open_record_0();
    lock_give(&space.lock);
    return opened;
}

bool hardened_start(void)
{
    uint64_t secret = os_random(), canary = os_random() * 0x9e3779b97f4a7c15u >> 56;

    if (!open_record_0() || !threads_harden()) return false;
    explicit_caches_empty();
    hardening.secret = secret;
    hardening.canaries = (canary | 1) * (UINT64_MAX / 0xff);
    hardening.slack_begins = hardening.canaries & ~(uint64_t)0xff;
    run_fences_off(); /* it has its own */
    hardening.is_on = true;
    return true;
}

/* ---- a block's life ---- */

/* A small one is served by its class; a large one has a page more behind its whole pages. */
struct alloc_request hardened_request(const struct alloc_request *request)
{
    struct alloc_request wider = *request;

    wider.class_index = hardened_class(request->size, request->align);
    wider.zero = true;
    if (wider.class_index == 0 && request->size <= SIZE_MAX / 2 && hardened_large_is_usual(request))
        wider.size = round_up(request->size, os_page_bytes()) + os_page_bytes();
    return wider;
}

/* H1 */
INLINE void check_free(const void *block, size_t class_size)
{
    if (unlikely(!is_zero(block, class_size))) fatal_address("write after free", block);
}

void hardened_look(struct cache *cache, unsigned class_index)
{
    for (unsigned looks = 0; looks < LOOKS_AT_ONCE; looks++) {
        const void *block = quarantine_look(cache, class_index);

        if (block != NULL) check_free(block, class_bytes[class_index]);
    }
}

/* A block of a slab begins its life. Aborts if it was written to since it was freed. */
INLINE void begin_small(char *block, size_t class_size, size_t size, unsigned door)
{
    check_free(block, class_size);
    mark_small(block, class_size, size, door, false);
}

INLINE void *take_marked(struct front *front, unsigned class_index, size_t size,
                         enum hardened_door door)
{
    struct counting_front *counting = (struct counting_front *)front;
    struct magazine *magazine = &front->cache->front.magazine[class_index];
    size_t class_size = class_bytes[class_index];
    void *block;

    if (AUDITED) heap_audit();
    if (unlikely(counting->sampler != NULL)) return NULL;
    block = magazine_take(magazine);
    if (unlikely(block == NULL)) return NULL;
    if (likely(*magazine->top != NULL)) { /* M1 */
        quarantine_touch(*magazine->top, class_size);
        __builtin_prefetch(magazine->top[-1], 1); /* it is looked at the time after next */
    }
    counting_add_taken(counting, size);
    begin_small(block, class_size, size, door);
    return block;
}

void *hardened_take(struct front *front, size_t size, size_t align, enum hardened_door door)
{
    return likely(size != 0) ? take_marked(front, hardened_class(size, align), size, door) : NULL;
}

static NOINLINE void *malloc_beyond(struct front *front, size_t size, size_t align, bool zero)
{
    void *block = hardened_take(front, size, align, DOOR_MALLOC);

    return likely(block != NULL) ? block : alloc_unready(size, align, zero);
}

void *hardened_malloc(struct front *front, size_t size, size_t align, bool zero)
{
    void *block;

    if (unlikely(size - 1 >= TABLE_BYTES_MAX - HARDENED_MARK_BYTES) || unlikely(align != 1))
        return malloc_beyond(front, size, align, zero);
    block = take_marked(front, class_of_offset(offset_of_size[size + HARDENED_MARK_BYTES]), size,
                        DOOR_MALLOC);
    return likely(block != NULL) ? block : alloc_unready(size, align, zero);
}

void *hardened_take_waiting(struct front *front, const struct alloc_request *wider)
{
    struct counting_front *counting = (struct counting_front *)front;
    void *block;

    if (wider->class_index != 0 || front->kind != FRONT_HARDENED || counting->sampler != NULL
        || request_is_placed(wider) || !hardened_large_is_usual(wider)
        || wider->align > page_bytes())
        return NULL;
    block = quarantine_take_open(front->cache, request_pages(wider));
    if (block == NULL) return NULL;
    counting_add_taken(counting, request_bytes(wider));
    page_mark_hardened(page_record(page_at(block)));
    return block;
}

bool hardened_begin(void *block, const struct alloc_request *request)
{
    uint32_t page = page_at(block);
    const struct page *record = page_record(page);

    if (record->class_at != 0) {
        bool is_manual = (slab_record(record->slab)->hidden & SLAB_MANUAL) != 0;

        quarantine_touch(block, class_bytes[class_of_offset(record->class_at)]);
        begin_small(block, class_bytes[class_of_offset(record->class_at)], request->size,
                    is_manual ? DOOR_MALLOC | DOOR_TO_MANUAL : DOOR_MALLOC);
        return true;
    }
    if (page_is_held_hardened(record)) {
        check_free(block, hardened_large_room(page));
        hardened_large_begin(block, page, request->size, true);
        return true;
    }
    if (!page_is_held_large(record) || record->run_pages <= request_pages(request)) return false;
    hardened_large_begin(block, page, request->size, false);
    return true;
}

/* Jumped to, as what follows: a call in the midst of the usual way would make all of it save
 * registers. */
static NOINLINE void put_or_fill(struct cache *cache, unsigned class_index, void *block)
{
    if (unlikely(!cache_may_hold(cache, class_index))) {
        free_home(class_index, block);
        return;
    }
    block = quarantine_fill(cache, class_index, block);
    if (block != NULL) cache_put(cache, class_index, block);
}

INLINE void put_wiped(struct cache *cache, unsigned class_index, void *block)
{
    struct held_class *held = quarantine_held(cache, class_index);
    void *other;

    if (unlikely(held == NULL)) {
        put_or_fill(cache, class_index, block);
        return;
    }
    other = quarantine_exchange(held, block);
    if (unlikely(other == NULL)) return;
    if (!magazine_put(&cache->front.magazine[class_index], other))
        cache_put(cache, class_index, other);
}

/* H1 */
INLINE void wipe(void *block, size_t class_size)
{
    __builtin_memset(block, 0, class_size - HARDENED_MARK_BYTES);
    mark_write(block, class_size, 0);
}

/* It was looked at, and is no longer the program's: it has no contents, and goes to the quarantine,
 * or past it. */
static NOINLINE void wipe_and_put(struct cache *cache, unsigned class_index, void *block)
{
    wipe(block, class_bytes[class_index]);
    put_wiped(cache, class_index, block);
}

/* The same of few bytes. */
static NOINLINE void wipe_few_and_put(struct cache *cache, unsigned class_index, void *block)
{
    size_t class_size = class_bytes[class_index];

    wipe_words(block, class_size - HARDENED_MARK_BYTES);
    mark_write(block, class_size, 0);
    put_wiped(cache, class_index, block);
}

/* Of a manual arena, or of a thread without a cache. */
static NOINLINE void wipe_and_send_home(unsigned class_index, void *block)
{
    wipe(block, class_bytes[class_index]);
    free_home(class_index, block);
}

/* The same of a thread whose totals the program reads. The mark is read again, so that the usual
 * way need not keep what it said. */
static COLD NOINLINE void count_and_wipe_and_put(struct front *front, unsigned class_index,
                                                 void *block)
{
    size_t class_size = class_bytes[class_index];
    size_t slack = slack_of(mark_read(block, class_size));

    counting_add_given((struct counting_front *)front, class_size - HARDENED_MARK_BYTES - slack);
    wipe_and_put(front->cache, class_index, block);
}

/* Of most blocks the mark tells everything: it lies in the page that the block begins in, as does
 * the one before. False: nothing happened; all others, and what is wrong, go by their slab. Of a
 * front of kind FRONT_HARDENED. */
INLINE bool give_by_mark(struct front *front, void *block, size_t size, enum hardened_door door)
{
    struct counting_front *counting = (struct counting_front *)front;
    uint32_t page = page_in_first(block);
    uint8_t offset = page_record(page)->class_at; /* record 0 has none */
    size_t class_size = bytes_of_offset(offset), room = class_size - HARDENED_MARK_BYTES, slack;
    uintptr_t at = (uintptr_t)block % PAGE_BYTES_MIN;
    uint64_t mark;

    if (unlikely(offset == 0) || unlikely(at == 0) || unlikely(at % sizeof mark != 0)
        || unlikely(at + class_size > PAGE_BYTES_MIN))
        return false;
    mark = mark_read(block, class_size);
    slack = slack_of(mark);
    if (unlikely(!is_mark_of_door(block, mark, door))
        || unlikely(!canaries_are_whole((char *)block + room, slack))
        || (size != SIZE_MAX && unlikely(size != room - slack)))
        return false;
    mark = mark_read((char *)block - class_size, class_size);
    if (mark != 0 && unlikely(!is_mark((char *)block - class_size, mark))) return false;
    if (unlikely(counting->is_told)) count_and_wipe_and_put(front, class_of_offset(offset), block);
    else if (class_size > WIPED_IN_PLACE_MAX)
        wipe_and_put(front->cache, class_of_offset(offset), block);
    else wipe_few_and_put(front->cache, class_of_offset(offset), block);
    return true;
}

/* Any front. */
static NOINLINE bool give_by_slab(struct front *front, void *block, size_t size,
                                  enum hardened_door door)
{
    uint32_t page = page_at(block);
    struct counting_front *counting = counting_of(front);
    const struct slab *slab;
    unsigned class_index;
    size_t class_size, bytes;
    uint64_t mark;

    /* Of page 0, too: record 0, which hardened_start has opened, is no slab's. */
    if (unlikely(!is_hardened_slab(page_record(page)))) return false;
    slab = slab_record(page_record(page)->slab);
    class_index = slab->class_index;
    class_size = class_bytes[class_index];
    mark = hardened_check_small(CALL_FREE, block, slab, &slab_shape[class_index]);
    hardened_expect_same(block, door_of(mark), door);
    bytes = class_size - HARDENED_MARK_BYTES - slack_of(mark);
    if (size != SIZE_MAX && bytes != max_size(size, 1)) misuse_wrong_size(block);
    if (likely(counting != NULL)) counting_add_given(counting, bytes);
    if (unlikely((slab->hidden & SLAB_MANUAL) != 0) || unlikely(front->cache == NULL))
        wipe_and_send_home(class_index, block);
    else if (class_size > WIPED_IN_PLACE_MAX) wipe_and_put(front->cache, class_index, block);
    else wipe_few_and_put(front->cache, class_index, block);
    return true;
}

bool hardened_give(struct front *front, void *block, size_t size, enum hardened_door door)
{
    return give_by_mark(front, block, size, door) || give_by_slab(front, block, size, door);
}

void hardened_free_any(struct front *front, void *block)
{
    if (!give_by_slab(front, block, SIZE_MAX, DOOR_MALLOC)) free_unmarked(front, block);
}

void hardened_free(struct front *front, void *block)
{
    if (!give_by_mark(front, block, SIZE_MAX, DOOR_MALLOC)) hardened_free_any(front, block);
}

void hardened_free_large(struct cache *cache, void *block, uint32_t page)
{
    hardened_expect_same(block, hardened_check(CALL_FREE, block, page), DOOR_MALLOC);
    hardened_large_end(cache, block, page);
}
