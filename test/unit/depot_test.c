/* depot_test.c - full magazines for empty ones: what a depot keeps, what it refuses, D1 to D3. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "depots.h"
#include "harms.h"

/* ---- capacities ---- */

static void magazines_are_bounded_in_blocks_and_bytes(void **state)
{
    (void)state;
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        unsigned blocks = magazine_capacity(class_index);
        assert_in_range(blocks, 2, MAGAZINE_BLOCKS_MAX);
        assert_true(blocks == 2 || blocks * class_bytes[class_index] <= MAGAZINE_BYTES_MAX);
        assert_true(magazine_bytes(blocks) <= META_RECORD_BYTES_MAX);
        if (class_index > 1) assert_true(blocks <= magazine_capacity(class_index - 1));
    }
}

/* ---- trading ---- */

static void an_empty_depot_has_nothing(void **state)
{
    void **mine;

    (void)state;
    start_arenas(1);
    mine = empty_magazine();
    assert_null(fetch(0, mine));
    assert_int_equal(depot_of(0)->empty.count, 0); /* and takes nothing */
    assert_int_equal(arenas[0]->trades, 0);
}

static void what_is_brought_can_be_fetched(void **state)
{
    void **full, **empty, **again, *copy[SLOTS_MAX];

    (void)state;
    start_arenas(1);
    full = full_magazine(0);
    memcpy(copy, full, magazine_bytes(capacity()));
    empty = bring(0, full);
    assert_non_null(empty);
    assert_ptr_not_equal(empty, full);
    assert_int_equal(depot_of(0)->full.count, 1);
    assert_null(empty[0]); /* M1 */
    again = fetch(0, empty);
    assert_ptr_equal(again, full);
    assert_null(again[0]); /* M1 */
    assert_memory_equal(again + 1, copy + 1, capacity() * sizeof(void *));
    assert_int_equal(depot_of(0)->full.count, 0);
    assert_int_equal(depot_of(0)->empty.count, 1);
    assert_ptr_equal(bring(0, again), empty); /* traded, not made anew */
    assert_int_equal(arenas[0]->trades, 3);
}

/* A rich depot gives its oldest full magazine for the new one. */
static void a_depot_is_bounded(void **state)
{
    void **oldest = NULL, **full;
    unsigned count = 0;

    (void)state;
    start_arenas(1);
    for (;;) {
        full = full_magazine(0);
        if (oldest == NULL) oldest = full;
        if (bring(0, full) == NULL) break;
        count++;
    }
    assert_int_equal(depot_of(0)->full.count, count);
    assert_in_range(count, 1, DEPOT_MAGAZINES_MAX);
    assert_ptr_equal(to_drain, oldest);
    drain_magazine(to_drain);
    check_arenas();
    assert_non_null(fetch(0, empty_magazine()));
    assert_non_null(bring(0, full_magazine(0)));
}

static void no_memory_for_an_empty_one_gives_a_full_one(void **state)
{
    void **full, **younger;

    (void)state;
    start_arenas(1);
    full = full_magazine(0);
    younger = full_magazine(0);
    use_up_records();
    assert_null(bring(0, full));
    assert_ptr_equal(to_drain, full); /* there was none but this */
    assert_int_equal(depot_of(0)->full.count, 0);
    fake_fail_all(false);
    assert_non_null(bring(0, full));
    end_rows();
    fake_fail_all(true);
    while (meta_take(magazine_bytes(capacity())) != NULL) {}
    assert_null(bring(0, younger));
    assert_ptr_equal(to_drain, full);
    assert_int_equal(depot_of(0)->full.count, 1);
}

static void a_closed_depot_takes_nothing_until_a_slab_opens(void **state)
{
    void **full, *slots[SLOTS_MAX];

    (void)state;
    start_arenas(2);
    full = full_magazine(0);
    RELAXED_STORE(depots_closed, true);
    assert_null(bring(0, full));
    assert_ptr_equal(to_drain, full);
    assert_int_equal(depot_of(0)->full.count, 0);
    fill_all(1, test_class() + 1, slots, 1); /* any arena, any class */
    assert_non_null(bring(0, full));
}

/* ---- swings ---- */

enum { MIXED = 40 };

/* Exchanges blocks between magazines so that in the first no block lies near the one before it. */
static void **scattered_magazine(void)
{
    void **magazine[MIXED];

    for (unsigned i = 0; i < MIXED; i++) magazine[i] = full_magazine(0);
    for (unsigned slot = 1; slot <= capacity(); slot++) {
        void **other = magazine[slot * 13 % MIXED], *block = magazine[0][slot];

        magazine[0][slot] = other[slot];
        other[slot] = block;
    }
    return magazine[0];
}

static void wide_swings_send_blocks_in_order_to_the_slabs(void **state)
{
    void **full;

    (void)state;
    start_arenas(1);
    swing(SWING_BYTES_MAX / 2);
    assert_non_null(bring(0, full_magazine(0)));
    swing(SWING_BYTES_MAX * 2);
    full = full_magazine(0);
    assert_null(bring(0, full));
    assert_ptr_equal(to_drain, full);
    assert_int_equal(depot_of(0)->full.count, 1);
    inside_swing_back(&arenas[0]->swing,
                      arenas[0]->swing.bytes); /* all that came is wanted again */
    swing(SWING_BYTES_MAX / 2);
    assert_non_null(bring(0, full));
}

static void a_swing_is_deep_before_it_ends(void **state)
{
    void **full;

    (void)state;
    start_arenas(1);
    inside_swing_out(&arenas[0]->swing, SWING_BYTES_MAX + 1);
    full = full_magazine(0);
    assert_null(bring(0, full));
}

static void takes_from_slabs_end_a_swing(void **state)
{
    size_t each;

    (void)state;
    start_arenas(1);
    each = inside_full_bytes(test_class());
    inside_swing_out(&arenas[0]->swing, 2 * each);
    assert_null(fetch(0, empty_magazine()));
    assert_int_equal(arenas[0]->swing.bytes, each);
    assert_null(fetch(0, empty_magazine()));
    assert_int_equal(arenas[0]->swing.bytes, 0);
    assert_int_equal(arenas[0]->swing.bytes_peak, 0);
}

/* Half of the steps that are looked at are short, up or down. */
static void order_is_told_by_the_steps(void **state)
{
    enum { COUNT = 64, STRIDE = 9, LOOKS = 7, BYTES = 32, NEAR = 16 * BYTES };
    static const struct {
        long step;
        bool near;
    } rows[] = { { NEAR, true }, { -NEAR, true }, { NEAR + 1, false }, { -NEAR - 1, false } };
    void *block[COUNT];

    (void)state;
    for (unsigned row = 0; row < ARRAY_COUNT(rows); row++) {
        for (unsigned short_steps = 0; short_steps <= LOOKS; short_steps++) {
            for (unsigned i = 0; i < COUNT; i++) block[i] = (void *)((uintptr_t)(i + 1) * MiB);
            for (unsigned look = 1; look <= short_steps; look++)
                block[look * STRIDE] = (char *)block[look * STRIDE - 1] + rows[row].step;
            assert_int_equal(inside_is_in_order(block, COUNT, BYTES),
                             rows[row].near && 2 * short_steps >= LOOKS);
        }
    }
    assert_true(inside_is_in_order(block, 1, BYTES));
    assert_false(inside_is_in_order(block, 2, BYTES));
}

/* They would cost as many visits to slabs as there are blocks. */
static void scattered_blocks_stay_in_the_depot(void **state)
{
    (void)state;
    start_arenas(1);
    swing(SWING_BYTES_MAX * 2);
    assert_non_null(bring(0, scattered_magazine()));
    assert_null(bring(0, full_magazine(0)));
}

/* ---- sparse slabs ---- */

/* Frees blocks until so many are out, of each slab all but one at most. */
static void thin_out(void **block, unsigned count, uint64_t out_wanted)
{
    const struct class_bin *bin = &arenas[0]->bin[test_class()];
    unsigned in_slab = slab_shape[test_class()].block_count;

    for (unsigned i = 1; i <= count; i++) {
        if (bin->slab_count * in_slab - bin->slab_free_blocks == out_wanted) return;
        if (block[i] == NULL || slab_of(block[i], test_class())->free_count + 1u == in_slab)
            continue;
        assert_int_equal(drain(0, test_class(), &block[i], 1), 0);
        block[i] = NULL;
    }
    fail();
}

/* So many slabs are open, and so many blocks out, with those that are brought: are these taken
 * in? */
static bool is_taken_in(unsigned slabs, uint64_t out)
{
    unsigned count = slabs * slab_shape[test_class()].block_count - capacity();
    void **full = full_magazine(0), **block = calloc(count + 1, sizeof *block), **given;

    fill_all(0, test_class(), block, count);
    assert_int_equal(arenas[0]->bin[test_class()].slab_count, slabs);
    thin_out(block, count, out);
    assert_int_equal(arenas[0]->bin[test_class()].slab_count, slabs);
    given = bring(0, full);
    if (given != NULL) {
        meta_give(given, magazine_bytes(capacity()));
        (void)fetch(0, empty_magazine());
    }
    for (unsigned i = 1; i <= count; i++)
        if (block[i] != NULL) assert_int_equal(drain(0, test_class(), &block[i], 1), 0);
    drain_magazine(full);
    (void)arenas_clear(CLEAR_ALL);
    assert_int_equal(arenas[0]->bin[test_class()].slab_count, 0);
    free(block);
    return given != NULL;
}

/* Five slabs, of whose blocks less than a quarter is out. */
static void slabs_are_sparse_from_a_bound_on(void **state)
{
    unsigned in_slab;

    (void)state;
    start_arenas(1);
    in_slab = slab_shape[test_class()].block_count;
    assert_int_equal(in_slab % 4, 0);
    assert_true(is_taken_in(8, 2 * in_slab));
    assert_false(is_taken_in(8, 2 * in_slab - 1));
    assert_false(is_taken_in(5, capacity() + 5));
    assert_true(is_taken_in(4, capacity() + 4));
}

/* Of the first arena, but for so many of the second. */
static void **magazine_with(unsigned others)
{
    void **mixed = full_magazine(0), *slots[2];

    for (unsigned i = 0; i < others; i++) {
        fill_all(1, test_class(), slots, 1);
        assert_int_equal(drain(0, test_class(), &mixed[capacity() - i], 1), 0);
        mixed[capacity() - i] = slots[1];
    }
    return mixed;
}

static void expect_blocks_of_the_second_arena(void *const *slots, unsigned count)
{
    for (unsigned i = 1; i <= count; i++)
        assert_int_equal(slab_of(slots[i], test_class())->arena, 1);
}

/* Few blocks are out, one in each of many slabs. */
static void make_sparse(void)
{
    enum { SLABS = 8 };
    unsigned in_slab = slab_shape[test_class()].block_count;
    void **block = calloc(SLABS * in_slab + 1, sizeof *block);

    fill_all(0, test_class(), block, SLABS * in_slab);
    for (unsigned i = 1; i <= SLABS * in_slab; i++)
        if (i % in_slab != 0) assert_int_equal(drain(0, test_class(), &block[i], 1), 0);
    free(block);
}

/* What lies in the depot longest goes back to the slabs. */
static void what_holds_sparse_slabs_open_goes_back(void **state)
{
    void **last;

    (void)state;
    start_arenas(1);
    last = full_magazine(0);
    meta_give(bring(0, full_magazine(0)), magazine_bytes(capacity()));
    make_sparse();
    assert_null(bring(0, last));
    assert_ptr_equal(to_drain, last);
    assert_int_equal(depot_of(0)->full.count, 0);
    assert_int_equal(depot_of(0)->empty.count, 1);
}

/* What is another arena's is in the opened magazine then, and in full ones, which have no gaps. */
static void expect_what_others_have_stays(unsigned others)
{
    enum { MIXED = 2 };
    void **last, *slots[SLOTS_MAX];

    start_arenas(2);
    for (unsigned i = 0; i < MIXED; i++)
        meta_give(bring(0, magazine_with(others)), magazine_bytes(capacity()));
    last = full_magazine(0);
    make_sparse();
    for (unsigned drained = 1; drained <= MIXED; drained++) {
        unsigned stay = drained * others, whole = stay / capacity();

        assert_null(bring(0, last));
        assert_int_equal(depot_of(0)->full.count, MIXED - drained + whole);
        assert_int_equal(depot_of(0)->opened_count, stay % capacity());
        assert_int_equal(depot_of(0)->opened == NULL, stay % capacity() == 0);
        assert_int_equal(depot_of(0)->empty.count, drained - whole - (depot_of(0)->opened != NULL));
        check_arenas();
    }
    for (unsigned got, rest = MIXED * others; rest > 0; rest -= got) {
        got = fetch_some(0, slots, capacity());
        assert_in_range(got, 1, rest);
        expect_blocks_of_the_second_arena(slots, got);
    }
    assert_int_equal(fetch_some(0, slots, 1), 0);
}

static void a_few_blocks_of_another_arena_stay(void **state)
{
    (void)state;
    expect_what_others_have_stays(capacity() / 3);
}

static void half_a_magazine_of_another_arena_stays(void **state)
{
    (void)state;
    expect_what_others_have_stays((capacity() + 1) / 2);
}

static void most_of_a_magazine_of_another_arena_stays(void **state)
{
    (void)state;
    expect_what_others_have_stays(capacity() - 1);
}

/* ---- small magazines ---- */

static void small_magazines_are_filled_from_an_opened_one(void **state)
{
    void *slots[SLOTS_MAX], *seen[SLOTS_MAX];
    unsigned got = 0, part = capacity() > 5 ? 5 : 2;
    void **full;

    (void)state;
    start_arenas(1);
    assert_int_equal(fetch_some(0, slots, part), 0);
    full = full_magazine(0);
    memcpy(seen, full, magazine_bytes(capacity()));
    (void)bring(0, full);
    while (got < capacity()) {
        unsigned more = fetch_some(0, slots, part);
        assert_int_equal(more, min_size(part, capacity() - got));
        /* The upper end first, in the order it had. */
        assert_memory_equal(slots + 1, seen + 1 + capacity() - got - more, more * sizeof(void *));
        got += more;
        assert_int_equal(depot_of(0)->opened_count, capacity() - got);
    }
    assert_null(depot_of(0)->opened);
    assert_int_equal(depot_of(0)->empty.count, 1);
    assert_int_equal(fetch_some(0, slots, part), 0);
}

/* ---- the walk ---- */

static void d1_a_full_one_too_many(void) { depot_of(0)->full.count++; }
static void d1_an_empty_one_too_few(void) { depot_of(0)->empty.count--; }
static void d1_a_full_one_lost(void) { depot_of(0)->full.first = depot_of(0)->full.first[0]; }
static void d2_a_block_of_another_class(void)
{
    void *slots[2];
    fill_all(0, test_class() + 1, slots, 1);
    depot_of(0)->full.first[1] = slots[1];
}
static void d2_a_block_of_a_manual_arena(void)
{
    void *slots[2];
    fill_all(arena_create()->index, test_class(), slots, 1);
    depot_of(0)->full.first[1] = slots[1];
}
static void d2_a_foreign_block(void) { depot_of(0)->full.first[2] = &arenas; }
static void d2_a_foreign_block_at_the_end(void) { depot_of(0)->full.first[capacity()] = &arenas; }
static void d3_an_opened_count_without_one(void) { depot_of(1)->opened_count = 1; }
static void d3_an_opened_one_without_a_count(void) { depot_of(0)->opened_count = 0; }
static void d3_a_foreign_block_opened(void) { depot_of(0)->opened[1] = &arenas; }
static void d3_a_foreign_block_opened_at_the_end(void)
{
    depot_of(0)->opened[depot_of(0)->opened_count] = &arenas;
}

static void broken_invariants_are_found(void **state)
{
    static const struct harm harms[] = {
        HARM(d1_a_full_one_too_many),
        HARM(d1_an_empty_one_too_few),
        HARM(d1_a_full_one_lost),
        HARM(d2_a_block_of_another_class),
        HARM(d2_a_block_of_a_manual_arena),
        HARM(d2_a_foreign_block),
        HARM(d3_an_opened_count_without_one),
        HARM(d3_an_opened_one_without_a_count),
        HARM(d3_a_foreign_block_opened),
        HARM(d2_a_foreign_block_at_the_end),
        HARM(d3_a_foreign_block_opened_at_the_end),
    };
    void *slots[SLOTS_MAX];

    (void)state;
    start_arenas(2);
    /* An opened one with blocks left, a full one, and an empty one. */
    assert_non_null(bring(0, full_magazine(0)));
    assert_int_equal(fetch_some(0, slots, 1), 1);
    assert_non_null(bring(0, full_magazine(0)));
    assert_non_null(bring(0, full_magazine(0)));
    assert_non_null(fetch(0, empty_magazine()));
    assert_int_equal(depot_of(0)->full.count, 1);
    assert_int_equal(depot_of(0)->empty.count, 1);
    expect_harms_found(harms, ARRAY_COUNT(harms), check_arenas);
}

static void trade_unlocked(void) { (void)depot_take_full(arenas[0], 1, NULL); }
static void bring_unlocked(void)
{
    bool drain;
    (void)depot_trade_full(arenas[0], 1, NULL, false, &drain);
}
static void some_unlocked(void) { (void)depot_take_some(arenas[0], 1, NULL, 1); }

static void calls_without_the_lock_abort(void **state)
{
    (void)state;
    start_arenas(1);
    expect_abort(trade_unlocked, "prairie: broken invariant: lock_is_mine(&arena->lock)");
    expect_abort(bring_unlocked, "prairie: broken invariant: lock_is_mine(&arena->lock)");
    expect_abort(some_unlocked, "prairie: broken invariant: lock_is_mine(&arena->lock)");
}

UNIT_MAIN(UNIT_TEST(magazines_are_bounded_in_blocks_and_bytes),
          UNIT_TEST(an_empty_depot_has_nothing), UNIT_TEST(what_is_brought_can_be_fetched),
          UNIT_TEST(a_depot_is_bounded), UNIT_TEST(no_memory_for_an_empty_one_gives_a_full_one),
          UNIT_TEST(a_closed_depot_takes_nothing_until_a_slab_opens),
          UNIT_TEST(wide_swings_send_blocks_in_order_to_the_slabs),
          UNIT_TEST(a_swing_is_deep_before_it_ends), UNIT_TEST(takes_from_slabs_end_a_swing),
          UNIT_TEST(scattered_blocks_stay_in_the_depot),
          UNIT_TEST(what_holds_sparse_slabs_open_goes_back),
          UNIT_TEST(a_few_blocks_of_another_arena_stay),
          UNIT_TEST(half_a_magazine_of_another_arena_stays),
          UNIT_TEST(most_of_a_magazine_of_another_arena_stays),
          UNIT_TEST(small_magazines_are_filled_from_an_opened_one),
          UNIT_TEST(slabs_are_sparse_from_a_bound_on), UNIT_TEST(order_is_told_by_the_steps),
          UNIT_TEST(broken_invariants_are_found), UNIT_TEST(calls_without_the_lock_abort))
