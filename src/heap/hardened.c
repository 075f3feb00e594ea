/* hardened.c - marks, canaries and zeros: written when a block comes, and looked at when it goes.
 * SPDX-License-Identifier: MIT
 */
#include "hardened.h"

#include "doors.h"
#include "heap.h"
#include "large.h"
#include "marks.h"
#include "vast.h"

#include "../arenas/decay.h"
#include "../arenas/manual.h"
#include "../base/options.h"
#include "../cache/quarantine.h"
#include "../cache/thread.h"

struct hardening hardening;

enum { HARDENED_GUARDED = 1 << 8 }; /* H2 */
enum { LOOKS_AT_ONCE = 2, WIPED_IN_PLACE_MAX = 128 };
/* Larger runs are not held back: they count as used while they are, and a guard has an entry for each
 * of its pages. */
#define WAITING_RUN_BYTES_MAX ((size_t)32 * MiB)

bool hardened_start(void)
{
    uint64_t random = os_random();

    if (!threads_harden()) return false;
    hardening.secret = random;
    hardening.canaries = (random >> 56 | 1) * (UINT64_MAX / 0xff);
    hardening.slack_begins = hardening.canaries & ~(uint64_t)0xff;
    run_refuse_fences(); /* it has its own */
    hardening.is_on = true;
    return true;
}

/* ---- large blocks ---- */

static struct page *last_record(uint32_t page)
{
    return page_record(page + page_record(page)->run_pages - 1);
}

static size_t data_bytes(uint32_t page)
{
    return ((size_t)page_record(page)->run_pages - 1) << space.page_shift;
}

static void set_large(char *block, uint32_t page, size_t size, uint32_t door)
{
    size_t slack = data_bytes(page) - size;

    last_record(page)->bin.next = (uint32_t)slack;
    last_record(page)->bin.previous = door;
    write_canaries(block + size, slack);
}

static void begin_large(char *block, uint32_t page, size_t size)
{
    struct page *record = page_record(page);
    struct os_range guard = { block + data_bytes(page), page_bytes() };

    RELAXED_STORE(record->bin_index, record->bin_index | PAGE_HARDENED);
    set_large(block, page, size, DOOR_MALLOC | (os_guard(guard) ? HARDENED_GUARDED : 0u));
}

/* Contents that cannot be guarded are wiped. */
static void end_large(struct cache *cache, char *block, uint32_t page)
{
    struct os_range data = { block, data_bytes(page) };
    bool is_guarded = (last_record(page)->bin.previous & HARDENED_GUARDED) != 0;

    last_record(page)->bin.next = last_record(page)->bin.previous = 0; /* R3 */
    if (is_guarded && data.bytes <= WAITING_RUN_BYTES_MAX && os_guard(data)) {
        if (cache != NULL) quarantine_put_run(cache, page);
        else quarantine_return_run(page);
        return;
    }
    /* A run that cannot be opened again is lost, but nobody's. */
    if (is_guarded && !os_unguard((struct os_range){ block + data.bytes, page_bytes() })) return;
    page_unmark_cached(page_record(page));
    if (os_purge((struct os_range){ block, data.bytes + page_bytes() })) {
        run_return_clean(page);
    } else {
        __builtin_memset(block, 0, data.bytes);
        large_put(page);
    }
}

/* ---- a block's life ---- */

/* Of no mapping of its own, and of no arena that knows its large blocks. */
static bool is_usual_large(const struct alloc_request *request)
{
    return !vast_is_better(request->size, request->align) && large_owner(request) == NULL;
}

/* A page more behind the whole pages of a large one. */
struct alloc_request hardened_request(const struct alloc_request *request)
{
    struct alloc_request wider = *request;

    wider.class_index = hardened_class(request->size, request->align);
    wider.zero = true;
    if (wider.class_index != 0) {
        wider.size += HARDENED_MARK_BYTES;
        return wider;
    }
    if (request->size <= SIZE_MAX / 2 && is_usual_large(request))
        wider.size = round_up(request->size, os_page_bytes()) + os_page_bytes();
    return wider;
}

INLINE void set_small(uint64_t key, char *block, size_t class_size, size_t size,
                      enum hardened_door door)
{
    size_t slack = class_size - HARDENED_MARK_BYTES - size;

    mark_write(block, class_size, held_mark(key, slack, door));
    write_canaries(block + size, slack);
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
INLINE void begin_small(char *block, size_t class_size, size_t size, enum hardened_door door)
{
    check_free(block, class_size);
    set_small(mark_key(block), block, class_size, size, door);
}

INLINE void *take_marked(struct front *front, size_t size, size_t align, enum hardened_door door)
{
    struct counting_front *counting = (struct counting_front *)front;
    unsigned class_index = hardened_class(size, align);
    size_t class_size;
    void *block;

    if (AUDITED) heap_audit();
    if (counting->sampler != NULL || decay_should_look(0) || size == 0) return NULL;
    block = quarantine_take_ready(front->cache, class_index);
    if (unlikely(block == NULL)) return NULL;
    class_size = class_bytes[class_index];
    counting_add_taken(counting, class_size);
    begin_small(block, class_size, size, door);
    return block;
}

void *hardened_take(struct front *front, size_t size, size_t align, enum hardened_door door)
{
    return take_marked(front, size, align, door);
}

void *hardened_malloc(struct front *front, size_t size, size_t align, bool zero)
{
    void *block = take_marked(front, size, align, DOOR_MALLOC);

    return likely(block != NULL) ? block : alloc_unready(size, align, zero);
}

bool hardened_begin(void *block, const struct alloc_request *request)
{
    uint32_t page = page_at(block);
    const struct page *record = page_record(page);

    if (record->class_at != 0) {
        begin_small(block, class_bytes[class_of_offset(record->class_at)], request->size,
                    DOOR_MALLOC);
        return true;
    }
    if (!page_is_held_large(record) || record->run_pages <= request_pages(request)) return false;
    begin_large(block, page, request->size);
    return true;
}

NORETURN static COLD void tell_mark(const char *verb, const void *block, uint64_t mark)
{
    if (mark == 0) misuse_abort(verb, POINTER_FREED, block);
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
    if (unlikely(mark != 0 && !is_mark(mark_key(before), mark)))
        fatal_address("write before the start of a block", block);
}

/* Returns its mark. `shape`: that of the slab's class. */
INLINE uint64_t check_small(const char *verb, const char *block, const struct slab *slab,
                            const struct slab_shape *shape)
{
    size_t class_size = shape->block_bytes, room = class_size - HARDENED_MARK_BYTES, slack;
    uint64_t mark;

    if (unlikely(!slab_offset_is_block(shape, (uintptr_t)block - (uintptr_t)slab->base)))
        misuse_abort(verb, POINTER_INTERIOR, block);
    mark = mark_read(block, class_size);
    slack = slack_of(mark);
    if (unlikely(!is_mark(mark_key(block), mark)) || unlikely(slack > room))
        tell_mark(verb, block, mark);
    if (unlikely(!canaries_are_whole(block + room - slack, slack)))
        fatal_address("write past the end of a block", block);
    check_before(slab, block, class_size);
    return mark;
}

enum hardened_door hardened_check(const char *verb, const void *block, uint32_t page)
{
    const struct page *record = page_record(page), *last;
    size_t slack;

    if (record->class_at != 0)
        return door_of(check_small(verb, block, slab_record(record->slab),
                                   &slab_shape[class_of_offset(record->class_at)]));
    last = last_record(page);
    slack = last->bin.next;
    if (!canaries_are_whole((const char *)block + data_bytes(page) - slack, slack))
        fatal_address("write past the end of a block", block);
    return (enum hardened_door)(last->bin.previous & DOOR_MASK);
}

static size_t size_of(const void *block, uint32_t page)
{
    const struct page *record = page_record(page);
    size_t class_size;

    if (record->class_at == 0) return data_bytes(page) - last_record(page)->bin.next;
    class_size = class_bytes[class_of_offset(record->class_at)];
    return class_size - HARDENED_MARK_BYTES - slack_of(mark_read(block, class_size));
}

size_t hardened_bytes(const void *block, uint32_t page)
{
    (void)hardened_check("malloc_usable_size", block, page);
    return size_of(block, page);
}

static void expect_door(const void *block, enum hardened_door door, enum hardened_door wanted)
{
    if (unlikely(door != wanted)) fatal_address("allocation and free do not match", block);
}

/* Jumped to, as what follows: a call in the midst of the usual way would make all of it save
 * registers. */
static NOINLINE void put_or_fill(struct cache *cache, unsigned class_index, void *block)
{
    block = quarantine_fill(cache, class_index, block);
    if (block != NULL) cache_put(cache, class_index, block);
}

INLINE void put_wiped(struct cache *cache, unsigned class_index, void *block, unsigned hidden)
{
    void *other;

    if (unlikely(!cache_may_hold(cache, class_index)) || unlikely(hidden & SLAB_MANUAL)) {
        free_home(class_index, block);
        return;
    }
    other = quarantine_exchange(cache, class_index, block);
    if (unlikely(other == NULL)) {
        put_or_fill(cache, class_index, block);
        return;
    }
    if (unlikely(!magazine_put(&cache->front.magazine[class_index], other)))
        cache_put(cache, class_index, other);
}

static NOINLINE void wipe_and_put(struct cache *cache, unsigned class_index, void *block,
                                  unsigned hidden)
{
    size_t class_size = class_bytes[class_index];

    __builtin_memset(block, 0, class_size - HARDENED_MARK_BYTES);
    mark_write(block, class_size, 0);
    put_wiped(cache, class_index, block, hidden);
}

/* It was looked at, and is no longer the program's: it has no contents, and goes to the quarantine,
 * or past it. NULL: there is no cache. */
INLINE void end_small(struct cache *cache, void *block, unsigned class_index, size_t class_size,
                      unsigned hidden)
{
    if (class_size > WIPED_IN_PLACE_MAX) {
        wipe_and_put(cache, class_index, block, hidden);
        return;
    }
    wipe_words(block, class_size - HARDENED_MARK_BYTES);
    mark_write(block, class_size, 0);
    put_wiped(cache, class_index, block, hidden);
}

/* `size` SIZE_MAX: it is not told. */
INLINE bool give_marked(struct front *front, void *block, const struct page *record, size_t size,
                        enum hardened_door door)
{
    struct counting_front *counting;
    const struct slab *slab;
    unsigned class_index, hidden;
    size_t class_size;
    uint64_t mark;

    if (unlikely(!is_hardened_slab(record))) return false;
    slab = slab_record(record->slab);
    class_index = slab->class_index;
    hidden = slab->hidden;
    class_size = slab_shape[class_index].block_bytes;
    mark = check_small("free", block, slab, &slab_shape[class_index]);
    expect_door(block, door_of(mark), door);
    if (size != SIZE_MAX && class_size - HARDENED_MARK_BYTES - slack_of(mark) != max_size(size, 1))
        misuse_wrong_size(block);
    counting = counting_of(front);
    if (likely(counting != NULL)) counting_add_given(counting, class_size);
    end_small(front->cache, block, class_index, class_size, hidden);
    return true;
}

bool hardened_give(struct front *front, void *block, size_t size, enum hardened_door door)
{
    return give_marked(front, block, page_record(page_at(block)), size, door);
}

static NOINLINE void free_beyond_first(struct front *front, void *block)
{
    if (!hardened_give(front, block, SIZE_MAX, DOOR_MALLOC)) free_unmarked(front, block);
}

void hardened_free(struct front *front, void *block)
{
    uint32_t page = page_in_first(block);

    if (unlikely(page == 0)) {
        free_beyond_first(front, block);
        return;
    }
    if (unlikely(!give_marked(front, block, page_record(page), SIZE_MAX, DOOR_MALLOC)))
        free_unmarked(front, block);
}

void hardened_end_large(struct cache *cache, void *block, uint32_t page)
{
    expect_door(block, hardened_check("free", block, page), DOOR_MALLOC);
    end_large(cache != NULL && !cache->is_off ? cache : NULL, block, page);
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

bool hardened_resize(void *block, uint32_t page, size_t size, size_t *old_bytes)
{
    enum hardened_door door = hardened_check("realloc", block, page);
    unsigned class_index = class_of_offset(page_record(page)->class_at);
    size_t room = class_index != 0 ? (size_t)class_bytes[class_index] - HARDENED_MARK_BYTES
                                   : data_bytes(page);

    expect_door(block, door, DOOR_MALLOC);
    *old_bytes = size_of(block, page);
    if (size > room || marked_room_for(size) != marked_room(page)) return false;
    if (size > *old_bytes) __builtin_memset((char *)block + *old_bytes, 0, size - *old_bytes);
    if (class_index != 0)
        set_small(mark_key(block), block, class_bytes[class_index], size, DOOR_MALLOC);
    else set_large(block, page, size, last_record(page)->bin.previous);
    return true;
}

bool hardened_move_pages(void *block, uint32_t page, size_t bytes, void *to)
{
    struct os_range from = { block, round_up(bytes, page_bytes()) };
    uint32_t to_page = page_at(to);
    size_t to_bytes = prairie_usable_size(to);
    struct cache *cache = thread_front()->cache;

    if (page_record(page)->class_at != 0 || page_record(to_page)->class_at != 0) return false;
    if (from.bytes > round_up(to_bytes, page_bytes()) || !large_may_move(bytes)) return false;
    if (!os_move(from, (struct os_range){ to, from.bytes })) return false;
    /* The last page came along whole. */
    __builtin_memset((char *)to + bytes, 0, from.bytes - bytes);
    if (page_is_held_hardened(page_record(to_page)))
        write_canaries((char *)to + to_bytes, data_bytes(to_page) - to_bytes);
    end_large(cache, block, page);
    return true;
}

void hardened_check_bytes(const void *block, size_t size)
{
    uint32_t page;

    if (block == NULL || pointer_kind(block, &page) != POINTER_HARDENED) return;
    (void)hardened_check("free", block, page);
    if (size_of(block, page) != max_size(size, 1)) misuse_wrong_size(block);
}

/* ---- doors ---- */

static void write_door(void *block, uint32_t page, enum hardened_door door)
{
    unsigned class_index = class_of_offset(page_record(page)->class_at);
    struct page *last;

    if (class_index != 0) {
        uint64_t mark = mark_read(block, class_bytes[class_index]);

        mark_write(block, class_bytes[class_index],
                   held_mark(mark_key(block), slack_of(mark), door));
        return;
    }
    last = last_record(page);
    last->bin.previous = (last->bin.previous & ~(uint32_t)DOOR_MASK) | door;
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
    expect_door(block, hardened_check("free", block, page), door);
    write_door(block, page, DOOR_MALLOC);
}
