/* hooks_automatic_test.c - hooks of automatic arenas, which every thread meets. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "control_tree.h"
#include "hooks.h"
#include "threads.h"

#include <sys/wait.h>

static void *cancelled_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes,
                             size_t align, bool *zero, bool *commit, unsigned arena)
{
    pthread_testcancel();
    return test_alloc(hooks, new_address, bytes, align, zero, commit, arena);
}

static bool cancelled_purge(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                            size_t length, unsigned arena)
{
    (void)hooks, (void)base, (void)bytes, (void)offset, (void)length, (void)arena;
    pthread_testcancel();
    return false;
}

static bool cancelled_dalloc(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                             unsigned arena)
{
    pthread_testcancel();
    return test_dalloc(hooks, base, bytes, committed, arena);
}

static unsigned steps_done; /* by the thread that is to be cancelled */

static void *use_while_cancelled(void *of)
{
    struct arena *arena = of;
    void *small, *large;

    assert_int_equal(pthread_cancel(pthread_self()), 0);
    small = prairie_mallocx(100, MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    steps_done++;
    large = prairie_mallocx(12 * MiB, MALLOCX_ARENA(arena->index));
    steps_done++;
    prairie_dallocx(large, 0);
    prairie_dallocx(small, MALLOCX_TCACHE_NONE);
    steps_done++;
    arena_purge(arena);
    steps_done++;
    assert_true(placed_destroy(arena));
    steps_done++;
    pthread_testcancel();
    steps_done++;
    return NULL;
}

/* A hook that is a cancellation point does not end its thread in the midst of our call. */
static void hooks_do_not_cancel_their_thread(void **state)
{
    struct arena *arena = hooked_arena();
    struct extent_hooks hooks = test_hooks;
    pthread_t thread;
    void *result;
    int child, status;

    (void)state;
    hooks.alloc = cancelled_alloc;
    hooks.purge_forced = cancelled_purge;
    hooks.dalloc = cancelled_dalloc;
    (void)arena_set_hooks(arena, &hooks);
    assert_int_equal(pthread_create(&thread, NULL, use_while_cancelled, arena), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal(steps_done, 5);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(seen.bytes_out, 0);
    child = fake_fork();
    if (child == 0) {
        prairie_check_all();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    prairie_check_all();
}

/* Arena 0 of two. */
static struct arena *hooked_automatic(void)
{
    fake_cores(2);
    (void)placed_destroy(hooked_arena());
    (void)arena_set_hooks(arenas[0], &test_hooks);
    assert_ptr_equal(arena_hooks(arenas[0]), &test_hooks);
    return arenas[0];
}

static void small_blocks_of_a_hooked_automatic_arena(void **state)
{
    enum { COUNT = 3000 };
    static unsigned char *blocks[COUNT];
    unsigned from_hooks = 0;
    struct arena *arena = hooked_automatic();

    (void)state;
    assert_ptr_equal(thread_arena(), arena);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            size_t size = 1 + random_below(3000);
            blocks[i] = prairie_malloc(size);
            assert_non_null(blocks[i]);
            from_hooks += is_of_hooks(blocks[i]);
            memset(blocks[i], (int)i, size);
            if (i % 3 == 0) blocks[i] = prairie_realloc(blocks[i], size + size / 2);
            assert_int_equal(blocks[i][0], (unsigned char)i);
        }
        prairie_check_all();
        for (unsigned i = 0; i < COUNT; i++)
            if (i % 5 == 0) prairie_free_sized(blocks[i], prairie_usable_size(blocks[i]));
            else prairie_free(blocks[i]);
    }
    assert_true(from_hooks > COUNT);
    assert_true(seen.allocs > 0);
    assert_int_equal(seen.arena, arena->index);
    assert_int_equal(allocated_bytes(), 0);
    (void)prairie_purge(); /* all but one extent */
    assert_true(seen.dallocs == seen.allocs - 1);
    prairie_check_all();
}

static void large_blocks_of_a_hooked_automatic_arena(void **state)
{
    struct arena *arena = hooked_automatic();
    int flags = MALLOCX_ARENA(arena->index);
    char *block = prairie_mallocx(100000, flags), *other;

    (void)state;
    assert_true(is_of_hooks(block));
    assert_ptr_equal(arena_of_address(block), arena);
    assert_int_equal(allocated_bytes(), prairie_usable_size(block));
    assert_int_equal(prairie_xallocx(block, 50000, 0, flags), prairie_nallocx(50000, 0));
    block = prairie_rallocx(block, 400000, flags);
    assert_true(is_of_hooks(block));
    other = prairie_malloc(100000); /* of a thread that is not bound to it */
    assert_false(is_of_hooks(other));
    prairie_free(other);
    thread_bind(arena);
    other = prairie_malloc(100000);
    assert_true(is_of_hooks(other));
    prairie_free(other);
    prairie_free(block);
    assert_int_equal(allocated_bytes(), 0);
    prairie_check_all();
}

/* What was taken before goes where it came from. */
static void blocks_older_than_automatic_hooks(void **state)
{
    void *blocks[400];

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) blocks[i] = prairie_malloc(i * 100);
    (void)hooked_automatic();
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) {
        prairie_free(blocks[i]);
        blocks[i] = prairie_malloc(i * 100);
    }
    for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) prairie_free(blocks[i]);
    (void)prairie_purge();
    (void)prairie_purge();
    assert_int_equal(page_heaps_used(), 0);
    prairie_check_all();
}

static void *asking_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes, size_t align,
                          bool *zero, bool *commit, unsigned arena)
{
    for (size_t size = 1; size < 200000; size *= 3) prairie_free(prairie_malloc(size));
    return test_alloc(hooks, new_address, bytes, align, zero, commit, arena);
}

/* Then the hooks get no small blocks themselves, and are not asked for them in a circle. */
static void all_arenas_are_hooked(void **state)
{
    struct extent_hooks hooks = test_hooks;

    (void)state;
    (void)hooked_automatic();
    assert_non_null(arena_at(1));
    hooks.alloc = asking_alloc;
    (void)arena_set_hooks(arenas[0], &hooks);
    (void)arena_set_hooks(arenas[1], &hooks);
    for (unsigned i = 0; i < 3000; i++) assert_non_null(prairie_malloc(1 + random_below(3000)));
    assert_true(seen.allocs > 0);
    seen.refused = 1;
    while (prairie_malloc(5000) != NULL) {}
    prairie_check_all();
}

static void *allocs_in_circles(struct extent_hooks *hooks, void *new_address, size_t bytes,
                               size_t align, bool *zero, bool *commit, unsigned arena)
{
    assert_null(prairie_mallocx(12 * MiB, (int)MALLOCX_ARENA(arena)));
    return test_alloc(hooks, new_address, bytes, align, zero, commit, arena);
}

/* Past its end a thread has no cache, and hooks supply what it takes all the same; but not what
 * they take themselves meanwhile. */
static void hooks_serve_threads_without_caches(void **state)
{
    struct extent_hooks hooks = test_hooks;
    unsigned allocs;

    (void)state;
    fake_cores(1);
    (void)placed_destroy(hooked_arena());
    hooks.alloc = allocs_in_circles;
    (void)arena_set_hooks(arenas[0], &hooks);
    fake_thread_end();
    assert_ptr_equal(thread_front(), GONE_FRONT);
    allocs = seen.allocs;
    for (unsigned i = 0; i < 3000; i++) assert_non_null(prairie_malloc(1 + random_below(5000)));
    assert_true(seen.allocs > allocs);
    prairie_check_all();
}

static unsigned shared_cache;
static struct arena *other_arena;

static void *cache_sharing_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes,
                                 size_t align, bool *zero, bool *commit, unsigned arena)
{
    void *block =
        prairie_mallocx(100, MALLOCX_TCACHE(shared_cache) | MALLOCX_ARENA(other_arena->index));

    assert_ptr_equal(arena_of_address(block), other_arena);
    return test_alloc(hooks, new_address, bytes, align, zero, commit, arena);
}

/* The call that waits for the hook gets a block of its own arena all the same. */
static void a_hook_names_the_same_cache(void **state)
{
    struct extent_hooks hooks = test_hooks;
    struct arena *arena = hooked_arena();
    int flags = MALLOCX_ARENA(arena->index);

    (void)state;
    hooks.alloc = cache_sharing_alloc;
    (void)arena_set_hooks(arena, &hooks);
    other_arena = arena_create();
    shared_cache = explicit_cache_create();
    for (unsigned i = 0; i < 1000; i++)
        assert_ptr_equal(
            arena_of_address(prairie_mallocx(9000, flags | MALLOCX_TCACHE(shared_cache))), arena);
    assert_true(seen.allocs > 1);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(hooks_do_not_cancel_their_thread),
          UNIT_TEST(small_blocks_of_a_hooked_automatic_arena),
          UNIT_TEST(large_blocks_of_a_hooked_automatic_arena),
          UNIT_TEST(blocks_older_than_automatic_hooks), UNIT_TEST(all_arenas_are_hooked),
          UNIT_TEST(hooks_serve_threads_without_caches), UNIT_TEST(a_hook_names_the_same_cache))
