/* resize_test.c - what a block holds after any change of its size, through every door and in every
 * mode.
 *
 * Each block is full of a byte of its own, up to its usable size. After a change the bytes that
 * both sizes have room for are still there; those that were gained are zero where the flags or the
 * options say so, or junk. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "samples.h"

#include <jemalloc/jemalloc.h>

enum { BLOCKS = 48, JUNK = 0xa5, ANYTHING = 0x100 };
#define STEPS 4000

struct filled {
    unsigned char *base;
    size_t bytes;
    unsigned char own; /* neither 0 nor JUNK */
};

static struct filled blocks[BLOCKS];
static int fresh_value; /* of bytes that no flag asks zeros for, or ANYTHING */
static int places[5];   /* flags that name arenas and caches */

/* ---- one block ---- */

static void expect_gained(const struct filled *block, size_t from, bool zero)
{
    int value = zero ? 0 : fresh_value;

    if (value == ANYTHING || from >= block->bytes) return;
    assert_true(all_bytes_are(block->base + from, (unsigned char)value, block->bytes - from));
}

static void fill_whole(struct filled *block)
{
    block->own = (unsigned char)(1 + random_below(JUNK - 1));
    memset(block->base, block->own, block->bytes);
}

static void expect_whole(const struct filled *block)
{
    assert_true(all_bytes_are(block->base, block->own, block->bytes));
}

/* Of every kind: a table's, beyond the table, whole pages, and now and then pages that are
 * moved. */
static size_t random_size(void)
{
    switch (random_below(40)) {
    case 0: return 1 + random_below(3 * REMAP_BYTES_MIN);
    case 1: return SMALL_BYTES_MAX - 20 + random_below(40);
    case 2: return TABLE_BYTES_MAX - 5 + random_below(10);
    case 3:
    case 4:
    case 5:
    case 6: return 1 + random_below(SMALL_BYTES_MAX * 20);
    default: return 1 + random_below(random_below(2) == 0 ? TABLE_BYTES_MAX : SMALL_BYTES_MAX);
    }
}

static int random_flags(void)
{
    int flags = places[random_below(ARRAY_COUNT(places))];

    if (random_below(2) == 0) flags |= MALLOCX_ZERO;
    if (random_below(3) == 0) flags |= MALLOCX_LG_ALIGN((int)random_below(14));
    return flags;
}

static void take(struct filled *block)
{
    size_t size = random_size();
    bool zero = false;
    int flags;

    switch (random_below(4)) {
    case 0: block->base = prairie_malloc(size); break;
    case 1:
        block->base = prairie_calloc(1, size);
        zero = true;
        break;
    case 2: block->base = prairie_aligned_alloc((size_t)8 << random_below(10), size); break;
    default:
        flags = random_flags();
        zero = (flags & MALLOCX_ZERO) != 0;
        block->base = prairie_mallocx(size, flags);
    }
    assert_non_null(block->base);
    block->bytes = prairie_usable_size(block->base);
    assert_true(block->bytes >= size);
    expect_gained(block, 0, zero);
    fill_whole(block);
}

static void give(struct filled *block)
{
    if (random_below(2) == 0) prairie_free(block->base);
    else prairie_dallocx(block->base, places[random_below(ARRAY_COUNT(places))]);
    *block = (struct filled){ 0 };
}

static void resize(struct filled *block)
{
    size_t size =
        random_below(2) == 0 ? random_size() : block->bytes / 2 + random_below(block->bytes);
    size_t old_bytes = block->bytes;
    int flags = random_flags();
    bool zero = false;

    size += size == 0;
    switch (random_below(4)) {
    case 0: block->base = prairie_realloc(block->base, size); break;
    case 1: block->base = prairie_reallocarray(block->base, size, 1); break;
    case 2:
        zero = (flags & MALLOCX_ZERO) != 0;
        block->base = prairie_rallocx(block->base, size, flags);
        assert_int_equal(prairie_usable_size(block->base), prairie_nallocx(size, flags));
        break;
    default:
        zero = (flags & MALLOCX_ZERO) != 0;
        (void)prairie_xallocx(block->base, size, random_below(2) * random_below(size), flags);
    }
    assert_non_null(block->base);
    block->bytes = prairie_usable_size(block->base);
    assert_true(all_bytes_are(block->base, block->own, min_size(old_bytes, block->bytes)));
    expect_gained(block, old_bytes, zero);
    fill_whole(block);
}

/* ---- many of them ---- */

static void resize_at_random(int value)
{
    prairie_free(prairie_malloc(1));
    places[1] = MALLOCX_TCACHE_NONE;
    places[2] = MALLOCX_TCACHE((int)explicit_cache_create());
    places[3] = MALLOCX_ARENA((int)arena_create()->index) | MALLOCX_TCACHE_NONE;
    places[4] = MALLOCX_ARENA(0);
    fresh_value = value;
    for (unsigned step = 0; step < STEPS; step++) {
        struct filled *block = &blocks[random_below(BLOCKS)];

        if (block->base == NULL) take(block);
        else if (random_below(6) == 0) give(block);
        else resize(block);
        if (step % 256 == 0) prairie_check_all();
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (blocks[i].base == NULL) continue;
        expect_whole(&blocks[i]);
        give(&blocks[i]);
    }
    prairie_check_all();
}

static void obey(const char *words)
{
    options_parse(words, "test");
    heap_obey_options();
}

static void plain_blocks(void **state)
{
    (void)state;
    resize_at_random(ANYTHING);
}

static void some_blocks_are_sampled(void **state)
{
    (void)state;
    sample_from_now(PERIOD);
    resize_at_random(ANYTHING);
}

static void every_block_is_sampled(void **state)
{
    (void)state;
    sample_from_now(1);
    resize_at_random(ANYTHING);
}

static void threads_hold_nothing(void **state)
{
    (void)state;
    obey("tcache:false");
    resize_at_random(ANYTHING);
}

static void what_is_gained_is_junk(void **state)
{
    (void)state;
    obey("junk:true");
    resize_at_random(JUNK);
}

static void what_is_gained_is_zero(void **state)
{
    (void)state;
    obey("zero:true");
    resize_at_random(0);
}

/* ---- by name ---- */

/* Of a zeroed block all bytes are zeros, whichever sizes it is asked to have: 50 bytes lie in a
 * block of 64. */
static void zeros_reach_to_the_usable_size(void **state)
{
    unsigned char *block = prairie_mallocx(1000, MALLOCX_ZERO);

    (void)state;
    for (size_t size = 50; size < 30000; size = size * 3 + 1) {
        unsigned char *used = prairie_malloc(size);

        memset(used, 7, prairie_usable_size(used));
        prairie_free(used);
        block = prairie_rallocx(block, size, MALLOCX_ZERO);
        assert_true(all_bytes_are(block, 0, prairie_sallocx(block, 0)));
        block = prairie_rallocx(block, 1000, MALLOCX_ZERO);
        assert_true(all_bytes_are(block, 0, prairie_sallocx(block, 0)));
    }
    prairie_free(block);
}

/* Memory has run short: the block comes from another arena's slab, and what lay there is no
 * business of the program. */
static void the_last_blocks_are_filled_too(void **state)
{
    unsigned char *block;
    unsigned taken = 0;
    struct arena *arena;

    (void)state;
    obey("zero:true");
    prairie_free(prairie_malloc(1));
    arena = arena_create();
    block = prairie_mallocx(5000, MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    memset(block, 7, prairie_usable_size(block));
    (void)prairie_mallocx(5000, MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    prairie_dallocx(block, MALLOCX_TCACHE_NONE);
    fake_fail_all(true);
    while ((block = prairie_malloc(5000)) != NULL) {
        assert_true(all_bytes_are(block, 0, prairie_usable_size(block)));
        taken++;
    }
    fake_fail_all(false);
    assert_true(taken > 0);
}

/* From where pages are moved rather than bytes, an alignment to more than a line is no hindrance:
 * all that move begin with a page. */
static void pages_of_aligned_blocks_are_moved(void **state)
{
    enum { BYTES = REMAP_BYTES_MIN + 3 * KiB };

    (void)state;
    for (size_t align = os_page_bytes(); align > LINE_BYTES; align /= 8) { /* moves are rationed */
        int flags = MALLOCX_ALIGN(align);
        char *block = prairie_mallocx(BYTES, flags), *moved;
        void *behind = prairie_malloc(BYTES);
        uint64_t moves = fake_calls(FAKE_MOVE);

        memset(block, 3, BYTES);
        moved = prairie_rallocx(block, 2 * BYTES, flags);
        assert_ptr_not_equal(moved, block);
        assert_int_equal(fake_calls(FAKE_MOVE), moves + 1);
        assert_true(is_aligned((uintptr_t)moved, align));
        assert_int_equal(prairie_usable_size(moved), prairie_nallocx(2 * BYTES, flags));
        assert_true(all_bytes_are(moved, 3, BYTES));
        prairie_free(moved);
        prairie_free(behind);
        prairie_check_all();
    }
}

/* Also where another place is wanted, longer or shorter; what stays behind is not taken for
 * clean. */
static void pages_move_to_where_an_alignment_wants_them(void **state)
{
    enum { BYTES = 2 * REMAP_BYTES_MIN };
    static const size_t sizes[] = { BYTES / 2, BYTES, 2 * BYTES };

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(sizes); i++) {
        const size_t align = 8 * BYTES, kept = min_size(sizes[i], BYTES);
        const int flags = MALLOCX_ALIGN(align);
        char *spacer = prairie_malloc(BYTES), *block = prairie_malloc(BYTES), *moved, *again;
        uint64_t moved_bytes = fake_moved_bytes();

        if (is_aligned((uintptr_t)block, align)) block = prairie_malloc(BYTES);
        assert_false(is_aligned((uintptr_t)block, align));
        memset(block, 3, BYTES);
        moved = prairie_rallocx(block, sizes[i], flags);
        assert_true(is_aligned((uintptr_t)moved, align));
        assert_int_equal(fake_moved_bytes(), moved_bytes + kept);
        assert_int_equal(prairie_usable_size(moved), prairie_nallocx(sizes[i], flags));
        assert_true(all_bytes_are(moved, 3, kept));
        again = prairie_calloc(1, BYTES);
        assert_true(all_bytes_are(again, 0, BYTES));
        prairie_check_all();
        prairie_free(again);
        prairie_free(moved);
        prairie_free(spacer);
    }
}

UNIT_MAIN(UNIT_TEST(plain_blocks), UNIT_TEST(some_blocks_are_sampled),
          UNIT_TEST(every_block_is_sampled), UNIT_TEST(threads_hold_nothing),
          UNIT_TEST(what_is_gained_is_junk), UNIT_TEST(what_is_gained_is_zero),
          UNIT_TEST(zeros_reach_to_the_usable_size), UNIT_TEST(the_last_blocks_are_filled_too),
          UNIT_TEST(pages_of_aligned_blocks_are_moved),
          UNIT_TEST(pages_move_to_where_an_alignment_wants_them))
