/* stagger_test.c - large blocks that begin behind the start of their first page. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "pages.h"
#include "threads.h"

#include <jemalloc/jemalloc.h>
#include <sys/wait.h>

enum { BLOCKS = 400, STAGGERED_BYTES = 18000 };

static char *blocks[BLOCKS];

/* How long pages are is known when the process has started. */
static void start(void) { prairie_free(prairie_malloc(1)); }

/* Of pages that leave `left` bytes. */
static size_t size_of(size_t pages, size_t left)
{
    start();
    return bytes_of(pages) - left;
}
static size_t offset_of(const char *block) { return offset_in_page(block); }

/* Blocks all over several stretches of pages. */
static void take_many(size_t size)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = prairie_malloc(size);
        assert_non_null(blocks[i]);
    }
}

static char *staggered_block(size_t size)
{
    take_many(size);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (offset_of(blocks[i]) != 0) return blocks[i];
    fail_msg("no block is staggered");
    return NULL;
}

static struct arena *manual_arena(void)
{
    struct arena *arena;

    start();
    arena = arena_create();
    assert_non_null(arena);
    return arena;
}

static size_t allocated_bytes(void)
{
    struct snapshot numbers;

    snapshot_sum(&numbers);
    return numbers.all.large.allocated;
}

/* ---- where they begin ---- */

static void they_begin_with_any_of_eight_lines(void **state)
{
    unsigned seen = 0;
    size_t of_stretch[BLOCKS * 5] = { 0 };

    (void)state;
    take_many(size_of(5, PAGE_STAGGERED));
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t offset = offset_of(blocks[i]), stretch = page_at(blocks[i]) / STAGGER_PAGES;

        assert_int_equal(offset % LINE_BYTES, 0);
        assert_true(offset < PAGE_STAGGERED);
        assert_true(of_stretch[stretch] == 0 || of_stretch[stretch] == offset + 1);
        of_stretch[stretch] = offset + 1;
        seen |= 1u << offset / LINE_BYTES;
        memset(blocks[i], (int)(i % 251), prairie_usable_size(blocks[i]));
    }
    assert_int_equal(seen, 0xff);
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_true(all_bytes_are(blocks[i], (unsigned char)(i % 251), size_of(5, PAGE_STAGGERED)));
        prairie_free(blocks[i]);
    }
    prairie_check_all();
}

static void pages_without_room_begin_with_the_page(void **state)
{
    (void)state;
    take_many(size_of(5, PAGE_STAGGERED - 1));
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_int_equal(offset_of(blocks[i]), 0);
        assert_int_equal(prairie_usable_size(blocks[i]), bytes_of(5));
    }
}

static void an_option_lets_all_begin_with_the_page(void **state)
{
    (void)state;
    start();
    options_parse("cache_oblivious:false", "PRAIRIE_CONF");
    take_many(STAGGERED_BYTES);
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_int_equal(offset_of(blocks[i]), 0);
        assert_int_equal(prairie_usable_size(blocks[i]), prairie_nallocx(STAGGERED_BYTES, 0));
    }
}

/* A constructor before ours has taken blocks, and given them back. */
static void those_that_are_kept_obey_that_option(void **state)
{
    char *block;

    (void)state;
    start();
    block = staggered_block(STAGGERED_BYTES);
    prairie_free(block);
    options_parse("cache_oblivious:false", "PRAIRIE_CONF");
    heap_obey_options();
    take_many(STAGGERED_BYTES);
    for (unsigned i = 0; i < BLOCKS; i++) assert_int_equal(offset_of(blocks[i]), 0);
}

static void wide_alignments_begin_with_the_page(void **state)
{
    (void)state;
    for (size_t align = 8; align <= 4096; align *= 2)
        for (unsigned i = 0; i < 80; i++) {
            char *block = prairie_aligned_alloc(align, STAGGERED_BYTES);

            assert_true(is_aligned((uintptr_t)block, align));
            assert_true(align <= LINE_BYTES || offset_of(block) == 0);
            assert_int_equal(prairie_usable_size(block), prairie_nallocx(STAGGERED_BYTES, 0));
        }
}

/* Whatever door it came through, how long a block is follows from its size. */
static void usable_bytes_follow_from_the_size(void **state)
{
    struct arena *arena = manual_arena();

    (void)state;
    for (size_t size = SMALL_BYTES_MAX + 1; size < 9 * MiB; size += 1 + size / 7) {
        size_t bytes = prairie_nallocx(size, 0);
        char *ones[] = { prairie_malloc(size),
                         prairie_calloc(1, size),
                         prairie_mallocx(size, 0),
                         prairie_mallocx(size, MALLOCX_ARENA(arena->index)),
                         prairie_aligned_alloc(4096, size),
                         prairie_realloc(NULL, size),
                         prairie_realloc(prairie_malloc(10), size),
                         prairie_rallocx(prairie_malloc(30000), size, 0),
                         prairie_mallocx(size, MALLOCX_ZERO | MALLOCX_TCACHE_NONE) };

        assert_true(bytes >= size && prairie_nallocx(bytes, 0) == bytes);
        for (unsigned i = 0; i < ARRAY_COUNT(ones); i++) {
            assert_int_equal(prairie_usable_size(ones[i]), bytes);
            ones[i][0] = ones[i][bytes - 1] = 1;
            prairie_sdallocx(ones[i], size, 0);
        }
    }
    prairie_check_all();
}

/* ---- resizing ---- */

static void they_grow_and_shrink_where_they_are(void **state)
{
    char *block = staggered_block(size_of(8, PAGE_STAGGERED));

    (void)state;
    memset(block, 3, 20000);
    assert_ptr_equal(prairie_realloc(block, size_of(6, 2000)), block);
    assert_int_equal(prairie_usable_size(block), size_of(6, PAGE_STAGGERED));
    assert_true(all_bytes_are(block, 3, 20000));
    /* A page more where they have none to spare; but xallocx gives no more than nallocx tells. */
    assert_ptr_equal(prairie_realloc(block, bytes_of(7)), block);
    assert_int_equal(prairie_usable_size(block), size_of(8, PAGE_STAGGERED));
    assert_int_equal(prairie_xallocx(block, bytes_of(6), 0, 0), size_of(8, PAGE_STAGGERED));
    assert_int_equal(prairie_xallocx(block, size_of(6, 1000), 1000, 0), size_of(6, PAGE_STAGGERED));
    block = prairie_rallocx(block, bytes_of(7), 0);
    assert_int_equal(prairie_usable_size(block), bytes_of(7));
    assert_true(all_bytes_are(block, 3, 20000));
    prairie_check_all();
}

/* From there on its pages are moved and not its bytes. */
static void what_grows_long_begins_with_the_page(void **state)
{
    char *block = staggered_block(size_of(8, PAGE_STAGGERED));

    (void)state;
    memset(block, 5, 20000);
    block = prairie_realloc(block, REMAP_BYTES_MIN + 1);
    assert_int_equal(offset_of(block), 0);
    assert_int_equal(prairie_usable_size(block), prairie_nallocx(REMAP_BYTES_MIN + 1, 0));
    assert_true(all_bytes_are(block, 5, 20000));
    block = prairie_realloc(block, STAGGERED_BYTES);
    assert_int_equal(prairie_usable_size(block), prairie_nallocx(STAGGERED_BYTES, 0));
    assert_true(all_bytes_are(block, 5, STAGGERED_BYTES));
    prairie_check_all();
}

/* One that xallocx made long keeps what it has when realloc makes it shorter, and nobody else's
 * bytes are written to. */
static void a_long_one_shrinks_where_it_is(void **state)
{
    size_t long_bytes = REMAP_BYTES_MIN + bytes_of(40);
    char *block = staggered_block(size_of(8, PAGE_STAGGERED));

    (void)state;
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i] != block) prairie_free(blocks[i]);
    thread_flush();
    if (prairie_xallocx(block, long_bytes, 0, 0) < long_bytes) skip();
    memset(block, 7, long_bytes);
    assert_ptr_equal(prairie_realloc(block, REMAP_BYTES_MIN + 1), block);
    assert_true(all_bytes_are(block, 7, REMAP_BYTES_MIN + 1));
    prairie_check_all();
}

/* ---- what is no block ---- */

static void free_the_start_of_its_page(void) { prairie_free(blocks[0] - offset_of(blocks[0])); }
static void free_it_twice(void)
{
    prairie_free(blocks[0]);
    prairie_free(blocks[0]);
}
static void free_the_next_line(void) { prairie_free(blocks[0] + LINE_BYTES); }

static void what_is_no_block_is_refused(void **state)
{
    char *block = staggered_block(size_of(8, PAGE_STAGGERED));

    (void)state;
    blocks[0] = block;
    expect_abort_at(free_the_start_of_its_page, "free of an interior pointer",
                    block - offset_of(block));
    expect_abort_at(free_the_next_line, "free of an interior pointer", block + LINE_BYTES);
    expect_abort_at(free_it_twice, "double free", block);
    expect_survival(leave_it_alone);
}

/* ---- what is counted ---- */

static void *free_half(void *unused)
{
    for (unsigned i = 0; i < BLOCKS; i += 2) prairie_free(blocks[i]);
    return unused;
}

static void *take_more(void *unused)
{
    for (unsigned i = 0; i < BLOCKS; i += 2) blocks[i] = prairie_malloc(STAGGERED_BYTES);
    return unused;
}

static size_t held_bytes(void)
{
    size_t sum = 0;

    for (unsigned i = 0; i < BLOCKS; i++)
        sum += blocks[i] != NULL ? prairie_usable_size(blocks[i]) : 0;
    return sum;
}

/* Also where others free them, of threads that have ended, and whatever they are resized to. */
static void they_are_counted_exactly(void **state)
{
    (void)state;
    take_many(STAGGERED_BYTES);
    assert_int_equal(allocated_bytes(), held_bytes());
    run_thread(free_half, NULL);
    run_thread(take_more, NULL);
    assert_int_equal(allocated_bytes(), held_bytes());
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t size = SMALL_BYTES_MAX + 1 + random_below(2 * REMAP_BYTES_MIN / (1 + i));

        blocks[i] = prairie_realloc(blocks[i], size);
    }
    assert_int_equal(allocated_bytes(), held_bytes());
    for (unsigned i = 0; i < BLOCKS; i++) prairie_free(blocks[i]);
    assert_int_equal(allocated_bytes(), 0);
}

/* Also when the first thread's cache makes way for one of another kind. */
static void those_from_before_samples_are_counted(void **state)
{
    (void)state;
    take_many(STAGGERED_BYTES);
    for (unsigned i = 0; i < BLOCKS; i += 2) prairie_free(blocks[i]), blocks[i] = NULL;
    assert_true(threads_sample());
    assert_int_equal(allocated_bytes(), held_bytes());
    for (unsigned i = 0; i < BLOCKS; i++) prairie_free(blocks[i]);
    assert_int_equal(allocated_bytes(), 0);
}

static void those_of_manual_arenas_are_counted_exactly(void **state)
{
    struct arena *arena = manual_arena();

    (void)state;
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = prairie_mallocx(SMALL_BYTES_MAX + 1 + 100 * i,
                                    MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    assert_int_equal(allocated_bytes(), held_bytes());
    for (unsigned i = 0; i < BLOCKS; i += 3)
        (void)prairie_xallocx(blocks[i], SMALL_BYTES_MAX + 1, 0, 0);
    assert_int_equal(allocated_bytes(), held_bytes());
    assert_true(placed_destroy(arena));
    assert_int_equal(allocated_bytes(), 0);
    prairie_check_all();
}

static pthread_barrier_t meeting;

static void *take_and_stay(void *unused)
{
    take_many(STAGGERED_BYTES);
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    return unused;
}

/* Their threads, which counted them, are the parent's. */
static void those_of_threads_that_a_child_has_not_are_counted(void **state)
{
    pthread_t thread;
    int status, child;

    (void)state;
    start();
    assert_int_equal(pthread_barrier_init(&meeting, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, take_and_stay, NULL), 0);
    pthread_barrier_wait(&meeting);
    assert_int_equal(allocated_bytes(), held_bytes());
    child = fake_fork();
    if (child == 0) {
        bool exact = allocated_bytes() == held_bytes();

        for (unsigned i = 0; i < BLOCKS; i++) prairie_free(blocks[i]);
        _exit(exact && allocated_bytes() == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(allocated_bytes(), held_bytes());
    pthread_barrier_wait(&meeting);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

UNIT_MAIN(UNIT_TEST(they_begin_with_any_of_eight_lines),
          UNIT_TEST(pages_without_room_begin_with_the_page),
          UNIT_TEST(an_option_lets_all_begin_with_the_page),
          UNIT_TEST(wide_alignments_begin_with_the_page),
          UNIT_TEST(usable_bytes_follow_from_the_size),
          UNIT_TEST(they_grow_and_shrink_where_they_are),
          UNIT_TEST(what_grows_long_begins_with_the_page),
          UNIT_TEST(a_long_one_shrinks_where_it_is), UNIT_TEST(what_is_no_block_is_refused),
          UNIT_TEST(those_that_are_kept_obey_that_option), UNIT_TEST(they_are_counted_exactly),
          UNIT_TEST(those_from_before_samples_are_counted),
          UNIT_TEST(those_of_manual_arenas_are_counted_exactly),
          UNIT_TEST(those_of_threads_that_a_child_has_not_are_counted))
