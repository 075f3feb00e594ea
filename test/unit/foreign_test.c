/* foreign_test.c - numbers of foreign extents: nobody else's, found from any address, by readers
 * without a lock. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "harms.h"

#include <pthread.h>

static void start_space(void)
{
    page_heaps_start();
    assert_true(space_start());
}

/* Nothing need be there, and nothing is: regions lie above. */
#define SOMEWHERE BY_WORD(TiB, 256 * MiB)
static char *place_in_space(uintptr_t address) { return (char *)address; }

static void check_numbers(void)
{
    lock_take(&space.lock);
    foreign_check();
    lock_give(&space.lock);
}

static uint32_t add_checked(char *base, size_t pages)
{
    uint32_t first;

    first = foreign_add(base, pages);
    check_numbers();
    return first;
}

static void remove_checked(uint32_t first)
{
    foreign_remove(first);
    check_numbers();
}

static void expect_numbers(char *base, size_t pages, uint32_t first)
{
    for (size_t i = 0; i < pages; i++) {
        assert_int_equal(page_at(base + i * page_bytes()), first + i);
        assert_int_equal(page_at(base + (i + 1) * page_bytes() - 1), first + i);
        assert_ptr_equal(page_address(first + (uint32_t)i), base + i * page_bytes());
        assert_int_equal(page_record(first + (uint32_t)i)->run_pages, 0);
    }
}

static void each_page_has_a_number(void **state)
{
    static const size_t lengths[] = { 1, 2, 29, 30, 31, 32, 254, 255, 3000, 1 };
    char *base = place_in_space(SOMEWHERE);
    uint32_t first[ARRAY_COUNT(lengths)];

    (void)state;
    start_space();
    assert_int_equal(page_at(base), 0);
    for (unsigned i = 0; i < ARRAY_COUNT(lengths); i++)
        first[i] = add_checked(base + i * 64 * MiB, lengths[i]);
    for (unsigned i = 0; i < ARRAY_COUNT(lengths); i++) {
        char *at = base + i * 64 * MiB;

        assert_int_not_equal(first[i], 0);
        expect_numbers(at, lengths[i], first[i]);
        assert_int_equal(page_at(at - 1), 0);
        assert_int_equal(page_at(at + lengths[i] * page_bytes()), 0);
        assert_true(foreign_overlaps(at, 1));
        assert_true(foreign_overlaps(at - MiB, 2 * MiB));
        assert_false(foreign_overlaps(at - MiB, MiB));
        assert_false(foreign_overlaps(at + lengths[i] * page_bytes(), MiB));
    }
    for (unsigned i = 0; i < ARRAY_COUNT(lengths); i++) remove_checked(first[i]);
    for (unsigned i = 0; i < ARRAY_COUNT(lengths); i++)
        assert_int_equal(page_at(base + i * 64 * MiB), 0);
}

/* Whoever reads while nothing changes takes no lock; in the middle of a change it does, at last. */
static void a_lock_is_taken_only_in_a_change(void **state)
{
    char *base = place_in_space(SOMEWHERE);
    uint32_t first;
    uint64_t taken;

    (void)state;
    start_space();
    first = add_checked(base, 3);
    taken = lock_numbers(&space.lock).taken;
    expect_numbers(base, 3, first);
    assert_int_equal(page_at(base - 1), 0);
    assert_int_equal(lock_numbers(&space.lock).taken, taken);
    inside_change_begins();
    assert_int_equal(page_at(base), first);
    assert_int_equal(lock_numbers(&space.lock).taken, taken + 1);
    inside_change_ends();
    remove_checked(first);
}

/* More pages than any array of them has room for at first. */
static void a_long_extent_has_numbers_to_its_end(void **state)
{
    char *base = place_in_space(SOMEWHERE);
    size_t pages = BY_WORD(2000000, 20000);
    uint32_t first;

    (void)state;
    start_space();
    first = add_checked(base, pages);
    assert_int_not_equal(first, 0);
    for (size_t i = 0; i < pages; i += pages / 100 - 1) {
        assert_int_equal(page_at(base + i * page_bytes()), first + i);
        assert_ptr_equal(page_address(first + (uint32_t)i), base + i * page_bytes());
    }
    assert_int_equal(page_at(base + (pages - 1) * page_bytes()), first + pages - 1);
    assert_int_equal(page_at(base + pages * page_bytes()), 0);
    remove_checked(first);
    assert_int_equal(page_at(base), 0);
}

/* Regions take their numbers from the other end, and must not come as far as those that were given
 * once. */
static void regions_and_foreign_extents_share_no_number(void **state)
{
    char *base = place_in_space(SOMEWHERE);
    uint32_t first;

    (void)state;
    fake_address_space(31 * MiB, 0);
    start_space();
    first = add_checked(base, 3000);
    assert_int_not_equal(first, 0);
    remove_checked(first);
    while (space_grow(40, 1, SIZE_MAX).count != 0) {}
    while (space_grow(1, 1, SIZE_MAX).count != 0) {}
    assert_int_equal(add_checked(base, 3000), first);
    for (uint32_t i = 0; i < space.region_count; i++) {
        const struct region *region = &space.region[i];
        uint32_t end = region->first_page + (uint32_t)(region->bytes >> space.page_shift);

        assert_true(end < first - 1);
        for (uint32_t page = region->first_page; page < end; page++)
            assert_int_equal(page_at(page_address(page)), page);
    }
    expect_numbers(base, 3000, first);
}

static void numbers_end_at_the_regions(void **state)
{
    uint32_t first, least = UINT32_MAX, count = 0;

    (void)state;
    fake_address_space(31 * MiB, 0);
    start_space();
    while ((first = add_checked(place_in_space(SOMEWHERE + count * MiB), 100)) != 0) {
        if (first < least) least = first;
        count++;
    }
    assert_true(count > 10);
    assert_true(least > space.next_number);
    while (space_grow(1, 1, SIZE_MAX).count != 0) {}
    assert_true(space.next_number < least);
}

static void numbers_are_used_again(void **state)
{
    uint32_t from = 0;

    (void)state;
    start_space();
    for (unsigned round = 0; round < 200; round++) {
        uint32_t first[40];

        for (unsigned i = 0; i < ARRAY_COUNT(first); i++) {
            first[i] =
                add_checked(place_in_space(SOMEWHERE + (round % 8 + i) * 16 * MiB), 1 + i * 50);
            assert_int_not_equal(first[i], 0);
        }
        if (round == 0) from = space.foreign_from;
        assert_int_equal(space.foreign_from, from);
        for (unsigned i = 0; i < ARRAY_COUNT(first); i++) remove_checked(first[i]);
    }
}

enum { MANY = 5000 };

/* Taken in changing order, at distances that leave some of them side by side. */
static void many_are_found(void **state)
{
    static uint32_t first[MANY];
    static char *base[MANY];
    unsigned looks = 0;

    (void)state;
    start_space();
    for (size_t i = 0; i < MANY; i++) {
        size_t at = i * 7919 % MANY; /* a prime that does not divide it */

        base[i] = place_in_space(SOMEWHERE + at * 4 * page_bytes());
        first[i] = foreign_add(base[i], 1 + at % 4);
        assert_int_not_equal(first[i], 0);
    }
    check_numbers();
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(page_at(base[i]), first[i]);
        assert_ptr_equal(page_address(first[i]), base[i]);
    }
    /* A search halves what is left. */
    for (uint32_t left = inside_places_used(); left != 0; left /= 2) looks++;
    assert_true(looks <= 13);
    for (size_t i = 0; i < MANY; i += 2) foreign_remove(first[i]);
    check_numbers();
    for (size_t i = 0; i < MANY; i++) assert_int_equal(page_at(base[i]), i % 2 != 0 ? first[i] : 0);
}

/* ---- beyond the class map ---- */

static void memory_beyond_the_class_map(void **state)
{
    char *over_region, *beside;
    uint32_t first;
    uintptr_t span;

    (void)state;
    start_space();
    assert_true(space_grow(1, 1, SIZE_MAX).count > 0);
    span = (class_map.mask + 1) << CLASS_MAP_SHIFT;
    if (span == 0) skip(); /* nothing is beyond it */
    over_region = place_in_space(span + (uintptr_t)space.region[0].base);
    beside = place_in_space(span + (uintptr_t)space.region[0].base - 2 * MiB);
    /* There its blocks would be taken for blocks of slabs. */
    assert_int_equal(add_checked(over_region, 16), 0);
    first = add_checked(beside, 16);
    assert_int_not_equal(first, 0);
    expect_numbers(beside, 16, first);
    assert_int_equal(class_map_at(beside), 0);
    assert_int_equal(page_at(over_region), 0);
    assert_int_equal(page_at(over_region), 0);
}

/* ---- readers ---- */

static uint32_t stop;

/* Of two pieces that take turns in one place, the middle of the longer one is nowhere while it is
 * the shorter one's turn: no reader ever sees the base of one with the length of the other. */
static char *const short_piece = (char *)SOMEWHERE;
static char *const long_piece = (char *)(SOMEWHERE + SOMEWHERE / 2);

static void *take_turns(void *unused)
{
    for (unsigned turn = 0; turn < 4000; turn++) {
        bool is_long = turn % 2 != 0;
        uint32_t first;

        first = foreign_add(is_long ? long_piece : short_piece, is_long ? 200 : 3);
        foreign_remove(first);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    return unused;
}

static void readers_see_old_or_new(void **state)
{
    pthread_t writer;
    char *stays = place_in_space(SOMEWHERE + SOMEWHERE / 4);
    uint32_t first;

    (void)state;
    start_space();
    first = add_checked(stays, 5);
    assert_int_equal(pthread_create(&writer, NULL, take_turns, NULL), 0);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        assert_int_equal(page_at(short_piece + 100 * page_bytes()), 0);
        assert_int_equal(page_at(long_piece + 250 * page_bytes()), 0);
        assert_int_equal(page_at(stays + 2 * page_bytes()), first + 2);
        assert_int_equal(page_at(stays + 5 * page_bytes()), 0);
    }
    pthread_join(writer, NULL);
}

/* A change that does not end, because its thread does not run, is waited for at the lock. */
static void a_long_change_is_waited_for(void **state)
{
    char *base = place_in_space(SOMEWHERE);
    uint32_t first;

    (void)state;
    start_space();
    first = add_checked(base, 5);
    inside_change_begins();
    assert_int_equal(page_at(base + 4 * page_bytes()), first + 4);
    inside_change_ends();
    assert_int_equal(page_at(base + 4 * page_bytes()), first + 4);
}

static void the_version_starts_over(void **state)
{
    char *base = place_in_space(SOMEWHERE);
    uint32_t first, second;

    (void)state;
    start_space();
    first = add_checked(base, 5);
    inside_set_last_version();
    second = add_checked(base + MiB, 5);
    assert_int_equal(inside_version(),
                     2); /* even: nothing changes; and not as if nothing were there */
    assert_int_equal(page_at(base + MiB), second);
    remove_checked(second);
    assert_int_equal(inside_version(), 4);
    assert_int_equal(page_at(base), first);
}

/* ---- refusals ---- */

static void a_refused_call_adds_nothing(void **state)
{
    char *base = place_in_space(SOMEWHERE);

    (void)state;
    start_space();
    assert_int_equal(add_checked(base, SIZE_MAX >> space.page_shift), 0);
    for (unsigned round = 1; round <= 5; round++) {
        uint32_t first;

        fake_fail_nth(1);
        first = add_checked(base, 3000);
        fake_fail_nth(0);
        if (first == 0) assert_int_equal(page_at(base), 0);
        if (first == 0) first = add_checked(base, 3000);
        expect_numbers(base, 3000, first);
        remove_checked(first);
        inside_forget_unused_places(3000);
    }
    assert_true(fake_failures() >= 2);
}

/* ---- the walk ---- */

enum { EXTENTS = 3, EXTENT_PAGES = 100 };

/* P1: numbers of their records, in order. */
static uint32_t *order(void) { return *(uint32_t *const *)foreign_order_address(); }
static struct foreign_extent *in_order(unsigned index) { return meta_record(order()[index]); }

static void p1_out_of_order(void)
{
    uint32_t first = order()[0];

    order()[0] = order()[1];
    order()[1] = first;
}
static void p1_two_overlap(void) { in_order(0)->pages = EXTENT_PAGES * EXTENT_PAGES; }
static void p1_not_in_use(void) { in_order(0)->pages = 0; }
static void p1_a_last_page_beyond_the_end(void) { in_order(0)->last = in_order(0)->pages; }
static void p1_more_pages_than_numbers(void)
{
    in_order(0)->last = in_order(0)->numbers - 2;
    in_order(0)->pages = in_order(0)->numbers;
}
static void p2_numbers_that_were_never_given(void)
{
    in_order(0)->before = space.foreign_from - FOREIGN_UNIT;
}
static void p2_numbers_of_another(void) { in_order(0)->before = in_order(1)->before; }
static void p3_in_a_region(void) { in_order(EXTENTS - 1)->base = space.region[0].base; }
static void o1_bytes_of_a_vast_block_that_is_none(void) { commit.vast_bytes += page_bytes(); }
static void o1_a_vast_block_too_many(void) { commit.vast_count++; }

static void broken_invariants_are_found(void **state)
{
    static const struct harm harms[] = {
        HARM(p1_out_of_order),
        HARM(p1_two_overlap),
        HARM(p1_not_in_use),
        HARM(p1_a_last_page_beyond_the_end),
        HARM(p1_more_pages_than_numbers),
        HARM(p2_numbers_that_were_never_given),
        HARM(p2_numbers_of_another),
        HARM(p3_in_a_region),
        HARM(o1_bytes_of_a_vast_block_that_is_none),
        HARM(o1_a_vast_block_too_many),
    };

    (void)state;
    start_space();
    for (unsigned i = 0; i < EXTENTS; i++)
        assert_int_not_equal(add_checked(place_in_space(SOMEWHERE + i * 4 * MiB), EXTENT_PAGES), 0);
    expect_harms_found(harms, ARRAY_COUNT(harms), check_numbers);
}

UNIT_MAIN(UNIT_TEST(each_page_has_a_number), UNIT_TEST(a_lock_is_taken_only_in_a_change),
          UNIT_TEST(a_long_extent_has_numbers_to_its_end),
          UNIT_TEST(regions_and_foreign_extents_share_no_number),
          UNIT_TEST(numbers_end_at_the_regions), UNIT_TEST(numbers_are_used_again),
          UNIT_TEST(many_are_found), UNIT_TEST(memory_beyond_the_class_map),
          UNIT_TEST(readers_see_old_or_new), UNIT_TEST(a_long_change_is_waited_for),
          UNIT_TEST(the_version_starts_over), UNIT_TEST(a_refused_call_adds_nothing),
          UNIT_TEST(broken_invariants_are_found))
