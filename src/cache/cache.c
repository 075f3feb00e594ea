/* cache.c - what happens when a magazine is empty or full, cheapest way first.
 * SPDX-License-Identifier: MIT
 */
#include "growth.h"
#include "large_cache.h"
#include "quarantine.h"
#include "sleepers.h"

#include "../arenas/manual.h"
#include "../arenas/decay.h"

_Static_assert(sizeof(struct cache) <= 4096, "a cache is one page");
_Static_assert(offsetof(struct front, left)
                       == offsetof(union front_constant, nothing[2 * CLASS_COUNT])
                   && offsetof(struct front, cache) == offsetof(union front_constant, none)
                   && offsetof(struct front, kind) == offsetof(union front_constant, none[1]),
               "the constants begin like a front");
_Static_assert(offsetof(struct cache, front) == 0, "a front of kind FRONT_CACHE is a cache");
_Static_assert(sizeof(struct magazine) == OFFSET_PER_CLASS * sizeof(void *), "offsets count words");

/* Blocks that a thread gives back one by one before it keeps those of a class it does not take
 * from. */
enum { STRANGERS_BEFORE_FIRST = 2 };
/* Refills without an overflow between them after which a class gets two magazines at once, and
 * overflows after which it gives two. */
enum { STREAK_BEFORE_TWO = 4 };

/* Times that hooks are asked for a request: another thread may take what they gave. */
enum { GROWTHS_MAX = 4 };

unsigned cached_class_max SEALED = CLASS_COUNT - 1;
uint16_t cached_guarded_from SEALED = 1024; /* guard_sample, unless somebody sets it */

/* An empty bottom slot; and of no class any block is left. */
static const union {
    void *slot;
    uint16_t left[CLASS_COUNT];
} nothing;

const union front_constant front_empty = { { .nothing = { [0 ... 2 * CLASS_COUNT + 1] = &nothing },
                                             .kind = FRONT_GONE } };

void front_clear(struct front *front, enum front_kind kind)
{
    front->kind = (uint8_t)kind;
    front->nothing = NULL;
    for (unsigned class_index = 0; class_index < CLASS_COUNT; class_index++)
        front->magazine[class_index] = (struct magazine){ &front->nothing, &front->nothing };
}

void cache_guard_from(struct cache *cache, uint16_t from)
{
    RELAXED_STORE(cached_guarded_from, from);
    if (cache != NULL) cache->front.guarded_from = from;
}

void cache_init(struct cache *cache)
{
    front_clear(&cache->front, FRONT_CACHE);
    cache->front.cache = cache;
    cache->front.left = nothing.left;
    cache->front.keeps_runs = true;
    cache->front.quarantine = 0;
    cache->class_max = (uint8_t)cached_class_max;
    cache->front.guarded_from = RELAXED_LOAD(cached_guarded_from);
    __builtin_memset(cache->spare, 0, sizeof cache->spare);
}

#define CACHE_BYTES round_up(sizeof(struct cache), 4 * KiB)

struct cache *cache_make(void)
{
    struct cache *cache = meta_take(CACHE_BYTES);

    if (cache != NULL) cache_init(cache);
    return cache;
}

void cache_give(struct cache *cache)
{
    if (cache->large_cache != NULL) meta_give(cache->large_cache, sizeof *cache->large_cache);
    check(cache->front.quarantine == 0);
    meta_give(cache, CACHE_BYTES);
}

/* ---- room ---- */

/* After a block was taken that was not ready. Not after one was given back: who only frees what
 * others took would come here each time. */
INLINE void close_room(struct cache *cache, unsigned class_index)
{
    struct magazine *magazine = &cache->front.magazine[class_index];

    if (!is_in_place(cache, cache_loaded(cache, class_index))) return;
    cache->spare[class_index].closed += (uint8_t)(magazine->limit - magazine->top);
    magazine->limit = magazine->top;
}

/* The spare magazine becomes the loaded one. */
static void swap_magazines(struct cache *cache, unsigned class_index)
{
    struct spare *spare = &cache->spare[class_index];
    void **slots = spare->slots;
    unsigned count = spare->count;

    spare->count = (uint16_t)loaded_count(cache, class_index);
    spare->slots = cache_loaded(cache, class_index);
    load_magazine(cache, class_index, slots, count);
}

/* ---- empty ---- */

/* The top block. NULLs above it are dropped (M3). NULL: there is none. */
static void *take_loaded(struct cache *cache, unsigned class_index)
{
    struct magazine *magazine = &cache->front.magazine[class_index];
    void **bottom = cache_loaded(cache, class_index);

    while (magazine->top != bottom) {
        void *block = *magazine->top--;
        if (likely(block != NULL)) return block;
    }
    return NULL;
}

/* Locked. NULL: no memory. */
static struct arena *arena_for(struct cache *cache)
{
    if (unlikely(cache == NULL)) {
        struct arena *arena = arena_choose_unhooked();
        return arena != NULL ? arena : arena_choose(NULL);
    }
    if (likely(cache->fixed == 0)) return cache->arena = arena_choose(cache->arena);
    if (cache_is_away(cache)) return arena_choose_unhooked();
    lock_take(&cache->arena->lock);
    return cache->arena;
}

NOINLINE struct page_heap *cache_move(struct cache *cache)
{
    if (cache->fixed == 0 && arena_choices() > 1) {
        struct arena *arena = arena_for_move(cache->arena);

        if (arena != NULL) cache->arena = arena;
    }
    return cache->arena != NULL ? cache->arena->page_heap : page_heap;
}

/* From the depot, which trades a full magazine for a full-size one and shares one with a small one.
 * True: it was traded. */
static bool load_from_depot(struct cache *cache, struct arena *arena, unsigned class_index)
{
    unsigned capacity = cache->spare[class_index].capacity;
    void **slots = cache_loaded(cache, class_index), **full;

    if (!is_full_size(cache, class_index)) {
        if (is_wide(cache, class_index)) capacity = cache_wide_part(cache, class_index);
        load_magazine(cache, class_index, slots,
                      depot_take_some(arena, class_index, slots, capacity));
        return false;
    }
    full = depot_take_full(arena, class_index, slots);
    load_magazine(cache, class_index, full != NULL ? full : slots, full != NULL ? capacity : 0);
    return full != NULL;
}

/* A class that only takes, in a burst perhaps, gets its spare magazine filled in the same go, from
 * where the loaded one was filled: so many blocks from slabs, or `wanted` is 0. True: it was
 * traded. */
static bool load_spare(struct spare *spare, struct arena *arena, unsigned class_index,
                       unsigned wanted)
{
    void **full;

    if (spare->streak < STREAK_BEFORE_TWO) {
        spare->streak = (int8_t)(spare->streak < 0 ? 1 : spare->streak + 1);
        return false;
    }
    if (wanted != 0) {
        spare->count = (uint16_t)arena_fill(arena, class_index, spare->slots, wanted, false);
        return false;
    }
    full = depot_take_full(arena, class_index, spare->slots);
    if (full == NULL) return false;
    spare->slots = full;
    spare->count = spare->capacity;
    return true;
}

/* A block out of the loaded magazine, which is empty and is filled first: from the depot, else from
 * slabs. */
static void *refill(struct cache *cache, unsigned class_index, bool may_grow)
{
    struct spare *spare = &cache->spare[class_index];
    struct arena *arena = arena_for(cache);
    bool traded, traded_spare = false;
    unsigned count = 0, wanted = 0;
    void *block;

    if (arena == NULL) return NULL;
    if (spare->capacity == 0) cache_use_first(cache, class_index);
    traded = load_from_depot(cache, arena, class_index);
    block = take_loaded(cache, class_index);
    if (block == NULL) {
        void **slots = cache_loaded(cache, class_index);

        traded = false;
        wanted = cache_fill_count(cache, class_index);
        count = arena_fill(arena, class_index, slots, wanted, may_grow);
        load_magazine(cache, class_index, slots, count);
        block = take_loaded(cache, class_index);
    }
    if (spare->slots != NULL && spare->count == 0 && (traded || (wanted != 0 && count == wanted)))
        traded_spare = load_spare(spare, arena, class_index, wanted);
    lock_give(&arena->lock);
    /* What comes from slabs has been looked at. */
    if (traded)
        magazine_expect_blocks(class_index, cache_loaded(cache, class_index), spare->capacity);
    if (traded_spare) magazine_expect_blocks(class_index, spare->slots, spare->capacity);
    return block;
}

/* A manual arena's blocks are for those alone who are bound to it, and hold no others. */
static void empty_if_manual(struct cache *cache)
{
    if (cache_is_bound_to_manual(cache)) cache_drain_all(cache);
}

/* Asks the arena's hooks for more, when it has any, on behalf of the calling thread. False: there
 * is none, or they themselves are asking. */
static bool thread_grow(struct arena *arena, size_t pages, size_t align_pages)
{
    struct cache *cache = thread_front()->cache;
    bool grown;

    if (RELAXED_LOAD(arena->extents) == NULL) return false;
    if (cache == NULL) return !thread_is_in_hooks() && arena_grow(arena, pages, align_pages);
    if (cache_is_away(cache)) return false;
    empty_if_manual(cache);
    cache->fixed |= CACHE_AWAY;
    grown = arena_grow(arena, pages, align_pages);
    cache->fixed &= (uint8_t)~CACHE_AWAY;
    empty_if_manual(cache);
    return grown;
}

void thread_flush(void)
{
    struct cache *cache = thread_front()->cache;

    if (cache != NULL) cache_drain_all(cache);
}

COLD bool thread_may_try_again(struct arena *arena, size_t pages, size_t align_pages,
                               struct attempts *attempts)
{
    if (arena != NULL && attempts->growths < GROWTHS_MAX
        && thread_grow(arena, pages, align_pages)) {
        attempts->growths++;
        return true;
    }
    if (attempts->gave_back) return false;
    *attempts = (struct attempts){ .gave_back = true };
    thread_flush();
    decay_before_refusal(pages);
    return true;
}

static void *take_anew(struct cache *cache, unsigned class_index)
{
    struct spare *spare = &cache->spare[class_index];
    struct attempts attempts = { 0, false };
    void *block;

    cache->refills++;
    cache_is_awake(cache);
    if (spare->capacity == 0) cache_use_first(cache, class_index);
    block = take_loaded(cache, class_index);
    if (block == NULL && spare->count > 0) {
        swap_magazines(cache, class_index);
        block = take_loaded(cache, class_index);
    }
    if (block != NULL) return block;
    cache_enlarge_if_pressed(cache, class_index);
    if (spare->slots == NULL && spare->pressure >= 2 && is_full_size(cache, class_index)) {
        /* Only for who takes. A thread that frees what others took trades one magazine as often as
         * two, and would hold another 32 KiB of every class for nobody. */
        spare->slots = meta_take(magazine_bytes(spare->capacity));
        spare->count = 0;
        spare->given = 0;
    } else if (spare->given != 0 && (spare->slots != NULL || is_wide(cache, class_index))) {
        cache_widen(cache, class_index);
    }
    block = refill(cache, class_index, !decay_could_reclaim());
    if (block != NULL) return block;
    if (decay_reclaim()) cache_drain_all(cache);
    do {
        block = take_loaded(cache, class_index);
        if (block == NULL) block = refill(cache, class_index, true);
    } while (block == NULL
             && thread_may_try_again(cache->arena, slab_pages(class_index), 1, &attempts));
    return block;
}

void *cache_take(struct cache *cache, unsigned class_index)
{
    void *block = magazine_take(&cache->front.magazine[class_index]);
    bool was_busy;

    if (likely(block != NULL)) return block;
    was_busy = cache_begin_call(cache);
    block = take_anew(cache, class_index);
    close_room(cache, class_index);
    cache_end_call(cache, was_busy);
    return block;
}

void *cache_take_one(struct cache *cache, struct arena *arena, unsigned class_index)
{
    void *slots[2] = { NULL, NULL };
    struct attempts attempts = { 0, false };
    struct arena *from, *hooked;

    do {
        if (arena != NULL) lock_take(&arena->lock);
        from = arena != NULL ? arena : arena_for(cache);
        if (from != NULL) {
            (void)arena_fill(from, class_index, slots, 1, true);
            lock_give(&from->lock);
        }
        hooked = arena == NULL && cache != NULL ? cache->arena : from;
    } while (slots[1] == NULL
             && thread_may_try_again(hooked, slab_pages(class_index), 1, &attempts));
    return slots[1];
}

/* ---- full ---- */

/* The older half goes, or of a wide one some; what was freed last is likely to be warm and is
 * wanted first. */
static void drain_some(struct cache *cache, unsigned class_index)
{
    unsigned count = (loaded_count(cache, class_index) + 1) / 2;

    if (is_wide(cache, class_index)) {
        count = cache_wide_part(cache, class_index);
        cache_note_given(&cache->spare[class_index], count);
    }
    cache_drain_first(cache, class_index, count);
}

/* A sized free believes the size, and puts a block of a manual arena among others. No slab of such
 * an arena is in the class map, which answers for most blocks. */
static bool has_manual(unsigned class_index, void *const *blocks, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct arena *home;

        if (likely(class_map_at(blocks[i]) != 0)) continue;
        home = arena_of_block(class_index, blocks[i]);
        if (home != NULL && home->is_manual) return true;
    }
    return false;
}

/* The arena into whose depot a full magazine may go. NULL: each of its blocks goes home, for a
 * depot would hand one of a manual arena to threads that never named that arena. */
static struct arena *home_of_full(unsigned class_index, void *const *blocks, unsigned count)
{
    if (unlikely(RELAXED_LOAD(arenas_have_manual)) && has_manual(class_index, blocks, count))
        return NULL;
    return arena_of_block(class_index, blocks[0]);
}

/* The loaded magazine, which is full, goes home to the arena of its blocks: into the depot, which
 * gives an empty one, or a full one to drain into the slabs. A class that only gives, whose blocks
 * the depot does not want, gives the spare one in the same go. Who counts blocks counts each once:
 * what is given is not the cache's any more. */
static void give_full(struct cache *cache, unsigned class_index)
{
    struct spare *spare = &cache->spare[class_index];
    void **full = cache_loaded(cache, class_index);
    unsigned left = spare->capacity;
    struct arena *home = home_of_full(class_index, full + 1, left);
    bool drain, cools = class_cools(class_index) && home != cache->arena && arena_choices() > 1;

    load_magazine(cache, class_index, full, 0);
    if (likely(home != NULL)) {
        lock_take(&home->lock);
        full = depot_trade_full(home, class_index, full, cools, &drain);
        left = drain ? arena_drain(home, class_index, full + 1, left) : 0;
        if (spare->slots != NULL && spare->streak > -STREAK_BEFORE_TWO) spare->streak--;
        else if (spare->slots != NULL && drain && !cools) {
            spare->count = (uint16_t)depot_pass_full(home, class_index, spare->slots);
            cache_note_given(spare, spare->capacity);
        }
        lock_give(&home->lock);
    }
    if (spare->slots != NULL) cache_note_given(spare, spare->capacity);
    arenas_drain(class_index, full + 1, left);
    load_magazine(cache, class_index, full, 0);
}

/* There is no room. */
static void put_anew(struct cache *cache, unsigned class_index, void *block)
{
    struct spare *spare = &cache->spare[class_index];

    cache->overflows++;
    cache_is_awake(cache);
    if (is_wide(cache, class_index)) spare->low = 0; /* what is full does not stand idle */
    else if (spare->streak > 0) spare->streak = 0;
    if (spare->capacity == 0) {
        /* A class that this thread has not taken from. What another thread handed over would be
         * given out here again, beside its neighbours that live there. */
        if (spare->pressure++ < STRANGERS_BEFORE_FIRST) {
            arenas_drain(class_index, &block, 1);
            return;
        }
        cache_use_first(cache, class_index);
    } else {
        cache_enlarge_if_pressed(cache, class_index);
    }

    if (loaded_count(cache, class_index) == spare->capacity) {
        if (!is_full_size(cache, class_index)) {
            drain_some(cache, class_index);
        } else {
            if (spare->slots != NULL) swap_magazines(cache, class_index);
            if (loaded_count(cache, class_index) == spare->capacity) give_full(cache, class_index);
        }
    }
    (void)magazine_put(&cache->front.magazine[class_index], block);
    if (unlikely(decay_after_return())) cache_drain_all(cache);
}

static NOINLINE void put_when_full(struct cache *cache, unsigned class_index, void *block)
{
    bool was_busy = cache_begin_call(cache);

    put_anew(cache, class_index, block);
    cache_end_call(cache, was_busy);
}

void cache_put(struct cache *cache, unsigned class_index, void *block)
{
    struct magazine *magazine = &cache->front.magazine[class_index];
    unsigned looks;
    bool closed;

    if (magazine_put(magazine, block)) return;
    closed = cache->spare[class_index].closed != 0;
    looks = (unsigned)min_size(loaded_count(cache, class_index),
                               closed ? FIRST_CAPACITY : MAGAZINE_LOOKS);
    if (unlikely(slots_have(magazine->top, looks, block)) && block != NULL)
        fatal_address("double free", block);
    /* Without a magazine its slab looks at it. */
    if (likely(cache->spare[class_index].capacity != 0)) arena_expect_block(class_index, block);
    if (!closed) {
        put_when_full(cache, class_index, block);
        return;
    }
    /* In this order: what it begins after is a block of it at every moment. */
    magazine->limit++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    cache->spare[class_index].closed--;
    (void)magazine_put(magazine, block);
}

/* ---- the end ---- */

void cache_drain_all(struct cache *cache)
{
    bool was_busy = cache_begin_call(cache);

    if (unlikely(cache->front.quarantine != 0)) quarantine_drain(cache);
    cache_forget_wide(cache);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        struct spare *spare = &cache->spare[class_index];
        void **loaded = cache_loaded(cache, class_index);

        if (spare->capacity != 0) {
            arenas_drain(class_index, loaded + 1, loaded_count(cache, class_index));
            if (!is_in_place(cache, loaded)) meta_give(loaded, magazine_bytes(spare->capacity));
        }
        if (spare->slots != NULL) {
            arenas_drain(class_index, spare->slots + 1, spare->count);
            meta_give(spare->slots, magazine_bytes(spare->capacity));
        }
        *spare = (struct spare){ .capacity = 0 };
        load_magazine(cache, class_index, &cache->front.nothing, 0);
    }
    cache_end_call(cache, was_busy);
    if (cache->large_cache != NULL) large_cache_drain(cache);
}

static void expect_blocks(unsigned class_index, void *const *slots, unsigned count)
{
    for (unsigned i = 1; i <= count; i++) arena_expect_block(class_index, slots[i]);
    magazine_expect_blocks(class_index, slots, count);
}

static void each_magazine(const struct cache *cache,
                          void (*visit)(unsigned class_index, void *const *slots, unsigned count))
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct spare *spare = &cache->spare[class_index];

        if (spare->capacity == 0) continue;
        visit(class_index, cache_loaded(cache, class_index), loaded_count(cache, class_index));
        if (spare->slots != NULL) visit(class_index, spare->slots, spare->count);
    }
}

/* A signal may have come anywhere, and its handler ends the process. */
COLD void cache_expect_blocks(const struct cache *cache)
{
    if (!cache->is_busy) each_magazine(cache, expect_blocks);
}

void cache_expect_once(const struct cache *cache) { each_magazine(cache, magazine_expect_blocks); }

/* Without an arena it may hold blocks that were put into it, of automatic ones. */
void cache_bind(struct cache *cache, struct arena *arena)
{
    if (cache->arena != arena
        && (arena->is_manual || (cache->arena != NULL && cache->arena->is_manual)))
        cache_drain_all(cache);
    cache->arena = arena;
    cache->fixed |= CACHE_BOUND;
    cache_aim(cache);
}

/* Away or not: what hooks do while they run holds when the thread is back. */
void cache_aim(struct cache *cache)
{
    bool owned = cache_is_bound(cache) && arena_if_counts_large(cache->arena) != NULL;

    cache->front.keeps_runs = !cache->is_off && !owned;
}

struct arena *cache_large_arena(const struct cache *cache)
{
    return cache->fixed == CACHE_BOUND ? arena_if_counts_large(cache->arena) : NULL;
}

void cache_check(struct cache *cache)
{
    require(cache->front.cache == cache && cache->front.kind == FRONT_CACHE); /* C3 */
    require(cache->front.left == nothing.left);                               /* F2 */
    require(cache->front.nothing == NULL);
    require(!cache_is_abandoned(cache)); /* C8 */
    if (cache->front.keeps_runs)
        require(!cache->is_off && !cache_is_bound_to_manual(cache)); /* C4 */
    large_cache_check(cache);
    quarantine_check(cache);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct spare *spare = &cache->spare[class_index];
        const struct magazine *magazine = &cache->front.magazine[class_index];
        void **loaded = cache_loaded(cache, class_index);

        require(!cache->is_off || spare->capacity == 0); /* C5 */
        if (spare->capacity == 0) {
            require(magazine->top == &cache->front.nothing
                    && magazine->limit == magazine->top); /* C1 */
            continue;
        }
        require(loaded[0] == NULL);                                           /* M1 */
        require(spare->closed == 0 || is_in_place(cache, loaded));            /* C6 */
        require(magazine->top >= loaded && magazine->top <= magazine->limit); /* C1, M2 */
        require(spare->slots == NULL || is_full_size(cache, class_index));    /* C2 */
        require(spare->slots != NULL || spare->count == 0);
        require(spare->capacity <= max_size(magazine_capacity(class_index), WIDE_BLOCKS_MAX));
    }
    require(cache_wide_bytes(cache) <= CACHE_WIDE_BYTES_MAX); /* C7 */
}
