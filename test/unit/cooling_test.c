/* cooling_test.c - magazines that another core filled: how long they wait, how many, and what goes
 * before them. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "depots.h"

enum { COOL_MS = 1 }; /* of the test's clock, long enough */

/* A full magazine of a thread that runs on another core. */
static void **bring_from_elsewhere(void **full) { return bring_as(0, full, true); }

static void what_another_core_filled_waits(void **state)
{
    void **full, **empty, *slots[SLOTS_MAX];

    (void)state;
    start_arenas(1);
    full = full_magazine(0);
    empty = bring_from_elsewhere(full);
    assert_non_null(empty);
    assert_int_equal(depot_of(0)->full.count, 1);
    assert_null(fetch(0, empty));
    assert_int_equal(fetch_some(0, slots, 1), 0);
    fake_clock_ms(COOL_MS);
    assert_ptr_equal(fetch(0, empty), full);
    assert_non_null(bring_from_elsewhere(full));
    fake_clock_ms(COOL_MS);
    assert_int_equal(fetch_some(0, slots, 1), 1);
}

/* What its own threads bring is ready, and does not make ready what came before. */
static void only_what_comes_from_elsewhere_waits(void **state)
{
    void **own, **younger, **other, **last;

    (void)state;
    start_arenas(1);
    own = full_magazine(0);
    younger = full_magazine(0);
    other = full_magazine(0);
    last = full_magazine(0);
    assert_non_null(bring(0, own));
    assert_non_null(bring_from_elsewhere(other));
    assert_non_null(bring(0, younger));
    assert_non_null(bring_from_elsewhere(last));
    assert_ptr_equal(depot_of(0)->full_last, last);
    assert_ptr_equal(fetch(0, empty_magazine()), younger);
    assert_ptr_equal(fetch(0, empty_magazine()), own);
    assert_null(fetch(0, empty_magazine()));
    fake_clock_ms(COOL_MS);
    assert_ptr_equal(fetch(0, empty_magazine()), other);
    assert_ptr_equal(fetch(0, empty_magazine()), last);
    assert_int_equal(depot_of(0)->full.count, 0);
    assert_non_null(bring_from_elsewhere(other));
    assert_non_null(bring(0, own));
    assert_ptr_equal(fetch(0, empty_magazine()), own);
    assert_null(fetch(0, empty_magazine()));
}

/* Beside those that cool a depot keeps what it always does. Once they have cooled, they are too
 * many, and one more leaves each time. */
static void those_that_cool_take_no_room(void **state)
{
    unsigned most;
    void **full;

    (void)state;
    start_arenas(1);
    most = inside_full_max(test_class());
    for (unsigned i = 0; i < most; i++) assert_non_null(bring(0, full_magazine(0)));
    assert_int_equal(depot_of(0)->full.count, most);
    for (unsigned i = 1; i <= 3; i++) {
        assert_non_null(bring_from_elsewhere(full_magazine(0)));
        assert_int_equal(depot_of(0)->full.count, most + i);
    }
    full = full_magazine(0);
    assert_null(bring(0, full));
    assert_ptr_equal(to_drain, full);
    drain_magazine(to_drain);
    fake_clock_ms(COOL_MS);
    for (unsigned i = 1; i <= 3; i++) {
        assert_null(bring(0, full_magazine(0)));
        drain_magazine(to_drain);
        assert_int_equal(depot_of(0)->full.count, most + 3 - i);
    }
}

static void only_so_many_cool(void **state)
{
    unsigned kib, many;

    (void)state;
    start_arenas(1);
    block_bytes = 128;
    assert_non_null(bring_from_elsewhere(full_magazine(0)));
    assert_null(fetch(0, empty_magazine()));
    fake_clock_ms(COOL_MS);
    block_bytes = 32;
    kib = (unsigned)(round_up(inside_full_bytes(test_class()), KiB) / KiB);
    many = COOLING_BYTES_MAX / KiB / kib;
    for (unsigned i = 0; i < many; i++) assert_non_null(bring_from_elsewhere(full_magazine(0)));
    assert_null(fetch(0, empty_magazine()));
    assert_non_null(bring_from_elsewhere(full_magazine(0))); /* in place of the oldest */
    assert_non_null(fetch(0, empty_magazine()));
    assert_null(fetch(0, empty_magazine()));
    block_bytes = 64; /* the room is for all classes */
    assert_non_null(bring_from_elsewhere(full_magazine(0)));
    assert_non_null(fetch(0, empty_magazine()));
}

/* Then one is in the way, however warm it is. */
static void without_memory_what_cools_leaves(void **state)
{
    void **full, **younger;

    (void)state;
    start_arenas(1);
    full = full_magazine(0);
    younger = full_magazine(0);
    assert_non_null(bring_from_elsewhere(full));
    use_up_records();
    assert_null(bring_from_elsewhere(younger));
    assert_ptr_equal(to_drain, full);
    assert_int_equal(depot_of(0)->full.count, 1);
    depots_end_cooling();
    assert_ptr_equal(fetch(0, full), younger);
}

/* What goes on into the slabs is the oldest of those that have cooled, of a wide swing too. */
static void wide_swings_wait_until_it_has_cooled(void **state)
{
    void **first, **second;

    (void)state;
    start_arenas(1);
    first = full_magazine(0);
    second = full_magazine(0);
    swing(SWING_BYTES_MAX + 1);
    assert_true(arenas[0]->swing.is_deep);
    assert_non_null(bring_from_elsewhere(first));
    assert_non_null(bring_from_elsewhere(second));
    fake_clock_ms(COOL_MS);
    assert_null(bring_from_elsewhere(full_magazine(0)));
    assert_ptr_equal(to_drain, first);
}

/* A look takes what has cooled and nobody wanted. */
static void a_look_leaves_what_cools(void **state)
{
    (void)state;
    start_arenas(1);
    for (unsigned i = 0; i < 4; i++) assert_non_null(bring_from_elsewhere(full_magazine(0)));
    (void)arenas_clear(CLEAR_UNNEEDED);
    (void)arenas_clear(CLEAR_UNNEEDED);
    assert_int_equal(depot_of(0)->full.count, 4);
    fake_clock_ms(COOL_MS);
    (void)arenas_clear(CLEAR_UNNEEDED);
    assert_int_equal(depot_of(0)->full.count, 2);
    assert_non_null(bring_from_elsewhere(full_magazine(0)));
    (void)arenas_clear(CLEAR_ALL);
    assert_int_equal(depot_of(0)->full.count, 0);
    check_arenas();
}

/* Steps that are over count no more, also when the clock comes round. */
static void what_came_is_forgotten_by_steps(void **state)
{
    const uint16_t starts[] = { 0, 7, UINT16_MAX - 1, UINT16_MAX };

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(starts); i++) {
        uint16_t now = starts[i];
        struct cooling cooling = { .step = (uint16_t)(now - 9) };

        assert_int_equal(cooling_advance(&cooling, now), 0);
        assert_false(cooling_was_any(&cooling));
        for (unsigned step = 0; step < 2 * COOLING_STEPS; step++, now++) {
            unsigned sum = cooling_advance(&cooling, now), steps = COOLING_STEPS - 1;

            if (step < steps) steps = step;
            assert_int_equal(sum, 2 * steps);
            cooling_add(&cooling, 2);
            assert_int_equal(cooling_advance(&cooling, now), 2 * steps + 2);
        }
        now = (uint16_t)(now + COOLING_STEPS - 2);
        assert_int_equal(cooling_advance(&cooling, now), 2);
        assert_true(cooling_was_any(&cooling));
        assert_int_equal(cooling_advance(&cooling, (uint16_t)(now - 1)), 2); /* another core's */
        assert_int_equal(cooling_advance(&cooling, now), 2);
        assert_int_equal(cooling_advance(&cooling, (uint16_t)(now + 1)), 0);
        assert_false(cooling_was_any(&cooling));
    }
}

UNIT_MAIN(UNIT_TEST(what_another_core_filled_waits),
          UNIT_TEST(only_what_comes_from_elsewhere_waits), UNIT_TEST(those_that_cool_take_no_room),
          UNIT_TEST(only_so_many_cool), UNIT_TEST(without_memory_what_cools_leaves),
          UNIT_TEST(wide_swings_wait_until_it_has_cooled), UNIT_TEST(a_look_leaves_what_cools),
          UNIT_TEST(what_came_is_forgotten_by_steps))
