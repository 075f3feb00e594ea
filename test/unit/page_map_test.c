/* page_map_test.c - the class map: zero for strangers, the class for slabs. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

/* For 48 bits of addresses it has 64 GiB. */
static void start_map(void)
{
    needs_addresses(BY_WORD(128 * GiB, 1 * MiB));
    space.page_shift = (unsigned)__builtin_ctzl(os_page_bytes());
    class_map_start();
    assert_true(class_map.mask != 0);
}

/* Addresses are all that the map wants; nothing need be there. */
static char *place(uintptr_t address) { return (char *)address; }

#define SOMEWHERE BY_WORD(0x7f0000000000, 0x70000000)

static void expect_class(const char *base, size_t bytes, unsigned class_at)
{
    for (size_t at = 0; at < bytes; at += 512) assert_int_equal(class_map_at(base + at), class_at);
    assert_int_equal(class_map_at(base + bytes - 1), class_at);
}

static void strangers_have_no_class(void **state)
{
    static char data;
    static const uintptr_t addresses[] = { 0,
                                           1,
                                           4096,
                                           0x10000,
                                           BY_WORD(0x7fffffffffff, 0x7fffffff),
                                           BY_WORD(0x800000000000, 0x80000000),
                                           UINTPTR_MAX,
                                           UINTPTR_MAX / 2 + 1 };

    (void)state;
    for (int started = 0; started <= 1; started++) {
        for (unsigned i = 0; i < ARRAY_COUNT(addresses); i++)
            assert_int_equal(class_map_at(place(addresses[i])), 0);
        assert_int_equal(class_map_at(&data), 0);
        assert_int_equal(class_map_at(&addresses), 0);
        assert_int_equal(class_map_at((void *)(uintptr_t)&strangers_have_no_class), 0);
        if (!started) start_map();
    }
}

static void reading_it_commits_nothing(void **state)
{
    (void)state;
    start_map();
    const uintptr_t end = BY_WORD(128 * TiB, 2 * GiB);

    for (uintptr_t at = 0; at < end; at += end / 1024) assert_int_equal(class_map_at(place(at)), 0);
    assert_int_equal(fake_committed_bytes(), 0);
    assert_int_equal(fake_reserved_bytes(), class_map_reserved_bytes());
}

static void a_set_range_has_its_class_and_its_neighbours_none(void **state)
{
    char *base = place(SOMEWHERE + MiB);

    (void)state;
    start_map();
    assert_true(class_map_open(base, MiB));
    class_map_set(base + 64 * KiB, 16 * KiB, 10);
    class_map_set(base + 80 * KiB, 4 * KiB, 72);
    expect_class(base, 64 * KiB, 0);
    expect_class(base + 64 * KiB, 16 * KiB, 10);
    expect_class(base + 80 * KiB, 4 * KiB, 72);
    expect_class(base + 84 * KiB, MiB - 84 * KiB, 0);
    class_map_set(base + 64 * KiB, 16 * KiB, 0);
    expect_class(base, 80 * KiB, 0);
    expect_class(base + 80 * KiB, 4 * KiB, 72);
}

/* As where frees look at every block: classes have other bytes, and no class has none. */
static void bytes_of_classes_may_be_offset(void **state)
{
    char *base = place(SOMEWHERE + MiB);

    (void)state;
    start_map();
    class_map_offset = 100;
    assert_true(class_map_open(base, MiB));
    class_map_set(base, 64 * KiB, 10);
    expect_class(base, 64 * KiB, 110);
    class_map_set(base, 64 * KiB, 0);
    expect_class(base, 64 * KiB, 0);
}

/* The map has a byte for 4 KiB whatever a page is. */
static void larger_pages_fill_more_bytes(void **state)
{
    char *base = place(SOMEWHERE + MiB);

    (void)state;
    fake_page_bytes(64 * KiB);
    start_map();
    assert_true(class_map_open(base, MiB));
    class_map_set(base + 64 * KiB, 64 * KiB, 4);
    expect_class(base, 64 * KiB, 0);
    expect_class(base + 64 * KiB, 64 * KiB, 4);
    expect_class(base + 128 * KiB, 64 * KiB, 0);
}

static void opening_again_costs_nothing(void **state)
{
    char *base = place(SOMEWHERE);

    (void)state;
    start_map();
    assert_true(class_map_open(base, MiB));
    assert_int_equal(fake_calls(FAKE_COMMIT), 1);
    assert_true(class_map_open(base, MiB));
    assert_true(class_map_open(base + 4096, 4096));
    assert_int_equal(fake_calls(FAKE_COMMIT), 1);
}

/* The open stretch follows a growing region: each byte is committed once. */
static void the_open_part_grows_with_the_region(void **state)
{
    char *base = place(SOMEWHERE + 0x123000);

    (void)state;
    start_map();
    for (size_t bytes = MiB; bytes < GiB; bytes += bytes / 3 / 4096 * 4096) {
        assert_true(class_map_open(base, bytes));
        class_map_set(base, bytes, 9);
        expect_class(base + bytes - 4096, 4096, 9);
    }
    assert_true(fake_committed_bytes() <= GiB / 4096 + 2 * META_OPEN_BYTES);
}

/* Regions may lie anywhere, and the kernel tends to place later ones lower. */
static void far_regions_open_their_own(void **state)
{
    char *base[] = { place(SOMEWHERE), place(BY_WORD(0x100000000000, 0x30000000)),
                     place(SOMEWHERE - 16 * MiB), place(0x10000000), place(SOMEWHERE + 256 * MiB) };

    (void)state;
    start_map();
    for (unsigned round = 1; round <= 30; round++) {
        for (unsigned i = 0; i < ARRAY_COUNT(base); i++) {
            size_t offset = (round - 1) * 256 * KiB;
            assert_true(class_map_open(base[i] + offset, 256 * KiB));
            class_map_set(base[i] + offset, 256 * KiB, (uint8_t)(i + 1));
        }
    }
    for (unsigned i = 0; i < ARRAY_COUNT(base); i++) expect_class(base[i], 30 * 256 * KiB, i + 1);
}

static void refused_memory_opens_nothing(void **state)
{
    char *base = place(SOMEWHERE);

    (void)state;
    start_map();
    fake_fail_kind(FAKE_COMMIT, true);
    assert_false(class_map_open(base, MiB));
    assert_false(class_map_open(base, MiB));
    assert_int_equal(fake_committed_bytes(), 0);
    fake_fail_kind(FAKE_COMMIT, false);
    assert_true(class_map_open(base, MiB));
    class_map_set(base, MiB, 3);
    fake_fail_kind(FAKE_COMMIT, true);
    assert_true(class_map_open(base, MiB));
    assert_false(class_map_open(base + GiB, MiB));
    fake_fail_kind(FAKE_COMMIT, false);
    assert_true(class_map_open(base + GiB, MiB));
    class_map_set(base + GiB, MiB, 4);
    expect_class(base, MiB, 3);
    expect_class(base + GiB, MiB, 4);
}

/* Addresses beyond the map have the bytes of those below that share their low bits. */
static void beyond_the_map_bytes_are_shared(void **state)
{
    uintptr_t span;
    struct os_range low, high;

    (void)state;
    start_map();
    if (class_map.mask == UINTPTR_MAX >> CLASS_MAP_SHIFT) skip();
    span = (class_map.mask + 1) << CLASS_MAP_SHIFT;
    low = (struct os_range){ place(0x10000000), MiB };
    high = (struct os_range){ place(5 * span + 0x10000000), MiB };
    assert_true(class_map_shares(low, high));
    assert_true(class_map_shares(high, low));
    high.base += MiB;
    assert_false(class_map_shares(low, high));
    assert_false(class_map_shares(high, low));
    assert_true(class_map_open(high.base, high.bytes));
    class_map_set(high.base, high.bytes, 5);
    expect_class(high.base, high.bytes, 5);
    expect_class(high.base - 64 * KiB, 64 * KiB, 0);
    assert_true(class_map_shares((struct os_range){ place(span - MiB), 2 * MiB }, low));
    assert_false(class_map_shares((struct os_range){ place(span - MiB), MiB }, low));
}

/* Of every region that there is; one that is being made is none yet. */
static void a_range_may_share_bytes_with_any_region(void **state)
{
    uintptr_t span;

    (void)state;
    start_map();
    if (class_map.mask == UINTPTR_MAX >> CLASS_MAP_SHIFT) skip();
    span = (class_map.mask + 1) << CLASS_MAP_SHIFT;
    for (unsigned i = 0; i < 4; i++)
        space.region[i] = (struct region){ place(0x10000000 + i * MiB), MiB, 1, 0 };
    for (space.region_count = 0; space.region_count <= 4; space.region_count++)
        for (unsigned i = 0; i < 4; i++) {
            struct os_range range = { place(5 * span + 0x10000000 + i * MiB), MiB };
            assert_int_equal(regions_share_slots(range), i < space.region_count);
        }
}

/* Addresses of so many bits; where they have 32, all of them. */
static void expect_width(unsigned bits)
{
    assert_int_equal(class_map.mask + 1, (uintptr_t)1 << (BY_WORD(bits, 32) - CLASS_MAP_SHIFT));
}

static void the_map_is_as_wide_as_the_kernel_gives(void **state)
{
    (void)state;
    fake_highest_address(BY_WORD(0xffffffffe123, 0xffffe123));
    start_map();
    expect_width(48);
}

/* The stack of the first caller may be anywhere. */
static void a_low_stack_makes_no_narrow_map(void **state)
{
    (void)state;
    fake_highest_address(0x7f123000);
    start_map();
    expect_width(47);
}

static void the_map_covers_the_first_region(void **state)
{
    (void)state;
    needs_addresses(BY_WORD(512 * GiB, 1 * MiB));
    fake_highest_address(0x7f123000);
    space.region[0] = (struct region){ place(BY_WORD(0x1fffffff00000, 0xeff00000)), 2 * MiB, 1, 0 };
    start_map();
    expect_width(50);
    assert_true(class_map_open(space.region[0].base, 2 * MiB));
}

static void check_map_is_off(void)
{
    char *base = place(SOMEWHERE);

    assert_int_equal(class_map.mask, 0);
    assert_int_equal(class_map_reserved_bytes(), 0);
    assert_true(class_map_open(base, MiB));
    class_map_set(base, MiB, 5);
    expect_class(base, MiB, 0);
    assert_int_equal(fake_committed_bytes(), 0);
}

static void narrow_address_space_goes_without(void **state)
{
    (void)state;
    fake_address_space(24 * MiB, 0);
    assert_true(space_start());
    check_map_is_off();
}

static void a_refused_reservation_goes_without(void **state)
{
    (void)state;
    fake_fail_kind(FAKE_RESERVE_READABLE, true);
    class_map_start();
    assert_int_equal(fake_failures(), 1);
    check_map_is_off();
}

UNIT_MAIN(UNIT_TEST(strangers_have_no_class), UNIT_TEST(reading_it_commits_nothing),
          UNIT_TEST(a_set_range_has_its_class_and_its_neighbours_none),
          UNIT_TEST(bytes_of_classes_may_be_offset), UNIT_TEST(larger_pages_fill_more_bytes),
          UNIT_TEST(opening_again_costs_nothing), UNIT_TEST(the_open_part_grows_with_the_region),
          UNIT_TEST(far_regions_open_their_own), UNIT_TEST(refused_memory_opens_nothing),
          UNIT_TEST(beyond_the_map_bytes_are_shared),
          UNIT_TEST(a_range_may_share_bytes_with_any_region),
          UNIT_TEST(the_map_is_as_wide_as_the_kernel_gives),
          UNIT_TEST(a_low_stack_makes_no_narrow_map), UNIT_TEST(the_map_covers_the_first_region),
          UNIT_TEST(narrow_address_space_goes_without),
          UNIT_TEST(a_refused_reservation_goes_without))
