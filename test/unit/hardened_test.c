/* hardened_test.c - sizes, zeros, guards and the quarantine of a hardened process. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "hardened.h"

#include <jemalloc/jemalloc.h>

#include <sys/mman.h>

/* What a process says and does that takes and gives blocks of the size of block. */
static size_t size_of_block;
static void go_on(void)
{
    static void *blocks[BLOCKS];

    for (size_t i = 0; i < BLOCKS; i++) blocks[i] = prairie_malloc(size_of_block);
    for (size_t i = 0; i < BLOCKS; i++) prairie_free(blocks[i]);
}

/* ---- blocks end where their size says ---- */

static void every_size_is_exact_and_reads_as_zero(void **state)
{
    (void)state;
    harden();
    for (unsigned round = 0; round < 3; round++)
        for (size_t bytes = 1; bytes < 3 * SMALL_BYTES_MAX; bytes += 1 + bytes / 5) {
            char *one = taken(bytes), *aligned = prairie_aligned_alloc(64, bytes);
            assert_true(all_bytes_are(one, 0, bytes));
            assert_true(all_bytes_are(aligned, 0, bytes));
            assert_int_equal(prairie_usable_size(aligned), bytes);
            memset(one, 0xff, bytes);
            memset(aligned, 0xff, bytes);
            prairie_free(one);
            prairie_free(aligned);
        }
    prairie_check_all();
}

/* Where one way of finding a class ends, and the next begins. */
static void sizes_at_the_ends_of_tables_are_exact(void **state)
{
    const size_t ends[] = { TABLE_BYTES_MAX, SMALL_BYTES_MAX };

    (void)state;
    harden();
    for (unsigned round = 0; round < 2; round++)
        for (size_t i = 0; i < ARRAY_COUNT(ends); i++)
            for (size_t bytes = ends[i] - 20; bytes < ends[i] + 20; bytes++) {
                char *one = taken(bytes);
                assert_true(all_bytes_are(one, 0, bytes));
                memset(one, 0xff, bytes);
                prairie_free(one);
            }
    prairie_check_all();
}

/* With a mark it would be a small one. */
static void sizes_that_leave_no_room_for_a_mark_are_refused(void **state)
{
    (void)state;
    harden();
    for (size_t less = 0; less < 20; less++) {
        size_t bytes = SIZE_MAX - less;

        errno = 0;
        assert_null(prairie_malloc(bytes));
        assert_int_equal(errno, ENOMEM);
        assert_null(prairie_calloc(1, bytes));
        assert_null(prairie_aligned_alloc(64, bytes));
        assert_null(prairie_mallocx(bytes, 0));
        block = taken(100);
        assert_null(prairie_realloc(block, bytes));
        assert_int_equal(prairie_usable_size(block), 100);
        prairie_free(block);
    }
    prairie_check_all();
}

static void behind_a_large_block_is_a_guard(void **state)
{
    (void)state;
    harden();
    block = taken(LARGE);
    expect_fault(touch_behind);
}

static void what_writes_before_a_block_is_told_by_its_free(void **state)
{
    char *other;

    (void)state;
    harden();
    block = taken(40);
    other = taken(40);
    if (other > block) block = other; /* not the first of its slab */
    block[-1] ^= 1;
    expect_abort(free_it, "prairie: write before the start of a block: ");
    expect_abort(give_it, "prairie: write before the start of a block: ");
}

/* ---- freed blocks ---- */

static void a_freed_block_is_empty_and_waits(void **state)
{
    const struct {
        size_t bytes;
        unsigned others;
    } sizes[] = { { 8, 13 }, { 20, 5 }, { 100, 5 }, { 1000, 5 } };
    char *again;

    (void)state;
    harden();
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++)
        for (unsigned round = 0; round < 300; round++) {
            size_t bytes = sizes[i].bytes;

            block = taken(bytes);
            memset(block, 0xff, bytes);
            prairie_free(block);
            assert_true(all_bytes_are(block, 0, bytes));
            for (unsigned other = 1; other < sizes[i].others; other++) {
                again = taken(bytes);
                assert_ptr_not_equal(again, block);
                prairie_free(again);
            }
        }
}

/* Whatever else a program does: three that lie one behind the other do not come so. */
static void fresh_blocks_come_in_no_order(void **state)
{
    char *blocks[BLOCKS];
    unsigned in_order = 0;

    (void)state;
    harden();
    for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = taken(100);
    for (unsigned i = 4; i < BLOCKS; i++) {
        ptrdiff_t step = blocks[i - 3] - blocks[i - 4];

        if (blocks[i - 2] - blocks[i - 3] == step && blocks[i - 1] - blocks[i - 2] == step
            && blocks[i] - blocks[i - 1] == step)
            in_order++;
    }
    assert_int_equal(in_order, 0);
}

/* The places of those that waited are not those in which they came. */
static void freed_blocks_come_back_by_chance(void **state)
{
    enum { ROUNDS = 200 };
    unsigned waited[ROUNDS], differing = 0;

    (void)state;
    harden();
    for (unsigned round = 0; round < ROUNDS; round++) {
        block = taken(20);
        prairie_free(block);
        for (waited[round] = 1; waited[round] < 1000; waited[round]++) {
            char *again = taken(20);

            prairie_free(again);
            if (again == block) break;
        }
        if (round != 0) differing += waited[round] != waited[round - 1];
    }
    assert_in_range(differing, ROUNDS / 2, ROUNDS);
}

/* The order of two groups of four places is drawn at a time: in each another one of four, and
 * sometimes the group before them is left out. */
static void chance_draws_orders_and_leaves_groups_out(void **state)
{
    enum { DRAWS = 200, GROUP = 4, PLACES = 16 };
    unsigned twists[GROUP] = { 0 }, changes[GROUP] = { 0 }, left_out[2] = { 0 }, before = 0;
    const struct held_class *held;

    (void)state;
    harden();
    held = &quarantine()->held[hardened_class(20, 1)];
    for (unsigned draw = 0; draw < DRAWS; draw++) {
        unsigned place[2 * GROUP], start, twist;

        for (unsigned i = 0; i < 2 * GROUP; i++) {
            block = taken(20);
            prairie_free(block);
            for (place[i] = 0; held->waiting[place[i]] != block; place[i]++)
                assert_true(place[i] < PLACES);
        }
        assert_int_equal(held->waiting_max, PLACES);
        start = place[0] / GROUP * GROUP;
        twist = place[0] % GROUP;
        for (unsigned i = 0; i < GROUP; i++) {
            assert_int_equal(place[i], start + (i ^ twist));
            assert_int_equal(place[GROUP + i] / GROUP * GROUP, (start + GROUP) % PLACES);
        }
        twists[twist]++;
        changes[(place[GROUP] ^ twist) % GROUP]++;
        if (draw != 0) left_out[(start - before) % PLACES / GROUP % 2]++;
        before = start;
    }
    for (unsigned i = 0; i < GROUP; i++) {
        assert_in_range(twists[i], DRAWS / 16, DRAWS / 2);
        assert_in_range(changes[i], DRAWS / 16, DRAWS / 2);
    }
    assert_in_range(left_out[0], DRAWS / 4, DRAWS * 3 / 4);
    assert_in_range(left_out[1], DRAWS / 4, DRAWS * 3 / 4);
}

/* Of large blocks few wait: none of them leaves at the next free, but where chance draws anew. */
static void few_wait_as_well(void **state)
{
    const size_t sizes[] = { 1500, 4000 };

    (void)state;
    harden();
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        const struct held_class *held = &quarantine()->held[hardened_class(sizes[i], 1)];
        char *before = taken(sizes[i]);
        unsigned seen = 0;

        prairie_free(before);
        for (unsigned round = 0; round < 200; round++) {
            bool draws = held->order == 0;

            block = taken(sizes[i]);
            prairie_free(block);
            for (unsigned place = 0; place < held->waiting_max; place++)
                seen += !draws && held->waiting[place] == before;
            before = block;
        }
        assert_int_equal(held->waiting_max, i == 0 ? 4 : 2);
        assert_int_equal(seen, 200 - 200 / 8);
    }
}

/* By then every block of the class has left the quarantine, and was taken again. */
static void go_on_for_long(void)
{
    for (unsigned round = 0; round < 4; round++) go_on();
}

static void what_is_written_after_free_is_told_by_those_who_come_next(void **state)
{
    (void)state;
    harden();
    size_of_block = 100;
    go_on();
    block = taken(100);
    prairie_free(block);
    block[50] = 1;
    expect_abort(go_on_for_long, "prairie: write after free: ");
}

static void only_take(void)
{
    for (size_t i = 0; i < BLOCKS; i++) (void)prairie_malloc(size_of_block);
}

/* Nobody frees blocks of its class any more, so that it never leaves. */
static void what_waits_for_ever_is_looked_at(void **state)
{
    const size_t sizes[] = { 20, 100, 3000 };

    (void)state;
    harden();
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        size_of_block = sizes[i];
        block = taken(sizes[i]);
        prairie_free(block);
        block[sizes[i] / 2] = 1;
        expect_abort(only_take, "prairie: write after free: ");
        block[sizes[i] / 2] = 0;
        only_take();
    }
}

static void each_byte_of_a_freed_block_is_looked_at(void **state)
{
    const size_t sizes[] = { 8, 24, 56, 72, 120, 632 }; /* each fills its class, but for the mark */

    (void)state;
    harden();
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++)
        for (size_t at = 0; at < sizes[i] + HARDENED_MARK_BYTES; at += 1 + at / 8) {
            size_of_block = sizes[i];
            block = taken(sizes[i]);
            memset(block, 0xff, sizes[i]);
            prairie_free(block);
            assert_true(all_bytes_are(block, 0, sizes[i] + HARDENED_MARK_BYTES));
            block[at] = 1;
            expect_abort(go_on_for_long, "prairie: write after free: ");
            block[at] = 0;
        }
}

static void free_it_sized(void) { prairie_free_sized(block, 101); }
static void free_it_aligned_sized(void) { prairie_free_aligned_sized(block, 16, 99); }
static void free_it_with_flags(void) { prairie_sdallocx(block, 99, 4); }
static void free_inside(void) { prairie_free(block + 16); }

static void misuse_is_told_at_the_call(void **state)
{
    const size_t sizes[] = { 100, LARGE };

    (void)state;
    harden();
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        block = taken(sizes[i]);
        expect_abort(free_it_sized, "prairie: wrong size in sized delete: ");
        expect_abort(free_it_aligned_sized, "prairie: wrong size in sized delete: ");
        expect_abort(free_it_with_flags, "prairie: wrong size in sized delete: ");
        expect_abort(free_inside, "prairie: free of an interior pointer: ");
        prairie_free_sized(block, sizes[i]);
        expect_abort(free_it, "prairie: double free: ");
        expect_abort(free_it_sized, "prairie: double free: ");
        expect_abort(realloc_it, "prairie: realloc of a freed pointer: ");
        expect_abort(measure_it, "prairie: malloc_usable_size of a freed pointer: ");
    }
}

/* Closed or open, until it leaves. */
static void what_waits_is_of_no_arena(void **state)
{
    (void)state;
    harden();
    for (unsigned pages = 0; pages <= BLOCKS; pages += BLOCKS) {
        block = taken(LARGE);
        may_close(pages);
        assert_ptr_equal(arena_of_address(block), arena_at(0));
        prairie_free(block);
        assert_null(arena_of_address(block));
    }
}

/* What is freed past the thread's cache, or into another one, waits like all the rest. */
static void nothing_passes_the_quarantine_by(void **state)
{
    int flags[] = { MALLOCX_TCACHE_NONE, 0 };

    (void)state;
    harden();
    prairie_free(taken(1));
    flags[1] = MALLOCX_TCACHE((int)explicit_cache_create());
    for (size_t i = 0; i < ARRAY_COUNT(flags); i++) {
        block = prairie_mallocx(100, flags[i]);
        prairie_dallocx(block, flags[i]);
        for (unsigned k = 0; k < 4; k++) {
            char *again = prairie_mallocx(100, flags[i]);

            assert_ptr_not_equal(again, block);
            prairie_dallocx(again, flags[i]);
        }
        block = prairie_mallocx(LARGE, flags[i]);
        prairie_dallocx(block, flags[i]);
        assert_null(arena_of_address(block));
        expect_fault(touch_it);
    }
    prairie_check_all();
}

/* Who reads past the end of a block sees the canary. */
static void the_canary_is_no_part_of_the_secret(void **state)
{
    (void)state;
    harden();
    assert_int_not_equal(hardening.canaries & 0xff, hardening.secret >> 56 | 1);
    assert_int_not_equal(hardening.canaries & 0xff, (hardening.secret & 0xff) | 1);
}

static void free_the_first(void)
{
    char here[32];

    prairie_free(here);
}

/* The first call takes no page, so that none has been opened when the next one frees. */
static void frees_before_any_page_are_looked_at(void **state)
{
    (void)state;
    harden();
    block = prairie_malloc(0);
    assert_int_equal(space.open_bytes, 0);
    prairie_free(block);
    expect_abort(free_it, "prairie: double free: ");
    expect_abort(free_the_first, "prairie: free of a foreign pointer: ");
}

static void no_memory_for_the_map_hardens_nothing(void **state)
{
    (void)state;
    assert_true(heap_start());
    fake_fail_kind(FAKE_COMMIT, true);
    assert_false(hardened_start());
    fake_fail_kind(FAKE_COMMIT, false);
    assert_false(hardening.is_on);
    harden();
}

/* ---- realloc ---- */

static void contents_go_along(void **state)
{
    const size_t sizes[] = { 1, 30, 31, 100, 1000, 20000, 20001, 24000, LARGE, 3 * LARGE, 8 };
    unsigned char *bytes;

    (void)state;
    harden();
    bytes = (unsigned char *)taken(1);
    for (size_t i = 1; i < ARRAY_COUNT(sizes); i++) {
        size_t kept = min_size(sizes[i - 1], sizes[i]);
        memset(bytes, (int)i, sizes[i - 1]);
        bytes = prairie_realloc(bytes, sizes[i]);
        assert_non_null(bytes);
        assert_int_equal(prairie_usable_size(bytes), sizes[i]);
        assert_int_equal(page_record(page_at(bytes))->class_at != 0,
                         sizes[i] + HARDENED_MARK_BYTES <= SMALL_BYTES_MAX);
        assert_true(all_bytes_are(bytes, (unsigned char)i, kept));
        assert_true(all_bytes_are(bytes + kept, 0, sizes[i] - kept));
        block = (char *)bytes;
        if (sizes[i] % 4096 != 0) {
            block[sizes[i]] = 1;
            expect_abort(free_it, "prairie: write past the end of a block: ");
            block[sizes[i]] = 0;
        }
    }
    prairie_free(bytes);
    prairie_check_all();
}

/* Neither can it grow nor is there another place: it is as it was. */
static void what_cannot_grow_stays_as_it_was(void **state)
{
    (void)state;
    harden();
    block = taken(LARGE);
    memset(block, 0xee, LARGE);
    fake_fail_kind(FAKE_COMMIT, true);
    assert_null(prairie_realloc(block, 64 * MiB));
    fake_fail_kind(FAKE_COMMIT, false);
    assert_int_equal(prairie_usable_size(block), LARGE);
    assert_true(all_bytes_are(block, 0xee, LARGE));
    expect_fault(touch_behind);
    block[LARGE] ^= 1;
    expect_abort(free_it, "prairie: write past the end of a block: ");
    block[LARGE] ^= 1;
    prairie_free(block);
    prairie_check_all();
}

static void what_moved_away_is_gone(void **state)
{
    char *other, *moved;

    (void)state;
    harden();
    block = taken(LARGE);
    other = taken(LARGE); /* it cannot grow */
    memset(block, 0xff, LARGE);
    moved = prairie_realloc(block, 3 * LARGE);
    assert_ptr_not_equal(moved, block);
    assert_true(all_bytes_are(moved, 0xff, LARGE));
    assert_true(all_bytes_are(moved + LARGE, 0, 2 * LARGE));
    expect_fault(touch_it);
    prairie_free(moved);
    prairie_free(other);
    block = taken(REMAP_BYTES_MIN + 5);
    memset(block, 0xff, REMAP_BYTES_MIN + 5);
    moved = prairie_realloc(block, 3 * REMAP_BYTES_MIN + 1);
    assert_ptr_not_equal(moved, block);
    assert_true(all_bytes_are(moved, 0xff, REMAP_BYTES_MIN + 5));
    assert_true(all_bytes_are(moved + REMAP_BYTES_MIN + 5, 0, 2 * REMAP_BYTES_MIN - 4));
    block = moved;
    block[3 * REMAP_BYTES_MIN + 1] = 1;
    expect_abort(free_it, "prairie: write past the end of a block: ");
}

/* Pages that the kernel will not move are copied. */
static void what_cannot_move_is_copied(void **state)
{
    const size_t bytes = REMAP_BYTES_MIN + 5;
    char *other, *moved;

    (void)state;
    harden();
    block = taken(bytes);
    other = taken(LARGE); /* it cannot grow */
    memset(block, 0xee, bytes);
    fake_fail_kind(FAKE_MOVE, true);
    moved = prairie_realloc(block, 3 * bytes);
    fake_fail_kind(FAKE_MOVE, false);
    assert_ptr_not_equal(moved, block);
    assert_true(all_bytes_are(moved, 0xee, bytes));
    assert_true(all_bytes_are(moved + bytes, 0, 2 * bytes));
    expect_fault(touch_it); /* it is freed */
    prairie_free(moved);
    prairie_free(other);
    prairie_check_all();
}

/* What is left of it has no pages, and none are brought there to be wiped. */
static void what_moved_away_is_not_wiped(void **state)
{
    const size_t bytes = REMAP_BYTES_MIN;
    uint64_t purged;
    char *moved;

    (void)state;
    harden();
    prairie_free(taken(1));
    block = taken(bytes);
    memset(block, 0xee, bytes);
    moved = taken(3 * bytes);
    may_close(0);
    purged = fake_purged_bytes();
    assert_true(hardened_move_pages(block, page_at(block), bytes, moved));
    assert_int_equal(quarantine()->run_count, 0);
    assert_true(fake_purged_bytes() - purged >= bytes);
    assert_true(all_bytes_are(moved, 0xee, bytes));
    prairie_free(moved);
    prairie_check_all();
}

static void what_moved_away_is_counted(void **state)
{
    const struct prairie_thread_totals *totals;
    char *other;

    (void)state;
    harden();
    totals = prairie_thread_totals();
    block = taken(REMAP_BYTES_MIN + 5);
    other = taken(LARGE); /* it cannot grow */
    block = prairie_realloc(block, 3 * REMAP_BYTES_MIN + 1);
    assert_int_equal(totals->allocated - totals->deallocated, 3 * REMAP_BYTES_MIN + 1 + LARGE);
    prairie_free(block);
    prairie_free(other);
    assert_int_equal(totals->allocated, totals->deallocated);
}

static void touch_end(void) { *(volatile char *)block = 1; }

/* Where there is room behind it, a large one is resized where it is, and its guard goes along. */
static void a_large_block_is_resized_where_it_is(void **state)
{
    const size_t sizes[] = { LARGE + 5, 3 * LARGE, 2 * LARGE + 1, LARGE, LARGE + 5000 };
    const struct prairie_thread_totals *totals;
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    size_t kept = LARGE;
    char *bytes;

    (void)state;
    harden();
    prairie_free(taken(4 * LARGE));
    thread_flush();
    totals = prairie_thread_totals();
    bytes = taken(LARGE);
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        memset(bytes, 0x11, kept);
        may_close(1 + CLOSING_COSTS_PAGES); /* its new guard, and nothing else */
        assert_ptr_equal(prairie_realloc(bytes, sizes[i]), bytes);
        assert_int_equal(prairie_usable_size(bytes), sizes[i]);
        kept = min_size(kept, sizes[i]);
        assert_true(all_bytes_are(bytes, 0x11, kept));
        assert_true(all_bytes_are(bytes + kept, 0, sizes[i] - kept));
        block = bytes + round_up(sizes[i], 4096);
        expect_fault(touch_end);
        block = bytes;
        bytes[sizes[i]] ^= 1;
        expect_abort(free_it, "prairie: write past the end of a block: ");
        bytes[sizes[i]] ^= 1;
        (void)prairie_stats_read(&stats);
        assert_int_equal(stats.allocated, round_up(sizes[i], 4096) + 4096);
        assert_int_equal(totals->allocated - totals->deallocated, sizes[i]);
        kept = sizes[i];
        prairie_check_all();
    }
    prairie_free(bytes);
    prairie_check_all();
}

/* More than is wiped where a block is freed goes back to the kernel, which touches no page. */
static void what_a_block_loses_and_gains_is_not_touched(void **state)
{
    const size_t more = 2 * LARGE + WIPED_RUN_BYTES_MAX;
    uint64_t purges;
    char *bytes;

    (void)state;
    options_parse("dirty_decay_ms:-1", "test");
    harden();
    bytes = taken(more);
    memset(bytes, 0x11, more);
    purges = fake_calls(FAKE_PURGE);
    assert_ptr_equal(prairie_realloc(bytes, LARGE), bytes);
    assert_int_equal(fake_calls(FAKE_PURGE), purges + 1);
    assert_ptr_equal(prairie_realloc(bytes, more), bytes);
    assert_int_equal(fake_calls(FAKE_PURGE), purges + 2);
    assert_true(all_bytes_are(bytes, 0x11, LARGE));
    assert_true(all_bytes_are(bytes + LARGE, 0, more - LARGE));
    prairie_free(bytes);
    prairie_check_all();
}

/* Fresh pages are zeros, which are not written again; but for the one that may become its guard. */
static void fresh_pages_that_a_block_gains_are_not_touched(void **state)
{
    unsigned char there;
    char *bytes;

    (void)state;
    harden();
    may_close(0);
    run_return_clean(run_lease(pages_for(20 * LARGE), 1, PAGE_USED).page);
    bytes = taken(LARGE);
    memset(bytes, 0x11, LARGE);
    bytes[round_up(LARGE, page_bytes())] = 1; /* nobody's page, and no guard */
    assert_ptr_equal(prairie_realloc(bytes, 9 * LARGE), bytes);
    assert_int_equal(mincore(bytes + round_up(5 * LARGE, page_bytes()), page_bytes(), &there), 0);
    assert_int_equal(there & 1, 0);
    assert_true(all_bytes_are(bytes, 0x11, LARGE));
    assert_true(all_bytes_are(bytes + LARGE, 0, 8 * LARGE));
    prairie_free(bytes);
    prairie_check_all();
}

/* Bytes 0x11, in a hardened process. */
static char *large_block_with_room(void)
{
    char *bytes;

    harden();
    prairie_free(taken(4 * LARGE));
    thread_flush();
    bytes = taken(LARGE);
    memset(bytes, 0x11, LARGE);
    return bytes;
}

static void expect_grown_to_three(const char *bytes)
{
    assert_int_equal(prairie_usable_size(bytes), 3 * LARGE);
    assert_true(all_bytes_are(bytes, 0x11, LARGE));
    assert_true(all_bytes_are(bytes + LARGE, 0, 2 * LARGE));
}

static void rallocx_it(void) { (void)prairie_rallocx(block, 9 * REMAP_BYTES_MIN, 0); }

/* As realloc does, unless the flags want it elsewhere. */
static void rallocx_resizes_where_it_is(void **state)
{
    char *bytes = large_block_with_room();

    (void)state;
    assert_ptr_equal(prairie_rallocx(bytes, 3 * LARGE, MALLOCX_ZERO), bytes);
    expect_grown_to_three(bytes);
    assert_ptr_equal(prairie_rallocx(bytes, LARGE, MALLOCX_ALIGN(64)), bytes);
    assert_int_equal(prairie_usable_size(bytes), LARGE);
    block = prairie_rallocx(bytes, 2 * LARGE, MALLOCX_ARENA(thread_arena()->index));
    assert_ptr_not_equal(block, bytes);
    assert_true(all_bytes_are(block, 0x11, LARGE));
    prairie_free(block);
    bytes = taken(97);
    memset(bytes, 0x11, 97);
    assert_ptr_equal(prairie_rallocx(bytes, 99, 0), bytes);
    assert_true(all_bytes_are(bytes, 0x11, 97));
    assert_true(all_bytes_are(bytes + 97, 0, 2));
    block = bytes;
    bytes[99] ^= 1;
    expect_abort(free_it, "prairie: write past the end of a block: ");
    bytes[99] ^= 1;
    prairie_free(bytes);
    prairie_check_all();
}

/* Also of one that is to be aligned, or goes to an arena that the flags name. */
static void rallocx_moves_pages_too(void **state)
{
    const size_t bytes = REMAP_BYTES_MIN + 5;
    const size_t aligns[] = { 1, 64, 64 * KiB };

    (void)state;
    harden();
    prairie_free(taken(1));
    for (size_t i = 0; i <= ARRAY_COUNT(aligns); i++) {
        int flags = i < ARRAY_COUNT(aligns) ? MALLOCX_ALIGN(aligns[i])
                                            : (int)MALLOCX_ARENA(thread_arena()->index);
        uint64_t moved_bytes = fake_moved_bytes();
        char *other, *moved;

        block = prairie_mallocx(bytes, flags);
        other = taken(LARGE); /* it cannot grow */
        memset(block, 0xee, bytes);
        moved = prairie_rallocx(block, 3 * bytes, flags | MALLOCX_ZERO);
        assert_ptr_not_equal(moved, block);
        assert_int_equal(fake_moved_bytes() - moved_bytes, round_up(bytes, page_bytes()));
        assert_true(all_bytes_are(moved, 0xee, bytes));
        assert_true(all_bytes_are(moved + bytes, 0, 2 * bytes));
        assert_int_equal(prairie_usable_size(moved), 3 * bytes);
        expect_abort(free_it, "prairie: double free: ");
        block = moved;
        hardened_set_door(block, DOOR_NEW);
        expect_abort(rallocx_it, "prairie: allocation and free do not match: ");
        hardened_check_door(block, DOOR_NEW);
        prairie_free(block);
        prairie_free(other);
        prairie_check_all();
    }
}

static void xallocx_resizes_where_there_is_room(void **state)
{
    char *bytes = large_block_with_room();

    (void)state;
    assert_int_equal(prairie_xallocx(bytes, 2 * LARGE, LARGE, MALLOCX_ZERO), 3 * LARGE);
    expect_grown_to_three(bytes);
    assert_int_equal(prairie_xallocx(bytes, LARGE, 0, 0), LARGE);
    assert_int_equal(prairie_xallocx(bytes, 2 * LARGE, SIZE_MAX, 0), 2 * LARGE);
    (void)prairie_purge();
    limits_set_hard(commit_taken_bytes());
    assert_int_equal(prairie_xallocx(bytes, 3 * LARGE, 0, 0), 2 * LARGE);
    limits_set_hard(0);
    hardened_set_door(bytes, DOOR_NEW);
    assert_int_equal(prairie_xallocx(bytes, 3 * LARGE, 0, 0), 2 * LARGE);
    hardened_check_door(bytes, DOOR_NEW);
    assert_int_equal(prairie_xallocx(bytes, 100, 0, 0), 2 * LARGE);
    assert_int_equal(prairie_xallocx(bytes, 0, 0, 0), 2 * LARGE);
    prairie_free(bytes);
    bytes = taken(97);
    memset(bytes, 0x11, 97);
    assert_int_equal(prairie_xallocx(bytes, 99, 1000, 0), 99);
    assert_int_equal(prairie_xallocx(bytes, 1000, 0, 0), 99);
    assert_int_equal(prairie_usable_size(bytes), 99);
    assert_true(all_bytes_are(bytes, 0x11, 97));
    prairie_free_sized(bytes, 99);
    prairie_check_all();
}

/* What it loses goes back to the kernel beyond the purge budget, as with a free. */
static void what_large_blocks_lose_is_given_back(void **state)
{
    enum { BLOCKS = 64 };
    char *blocks[BLOCKS];

    (void)state;
    harden();
    for (size_t i = 0; i < BLOCKS; i++) blocks[i] = taken(1 * MiB);
    for (size_t i = 0; i < BLOCKS; i++)
        assert_ptr_equal(prairie_realloc(blocks[i], LARGE), blocks[i]);
    assert_in_range(page_heap->free_pages[FREE_DIRTY], 0, pages_for(BLOCKS * MiB / 8));
    prairie_check_all();
}

/* Its guard cannot be opened: it stays as it was, and its contents move. */
static void a_guard_that_stays_is_no_harm_to_a_resize(void **state)
{
    const size_t sizes[] = { LARGE / 2, 2 * LARGE };

    (void)state;
    harden();
    prairie_free(taken(4 * LARGE));
    thread_flush();
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        char *bytes = taken(LARGE), *moved;

        memset(bytes, 0x11, LARGE);
        fake_fail_kind(FAKE_COMMIT, true);
        moved = prairie_realloc(bytes, sizes[i]);
        fake_fail_kind(FAKE_COMMIT, false);
        if (moved == NULL) {
            assert_int_equal(prairie_usable_size(bytes), LARGE);
            moved = bytes;
        }
        assert_true(all_bytes_are(moved, 0x11, min_size(sizes[i], LARGE)));
        prairie_free(moved);
        prairie_check_all();
    }
}

UNIT_MAIN(UNIT_TEST(every_size_is_exact_and_reads_as_zero),
          UNIT_TEST(behind_a_large_block_is_a_guard),
          UNIT_TEST(what_writes_before_a_block_is_told_by_its_free),
          UNIT_TEST(a_freed_block_is_empty_and_waits), UNIT_TEST(fresh_blocks_come_in_no_order),
          UNIT_TEST(freed_blocks_come_back_by_chance),
          UNIT_TEST(chance_draws_orders_and_leaves_groups_out), UNIT_TEST(few_wait_as_well),
          UNIT_TEST(a_large_block_is_resized_where_it_is),
          UNIT_TEST(what_a_block_loses_and_gains_is_not_touched),
          UNIT_TEST(fresh_pages_that_a_block_gains_are_not_touched),
          UNIT_TEST(rallocx_resizes_where_it_is), UNIT_TEST(xallocx_resizes_where_there_is_room),
          UNIT_TEST(what_large_blocks_lose_is_given_back),
          UNIT_TEST(a_guard_that_stays_is_no_harm_to_a_resize),
          UNIT_TEST(what_is_written_after_free_is_told_by_those_who_come_next),
          UNIT_TEST(each_byte_of_a_freed_block_is_looked_at), UNIT_TEST(misuse_is_told_at_the_call),
          UNIT_TEST(what_waits_is_of_no_arena), UNIT_TEST(frees_before_any_page_are_looked_at),
          UNIT_TEST(no_memory_for_the_map_hardens_nothing), UNIT_TEST(contents_go_along),
          UNIT_TEST(what_moved_away_is_gone), UNIT_TEST(what_moved_away_is_counted),
          UNIT_TEST(what_moved_away_is_not_wiped), UNIT_TEST(rallocx_moves_pages_too),
          UNIT_TEST(the_canary_is_no_part_of_the_secret),
          UNIT_TEST(nothing_passes_the_quarantine_by), UNIT_TEST(what_waits_for_ever_is_looked_at),
          UNIT_TEST(sizes_at_the_ends_of_tables_are_exact),
          UNIT_TEST(sizes_that_leave_no_room_for_a_mark_are_refused),
          UNIT_TEST(what_cannot_grow_stays_as_it_was), UNIT_TEST(what_cannot_move_is_copied))
