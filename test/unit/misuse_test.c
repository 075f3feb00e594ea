/* misuse_test.c - what a pointer is, and the one line that each kind of misuse ends with. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

static char data[100];

static void *pointer; /* what the misuse is about */

static void free_it(void) { prairie_free(pointer); }
static void realloc_it(void) { (void)prairie_realloc(pointer, 100); }
static void realloc_it_to_nothing(void) { (void)prairie_realloc(pointer, 0); }
static void measure_it(void) { (void)prairie_usable_size(pointer); }
static void free_it_sized(void) { prairie_free_sized(pointer, 10); }
static void free_it_aligned_sized(void) { prairie_free_aligned_sized(pointer, 16, 10); }

static void expect_line(void (*misuse)(void), const char *words)
{
    expect_abort_at(misuse, words, pointer);
}

static void expect_foreign(void *address)
{
    pointer = address;
    expect_line(free_it, "free of a foreign pointer");
    expect_line(free_it_sized, "free of a foreign pointer");
    expect_line(free_it_aligned_sized, "free of a foreign pointer");
    expect_line(realloc_it, "realloc of a foreign pointer");
    expect_line(realloc_it_to_nothing, "realloc of a foreign pointer");
    expect_line(measure_it, "malloc_usable_size of a foreign pointer");
}

static void expect_interior(void *address)
{
    pointer = address;
    expect_line(free_it, "free of an interior pointer");
    expect_line(free_it_sized, "free of an interior pointer");
    expect_line(realloc_it, "realloc of an interior pointer");
    expect_line(measure_it, "malloc_usable_size of an interior pointer");
}

static void expect_freed(void *address)
{
    pointer = address;
    expect_line(free_it, "double free");
    expect_line(free_it_sized, "double free");
    expect_line(realloc_it, "realloc of a freed pointer");
    expect_line(measure_it, "malloc_usable_size of a freed pointer");
}

/* ---- foreign ---- */

static void before_the_first_call_all_is_foreign(void **state)
{
    expect_foreign(data);
    expect_foreign(&state);
    expect_foreign((void *)1);
}

static void strangers_are_foreign(void **state)
{
    const struct region *region = &space.region[0];

    (void)prairie_malloc(1);
    (void)prairie_malloc(100000);
    expect_foreign(data);
    expect_foreign(&state);
    expect_foreign((void *)(uintptr_t)&strangers_are_foreign);
    expect_foreign((void *)8);
    expect_foreign(page_map);
    expect_foreign(thread_front()->cache);
    expect_foreign(meta.zone_base);
    expect_foreign(region->base - 8);
    expect_foreign(region->base + ((size_t)region->open_pages << space.page_shift));
    expect_foreign(region->base + region->bytes);
    expect_foreign(malloc(10));
}

/* ---- interior ---- */

static void the_insides_of_small_blocks(void **state)
{
    (void)state;
    for (size_t size = 8; size <= SMALL_BYTES_MAX; size = size * 5 + 1) {
        char *block = prairie_malloc(size);
        size_t usable = prairie_usable_size(block);
        expect_interior(block + 1);
        expect_interior(block + usable / 2);
        expect_interior(block + usable - 1);
    }
}

/* What is left of a slab when it is cut into blocks holds no block. */
static void the_rest_of_a_slab(void **state)
{
    unsigned class_index = CLASS_COUNT - 1;
    struct slab *slab;

    (void)state;
    (void)prairie_malloc(1);
    while (slab_shape[class_index].bytes == slab_shape[class_index].span_bytes)
        assert_true(--class_index > 0);
    slab = slab_of(prairie_malloc(class_bytes[class_index]), class_index);
    expect_interior(slab->base + slab_shape[class_index].span_bytes);
    expect_interior(slab->base + slab_shape[class_index].bytes - 1);
}

static void the_insides_of_large_blocks(void **state)
{
    char *block = prairie_malloc(100000);

    (void)state;
    expect_interior(block + 1);
    expect_interior(block + 16);
    expect_interior(block + 4096);
    expect_interior(block + 3 * 4096 + 5);
    expect_interior(block + prairie_usable_size(block) - 1);
    block = prairie_malloc(SMALL_BYTES_MAX + 1);
    expect_interior(block + prairie_usable_size(block) - 4096);
}

/* ---- freed ---- */

static void small_blocks_that_were_freed(void **state)
{
    void *blocks[300];

    (void)state;
    for (size_t size = 1; size <= SMALL_BYTES_MAX; size = size * 6 + 3) {
        void *block = prairie_malloc(size), *other = prairie_malloc(size);
        prairie_free(block);
        expect_freed(block);
        prairie_free(other);
        expect_freed(block);
    }
    /* In the magazine, in the depot or in its slab: it makes no difference. */
    for (unsigned i = 0; i < 300; i++) blocks[i] = prairie_malloc(40);
    for (unsigned i = 0; i < 300; i++) prairie_free(blocks[i]);
    for (unsigned i = 0; i < 300; i += 50) expect_freed(blocks[i]);
    thread_flush();
    (void)prairie_malloc(40);
    expect_freed(blocks[299]);
}

static void blocks_that_were_never_handed_out(void **state)
{
    char *block = prairie_malloc(64);

    (void)state;
    expect_freed(block + 64);
}

static void large_blocks_that_were_freed(void **state)
{
    char *block = prairie_malloc(100000), *next = prairie_malloc(100000);

    (void)state;
    (void)prairie_malloc(100000);
    prairie_free(block);
    expect_freed(block);
    expect_freed(block + 4096);
    prairie_free(next); /* merges with its neighbour */
    expect_freed(block);
    expect_freed(next);
    (void)prairie_purge();
    expect_freed(block);
    expect_freed(next);
}

static void a_trimmed_tail_was_freed(void **state)
{
    char *block = prairie_malloc(200000);

    (void)state;
    (void)prairie_malloc(100000);
    assert_ptr_equal(prairie_realloc(block, 100000), block);
    expect_freed(block + 192 * 1024 / 4096 * 4096);
    expect_interior(block + 4096);
}

/* ---- wrong sizes ---- */

static void free_with_a_size_too_large(void) { prairie_free_sized(prairie_malloc(100), 200); }
static void free_with_a_size_too_small(void) { prairie_free_sized(prairie_malloc(1000), 8); }
static void free_large_with_a_small_size(void) { prairie_free_sized(prairie_malloc(50000), 500); }
static void free_small_with_a_large_size(void) { prairie_free_sized(prairie_malloc(500), 50000); }
static void free_large_with_another(void) { prairie_free_sized(prairie_malloc(50000), 90000); }

static void free_aligned_with_another(void)
{
    prairie_free_aligned_sized(prairie_aligned_alloc(64, 64), 64, 640);
}
static void free_aligned_large_with_another(void)
{
    prairie_free_aligned_sized(prairie_aligned_alloc(64, 90000), 64, 640);
}

static void sizes_of_the_same_class(void)
{
    prairie_free_aligned_sized(prairie_aligned_alloc(64, 100), 64, 97);
    prairie_free_aligned_sized(prairie_aligned_alloc(64, 0), 64, 0);
    prairie_free_aligned_sized(NULL, 64, 12345);
    prairie_free_sized(prairie_malloc(100), 97);
    prairie_free_sized(prairie_malloc(50000), 50001);
    prairie_free_sized(prairie_malloc(0), 0);
    prairie_free_sized(NULL, 12345);
}

static void wrong_sizes_are_told(void **state)
{
    static void (*const calls[])(void) = {
        free_with_a_size_too_large,      free_with_a_size_too_small, free_large_with_a_small_size,
        free_small_with_a_large_size,    free_large_with_another,    free_aligned_with_another,
        free_aligned_large_with_another,
    };

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(calls); i++)
        expect_abort(calls[i], "prairie: wrong size in sized delete: 0x");
    expect_survival(sizes_of_the_same_class);
}

/* ---- no false alarm ---- */

static void legal_lives_are_silent(void **state)
{
    void *blocks[500] = { NULL };

    (void)state;
    for (unsigned i = 0; i < 40000; i++) {
        unsigned at = (unsigned)random_below(500);
        size_t size = random_below(random_below(20) == 0 ? 100000 : 2000);
        if (random_below(3) == 0) {
            prairie_free(blocks[at]);
            blocks[at] = prairie_malloc(size);
        } else {
            blocks[at] = prairie_realloc(blocks[at], size + 1);
        }
        assert_true(prairie_usable_size(blocks[at]) >= size);
    }
    assert_string_equal(fake_error_text(), "");
    prairie_check_all();
}

static void narrow_address_space_makes_no_difference(void **state)
{
    char *block;

    (void)state;
    fake_address_space(64 * MiB, 0);
    block = prairie_malloc(64);
    assert_int_equal(class_map.mask, 0);
    expect_foreign(data);
    expect_interior(block + 8);
    prairie_free(block);
    expect_freed(block);
    block = prairie_malloc(100000);
    expect_interior(block + 4096);
    prairie_free(block);
    expect_freed(block);
}

/* ---- fences ---- */

enum { FENCED_PAGES = LARGE_CACHE_PAGES_MAX + 1 };

static char *fence_of(char *block) { return block + prairie_usable_size(block); }
static bool has_fence(char *block)
{
    return page_is_fenced(page_record(page_at(block)))
        && !fake_is_committed(fence_of(block), page_bytes());
}

static void new_pages_have_a_fence_behind_them(void **state)
{
    char *block, *next, *fence;
    size_t bytes, used;

    (void)state;
    (void)prairie_malloc(1);
    bytes = FENCED_PAGES * page_bytes();
    used = page_heap_used_pages(page_heap);
    fake_fences(true);
    block = prairie_malloc(bytes);
    next = prairie_malloc(bytes);
    assert_true(has_fence(block) && has_fence(next));
    fence = fence_of(block);
    assert_ptr_equal(fence, block + bytes);
    assert_true(fence != next);
    assert_int_equal(page_heap_used_pages(page_heap), used + 2 * (FENCED_PAGES + 1));
    prairie_check_all();
    prairie_free(block);
    assert_true(fake_is_committed(fence, page_bytes()));
    assert_int_equal(page_heap_used_pages(page_heap), used + FENCED_PAGES + 1);
    prairie_check_all();
    /* Its pages have been touched, perhaps. */
    block = prairie_malloc(bytes);
    assert_false(page_is_fenced(page_record(page_at(block))));
    prairie_free(block);
    pointer = block;
    expect_line(free_it, "double free");
    next = prairie_realloc(next, 2 * bytes);
    assert_int_equal(prairie_usable_size(next), 2 * bytes);
    memset(next, 1, 2 * bytes);
    prairie_free(next);
    assert_int_equal(page_heap_used_pages(page_heap), used);
    prairie_check_all();
}

/* A call that changes no length changes nothing. */
static void a_length_that_stays_keeps_its_fence(void **state)
{
    char *block;
    size_t bytes;

    (void)state;
    (void)prairie_malloc(1);
    bytes = FENCED_PAGES * page_bytes();
    fake_fences(true);
    block = prairie_malloc(bytes);
    assert_ptr_equal(prairie_realloc(block, bytes - 1), block);
    assert_true(has_fence(block));
    assert_int_equal(prairie_xallocx(block, bytes - 2, 1, 0), bytes);
    assert_true(has_fence(block));
    assert_int_equal(prairie_xallocx(block, bytes + page_bytes(), 0, 0), bytes + page_bytes());
    assert_false(page_is_fenced(page_record(page_at(block))));
    prairie_check_all();
    prairie_free(block);
}

static void what_is_kept_or_not_built_has_no_fence(void **state)
{
    char *small, *block;

    (void)state;
    fake_fences(true);
    small = prairie_malloc(LARGE_CACHE_PAGES_MAX * os_page_bytes());
    assert_false(page_is_fenced(page_record(page_at(small))));
    fake_fences(false);
    block = prairie_malloc(FENCED_PAGES * os_page_bytes());
    assert_false(page_is_fenced(page_record(page_at(block))));
    assert_true(fake_is_committed(fence_of(block), page_bytes()));
    prairie_check_all();
    prairie_free(block);
    prairie_free(small);
    prairie_check_all();
}

/* ---- at the end of the process ---- */

static void end_with_a_block_freed_twice(void)
{
    struct magazine *magazine = &thread_front()->magazine[class_of_size(100)];

    assert_ptr_equal(*magazine->top, pointer);
    *++magazine->top = pointer;
    misuse_check_end();
}

/* Of a thread that has a cache. */
static void what_a_thread_freed_is_looked_through_at_the_end(void **state)
{
    (void)state;
    expect_survival(misuse_check_end);
    pointer = prairie_malloc(100);
    prairie_free(pointer);
    expect_survival(misuse_check_end);
    expect_line(end_with_a_block_freed_twice, "double free");
}

/* ---- blocks that are moved ---- */

static void move_it(void) { misuse_check_moved(pointer, class_of_size(100)); }
static void free_and_move_it(void)
{
    prairie_free(pointer);
    move_it();
}
static void drain_and_move_it(void)
{
    prairie_free(pointer);
    thread_flush();
    (void)arenas_clear(CLEAR_ALL);
    move_it();
}

/* It lies in the thread's magazine, or in its slab, of which another block is held. */
static void a_freed_block_is_not_moved(void **state)
{
    (void)state;
    pointer = prairie_malloc(100);
    assert_non_null(prairie_malloc(100));
    expect_survival(move_it);
    expect_line(free_and_move_it, "realloc of a freed pointer");
    expect_line(drain_and_move_it, "realloc of a freed pointer");
    pointer = (char *)pointer + 16;
    expect_line(move_it, "realloc of an interior pointer");
}

UNIT_MAIN(UNIT_TEST(before_the_first_call_all_is_foreign), UNIT_TEST(strangers_are_foreign),
          UNIT_TEST(the_insides_of_small_blocks), UNIT_TEST(the_rest_of_a_slab),
          UNIT_TEST(the_insides_of_large_blocks), UNIT_TEST(small_blocks_that_were_freed),
          UNIT_TEST(blocks_that_were_never_handed_out), UNIT_TEST(large_blocks_that_were_freed),
          UNIT_TEST(a_trimmed_tail_was_freed), UNIT_TEST(wrong_sizes_are_told),
          UNIT_TEST(legal_lives_are_silent), UNIT_TEST(new_pages_have_a_fence_behind_them),
          UNIT_TEST(a_length_that_stays_keeps_its_fence),
          UNIT_TEST(what_is_kept_or_not_built_has_no_fence),
          UNIT_TEST(narrow_address_space_makes_no_difference),
          UNIT_TEST(a_freed_block_is_not_moved),
          UNIT_TEST(what_a_thread_freed_is_looked_through_at_the_end))
