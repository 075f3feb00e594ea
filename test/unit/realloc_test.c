/* realloc_test.c - contents through every change of size, in place where that is promised. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "hooks.h"
#include "vast.h"

static void write_pattern(unsigned char *block, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++) block[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

static void check_pattern(const unsigned char *block, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(block[i], (unsigned char)(i * 7 + i / 251 + seed));
}

static const size_t sizes[] = { 1,     8,     9,     16,     17,     100,     128,          129,
                                1000,  1024,  1025,  4096,   8192,   14336,   14337,        16384,
                                16385, 40000, 65536, 131072, 200000, 1 << 20, (1 << 20) + 1 };

/* ---- contents ---- */

static void every_pair_of_sizes_keeps_the_contents(void **state)
{
    (void)state;
    for (unsigned from = 0; from < ARRAY_COUNT(sizes); from++) {
        for (unsigned to = 0; to < ARRAY_COUNT(sizes); to++) {
            unsigned char *block = prairie_malloc(sizes[from]), *moved;
            write_pattern(block, sizes[from], from);
            moved = prairie_realloc(block, sizes[to]);
            assert_non_null(moved);
            assert_true(prairie_usable_size(moved) >= sizes[to]);
            check_pattern(moved, min_size(sizes[from], sizes[to]), from);
            memset(moved, 3, prairie_usable_size(moved));
            prairie_free(moved);
        }
        prairie_check_all();
    }
}

static void aligned_blocks_keep_their_contents(void **state)
{
    (void)state;
    for (size_t align = 8; align <= 2 * MiB; align *= 4) {
        for (unsigned to = 0; to < ARRAY_COUNT(sizes); to += 3) {
            unsigned char *block = prairie_aligned_alloc(align, 3000);
            assert_true(is_aligned((uintptr_t)block, align));
            write_pattern(block, 3000, 1);
            block = prairie_realloc(block, sizes[to]);
            check_pattern(block, min_size(3000, sizes[to]), 1);
            prairie_free(block);
        }
    }
    prairie_check_all();
}

/* ---- the doors ---- */

static void null_and_zero(void **state)
{
    void *block = prairie_realloc(NULL, 100);

    (void)state;
    assert_non_null(block);
    assert_int_equal(prairie_usable_size(NULL), 0);
    errno = 4711;
    assert_null(prairie_realloc(block, 0)); /* freed, as the GNU C library does */
    assert_int_equal(errno, 4711);
    block = prairie_realloc(NULL, 0);
    assert_non_null(block);
    prairie_free(block);
    block = prairie_malloc(100000);
    assert_null(prairie_realloc(block, 0));
    block = prairie_reallocarray(NULL, 10, 10);
    assert_true(prairie_usable_size(block) >= 100);
    assert_null(prairie_reallocarray(block, 0, 10));
    prairie_check_all();
}

static void a_refused_realloc_keeps_the_block(void **state)
{
    static const size_t absurd[] = { SIZE_MAX, SIZE_MAX - 4096, (size_t)PTRDIFF_MAX,
                                     SIZE_MAX / 2 + 1 };

    (void)state;
    for (unsigned from = 0; from < ARRAY_COUNT(sizes); from++) {
        unsigned char *block = prairie_malloc(sizes[from]);
        write_pattern(block, sizes[from], from);
        for (unsigned i = 0; i < ARRAY_COUNT(absurd); i++) {
            errno = 0;
            assert_null(prairie_realloc(block, absurd[i]));
            assert_int_equal(errno, ENOMEM);
            errno = 0;
            assert_null(prairie_reallocarray(block, absurd[i], 2));
            assert_int_equal(errno, ENOMEM);
        }
        fake_fail_all(true);
        errno = 0;
        assert_null(prairie_realloc(block, 64 * MiB));
        assert_int_equal(errno, ENOMEM);
        fake_fail_all(false);
        check_pattern(block, sizes[from], from);
        prairie_free(block);
        prairie_check_all();
    }
}

/* ---- in place ---- */

static void the_same_class_stays_in_place(void **state)
{
    (void)state;
    for (size_t size = 1; size <= SMALL_BYTES_MAX; size += 1 + size / 9) {
        unsigned class_index = class_of_size(size);
        void *block = prairie_malloc(size);
        assert_ptr_equal(prairie_realloc(block, class_bytes[class_index]), block);
        assert_ptr_equal(prairie_realloc(block, size), block);
        prairie_free(block);
    }
}

static void a_large_block_grows_into_free_pages(void **state)
{
    char *block = prairie_malloc(100000), *hole;

    (void)state;
    hole = prairie_malloc(1 << 20);
    (void)prairie_malloc(20000);
    assert_ptr_equal(hole, block + round_up(100000, 4096));
    prairie_free(hole);
    write_pattern((unsigned char *)block, 100000, 9);
    for (size_t size = 120000; size <= 1000000; size += 88000) {
        assert_ptr_equal(prairie_realloc(block, size), block);
        prairie_check_all();
    }
    check_pattern((unsigned char *)block, 100000, 9);
    assert_ptr_not_equal(prairie_realloc(block, 2 << 20), block); /* somebody is in the way */
    prairie_check_all();
}

static void a_large_block_shrinks_in_place(void **state)
{
    char *block = prairie_malloc(4 << 20);
    size_t used = page_heap_used_pages(page_heap);

    (void)state;
    write_pattern((unsigned char *)block, 20000, 5);
    for (size_t size = 3 << 20; size > 20000; size /= 2) {
        assert_ptr_equal(prairie_realloc(block, size), block);
        assert_int_equal(prairie_usable_size(block), round_up(size, 4096));
        prairie_check_all();
    }
    check_pattern((unsigned char *)block, 20000, 5);
    assert_true(page_heap_used_pages(page_heap) < used / 20);
}

/* Neither cut off, for hooks refuse to split, nor moved, for they have no more. */
static void what_cannot_shrink_stays(void **state)
{
    struct arena *arena = hooked_arena();
    int flags = MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE;
    unsigned char *block;

    (void)state;
    seen.refuse_split = true;
    (void)prairie_mallocx(100, flags); /* no extent is cut up from now on */
    block = prairie_mallocx(3 * MiB, flags);
    write_pattern(block, 3 * MiB, 1);
    seen.refused = 1;
    thread_bind(arena);
    assert_ptr_equal(prairie_realloc(block, MiB), block);
    assert_int_equal(prairie_usable_size(block), 3 * MiB);
    assert_ptr_equal(prairie_rallocx(block, MiB / 2, 0), block);
    assert_non_null(prairie_thread_totals());
    assert_ptr_equal(prairie_realloc(block, MiB / 4), block);
    check_pattern(block, 3 * MiB, 1);
    assert_null(prairie_realloc(block, 4 * MiB));
    prairie_check_all();
    misuse_check_told(block, MiB / 4, 1); /* both of these are right */
    prairie_sdallocx(block, MiB / 4, 0);
    thread_bind(arena_at(0));
    assert_true(placed_destroy(arena));
    assert_int_equal(seen.bytes_out, 0);
}

/* ---- room to grow ---- */

static size_t grown_to(size_t from, size_t size)
{
    void *block = prairie_realloc(prairie_malloc(from), size);
    size_t bytes = prairie_usable_size(block);

    prairie_free(block);
    return bytes;
}

static void room_is_a_quarter_at_most(void **state)
{
    (void)state;
    for (size_t size = 2; size <= SMALL_BYTES_MAX; size += 1 + size / 500) {
        for (size_t from = 1; from < size; from += 1 + size / 5) {
            size_t bytes = grown_to(from, size);

            assert_true(bytes >= size);
            if (size > TABLE_BYTES_MAX) assert_true(bytes - size < size / 4 || size == bytes);
            else assert_int_equal(bytes, prairie_nallocx(size, 0));
        }
    }
    prairie_check_all();
}

/* A vector that doubles knows how much room it wants. */
static void a_power_of_two_gets_no_room(void **state)
{
    (void)state;
    for (size_t size = 2048; size <= SMALL_BYTES_MAX; size *= 2) {
        assert_int_equal(grown_to(size / 2, size), size);
        assert_int_equal(grown_to(size - 1024, size), size);
    }
}

/* A node of a list that takes what is appended, up to 8 KiB, and then stays. */
static void a_node_ends_where_it_is_full(void **state)
{
    (void)state;
    for (size_t piece = 20; piece <= 200; piece++) {
        unsigned char *node = prairie_malloc(piece);
        unsigned moves = 0;
        size_t bytes = piece;

        for (; bytes + piece <= 8192; bytes += piece) {
            unsigned char *grown = prairie_realloc(node, bytes + piece);

            moves += bytes > 1024 && grown != node;
            node = grown;
        }
        assert_true(prairie_usable_size(node) <= 8192);
        assert_true(moves <= 4 * 3); /* four to a doubling */
        prairie_free(node);
    }
    prairie_check_all();
}

/* ---- by moving pages ---- */

/* A block with others behind it, made larger. */
static char *grown(size_t from, size_t to)
{
    unsigned char *block = prairie_malloc(from);
    unsigned char *moved;

    (void)prairie_malloc(20000);
    write_pattern(block, from, 2);
    moved = prairie_realloc(block, to);
    assert_non_null(moved);
    check_pattern(moved, from, 2);
    prairie_check_all();
    return (char *)moved;
}

static void pages_are_moved_rather_than_copied(void **state)
{
    uint64_t moved;
    size_t size = 2 * REMAP_BYTES_MIN;
    char *block;

    (void)state;
    block = grown(size, 2 * size);
    assert_int_equal(fake_moved_bytes(), size);
    assert_int_equal(fake_calls(FAKE_PURGE), 0); /* what they left behind is clean */
    assert_true(page_heaps_free_now(FREE_DIRTY) < pages_for(size));
    prairie_free(block);
    prairie_free(grown(REMAP_BYTES_MIN / 4, 2 * size));
    assert_int_equal(fake_moved_bytes(), size); /* too few to be worth a call */
    fake_fail_kind(FAKE_MOVE, true);
    moved = fake_calls(FAKE_MOVE);
    prairie_free(grown(4 * size, 16 * size)); /* refused: copied */
    assert_true(fake_calls(FAKE_MOVE) > moved);
    assert_int_equal(fake_moved_bytes(), size);
    prairie_check_all();
}

/* A calloc after all that must not see what the moved pages held. */
static void moved_pages_leave_no_lies_about_zeros(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        size_t size = REMAP_BYTES_MIN * (1 + i % 4);
        char *block = grown(size, 3 * size), *zero;
        zero = prairie_calloc(1, size);
        assert_true(all_bytes_are(zero, 0, prairie_usable_size(zero)));
        memset(zero, 1, size);
        prairie_free(block);
        prairie_free(zero);
    }
}

/* ---- random changes ---- */

static void random_changes_against_a_model(void **state)
{
    enum { BLOCKS = 200 };
    static struct {
        unsigned char *base;
        size_t bytes;
        unsigned seed;
    } model[BLOCKS];

    (void)state;
    for (unsigned step = 0; step < 15000; step++) {
        unsigned at = (unsigned)random_below(BLOCKS);
        size_t bytes = random_below(20) == 0 ? random_below(600000) : random_below(3000);
        unsigned char *moved;

        if (random_below(40) == 0) fake_fail_nth(1);
        moved = prairie_realloc(model[at].base, bytes);
        fake_fail_nth(0);
        if (moved == NULL && bytes != 0) {
            if (model[at].base != NULL)
                check_pattern(model[at].base, min_size(model[at].bytes, 300), model[at].seed);
            continue;
        }
        if (moved != NULL)
            check_pattern(moved, min_size(min_size(model[at].bytes, bytes), 300), model[at].seed);
        model[at].base = moved;
        model[at].bytes = moved == NULL ? 0 : bytes;
        model[at].seed = step;
        if (moved != NULL) write_pattern(moved, min_size(bytes, 300), step);
        if (step % 128 == 0) prairie_check_all();
    }
    for (unsigned i = 0; i < BLOCKS; i++) prairie_free(model[i].base);
    (void)prairie_purge();
    prairie_check_all();
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

/* Each piece that is moved stays a mapping of its own. */
static void moves_are_rationed(void **state)
{
    size_t most, moves = 0;

    (void)state;
    prairie_free(prairie_malloc(1));
    most = REMAP_COUNT_MIN + space.open_bytes / REMAP_SHARE_BYTES;
    assert_false(large_may_move(REMAP_BYTES_MIN - 1));
    while (moves <= most && large_may_move(REMAP_BYTES_MIN)) moves++;
    assert_int_equal(moves, most);
}

/* A move maps as many bytes more for a moment. */
static void nothing_moves_where_no_more_can_be_mapped(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    fake_address_space(64 * MiB, 64 * MiB);
    assert_false(large_may_move(REMAP_BYTES_MIN));
    fake_address_space(SIZE_MAX, 0);
    assert_true(large_may_move(REMAP_BYTES_MIN));
}

static bool is_vast(const char *block) { return page_record(page_at(block))->state == PAGE_VAST; }

static void use_up_moves(void)
{
    while (large_may_move(REMAP_BYTES_MIN)) continue;
}

/* It would be copied whole each time. */
static void what_grows_bit_by_bit_becomes_vast_where_no_moves_are_left(void **state)
{
    size_t bytes = REMAP_BYTES_MIN, size = bytes + 3 * page_bytes();
    uint64_t moved;
    char *block;

    (void)state;
    assert_false(is_vast(grown(bytes, size))); /* some are left */
    use_up_moves();
    moved = fake_moved_bytes();
    block = grown(bytes, size);
    assert_true(is_vast(block));
    assert_int_equal(fake_moved_bytes(), moved + bytes);
    for (unsigned i = 0; i < 10; i++) {
        write_pattern((unsigned char *)block, size, i);
        block = prairie_realloc(block, size + 3 * page_bytes());
        assert_true(is_vast(block));
        check_pattern((unsigned char *)block, size, i);
        size += 3 * page_bytes();
    }
    prairie_free(block);
    assert_int_equal(vast_count_now(), 0);
    prairie_check_all();
}

static void what_is_shorter_does_not(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    use_up_moves();
    assert_false(is_vast(grown(REMAP_BYTES_MIN - page_bytes(), REMAP_BYTES_MIN + page_bytes())));
}

/* It would take the program's part of the limit. */
static void under_a_limit_of_address_space_none_does(void **state)
{
    (void)state;
    fake_address_space(256 * MiB, 0);
    prairie_free(prairie_malloc(1));
    use_up_moves();
    assert_false(is_vast(grown(REMAP_BYTES_MIN, REMAP_BYTES_MIN + page_bytes())));
}

/* Nor what grows by more than an eighth. */
static void what_grows_by_much_does_not(void **state)
{
    size_t share = REMAP_BYTES_MIN / GROWN_VAST_SHARE;

    (void)state;
    prairie_free(prairie_malloc(1));
    use_up_moves();
    assert_true(is_vast(grown(REMAP_BYTES_MIN, REMAP_BYTES_MIN + share)));
    assert_false(is_vast(grown(REMAP_BYTES_MIN, REMAP_BYTES_MIN + share + 1)));
}

/* Each is a mapping of its own. */
static void only_so_many_become_vast(void **state)
{
    static char *vast[GROWN_VAST_MAX];

    (void)state;
    prairie_free(prairie_malloc(1));
    use_up_moves();
    for (size_t i = 0; i < GROWN_VAST_MAX; i++) vast[i] = vast_take(page_bytes(), page_bytes());
    assert_int_equal(vast_count_now(), GROWN_VAST_MAX);
    assert_false(is_vast(grown(REMAP_BYTES_MIN, REMAP_BYTES_MIN + page_bytes())));
    prairie_free(vast[0]);
    assert_true(is_vast(grown(REMAP_BYTES_MIN, REMAP_BYTES_MIN + page_bytes())));
    prairie_check_all();
}

/* Both are held at once when one moves, and never in place. */
static void what_large_blocks_become_is_counted(void **state)
{
    const struct prairie_thread_totals *totals = prairie_thread_totals();
    struct counting_front *counting = counting_of(thread_front());
    char *block = prairie_malloc(200 * KiB), *other = prairie_malloc(200 * KiB), *moved;

    (void)state;
    assert_ptr_equal(prairie_realloc(block, 100 * KiB), block);
    assert_int_equal(totals->allocated - totals->deallocated, 300 * KiB);
    counting_forget_peak(counting);
    assert_ptr_equal(prairie_realloc(block, 160 * KiB), block);
    assert_int_equal(totals->allocated - totals->deallocated, 360 * KiB);
    assert_int_equal(counting_peak(counting), 60 * KiB);
    assert_int_equal(prairie_xallocx(block, 200 * KiB, 0, 0), 200 * KiB);
    assert_int_equal(totals->allocated - totals->deallocated, 400 * KiB);
    counting_forget_peak(counting);
    moved = prairie_realloc(block, 600 * KiB);
    assert_ptr_not_equal(moved, block);
    assert_int_equal(totals->allocated - totals->deallocated, 800 * KiB);
    assert_int_equal(counting_peak(counting), 600 * KiB);
    prairie_free(moved);
    prairie_free(other);
    assert_int_equal(totals->allocated, totals->deallocated);
    prairie_check_all();
}

static size_t bytes_cached(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    assert_true(prairie_stats_read(&stats));
    return stats.cached;
}

/* As one that frees: the only thread of a program that has shrunk to a half holds nothing. */
static void a_block_that_shrinks_is_as_good_as_a_free(void **state)
{
    char *large = prairie_malloc(24 * MiB), *other = prairie_malloc(8 * MiB);

    (void)state;
    prairie_free(other); /* how much there was is noted */
    prairie_free(prairie_malloc(100));
    assert_true(bytes_cached() > 0);
    assert_ptr_equal(prairie_realloc(large, 20 * MiB), large);
    assert_true(bytes_cached() > 0);
    assert_ptr_equal(prairie_realloc(large, 100 * KiB), large);
    assert_int_equal(bytes_cached(), 0);
    prairie_free(large);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(every_pair_of_sizes_keeps_the_contents),
          UNIT_TEST(aligned_blocks_keep_their_contents), UNIT_TEST(null_and_zero),
          UNIT_TEST(a_refused_realloc_keeps_the_block), UNIT_TEST(the_same_class_stays_in_place),
          UNIT_TEST(a_large_block_grows_into_free_pages), UNIT_TEST(a_large_block_shrinks_in_place),
          UNIT_TEST(what_cannot_shrink_stays), UNIT_TEST(room_is_a_quarter_at_most),
          UNIT_TEST(a_power_of_two_gets_no_room), UNIT_TEST(a_node_ends_where_it_is_full),
          UNIT_TEST(pages_are_moved_rather_than_copied),
          UNIT_TEST(moved_pages_leave_no_lies_about_zeros),
          UNIT_TEST(random_changes_against_a_model),
          UNIT_TEST(a_block_that_shrinks_is_as_good_as_a_free),
          UNIT_TEST(what_large_blocks_become_is_counted), UNIT_TEST(moves_are_rationed),
          UNIT_TEST(what_grows_bit_by_bit_becomes_vast_where_no_moves_are_left),
          UNIT_TEST(what_is_shorter_does_not), UNIT_TEST(what_grows_by_much_does_not),
          UNIT_TEST(under_a_limit_of_address_space_none_does), UNIT_TEST(only_so_many_become_vast),
          UNIT_TEST(nothing_moves_where_no_more_can_be_mapped))
