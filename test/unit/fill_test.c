/* fill_test.c - what junk and zero write, when, and how much of a block. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

enum { TAKEN = 0xa5, GIVEN = 0x5a, FENCE = 0x77 };

static const size_t sizes[] = { 1, 100, 1000, 5000, SMALL_BYTES_MAX, SMALL_BYTES_MAX + 1, 100000 };

/* ---- the words ---- */

enum { FENCED_BYTES = 40 };
static unsigned char fenced_room[1 + FENCED_BYTES + 1];

/* What is in the room but for its two fences: one value everywhere, or the test fails. */
static unsigned char filled_with(void)
{
    assert_int_equal(fenced_room[0], FENCE);
    assert_int_equal(fenced_room[1 + FENCED_BYTES], FENCE);
    assert_true(all_bytes_are(fenced_room + 1, fenced_room[1], FENCED_BYTES));
    return fenced_room[1];
}

static void expect_fills(const char *words, unsigned char taken, unsigned char given)
{
    bool clears = taken == 0, wanted = taken != FENCE || given != FENCE;

    options_parse("junk:false,zero:false", "test");
    options_parse(words, "test");
    fill_start();
    assert_int_equal(fill_is_wanted(), wanted);
    assert_int_equal(fill_clears(), clears);
    memset(fenced_room, FENCE, sizeof fenced_room);
    assert_ptr_equal(fill_taken(fenced_room + 1, FENCED_BYTES), fenced_room + 1);
    assert_int_equal(filled_with(), taken);
    memset(fenced_room, FENCE, sizeof fenced_room);
    fill_given(fenced_room + 1, FENCED_BYTES);
    assert_int_equal(filled_with(), given);
    assert_null(fill_taken(NULL, FENCED_BYTES));
}

/* FENCE: left as it was. */
static void each_word_fills_what_it_says(void **state)
{
    (void)state;
    assert_false(fill_is_wanted());
    expect_fills("junk:false", FENCE, FENCE);
    expect_fills("junk:alloc", TAKEN, FENCE);
    expect_fills("junk:free", FENCE, GIVEN);
    expect_fills("junk:true", TAKEN, GIVEN);
    expect_fills("zero:true", 0, FENCE);
    expect_fills("junk:alloc,zero:true", 0, FENCE);
    expect_fills("junk:true,zero:true", 0, GIVEN);
    expect_fills("", FENCE, FENCE);
}

/* ---- the doors ---- */

static void obey(const char *words)
{
    options_parse(words, "test");
    heap_obey_options();
}

/* Takes blocks that were written to before, too. */
static void expect_taken(unsigned char value)
{
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
            unsigned char *block = prairie_malloc(sizes[i]), *aligned, *zeros, *nothing;

            assert_true(all_bytes_are(block, value, prairie_usable_size(block)));
            aligned = prairie_aligned_alloc(256, sizes[i]);
            assert_true(all_bytes_are(aligned, value, prairie_usable_size(aligned)));
            nothing = prairie_aligned_alloc(page_bytes() << i, 0);
            assert_true(all_bytes_are(nothing, value, prairie_usable_size(nothing)));
            zeros = prairie_calloc(1, sizes[i]);
            assert_true(all_bytes_are(zeros, 0, prairie_usable_size(zeros)));
            memset(block, FENCE, prairie_usable_size(block));
            memset(aligned, FENCE, prairie_usable_size(aligned));
            memset(zeros, FENCE, prairie_usable_size(zeros));
            memset(nothing, FENCE, prairie_usable_size(nothing));
            prairie_free(block);
            prairie_free(aligned);
            prairie_free(zeros);
            prairie_free(nothing);
        }
    }
    prairie_check_all();
}

static void new_blocks_are_junk(void **state)
{
    (void)state;
    obey("junk:true");
    expect_taken(TAKEN);
}

static void new_blocks_are_zero(void **state)
{
    (void)state;
    obey("zero:true");
    expect_taken(0);
}

/* A thread that held blocks before the options were read holds none afterwards. */
static void what_a_thread_held_is_not_handed_out_unfilled(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        unsigned char *block = prairie_malloc(sizes[i]);
        memset(block, FENCE, sizes[i]);
        prairie_free(block);
    }
    obey("junk:alloc");
    expect_taken(TAKEN);
}

/* The page is still there, because a neighbour lives. */
static void freed_blocks_are_junk(void **state)
{
    (void)state;
    obey("junk:free");
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        unsigned char *kept = prairie_malloc(sizes[i]), *block = prairie_malloc(sizes[i]);
        size_t bytes = prairie_usable_size(block);

        memset(kept, FENCE, bytes);
        memset(block, FENCE, bytes);
        prairie_free(block);
        assert_true(all_bytes_are(block, GIVEN, bytes));
        assert_true(all_bytes_are(kept, FENCE, bytes));
        prairie_free(kept);
    }
}

/* Calls that name an arena or a cache pass the usual ways by. */
static void blocks_that_go_past_the_cache_are_filled_too(void **state)
{
    static const size_t sizes_placed[] = { 100, 5000, 100000 };
    struct arena *arena;
    int flags[3];

    (void)state;
    prairie_free(prairie_malloc(1));
    arena = arena_create();
    flags[0] = (int)(CACHE_NONE << 8);
    flags[1] = (int)((arena->index + 1) << 20 | CACHE_NONE << 8);
    flags[2] = (int)((explicit_cache_create() + CACHE_FIRST_EXPLICIT) << 8);
    obey("junk:true");
    for (unsigned way = 0; way < ARRAY_COUNT(flags); way++) {
        for (unsigned i = 0; i < ARRAY_COUNT(sizes_placed); i++) {
            unsigned char *kept = prairie_mallocx(sizes_placed[i], flags[way]);
            unsigned char *block = prairie_mallocx(sizes_placed[i], flags[way]);
            size_t bytes = prairie_usable_size(block);

            assert_true(all_bytes_are(block, TAKEN, bytes));
            memset(block, FENCE, bytes);
            prairie_dallocx(block, flags[way]);
            assert_true(all_bytes_are(block, GIVEN, bytes));
            prairie_dallocx(kept, flags[way]);
            block = prairie_mallocx(sizes_placed[i], flags[way] | FLAG_ZERO);
            assert_true(all_bytes_are(block, 0, bytes));
            prairie_dallocx(block, flags[way]);
        }
    }
    prairie_check_all();
}

static void expect_resized(unsigned char value)
{
    static const size_t steps[] = { 10, 700, 3000, 20000, 30000, 400000, 90000, 200000, 9 };
    unsigned char *block = prairie_malloc(steps[0]);
    size_t bytes = prairie_usable_size(block);

    memset(block, FENCE, bytes);
    for (unsigned i = 1; i < ARRAY_COUNT(steps); i++) {
        size_t kept = min_size(bytes, steps[i]);

        block = prairie_realloc(block, steps[i]);
        bytes = prairie_usable_size(block);
        assert_true(all_bytes_are(block, FENCE, kept));
        if (steps[i] > kept) assert_true(all_bytes_are(block + kept, value, steps[i] - kept));
        memset(block, FENCE, bytes);
    }
    prairie_free(block);
    prairie_check_all();
}

/* The neighbour keeps the block from growing where it is. */
static void expect_moved(unsigned char value)
{
    unsigned char *block = prairie_malloc(20000), *moved;
    void *neighbour = prairie_malloc(20000);
    size_t bytes = prairie_usable_size(block);

    memset(block, FENCE, bytes);
    moved = prairie_realloc(block, 300000);
    assert_ptr_not_equal(moved, block);
    assert_true(all_bytes_are(moved, FENCE, bytes));
    assert_true(all_bytes_are(moved + bytes, value, prairie_usable_size(moved) - bytes));
    memset(moved, FENCE, prairie_usable_size(moved));
    prairie_free(moved);
    prairie_free(neighbour);
}

/* What realloc adds is as new as a new block. */
static void what_a_block_gains_is_filled(void **state)
{
    (void)state;
    obey("junk:alloc");
    expect_resized(TAKEN);
    expect_moved(TAKEN);
    obey("junk:false,zero:true");
    expect_resized(0);
    expect_moved(0);
    expect_moved(0);
}

/* What realloc copies stays behind, too, but for pages that move. */
static void what_a_block_leaves_is_junk(void **state)
{
    unsigned char *block, *neighbour;

    (void)state;
    obey("junk:free");
    for (unsigned i = 0; i < ARRAY_COUNT(sizes) && sizes[i] < REMAP_BYTES_MIN; i++) {
        size_t bytes;

        block = prairie_malloc(sizes[i]);
        neighbour = prairie_malloc(sizes[i]);
        bytes = prairie_usable_size(block);
        memset(block, FENCE, bytes);
        assert_ptr_not_equal(prairie_realloc(block, 3 * bytes), block);
        assert_true(all_bytes_are(block, GIVEN, bytes));
        prairie_free(neighbour);
    }
}

static void *free_first(void *block)
{
    prairie_free(block);
    return NULL;
}

/* The thread has no cache yet. */
static void the_first_call_of_a_thread_fills(void **state)
{
    unsigned char *block, *kept;
    pthread_t thread;

    (void)state;
    obey("junk:free");
    block = prairie_malloc(20000);
    kept = prairie_malloc(20000);
    memset(block, FENCE, 20000);
    assert_int_equal(pthread_create(&thread, NULL, free_first, block), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(all_bytes_are(block, GIVEN, 20000));
    prairie_free(kept);
}

static void without_the_options_threads_keep_their_blocks(void **state)
{
    void *block;

    (void)state;
    obey("junk:false,zero:false");
    block = prairie_malloc(100);
    assert_true(thread_front()->kind == FRONT_CACHE);
    prairie_free(block);
    assert_ptr_equal(prairie_malloc(100), block);
}

UNIT_MAIN(UNIT_TEST(blocks_that_go_past_the_cache_are_filled_too),
          UNIT_TEST(each_word_fills_what_it_says), UNIT_TEST(new_blocks_are_junk),
          UNIT_TEST(new_blocks_are_zero), UNIT_TEST(what_a_thread_held_is_not_handed_out_unfilled),
          UNIT_TEST(freed_blocks_are_junk), UNIT_TEST(what_a_block_leaves_is_junk),
          UNIT_TEST(the_first_call_of_a_thread_fills), UNIT_TEST(what_a_block_gains_is_filled),
          UNIT_TEST(without_the_options_threads_keep_their_blocks))
