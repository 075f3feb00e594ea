/* control_placed_test.c - the names in the control tree that arenas, explicit caches and the
 * calling thread have: which calls are served, and with which errors the others come back. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "arenas/sparse.h"

#include "control_values.h"
#include "control_tree.h"
#include "hooks.h"
#include "pages.h"

#include <errno.h>

static int act(const char *name) { return control_by_name(name, NULL, NULL, NULL, 0); }

static int write_number(const char *name, unsigned number)
{
    return control_by_name(name, NULL, NULL, &number, sizeof number);
}

static unsigned read_number(const char *name)
{
    unsigned number = 0;
    size_t length = sizeof number;

    assert_int_equal(control_by_name(name, &number, &length, NULL, 0), 0);
    return number;
}

static const char *leaf_of(unsigned index, const char *leaf)
{
    static char name[CONTROL_NAME_BYTES];

    snprintf(name, sizeof name, "arena.%u.%s", index, leaf);
    return name;
}

static void start(void) { prairie_free(prairie_malloc(1)); }

/* ---- the calling thread ---- */

static const char enabled_leaf[] = "thread.tcache.enabled", max_leaf[] = "thread.tcache.max";

/* Of numbers that no arena has, those of automatic ones may have one later. */
static void a_thread_is_bound_to_an_arena_that_is_there(void **state)
{
    unsigned made, other;

    (void)state;
    start();
    made = read_number("arenas.create");
    other = read_number("arenas.create");
    assert_int_equal(made, arena_limit);
    assert_int_equal(act(leaf_of(made, "destroy")), 0);
    assert_int_equal(write_number("thread.arena", made), EFAULT); /* behind the automatic ones */
    assert_int_equal(write_number("thread.arena", other + 1), EFAULT);
    assert_int_equal(write_number("thread.arena", UINT32_MAX), EFAULT);
    assert_int_equal(write_number("thread.arena", other), 0);
    assert_int_equal(read_number("thread.arena"), other);
    assert_int_equal(arenas[other]->threads, 1);
    assert_int_equal(act(leaf_of(other, "destroy")), EFAULT); /* somebody is bound to it */
    assert_int_equal(write_number("thread.arena", 0), 0);
    assert_int_equal(read_number("thread.arena"), 0);
    assert_int_equal(act(leaf_of(other, "destroy")), 0);
    assert_null(arenas[arena_limit - 1]);
    fake_fail_all(true);
    while (meta_take(64) != NULL) {}
    assert_int_equal(write_number("thread.arena", arena_limit - 1), EAGAIN);
    fake_fail_all(false);
    assert_int_equal(write_number("thread.arena", arena_limit - 1), 0);
    assert_int_equal(read_number("thread.arena"), arena_limit - 1);
}

static void a_thread_holds_blocks_or_none(void **state)
{
    (void)state;
    start();
    assert_true(read_flag(enabled_leaf));
    assert_int_equal(write_flag(enabled_leaf, true), 0);
    assert_int_equal(write_flag(enabled_leaf, false), 0);
    assert_false(read_flag(enabled_leaf));
    assert_int_equal(write_flag(enabled_leaf, false), 0);
    assert_int_equal(write_flag(enabled_leaf, true), 0);
    assert_true(read_flag(enabled_leaf));
    assert_int_equal(thread_front()->kind, FRONT_CACHE);
}

/* What fills blocks does it where every call comes along. */
static void blocks_that_are_filled_are_not_held(void **state)
{
    (void)state;
    options_parse("junk:true", "test");
    heap_obey_options();
    start();
    assert_false(read_flag(enabled_leaf));
    assert_int_equal(write_flag(enabled_leaf, false), 0);
    assert_int_equal(write_flag(enabled_leaf, true), EFAULT);
    assert_false(read_flag(enabled_leaf));
}

/* It has no cache any more, and no arena. */
static void a_thread_at_its_end_holds_nothing(void **state)
{
    unsigned arena = 7;
    size_t length = sizeof arena;

    (void)state;
    start();
    fake_thread_end();
    assert_false(read_flag(enabled_leaf));
    assert_int_equal(write_flag(enabled_leaf, true), EFAULT);
    assert_int_equal(control_by_name("thread.arena", &arena, &length, NULL, 0), EAGAIN);
    assert_int_equal(arena, 7);
    assert_int_equal(read_size(max_leaf), SMALL_BYTES_MAX);
    assert_int_equal(write_size(max_leaf, 100), EFAULT);
    assert_int_equal(act("thread.tcache.flush"), 0);
    assert_int_equal(act("thread.idle"), 0);
}

/* What it held is free at once, and its pages go as soon as they may not stay. */
static void a_flush_gives_all_back(void **state)
{
    static const char *const leaf[] = { "thread.tcache.flush", "thread.idle" };

    (void)state;
    start();
    options_parse("dirty_decay_ms:0", "test");
    decay_obey_options();
    for (unsigned i = 0; i < ARRAY_COUNT(leaf); i++) {
        unsigned class_index = class_of_size(SMALL_BYTES_MAX);

        for (unsigned taken = 0; taken < LARGE_CACHE_AFTER; taken++)
            prairie_free(memset(prairie_malloc(20000), 1, 20000));
        assert_int_not_equal(thread_front()->cache->large_cache->room_pages,
                             pages_of_bytes(LARGE_CACHE_BYTES_MAX));
        prairie_free(prairie_malloc(SMALL_BYTES_MAX));
        assert_int_not_equal(thread_front()->cache->spare[class_index].capacity, 0);
        assert_int_equal(act(leaf[i]), 0);
        assert_int_equal(thread_front()->cache->spare[class_index].capacity, 0);
        assert_int_equal(page_heap->free_pages[FREE_DIRTY], 0);
    }
}

/* A size stands for its class, and what is beyond all for the largest. */
static void how_large_the_held_blocks_are(void **state)
{
    static const struct {
        size_t told, held;
    } rows[] = { { 100, 112 },
                 { 112, 112 },
                 { 113, 128 },
                 { 0, 1 },
                 { 1, 1 },
                 { SMALL_BYTES_MAX - 1, SMALL_BYTES_MAX },
                 { SMALL_BYTES_MAX + 1, SMALL_BYTES_MAX },
                 { SIZE_MAX, SMALL_BYTES_MAX } };

    (void)state;
    start();
    assert_int_equal(read_size(max_leaf), SMALL_BYTES_MAX);
    for (unsigned i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_int_equal(write_size(max_leaf, rows[i].told), 0);
        assert_int_equal(read_size(max_leaf), class_bytes[class_of_size(rows[i].held)]);
        assert_int_equal(thread_front()->cache->class_max, class_of_size(rows[i].held));
    }
}

/* How many blocks of a size it may hold. */
static int ask_for_blocks(size_t bytes, size_t *blocks)
{
    size_t length = sizeof *blocks;

    return control_by_name("thread.tcache.ncached_max.read_sizeclass", blocks, &length, &bytes,
                           sizeof bytes);
}

static void large_blocks_are_held_by_their_length(void **state)
{
    size_t most = 8 * MiB, blocks = 7, part = SIZE_MAX, bytes = 100, length = sizeof part / 2;

    (void)state;
    start();
    for (size_t pages = 1; pages < 2 * LARGE_CACHE_PAGES_MAX; pages++) {
        assert_int_equal(ask_for_blocks(SMALL_BYTES_MAX + bytes_of(pages), &blocks), 0);
        assert_int_equal(blocks, large_cache_runs_max(SMALL_BYTES_MAX + bytes_of(pages)));
    }
    assert_int_equal(ask_for_blocks(most, &blocks), 0);
    assert_int_equal(blocks, 0);
    blocks = 7;
    assert_int_equal(ask_for_blocks(most + 1, &blocks), EINVAL);
    assert_int_equal(control_by_name("thread.tcache.ncached_max.read_sizeclass", &part, &length,
                                     &bytes, sizeof bytes),
                     EINVAL);
    assert_int_equal(length, sizeof part / 2);
    assert_int_not_equal(part, SIZE_MAX); /* what fits */
    length = sizeof blocks;
    assert_int_equal(control_by_name("thread.tcache.ncached_max.read_sizeclass", &blocks, &length,
                                     &bytes, sizeof bytes / 2),
                     EINVAL);
    assert_int_equal(act("thread.tcache.ncached_max.read_sizeclass"), EINVAL);
    assert_int_equal(blocks, 7);
    assert_int_equal(control_by_name("thread.tcache.ncached_max.read_sizeclass", NULL, NULL, &bytes,
                                     sizeof bytes),
                     0);
    assert_int_equal(write_size(max_leaf, 1000), 0);
    assert_int_equal(ask_for_blocks(1024, &blocks), 0);
    assert_int_not_equal(blocks, 0);
    assert_int_equal(ask_for_blocks(1025, &blocks), 0);
    assert_int_equal(blocks, 0);
    assert_int_equal(ask_for_blocks(SMALL_BYTES_MAX + 1, &blocks), 0);
    assert_int_equal(blocks, 0);
}

/* ---- caches ---- */

static void caches_are_named_by_number(void **state)
{
    unsigned number, made = 0;
    size_t length = sizeof number;
    void *block;

    (void)state;
    start();
    number = read_number("tcache.create");
    block = prairie_mallocx(100, MALLOCX_TCACHE(number));
    prairie_dallocx(block, MALLOCX_TCACHE(number));
    assert_ptr_equal(prairie_mallocx(100, MALLOCX_TCACHE(number)), block);
    prairie_dallocx(block, MALLOCX_TCACHE(number));
    assert_int_equal(act("tcache.flush"), EINVAL);
    assert_int_equal(write_number("tcache.flush", number), 0);
    assert_int_equal(explicit_cache_at(number)->spare[class_of_size(100)].capacity, 0);
    assert_int_equal(write_number("tcache.flush", number + 1), EFAULT);
    assert_int_equal(act("tcache.destroy"), EINVAL);
    assert_int_equal(write_number("tcache.destroy", number + 1), EFAULT);
    assert_int_equal(write_number("tcache.destroy", number), 0);
    assert_null(explicit_cache_at(number));
    assert_int_equal(write_number("tcache.destroy", number), EFAULT);
    assert_int_equal(write_number("tcache.flush", number), EFAULT);
    while (made < EXPLICIT_CACHE_COUNT_MAX) {
        assert_int_equal(read_number("tcache.create"), made);
        made++;
    }
    assert_int_equal(control_by_name("tcache.create", &number, &length, NULL, 0), EFAULT);
}

/* ---- arenas ---- */

static void *hooks_of(unsigned index)
{
    void *hooks = NULL;
    size_t length = sizeof hooks;

    assert_int_equal(control_by_name(leaf_of(index, "extent_hooks"), (void *)(uintptr_t)&hooks,
                                     &length, NULL, 0),
                     0);
    return hooks;
}

static int write_hooks(unsigned index, const struct extent_hooks *hooks)
{
    return control_by_name(leaf_of(index, "extent_hooks"), NULL, NULL, (void *)(uintptr_t)&hooks,
                           sizeof hooks);
}

static void hooks_are_what_they_were_set_to(void **state)
{
    unsigned index;

    (void)state;
    start();
    index = read_number("arenas.create");
    assert_ptr_equal(hooks_of(index), &extent_hooks_default);
    assert_ptr_equal(hooks_of(0), &extent_hooks_default);
    assert_int_equal(write_hooks(index, &extent_hooks_default), 0); /* nothing changes */
    assert_null(arenas[index]->extents);
    assert_int_equal(write_hooks(index, NULL), EFAULT);
    assert_int_equal(write_hooks(index + 1, &test_hooks), EFAULT);
    assert_int_equal(write_hooks(index, &test_hooks), 0);
    assert_ptr_equal(hooks_of(index), &test_hooks);
    assert_non_null(arenas[index]->extents);
    assert_int_equal(write_hooks(index, &extent_hooks_default), 0);
    assert_ptr_equal(hooks_of(index), &extent_hooks_default);
}

/* The first arena is there for who names it, before anything was taken from it. */
static void the_first_arena_gets_hooks_before_its_first_block(void **state)
{
    (void)state;
    assert_int_equal(write_hooks(0, &test_hooks), 0);
    assert_ptr_equal(hooks_of(0), &test_hooks);
}

/* Large blocks come from there at once. */
static void a_bound_thread_follows_the_hooks_of_its_arena(void **state)
{
    (void)state;
    start();
    assert_int_equal(write_number("thread.arena", 0), 0);
    assert_true(thread_front()->cache->front.keeps_runs);
    assert_int_equal(write_hooks(0, &test_hooks), 0);
    assert_false(thread_front()->cache->front.keeps_runs);
}

/* What is asked for ahead of need is bounded by what was set before the hooks, too, and in that
 * arena alone. */
static void growth_is_limited_before_there_are_hooks(void **state)
{
    struct arena *arena = hooked_arena(), *other;
    unsigned index = arena->index;
    size_t page = page_bytes(), usual;

    (void)state;
    usual = read_size(leaf_of(0, "retain_grow_limit"));
    assert_int_equal(read_size(leaf_of(index, "retain_grow_limit")), arena->extents->grow_limit);
    assert_true(placed_destroy(arena));
    assert_int_equal(read_number("arenas.create"), index);
    assert_int_equal(read_size(leaf_of(index, "retain_grow_limit")), usual);
    assert_int_equal(write_size(leaf_of(index, "retain_grow_limit"), 8 * page), 0);
    assert_int_equal(read_size(leaf_of(index, "retain_grow_limit")), 8 * page);
    assert_int_equal(read_size(leaf_of(0, "retain_grow_limit")), usual);
    assert_int_equal(write_hooks(index, &test_hooks), 0);
    assert_int_equal(read_size(leaf_of(index, "retain_grow_limit")), 8 * page);
    seen.largest = 0;
    prairie_free(prairie_mallocx(5 * page, MALLOCX_ARENA(index)));
    assert_int_equal(seen.largest, 8 * page);
    assert_int_equal(write_size(leaf_of(index, "retain_grow_limit"), 16 * page), 0);
    assert_int_equal(arena->extents->grow_limit, 16 * page);
    assert_true(placed_destroy(arena));
    assert_int_equal(read_number("arenas.create"), index); /* its number is given out anew */
    assert_int_equal(read_size(leaf_of(index, "retain_grow_limit")), usual);
    other = manual_arena_at(index);
    assert_int_equal(write_hooks(index, &test_hooks), 0);
    assert_int_equal(other->extents->next_bytes, 2 * MiB);
}

/* An arena with hooks that there is no memory for is not made. */
static void no_arena_is_made_without_its_hooks(void **state)
{
    struct extent_hooks *hooks = &test_hooks;
    unsigned index = 0, made;
    size_t length = sizeof index;

    (void)state;
    start();
    made = read_number("arenas.create");
    assert_int_equal(act(leaf_of(made, "destroy")), 0);
    fake_fail_all(true);
    while (meta_take(64) != NULL) {}
    assert_int_equal(
        control_by_name("arenas.create", &index, &length, (void *)(uintptr_t)&hooks, sizeof hooks),
        EAGAIN);
    assert_null(manual_arena_at(made));
    fake_fail_all(false);
    assert_int_equal(control_by_name("arenas.create", &index, &length, (void *)(uintptr_t)&hooks,
                                     sizeof hooks - 1),
                     EINVAL);
    assert_null(manual_arena_at(made));
    assert_int_equal(
        control_by_name("arenas.create", &index, &length, (void *)(uintptr_t)&hooks, sizeof hooks),
        0);
    assert_int_equal(index, made);
    assert_ptr_equal(hooks_of(made), &test_hooks);
    prairie_check_all();
}

static void resets_and_ends_are_for_manual_arenas(void **state)
{
    unsigned index;
    size_t *active = NULL, length = sizeof active;
    char name[CONTROL_NAME_BYTES];

    (void)state;
    start();
    index = read_number("arenas.create");
    snprintf(name, sizeof name, "experimental.arenas.%u.pactivep", index);
    assert_int_equal(control_by_name(name, (void *)(uintptr_t)&active, &length, NULL, 0), 0);
    assert_ptr_equal(active, &arenas[index]->active_pages);
    snprintf(name, sizeof name, "experimental.arenas.%u.pactivep", index + 1);
    assert_int_equal(control_by_name(name, (void *)(uintptr_t)&active, &length, NULL, 0), ENOENT);
    snprintf(name, sizeof name, "experimental.arenas.%u.pactivep", CONTROL_ARENAS_ALL);
    assert_int_equal(control_by_name(name, (void *)(uintptr_t)&active, &length, NULL, 0), EFAULT);
    assert_non_null(prairie_mallocx(100000, MALLOCX_ARENA(index)));
    assert_int_equal(*active, pages_for(100000));
    assert_int_equal(act(leaf_of(0, "reset")), EFAULT);
    assert_int_equal(act(leaf_of(0, "destroy")), EFAULT);
    assert_int_equal(act(leaf_of(index + 1, "reset")), EFAULT);
    assert_int_equal(act(leaf_of(index + 1, "destroy")), EFAULT);
    assert_int_equal(act(leaf_of(index, "reset")), 0);
    assert_int_equal(*active, 0);
    assert_non_null(prairie_mallocx(100000, MALLOCX_ARENA(index)));
    assert_int_equal(act(leaf_of(index, "destroy")), 0);
    assert_int_equal(allocated_bytes(), 0);
    assert_null(manual_arena_at(index));
    assert_int_equal(act(leaf_of(index, "destroy")), EFAULT);
    prairie_check_all();
}

/* Of slabs whose pages went back from between blocks, too. */
static void active_pages_are_those_of_the_statistics(void **state)
{
    enum { BLOCKS = 200, KEPT_EVERY = 8 };
    size_t *active = NULL, length = sizeof active;
    char name[CONTROL_NAME_BYTES];
    void *blocks[BLOCKS];
    unsigned index;
    int flags;

    (void)state;
    start();
    index = read_number("arenas.create");
    flags = MALLOCX_ARENA(index) | MALLOCX_TCACHE_NONE;
    snprintf(name, sizeof name, "experimental.arenas.%u.pactivep", index);
    assert_int_equal(control_by_name(name, (void *)(uintptr_t)&active, &length, NULL, 0), 0);
    for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = prairie_mallocx(5000, flags);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i % KEPT_EVERY != 0) prairie_dallocx(blocks[i], flags);
    assert_true(sparse_purge_all() != 0);
    assert_true(arenas[index]->purged_pages > 0);
    lock_take(&control_lock);
    assert_non_null(snapshot_take());
    assert_int_equal(*active, snapshot_arena(index)->active_pages);
    lock_give(&control_lock);
}

UNIT_MAIN(UNIT_TEST(a_thread_is_bound_to_an_arena_that_is_there),
          UNIT_TEST(a_thread_holds_blocks_or_none), UNIT_TEST(blocks_that_are_filled_are_not_held),
          UNIT_TEST(a_thread_at_its_end_holds_nothing), UNIT_TEST(how_large_the_held_blocks_are),
          UNIT_TEST(a_flush_gives_all_back), UNIT_TEST(large_blocks_are_held_by_their_length),
          UNIT_TEST(caches_are_named_by_number), UNIT_TEST(hooks_are_what_they_were_set_to),
          UNIT_TEST(the_first_arena_gets_hooks_before_its_first_block),
          UNIT_TEST(a_bound_thread_follows_the_hooks_of_its_arena),
          UNIT_TEST(growth_is_limited_before_there_are_hooks),
          UNIT_TEST(no_arena_is_made_without_its_hooks),
          UNIT_TEST(resets_and_ends_are_for_manual_arenas),
          UNIT_TEST(active_pages_are_those_of_the_statistics))
