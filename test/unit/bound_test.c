/* bound_test.c - a thread's arena stays its own, whether it may hold blocks or not. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "control_tree.h"
#include "hooks.h"
#include "samples.h"
#include "threads.h"

#include <sys/wait.h>

static void *of_this_new(size_t size) { return prairie_malloc(size); }
static void *zeroed(size_t size) { return prairie_calloc(1, size); }
static void *aligned(size_t size) { return prairie_aligned_alloc(64, size); }
static void *aligned_far(size_t size) { return prairie_aligned_alloc(64 * KiB, size); }
static void *flagged(size_t size) { return prairie_mallocx(size, MALLOCX_ZERO); }
static void *single(size_t size) { return prairie_mallocx(size, MALLOCX_TCACHE_NONE); }
static void *resized(size_t size) { return prairie_realloc(prairie_malloc(size / 3 + 1), size); }

static void *placed(size_t size)
{
    void *block = NULL;

    assert_int_equal(prairie_posix_memalign(&block, 32, size), 0);
    return block;
}

static void *(*const ways[])(size_t) = { of_this_new, zeroed, aligned, aligned_far,
                                         flagged,     single, resized, placed };

/* Every way, small and large, from this arena. */
static void expect_all_from(const struct arena *arena, size_t large_from)
{
    for (unsigned way = 0; way < ARRAY_COUNT(ways); way++)
        for (size_t size = 1; size < 4 * MiB; size = size * 3 + 1) {
            void *block = ways[way](size);

            assert_non_null(block);
            if (size < large_from) assert_ptr_equal(arena_of_address(block), arena);
            memset(block, 1, size);
            prairie_free(block);
        }
    prairie_check_all();
}

/* ---- the arena ---- */

static void a_bound_thread_takes_all_from_its_arena(void **state)
{
    struct arena *arena = new_arena(), *before = thread_arena();
    size_t used = page_heap_used_pages(page_heap);
    void *block;

    (void)state;
    thread_bind(arena);
    for (unsigned i = 0; i < 3; i++) expect_all_from(arena, SIZE_MAX);
    assert_true(thread_front()->kind == FRONT_CACHE);
    for (unsigned i = 0; i < 50; i++) (void)prairie_malloc(1 + random_below(200000));
    placed_reset(arena);
    assert_int_equal(allocated_bytes(), 0);
    block = prairie_malloc(100000);
    thread_bind(before);
    assert_ptr_equal(arena_of_address(block), arena);
    for (unsigned i = 0; i < 20; i++) {
        void *other = prairie_malloc(100000);
        assert_ptr_not_equal(arena_of_address(other), arena);
        prairie_free(other);
    }
    assert_true(placed_destroy(arena));
    assert_int_equal(allocated_bytes(), 0);
    thread_flush();
    assert_true(page_heap_used_pages(page_heap) <= used);
    prairie_check_all();
}

/* From the page heap's pages into the arena's, and back. */
static void realloc_moves_blocks_into_the_arena(void **state)
{
    struct arena *arena = new_arena(), *before = thread_arena();
    unsigned char *block = prairie_malloc(100000), *fence = prairie_malloc(100000);

    (void)state;
    memset(block, 5, 100000);
    thread_bind(arena);
    block = prairie_realloc(block, 6 * MiB);
    assert_ptr_equal(arena_of_address(block), arena);
    assert_true(all_bytes_are(block, 5, 100000));
    memset(block, 6, 6 * MiB);
    thread_bind(before);
    (void)prairie_mallocx(page_bytes() * 4, MALLOCX_ARENA(arena->index));
    block = prairie_realloc(block, 40 * MiB);
    assert_ptr_not_equal(arena_of_address(block), arena);
    assert_true(all_bytes_are(block, 6, 6 * MiB));
    prairie_free(block);
    prairie_free(fence);
    assert_true(placed_destroy(arena));
    assert_int_equal(allocated_bytes(), 0);
    prairie_check_all();
}

static void a_thread_without_a_cache_keeps_its_arena(void **state)
{
    struct arena *arena = new_arena(), *before = thread_arena();
    void *block;

    (void)state;
    thread_bind(arena);
    assert_true(thread_cache_off());
    assert_true(thread_cache_is_off());
    assert_ptr_equal(thread_arena(), arena);
    assert_int_equal(arena->threads, 1);
    expect_all_from(arena, SIZE_MAX);
    assert_false(placed_destroy(arena));
    for (unsigned i = 0; i < 50; i++) (void)prairie_malloc(1 + random_below(200000));
    placed_reset(arena);
    assert_int_equal(allocated_bytes(), 0);
    thread_bind(before); /* while it holds nothing */
    assert_ptr_equal(thread_arena(), before);
    expect_all_from(before, SMALL_BYTES_MAX);
    assert_true(placed_destroy(arena));
    thread_cache_on();
    assert_true(thread_front()->kind == FRONT_CACHE);
    block = prairie_malloc(100);
    prairie_free(block);
    assert_ptr_equal(prairie_malloc(100), block);
    expect_all_from(before, SMALL_BYTES_MAX);
}

/* Bound before the cache goes, bound still when it is back. */
static void the_cache_comes_back_to_the_same_arena(void **state)
{
    struct arena *arena = new_arena();

    (void)state;
    thread_bind(arena);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(thread_cache_off());
        thread_cache_on();
        expect_all_from(arena, SIZE_MAX);
        assert_int_equal(arena->threads, 1);
    }
    assert_true(thread_cache_off());
    assert_true(thread_cache_off());
    fake_thread_end();
    assert_int_equal(arena->threads, 0);
    assert_ptr_equal(thread_front(), GONE_FRONT);
    assert_true(placed_destroy(arena));
    assert_int_equal(allocated_bytes(), 0);
    prairie_check_all();
}

static void expect_bound_under(const char *words)
{
    struct arena *arena;

    options_parse(words, "test");
    heap_obey_options();
    arena = new_arena();
    assert_true(thread_cache_is_off());
    assert_non_null(thread_arena());
    thread_bind(arena);
    assert_ptr_equal(thread_arena(), arena);
    expect_all_from(arena, SIZE_MAX);
    fake_thread_end();
    assert_int_equal(arena->threads, 0);
    assert_int_equal(allocated_bytes(), 0);
    (void)prairie_purge();
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

static void bound_with_the_option_tcache(void) { expect_bound_under("tcache:false"); }
static void bound_with_the_option_junk(void) { expect_bound_under("junk:true"); }
static void bound_with_the_option_zero(void) { expect_bound_under("zero:true"); }

static void options_take_the_cache_and_not_the_arena(void **state)
{
    (void)state;
    expect_survival(bound_with_the_option_tcache);
    expect_survival(bound_with_the_option_junk);
    expect_survival(bound_with_the_option_zero);
}

/* What no thread caches comes from the arena too. */
static void uncached_classes_come_from_the_arena(void **state)
{
    struct arena *arena = new_arena();

    (void)state;
    options_parse("tcache_max:64", "test");
    heap_obey_options();
    thread_bind(arena);
    expect_all_from(arena, SIZE_MAX);
    assert_non_null(prairie_thread_totals());
    expect_all_from(arena, SIZE_MAX);
}

static uint32_t held, may_end; /* atomic */

/* Until it is waited for; and tells how many threads are bound to it then. */
static void *hold_until_waited_for(void *arena)
{
    uint64_t waits = fake_calls(FAKE_WAIT);

    lock_take(&((struct arena *)arena)->lock);
    __atomic_store_n(&held, 1, __ATOMIC_RELEASE);
    while (fake_calls(FAKE_WAIT) == waits) usleep(100);
    __atomic_store_n(&may_end, ((struct arena *)arena)->threads, __ATOMIC_RELAXED);
    lock_give(&((struct arena *)arena)->lock);
    return NULL;
}

/* A block past the cache, too: a bound thread waits for its arena. */
static void a_busy_arena_is_waited_for(void **state)
{
    struct arena *arena = new_arena();
    pthread_t holder;
    void *block;

    (void)state;
    thread_bind(arena);
    assert_int_equal(pthread_create(&holder, NULL, hold_until_waited_for, arena), 0);
    wait_until_set(&held);
    block = prairie_mallocx(100, MALLOCX_TCACHE_NONE);
    assert_ptr_equal(arena_of_address(block), arena);
    assert_ptr_equal(thread_arena(), arena);
    assert_int_equal(pthread_join(holder, NULL), 0);
    prairie_free(block);
    thread_bind(arenas[0]);
    assert_int_equal(arena->threads, 0);
    assert_true(placed_destroy(arena));
}

/* It could end otherwise, and blocks of it come home to another one. */
static void an_arena_is_left_when_its_blocks_are_home(void **state)
{
    struct arena *arena = new_arena();
    pthread_t holder;

    (void)state;
    thread_bind(arena);
    for (unsigned i = 0; i < 50; i++) prairie_free(prairie_malloc(100));
    assert_int_equal(pthread_create(&holder, NULL, hold_until_waited_for, arena), 0);
    wait_until_set(&held);
    thread_bind(arenas[0]);
    assert_int_equal(pthread_join(holder, NULL), 0);
    assert_int_equal(may_end, 1);
    assert_int_equal(arena->threads, 0);
    assert_true(placed_destroy(arena));
}

/* ---- where large blocks come from ---- */

static void expect_large_from(const struct arena *arena)
{
    for (unsigned i = 0; i < 30; i++) {
        void *block = prairie_malloc(100000);
        assert_ptr_equal(arena_of_address(block), arena);
        prairie_free(block);
    }
    prairie_check_all();
}

static struct extent_hooks hooks_of_test;

static void set_hooks_by_name(void)
{
    struct extent_hooks *hooks = &hooks_of_test;

    hooks_of_test = test_hooks;
    assert_int_equal(control_by_name("arena.0.extent_hooks", NULL, NULL, &hooks, sizeof hooks), 0);
}

/* Whichever comes first: the hooks, or the binding. */
static void expect_hooks_after_binding(void)
{
    (void)hooked_arena();
    for (unsigned i = 0; i < 30; i++) prairie_free(prairie_malloc(100000));
    thread_bind(arena_at(0));
    set_hooks_by_name();
    for (unsigned i = 0; i < 30; i++) {
        void *block = prairie_malloc(100000);
        assert_true(is_of_hooks(block));
        prairie_free(block);
    }
    prairie_check_all();
}

static void plain_hooks_after_binding(void) { expect_hooks_after_binding(); }

static void counted_hooks_after_binding(void)
{
    prairie_free(prairie_malloc(1));
    assert_non_null(prairie_thread_totals());
    expect_hooks_after_binding();
}

static void sampled_hooks_after_binding(void)
{
    sample_from_now(GiB);
    expect_hooks_after_binding();
}

static void hooks_come_after_the_binding(void **state)
{
    (void)state;
    expect_survival(plain_hooks_after_binding);
    expect_survival(counted_hooks_after_binding);
    expect_survival(sampled_hooks_after_binding);
}

static struct arena *bound_by_hook;
static bool is_told_by_hook;

static void *binding_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes,
                           size_t align, bool *zero, bool *commit, unsigned arena)
{
    thread_bind(bound_by_hook);
    prairie_free(prairie_malloc(100000));
    if (is_told_by_hook) assert_non_null(prairie_thread_totals());
    return test_alloc(hooks, new_address, bytes, align, zero, commit, arena);
}

/* The arena that a hook chose is that of large blocks, too. */
static void a_hook_binds_for_large_blocks(void **state)
{
    struct extent_hooks hooks = test_hooks;
    struct arena *of_hooks = hooked_arena();

    (void)state;
    bound_by_hook = arena_create();
    hooks.alloc = binding_alloc;
    (void)arena_set_hooks(of_hooks, &hooks);
    for (unsigned round = 0; round < 2; round++) {
        is_told_by_hook = round == 1;
        thread_bind(of_hooks);
        (void)prairie_malloc((round + 3) * MiB);
        expect_large_from(bound_by_hook);
    }
}

/* What a bound thread frees of other threads' goes back at once. */
static void a_bound_thread_keeps_no_runs(void **state)
{
    struct arena *arena = new_arena();
    void *blocks[30];

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) prairie_free(prairie_malloc(30000));
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) blocks[i] = prairie_malloc(30000);
    assert_non_null(thread_front()->cache->large_cache);
    thread_bind(arena);
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) {
        uint32_t page = page_at(blocks[i]);

        prairie_free(blocks[i]);
        assert_false(page_is_cached(page_record(page)) && is_large_state(page_record(page)->state));
        prairie_check_all();
    }
    expect_large_from(arena);
    assert_null(thread_front()->cache->large_cache);
    thread_bind(arena_at(0));
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) prairie_free(prairie_malloc(30000));
    assert_non_null(thread_front()->cache->large_cache);
}

/* ---- a fork ---- */

static void *bind_and_wait(void *arena)
{
    prairie_free(prairie_malloc(100));
    thread_bind(arena);
    __atomic_store_n(&held, 1, __ATOMIC_RELEASE);
    wait_until_set(&may_end);
    return NULL;
}

static void a_child_has_no_threads_bound_but_its_own(void **state)
{
    struct arena *arena = new_arena(), *mine = arena_create();
    pthread_t thread;
    int child, status;

    (void)state;
    thread_bind(mine);
    assert_true(thread_cache_off());
    assert_int_equal(pthread_create(&thread, NULL, bind_and_wait, arena), 0);
    wait_until_set(&held);
    child = fake_fork();
    if (child == 0) {
        bool good = placed_destroy(arena) && !placed_destroy(mine) && thread_arena() == mine;
        expect_all_from(mine, SIZE_MAX);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(placed_destroy(arena));
    __atomic_store_n(&may_end, 1, __ATOMIC_RELEASE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(placed_destroy(arena));
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(a_bound_thread_takes_all_from_its_arena),
          UNIT_TEST(realloc_moves_blocks_into_the_arena),
          UNIT_TEST(a_thread_without_a_cache_keeps_its_arena),
          UNIT_TEST(the_cache_comes_back_to_the_same_arena),
          UNIT_TEST(options_take_the_cache_and_not_the_arena),
          UNIT_TEST(uncached_classes_come_from_the_arena), UNIT_TEST(a_busy_arena_is_waited_for),
          UNIT_TEST(an_arena_is_left_when_its_blocks_are_home),
          UNIT_TEST(hooks_come_after_the_binding), UNIT_TEST(a_hook_binds_for_large_blocks),
          UNIT_TEST(a_bound_thread_keeps_no_runs),
          UNIT_TEST(a_child_has_no_threads_bound_but_its_own))
