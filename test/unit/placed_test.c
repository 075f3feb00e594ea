/* placed_test.c - manual arenas: blocks come from where they were asked for, go home whoever frees
 * them, and are all gone after a reset. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "hooks.h"

#include <jemalloc/jemalloc.h>

static const size_t some_sizes[] = { 1, 100, 1024, 5000, 14336, 14337, 100000, 3 * MiB };

static void blocks_come_from_the_arena_that_was_named(void **state)
{
    struct arena *arena = new_arena(), *other = new_arena();
    void *blocks[ARRAY_COUNT(some_sizes)];

    (void)state;
    assert_int_equal(arena->index, arena_limit);
    assert_int_equal(other->index, arena_limit + 1);
    for (unsigned i = 0; i < ARRAY_COUNT(some_sizes); i++) {
        int flags = MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE | MALLOCX_ZERO;
        blocks[i] = prairie_mallocx(some_sizes[i], flags);
        assert_ptr_equal(arena_of_address(blocks[i]), arena);
        assert_int_equal(prairie_usable_size(blocks[i]), prairie_nallocx(some_sizes[i], 0));
        assert_true(all_bytes_are(blocks[i], 0, some_sizes[i]));
    }
    /* A plain free takes them home, and they do not come to those who did not name the arena. */
    for (unsigned i = 0; i < ARRAY_COUNT(some_sizes); i++) prairie_free(blocks[i]);
    for (unsigned i = 0; i < ARRAY_COUNT(some_sizes); i++) {
        blocks[i] = prairie_malloc(some_sizes[i]);
        assert_ptr_not_equal(arena_of_address(blocks[i]), arena);
    }
    for (unsigned i = 0; i < ARRAY_COUNT(some_sizes); i++) prairie_free(blocks[i]);
    assert_int_equal(allocated_bytes(), 0);
    prairie_check_all();
}

static void automatic_arenas_can_be_named(void **state)
{
    void *small, *large;

    (void)state;
    small = prairie_mallocx(100, MALLOCX_ARENA(0));
    large = prairie_mallocx(100000, MALLOCX_ARENA(0));
    assert_ptr_equal(arena_of_address(small), arenas[0]);
    assert_ptr_equal(arena_of_address(large), arenas[0]);
    prairie_free(small);
    prairie_free(large);
    errno = 0;
    assert_null(prairie_mallocx(100, MALLOCX_ARENA(4094)));
    assert_int_equal(errno, ENOMEM);
    assert_null(prairie_mallocx(100000, MALLOCX_ARENA(4000)));
    assert_null(prairie_mallocx(100, MALLOCX_TCACHE(77)));
    assert_null(arena_of_address(NULL));
    assert_null(arena_of_address(&small));
    prairie_check_all();
}

/* realloc and its siblings know blocks of manual arenas. */
static void blocks_are_resized(void **state)
{
    struct arena *arena = new_arena();
    int flags = MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE;

    (void)state;
    for (unsigned from = 0; from < ARRAY_COUNT(some_sizes); from++) {
        for (unsigned to = 0; to < ARRAY_COUNT(some_sizes); to++) {
            size_t kept = min_size(some_sizes[from], some_sizes[to]);
            char *block = prairie_mallocx(some_sizes[from], flags);
            memset(block, 0x5a, some_sizes[from]);
            block = prairie_realloc(block, some_sizes[to]);
            assert_true(all_bytes_are(block, 0x5a, kept));
            block = prairie_rallocx(block, some_sizes[from], flags);
            assert_true(all_bytes_are(block, 0x5a, kept));
            prairie_sdallocx(block, some_sizes[from], flags);
        }
    }
    assert_int_equal(allocated_bytes(), 0);
    prairie_check_all();
}

static void large_blocks_resize_in_place(void **state)
{
    struct arena *arena = new_arena();
    int flags = MALLOCX_ARENA(arena->index);
    char *block = prairie_mallocx(2 * MiB, flags);

    (void)state;
    assert_int_equal(prairie_xallocx(block, 1 * MiB, 0, flags), 1 * MiB);
    assert_int_equal(prairie_xallocx(block, 2 * MiB, 0, flags), 2 * MiB);
    assert_ptr_equal(arena_of_address(block), arena);
    assert_int_equal(allocated_bytes(), 2 * MiB);
    prairie_check_all();
    prairie_free(block);
    assert_int_equal(allocated_bytes(), 0);
    prairie_check_all();
}

static void a_run_for_a_large_block_takes_one_lock(void **state)
{
    struct arena *arena = new_arena();
    uint64_t locks = arena->lock.taken;

    (void)state;
    assert_true(manual_lease(arena, 25, 1).page != 0);
    assert_int_equal(arena->lock.taken, locks + 1);
}

static void reset_frees_what_the_arena_gave(void **state)
{
    struct arena *arena = new_arena();
    int flags = MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE;
    void *mine[100];

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(mine); i++) mine[i] = prairie_malloc(i * 100);
    for (unsigned round = 0; round < 3; round++) {
        size_t before = allocated_bytes();
        for (unsigned i = 0; i < 500; i++)
            assert_non_null(prairie_mallocx(1 + random_below(30000), flags));
        prairie_check_all();
        arena_reset(arena);
        assert_int_equal(allocated_bytes(), before);
        prairie_check_all();
    }
    for (unsigned i = 0; i < ARRAY_COUNT(mine); i++) prairie_free(mine[i]);
    assert_int_equal(allocated_bytes(), 0);
}

/* Blocks of 100 bytes whose slabs' runs were leased ahead, and of which some come back. */
static void fill_stock_and_depot(const struct depot *depot)
{
    enum { BLOCKS = 20000 };
    static void *blocks[BLOCKS];

    for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = prairie_malloc(100);
    for (unsigned i = 0; i < BLOCKS && depot->full.count == 0; i++) prairie_free(blocks[i]);
    thread_flush();
}

/* Nor is any lock taken of an arena that has nothing to do with it. */
static void an_end_leaves_other_arenas_as_they_are(void **state)
{
    unsigned class_index = class_of_size(100);
    struct arena *reset = new_arena(), *destroyed = new_arena();
    const struct depot *depot = &arenas[0]->bin[class_index].depot;
    const struct stock *stock = &arenas[0]->stock[slab_pages(class_index)];
    uint32_t magazines, runs;
    uint64_t locks;

    (void)state;
    fill_stock_and_depot(depot);
    magazines = depot->full.count;
    runs = stock->count;
    locks = arenas[0]->lock.taken;
    assert_true(magazines > 0);
    assert_true(runs > 0);
    assert_non_null(prairie_mallocx(100, MALLOCX_ARENA(reset->index) | MALLOCX_TCACHE_NONE));
    assert_non_null(prairie_mallocx(100, MALLOCX_ARENA(destroyed->index) | MALLOCX_TCACHE_NONE));
    placed_reset(reset);
    assert_true(placed_destroy(destroyed));
    assert_int_equal(depot->full.count, magazines);
    assert_int_equal(stock->count, runs);
    assert_int_equal(arenas[0]->lock.taken, locks);
    prairie_check_all();
}

static void destroyed_numbers_are_given_again(void **state)
{
    struct arena *arena = new_arena(), *other = new_arena();
    unsigned index = arena->index;

    (void)state;
    assert_non_null(prairie_mallocx(100, MALLOCX_ARENA(index)));
    assert_true(placed_destroy(arena));
    assert_int_equal(allocated_bytes(), 0);
    assert_null(manual_arena_at(index));
    assert_null(prairie_mallocx(100, MALLOCX_ARENA(index)));
    assert_int_equal(arena_create()->index, index);
    assert_int_equal(arena_create()->index, other->index + 1);
    assert_non_null(prairie_mallocx(100, MALLOCX_ARENA(index)));
    prairie_check_all();
}

/* Where nobody is on his way through its hooks. */
static void an_arena_ends_at_once(void **state)
{
    struct arena *arena = new_arena(), *hooked = hooked_arena();

    (void)state;
    assert_non_null(prairie_mallocx(100, MALLOCX_ARENA(arena->index)));
    assert_non_null(prairie_mallocx(100, MALLOCX_ARENA(hooked->index)));
    thread_bind(arena);
    assert_false(placed_destroy(arena));
    thread_bind(arenas[0]);
    assert_true(placed_destroy(arena));
    assert_true(placed_destroy(hooked));
    assert_int_equal(fake_calls(FAKE_SLEEP), 0);
}

/* What a destroyed arena had counted is nobody's in particular; the next one of its number begins
 * at 0. */
static void destroyed_arenas_are_counted_apart(void **state)
{
    struct arena *arena = new_arena();
    int flags = MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE;
    unsigned class_index = class_of_size(100);
    const struct snapshot_arena *told;
    uint64_t fills = 0, drains = 0;

    (void)state;
    for (unsigned round = 1; round <= 2; round++) {
        for (unsigned i = 0; i < 9; i++) assert_non_null(prairie_mallocx(100, flags));
        prairie_free(prairie_mallocx(100, flags));
        for (unsigned i = 0; i < 3; i++) assert_non_null(prairie_mallocx(100000, flags));
        assert_int_equal(arena->active_pages, slab_pages(class_index) + 3 * pages_for(100000));
        assert_int_equal(arena->bin[class_index].flow.blocks_taken, 10);
        fills += arena->bin[class_index].flow.fills;
        drains += arena->bin[class_index].flow.drains;
        assert_true(placed_destroy(arena));
        assert_int_equal(past_arenas.count, round);
        assert_int_equal(past_arenas.of_class[class_index].blocks_taken, 10 * round);
        assert_int_equal(past_arenas.of_class[class_index].slabs_opened, round);
        assert_int_equal(past_arenas.of_class[class_index].fills, fills);
        assert_int_equal(past_arenas.of_class[class_index].drains, drains);
        assert_true(fills > 0 && drains > 0);
        assert_int_equal(past_arenas.manual_taken, 3 * round);
        assert_in_range(past_arenas.lock.taken, 14, 1000);
        assert_ptr_equal(arena_create(), arena);
        assert_int_equal(arena->active_pages, 0);
        assert_true(all_bytes_are(&arena->bin[class_index].flow, 0, sizeof(struct class_flow)));
        prairie_check_all();
    }
    lock_take(&control_lock);
    told = snapshot_past();
    assert_int_equal(told->of_class[class_index].fills, fills);
    assert_int_equal(told->of_class[class_index].drains, drains);
    assert_int_equal(told->of_class[class_index].taken, 20);
    assert_int_equal(told->of_class[class_index].slabs_opened, 2);
    lock_give(&control_lock);
}

/* What their locks counted is added; of the longest wait, and the most sleepers, the larger
 * stays. */
static void locks_of_destroyed_arenas_are_one(void **state)
{
    struct arena *arena[2] = { new_arena(), new_arena() };

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct lock *lock = &arena[i]->lock;

        lock_take(lock);
        lock->contended = 5 + i;
        lock->waits = 3 + i;
        lock->wait_ns = 700 + i;
        lock->wait_ns_max = 400 - i;
        lock->sleepers_max = 2 + i;
        lock_give(lock);
        assert_true(placed_destroy(arena[i]));
        assert_int_equal(lock->contended + lock->waits + lock->wait_ns, 0);
        assert_int_equal(lock->wait_ns_max + lock->sleepers_max, 0);
    }
    assert_int_equal(past_arenas.lock.contended, 11);
    assert_int_equal(past_arenas.lock.waits, 7);
    assert_int_equal(past_arenas.lock.spins, 4);
    assert_int_equal(past_arenas.lock.wait_ns, 1401);
    assert_int_equal(past_arenas.lock.wait_ns_max, 400);
    assert_int_equal(past_arenas.lock.sleepers_max, 3);
    assert_in_range(past_arenas.lock.taken, 11, 1000);
}

/* A constructor may make an arena before the options say how many automatic ones there are. */
static void numbers_stay_when_options_come(void **state)
{
    struct arena *arena = new_arena();
    unsigned index = arena->index;

    (void)state;
    options_parse("narenas:8", "test");
    heap_obey_options();
    assert_int_equal(arena_limit, index);
    assert_ptr_equal(manual_arena_at(index), arena);
    assert_int_equal(arena_create()->index, index + 1);
    options_parse("narenas:1", "test");
    heap_obey_options();
    assert_int_equal(arena_limit, 1);
    assert_int_equal(arena_create()->index, 1);
    prairie_check_all();
}

static void numbers_run_out(void **state)
{
    unsigned made = 0;

    (void)state;
    prairie_free(prairie_malloc(1));
    while (arena_create() != NULL) made++;
    assert_int_equal(made, ARENA_INDEX_END - arena_limit);
    assert_non_null(prairie_mallocx(100, MALLOCX_ARENA(4094)));
    prairie_check_all();
}

static void a_bound_thread_fills_from_its_arena(void **state)
{
    struct arena *arena = new_arena(), *before = thread_arena();
    void *block;

    (void)state;
    block = prairie_malloc(100);
    assert_ptr_equal(arena_of_address(block), before);
    prairie_free(block);
    thread_bind(arena);
    assert_ptr_equal(thread_arena(), arena);
    assert_false(placed_destroy(arena));
    for (unsigned i = 0; i < 1000; i++) {
        block = prairie_malloc(100);
        if (i < 100) assert_ptr_equal(arena_of_address(block), arena);
        prairie_free(block);
    }
    thread_bind(before);
    block = prairie_malloc(100);
    assert_ptr_equal(arena_of_address(block), before);
    prairie_free(block);
    assert_true(placed_destroy(arena));
    assert_int_equal(allocated_bytes(), 0);
    prairie_check_all();
}

/* Whatever a thread is bound to, a call that names an arena gets a block of that one. */
static void a_bound_thread_names_an_automatic_arena(void **state)
{
    struct arena *arena = new_arena();
    size_t bytes = allocated_bytes();

    (void)state;
    thread_bind(arena);
    for (unsigned i = 0; i < ARRAY_COUNT(some_sizes); i++) {
        size_t size = some_sizes[i];
        void *block = prairie_mallocx(size, MALLOCX_ARENA(0));

        assert_false(arena_of_address(block)->is_manual);
        prairie_free(block);
        block = prairie_malloc(size);
        assert_ptr_equal(arena_of_address(block), arena);
        block = prairie_rallocx(block, 3 * size + 16, MALLOCX_ARENA(0) | MALLOCX_TCACHE_NONE);
        assert_false(arena_of_address(block)->is_manual);
        prairie_free(block);
        block = prairie_mallocx(size, MALLOCX_ARENA(0) | MALLOCX_ALIGN(64 * KiB) | MALLOCX_ZERO);
        assert_false(arena_of_address(block)->is_manual);
        assert_true(all_bytes_are(block, 0, size));
        prairie_free(block);
    }
    thread_bind(arena_at(0));
    assert_int_equal(allocated_bytes(), bytes);
    prairie_check_all();
}

/* Short of memory a call takes what any automatic arena has left, and nothing that a reset would
 * free under it. */
static void shortage_takes_nothing_of_an_arena(void **state)
{
    struct arena *arena = new_arena();
    int flags = MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE;
    void *block;

    (void)state;
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        assert_non_null(prairie_mallocx(class_bytes[class_index], flags));
    fake_fail_all(true);
    for (unsigned class_index = CLASS_COUNT - 1; class_index > 0; class_index--)
        while ((block = prairie_malloc(class_bytes[class_index])) != NULL)
            assert_ptr_not_equal(arena_of_address(block), arena);
    fake_fail_all(false);
    prairie_check_all();
    arena_reset(arena);
    prairie_check_all();
}

/* And who is bound to one takes nothing of others. */
static void shortage_takes_nothing_for_an_arena(void **state)
{
    struct arena *arena = new_arena();
    void *block;

    (void)state;
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        assert_non_null(prairie_malloc(class_bytes[class_index]));
    thread_bind(arena);
    fake_fail_all(true);
    for (size_t size = MiB; size > 0; size /= 2)
        while ((block = prairie_malloc(size)) != NULL)
            assert_ptr_equal(arena_of_address(block), arena);
    fake_fail_all(false);
    prairie_check_all();
    placed_reset(arena);
    prairie_check_all();
}

/* Whatever the kernel refuses, nothing is lost. */
static void refusals_leave_arenas_whole(void **state)
{
    struct arena *arena = new_arena();
    unsigned number = explicit_cache_create();
    void *blocks[60] = { NULL };

    (void)state;
    for (unsigned nth = 1; nth < 40; nth++) {
        fake_fail_nth(nth);
        for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) {
            int flags = MALLOCX_ARENA(arena->index)
                      | (i % 2 ? MALLOCX_TCACHE(number) : MALLOCX_TCACHE_NONE);
            blocks[i] = prairie_mallocx(1 + random_below(200000), flags);
        }
        fake_fail_nth(0);
        prairie_check_all();
        for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++)
            if (i % 3) prairie_free(blocks[i]);
        explicit_cache_flush(explicit_cache_at(number));
        arena_reset(arena);
    }
    assert_int_equal(allocated_bytes(), 0);
    prairie_check_all();
}

static void freed_twice(void)
{
    struct arena *arena = new_arena();
    void *block = prairie_mallocx(64, MALLOCX_ARENA(arena->index));

    (void)prairie_mallocx(64, MALLOCX_ARENA(arena->index));
    prairie_free(block);
    prairie_free(block);
}

static void large_freed_twice(void)
{
    struct arena *arena = new_arena();
    void *block = prairie_mallocx(100000, MALLOCX_ARENA(arena->index));

    prairie_free(block);
    prairie_free(block);
}

static void freed_inside(void)
{
    struct arena *arena = new_arena();

    prairie_free((char *)prairie_mallocx(100000, MALLOCX_ARENA(arena->index)) + 4096);
}

static void misuse_is_found(void **state)
{
    (void)state;
    expect_abort(freed_twice, "prairie: double free");
    expect_abort(large_freed_twice, "prairie: double free");
    expect_abort(freed_inside, "prairie: free of an interior pointer");
}

/* A second thread that destroys it at the same time would end the arena that gets its number. */
static void an_arena_is_destroyed_once(void **state)
{
    struct arena *arena = new_arena();

    (void)state;
    assert_true(arena_begin_destroy(arena));
    assert_false(arena_begin_destroy(arena));
    arena_finish_destroy(arena);
    assert_false(arena_begin_destroy(arena));
    assert_ptr_equal(arena_create(), arena);
    assert_true(placed_destroy(arena));
}

UNIT_MAIN(UNIT_TEST(blocks_come_from_the_arena_that_was_named),
          UNIT_TEST(automatic_arenas_can_be_named), UNIT_TEST(blocks_are_resized),
          UNIT_TEST(large_blocks_resize_in_place),
          UNIT_TEST(a_run_for_a_large_block_takes_one_lock),
          UNIT_TEST(reset_frees_what_the_arena_gave),
          UNIT_TEST(an_end_leaves_other_arenas_as_they_are),
          UNIT_TEST(destroyed_numbers_are_given_again),
          UNIT_TEST(destroyed_arenas_are_counted_apart), UNIT_TEST(an_arena_ends_at_once),
          UNIT_TEST(locks_of_destroyed_arenas_are_one), UNIT_TEST(numbers_run_out),
          UNIT_TEST(numbers_stay_when_options_come), UNIT_TEST(a_bound_thread_fills_from_its_arena),
          UNIT_TEST(a_bound_thread_names_an_automatic_arena),
          UNIT_TEST(shortage_takes_nothing_of_an_arena),
          UNIT_TEST(shortage_takes_nothing_for_an_arena), UNIT_TEST(refusals_leave_arenas_whole),
          UNIT_TEST(misuse_is_found), UNIT_TEST(an_arena_is_destroyed_once))
