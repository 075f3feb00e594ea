/* depot.c - where full and empty magazines are traded, one lock for a whole magazine of blocks.
 * SPDX-License-Identifier: MIT
 */
#include "arena_set.h"
#include "sparse.h"

/* The steps between blocks that are looked at, and how far apart blocks in order are. */
enum { ORDER_LOOKS = 8, NEAR_BLOCKS = 16 };

INLINE size_t full_bytes(unsigned class_index)
{
    return (size_t)magazine_capacity(class_index) * class_bytes[class_index];
}

/* A depot is bounded in bytes of blocks: what is not wanted goes back into the slabs. Small blocks,
 * of which a burst has many, get more room than large ones, which a fill costs little for. */
static unsigned full_max(unsigned class_index)
{
    size_t by_bytes =
        (class_index <= CLASS_OF_128 ? DEPOT_BYTES_MAX_TO_128 : DEPOT_BYTES_MAX_BEYOND_128)
        / full_bytes(class_index);

    if (by_bytes < 1) return 1;
    return by_bytes < DEPOT_MAGAZINES_MAX ? (unsigned)by_bytes : DEPOT_MAGAZINES_MAX;
}

/* ---- swings ---- */

/* Blocks that come back from depots are scattered a little more each time, as every magazine turns
 * its blocks round and begins elsewhere; slabs give them back in the order of their addresses. So
 * the depots serve a program that breathes little, and one that breathes deeply gets its blocks
 * from slabs, unless they are scattered already and would cost too much to sort
 * (docs/decisions/0022). */
static void swing_out(struct swing *swing, size_t bytes)
{
    swing->bytes += bytes;
    if (swing->bytes <= swing->bytes_peak) return;
    swing->bytes_peak = swing->bytes;
    if (swing->bytes_peak > SWING_BYTES_MAX) swing->is_deep = true;
}

static void swing_back(struct swing *swing, size_t bytes)
{
    if (swing->bytes > bytes) {
        swing->bytes -= bytes;
        return;
    }
    swing->is_deep = swing->bytes_peak > SWING_BYTES_MAX;
    swing->bytes = swing->bytes_peak = 0;
}

/* A few looks: half of the steps from one block to the next are short. */
static bool is_in_order(void *const *blocks, unsigned count, size_t block_bytes)
{
    const size_t near = NEAR_BLOCKS * block_bytes;
    unsigned stride = count / ORDER_LOOKS + 1, looks = 0, steps = 0;

    for (unsigned i = stride; i < count; i += stride) {
        looks++;
        steps += (uintptr_t)blocks[i] - (uintptr_t)blocks[i - 1] + near <= 2 * near;
    }
    return 2 * steps >= looks;
}

/* ---- cooling ---- */

/* How many of a depot's youngest magazines cool; it may be more than there are. Who shares nothing
 * is spared the clock. */
static unsigned magazines_cooling(struct arena *arena, unsigned class_index)
{
    struct cooling *own;

    if (likely(arena->cooling == NULL) || !class_cools(class_index)) return 0;
    own = &arena->cooling->of_class[class_index];
    return cooling_was_any(own) ? cooling_advance(own, cooling_now()) : 0;
}

/* The same with one more, unless there is no room. */
static unsigned begin_cooling(struct arena *arena, unsigned class_index)
{
    unsigned kib = (unsigned)(round_up(full_bytes(class_index), KiB) / KiB), cooling;
    struct cooling *all, *own;
    uint16_t now;

    check(class_cools(class_index));
    if (arena->cooling == NULL) arena->cooling = meta_take(sizeof *arena->cooling);
    if (arena->cooling == NULL) return 0;
    all = &arena->cooling->kib;
    own = &arena->cooling->of_class[class_index];
    now = cooling_now();
    cooling = cooling_advance(own, now);
    if (cooling_advance(all, now) + kib > COOLING_BYTES_MAX / KiB) return cooling;
    cooling_add(all, kib);
    cooling_add(own, 1);
    return cooling + 1;
}

void depots_end_cooling(void)
{
    EACH_ARENA (arena) {
        lock_take(&arena->lock);
        if (arena->cooling != NULL) __builtin_memset(arena->cooling, 0, sizeof *arena->cooling);
        lock_give(&arena->lock);
    }
}

/* ---- trading ---- */

bool depots_closed;

static void **take_first(struct magazine_list *list)
{
    void **magazine = list->first;

    if (magazine == NULL) return NULL;
    list->first = magazine[0];
    magazine[0] = NULL; /* M1 */
    if (--list->count < list->low) list->low = list->count;
    return magazine;
}

/* The oldest, unless it cools. */
static void **take_ready(struct arena *arena, unsigned class_index)
{
    struct magazine_list *full = &arena->bin[class_index].depot.full;

    return full->count > magazines_cooling(arena, class_index) ? take_first(full) : NULL;
}

static void **take_empty(struct arena *arena, unsigned class_index)
{
    void **empty = take_first(&arena->bin[class_index].depot.empty);

    return empty != NULL
             ? empty
             : meta_take_from_row(&arena->row, magazine_bytes(magazine_capacity(class_index)));
}

static void put_empty(struct depot *depot, void **empty)
{
    empty[0] = depot->empty.first;
    depot->empty.first = empty;
    depot->empty.count++;
}

static void append_full(struct depot *depot, void **magazine)
{
    magazine[0] = NULL;
    if (depot->full.first == NULL) depot->full.first = magazine;
    else depot->full_last[0] = magazine;
    depot->full_last = magazine;
    depot->full.count++;
}

/* Before those that cool. */
static void prepend_full(struct depot *depot, void **magazine)
{
    if (depot->full.first == NULL) depot->full_last = magazine;
    magazine[0] = depot->full.first;
    depot->full.first = magazine;
    depot->full.count++;
}

void **depot_take_full(struct arena *arena, unsigned class_index, void **empty)
{
    struct depot *depot = &arena->bin[class_index].depot;
    void **full;

    check(lock_is_mine(&arena->lock));
    swing_back(&arena->swing, full_bytes(class_index));
    full = take_ready(arena, class_index);
    if (full == NULL) return NULL;
    put_empty(depot, empty);
    arena->trades++;
    return full;
}

/* Up to `wanted` of the opened magazine's blocks, into the slots above `slots`. How many. */
static unsigned take_opened(struct depot *depot, void **slots, unsigned wanted)
{
    unsigned count = (unsigned)min_size(wanted, depot->opened_count);

    depot->opened_count -= count;
    __builtin_memcpy(slots + 1, depot->opened + 1 + depot->opened_count, count * sizeof *slots);
    if (depot->opened_count == 0) {
        put_empty(depot, depot->opened);
        depot->opened = NULL;
    }
    return count;
}

unsigned depot_take_some(struct arena *arena, unsigned class_index, void **slots, unsigned wanted)
{
    struct depot *depot = &arena->bin[class_index].depot;

    check(lock_is_mine(&arena->lock));
    if (depot->opened == NULL) {
        depot->opened = take_ready(arena, class_index);
        if (depot->opened == NULL) return 0;
        depot->opened_count = magazine_capacity(class_index);
    }
    return take_opened(depot, slots, wanted);
}

/* Blocks of other arenas stay, and what is left of the opened magazine goes to them: each full one
 * is full. */
static void drain_oldest(struct arena *arena, unsigned class_index)
{
    struct depot *depot = &arena->bin[class_index].depot;
    unsigned capacity = magazine_capacity(class_index), others;
    void **oldest = take_first(&depot->full);

    if (oldest == NULL) return;
    others = arena_drain(arena, class_index, oldest + 1, capacity);
    if (others != 0 && depot->opened != NULL)
        others += take_opened(depot, oldest + others, capacity - others);
    if (others == 0) {
        put_empty(depot, oldest);
    } else if (others == capacity) {
        append_full(depot, oldest); /* as the first one it would be drained again next, in vain */
    } else {
        depot->opened = oldest;
        depot->opened_count = others;
    }
}

/* What is not wanted leaves oldest first: the young blocks are the warm ones, and a block that was
 * freed twice is found when its slab gets it back. */
void **depot_trade_full(struct arena *arena, unsigned class_index, void **full, bool cools,
                        bool *drain)
{
    struct depot *depot = &arena->bin[class_index].depot;
    void **given = NULL;
    unsigned cooling, most;

    check(lock_is_mine(&arena->lock));
    *drain = true;
    swing_out(&arena->swing, full_bytes(class_index));
    if (RELAXED_LOAD(depots_closed) || unlikely(arena->is_manual)) return full;
    cooling = cools ? begin_cooling(arena, class_index) : magazines_cooling(arena, class_index);
    most = cooling + full_max(class_index);
    if (unlikely(depot->full.count > most)) drain_oldest(arena, class_index); /* they have cooled */
    if (cools && cooling != 0) {
        append_full(depot, full);
        if (depot->full.count <= cooling) given = take_empty(arena, class_index);
        if (given != NULL) {
            arena->trades++;
            *drain = false;
            return given;
        }
        full = take_first(&depot->full); /* the oldest is asked whether it may stay */
    }
    if (arena->swing.is_deep
        && is_in_order(full + 1, magazine_capacity(class_index), class_bytes[class_index]))
        return full;
    if (slabs_are_sparse(&arena->bin[class_index], class_index)) {
        if (depot->full.count > cooling) drain_oldest(arena, class_index);
        return full;
    }
    if (depot->full.count < most) given = take_empty(arena, class_index);
    *drain = given == NULL;
    if (given == NULL && (cooling != 0 || depot->full.first == NULL)) return full;
    if (cooling != 0) prepend_full(depot, full);
    else append_full(depot, full);
    arena->trades++;
    return given != NULL ? given : take_first(&depot->full);
}

unsigned depot_pass_full(struct arena *arena, unsigned class_index, void **full)
{
    swing_out(&arena->swing, full_bytes(class_index));
    return arena_drain(arena, class_index, full + 1, magazine_capacity(class_index));
}

/* ---- emptying ---- */

/* Gives back a full magazine and an empty one, or the opened one. One at a time: its blocks may
 * belong to any arena, and no two arena locks are held at once. False: there was none. */
static bool give_magazines(struct arena *arena, unsigned class_index, bool opened)
{
    struct depot *depot = &arena->bin[class_index].depot;
    unsigned count = magazine_capacity(class_index);
    size_t bytes = magazine_bytes(count);
    void **full, **empty = NULL;

    lock_take(&arena->lock);
    if (opened) {
        full = depot->opened;
        count = depot->opened_count;
        depot->opened = NULL;
        depot->opened_count = depot->opened_seen = 0;
    } else {
        full = take_first(&depot->full);
        empty = take_first(&depot->empty);
    }
    lock_give(&arena->lock);
    if (full != NULL) {
        arenas_drain(class_index, full + 1, count);
        meta_give(full, bytes);
    }
    if (empty != NULL) meta_give(empty, bytes);
    return full != NULL || empty != NULL;
}

/* As of a moment ago: most of them are empty, and not worth a lock. */
INLINE_READS_UNLOCKED bool has_magazines(const struct depot *depot)
{
    return (depot->full.count | depot->empty.count) != 0 || depot->opened != NULL;
}

/* A depot's magazines: all of them, or half of those that nobody took. How many. No more than there
 * were: what others bring meanwhile could go on for ever. */
static unsigned drain_depot(struct arena *arena, unsigned class_index, enum clear_what what)
{
    struct depot *depot = &arena->bin[class_index].depot;
    bool all = what == CLEAR_ALL, opened;
    unsigned most, cooling, drained = 0;

    if (!has_magazines(depot)) return 0;
    lock_take(&arena->lock);
    cooling = magazines_cooling(arena, class_index);
    most = depot->full.low > cooling ? (depot->full.low - cooling + 1) / 2 : 0;
    if (most == 0 && depot->full.count == 0) most = (depot->empty.count + 1) / 2;
    if (all) most = (unsigned)max_size(depot->full.count, depot->empty.count);
    opened = depot->opened != NULL && (all || depot->opened_seen == depot->opened_count);
    depot->full.low = depot->full.count;
    depot->opened_seen = depot->opened_count;
    lock_give(&arena->lock);
    if (opened) drained += give_magazines(arena, class_index, true);
    while (most-- > 0 && give_magazines(arena, class_index, false)) drained++;
    return drained;
}

bool (*arenas_clear_above)(enum clear_what what) SEALED;

bool arenas_clear(enum clear_what what)
{
    unsigned drained = arenas_clear_above != NULL && arenas_clear_above(what) ? 1 : 0, returned = 0;

    EACH_ARENA (arena) {
        for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
            drained += drain_depot(arena, class_index, what);
        if (what == CLEAR_ALL) continue; /* arenas_close_empty returns them all */
        lock_take(&arena->lock);
        for (unsigned pages = 1; pages <= STOCK_PAGES_MAX; pages++)
            returned += stock_return_unneeded(&arena->stock[pages]);
        lock_give(&arena->lock);
    }
    if (what == CLEAR_ALL || drained > 0) arenas_close_empty();
    return drained + returned > 0;
}
