/* space_test.c - address space: what is reserved, how it opens, what a refusal leaves. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

#include <sys/mman.h>

static void start_space(void)
{
    page_heaps_start();
    assert_true(space_start());
}

static size_t room_in_pages(const struct region *region)
{
    return region->bytes >> space.page_shift;
}

/* Every number has an address, every address its number, and what lies around has none. */
static void check_numbers(void)
{
    uint32_t expected_first = 1;
    size_t open = 0;

    for (uint32_t i = 0; i < space.region_count; i++) {
        const struct region *region = &space.region[i];
        size_t open_bytes = (size_t)region->open_pages << space.page_shift;

        assert_int_equal(region->first_page, expected_first);
        assert_true(is_aligned((uintptr_t)region->base, page_bytes()));
        assert_true(region->open_pages <= room_in_pages(region));
        for (uint32_t at = 0; at < region->open_pages; at++) {
            char *address = page_address(region->first_page + at);
            assert_ptr_equal(address, region->base + ((size_t)at << space.page_shift));
            assert_int_equal(page_at(address), region->first_page + at);
            assert_int_equal(page_at(address + page_bytes() - 1), region->first_page + at);
        }
        if (open_bytes > 0) assert_true(fake_is_committed(region->base, open_bytes));
        open += open_bytes;
        expected_first += (uint32_t)room_in_pages(region) + 1;
        assert_true(expected_first <= space.page_count_max + 1);
    }
    assert_int_equal(open, space.open_bytes);
    assert_int_equal(page_at(NULL), 0);
    assert_int_equal(page_at(&expected_first), 0);
    assert_int_equal(page_at(page_map), 0);
}

/* The map may be asked for the page before the first and the one after the last. */
static void check_map_is_open(struct page_span span)
{
    assert_true(fake_is_committed(
        (void *)round_down((uintptr_t)page_record(span.first - 1), page_bytes()), page_bytes()));
    for (uint32_t page = span.first - 1; page <= span.first + span.count; page++)
        assert_int_equal(page_record(page)->state, PAGE_INSIDE);
}

static void starting_reserves_and_commits_nothing(void **state)
{
    (void)state;
    needs_addresses(2 * REGION_BYTES_FIRST);
    start_space();
    assert_int_equal(space.region_count, 1);
    assert_int_equal(space.region[0].open_pages, 0);
    assert_int_equal(space.region[0].bytes, REGION_BYTES_FIRST);
    assert_int_equal(space.reserved_bytes + class_map_reserved_bytes(), fake_reserved_bytes());
    assert_int_equal(fake_committed_bytes(), 0);
    assert_true(fake_calls(FAKE_RESERVE) + fake_calls(FAKE_RESERVE_READABLE) <= 2);
    assert_int_equal(page_at(space.region[0].base), 0); /* it is not open */
    assert_int_equal(page_at(space.region[0].base - 1), 0);
    assert_int_equal(page_at(space.region[0].base + space.region[0].bytes), 0);
}

/* The map ends where the first region begins, and its last record is the last number's. */
static void every_record_of_the_map_has_a_number(void **state)
{
    (void)state;
    start_space();
    assert_ptr_equal((char *)(page_record(space.number_max) + 1), space.region[0].base);
}

static void the_space_opens_as_a_prefix(void **state)
{
    static const size_t wishes[] = { 1, 1, 7, 16, 100, 3, 300, 1 };
    uint32_t next = 1;

    (void)state;
    start_space();
    for (unsigned i = 0; i < ARRAY_COUNT(wishes); i++) {
        struct page_span span = space_grow(wishes[i], 1, SIZE_MAX);
        assert_true(span.count >= wishes[i]);
        assert_int_equal(span.first, next);
        assert_true(
            all_bytes_are(page_address(span.first), 0, (size_t)span.count << space.page_shift));
        memset(page_address(span.first), 1, (size_t)span.count << space.page_shift);
        check_map_is_open(span);
        check_numbers();
        next += span.count;
    }
    assert_true(space.open_bytes >= OPEN_BYTES_MIN);
}

static size_t page_size_to_try;

static void grow_on_larger_pages(void)
{
    fake_page_bytes(page_size_to_try);
    start_space();
    assert_int_equal(page_bytes(), page_size_to_try);
    for (unsigned i = 1; i < 20; i++) {
        struct page_span span = space_grow(i, 1, SIZE_MAX);
        assert_true(span.count >= i);
        check_map_is_open(span);
        class_map_set(page_address(span.first), (size_t)span.count << space.page_shift, 7);
    }
    check_numbers();
}

static void pages_may_be_larger(void **state)
{
    (void)state;
    for (page_size_to_try = 4 * KiB; page_size_to_try <= 64 * KiB; page_size_to_try *= 4)
        expect_survival(grow_on_larger_pages);
}

/* ---- more than one region ---- */

static void fill_the_address_space(void)
{
    struct space before;

    while (space_grow(1 + random_below(40), 1, SIZE_MAX).count != 0) {}
    while (space_grow(1, 1, SIZE_MAX).count != 0) {}
    check_numbers();
    before = space;
    assert_int_equal(space_grow(1, 1, SIZE_MAX).count, 0);
    before.lock = space.lock; /* it counts who took it */
    assert_memory_equal(&before, &space, sizeof space);
}

static void a_full_region_is_followed_by_another(void **state)
{
    (void)state;
    fake_address_space(24 * MiB, 1 * MiB);
    start_space();
    fill_the_address_space();
    assert_true(space.region_count > 1);
    assert_true(os_address_space_used() <= 24 * MiB);
    assert_true(space.open_bytes >= 4 * MiB);
    for (uint32_t i = 0; i < space.region_count; i++)
        assert_int_equal(space.region[i].open_pages, room_in_pages(&space.region[i]));
}

/* A wish that the newest region cannot fill leaves its room to smaller wishes. */
static void small_wishes_use_what_large_ones_left(void **state)
{
    struct page_span large, small;
    uint32_t next;

    (void)state;
    fake_address_space(24 * MiB, 0);
    start_space();
    assert_true(space_grow(1, 1, SIZE_MAX).count > 0);
    large = space_grow(room_in_pages(&space.region[0]) + 1, 1, SIZE_MAX);
    assert_int_equal(space.region_count, 2);
    assert_int_equal(large.first, space.region[1].first_page);
    while (inside_room_of(&space.region[1]) > 0) (void)space_grow(1, 1, SIZE_MAX);
    next = space.region[0].first_page + space.region[0].open_pages;
    assert_true(inside_room_of(&space.region[0]) > 0);
    small = space_grow(1, 1, SIZE_MAX);
    assert_int_equal(small.first, next);
    assert_int_equal(space.region_count, 2);
    check_numbers();
}

static void a_wish_larger_than_regions_gets_its_own(void **state)
{
    size_t pages;
    struct page_span span;

    (void)state;
    fake_address_space(24 * MiB, 0);
    start_space();
    pages = room_in_pages(&space.region[0]) + 5;
    span = space_grow(pages, 1, SIZE_MAX);
    assert_true(span.count >= pages);
    assert_int_equal(space.region_count, 2);
    check_numbers();
}

static void regions_run_out(void **state)
{
    (void)state;
    fake_address_space(31 * MiB, 0);
    start_space();
    fake_reserve_bytes_max(64 * KiB);
    fill_the_address_space();
    assert_true(space.region_count > 10);
}

/* While there is little address space regions are short, and they stay. */
static void crumbs_leave_regions_for_later(void **state)
{
    size_t pages;

    (void)state;
    fake_address_space(31 * MiB, 0);
    start_space();
    fake_reserve_bytes_max(64 * KiB);
    fill_the_address_space();
    assert_int_equal(space.region_count, REGION_COUNT_MAX / 2);
    fake_reserve_bytes_max(SIZE_MAX);
    pages = room_in_pages(&space.region[0]);
    assert_true(space_grow(pages, 1, SIZE_MAX).count >= pages);
    assert_int_equal(space.region_count, REGION_COUNT_MAX / 2 + 1);
    check_numbers();
}

/* Whoever looks at every region ends at the last one, also where there is room for no more. */
static void the_last_region_is_the_end(void **state)
{
    struct os_range elsewhere;

    (void)state;
    fake_address_space(31 * MiB, 0);
    start_space();
    fake_reserve_bytes_max(space.region[0].bytes / REGION_CRUMB_SHARE);
    while (space_grow(1, 1, SIZE_MAX).count != 0) {}
    assert_int_equal(space.region_count, REGION_COUNT_MAX);
    elsewhere = (struct os_range){ (char *)page_bytes(), page_bytes() };
    for (unsigned i = 0; i < REGION_COUNT_MAX; i++)
        assert_true(foreign_overlaps(space.region[i].base, page_bytes()));
    assert_false(foreign_overlaps(elsewhere.base, elsewhere.bytes));
    (void)regions_share_slots(elsewhere);
}

/* Each page of a region has one, and so has the place behind the last one. */
static void a_region_may_take_all_numbers_that_are_left(void **state)
{
    (void)state;
    start_space();
    space.foreign_from = space.next_number + 101;
    assert_true(space_has_numbers(99 * page_bytes()));
    assert_true(space_has_numbers(100 * page_bytes()));
    assert_false(space_has_numbers(101 * page_bytes()));
}

/* Page by page, also where the records that are wanted end with the part of the map that is
 * open. */
static void the_map_opens_when_its_open_part_is_used_up(void **state)
{
    size_t pages;

    (void)state;
    start_space();
    pages = min_size(3 * META_OPEN_BYTES / sizeof(struct page), room_in_pages(&space.region[0]));
    for (uint32_t page = 1; page <= pages; page++) {
        struct page_span span = space_grow(1, 1, page_bytes());

        assert_int_equal(span.first, page);
        assert_int_equal(span.count, 1);
    }
    check_numbers();
}

/* Its record is written before it is counted. */
static void a_region_that_is_not_counted_is_none(void **state)
{
    char *base = (char *)(uintptr_t)BY_WORD(0x100000000000, 0x30000000);

    (void)state;
    start_space();
    space.region[space.region_count] = (struct region){ base, MiB, 1000, 0 };
    assert_false(foreign_overlaps(base, page_bytes()));
    space.region_count++;
    assert_true(foreign_overlaps(base, page_bytes()));
}

/* Regions of odd sizes are still whole pages. */
static void scarce_address_space_gives_whole_pages(void **state)
{
    (void)state;
    fake_page_bytes(64 * KiB);
    fake_address_space(31 * MiB, 0);
    start_space();
    space.region_bytes_next = 3 * MiB;
    fake_reserve_bytes_max(100 * KiB);
    fill_the_address_space();
    for (uint32_t i = 0; i < space.region_count; i++)
        assert_true(is_aligned(space.region[i].bytes, page_bytes()));
}

/* ---- refusals ---- */

static void absurd_wishes_are_refused(void **state)
{
    struct space before;

    (void)state;
    start_space();
    before = space;
    assert_int_equal(space_grow((size_t)space.page_count_max + 1, 1, SIZE_MAX).count, 0);
    assert_int_equal(space_grow(SIZE_MAX, 1, SIZE_MAX).count, 0);
    assert_int_equal(space_grow(SIZE_MAX >> space.page_shift, 1, SIZE_MAX).count, 0);
    before.lock = space.lock; /* it counts who took it */
    assert_memory_equal(&before, &space, sizeof space);
    assert_int_equal(fake_committed_bytes(), 0);
}

/* Address space may have been added, which the next call uses; nothing was opened. */
static void check_nothing_opened(const struct space *before)
{
    assert_int_equal(space.open_bytes, before->open_bytes);
    assert_true(space.region_count <= before->region_count + 1);
    for (uint32_t i = 0; i < space.region_count; i++)
        assert_int_equal(space.region[i].open_pages, before->region[i].open_pages);
}

static void a_failure_at_any_step_opens_nothing(void **state)
{
    unsigned refused = 0;

    (void)state;
    start_space();
    for (unsigned budget_pages = 0; budget_pages < BY_WORD(200, 60);
         budget_pages += BY_WORD(1, 2)) {
        struct space before = space;
        struct page_span span;

        fake_commit_bytes_max(fake_committed_bytes() + budget_pages * page_bytes());
        span = space_grow(40, 1, SIZE_MAX);
        if (span.count == 0) {
            refused++;
            check_nothing_opened(&before);
        }
        fake_commit_bytes_max(SIZE_MAX);
        assert_true(space_grow(40, 1, SIZE_MAX).count >= 40);
    }
    check_numbers();
    assert_true(refused > 10);
}

static void the_nth_failure_is_either_hidden_or_clean(void **state)
{
    uint64_t failures;

    (void)state;
    start_space();
    for (uint64_t n = 1; n < 10; n++) {
        struct space before = space;
        failures = fake_failures();
        fake_fail_nth(n);
        if (space_grow(300, 1, SIZE_MAX).count == 0) check_nothing_opened(&before);
        if (n == 1) assert_int_equal(fake_failures(), failures + 1);
        fake_fail_nth(0);
        assert_true(space_grow(1, 1, SIZE_MAX).count > 0);
    }
    check_numbers();
}

static void a_large_step_that_fails_is_tried_smaller(void **state)
{
    (void)state;
    start_space();
    assert_true(space_grow(1, 1, SIZE_MAX).count > 0);
    fake_commit_bytes_max(fake_committed_bytes() + page_bytes());
    assert_int_equal(space_grow(1, 1, SIZE_MAX).count, 1);
    assert_int_equal(space_grow(1, 1, SIZE_MAX).count, 0);
}

static void starting_can_be_tried_again(void **state)
{
    (void)state;
    page_heaps_start();
    fake_fail_all(true);
    assert_false(space_start());
    assert_false(space_start());
    assert_int_equal(fake_reserved_bytes(), 0);
    fake_fail_all(false);
    assert_true(space_start());
    assert_true(space_grow(5, 1, SIZE_MAX).count >= 5);
    check_numbers();
}

static size_t size_to_try;

static void start_with_small_reservations(void)
{
    fake_reserve_bytes_max(size_to_try);
    page_heaps_start();
    if (!space_start()) _exit(size_to_try < inside_least_reservation() ? 0 : 1);
    assert_true(space.region[0].bytes <= size_to_try);
    assert_true(space_grow(10, 1, SIZE_MAX).count >= 10);
    check_numbers();
}

/* Kernels that give less than we ask for: strict accounting, 39-bit addresses, limits of
 * containers. */
static void smaller_reservations_will_do(void **state)
{
    (void)state;
    for (size_to_try = MiB; size_to_try <= BY_WORD(4 * TiB, GiB); size_to_try *= 2)
        expect_survival(start_with_small_reservations);
}

static void start_under_a_limit(void)
{
    bool must = size_to_try >= 8 * MiB;

    fake_address_space(size_to_try, 0);
    page_heaps_start();
    if (!space_start()) _exit(must ? 1 : 0);
    assert_true(fake_reserved_bytes() <= size_to_try);
    if (space_grow(10, 1, SIZE_MAX).count < 10) _exit(must ? 1 : 0);
    check_numbers();
}

static void any_limit_will_do(void **state)
{
    (void)state;
    needs_addresses(2 * REGION_BYTES_FIRST);
    for (size_to_try = 64 * KiB; size_to_try <= BY_WORD(16 * TiB, 2 * GiB);
         size_to_try += size_to_try / 2)
        expect_survival(start_under_a_limit);
    for (size_to_try = 8 * MiB; size_to_try <= 64 * MiB; size_to_try += 654321)
        expect_survival(start_under_a_limit);
}

static size_t *reserved_bytes; /* written by children, too */

static void start_and_tell(void)
{
    fake_address_space(size_to_try, 0);
    page_heaps_start();
    assert_true(space_start());
    *reserved_bytes = space.reserved_bytes;
}

/* Up to a quarter of a limit may be reserved; where it would be more, what is reserved goes by the
 * limit. */
static void a_limit_four_times_as_wide_is_none(void **state)
{
    size_t widest;

    (void)state;
    if (BY_WORD(0, 1)) skip();
    needs_addresses(2 * REGION_BYTES_FIRST);
    reserved_bytes = mmap(NULL, sizeof *reserved_bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(reserved_bytes != MAP_FAILED);
    size_to_try = SIZE_MAX;
    expect_survival(start_and_tell);
    widest = *reserved_bytes;
    size_to_try = widest * 4 + widest / 16;
    expect_survival(start_and_tell);
    assert_int_equal(*reserved_bytes, widest);
    size_to_try = widest * 4 - widest / 16;
    expect_survival(start_and_tell);
    assert_true(*reserved_bytes < widest);
}

/* The kernel cannot enforce a limit inside a reservation that was made before, so we keep to it. */
static void a_limit_that_comes_late_is_kept(void **state)
{
    size_t limit, other = 2 * MiB;

    (void)state;
    start_space();
    assert_true(space_grow(10, 1, SIZE_MAX).count >= 10);
    limit = other + space.open_bytes + 3 * MiB;
    fake_address_space(limit, other);
    while (space_grow(1, 1, SIZE_MAX).count != 0) {}
    assert_true(space.open_bytes <= limit - other);
    assert_int_equal(space.open_bytes, limit - other);
    fake_address_space(SIZE_MAX, other);
    assert_true(space_grow(1, 1, SIZE_MAX).count > 0);
    check_numbers();
}

UNIT_MAIN(UNIT_TEST(starting_reserves_and_commits_nothing),
          UNIT_TEST(every_record_of_the_map_has_a_number), UNIT_TEST(the_space_opens_as_a_prefix),
          UNIT_TEST(pages_may_be_larger), UNIT_TEST(a_full_region_is_followed_by_another),
          UNIT_TEST(small_wishes_use_what_large_ones_left),
          UNIT_TEST(a_wish_larger_than_regions_gets_its_own), UNIT_TEST(regions_run_out),
          UNIT_TEST(crumbs_leave_regions_for_later), UNIT_TEST(the_last_region_is_the_end),
          UNIT_TEST(a_region_that_is_not_counted_is_none),
          UNIT_TEST(the_map_opens_when_its_open_part_is_used_up),
          UNIT_TEST(a_region_may_take_all_numbers_that_are_left),
          UNIT_TEST(scarce_address_space_gives_whole_pages), UNIT_TEST(absurd_wishes_are_refused),
          UNIT_TEST(a_failure_at_any_step_opens_nothing),
          UNIT_TEST(the_nth_failure_is_either_hidden_or_clean),
          UNIT_TEST(a_large_step_that_fails_is_tried_smaller),
          UNIT_TEST(starting_can_be_tried_again), UNIT_TEST(smaller_reservations_will_do),
          UNIT_TEST(any_limit_will_do), UNIT_TEST(a_limit_four_times_as_wide_is_none),
          UNIT_TEST(a_limit_that_comes_late_is_kept))
