/* quarantine.c - blocks and runs that wait, and leave at random.
 * SPDX-License-Identifier: MIT
 */
#include "quarantine.h"

#include "../policy/limits.h"

/* One draw orders the next eight places, two groups of four. Where a class has 16 places or more,
 * half of the draws skip one group first. So no place comes again before half of them were taken.
 * With two or four places both groups are the same places, and the last one of a draw may be the
 * first of the next. */
enum { GROUP = 4 };
#define IN_EACH_BYTE UINT64_C(0x0101010101010101)
#define IN_SECOND_GROUP UINT64_C(0x0101010100000000)

static uint16_t places_for(unsigned class_index)
{
    size_t bytes = class_bytes[class_index];
    size_t few =
        max_size(min_size(WAITING_BYTES_WANTED / bytes, WAITING_BLOCKS_MAX), WAITING_BLOCKS_WANTED);

    few = max_size(min_size(few, WAITING_BYTES_MAX / bytes), WAITING_BLOCKS_MIN);
    return (uint16_t)((size_t)1 << highest_bit(few));
}

static size_t places_bytes(const struct held_class *held)
{
    return held->waiting_max * sizeof held->waiting[0];
}

static uint64_t draw(struct quarantine *quarantine)
{
    quarantine->random = quarantine->random * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
    return quarantine->random >> 32;
}

/* NULL: no memory. */
static COLD struct quarantine *begin_quarantine(struct cache *cache)
{
    struct quarantine *quarantine = meta_take(sizeof *quarantine);

    if (quarantine == NULL) return NULL;
    quarantine->random = os_random();
    RELAXED_STORE(cache->front.quarantine, meta_number(quarantine));
    return quarantine;
}

INLINE struct quarantine *quarantine_for(struct cache *cache)
{
    struct quarantine *quarantine = quarantine_of(cache);

    return likely(quarantine != NULL) ? quarantine : begin_quarantine(cache);
}

/* False: no memory. */
static COLD bool begin_class(struct held_class *held, unsigned class_index)
{
    held->waiting_max = places_for(class_index);
    held->waiting = meta_take(places_bytes(held));
    return held->waiting != NULL;
}

/* Orders of four in which no three stand as they lay, two bits for each place. */
#define ORDER(a, b, c, d) ((a) | (b) << 2 | (c) << 4 | (d) << 6)
static const uint8_t orders[16] = { ORDER(0, 1, 3, 2), ORDER(0, 2, 1, 3), ORDER(0, 2, 3, 1),
                                    ORDER(0, 3, 1, 2), ORDER(1, 0, 2, 3), ORDER(1, 2, 0, 3),
                                    ORDER(1, 3, 0, 2), ORDER(1, 3, 2, 0), ORDER(2, 0, 1, 3),
                                    ORDER(2, 0, 3, 1), ORDER(2, 1, 3, 0), ORDER(2, 3, 1, 0),
                                    ORDER(3, 0, 2, 1), ORDER(3, 1, 0, 2), ORDER(3, 1, 2, 0),
                                    ORDER(3, 2, 0, 1) };

static void shuffle(struct quarantine *quarantine, void **slots, size_t count)
{
    for (; count >= 4; slots += 4, count -= 4) {
        unsigned order = orders[draw(quarantine) >> 28];
        void *const four[] = { slots[0], slots[1], slots[2], slots[3] };

        for (unsigned i = 0; i < 4; i++, order >>= 2) slots[i] = four[order & 3];
    }
    if (count > 1) { /* two or three */
        void **other = &slots[1 + draw(quarantine) % (count - 1)], *first = slots[0];

        slots[0] = *other;
        *other = first;
    }
}

/* The i-th place taken of a group is number i of it, with some bits flipped. */
static void draw_order(struct held_class *held, uint64_t random)
{
    unsigned mask = held->waiting_max - 1u;
    uint64_t twist = (random >> 8 & (GROUP - 1)) * IN_EACH_BYTE;

    /* With fewer places the second group are those of the first one. */
    if (mask >= 2 * GROUP - 1u) twist ^= (random >> 16 & (GROUP - 1)) * IN_SECOND_GROUP;
    if (mask >= 4 * GROUP - 1u) held->place = (uint16_t)((held->place + (random & GROUP)) & mask);
    held->order = (((UINT64_C(0x0706050403020100) ^ twist) + held->place * IN_EACH_BYTE)
                   & mask * IN_EACH_BYTE)
                + IN_EACH_BYTE;
    held->place = (uint16_t)((held->place + 2 * GROUP) & mask);
}

static void shuffle_fetched(struct cache *cache, unsigned class_index, void **block)
{
    struct quarantine *quarantine = quarantine_for(cache);
    void **first = cache_loaded(cache, class_index) + 1;
    void **top = cache->front.magazine[class_index].top, *other;

    if (unlikely(quarantine == NULL)) return;
    shuffle(quarantine, first, (size_t)(top + 1 - first));
    other = *top;
    *top = *block;
    *block = other;
}

/* The cache may be drained meanwhile: by hooks that run, or before memory is refused. A thread that
 * is bound to a manual arena keeps no blocks of it ready: the usual way would mark them as those of
 * any arena, and others who free them would keep them (Q1). */
void *quarantine_take(struct cache *cache, unsigned class_index)
{
    const struct magazine *magazine = &cache->front.magazine[class_index];
    bool was_empty = *magazine->top == NULL;
    void *block;

    if (unlikely(cache_is_bound_to_manual(cache))) return cache_take_one(cache, NULL, class_index);
    block = cache_take(cache, class_index);
    if (*magazine->top == NULL) return block;
    if (unlikely(cache_is_bound_to_manual(cache))) { /* by a hook, just now */
        cache_drain_all(cache);
        return block;
    }
    if (was_empty) shuffle_fetched(cache, class_index, &block);
    quarantine_touch(*magazine->top, class_bytes[class_index]);
    return block;
}

void *quarantine_fill(struct cache *cache, unsigned class_index, void *block)
{
    struct quarantine *quarantine = quarantine_for(cache);
    struct held_class *held;

    if (unlikely(quarantine == NULL)) return block;
    held = &quarantine->held[class_index];
    if (unlikely(held->waiting == NULL) && !begin_class(held, class_index)) return block;
    draw_order(held, draw(quarantine));
    return quarantine_exchange(held, block);
}

void *quarantine_look(struct cache *cache, unsigned class_index)
{
    struct quarantine *quarantine = quarantine_of(cache);
    struct held_class *held = quarantine != NULL ? &quarantine->held[class_index] : NULL;

    if (held == NULL || held->waiting_count == 0) return NULL;
    held->looked_at = (held->looked_at + 1) & (held->waiting_max - 1);
    return held->waiting[held->looked_at];
}

/* ---- runs ---- */

uint32_t closing_left;
uint64_t closing_ms;

/* The first time all of it is there. */
static COLD size_t reckon_closing(size_t left)
{
    uint64_t before_ms = RELAXED_LOAD(closing_ms), now_ms = os_now_ms();

    if (before_ms != 0 && now_ms <= before_ms) return left;
    RELAXED_STORE(closing_ms, now_ms);
    if (before_ms == 0 || now_ms - before_ms > CLOSED_PAGES_AT_ONCE) return CLOSED_PAGES_AT_ONCE;
    return min_size(left + (size_t)(now_ms - before_ms) * CLOSED_PAGES_PER_MS,
                    CLOSED_PAGES_AT_ONCE);
}

bool quarantine_may_close(size_t pages)
{
    size_t left = RELAXED_LOAD(closing_left);
    bool may;

    pages += CLOSING_COSTS_PAGES;
    if (pages > left) left = reckon_closing(left);
    may = pages <= left;
    RELAXED_STORE(closing_left, (uint32_t)(may ? left - pages : left));
    return may;
}

void quarantine_close_less(void)
{
    size_t left = RELAXED_LOAD(closing_ms) == 0 ? CLOSED_PAGES_AT_ONCE : RELAXED_LOAD(closing_left);

    RELAXED_STORE(closing_ms, os_now_ms());
    RELAXED_STORE(closing_left, (uint32_t)min_size(left, CLOSED_PAGES_OF_CHILD));
}

static size_t run_bytes(uint32_t page)
{
    return (size_t)page_record(page)->run_pages << space.page_shift;
}

/* Where purging closes pages, those of free runs are closed. */
void quarantine_return_closed(uint32_t page)
{
    struct page *record = page_record(page);

    if (!OS_PURGE_CLOSES && !os_unguard((struct os_range){ page_address(page), run_bytes(page) })) {
        page_mark_cached(record); /* lost, but nobody's */
        return;
    }
    page_unmark_cached(record);
    run_return_clean(page);
}

static void return_open(uint32_t page)
{
    uint32_t behind = page + page_record(page)->run_pages - 1;
    struct page *last = page_record(behind);

    if ((last->bin.previous & RUN_GUARDED) != 0
        && !os_unguard((struct os_range){ page_address(behind), page_bytes() })) {
        page_mark_cached(page_record(page)); /* as above */
        return;
    }
    last->bin.previous = 0;
    page_unmark_cached(page_record(page));
    run_return(page);
}

static size_t waiting_bytes; /* atomic: of all quarantines */

static size_t waiting_bytes_max(void)
{
    return min_size(WAITING_RUN_BYTES, limits_hard() / WAITING_LIMIT_SHARE);
}

static bool may_wait(uint32_t page)
{
    size_t bytes = run_bytes(page);

    if (__atomic_add_fetch(&waiting_bytes, bytes, __ATOMIC_RELAXED) <= waiting_bytes_max())
        return true;
    (void)__atomic_sub_fetch(&waiting_bytes, bytes, __ATOMIC_RELAXED);
    return false;
}

/* The child of a fork that came in the middle of a drain gives back what it did not count. */
static void count_waiting_less(size_t bytes)
{
    size_t left = __atomic_sub_fetch(&waiting_bytes, bytes, __ATOMIC_RELAXED);

    if (unlikely(left > SIZE_MAX / 2)) RELAXED_STORE(waiting_bytes, (size_t)0);
}

/* Those of the other threads wait for ever. */
void quarantines_forget_others(const struct cache *mine)
{
    const struct quarantine *quarantine = mine != NULL ? quarantine_of(mine) : NULL;

    RELAXED_STORE(waiting_bytes,
                  quarantine != NULL ? (size_t)quarantine->run_pages << space.page_shift : 0);
}

static void count_runs(struct quarantine *quarantine, uint32_t pages, uint32_t open_pages,
                       uint32_t runs)
{
    RELAXED_STORE(quarantine->all_open_pages, quarantine->all_open_pages + open_pages);
    RELAXED_STORE(quarantine->run_pages, quarantine->run_pages + pages);
    RELAXED_STORE(quarantine->run_count, quarantine->run_count + runs);
}

/* It no longer waits. Returns its page. */
static uint32_t take_place(struct quarantine *quarantine, unsigned place)
{
    uint32_t page = quarantine->run[place];

    count_runs(quarantine, 0 - page_record(page)->run_pages, 0 - quarantine->open_pages[place],
               0 - 1u);
    quarantine->open_pages[place] = 0;
    quarantine->run[place] = 0;
    count_waiting_less(run_bytes(page));
    return page;
}

static void end_waiting(struct quarantine *quarantine, unsigned place)
{
    bool is_open = quarantine->open_pages[place] != 0;
    uint32_t page;

    if (quarantine->run[place] == 0) return;
    page = take_place(quarantine, place);
    if (is_open) return_open(page);
    else quarantine_return_closed(page);
}

static void put_run(struct quarantine *quarantine, uint32_t page, uint32_t open_pages)
{
    unsigned place = quarantine->oldest_run;

    end_waiting(quarantine, place);
    quarantine->oldest_run = (place + 1) % WAITING_RUNS;
    quarantine->run[place] = page;
    quarantine->open_pages[place] = open_pages;
    page_mark_cached(page_record(page));
    count_runs(quarantine, page_record(page)->run_pages, open_pages, 1);
}

/* Who writes to what was freed mostly does so soon: what came first leaves for it. What other
 * threads' blocks take of the room for all, they keep. False: that leaves too little. */
static bool make_room(struct quarantine *quarantine, uint32_t page)
{
    size_t own = (size_t)quarantine->run_pages << space.page_shift;

    if (may_wait(page)) return true;
    if (RELAXED_LOAD(waiting_bytes) + run_bytes(page) > waiting_bytes_max() + own) return false;
    for (unsigned i = 0; i < WAITING_RUNS; i++) {
        end_waiting(quarantine, (quarantine->oldest_run + i) % WAITING_RUNS);
        if (may_wait(page)) return true;
    }
    return false;
}

void quarantine_put_closed(struct cache *cache, uint32_t page)
{
    struct quarantine *quarantine = quarantine_for(cache);

    if (unlikely(quarantine == NULL) || !make_room(quarantine, page))
        quarantine_return_closed(page);
    else put_run(quarantine, page, 0);
}

void quarantine_put_open(struct cache *cache, uint32_t page)
{
    struct quarantine *quarantine = quarantine_for(cache);
    size_t pages = page_record(page)->run_pages, most = OPEN_RUNS_BYTES_MAX >> space.page_shift;

    if (unlikely(quarantine == NULL) || pages > most || !make_room(quarantine, page)) {
        return_open(page);
        return;
    }
    for (unsigned i = 0; i < WAITING_RUNS && quarantine->all_open_pages + pages > most; i++) {
        unsigned place = (quarantine->oldest_run + i) % WAITING_RUNS;

        if (quarantine->open_pages[place] != 0) end_waiting(quarantine, place);
    }
    put_run(quarantine, page, (uint32_t)pages);
}

void *quarantine_take_open(struct cache *cache, size_t pages)
{
    struct quarantine *quarantine = quarantine_of(cache);
    uint32_t page;

    if (quarantine == NULL || quarantine->all_open_pages < pages) return NULL;
    for (unsigned i = 0; i < WAITING_RUNS - 1; i++) {
        unsigned place = (quarantine->oldest_run + i) % WAITING_RUNS;

        if (quarantine->open_pages[place] != pages) continue;
        page = take_place(quarantine, place);
        page_unmark_cached(page_record(page));
        return page_address(page);
    }
    return NULL;
}

/* They come to stand in front. Returns how many they are. */
static unsigned together(struct held_class *held)
{
    unsigned count = 0;

    for (unsigned i = 0; i < held->waiting_max; i++)
        if (held->waiting[i] != NULL) held->waiting[count++] = held->waiting[i];
    return count;
}

void quarantine_drain(struct cache *cache)
{
    struct quarantine *quarantine = quarantine_of(cache);

    RELAXED_STORE(cache->front.quarantine, 0u);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        struct held_class *held = &quarantine->held[class_index];

        if (held->waiting == NULL) continue;
        arenas_drain(class_index, held->waiting, together(held));
        meta_give(held->waiting, places_bytes(held));
    }
    for (unsigned i = 0; i < WAITING_RUNS; i++) end_waiting(quarantine, i);
    meta_give(quarantine, sizeof *quarantine);
}
