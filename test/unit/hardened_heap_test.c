/* hardened_heap_test.c - a hardened process with other options and with arenas of the program's, and
 * what is held and given back there. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "hardened.h"
#include "holes.h"
#include "hooks.h"
#include "threads.h"

#include <jemalloc/jemalloc.h>

/* ---- with other options ---- */

static void what_is_to_be_zero_is(void **state)
{
    (void)state;
    options_parse("lg_prof_sample:9", "test");
    prairie_free(prairie_malloc(1));
    assert_true(profile_start());
    harden();
    for (unsigned i = 0; i < BLOCKS; i++) {
        block = prairie_malloc(100);
        memset(block, 0xff, 100);
        prairie_free(block);
        block = prairie_calloc(1, 100);
        assert_true(all_bytes_are(block, 0, 100));
        memset(block, 0xff, 100);
        prairie_free(block);
    }
    prairie_check_all();
}

/* Blocks that are ready are no reason to pass a sample by: of so many bytes 539 are due, give or
 * take 23. */
static void what_is_due_is_sampled(void **state)
{
    unsigned sampled = 0;
    uint32_t page;

    (void)state;
    sampler_set_seed(random_word());
    options_parse("lg_prof_sample:12", "test");
    prairie_free(prairie_malloc(1));
    assert_true(profile_start());
    harden();
    for (unsigned i = 0; i < 20000; i++) {
        block = prairie_malloc(100);
        sampled += pointer_kind(block, &page) == POINTER_SAMPLED;
        prairie_free(block);
    }
    assert_in_range(sampled, 539 - 6 * 23, 539 + 6 * 23);
    prairie_check_all();
}

/* As in any process a block that grew is a sample by the same chance as a new one: of 4 MiB with a
 * period of 1 MiB 98 in 100, give or take 1.3. */
static void what_has_grown_is_sampled(void **state)
{
    unsigned sampled = 0;
    uint32_t page;

    (void)state;
    sampler_set_seed(random_word());
    options_parse("lg_prof_sample:20", "test");
    prairie_free(prairie_malloc(1));
    assert_true(profile_start());
    harden();
    for (unsigned i = 0; i < 100; i++) {
        block = prairie_realloc(prairie_malloc(LARGE), 4 * MiB);
        sampled += pointer_kind(block, &page) == POINTER_SAMPLED;
        prairie_free(block);
    }
    assert_in_range(sampled, 98 - 8, 100);
    prairie_check_all();
}

/* Sampling, but hardly a block; and `block`, which may grow by as much where it is. */
static void take_before_room(size_t bytes)
{
    char *after;

    options_parse("lg_prof_sample:40", "test");
    prairie_free(prairie_malloc(1));
    assert_true(profile_start());
    harden();
    block = taken(bytes);
    after = taken(bytes);
    assert_ptr_equal(after, block + bytes + page_bytes());
    prairie_free(after);
    thread_flush();
    (void)prairie_purge();
}

/* It cannot move to become one. */
static void what_is_to_stay_grows_unsampled(void **state)
{
    const size_t bytes = 1 * MiB;
    uint32_t page;

    (void)state;
    take_before_room(bytes);
    assert_int_equal(prairie_xallocx(block, bytes + 32 * KiB, 0, 0), bytes + 32 * KiB);
    assert_int_equal(pointer_kind(block, &page), POINTER_HARDENED);
    limits_set_hard(commit_taken_bytes() + 64 * KiB);
    errno = 0;
    assert_ptr_equal(prairie_rallocx(block, bytes + 64 * KiB, 0), block);
    assert_int_equal(errno, 0);
    limits_set_hard(0);
    prairie_free(block);
    prairie_check_all();
}

/* It moves to become a sample, perhaps; but where two of them would be too much it grows. */
static void what_cannot_move_grows_unsampled(void **state)
{
    const size_t bytes = 1 * MiB;
    uint32_t page;

    (void)state;
    take_before_room(bytes);
    limits_set_hard(commit_taken_bytes() + 64 * KiB);
    errno = 0;
    assert_ptr_equal(prairie_realloc(block, bytes + 32 * KiB), block);
    assert_int_equal(errno, 0);
    assert_int_equal(pointer_kind(block, &page), POINTER_HARDENED);
    assert_int_equal(prairie_usable_size(block), bytes + 32 * KiB);
    limits_set_hard(0);
    prairie_free(block);
    prairie_check_all();
}

/* ---- the rest of the heap ---- */

static void manual_arenas_are_hardened_too(void **state)
{
    struct arena *arena;
    int flags;

    (void)state;
    harden();
    prairie_free(taken(1));
    arena = arena_create();
    assert_non_null(arena);
    flags = MALLOCX_ARENA(arena->index);
    block = prairie_mallocx(100, flags);
    assert_int_equal(prairie_usable_size(block), 100);
    assert_ptr_equal(arena_of_address(block), arena);
    block[100] ^= 1;
    expect_abort(free_it, "prairie: write past the end of a block: ");
    block[100] ^= 1;
    prairie_dallocx(block, flags);
    block = prairie_mallocx(100, flags);
    assert_ptr_equal(prairie_realloc(block, 99), block);
    hardened_set_door(block, DOOR_NEW);
    hardened_check_door(block, DOOR_NEW);
    prairie_free(block);
    assert_true(placed_destroy(arena)); /* nothing of it waits */
    prairie_check_all();
}

enum { HELD = 300 };
static char *held[HELD];

static void *give_all_held(void *unused)
{
    for (unsigned i = 0; i < HELD; i++) prairie_free(held[i]);
    return unused;
}

/* Gives them back, and takes as many: how many of those are of the arena that only the other thread
 * named. */
static void *give_and_take(void *arena)
{
    static size_t of_arena;

    (void)give_all_held(NULL);
    for (unsigned i = 0; i < HELD; i++) held[i] = prairie_malloc(100);
    for (unsigned i = 0; i < HELD; i++) of_arena += arena_of_address(held[i]) == arena;
    (void)give_all_held(NULL);
    return &of_arena;
}

/* Blocks of its slabs that are not in them. */
static uint64_t blocks_out_of(const struct arena *arena, unsigned class_index)
{
    const struct class_bin *bin = &arena->bin[class_index];

    return bin->slab_count * (uint64_t)slab_shape[class_index].block_count - bin->slab_free_blocks;
}

/* Whoever gives them back: in a magazine of another thread they would be there still when their
 * arena is gone. */
static void blocks_of_a_bound_thread_go_home(void **state)
{
    struct arena *before, *arenas_here[2];
    pthread_t thread;
    void *of_arena;

    (void)state;
    harden();
    prairie_free(taken(1));
    before = thread_arena();
    arenas_here[0] = arena_create();
    arenas_here[1] = hooked_arena();
    for (unsigned i = 0; i < ARRAY_COUNT(arenas_here); i++) {
        struct arena *arena = arenas_here[i];

        assert_non_null(arena);
        thread_bind(arena);
        for (unsigned k = 0; k < HELD; k++) {
            held[k] = taken(100);
            assert_ptr_equal(arena_of_address(held[k]), arena);
        }
        if (i == 0) (void)give_all_held(NULL);
        else run_thread(give_all_held, NULL);
        assert_int_equal(blocks_out_of(arena, hardened_class(100, 1)), 0);
        for (unsigned k = 0; k < HELD; k++) held[k] = taken(100);
        assert_int_equal(pthread_create(&thread, NULL, give_and_take, arena), 0);
        assert_int_equal(pthread_join(thread, &of_arena), 0);
        assert_int_equal(*(size_t *)of_arena, 0);
        thread_bind(before);
        assert_true(placed_destroy(arena));
        prairie_check_all();
    }
}

static struct arena *chosen_by_hook;

static void *choosing_alloc(struct extent_hooks *hooks, void *new_address, size_t bytes,
                            size_t align, bool *zero, bool *commit, unsigned arena)
{
    thread_bind(chosen_by_hook);
    return test_alloc(hooks, new_address, bytes, align, zero, commit, arena);
}

/* While blocks are fetched: none of that arena is ready then, as it would be given out as one of
 * any arena, and wait when it comes back. */
static void a_hook_binds_the_thread_that_fetches(void **state)
{
    static struct extent_hooks hooks;
    struct arena *before;
    char *other;

    (void)state;
    harden();
    prairie_free(taken(1));
    before = thread_arena();
    (void)hooked_arena(); /* memory for hooks */
    chosen_by_hook = arena_create();
    hooks = test_hooks;
    hooks.alloc = choosing_alloc;
    (void)arena_set_hooks(before, &hooks);
    block = taken(100);
    assert_ptr_equal(arena_of_address(block), chosen_by_hook);
    other = taken(100);
    assert_ptr_equal(arena_of_address(other), chosen_by_hook);
    prairie_free(other);
    prairie_free(block);
    prairie_check_all();
    assert_int_equal(blocks_out_of(chosen_by_hook, hardened_class(100, 1)), 0);
}

/* What a reset leaves is not wiped, and a block that grows may find no guard for its end. */
static void what_was_behind_a_block_is_not_to_be_read(void **state)
{
    struct arena *arena;
    char *own;

    (void)state;
    harden();
    prairie_free(taken(1));
    arena = arena_create();
    assert_non_null(arena);
    block = taken(LARGE);
    own = prairie_mallocx(4 * LARGE, MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    assert_ptr_equal(own, block + round_up(LARGE, page_bytes()) + page_bytes());
    memset(own, 0xee, 4 * LARGE);
    placed_reset(arena);
    may_close(0);
    assert_ptr_equal(prairie_realloc(block, 2 * LARGE), block);
    assert_true(all_bytes_are(block + round_up(2 * LARGE, page_bytes()), 0, page_bytes()));
    prairie_free(block);
    assert_true(placed_destroy(arena));
    prairie_check_all();
}

/* They have no marks, and are as long as their pages: nallocx, which is asked for a size and not
 * for a block, answers for those that have. */
static void large_blocks_of_manual_arenas_are_resized_in_place(void **state)
{
    struct arena *arena;
    size_t bytes;
    int flags;

    (void)state;
    harden();
    prairie_free(taken(1));
    bytes = 64 * page_bytes();
    arena = arena_create();
    assert_non_null(arena);
    flags = (int)(MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    block = prairie_mallocx(bytes - 100, flags);
    assert_int_equal(prairie_nallocx(bytes - 100, flags), bytes - 100);
    assert_int_equal(prairie_sallocx(block, flags), bytes);
    for (size_t less = 8; less < 32; less += 8) {
        size_t size = bytes - less * page_bytes() - 100;

        assert_ptr_equal(prairie_rallocx(block, size, 0), block);
        assert_int_equal(prairie_sallocx(block, 0), size + 100);
        assert_ptr_equal(prairie_rallocx(block, size - page_bytes(), MALLOCX_ALIGN(page_bytes())),
                         block);
    }
    prairie_free(block);
    assert_true(placed_destroy(arena));
    prairie_check_all();
}

/* Those that are large have no page more: they are as in any other process. */
static void what_is_not_marked_has_no_page_more(void **state)
{
    struct arena *arena;

    (void)state;
    harden();
    prairie_free(taken(1));
    arena = arena_create();
    assert_non_null(arena);
    block = prairie_mallocx(LARGE, MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    assert_int_equal(prairie_usable_size(block), round_up(LARGE, page_bytes()) - PAGE_STAGGERED);
    prairie_free(block);
    prairie_check_all();
}

static void vast_blocks_have_no_marks(void **state)
{
    (void)state;
    needs_addresses(2 * VAST_BYTES_MIN);
    harden();
    block = prairie_malloc(VAST_BYTES_MIN);
    assert_int_equal(prairie_usable_size(block), VAST_BYTES_MIN);
    assert_int_equal(page_record(page_at(block))->state, PAGE_VAST);
    prairie_free(block);
    prairie_check_all();
}

/* Of its last page, too, what it had before it was shorter. */
static void what_a_vast_block_gains_reads_as_zero(void **state)
{
    size_t size;

    (void)state;
    needs_addresses(4 * VAST_BYTES_MIN);
    harden();
    prairie_free(taken(1));
    size = VAST_BYTES_MIN + page_bytes();
    block = prairie_malloc(size);
    memset(block + size - 1000, 1, 1000);
    block = prairie_realloc(block, size - 1000);
    assert_int_equal(prairie_usable_size(block), size - PAGE_STAGGERED);
    block = prairie_realloc(block, size);
    assert_int_equal(page_record(page_at(block))->state, PAGE_VAST);
    assert_true(all_bytes_are(block + size - PAGE_STAGGERED, 0, PAGE_STAGGERED));
    prairie_free(block);
}

/* nallocx knows from their size and alignment which blocks have a mapping of their own. */
static void vast_blocks_are_as_long_as_nallocx_tells(void **state)
{
    size_t page;

    (void)state;
    harden();
    prairie_free(taken(1));
    page = page_bytes();
    for (size_t size = VAST_BYTES_MIN - 3 * page - 1; size < VAST_BYTES_MIN + 2 * page;
         size += page / 2) {
        block = prairie_mallocx(size, 0);
        assert_int_equal(prairie_sallocx(block, 0), prairie_nallocx(size, 0));
        assert_int_equal(page_record(page_at(block))->state == PAGE_VAST,
                         size > VAST_BYTES_MIN - page);
        prairie_free(block);
    }
    assert_int_equal(prairie_nallocx(VAST_BYTES_MIN - 2 * page, 0), VAST_BYTES_MIN - 2 * page);
    assert_int_equal(prairie_nallocx(100, MALLOCX_ALIGN(VAST_BYTES_MIN / 2)), 100);
    for (size_t size = 100; size < 10 * page; size += page) {
        block = prairie_mallocx(size, MALLOCX_ALIGN(VAST_BYTES_MIN));
        assert_int_equal(prairie_sallocx(block, 0),
                         prairie_nallocx(size, MALLOCX_ALIGN(VAST_BYTES_MIN)));
        prairie_free(block);
    }
    assert_int_equal(prairie_nallocx(SIZE_MAX, 0), 0);
    assert_int_equal(prairie_nallocx(1, 63), 0);
    prairie_check_all();
}

/* The page behind a large block is its fence. */
static void no_other_fences_are_built(void **state)
{
    size_t used, bytes;

    (void)state;
    fake_fences(true);
    harden();
    prairie_free(taken(1));
    bytes = 2 * LARGE_CACHE_PAGES_MAX * page_bytes();
    used = page_heap_used_pages(page_heap);
    block = taken(bytes);
    assert_int_equal(page_heap_used_pages(page_heap), used + pages_for(bytes) + 1);
    assert_false(page_is_fenced(page_record(page_at(block))));
    prairie_free(block);
    prairie_check_all();
}

/* They go home at once, and wait nowhere. */
static void blocks_that_no_cache_holds_are_not_lost(void **state)
{
    size_t used;

    (void)state;
    harden();
    prairie_free(taken(100));
    thread_hold_up_to(class_of_size(200));
    prairie_free(taken(5000));
    used = page_heap_used_pages(page_heap);
    for (unsigned i = 0; i < 1000; i++) {
        block = taken(5000);
        memset(block, 1, 5000);
        prairie_free(block);
    }
    assert_in_range(page_heap_used_pages(page_heap), 0, used);
    expect_abort(free_it, "prairie: double free: ");
    prairie_check_all();
}

/* Those of no quarantine, of which the kernel takes no page: they are wiped by hand. There is no
 * guard that it would have to open. */
static void large_blocks_that_cannot_wait_are_not_lost(void **state)
{
    const size_t bytes = WIPED_RUN_BYTES_MAX + 1;
    size_t used;

    (void)state;
    harden();
    prairie_free(taken(1));
    used = page_heap_used_pages(page_heap);
    for (unsigned i = 0; i < 3; i++) {
        may_close(0);
        block = taken(bytes);
        memset(block, 0xff, bytes);
        fake_fail_kind(i == 1 ? FAKE_PURGE : FAKE_COMMIT, i != 0);
        prairie_free(block);
        fake_fail_kind(i == 1 ? FAKE_PURGE : FAKE_COMMIT, false);
        assert_true(all_bytes_are(block, 0, bytes));
        assert_int_equal(page_heap_used_pages(page_heap), used);
    }
    prairie_check_all();
}

static void free_it_the_usual_way(void) { hardened_free(thread_front(), block); }

static void measure_what_is_held(void) { (void)hardened_held_bytes(block, page_at(block)); }

/* For who walks over all blocks there may be. */
static void what_is_held_is_told_from_what_is_free(void **state)
{
    char *large;

    (void)state;
    harden();
    block = taken(100);
    large = taken(LARGE);
    assert_int_equal(hardened_held_bytes(block, page_at(block)), 100);
    assert_int_equal(hardened_held_bytes(large, page_at(large)), LARGE);
    block[104] ^= 1;
    expect_abort(measure_what_is_held, "prairie: write past the end of a block: ");
    block[104] ^= 1;
    prairie_free(block);
    assert_int_equal(hardened_held_bytes(block, page_at(block)), 0);
    prairie_free(large);
}

/* Behind the last slab is nothing that can be read. */
static void the_end_of_the_last_slab_is_no_block(void **state)
{
    const char *end;

    (void)state;
    harden();
    do {
        const struct slab *slab;

        block = taken(100);
        slab = slab_record(page_record(page_at(block))->slab);
        end = slab->base + slab_shape[slab->class_index].bytes;
    } while (fake_is_committed(end, page_bytes()));
    block += end - 8 - block;
    expect_abort(free_it_the_usual_way, "prairie: free of an interior pointer: ");
}

/* What hooks have put there, shared with other processes perhaps, must stay. */
static void no_pages_move_over_those_of_an_arena(void **state)
{
    size_t bytes = 2 * REMAP_BYTES_MIN;
    struct arena *arena;
    void *own;

    (void)state;
    harden();
    prairie_free(taken(1));
    arena = arena_create();
    assert_non_null(arena);
    block = taken(bytes);
    own = prairie_mallocx(2 * bytes, MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    assert_non_null(own);
    assert_false(hardened_move_pages(block, page_at(block), bytes, own));
    prairie_free(own);
    own = taken(2 * bytes);
    assert_true(hardened_move_pages(block, page_at(block), bytes, own));
    prairie_free(own);
    prairie_check_all();
}

static void what_a_moved_block_gains_is_junk(void **state)
{
    size_t bytes = 2 * REMAP_BYTES_MIN - 100;
    char *own;

    (void)state;
    options_parse("junk:alloc", "test");
    heap_obey_options();
    harden();
    block = taken(bytes);
    own = taken(bytes + 50);
    assert_true(hardened_move_pages(block, page_at(block), bytes, own));
    assert_true(all_bytes_are(own + bytes, 0xa5, 50));
    prairie_free(own); /* with its canaries */
    own = taken(2 * bytes);
    block = taken(bytes);
    assert_true(hardened_move_pages(block, page_at(block), bytes, own));
    assert_true(all_bytes_are(own + bytes, 0xa5, bytes));
    prairie_free(own);
    prairie_check_all();
}

static void without_a_cache_blocks_go_straight_home(void **state)
{
    (void)state;
    harden();
    prairie_free(taken(100));
    assert_true(thread_cache_off());
    block = taken(100);
    prairie_free(block);
    expect_abort(free_it, "prairie: double free: ");
    thread_cache_on();
    assert_int_equal(thread_front()->kind, FRONT_HARDENED);
    block = taken(100);
    prairie_free(block);
    expect_abort(free_it, "prairie: double free: ");
    prairie_check_all();
}

static void nothing_is_lost_without_memory_for_records(void **state)
{
    (void)state;
    harden();
    block = taken(100);
    fake_fail_kind(FAKE_COMMIT, true);
    for (size_t bytes = 1; bytes < 5000; bytes += 100) {
        char *one = prairie_malloc(bytes);
        if (one == NULL) continue;
        assert_int_equal(prairie_usable_size(one), bytes);
        prairie_free(one);
    }
    prairie_free(block);
    prairie_check_all();
}

/* What slabs are made of is no large block. */
static void slabs_are_not_counted_as_large(void **state)
{
    (void)state;
    harden();
    for (size_t bytes = 1; bytes < 8000; bytes += 10) (void)taken(bytes);
    lock_take(&control_lock);
    assert_int_equal(snapshot_take()->all.large.taken, 0);
    lock_give(&control_lock);
}

/* All of them but for each 8th, and the pages between those. */
static void give_most_and_purge(void)
{
    make_holes();
    (void)prairie_purge();
    assert_true(hole_pages_gone() > 0);
    prairie_check_all();
}

static void take_most(void)
{
    for (unsigned i = 0; i < HOLED_BLOCKS; i++)
        if (hole_is_at(i)) holed[i] = taken(HOLED_BYTES);
}

/* And are no misuse; of a kernel that leaves anything there nobody can tell that. */
static void pages_between_blocks_come_back_as_zeros(void **state)
{
    (void)state;
    harden();
    for (unsigned i = 0; i < HOLED_BLOCKS; i++) {
        holed[i] = taken(HOLED_BYTES);
        memset(holed[i], (int)i, HOLED_BYTES);
    }
    give_most_and_purge();
    take_most();
    for (unsigned i = 0; i < HOLED_BLOCKS; i++)
        assert_true(all_bytes_are(holed[i], !hole_is_at(i) ? (unsigned char)i : 0, HOLED_BYTES));
    fake_purge_does(FAKE_PURGE_SCRIBBLES);
    give_most_and_purge();
    expect_abort(take_most, "prairie: write after free: ");
}

UNIT_MAIN(UNIT_TEST(what_is_to_be_zero_is), UNIT_TEST(manual_arenas_are_hardened_too),
          UNIT_TEST(blocks_of_a_bound_thread_go_home),
          UNIT_TEST(a_hook_binds_the_thread_that_fetches),
          UNIT_TEST(what_was_behind_a_block_is_not_to_be_read),
          UNIT_TEST(what_has_grown_is_sampled), UNIT_TEST(what_is_to_stay_grows_unsampled),
          UNIT_TEST(what_cannot_move_grows_unsampled),
          UNIT_TEST(vast_blocks_are_as_long_as_nallocx_tells),
          UNIT_TEST(large_blocks_of_manual_arenas_are_resized_in_place),
          UNIT_TEST(no_pages_move_over_those_of_an_arena),
          UNIT_TEST(what_a_moved_block_gains_is_junk),
          UNIT_TEST(without_a_cache_blocks_go_straight_home),
          UNIT_TEST(nothing_is_lost_without_memory_for_records),
          UNIT_TEST(slabs_are_not_counted_as_large), UNIT_TEST(what_is_due_is_sampled),
          UNIT_TEST(what_is_held_is_told_from_what_is_free),
          UNIT_TEST(what_is_not_marked_has_no_page_more), UNIT_TEST(vast_blocks_have_no_marks),
          UNIT_TEST(what_a_vast_block_gains_reads_as_zero), UNIT_TEST(no_other_fences_are_built),
          UNIT_TEST(blocks_that_no_cache_holds_are_not_lost),
          UNIT_TEST(large_blocks_that_cannot_wait_are_not_lost),
          UNIT_TEST(the_end_of_the_last_slab_is_no_block),
          UNIT_TEST(pages_between_blocks_come_back_as_zeros))
