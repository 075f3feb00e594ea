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
#include "../cache/explicit_cache.h"
#include "../cache/quarantine.h"
#include "../cache/thread.h"
#include "../page_heap/run_fence.h"

struct hardening hardening SEALED;

enum { LOOKS_AT_ONCE = 2, WIPED_IN_PLACE_MAX = 128, PAGE_BYTES_MIN = 4096 };
/* Larger runs are not closed: they count as used while they wait, and a guard has an entry for each of
 * its pages. With pages of 4 KiB the budget of all guards is less. */
#define WAITING_RUN_BYTES_MAX ((size_t)32 * MiB)

bool hardened_start(void)
{
    uint64_t random = os_random();

    if (!threads_harden()) return false;
    explicit_caches_empty();
    hardening.secret = random;
    hardening.canaries = (random >> 56 | 1) * (UINT64_MAX / 0xff);
    hardening.slack_begins = hardening.canaries & ~(uint64_t)0xff;
    run_fences_off(); /* it has its own */
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

/* In the place of fresh pages, or of those of a run that waited, which may still have its guard. */
static void begin_large(char *block, uint32_t page, size_t size, bool has_waited)
{
    struct page *record = page_record(page);
    struct os_range guard = { block + data_bytes(page), page_bytes() };
    uint32_t guarded = has_waited ? last_record(page)->bin.previous : 0;

    if (guarded == 0 && quarantine_may_close(1) && os_guard(guard)) guarded = RUN_GUARDED;
    page_mark_hardened(record);
    set_large(block, page, size, DOOR_MALLOC | guarded);
}

/* The usual end of one that the thread may close. False: nothing happened. */
static bool close_large(struct cache *cache, char *block, uint32_t page)
{
    struct os_range data = { block, data_bytes(page) };

    if ((last_record(page)->bin.previous & RUN_GUARDED) == 0 || data.bytes > WAITING_RUN_BYTES_MAX
        || !quarantine_may_close(data.bytes >> space.page_shift) || !os_guard(data))
        return false;
    last_record(page)->bin.next = last_record(page)->bin.previous = 0; /* R3 */
    if (cache != NULL) quarantine_put_closed(cache, page);
    else quarantine_return_closed(page);
    return true;
}

/* One that cannot be closed waits open when it is short enough, and is wiped. False: nothing
 * happened. */
static bool keep_open(struct cache *cache, char *block, uint32_t page)
{
    size_t bytes = data_bytes(page);
    struct page *last = last_record(page);

    if (cache == NULL || bytes > OPEN_RUN_BYTES_MAX) return false;
    last->bin.next = 0; /* R3 */
    last->bin.previous &= RUN_GUARDED;
    __builtin_memset(block, 0, bytes);
    quarantine_put_open(cache, page);
    return true;
}

/* It goes to no quarantine. Contents that cannot be guarded are wiped. */
static void return_large(char *block, uint32_t page)
{
    size_t bytes = data_bytes(page);
    struct page *last = last_record(page);
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
 * dirty. */
static void end_large(struct cache *cache, char *block, uint32_t page)
{
    if (cache != NULL && cache->is_off) cache = NULL;
    if (!close_large(cache, block, page) && !keep_open(cache, block, page))
        return_large(block, page);
    else if (unlikely(decay_after_return())) thread_flush();
}

/* ---- a block's life ---- */

/* Of no mapping of its own, and of no arena that knows its large blocks. Nor for a hook that is
 * asked for an extent, which may be just this block: a run without a page more. */
static bool is_usual_large(const struct alloc_request *request)
{
    return !vast_is_better(request->size, request->align) && large_owner(request) == NULL
        && !cache_is_away(thread_front()->cache);
}

/* A small one is served by its class; a large one has a page more behind its whole pages. */
struct alloc_request hardened_request(const struct alloc_request *request)
{
    struct alloc_request wider = *request;

    wider.class_index = hardened_class(request->size, request->align);
    wider.zero = true;
    if (wider.class_index == 0 && request->size <= SIZE_MAX / 2 && is_usual_large(request))
        wider.size = round_up(request->size, os_page_bytes()) + os_page_bytes();
    return wider;
}

/* `keeps`: it has contents. */
INLINE void set_small(char *block, size_t class_size, size_t size, unsigned door, bool keeps)
{
    size_t slack = class_size - HARDENED_MARK_BYTES - size;

    mark_write(block, class_size, held_mark(block, slack, door));
    if (slack != 0) write_canaries_and(block + size, slack, keeps);
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
    touch(block + class_size - HARDENED_MARK_BYTES);
    if (unlikely(class_size >= PAGE_BYTES_MIN)) touch(block);
    check_free(block, class_size);
    set_small(block, class_size, size, door, false);
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
    if (likely(*magazine->top != NULL))           /* M1 */
        __builtin_prefetch(magazine->top[-1], 1); /* it is looked at the time after next */
    counting_add_taken(counting, class_size);
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
        || request_is_placed(wider) || !is_usual_large(wider) || wider->align > page_bytes())
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

        begin_small(block, class_bytes[class_of_offset(record->class_at)], request->size,
                    is_manual ? DOOR_MALLOC | DOOR_TO_MANUAL : DOOR_MALLOC);
        return true;
    }
    if (page_is_held_hardened(record)) {
        check_free(block, data_bytes(page));
        begin_large(block, page, request->size, true);
        return true;
    }
    if (!page_is_held_large(record) || record->run_pages <= request_pages(request)) return false;
    begin_large(block, page, request->size, false);
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
    if (unlikely(mark != 0 && !is_mark(before, mark)))
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
    if (unlikely(!is_mark(block, mark)) || unlikely(slack > room)) tell_mark(verb, block, mark);
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

/* H1. Another thread may be about to take the block: its mark comes at once, canaries after it. They
 * are looked at when it comes back. */
size_t hardened_held_bytes(const void *block, uint32_t page)
{
    unsigned class_index = class_of_offset(page_record(page)->class_at);
    uint64_t mark;

    if (class_index == 0) return size_of(block, page);
    mark = mark_read(block, class_bytes[class_index]);
    if (mark == 0) return 0;
    if (!is_mark(block, mark)) tell_mark("malloc_usable_size", block, mark);
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

/* It was looked at, and is no longer the program's: it has no contents, and goes to the quarantine,
 * or past it. */
static NOINLINE void wipe_and_put(struct cache *cache, unsigned class_index, void *block)
{
    size_t class_size = class_bytes[class_index];

    __builtin_memset(block, 0, class_size - HARDENED_MARK_BYTES);
    mark_write(block, class_size, 0);
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
    size_t class_size = class_bytes[class_index];

    __builtin_memset(block, 0, class_size - HARDENED_MARK_BYTES);
    mark_write(block, class_size, 0);
    free_home(class_index, block);
}

bool hardened_give(struct front *front, void *block, size_t size, enum hardened_door door)
{
    uint32_t page = page_at(block);
    struct counting_front *counting = counting_of(front);
    const struct slab *slab;
    unsigned class_index;
    size_t class_size;
    uint64_t mark;

    /* Before the heap could start not even record 0 can be read. */
    if (unlikely(page == 0) || unlikely(!is_hardened_slab(page_record(page)))) return false;
    slab = slab_record(page_record(page)->slab);
    class_index = slab->class_index;
    class_size = class_bytes[class_index];
    mark = check_small("free", block, slab, &slab_shape[class_index]);
    expect_door(block, door_of(mark), door);
    if (size != SIZE_MAX && class_size - HARDENED_MARK_BYTES - slack_of(mark) != max_size(size, 1))
        misuse_wrong_size(block);
    if (likely(counting != NULL)) counting_add_given(counting, class_size);
    if (unlikely((slab->hidden & SLAB_MANUAL) != 0) || unlikely(front->cache == NULL))
        wipe_and_send_home(class_index, block);
    else if (class_size > WIPED_IN_PLACE_MAX) wipe_and_put(front->cache, class_index, block);
    else wipe_few_and_put(front->cache, class_index, block);
    return true;
}

void hardened_free_any(struct front *front, void *block)
{
    if (!hardened_give(front, block, SIZE_MAX, DOOR_MALLOC)) free_unmarked(front, block);
}

/* Of most blocks the mark tells everything: it lies in the page that the block begins in, as does the
 * one before. All others, and what is wrong, go by their slab. */
void hardened_free(struct front *front, void *block)
{
    uint32_t page = page_in_first(block);
    uint8_t offset = page_record(page)->class_at; /* record 0 has none */
    size_t class_size = bytes_of_offset(offset), room = class_size - HARDENED_MARK_BYTES;
    uintptr_t at = (uintptr_t)block % PAGE_BYTES_MIN;
    const char *before = (const char *)block - class_size;
    uint64_t mark, mark_before;

    if (unlikely(offset == 0) || unlikely(at == 0) || unlikely(at % sizeof mark != 0)
        || unlikely(at + class_size > PAGE_BYTES_MIN))
        goto by_slab;
    mark = mark_read(block, class_size);
    mark_before = mark_read(before, class_size);
    if (unlikely(!is_mark(block, mark)) || unlikely((mark & MARK_UNUSUAL_BITS) != 0)
        || unlikely(
            !canaries_are_whole((const char *)block + room - slack_of(mark), slack_of(mark)))
        || (mark_before != 0 && unlikely(!is_mark(before, mark_before))))
        goto by_slab;
    counting_add_given((struct counting_front *)front, class_size);
    if (class_size > WIPED_IN_PLACE_MAX) wipe_and_put(front->cache, class_of_offset(offset), block);
    else wipe_few_and_put(front->cache, class_of_offset(offset), block);
    return;
by_slab:
    hardened_free_any(front, block);
}

void hardened_end_large(struct cache *cache, void *block, uint32_t page)
{
    expect_door(block, hardened_check("free", block, page), DOOR_MALLOC);
    end_large(cache, block, page);
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

/* A large block with other pages behind it, or without some. Its guard goes, and there may be another
 * one. False: nothing happened. */
static bool resize_large_here(char *block, uint32_t page, size_t old_size, size_t size)
{
    size_t old_bytes = data_bytes(page), bytes = round_up(size, page_bytes());
    uint32_t old_pages = page_record(page)->run_pages, flags = last_record(page)->bin.previous;
    struct os_range guard = { block + old_bytes, page_bytes() };
    struct counting_front *counting = counting_of(thread_front());
    bool is_guarded = (flags & RUN_GUARDED) != 0;

    if (bytes > old_bytes) {
        last_record(page)->bin.next = 0; /* R3 */
        if (!run_extend(page_heap_of(page), page, (bytes >> space.page_shift) + 1)) {
            set_large(block, page, old_size, flags);
            return false;
        }
        if (is_guarded && !os_unguard(guard)) {
            run_trim(page_heap_of(page), page, old_pages);
            set_large(block, page, old_size, flags);
            return false;
        }
        __builtin_memset(block + old_size, 0, old_bytes - old_size);
        large_clear(block + old_bytes, bytes - old_bytes);
    } else {
        if (is_guarded && !os_unguard(guard)) return false;
        large_clear(block + bytes, old_bytes - bytes);
        last_record(page)->bin.next = 0; /* R3 */
        run_trim(page_heap_of(page), page, (bytes >> space.page_shift) + 1);
    }
    guard.base = block + bytes;
    is_guarded = quarantine_may_close(1) && os_guard(guard);
    set_large(block, page, size, (flags & DOOR_MASK) | (is_guarded ? RUN_GUARDED : 0u));
    if (counting != NULL) {
        counting_add_given(counting, old_bytes + page_bytes());
        counting_add_taken(counting, bytes + page_bytes());
    }
    if (bytes < old_bytes && unlikely(decay_after_return())) thread_flush();
    return true;
}

/* In whole pages, of the page heap's, before and after. */
static bool stays_large(size_t size)
{
    struct alloc_request request = alloc_request(size, 1, false, NULL);

    return hardened_class(size, 1) == 0 && size <= SIZE_MAX / 2 && is_usual_large(&request);
}

bool hardened_resize(void *block, uint32_t page, size_t size, size_t *old_bytes)
{
    enum hardened_door door = hardened_check("realloc", block, page);
    unsigned class_index = class_of_offset(page_record(page)->class_at);
    size_t room = class_index != 0 ? (size_t)class_bytes[class_index] - HARDENED_MARK_BYTES
                                   : data_bytes(page);

    expect_door(block, door, DOOR_MALLOC);
    *old_bytes = size_of(block, page);
    if (size > room || marked_room_for(size) != marked_room(page))
        return class_index == 0 && stays_large(size)
            && resize_large_here(block, page, *old_bytes, size);
    if (size > *old_bytes) __builtin_memset((char *)block + *old_bytes, 0, size - *old_bytes);
    if (class_index != 0)
        set_small(block, class_bytes[class_index], size,
                  mark_read(block, class_bytes[class_index]) >> DOOR_SHIFT & DOOR_TO_MANUAL, true);
    else set_large(block, page, size, last_record(page)->bin.previous);
    return true;
}

bool hardened_move_pages(void *block, uint32_t page, size_t bytes, void *to)
{
    struct os_range from = { block, round_up(bytes, page_bytes()) };
    uint32_t to_page = page_at(to);
    size_t to_bytes = prairie_usable_size(to);
    struct counting_front *counting = counting_of(thread_front());

    if (page_record(page)->class_at != 0 || page_record(to_page)->class_at != 0) return false;
    /* Hooks have chosen what lies there. */
    if (page_is_manual(to_page)) return false;
    if (from.bytes > round_up(to_bytes, page_bytes()) || !large_may_move(bytes)) return false;
    if (!os_move(from, (struct os_range){ to, from.bytes })) return false;
    /* The last page came along whole. */
    __builtin_memset((char *)to + bytes, 0, from.bytes - bytes);
    if (page_is_held_hardened(page_record(to_page)))
        write_canaries((char *)to + to_bytes, data_bytes(to_page) - to_bytes);
    if (counting != NULL) counting_add_given(counting, large_bytes(page));
    end_large(thread_front()->cache, block, page);
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
                   held_mark(block, slack_of(mark), (mark >> DOOR_SHIFT & DOOR_TO_MANUAL) | door));
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
