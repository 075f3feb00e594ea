/* hooks_test.c - what a program may do within its own hooks. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "control_tree.h"
#include "hooks.h"
#include "threads.h"

#include <errno.h>
#include <sys/wait.h>

static struct arena *of_hooks;
static struct arena *bound_by_hook;
static unsigned calls_inside;

static void *busy_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes, size_t align,
                        bool *zero, bool *commit, unsigned arena)
{
    int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
    void *small = prairie_malloc(100), *large = prairie_malloc(100000);

    calls_inside++;
    assert_int_equal(calls_inside, 1); /* it is not asked again meanwhile */
    assert_non_null(small);
    assert_non_null(large);
    assert_ptr_not_equal(arena_of_address(small), of_hooks);
    assert_ptr_not_equal(arena_of_address(large), of_hooks);
    assert_null(prairie_mallocx(40 * MiB, flags));
    prairie_free(small);
    prairie_free(prairie_realloc(large, 300000));
    assert_false(placed_destroy(of_hooks));
    if (bound_by_hook != NULL) thread_bind(bound_by_hook);
    calls_inside--;
    return test_alloc(hooks, new_address, bytes, align, zero, commit, arena);
}

static bool busy_purge(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                       size_t length, unsigned arena)
{
    static unsigned depth;

    (void)hooks, (void)base, (void)bytes, (void)offset, (void)length;
    prairie_free(prairie_mallocx(100, MALLOCX_ARENA(arena)));
    assert_false(placed_destroy(of_hooks));
    if (depth++ == 0) arena_purge(of_hooks);
    depth--;
    return false;
}

static bool busy_dalloc(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                        unsigned arena)
{
    prairie_free(prairie_malloc(100000));
    assert_false(placed_destroy(of_hooks));
    return test_dalloc(hooks, base, bytes, committed, arena);
}

static struct extent_hooks busy_hooks = { busy_alloc, busy_dalloc, test_destroy, test_commit, NULL,
                                          busy_purge, NULL,        test_split,   test_merge };

static void hooks_take_from_elsewhere(void **state)
{
    struct arena *before;
    void *blocks[300], *large;

    (void)state;
    of_hooks = hooked_arena();
    before = thread_arena();
    (void)arena_set_hooks(of_hooks, &busy_hooks);
    thread_bind(of_hooks);
    for (unsigned off = 0; off < 2; off++) {
        if (off == 1) assert_true(thread_cache_off());
        for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) {
            blocks[i] = prairie_malloc(1 + random_below(i % 20 == 0 ? 100000 : 10000));
            assert_ptr_equal(arena_of_address(blocks[i]), of_hooks);
        }
        large = prairie_malloc(12 * MiB);
        assert_ptr_equal(arena_of_address(large), of_hooks);
        arena_purge(of_hooks);
        prairie_free(large);
        for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++) prairie_free(blocks[i]);
        prairie_check_all();
    }
    thread_cache_on();
    assert_int_equal(of_hooks->threads, 1);
    assert_false(placed_destroy(of_hooks));
    thread_bind(before);
    assert_true(placed_destroy(of_hooks));
    assert_int_equal(seen.bytes_out, 0);
    assert_int_equal(allocated_bytes(), 0);
    prairie_check_all();
}

/* The thread goes on with the arena that the hook chose, and each knows how many are bound to
 * it. */
static void a_hook_binds_its_thread(void **state)
{
    struct arena *other;
    void *block;

    (void)state;
    of_hooks = hooked_arena();
    other = arena_create();
    (void)arena_set_hooks(of_hooks, &busy_hooks);
    thread_bind(of_hooks);
    bound_by_hook = other;
    block = prairie_malloc(100);
    bound_by_hook = NULL;
    assert_ptr_equal(arena_of_address(block), other);
    assert_int_equal(of_hooks->threads, 0);
    assert_int_equal(other->threads, 1);
    prairie_free(block);
    thread_bind(arenas[0]);
    assert_int_equal(other->threads, 0);
    assert_true(placed_destroy(other));
    assert_true(placed_destroy(of_hooks));
    assert_int_equal(seen.bytes_out, 0);
    prairie_check_all();
}

static void *off_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes, size_t align,
                       bool *zero, bool *commit, unsigned arena)
{
    assert_false(thread_cache_off());
    return test_alloc(hooks, new_address, bytes, align, zero, commit, arena);
}

/* Hooks cannot take the cache away for which they are asked. */
static void no_hook_switches_the_cache_off(void **state)
{
    struct arena *arena = hooked_arena();
    struct extent_hooks hooks = test_hooks;
    void *block;

    (void)state;
    hooks.alloc = off_alloc;
    (void)arena_set_hooks(arena, &hooks);
    thread_bind(arena);
    block = prairie_malloc(100);
    assert_ptr_equal(arena_of_address(block), arena);
    assert_false(thread_cache_is_off());
    prairie_check_all();
    prairie_free(block);
    assert_int_equal(allocated_bytes(), 0);
    assert_int_equal(seen.allocs, 1);
    assert_true(thread_cache_off());
}

static uint32_t purging, may_purge_end; /* atomic */

static bool slow_purge(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                       size_t length, unsigned arena)
{
    (void)hooks, (void)base, (void)bytes, (void)offset, (void)length, (void)arena;
    __atomic_store_n(&purging, 1, __ATOMIC_RELEASE);
    wait_until_set(&may_purge_end);
    return false;
}

static void *purge_it(void *arena)
{
    arena_purge(arena);
    return NULL;
}

static void *end_purge_soon(void *unused)
{
    (void)unused;
    usleep(30000);
    __atomic_store_n(&may_purge_end, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Another thread purges, and does not come back before it may. */
static struct arena *arena_being_purged(struct extent_hooks *hooks, pthread_t *purger)
{
    struct arena *arena = hooked_arena();

    purging = may_purge_end = 0;
    *hooks = test_hooks;
    hooks->purge_forced = slow_purge;
    (void)arena_set_hooks(arena, hooks);
    prairie_free(prairie_mallocx(100000, MALLOCX_ARENA(arena->index)));
    assert_int_equal(pthread_create(purger, NULL, purge_it, arena), 0);
    wait_until_set(&purging);
    return arena;
}

/* The end of an arena waits for another thread that is in its hooks; a child's does not, where that
 * one is not. */
static void the_end_waits_for_other_threads(void **state)
{
    struct extent_hooks hooks;
    pthread_t purger, ender;
    struct arena *arena = arena_being_purged(&hooks, &purger);
    int child = fake_fork(), status;

    (void)state;
    if (child == 0) _exit(!placed_destroy(arena) || seen.bytes_out != 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(pthread_create(&ender, NULL, end_purge_soon, NULL), 0);
    assert_true(placed_destroy(arena));
    assert_true(__atomic_load_n(&may_purge_end, __ATOMIC_ACQUIRE));
    assert_int_equal(seen.bytes_out, 0);
    assert_int_equal(pthread_join(purger, NULL), 0);
    assert_int_equal(pthread_join(ender, NULL), 0);
    prairie_check_all();
}

/* Nobody uses a table that was replaced: the program may have dropped it. */
static void new_hooks_wait_for_calls_of_the_old_ones(void **state)
{
    struct extent_hooks hooks;
    pthread_t purger, ender;
    struct arena *arena = arena_being_purged(&hooks, &purger);
    int child = fake_fork(), status;

    (void)state;
    if (child == 0) _exit(arena_set_hooks(arena, &test_hooks) != &hooks);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(pthread_create(&ender, NULL, end_purge_soon, NULL), 0);
    assert_ptr_equal(arena_set_hooks(arena, &test_hooks), &hooks);
    assert_true(__atomic_load_n(&may_purge_end, __ATOMIC_ACQUIRE));
    memset(&hooks, 0, sizeof hooks);
    assert_int_equal(pthread_join(purger, NULL), 0);
    assert_int_equal(pthread_join(ender, NULL), 0);
    assert_true(placed_destroy(arena));
    assert_int_equal(seen.bytes_out, 0);
    prairie_check_all();
}

enum { ENDED_BLOCKS = 6, ENDED_BYTES = 100 * 4096 };

static void *ended_block(struct arena *arena)
{
    void *block = prairie_mallocx(ENDED_BYTES, MALLOCX_ARENA(arena->index));

    assert_non_null(block);
    return block;
}

static bool slow_dalloc(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                        unsigned arena)
{
    if (seen.dallocs == 3) {
        __atomic_store_n(&purging, 1, __ATOMIC_RELEASE);
        wait_until_set(&may_purge_end);
    }
    return test_dalloc(hooks, base, bytes, committed, arena);
}

static void *end_it(void *arena)
{
    assert_true(placed_destroy(arena));
    return NULL;
}

/* In the child of a fork the arena has what its end had not given back yet, and it may end anew. */
static int use_what_is_left(struct arena *arena, size_t bytes_kept)
{
    void *blocks[ENDED_BLOCKS];

    seen.dallocs = 4;
    for (unsigned i = 0; i < ENDED_BLOCKS; i++) blocks[i] = ended_block(arena);
    for (unsigned i = 0; i < ENDED_BLOCKS; i++) prairie_free(blocks[i]);
    prairie_check_all();
    return !placed_destroy(arena) || seen.bytes_out != bytes_kept;
}

static void an_end_that_a_fork_interrupts_is_none(void **state)
{
    struct extent_hooks hooks = test_hooks;
    struct arena *arena = hooked_arena();
    pthread_t ender;
    int child, status;

    (void)state;
    seen.refuse_split = true;
    purging = may_purge_end = 0;
    hooks.dalloc = slow_dalloc;
    (void)arena_set_hooks(arena, &hooks);
    for (unsigned i = 0; i < ENDED_BLOCKS; i++) (void)ended_block(arena);
    seen.dallocs = 0;
    assert_int_equal(pthread_create(&ender, NULL, end_it, arena), 0);
    wait_until_set(&purging);
    child = fake_fork();
    if (child == 0) _exit(use_what_is_left(arena, ENDED_BYTES));
    assert_int_equal(waitpid(child, &status, 0), child);
    __atomic_store_n(&may_purge_end, 1, __ATOMIC_RELEASE);
    assert_int_equal(pthread_join(ender, NULL), 0);
    assert_int_equal(status, 0);
    assert_int_equal(seen.bytes_out, 0);
    prairie_check_all();
}

static bool setting_purge(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                          size_t length, unsigned arena)
{
    (void)base, (void)bytes, (void)offset, (void)length;
    assert_ptr_equal(arena_set_hooks(arenas[arena], &test_hooks), hooks);
    return false;
}

/* Its own call would keep it waiting for ever. */
static void a_hook_that_sets_hooks_waits_for_nobody(void **state)
{
    struct arena *arena = hooked_arena();
    struct extent_hooks hooks = test_hooks;

    (void)state;
    hooks.purge_forced = setting_purge;
    (void)arena_set_hooks(arena, &hooks);
    prairie_free(prairie_mallocx(100000, MALLOCX_ARENA(arena->index)));
    arena_purge(arena);
    assert_ptr_equal(arena_hooks(arena), &test_hooks);
    assert_true(placed_destroy(arena));
    prairie_check_all();
}

static struct arena *busy_arena;

static bool purge_that_destroys(struct extent_hooks *hooks, void *base, size_t bytes, size_t offset,
                                size_t length, unsigned arena)
{
    (void)hooks, (void)base, (void)bytes, (void)offset, (void)length, (void)arena;
    assert_false(placed_destroy(busy_arena));
    return false;
}

/* Two threads, each in the hooks of one arena, that each destroy the other's. */
static void a_hook_does_not_wait_for_hooks(void **state)
{
    struct extent_hooks hooks, destroying = test_hooks;
    struct arena *arena;
    pthread_t purger;

    (void)state;
    busy_arena = arena_being_purged(&hooks, &purger);
    arena = arena_create();
    destroying.purge_forced = purge_that_destroys;
    (void)arena_set_hooks(arena, &destroying);
    prairie_free(prairie_mallocx(100000, MALLOCX_ARENA(arena->index)));
    arena_purge(arena);
    (void)end_purge_soon(NULL);
    assert_int_equal(pthread_join(purger, NULL), 0);
    assert_true(placed_destroy(busy_arena));
    assert_true(placed_destroy(arena));
    assert_int_equal(seen.bytes_out, 0);
    prairie_check_all();
}

static bool setting_dalloc(struct extent_hooks *hooks, void *base, size_t bytes, bool committed,
                           unsigned arena)
{
    assert_null(arena_set_hooks(arenas[arena], hooks + 1));
    return test_dalloc(hooks, base, bytes, committed, arena);
}

/* Who gives the last extents back uses the table to the end. */
static void an_arena_at_its_end_takes_no_hooks(void **state)
{
    struct arena *arena = hooked_arena();
    struct extent_hooks hooks[2] = { test_hooks, test_hooks };

    (void)state;
    hooks[0].dalloc = setting_dalloc;
    (void)arena_set_hooks(arena, hooks);
    prairie_free(prairie_mallocx(100000, MALLOCX_ARENA(arena->index)));
    assert_true(placed_destroy(arena));
    assert_int_equal(seen.bytes_out, 0);
    prairie_check_all();
}

/* As a plain free of the last block does. */
static void what_caches_give_back_lets_extents_go(void **state)
{
    enum { COUNT = 40000 };
    static void *blocks[COUNT];
    struct arena *arena = hooked_arena();
    unsigned number = explicit_cache_create(), dallocs;
    int flags = (int)(MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE(number));

    (void)state;
    for (unsigned i = 0; i < COUNT; i++) assert_non_null(blocks[i] = prairie_mallocx(1000, flags));
    for (unsigned i = 0; i < COUNT; i++) prairie_dallocx(blocks[i], (int)MALLOCX_TCACHE(number));
    dallocs = seen.dallocs;
    assert_true(dallocs > 0); /* magazines overflowed */
    explicit_cache_flush(explicit_cache_at(number));
    assert_true(seen.dallocs > dallocs);
    prairie_check_all();
}

/* ---- caches of bound threads ---- */

enum { HELD = 10000 };

/* The thread's cache holds the last blocks of extents that are free otherwise. */
static void hold_in_cache(struct arena *arena)
{
    static void *blocks[HELD];

    prairie_free(prairie_malloc(1)); /* a first call attaches the thread */
    thread_bind(arena);
    for (unsigned i = 0; i < HELD; i++) assert_non_null(blocks[i] = prairie_malloc(3000));
    for (unsigned i = 0; i < HELD; i++) prairie_free(blocks[i]);
}

/* Nothing is in use: the last slab stays open in one extent, and one that is free for the next. */
static void expect_two_extents(struct arena *arena)
{
    unsigned count = 0;

    lock_take(&arena->lock);
    for (const struct page_piece *piece = arena->extents->heap.pieces; piece; piece = piece->next)
        count++;
    lock_give(&arena->lock);
    assert_in_range(count, 1, 2);
    prairie_check_all();
}

static void *hold_and_end(void *arena)
{
    hold_in_cache(arena);
    return NULL;
}

static void *hold_and_bind(void *arena)
{
    hold_in_cache(arena);
    thread_bind(arenas[0]);
    expect_two_extents(arena);
    return NULL;
}

static void *hold_and_switch_off(void *arena)
{
    hold_in_cache(arena);
    assert_true(thread_cache_off());
    expect_two_extents(arena);
    return NULL;
}

static void *hold_and_hold_less(void *arena)
{
    hold_in_cache(arena);
    thread_hold_up_to(1);
    expect_two_extents(arena);
    return NULL;
}

/* A few of its blocks hold all extents. */
static void *end_in_explicit(void *hooked)
{
    struct arena *arena = hooked, *other = new_arena();
    unsigned number = explicit_cache_create();
    static void *blocks[HELD];
    int cached = (int)MALLOCX_TCACHE(number), flags = (int)(cached | MALLOCX_ARENA(arena->index));

    for (unsigned i = 0; i < HELD; i++) assert_non_null(blocks[i] = prairie_mallocx(3000, flags));
    for (unsigned i = 0; i < HELD; i++)
        prairie_dallocx(blocks[i], i % (HELD / 8) == 0 ? cached : (int)MALLOCX_TCACHE_NONE);
    flags = (int)(cached | MALLOCX_ARENA(other->index));
    prairie_dallocx(prairie_mallocx(3000, flags), cached);
    expect_two_extents(arena);
    return NULL;
}

static void what_bound_caches_held_lets_extents_go(void **state)
{
    void *(*const ways[])(void *) = { hold_and_end, hold_and_bind, hold_and_switch_off,
                                      hold_and_hold_less, end_in_explicit };

    (void)state;
    for (unsigned way = 0; way < ARRAY_COUNT(ways); way++) {
        struct arena *arena = hooked_arena();

        run_thread(ways[way], arena);
        expect_two_extents(arena);
        assert_true(placed_destroy(arena));
        assert_int_equal(seen.bytes_out, 0);
    }
}

/* What a purge would make of the program's memory is not known: all of it is written. */
static void what_is_gained_as_zeros_is_written(void **state)
{
    struct arena *arena = hooked_arena();
    int flags = MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE;
    size_t old_bytes = 100 * KiB, most = old_bytes + CLEAR_BYTES_MAX;
    char *block;
    uint64_t purged;

    (void)state;
    memset(seen.next, 0xee, (size_t)(seen.end - seen.next));
    block = prairie_mallocx(old_bytes, flags);
    assert_non_null(block);
    memset(block, 1, old_bytes);
    purged = fake_purged_bytes();
    block = prairie_rallocx(block, most, flags | MALLOCX_ZERO);
    assert_non_null(block);
    assert_int_equal(fake_purged_bytes(), purged);
    assert_true(all_bytes_are(block, 1, old_bytes));
    assert_true(all_bytes_are(block + old_bytes, 0, most - old_bytes));
    prairie_free(block);
}

UNIT_MAIN(UNIT_TEST(hooks_take_from_elsewhere), UNIT_TEST(a_hook_binds_its_thread),
          UNIT_TEST(no_hook_switches_the_cache_off), UNIT_TEST(the_end_waits_for_other_threads),
          UNIT_TEST(new_hooks_wait_for_calls_of_the_old_ones),
          UNIT_TEST(an_end_that_a_fork_interrupts_is_none),
          UNIT_TEST(a_hook_that_sets_hooks_waits_for_nobody),
          UNIT_TEST(a_hook_does_not_wait_for_hooks), UNIT_TEST(an_arena_at_its_end_takes_no_hooks),
          UNIT_TEST(what_caches_give_back_lets_extents_go),
          UNIT_TEST(what_bound_caches_held_lets_extents_go),
          UNIT_TEST(what_is_gained_as_zeros_is_written))
