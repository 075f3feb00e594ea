/* profile_test.c - what a profile makes of the addresses that samples have. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

/* ---- in order, each once ---- */

enum { ADDRESSES_MAX = 300 };

static void sort_checked(const uintptr_t *given, size_t count)
{
    uintptr_t address[ADDRESSES_MAX], sum = 0;

    memcpy(address, given, count * sizeof *address);
    inside_sort_addresses(address, count);
    for (size_t i = 0; i < count; i++) sum += given[i] - address[i];
    assert_int_equal(sum, 0);
    for (size_t i = 1; i < count; i++) assert_true(address[i - 1] <= address[i]);
}

static void any_order_of_addresses_is_put_right(void **state)
{
    uintptr_t up[ADDRESSES_MAX], down[ADDRESSES_MAX], any[ADDRESSES_MAX], few[ADDRESSES_MAX];

    (void)state;
    for (size_t i = 0; i < ADDRESSES_MAX; i++) {
        up[i] = i;
        down[i] = ADDRESSES_MAX - i;
        any[i] = (uintptr_t)random_word();
        few[i] = random_below(4);
    }
    for (size_t count = 0; count <= ADDRESSES_MAX; count++) {
        sort_checked(up, count);
        sort_checked(down, count);
        sort_checked(any, count);
        sort_checked(few, count);
    }
}

/* ---- stacks and mappings ---- */

enum { LOW = 0x10000, LOW_END = 0x20000, HIGH = 0x40000, HIGH_END = 0x50000 };

static void note_stack(const uintptr_t *return_address, unsigned depth)
{
    struct origin origin = { .return_address = return_address, .depth = depth };

    assert_int_not_equal(sample_note(&origin, 100), 0);
}

/* An address of return is behind its call, which may be the last code of its mapping. */
static void a_stack_goes_as_far_as_its_calls_are_code(void **state)
{
    static const uintptr_t stack[] = { LOW_END, HIGH_END, HIGH + 1, LOW + 5, HIGH, LOW + 5 };
    static const struct os_code code[] = { { .start = LOW, .limit = LOW_END, .path = "" },
                                           { .start = HIGH, .limit = HIGH_END, .path = "" } };
    struct profile_snapshot snapshot;

    (void)state;
    assert_true(heap_start());
    note_stack(stack, ARRAY_COUNT(stack));
    fake_code(code, ARRAY_COUNT(code));
    assert_true(profile_snapshot_take(&snapshot));
    assert_int_equal(snapshot.site_count, 1);
    assert_int_equal(snapshot.site[0].depth, 4);
    assert_memory_equal(snapshot.site[0].return_address, stack, 4 * sizeof stack[0]);
    os_release(snapshot.memory);
}

UNIT_MAIN(UNIT_TEST(any_order_of_addresses_is_put_right),
          UNIT_TEST(a_stack_goes_as_far_as_its_calls_are_code))
