/* guard_test.c - pages that nobody may touch, by kernels that know guards and by those that do
 * not. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "kernel_gate.h"

#define getauxval(what) told_at_start(what)
#include "os/linux_guard.c"
#undef getauxval

#include "unit.h"

#include "real_pages.h"

#include <sys/random.h>

/* ---- pages ---- */

/* The second of three. */
static void expect_second_closed(struct os_range range)
{
    touched = range.base + os_page_bytes();
    expect_fault(read_there);
    touched += os_page_bytes() - 1;
    expect_fault(read_there);
    assert_true(all_bytes_are(range.base, 1, os_page_bytes()));
    assert_true(all_bytes_are(range.base + 2 * os_page_bytes(), 3, os_page_bytes()));
}

static void expect_second(struct os_range range, unsigned char number)
{
    for (unsigned i = 0; i < 3; i++)
        assert_true(all_bytes_are(part(range, i, 1).base, i == 1 ? number : (unsigned char)(i + 1),
                                  os_page_bytes()));
    memset(range.base + os_page_bytes(), number, os_page_bytes()); /* it may be written */
}

static void need_answers(void)
{
    if (!obeys_advice()) skip();
}

/* Since 6.13. */
static void need_guards(void)
{
    struct os_range page = numbered(1);

    need_answers();
    if (madvise(page.base, page.bytes, MADV_GUARD_INSTALL) != 0) skip();
}

static void forget_guards(void)
{
    need_answers();
    refused_advice = MADV_GUARD_INSTALL;
}

static unsigned mappings_of(struct os_range range)
{
    FILE *file = fopen("/proc/self/maps", "r");
    unsigned long from, to;
    unsigned count = 0;

    assert_non_null(file);
    while (fscanf(file, "%lx-%lx %*[^\n]", &from, &to) == 2)
        count += from < (uintptr_t)range.base + range.bytes && to > (uintptr_t)range.base;
    fclose(file);
    return count;
}

/* ---- a kernel with guards ---- */

static void guards_need_no_mapping(void **state)
{
    struct os_range range = numbered(3);

    (void)state;
    need_guards();
    assert_int_equal(mappings_of(range), 1);
    assert_true(os_guard(part(range, 1, 1)));
    assert_int_equal(mappings_of(range), 1);
    expect_second_closed(range);
    assert_true(os_unguard(part(range, 1, 1)));
    expect_second(range, 0);
    assert_int_equal(mappings_of(range), 1);
    assert_true(os_fence(part(range, 1, 1)));
    expect_second_closed(range);
    assert_true(os_unfence(part(range, 1, 1)));
    expect_second(range, 0);
    assert_int_equal(mappings_of(range), 1);
    assert_int_equal(closed_pages, 0);
}

static void pages_are_new_when_a_guard_cannot_be_taken_away(void **state)
{
    struct os_range range = numbered(3);

    (void)state;
    need_guards();
    assert_true(os_fence(part(range, 1, 1)));
    refused_advice = MADV_GUARD_REMOVE;
    answer(SYS_MAP, -ENOMEM, 1);
    assert_false(os_unfence(part(range, 1, 1)));
    expect_second_closed(range);
    assert_true(os_unfence(part(range, 1, 1)));
    expect_second(range, 0);
}

/* A locked one, say; the kernel is asked once more, on pages of which that cannot be. */
static void a_mapping_that_takes_no_guards_stays_open(void **state)
{
    struct os_range range = numbered(3);

    (void)state;
    need_guards();
    assert_true(os_fence(part(numbered(1), 0, 1)));
    guards = GUARDS_UNKNOWN;
    answer(SYS_madvise, -EINVAL, 1);
    assert_false(os_guard(part(range, 1, 1)));
    expect_second(range, 2);
    assert_true(os_guard(part(range, 1, 1)));
    expect_second_closed(range);
    answer(SYS_madvise, -EINVAL, 1);
    assert_false(os_guard(part(range, 0, 1)));
    assert_int_equal(gate.asked, 2); /* one for a guard, and one against what it left */
    assert_int_equal(closed_pages, 0);
}

/* Of a fence that came to be in a part only nothing stays. */
static void a_refused_fence_leaves_nothing(void **state)
{
    struct os_range range = numbered(3);

    (void)state;
    need_guards();
    assert_true(os_fence(part(range, 1, 1)));
    forget_guards();
    assert_false(os_fence(part(range, 0, 3)));
    expect_second(range, 0);
}

/* ---- one without ---- */

static void pages_are_closed_instead(void **state)
{
    struct os_range range = numbered(3);

    (void)state;
    forget_guards();
    assert_false(os_fence(part(range, 1, 1)));
    expect_second(range, 2);
    unmapped_bytes = 0;
    assert_true(os_guard(part(range, 1, 1)));
    assert_int_equal(unmapped_bytes, os_page_bytes()); /* on which the kernel was tried */
    expect_second_closed(range);
    assert_int_equal(closed_pages, 1);
    answer(SYS_mprotect, -ENOMEM, 1);
    assert_false(os_unguard(part(range, 1, 1)));
    expect_second_closed(range);
    assert_int_equal(closed_pages, 1);
    assert_true(os_unguard(part(range, 1, 1)));
    expect_second(range, 0);
    assert_int_equal(closed_pages, 0);
    answer(SYS_madvise, 0, 0);
    assert_true(os_guard(part(range, 0, 3)));
    assert_int_equal(gate.asked, 1); /* for the contents: guards are not tried again */
    assert_int_equal(closed_pages, 3);
}

static void not_many_are_closed_at_once(void **state)
{
    struct os_range range = numbered(CLOSED_PAGES_MAX + 1);

    (void)state;
    forget_guards();
    assert_false(os_guard(range));
    assert_int_equal(range.base[0], 1);
    assert_true(os_guard(part(range, 0, CLOSED_PAGES_MAX)));
    assert_false(os_guard(part(range, CLOSED_PAGES_MAX, 1)));
    assert_true(os_unguard(part(range, 7, 1)));
    assert_true(os_guard(part(range, CLOSED_PAGES_MAX, 1)));
    touched = range.base + CLOSED_PAGES_MAX * os_page_bytes();
    expect_fault(read_there);
}

/* As many as half of those that there are then: the program needs mappings, too. */
static void without_mappings_fewer_are_closed(void **state)
{
    struct os_range range = numbered(3), others = numbered(4);

    (void)state;
    forget_guards();
    assert_true(os_guard(others));
    answer(SYS_mprotect, -ENOMEM, 1);
    assert_false(os_guard(part(range, 1, 1)));
    assert_int_equal(gate.asked, 2); /* what may be closed of it is opened */
    expect_second(range, 2);
    assert_false(os_guard(part(range, 1, 1)));
    assert_true(os_unguard(part(others, 0, 2)));
    assert_false(os_guard(part(range, 1, 1)));
    assert_true(os_unguard(part(others, 2, 1)));
    assert_true(os_guard(part(range, 1, 1)));
    expect_second_closed(range);
}

/* Their contents would still be there. */
static void locked_pages_are_not_closed(void **state)
{
    struct os_range range = numbered(3);

    (void)state;
    forget_guards();
    assert_true(os_guard(numbered(1)));
    also_refused_advice = MADV_DONTNEED;
    assert_false(os_guard(part(range, 1, 1)));
    expect_second(range, 2);
    assert_int_equal(closed_pages, 1);
}

static void expect_undecided(void)
{
    struct os_range range = numbered(3);

    assert_false(os_guard(part(range, 1, 1)));
    expect_second(range, 2);
    assert_int_equal(guards, GUARDS_UNKNOWN);
    assert_int_equal(closed_pages, 0);
}

/* Where all pages are locked nothing is known of the kernel, nor where there is no memory to try it
 * on. */
static void what_says_nothing_of_the_kernel_decides_nothing(void **state)
{
    struct os_range range;

    (void)state;
    forget_guards();
    also_refused_advice = MADV_DONTNEED;
    expect_undecided();
    also_refused_advice = -1;
    range = numbered(3);
    answer(SYS_MAP, -ENOMEM, 1);
    assert_false(os_guard(part(range, 1, 1)));
    assert_int_equal(guards, GUARDS_UNKNOWN);
    assert_true(os_guard(part(range, 1, 1)));
    expect_second_closed(range);
}

/* qemu's user emulation. */
static void what_says_yes_to_all_has_none(void **state)
{
    struct os_range range = numbered(3);

    (void)state;
    answer(SYS_madvise, 0, 1000);
    assert_false(os_fence(part(range, 1, 1)));
    assert_false(os_guard(part(range, 1, 1)));
    expect_second(range, 2);
    assert_int_equal(guards, GUARDS_UNKNOWN);
}

/* ---- numbers ---- */

static void numbers_are_the_kernels(void **state)
{
    uint64_t first = os_random();

    (void)state;
    assert_int_not_equal(first, 0);
    assert_true(os_random() != first);
    answer(SYS_getrandom, 8, 0);
    (void)os_random();
    assert_int_equal(gate.asked, 1);
    assert_int_equal(gate.third, GRND_NONBLOCK); /* no program waits for it */
}

/* The number that the loader was given, the time, and where it lies. */
static void expect_made_of(uint64_t word)
{
    uint64_t before = os_now_ms(), number = os_random(), after = os_now_ms();
    bool is_made = false;

    for (uint64_t now = before; now <= after; now++) {
        uint64_t place = number ^ word ^ now << 32;

        is_made |= place - (uint64_t)(uintptr_t)&number + 65536 < 2 * 65536;
    }
    assert_true(is_made);
}

static void early_in_a_boot_what_the_loader_was_given_serves(void **state)
{
    static const uint64_t given[2] = { 0x1111111111111111, 0x2222222222222222 };

    (void)state;
    tell(0, AT_RANDOM, (uintptr_t)given);
    answer(SYS_getrandom, -EAGAIN, 1);
    expect_made_of(given[1]);
    answer(SYS_getrandom, sizeof(uint64_t), 1); /* of nothing but zeros */
    expect_made_of(given[1]);
    tell(0, AT_RANDOM, 0);
    answer(SYS_getrandom, -ENOSYS, 1);
    expect_made_of(0);
}

UNIT_MAIN(UNIT_TEST(guards_need_no_mapping),
          UNIT_TEST(pages_are_new_when_a_guard_cannot_be_taken_away),
          UNIT_TEST(a_mapping_that_takes_no_guards_stays_open),
          UNIT_TEST(a_refused_fence_leaves_nothing), UNIT_TEST(pages_are_closed_instead),
          UNIT_TEST(not_many_are_closed_at_once), UNIT_TEST(without_mappings_fewer_are_closed),
          UNIT_TEST(locked_pages_are_not_closed),
          UNIT_TEST(what_says_nothing_of_the_kernel_decides_nothing),
          UNIT_TEST(what_says_yes_to_all_has_none), UNIT_TEST(numbers_are_the_kernels),
          UNIT_TEST(early_in_a_boot_what_the_loader_was_given_serves))
