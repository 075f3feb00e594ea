/* explicit_cache_test.c - caches that a program makes: whose blocks they hold, and what becomes of
 * them when their arena ends or the process forks. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "hooks.h"

#include <sys/wait.h>

#include <jemalloc/jemalloc.h>

static void explicit_caches_hold_what_belongs(void **state)
{
    struct arena *arena = new_arena(), *other = new_arena();
    unsigned number = explicit_cache_create();
    int flags = MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE(number);
    struct cache *cache = explicit_cache_at(number);
    void *blocks[400], *stranger;

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) {
        blocks[i] = prairie_mallocx(64, flags);
        assert_ptr_equal(arena_of_address(blocks[i]), arena);
    }
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++)
        prairie_sdallocx(blocks[i], 64, MALLOCX_TCACHE(number));
    assert_ptr_equal(prairie_mallocx(64, flags), blocks[ARRAY_COUNT(blocks) - 1]);
    prairie_dallocx(blocks[ARRAY_COUNT(blocks) - 1], flags);
    assert_int_equal(allocated_bytes(), 0);

    stranger = prairie_mallocx(64, MALLOCX_ARENA(other->index) | MALLOCX_TCACHE_NONE);
    prairie_dallocx(stranger, MALLOCX_TCACHE(number));
    assert_int_equal(allocated_bytes(), 0);
    assert_ptr_equal(arena_of_address(prairie_mallocx(64, flags)), arena);
    stranger = prairie_malloc(64);
    prairie_dallocx(stranger, MALLOCX_TCACHE(number));
    assert_ptr_equal(arena_of_address(prairie_mallocx(64, flags)), arena);

    cache_check(cache);
    explicit_cache_flush(cache);
    cache_check(cache);
    arena_reset(arena);
    explicit_cache_destroy(number);
    assert_null(explicit_cache_at(number));
    assert_int_equal(explicit_cache_create(), number);
    assert_int_equal(allocated_bytes(), 0);
    prairie_check_all();
}

static void explicit_caches_without_an_arena(void **state)
{
    struct arena *arena = new_arena();
    unsigned number = explicit_cache_create(), second = explicit_cache_create();
    void *block = prairie_mallocx(64, MALLOCX_TCACHE(number)), *large;

    (void)state;
    (void)arena;
    assert_int_equal(second, number + 1);
    prairie_dallocx(prairie_mallocx(64, MALLOCX_TCACHE(second)), MALLOCX_TCACHE(second));
    prairie_dallocx(block, MALLOCX_TCACHE(second));
    assert_ptr_equal(prairie_mallocx(64, MALLOCX_TCACHE(second)), block);
    prairie_free(block);
    large = prairie_mallocx(100000, MALLOCX_TCACHE(number) | MALLOCX_ALIGN(8192));
    prairie_sdallocx(large, 100000, MALLOCX_TCACHE(number) | MALLOCX_ALIGN(8192));
    explicit_cache_destroy(number);
    explicit_cache_destroy(second);
    prairie_check_all();
}

static void caches_run_out(void **state)
{
    unsigned made = 0;

    (void)state;
    prairie_free(prairie_malloc(1));
    while (explicit_cache_create() < EXPLICIT_CACHE_COUNT_MAX) made++;
    assert_int_equal(made, EXPLICIT_CACHE_COUNT_MAX);
    assert_non_null(prairie_mallocx(100, MALLOCX_TCACHE(EXPLICIT_CACHE_COUNT_MAX - 1)));
    for (unsigned number = 0; number < EXPLICIT_CACHE_COUNT_MAX; number++)
        explicit_cache_destroy(number);
    prairie_check_all();
}

/* A cache that was used with an arena which is gone fills from automatic ones. */
static void a_cache_outlives_its_arena(void **state)
{
    struct arena *arena = new_arena();
    unsigned number = explicit_cache_create();
    void *block = prairie_mallocx(64, MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE(number));

    (void)state;
    prairie_dallocx(block, MALLOCX_TCACHE(number));
    explicit_cache_flush(explicit_cache_at(number));
    assert_true(placed_destroy(arena));
    block = prairie_mallocx(64, MALLOCX_TCACHE(number));
    assert_ptr_not_equal(arena_of_address(block), arena);
    prairie_dallocx(block, MALLOCX_TCACHE(number));
    assert_ptr_equal(arena_create(), arena);
    block = prairie_mallocx(64, MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE(number));
    assert_ptr_equal(arena_of_address(block), arena);
    prairie_check_all();
}

/* The number is another arena's by now, and the cache was not used meanwhile: it neither takes that
 * one's blocks nor gives them out to who names no arena. */
static void a_cache_does_not_know_the_next_arena_of_a_number(void **state)
{
    struct arena *arena = new_arena();
    unsigned number = explicit_cache_create();
    int flags = MALLOCX_ARENA(arena->index), cache = MALLOCX_TCACHE(number);
    void *block = prairie_mallocx(64, flags | cache);

    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        prairie_dallocx(block, cache);
        explicit_cache_flush(explicit_cache_at(number));
        assert_true(placed_destroy(arena));
        assert_ptr_equal(arena_create(), arena);
        block = prairie_mallocx(64, round == 0 ? flags | MALLOCX_TCACHE_NONE : cache);
        assert_ptr_equal(arena_of_address(block) == arena ? arena : NULL,
                         round == 0 ? arena : NULL);
        prairie_dallocx(block, cache);
        block = prairie_mallocx(64, cache);
        assert_false(arena_of_address(block)->is_manual);
        prairie_dallocx(block, cache);
        block = prairie_mallocx(64, flags | cache);
        assert_ptr_equal(arena_of_address(block), arena);
    }
    prairie_check_all();
}

static void a_cache_that_is_not_there_serves_nothing(void **state)
{
    static const size_t sizes[] = { 1, 1024, SMALL_BYTES_MAX, SMALL_BYTES_MAX + 1, 3 * MiB };

    (void)state;
    prairie_free(prairie_malloc(1));
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        assert_null(prairie_mallocx(sizes[i], MALLOCX_TCACHE(7)));
        assert_null(prairie_mallocx(sizes[i], MALLOCX_TCACHE(7) | MALLOCX_ARENA(0)));
        assert_null(prairie_rallocx(NULL, sizes[i], MALLOCX_TCACHE(7)));
    }
}

/* What a bound thread frees of other arenas does not get among the blocks that calls with the
 * arena's number are served with. */
static void blocks_of_others_stay_out_of_an_arena(void **state)
{
    enum { COUNT = 4000 };
    static void *mine[COUNT], *others[COUNT];
    struct arena *arena = new_arena(), *before = thread_arena();
    unsigned number = explicit_cache_create();
    int flags = MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE(number);

    (void)state;
    for (unsigned i = 0; i < COUNT; i++) others[i] = prairie_malloc(64);
    thread_bind(arena);
    for (unsigned i = 0; i < COUNT; i++) mine[i] = prairie_malloc(64);
    for (unsigned i = 0; i < COUNT; i++) prairie_free(mine[i]);
    for (unsigned i = 0; i < COUNT; i += 2) {
        (void)prairie_malloc(64);
        prairie_free(others[i]);
        prairie_free(others[i + 1]);
    }
    thread_bind(before);
    for (unsigned i = 0; i < COUNT; i++)
        assert_ptr_equal(arena_of_address(prairie_mallocx(64, flags)), arena);
    prairie_check_all();
}

static unsigned busy_number;

/* In the child: whoever was in the middle of a call is not there. */
static void fork_beside_a_busy_cache(void)
{
    struct cache *cache = explicit_cache_at(busy_number);
    int child;

    cache->is_busy = true;
    child = fake_fork();
    if (child != 0) {
        int status = 1;
        (void)waitpid(child, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    assert_false(cache->is_busy);
    for (unsigned i = 0; i < 100; i++) {
        void *block = prairie_mallocx(64, MALLOCX_TCACHE(busy_number));
        assert_non_null(block);
        prairie_dallocx(block, MALLOCX_TCACHE(busy_number));
    }
    explicit_cache_destroy(busy_number);
    prairie_check_all();
}

static void a_cache_that_was_busy_is_empty_in_the_child(void **state)
{
    void *blocks[50];

    (void)state;
    prairie_free(prairie_malloc(1));
    busy_number = explicit_cache_create();
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++)
        blocks[i] = prairie_mallocx(64, MALLOCX_TCACHE(busy_number));
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++)
        prairie_dallocx(blocks[i], MALLOCX_TCACHE(busy_number));
    expect_survival(fork_beside_a_busy_cache);
}

/* Its thread was just about to let go of an arena that is no more. */
static void a_child_fills_no_cache_from_a_destroyed_arena(void **state)
{
    struct arena *arena = new_arena();
    unsigned number = explicit_cache_create();
    struct cache *cache = explicit_cache_at(number);
    int flags = MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE(number);

    (void)state;
    prairie_dallocx(prairie_mallocx(100, flags), flags);
    explicit_cache_flush(cache);
    assert_ptr_equal(cache->arena, arena);
    assert_true(placed_destroy(arena));
    cache->fixed = 0; /* half of it */
    explicit_cache_forget_busy();
    assert_non_null(prairie_mallocx(100, MALLOCX_TCACHE(number)));
    assert_ptr_not_equal(cache->arena, arena);
    assert_int_equal(arena->active_pages, 0);
}

UNIT_MAIN(UNIT_TEST(explicit_caches_hold_what_belongs), UNIT_TEST(explicit_caches_without_an_arena),
          UNIT_TEST(caches_run_out), UNIT_TEST(a_cache_outlives_its_arena),
          UNIT_TEST(a_cache_does_not_know_the_next_arena_of_a_number),
          UNIT_TEST(a_cache_that_is_not_there_serves_nothing),
          UNIT_TEST(blocks_of_others_stay_out_of_an_arena),
          UNIT_TEST(a_cache_that_was_busy_is_empty_in_the_child),
          UNIT_TEST(a_child_fills_no_cache_from_a_destroyed_arena))
