/* cache_test.c - a thread's magazines: swapping, trading, NULLs among the blocks. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "caches.h"
#include "harms.h"

/* ---- empty ones ---- */

static void a_new_cache_has_no_blocks_and_no_room(void **state)
{
    struct cache *cache;

    (void)state;
    start_arenas(1);
    cache = make_test_cache();
    check_all(cache);
    for (unsigned class_index = 0; class_index < CLASS_COUNT; class_index++) {
        assert_null(magazine_take(&cache->front.magazine[class_index]));
        assert_false(magazine_put(&cache->front.magazine[class_index], cache));
    }
    check_all(cache);
}

static void the_constant_caches_never_change(void **state)
{
    struct front *constant[] = { EMPTY_FRONT, GONE_FRONT };

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(constant); i++) {
        for (unsigned class_index = 0; class_index < CLASS_COUNT; class_index++) {
            assert_null(front_take(constant[i], offset_of_class(class_index)));
            assert_false(front_put(constant[i], offset_of_class(class_index), &constant));
        }
    }
    assert_true(constant[0]->cache == NULL && constant[0]->kind == FRONT_EMPTY);
    assert_true(constant[1]->cache == NULL && constant[1]->kind == FRONT_GONE);
}

/* Class 0 is what NULL, large and foreign pointers have: it is always full and always empty. */
static void class_0_takes_and_gives_nothing(void **state)
{
    struct cache *cache;

    (void)state;
    start_arenas(1);
    cache = make_test_cache();
    press(cache, 3);
    assert_null(front_take(&cache->front, offset_of_class(0)));
    assert_false(front_put(&cache->front, offset_of_class(0), cache));
}

/* What another thread handed over goes back to its neighbours, unless there is much of it. */
static void the_first_strangers_go_home(void **state)
{
    struct cache *maker, *user;
    void *blocks[inside_strangers_before_first + 1];
    uint64_t free_blocks;

    (void)state;
    start_arenas(1);
    maker = make_test_cache();
    user = make_test_cache();
    for (unsigned i = 0; i <= inside_strangers_before_first; i++) blocks[i] = cache_take(maker, 2);
    free_blocks = arenas[0]->bin[2].slab_free_blocks;
    for (unsigned i = 0; i < inside_strangers_before_first; i++) {
        cache_put(user, 2, blocks[i]);
        assert_int_equal(arenas[0]->bin[2].slab_free_blocks, free_blocks + i + 1);
        assert_int_equal(user->spare[2].capacity, 0);
    }
    cache_put(user, 2, blocks[inside_strangers_before_first]);
    assert_ptr_equal(cache_take(user, 2), blocks[inside_strangers_before_first]);
    check_all(user);
    check_all(maker);
}

/* ---- what is put back wrong ---- */

static struct cache *wronged;
static unsigned wronged_class;
static char *wrong;

static void put_wrong(void) { cache_put(wronged, wronged_class, wrong); }
static void look_through(void) { cache_expect_blocks(wronged); }

static void expect_told(void (*misuse)(void), const char *words)
{
    expect_abort_at(misuse, words, wrong);
}

/* Whatever room its first magazine has. */
static void a_class_of_little_traffic_tells_at_once(void **state)
{
    (void)state;
    start_arenas(1);
    wronged = make_test_cache();
    for (wronged_class = 1; wronged_class < CLASS_COUNT; wronged_class++) {
        wrong = (char *)cache_take(wronged, wronged_class) + 1;
        expect_told(put_wrong, "free of an interior pointer");
        wrong--;
        cache_put(wronged, wronged_class, wrong);
        expect_told(put_wrong, "double free");
    }
    check_all(wronged);
}

/* It is in no magazine of this thread. */
static void a_block_that_is_free_in_its_slab_is_told(void **state)
{
    (void)state;
    start_arenas(1);
    wronged = make_test_cache();
    for (wronged_class = 1; wronged_class < CLASS_COUNT; wronged_class++) {
        void *block = cache_take(wronged, wronged_class);

        wrong = block;
        arenas_drain(wronged_class, &block, 1);
        expect_told(put_wrong, "double free");
    }
}

/* Each put opens it by one, until the magazine is full. */
static void closed_room_takes_all_that_is_right(void **state)
{
    struct cache *maker;

    (void)state;
    start_arenas(1);
    wronged = make_test_cache();
    maker = make_test_cache();
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        const struct magazine *magazine = &wronged->front.magazine[class_index];
        unsigned capacity;

        cache_put(wronged, class_index, cache_take(wronged, class_index));
        capacity = wronged->spare[class_index].capacity;
        while (magazine->top != cache_loaded(wronged, class_index) + capacity) {
            assert_ptr_equal(magazine->top, magazine->limit);
            cache_put(wronged, class_index, cache_take(maker, class_index));
            cache_check(wronged);
        }
        cache_put(wronged, class_index, cache_take(maker, class_index));
    }
    check_all(wronged);
    check_all(maker);
}

static void take_one(void) { (void)cache_take(wronged, wronged_class); }

/* A full magazine comes out of the depot. */
static void a_traded_magazine_is_looked_through(void **state)
{
    unsigned capacity;
    void **full;
    bool drain;

    (void)state;
    start_arenas(1);
    wronged_class = class_of_size(32);
    capacity = magazine_capacity(wronged_class);
    for (int interior = 0; interior <= 1; interior++) {
        wronged = make_test_cache();
        full = meta_take(magazine_bytes(capacity));
        for (unsigned i = 1; i <= capacity; i++) full[i] = cache_take(wronged, wronged_class);
        cache_drain_all(wronged);
        (void)arenas_clear(CLEAR_ALL);
        wrong = (char *)full[capacity] + 8 * interior;
        full[capacity - 1] = wrong;
        lock_take(&arenas[0]->lock);
        RELAXED_STORE(depots_closed, false);
        (void)depot_trade_full(arenas[0], wronged_class, full, false, &drain);
        lock_give(&arenas[0]->lock);
        assert_false(drain);
        wronged->spare[wronged_class].capacity = (uint16_t)capacity;
        load_magazine(wronged, wronged_class, meta_take(magazine_bytes(capacity)), 0);
        expect_told(take_one, interior ? "free of an interior pointer" : "double free");
        lock_take(&arenas[0]->lock);
        (void)depot_take_full(arenas[0], wronged_class, meta_take(magazine_bytes(capacity)));
        lock_give(&arenas[0]->lock);
        full[capacity - 1] = NULL;
        arenas_drain(wronged_class, full + 1, capacity);
    }
}

/* As a program does that ends. Nothing is changed by it. */
static void what_a_cache_holds_is_looked_through(void **state)
{
    void *block[SLOTS_MAX];

    (void)state;
    start_arenas(1);
    wronged = make_test_cache();
    cache_expect_blocks(wronged);
    for (wronged_class = 1; wronged_class < CLASS_COUNT; wronged_class++) {
        unsigned count = magazine_capacity(wronged_class);
        struct magazine *magazine = &wronged->front.magazine[wronged_class];

        press(wronged, wronged_class);
        for (unsigned i = 0; i < count; i++) block[i] = cache_take(wronged, wronged_class);
        for (unsigned i = 0; i < count; i++) cache_put(wronged, wronged_class, block[i]);
        cache_expect_blocks(wronged);
        for (count = 0; count == 0 || magazine->limit < magazine->top + 2; count++)
            block[count] = cache_take(wronged, wronged_class);
        magazine->top[1] = magazine->top[2] = block[0];
        magazine->top += 2;
        wrong = block[0];
        expect_told(look_through, "double free");
        magazine->top[0] = wrong = (char *)block[0] + 1;
        expect_told(look_through, "free of an interior pointer");
        magazine->top[0] = NULL; /* M3 */
        cache_expect_blocks(wronged);
        arenas_drain(wronged_class, block, 1);
        wrong = block[0];
        expect_told(look_through, "double free");
        magazine->top[-1] = NULL;
        cache_expect_blocks(wronged);
    }
    check_all(wronged);
}

/* ---- the order of sources ---- */

static void a_burst_that_fits_two_magazines_needs_no_lock(void **state)
{
    struct cache *cache;
    unsigned class_index = class_of_size(48), capacity;
    void *blocks[SLOTS_MAX];
    uint64_t taken;

    (void)state;
    start_arenas(1);
    cache = make_test_cache();
    press(cache, class_index);
    capacity = magazine_capacity(class_index);
    for (unsigned i = 0; i < capacity / 2; i++) blocks[i] = cache_take(cache, class_index);
    for (unsigned i = 0; i < capacity / 2; i++) cache_put(cache, class_index, blocks[i]);
    taken = arenas[0]->lock.taken;
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = 0; i < capacity; i++) blocks[i] = cache_take(cache, class_index);
        for (unsigned i = 0; i < capacity; i++) cache_put(cache, class_index, blocks[i]);
    }
    assert_int_equal(arenas[0]->lock.taken, taken);
    check_all(cache);
}

/* What goes past the depot goes two magazines at a time, and counts as what came back. */
static void a_class_that_only_gives_gives_two(void **state)
{
    enum { MAGAZINES = 60 };
    unsigned class_index = class_of_size(48), blocks = MAGAZINES * magazine_capacity(class_index);
    void **block = calloc(blocks, sizeof *block);
    struct cache *cache;
    uint64_t taken;
    size_t back;

    (void)state;
    start_arenas(1);
    cache = make_test_cache();
    press(cache, class_index);
    for (unsigned i = 0; i < blocks; i++) block[i] = cache_take(cache, class_index);
    inside_swing_out(&arenas[0]->swing, SWING_BYTES_MAX + 1);
    taken = arenas[0]->lock.taken;
    back = arenas[0]->swing.bytes;
    for (unsigned i = 0; i < blocks; i++) cache_put(cache, class_index, block[i]);
    assert_in_range(arenas[0]->lock.taken - taken, MAGAZINES / 2 - 2, MAGAZINES / 2 + 6);
    assert_in_range(arenas[0]->swing.bytes - back, (MAGAZINES - 3) * inside_full_bytes(class_index),
                    MAGAZINES * inside_full_bytes(class_index));
    check_all(cache);
    free(block);
}

/* ---- between two arenas ---- */

static struct cache *maker, *eater;

static void start_stream(unsigned arena_count, unsigned class_index)
{
    start_arenas(arena_count);
    maker = make_test_cache();
    eater = make_test_cache();
    maker->arena = arenas[0];
    eater->arena = arenas[arena_count - 1];
    press(maker, class_index);
    press(eater, class_index);
    if (arena_count == 1) eater->arena = NULL;
}

/* A steady stream from one cache to another trades whole magazines: few locks for many blocks. */
static void a_stream_between_caches_trades_magazines(void **state)
{
    unsigned class_index = class_of_size(64), capacity = magazine_capacity(class_of_size(64));
    uint64_t taken, drains;
    enum { BLOCKS = 20000 };

    (void)state;
    start_stream(2, class_index);
    taken = arenas[0]->lock.taken + arenas[1]->lock.taken;
    drains = arenas[0]->bin[class_index].flow.drains;
    for (unsigned i = 0; i < BLOCKS; i++)
        cache_put(eater, class_index, cache_take(maker, class_index));
    taken = arenas[0]->lock.taken + arenas[1]->lock.taken - taken;
    assert_true(taken <= BLOCKS / capacity * 3 + 10);
    assert_true(arenas[0]->trades >= BLOCKS / capacity);
    assert_true(arenas[0]->bin[class_index].flow.drains - drains
                <= 10); /* home, to where they are taken */
    check_all(maker);
    check_all(eater);
}

/* The maker takes so many magazines of blocks, and somebody gives them back. How often the giver
 * took the maker's arena's lock. */
static uint64_t pass_on(unsigned class_index, unsigned magazines, struct cache *giver)
{
    uint64_t taken;
    unsigned blocks = magazines * magazine_capacity(class_index);
    void **block = calloc(blocks, sizeof *block);

    for (unsigned i = 0; i < blocks; i++) block[i] = cache_take(maker, class_index);
    taken = arenas[0]->lock.taken;
    for (unsigned i = 0; i < blocks; i++) cache_put(giver, class_index, block[i]);
    taken = arenas[0]->lock.taken - taken;
    check_all(maker);
    check_all(eater);
    free(block);
    return taken;
}

/* Not larger blocks, nor what a thread gives back to the arena that it takes from. */
static void what_others_give_back_cools(void **state)
{
    unsigned large = class_of_size(129), small = class_of_size(128);

    (void)state;
    start_stream(2, small);
    press(maker, large);
    press(eater, large);
    (void)pass_on(small, 6, maker);
    (void)pass_on(large, 6, eater);
    assert_null(arenas[0]->cooling);
    (void)pass_on(small, 6, eater);
    assert_non_null(arenas[0]->cooling);
}

static void where_there_is_one_arena_nothing_cools(void **state)
{
    unsigned class_index = class_of_size(64);

    (void)state;
    start_stream(1, class_index);
    (void)pass_on(class_index, 6, eater);
    assert_null(arenas[0]->cooling);
}

/* The clock of this test stands still. */
static void what_cools_is_given_out_before_memory_is_refused(void **state)
{
    unsigned class_index = class_of_size(64);

    (void)state;
    start_stream(2, class_index);
    (void)pass_on(class_index, 6, eater);
    assert_in_range(arenas[0]->bin[class_index].depot.full.count, 1, 6);
    fake_fail_all(true);
    while (cache_take(maker, class_index) != NULL) {}
    assert_int_equal(arenas[0]->bin[class_index].depot.full.count, 0);
}

/* Where more comes than may cool, a spare magazine waits for its turn, and does not go past those
 * that cool into the slabs. */
static void a_spare_magazine_cools_too(void **state)
{
    enum { MAGAZINES = 400 };
    unsigned class_index = class_of_size(48);

    (void)state;
    start_stream(2, class_index);
    assert_true(MAGAZINES * inside_full_bytes(class_index) > 2 * COOLING_BYTES_MAX);
    assert_in_range(pass_on(class_index, MAGAZINES, eater), MAGAZINES - 6, MAGAZINES + 6);
}

/* A sized free believes the size, and puts a block of a manual arena among others. Threads that
 * never named that arena do not get it: it goes home when the magazine is full. */
static void blocks_of_a_manual_arena_stay_out_of_depots(void **state)
{
    enum { MAGAZINES = 6 };
    unsigned class_index = class_of_size(64), capacity = magazine_capacity(class_index);
    unsigned blocks = MAGAZINES * capacity;
    void **block = calloc(blocks, sizeof *block), *own[MAGAZINES + 1];
    struct cache *giver, *taker;
    struct arena *manual;

    (void)state;
    start_arenas(1);
    manual = arena_create();
    fill_all(manual->index, class_index, own, MAGAZINES);
    giver = make_test_cache();
    taker = make_test_cache();
    press(giver, class_index);
    press(taker, class_index);
    for (unsigned i = 0; i < blocks; i++) block[i] = cache_take(giver, class_index);
    for (unsigned i = 0; i < blocks; i++) {
        cache_put(giver, class_index, block[i]);
        if (i % capacity == 1) cache_put(giver, class_index, own[1 + i / capacity]);
    }
    for (unsigned i = 0; i < blocks; i++) {
        block[i] = cache_take(taker, class_index);
        assert_ptr_equal(arena_of_block(class_index, block[i]), arenas[0]);
    }
    check_all(giver);
    check_all(taker);
    free(block);
}

/* A cache that only frees holds one magazine of each class, and trades it as often as two. */
static void who_only_frees_has_one_magazine(void **state)
{
    struct cache *maker, *eater;
    unsigned class_index = class_of_size(64), capacity = magazine_capacity(class_of_size(64));
    uint64_t taken, drains;
    enum { BLOCKS = 20000 };

    (void)state;
    start_arenas(1);
    maker = make_test_cache();
    eater = make_test_cache();
    press(maker, class_index);
    for (unsigned i = 0; i < BLOCKS; i++)
        cache_put(eater, class_index, cache_take(maker, class_index));
    assert_true(is_full_size(eater, class_index));
    taken = arenas[0]->lock.taken;
    drains = arenas[0]->bin[class_index].flow.drains;
    for (unsigned i = 0; i < BLOCKS; i++)
        cache_put(eater, class_index, cache_take(maker, class_index));
    assert_null(eater->spare[class_index].slots);
    assert_true(arenas[0]->lock.taken - taken <= BLOCKS / capacity * 2 + 10);
    assert_true(arenas[0]->bin[class_index].flow.drains - drains <= 10);
    check_all(maker);
    check_all(eater);
}

/* ---- M3: NULLs among the blocks ---- */

static void nothings_are_dropped_wherever_they_lie(void **state)
{
    struct cache *cache;
    unsigned class_index = class_of_size(32), capacity = magazine_capacity(class_of_size(32));
    void *blocks[2000];

    (void)state;
    start_arenas(1);
    cache = make_test_cache();
    press(cache, class_index);
    for (unsigned round = 0; round < 200; round++) {
        unsigned burst = (unsigned)(1 + random_below(4 * capacity));
        for (unsigned i = 0; i < burst; i++) {
            blocks[i] = cache_take(cache, class_index);
            assert_non_null(blocks[i]);
        }
        for (unsigned i = 0; i < burst; i++) {
            cache_put(cache, class_index, blocks[i]);
            while (random_below(3) == 0) cache_put(cache, class_index, NULL);
        }
        cache_check(cache);
    }
    check_all(cache);
    cache_drain_all(cache);
    (void)arenas_clear(CLEAR_ALL);
    check_all(cache);
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

/* Whole magazines of nothing, in the cache and in the depot. */
static void magazines_of_nothing_are_dropped(void **state)
{
    struct cache *cache;
    unsigned class_index = class_of_size(32), capacity = magazine_capacity(class_of_size(32));

    (void)state;
    start_arenas(1);
    cache = make_test_cache();
    press(cache, class_index);
    for (unsigned i = 0; i < 10 * capacity; i++) cache_put(cache, class_index, NULL);
    check_all(cache);
    for (unsigned i = 0; i < 10 * capacity; i++) assert_non_null(cache_take(cache, class_index));
    check_all(cache);
}

/* A block below, nothing on top of it: what a depot gives is looked at before it is handed out. */
static void nothings_in_a_traded_magazine_are_dropped(void **state)
{
    struct cache *cache;
    unsigned class_index = class_of_size(32), capacity = magazine_capacity(class_of_size(32));
    void **full;
    bool drain;

    (void)state;
    for (int small = 0; small <= 1; small++) {
        if (!small) start_arenas(1);
        cache = make_test_cache();
        if (!small) press(cache, class_index);
        full = meta_take(magazine_bytes(capacity));
        for (unsigned i = 1; i < capacity; i++) full[i] = cache_take(cache, class_index);
        cache_drain_all(cache);
        (void)arenas_clear(CLEAR_ALL);
        lock_take(&arenas[0]->lock);
        RELAXED_STORE(depots_closed, false);
        (void)depot_trade_full(arenas[0], class_index, full, false, &drain);
        lock_give(&arenas[0]->lock);
        assert_false(drain);
        if (!small) { /* a full-size magazine that is empty, and no spare */
            cache->spare[class_index].capacity = (uint16_t)capacity;
            load_magazine(cache, class_index, meta_take(magazine_bytes(capacity)), 0);
        }
        assert_non_null(cache_take(cache, class_index));
        check_all(cache);
    }
}

/* ---- refusals ---- */

static void refused_memory_refills_nothing(void **state)
{
    struct cache *cache;

    (void)state;
    start_arenas(1);
    cache = make_test_cache();
    fake_fail_all(true);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        while (cache_take(cache, class_index) != NULL) {}
    check_all(cache);
    fake_fail_all(false);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        assert_non_null(cache_take(cache, class_index));
    check_all(cache);
}

/* Blocks can always come back, whatever the kernel says. */
static void putting_needs_no_memory(void **state)
{
    enum { BLOCKS = 3000 };
    static void *blocks[BLOCKS];
    struct cache *cache;
    unsigned class_index = class_of_size(100);

    (void)state;
    start_arenas(1);
    cache = make_test_cache();
    for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = cache_take(cache, class_index);
    fake_fail_all(true);
    while (meta_take(META_UNIT_BYTES) != NULL) {}
    for (unsigned i = 0; i < BLOCKS; i++) cache_put(cache, class_index, blocks[i]);
    check_all(cache);
    for (unsigned i = 0; i < BLOCKS / 2; i++) assert_non_null(cache_take(cache, class_index));
    check_all(cache);
}

/* ---- the end ---- */

static void draining_gives_everything_back(void **state)
{
    struct cache *cache;
    size_t used;

    (void)state;
    start_arenas(2);
    cache = make_test_cache();
    used = meta_bytes_without_spares();
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        press(cache, class_index);
    cache_drain_all(cache);
    check_all(cache);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        assert_int_equal(cache->spare[class_index].capacity, 0);
    (void)arenas_clear(CLEAR_ALL);
    check_all(cache);
    assert_int_equal(meta_bytes_without_spares(), used);
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

/* ---- the walk ---- */

static struct cache *victim;
enum { VICTIM_CLASS = 4 };

static void c1_a_limit_too_high(void) { victim->front.magazine[VICTIM_CLASS].limit++; }
static void c1_an_unused_class_with_room(void) { victim->front.magazine[9].limit++; }
static void c1_an_unused_class_with_blocks(void) { victim->front.magazine[9].top++; }
static void c2_a_spare_beside_a_small_one(void)
{
    victim->spare[7].slots = victim->spare[VICTIM_CLASS].slots;
}
static void a_count_without_a_spare(void) { victim->spare[7].count = 1; }
static void m1_something_in_slot_0(void) { cache_loaded(victim, VICTIM_CLASS)[0] = victim; }
static void m2_top_above_the_limit(void)
{
    victim->front.magazine[VICTIM_CLASS].top = victim->front.magazine[VICTIM_CLASS].limit + 1;
}
static void m2_top_below_slot_0(void)
{
    victim->front.magazine[VICTIM_CLASS].top = cache_loaded(victim, VICTIM_CLASS) - 1;
}
static void something_in_nothing(void) { victim->front.nothing = victim; }
static void c3_of_another_kind(void) { victim->front.kind = FRONT_COUNTED; }
static void c3_before_no_cache(void) { victim->front.cache = NULL; }
static void c4_keeps_runs_while_it_is_off(void) { victim->is_off = true; }
static void c5_has_magazines_while_it_is_off(void)
{
    victim->is_off = true;
    victim->front.keeps_runs = false;
}
static void c6_room_is_closed_of_a_larger_one(void)
{
    struct magazine *magazine = &victim->front.magazine[VICTIM_CLASS];

    victim->spare[VICTIM_CLASS].closed = 1; /* and slot 0 stays where it was */
    magazine->limit--;
    if (magazine->top > magazine->limit) magazine->top = magazine->limit;
}
static void c7_wider_than_one_thread_may_be(void)
{
    static void *slots[CLASS_COUNT][WIDE_BLOCKS_MAX + 1];

    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        victim->spare[class_index] = (struct spare){ .capacity = WIDE_BLOCKS_MAX };
        victim->front.magazine[class_index] =
            (struct magazine){ .top = slots[class_index],
                               .limit = slots[class_index] + WIDE_BLOCKS_MAX };
    }
}
static void c8_nobodys(void) { victim->fixed |= CACHE_ABANDONED; }
static void f2_some_may_pass(void) { victim->front.left += 1; }
static void more_room_than_any_has(void)
{
    victim->spare[VICTIM_CLASS].capacity =
        (uint16_t)(max_size(magazine_capacity(VICTIM_CLASS), WIDE_BLOCKS_MAX) + 1);
}

static void check_victim(void) { cache_check(victim); }

static void broken_invariants_are_found(void **state)
{
    static const struct harm harms[] = {
        HARM(c1_a_limit_too_high),
        HARM(c1_an_unused_class_with_room),
        HARM(c1_an_unused_class_with_blocks),
        HARM(c2_a_spare_beside_a_small_one),
        HARM(a_count_without_a_spare),
        HARM(m1_something_in_slot_0),
        HARM(m2_top_above_the_limit),
        HARM(m2_top_below_slot_0),
        HARM(something_in_nothing),
        HARM(c3_of_another_kind),
        HARM(c3_before_no_cache),
        HARM(c4_keeps_runs_while_it_is_off),
        HARM(c5_has_magazines_while_it_is_off),
        HARM(c6_room_is_closed_of_a_larger_one),
        HARM(c7_wider_than_one_thread_may_be),
        HARM(c8_nobodys),
        HARM(f2_some_may_pass),
        HARM(more_room_than_any_has),
    };

    (void)state;
    start_arenas(1);
    victim = make_test_cache();
    press(victim, VICTIM_CLASS);
    cache_put(victim, 7, cache_take(victim, 7));
    expect_harms_found(harms, ARRAY_COUNT(harms), check_victim);
}

UNIT_MAIN(
    UNIT_TEST(a_new_cache_has_no_blocks_and_no_room), UNIT_TEST(the_constant_caches_never_change),
    UNIT_TEST(class_0_takes_and_gives_nothing), UNIT_TEST(the_first_strangers_go_home),
    UNIT_TEST(a_class_of_little_traffic_tells_at_once),
    UNIT_TEST(a_block_that_is_free_in_its_slab_is_told),
    UNIT_TEST(closed_room_takes_all_that_is_right), UNIT_TEST(a_traded_magazine_is_looked_through),
    UNIT_TEST(what_a_cache_holds_is_looked_through), UNIT_TEST(a_class_that_only_gives_gives_two),
    UNIT_TEST(a_burst_that_fits_two_magazines_needs_no_lock),
    UNIT_TEST(a_stream_between_caches_trades_magazines), UNIT_TEST(what_others_give_back_cools),
    UNIT_TEST(where_there_is_one_arena_nothing_cools),
    UNIT_TEST(what_cools_is_given_out_before_memory_is_refused),
    UNIT_TEST(a_spare_magazine_cools_too), UNIT_TEST(who_only_frees_has_one_magazine),
    UNIT_TEST(blocks_of_a_manual_arena_stay_out_of_depots),
    UNIT_TEST(nothings_are_dropped_wherever_they_lie), UNIT_TEST(magazines_of_nothing_are_dropped),
    UNIT_TEST(nothings_in_a_traded_magazine_are_dropped), UNIT_TEST(refused_memory_refills_nothing),
    UNIT_TEST(putting_needs_no_memory), UNIT_TEST(draining_gives_everything_back),
    UNIT_TEST(broken_invariants_are_found))
