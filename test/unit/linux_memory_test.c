/* linux_memory_test.c - memory that Linux is asked for, and what is made of its answers. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "kernel_gate.h"

#include "unit.h"

#include "real_pages.h"

#include <sys/wait.h>

/* ---- memory ---- */

static void expect_numbers(struct os_range range)
{
    for (size_t i = 0; i < range.bytes / bytes_of(1); i++)
        assert_true(all_bytes_are(range.base + bytes_of(i), (unsigned char)(i + 1), bytes_of(1)));
}

static void expect_zeros(struct os_range range)
{
    assert_true(all_bytes_are(range.base, 0, range.bytes));
}

static void write_there(void) { *(volatile char *)touched = 1; }

static void expect_closed(char *at)
{
    touched = at;
    expect_fault(read_there);
}

static void memory_is_closed_open_or_readable(void **state)
{
    struct os_range range = numbered(4), readable = os_reserve_readable(bytes_of(2));

    (void)state;
    expect_zeros(readable);
    touched = readable.base;
    expect_fault(write_there);
    assert_true(os_forbid_writes(part(range, 1, 1)));
    expect_numbers(range);
    touched = range.base + bytes_of(1);
    expect_fault(write_there);
    assert_true(os_close(part(range, 3, 1)));
    expect_closed(range.base + bytes_of(3));
    assert_true(os_commit(range));
    expect_numbers(part(range, 0, 3));
    expect_zeros(part(range, 3, 1));
    os_release(part(range, 0, 2));
    expect_closed(range.base);
    assert_int_equal(range.base[bytes_of(2)], 3);
    expect_closed(os_reserve(bytes_of(1), bytes_of(1)).base);
}

/* Of the mapping in which this address lies: "dd" for what is not dumped, "hg" and "nh" for wishes
 * of huge pages. -1: the kernel does not say it. */
static int has_flag(const void *address, const char *flag)
{
    FILE *mappings = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long from, to;
    bool is_there = false;
    int found = -1;

    while (mappings != NULL && fgets(line, sizeof line, mappings) != NULL) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            is_there = from <= (uintptr_t)address && (uintptr_t)address < to;
        if (is_there && strncmp(line, "VmFlags:", 8) == 0) found = strstr(line, flag) != NULL;
    }
    if (mappings != NULL) fclose(mappings);
    return found;
}

static int is_left_out_of_dumps(const void *address) { return has_flag(address, " dd"); }

/* Address space is none of a program's contents. */
static void only_what_is_committed_is_dumped(void **state)
{
    struct os_range range = os_reserve(bytes_of(3), bytes_of(1));

    (void)state;
    if (!obeys_advice() || is_left_out_of_dumps(range.base) < 0) skip();
    assert_int_equal(is_left_out_of_dumps(range.base), 1);
    assert_int_equal(is_left_out_of_dumps(os_reserve_readable(bytes_of(1)).base), 1);
    assert_true(os_commit(part(range, 1, 2)));
    assert_int_equal(is_left_out_of_dumps(range.base), 1);
    assert_int_equal(is_left_out_of_dumps(range.base + bytes_of(1)), 0);
    assert_true(os_close(part(range, 1, 1)));
    assert_int_equal(is_left_out_of_dumps(range.base + bytes_of(1)), 1);
    assert_int_equal(is_left_out_of_dumps(range.base + bytes_of(2)), 0);
}

static void huge_pages_are_wished_for_or_against(void **state)
{
    struct os_range range = numbered(3);

    (void)state;
    if (madvise(range.base + bytes_of(2), bytes_of(1), MADV_HUGEPAGE) != 0) skip();
    if (has_flag(range.base + bytes_of(2), " hg") != 1) skip();
    os_wish_huge_pages(part(range, 0, 1), true);
    os_wish_huge_pages(part(range, 1, 1), false);
    assert_int_equal(has_flag(range.base, " hg"), 1);
    assert_int_equal(has_flag(range.base, " nh"), 0);
    assert_int_equal(has_flag(range.base + bytes_of(1), " hg"), 0);
    assert_int_equal(has_flag(range.base + bytes_of(1), " nh"), 1);
    expect_numbers(range);
}

static void expect_touch_us(uint64_t before, uint64_t after, uint64_t us)
{
    struct os_range range = numbered(1);

    assert_true(os_purge(range));
    thread_us[0] = before;
    thread_us[1] = after;
    assert_int_equal(os_first_touch_us(range.base), us);
    expect_zeros(range);
}

static void a_first_touch_takes_the_threads_time(void **state)
{
    (void)state;
    expect_touch_us(3000000, 5000007, 2000007);
    expect_touch_us(3000000, 3000000, 0);
    expect_touch_us(3000000, 2999999, 0); /* clocks of two processors */
}

static void what_the_kernel_refuses_is_told(void **state)
{
    struct os_range range = numbered(2);

    (void)state;
    answer(SYS_mprotect, -ENOMEM, 1);
    assert_false(os_commit(range));
    answer(SYS_mprotect, -ENOMEM, 1);
    assert_false(os_forbid_writes(range));
    answer(SYS_MAP, -ENOMEM, 3);
    assert_false(os_close(range));
    assert_null(os_reserve(bytes_of(1), bytes_of(1)).base);
    assert_null(os_reserve_readable(bytes_of(1)).base);
    answer(SYS_mremap, -ENOMEM, 1);
    assert_null(os_resize(range, bytes_of(3), true).base);
    answer(SYS_madvise, -ENOMEM, 1);
    assert_false(os_touch(range));
    answer(SYS_madvise, -EINVAL, 1);
    assert_false(os_keep_from_child(range, true));
    answer(SYS_madvise, -EINVAL, 1);
    assert_true(os_keep_from_child(range, false)); /* it never was */
    answer(SYS_madvise, -ENOMEM, 1);
    assert_false(os_keep_from_child(range, false));
    expect_numbers(range);
}

/* A kernel that is short of memory for a moment is asked three times, and no other one. */
static void purging_is_tried_again_a_few_times(void **state)
{
    struct os_range range = numbered(2);

    (void)state;
    answer(SYS_madvise, -EAGAIN, 3);
    assert_false(os_purge(range));
    assert_int_equal(gate.asked, 3);
    answer(SYS_madvise, -EINVAL, 1);
    assert_false(os_purge(range));
    assert_int_equal(gate.asked, 1);
    expect_numbers(range);
    answer(SYS_madvise, -EAGAIN, 2);
    assert_true(os_purge(part(range, 1, 1)));
    expect_numbers(part(range, 0, 1));
    expect_zeros(part(range, 1, 1));
}

/* Their mapping cannot be taken away: the pages go back all the same. */
static void what_cannot_be_unmapped_is_purged(void **state)
{
    struct os_range range = numbered(2);

    (void)state;
    answer(SYS_munmap, -ENOMEM, 1);
    os_release(range);
    assert_int_equal(gate.asked, 1);
    expect_zeros(range);
    answer(SYS_munmap, -ENOMEM, 0);
    os_release((struct os_range){ range.base, 0 });
    assert_int_equal(gate.asked, 0);
}

static void touching_keeps_contents(void **state)
{
    struct os_range range = numbered(3);
    unsigned char there[3] = { 0 };

    (void)state;
    assert_true(os_touch(range));
    expect_numbers(range);
    assert_true(os_purge(range));
    answer(SYS_madvise, -EINVAL, 1); /* before 5.14 */
    assert_true(os_touch(range));
    if (obeys_advice()) { /* qemu 7.2 counts pages of the machine's size */
        assert_int_equal(mincore(range.base, range.bytes, there), 0);
        for (unsigned i = 0; i < 3; i++) assert_int_equal(there[i] & 1, 1);
    }
    expect_zeros(range);
}

static int code_of_child(char *page)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) _exit(*page);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_child_has_what_is_not_kept_from_it(void **state)
{
    struct os_range range = numbered(1);
    int code;

    (void)state;
    if (!os_keep_from_child(range, true)) skip();
    code = code_of_child(range.base);
    if (!obeys_advice() && code == 1) skip(); /* qemu 7.2 */
    assert_int_equal(code, 0);
    assert_true(os_keep_from_child(range, false));
    assert_int_equal(code_of_child(range.base), 1);
    expect_numbers(range);
}

/* ---- moving ---- */

/* Since 5.7. */
static bool can_move(void)
{
    struct os_range from = numbered(1);

    return mremap(from.base, from.bytes, from.bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL)
        != MAP_FAILED;
}

/* Not in qemu's books: there it is mapped anew. */
static bool old_place_stays(void)
{
    struct os_range from = numbered(1);
    char first;

    assert_true(mremap(from.base, from.bytes, from.bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL)
                != MAP_FAILED);
    return os_copy_checked(&first, from.base, 1) == 1;
}

static void pages_move_and_leave_zeros(void **state)
{
    struct os_range from = numbered(3), to = numbered(3);
    unsigned maps;

    (void)state;
    if (!can_move()) skip();
    maps = old_place_stays() ? 0 : 1;
    memset(to.base, 77, to.bytes);
    answer(SYS_MAP, 0, 0);
    assert_true(os_move(from, to));
    assert_int_equal(gate.asked, maps);
    expect_numbers(to);
    expect_zeros(from);
    *from.base = 1; /* still committed */
}

static void pages_move_where_the_kernel_leaves_nothing(void **state)
{
    struct os_range from = numbered(3), to = numbered(3);

    (void)state;
    if (!can_move()) skip();
    leaves_nothing = true;
    assert_true(os_move(from, to));
    expect_numbers(to);
    expect_zeros(from);
    *from.base = 1;
}

/* What the kernel takes for several mappings is moved by halves, down to pages. */
static void several_mappings_are_moved_by_halves(void **state)
{
    struct os_range from = numbered(5), to = numbered(5);

    (void)state;
    if (!can_move()) skip();
    memset(to.base, 77, to.bytes);
    answer(SYS_mremap, -EFAULT, 2); /* all of it, and the first three pages */
    assert_true(os_move(from, to));
    assert_int_equal(gate.asked, 2 + 3 * 2); /* two pages, one, and the other two */
    expect_numbers(to);
    expect_zeros(from);
    answer(SYS_mremap, -EFAULT, 100);
    assert_false(os_move(to, from));
    assert_int_equal(gate.asked, 4); /* 5, 3, 2 and 1 pages */
    answer(SYS_mremap, -ENOMEM, 1);
    assert_false(os_move(to, from));
    assert_int_equal(gate.asked, 1);
    expect_numbers(to);
    expect_zeros(from);
}

/* The first half has moved: so the second one's bytes are copied, and leave zeros, too. */
static void a_second_half_that_stays_is_copied(void **state)
{
    struct os_range from = numbered(2), to = numbered(2);

    (void)state;
    if (!can_move()) skip();
    memset(to.base, 77, to.bytes);
    answer_some(SYS_mremap, -EFAULT, 0, 3, 2); /* but two that move the first half */
    assert_true(os_move(from, to));
    assert_int_equal(gate.asked, 4);
    expect_numbers(to);
    expect_zeros(from);
    from = numbered(2);
    answer_some(SYS_mremap, -EFAULT, 0, 3, 2);
    refused_advice = MADV_DONTNEED;
    assert_true(os_move(from, to));
    expect_numbers(to);
    expect_zeros(from);
}

/* The second step may have taken away what was there, and failed. */
static void a_move_that_fails_half_way_is_made_by_copying(void **state)
{
    struct os_range from = numbered(3), to = numbered(3);

    (void)state;
    if (!can_move()) skip();
    memset(to.base, 77, to.bytes);
    answer_some(SYS_mremap, -ENOMEM, 1, 1, 1);
    unmapped_bytes = 0;
    assert_true(os_move(from, to));
    assert_int_equal(gate.asked, 2);
    assert_int_equal(unmapped_bytes, from.bytes); /* where they were in between */
    expect_numbers(to);
    expect_zeros(from);
}

static void move_to_no_memory(void)
{
    struct os_range from = numbered(1), to = numbered(1);

    answer_some(SYS_mremap, -ENOMEM, 1, 1, 3);
    never_mapped = true;
    (void)os_move(from, to);
}

/* Nothing may be there any more, and nothing can be: tried three times. */
static void what_the_kernel_took_away_for_good_ends_the_process(void **state)
{
    (void)state;
    if (!can_move()) skip();
    expect_abort(move_to_no_memory,
                 "the kernel took memory away and has none in its place, as 4 calls said");
}

static void pages_move_out_and_grow(void **state)
{
    struct os_range from = numbered(3), grown;

    (void)state;
    if (!can_move()) skip();
    grown = os_move_out(from, bytes_of(6));
    assert_non_null(grown.base);
    assert_int_equal(grown.bytes, bytes_of(6));
    expect_numbers((struct os_range){ grown.base, bytes_of(3) });
    expect_zeros(part(grown, 3, 3));
    expect_zeros(from);
    os_move_back((struct os_range){ grown.base, bytes_of(3) }, from);
    expect_numbers(from);
}

/* When there is no room for more, everything is where it was. */
static void what_cannot_grow_comes_back(void **state)
{
    struct os_range from = numbered(3);

    (void)state;
    if (!can_move()) skip();
    answer_some(SYS_mremap, -ENOMEM, 1, 1, 1);
    assert_null(os_move_out(from, bytes_of(6)).base);
    expect_numbers(from);
    answer(SYS_mremap, -ENOMEM, 1);
    assert_null(os_move_out(from, bytes_of(6)).base);
    assert_int_equal(gate.asked, 1);
    expect_numbers(from);
}

static void a_mapping_shrinks_and_moves_only_if_it_may(void **state)
{
    struct os_range all = numbered(4), grown;

    (void)state;
    os_release(part(all, 2, 1));
    all.bytes = bytes_of(2);
    assert_null(os_resize(all, bytes_of(4), false).base); /* the fourth page is in the way */
    expect_numbers(all);
    grown = os_resize(all, bytes_of(4), true);
    assert_non_null(grown.base);
    assert_ptr_not_equal(grown.base, all.base);
    assert_int_equal(grown.bytes, bytes_of(4));
    expect_numbers((struct os_range){ grown.base, bytes_of(2) });
    expect_closed(all.base);
    assert_ptr_equal(os_resize(grown, bytes_of(1), false).base, grown.base);
    expect_closed(grown.base + bytes_of(1));
}

/* ---- reading what may not be there ---- */

static void expect_copied(char *from, size_t wanted, size_t count)
{
    static char to[5 * 64 * 1024];

    memset(to, 'x', sizeof to);
    assert_int_equal(os_copy_checked(to, from, wanted), count);
    assert_memory_equal(to, from, count);
    assert_true(all_bytes_are(to + count, 'x', sizeof to - count));
}

static void copy_of_three_pages(void)
{
    struct os_range range = numbered(4);
    char *end = range.base + bytes_of(3);

    assert_true(os_close(part(range, 3, 1)));
    expect_copied(range.base, bytes_of(3), bytes_of(3));
    expect_copied(range.base + 100, 1, 1);
    expect_copied(range.base + 100, bytes_of(1), bytes_of(1));
    expect_copied(end - 1, 1, 1);
    expect_copied(end - 1, 2, 1);
    expect_copied(end - bytes_of(1) - 8, bytes_of(2), bytes_of(1) + 8);
    expect_copied(end, 1, 0);
}

static bool can_copy(void)
{
    char from = 1, to = 0;
    struct iovec here = { &to, 1 }, there = { &from, 1 };

    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

static void what_is_not_there_is_not_copied(void **state)
{
    (void)state;
    answer(SYS_rt_sigprocmask, 0, 0);
    copy_of_three_pages();
    if (can_copy()) assert_int_equal(gate.asked, 0);
}

static void without_the_right_to_copy_pages_are_tried(void **state)
{
    (void)state;
    answer(SYS_process_vm_readv, -EPERM, 100);
    copy_of_three_pages();
    assert_in_range(gate.asked, 1, 99);
}

UNIT_MAIN(UNIT_TEST(memory_is_closed_open_or_readable), UNIT_TEST(only_what_is_committed_is_dumped),
          UNIT_TEST(huge_pages_are_wished_for_or_against),
          UNIT_TEST(a_first_touch_takes_the_threads_time),
          UNIT_TEST(what_the_kernel_refuses_is_told), UNIT_TEST(purging_is_tried_again_a_few_times),
          UNIT_TEST(what_cannot_be_unmapped_is_purged), UNIT_TEST(touching_keeps_contents),
          UNIT_TEST(a_child_has_what_is_not_kept_from_it), UNIT_TEST(pages_move_and_leave_zeros),
          UNIT_TEST(pages_move_where_the_kernel_leaves_nothing),
          UNIT_TEST(several_mappings_are_moved_by_halves),
          UNIT_TEST(a_second_half_that_stays_is_copied),
          UNIT_TEST(a_move_that_fails_half_way_is_made_by_copying),
          UNIT_TEST(what_the_kernel_took_away_for_good_ends_the_process),
          UNIT_TEST(pages_move_out_and_grow), UNIT_TEST(what_cannot_grow_comes_back),
          UNIT_TEST(a_mapping_shrinks_and_moves_only_if_it_may),
          UNIT_TEST(what_is_not_there_is_not_copied),
          UNIT_TEST(without_the_right_to_copy_pages_are_tried))
