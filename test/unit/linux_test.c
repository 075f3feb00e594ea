/* linux_test.c - what Linux is asked for, and what is made of its answers. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "kernel_gate.h"

#include "unit.h"

#include <sys/stat.h>
#include <sys/wait.h>

__thread struct front *thread_slot;

void fatal_address(const char *what, const void *address)
{
    (void)address;
    fprintf(stderr, "%s, as %u calls said\n", what, gate.asked);
    abort();
}

/* ---- memory ---- */

static size_t bytes_of(size_t pages) { return pages * os_page_bytes(); }

static struct os_range part(struct os_range range, size_t first_page, size_t pages)
{
    return (struct os_range){ range.base + bytes_of(first_page), bytes_of(pages) };
}

/* Committed, each page with its own number in it, from 1 on. Around them nothing is that the test
 * itself needs. */
static struct os_range numbered(size_t pages)
{
    enum { MARGIN_PAGES = 8 };
    struct os_range all = os_reserve(bytes_of(pages + 2 * MARGIN_PAGES), os_page_bytes()), range;

    assert_non_null(all.base);
    assert_int_equal(all.bytes, bytes_of(pages + 2 * MARGIN_PAGES));
    range = part(all, MARGIN_PAGES, pages);
    assert_true(os_commit(range));
    assert_true(all_bytes_are(range.base, 0, range.bytes));
    for (size_t i = 0; i < pages; i++) memset(range.base + bytes_of(i), (int)i + 1, bytes_of(1));
    return range;
}

static void expect_numbers(struct os_range range)
{
    for (size_t i = 0; i < range.bytes / bytes_of(1); i++)
        assert_true(all_bytes_are(range.base + bytes_of(i), (unsigned char)(i + 1), bytes_of(1)));
}

static void expect_zeros(struct os_range range)
{
    assert_true(all_bytes_are(range.base, 0, range.bytes));
}

static char *touched;
static void write_there(void) { *(volatile char *)touched = 1; }
static void read_there(void) { (void)*(volatile char *)touched; }

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
    if (is_left_out_of_dumps(range.base) < 0) skip();
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
    assert_int_equal(mincore(range.base, range.bytes, there), 0);
    for (unsigned i = 0; i < 3; i++) assert_int_equal(there[i] & 1, 1);
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

    (void)state;
    if (!os_keep_from_child(range, true)) skip();
    assert_int_equal(code_of_child(range.base), 0);
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

static void pages_move_and_leave_zeros(void **state)
{
    struct os_range from = numbered(3), to = numbered(3);

    (void)state;
    if (!can_move()) skip();
    memset(to.base, 77, to.bytes);
    answer(SYS_MAP, 0, 0);
    assert_true(os_move(from, to));
    assert_int_equal(gate.asked, 0);
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

/* ---- time ---- */

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;

    assert_int_equal(clock_gettime(clock, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void clocks_are_the_systems(void **state)
{
    uint64_t before = now_ns(CLOCK_REALTIME), told = os_wall_ns(), after = now_ns(CLOCK_REALTIME);

    (void)state;
    assert_in_range(told, before, after);
    before = now_ns(CLOCK_MONOTONIC);
    told = port_now_ns();
    assert_in_range(told, before, now_ns(CLOCK_MONOTONIC));
    before = now_ns(CLOCK_MONOTONIC_COARSE) / 1000000;
    told = os_now_ms();
    assert_in_range(told, before, now_ns(CLOCK_MONOTONIC_COARSE) / 1000000);
}

static void a_sleep_ends_with_its_time_or_its_word(void **state)
{
    uint32_t word = 7;
    uint64_t start = now_ns(CLOCK_MONOTONIC);

    (void)state;
    os_sleep(&word, 8, 1000 * 1000); /* longer than a test may last */
    os_sleep(&word, 7, 30);
    assert_true(now_ns(CLOCK_MONOTONIC) - start >= 30 * 1000000);
    assert_int_equal(kernel_span_of(2001).seconds, 2);
    assert_int_equal(kernel_span_of(2001).nanoseconds, 1000000);
}

static uint32_t awaited;

static void *wait_for_it(void *unused)
{
    while (__atomic_load_n(&awaited, __ATOMIC_ACQUIRE) == 0) port_wait(&awaited, 0);
    return unused;
}

/* And is asked for once, or a few times when something else wakes it. */
static void a_wait_lasts_until_it_is_woken(void **state)
{
    pthread_t waiter;

    (void)state;
    answer(SYS_futex, 0, 0);
    assert_int_equal(pthread_create(&waiter, NULL, wait_for_it, NULL), 0);
    while (__atomic_load_n(&gate.asked, __ATOMIC_RELAXED) == 0) usleep(1000);
    usleep(20000);
    assert_in_range(gate.asked, 1, 5);
    __atomic_store_n(&awaited, 1, __ATOMIC_RELEASE);
    port_wake(&awaited, 1);
    assert_int_equal(pthread_join(waiter, NULL), 0);
}

/* ---- forks ---- */

static char order[8];

static void note_before(void) { strcat(order, "b"); }
static void note_parent(void) { strcat(order, "p"); }
static void note_child(void) { strcat(order, "c"); }

static void handlers_are_called_around_a_fork(void **state)
{
    int status = -1;
    pid_t child;

    (void)state;
    os_at_fork(note_before, note_parent, note_child);
    child = fork();
    if (child == 0) _exit(strcmp(order, "bc") != 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(order, "bp");
}

static bool flushed;

static void *flush_all(void *unused)
{
    fflush(NULL);
    __atomic_store_n(&flushed, true, __ATOMIC_RELEASE);
    return unused;
}

/* The C library's list of files is whose fork it is, until that has ended; in the child it is free,
 * however often it was taken. */
static void nobody_else_has_the_files_in_a_fork(void **state)
{
    int status = -1;
    pthread_t other;
    pid_t child;

    (void)state;
    if (_IO_list_lock == NULL) skip();
    os_fork_begins();
    os_fork_begins();
    child = fork();
    if (child == 0) {
        os_fork_ends_in_child();
        alarm(20);
        _exit(pthread_create(&other, NULL, flush_all, NULL) != 0 || pthread_join(other, NULL) != 0
              || !flushed);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    os_fork_ends_in_parent();
    assert_int_equal(pthread_create(&other, NULL, flush_all, NULL), 0);
    usleep(20000);
    assert_false(__atomic_load_n(&flushed, __ATOMIC_ACQUIRE));
    os_fork_ends_in_parent();
    assert_int_equal(pthread_join(other, NULL), 0);
}

/* ---- files ---- */

/* A file with these contents, by a name that can be opened. */
static const char *file_of(const char *text)
{
    static char name[64];
    int file = memfd_create("file", 0);

    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    return name;
}

static void expect_file(const char *path, const char *text)
{
    char read[64] = "";
    int file = os_file_open(path);

    assert_true(file >= 0);
    assert_int_equal(os_file_read(file, read, sizeof read), strlen(text));
    assert_string_equal(read, text);
    os_file_close(file);
    assert_int_equal(fcntl(file, F_GETFD), -1);
}

static void files_are_made_anew_written_and_read(void **state)
{
    char path[] = "/tmp/prairie-linux-XXXXXX";
    int file = mkstemp(path);
    struct stat facts;

    (void)state;
    assert_true(file >= 0);
    assert_int_equal(write(file, "longer than that", 16), 16);
    close(file);
    file = os_file_create(path);
    assert_true(file >= 0);
    assert_true(fcntl(file, F_GETFD) & FD_CLOEXEC);
    assert_true(os_file_write(file, "some text", 9));
    os_file_close(file);
    expect_file(path, "some text");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(os_file_open(path), -1);
    umask(0);
    file = os_file_create(path);
    assert_int_equal(fstat(file, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0644);
    os_file_close(file);
    expect_file(path, "");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(os_file_create("/no/such/folder/file"), -1);
}

static void a_file_is_moved_in_pieces(void **state)
{
    const char *path = file_of("");
    char read[10] = "";
    int file;

    (void)state;
    transfer_bytes_max = 3; /* and a single byte at the end */
    file = os_file_create(path);
    assert_true(os_file_write(file, "0123456789", 10));
    os_file_close(file);
    expect_file(path, "0123456789");
    file = os_file_open(path);
    assert_int_equal(os_file_read(file, read, 5), 5);
    assert_string_equal(read, "01234");
    os_file_close(file);
}

static void interruptions_are_borne_but_not_for_ever(void **state)
{
    const char *path = file_of("");
    int file = os_file_create(path);
    char read[10] = "";

    (void)state;
    answer(SYS_write, -EINTR, INTERRUPTIONS_MAX - 1);
    assert_true(os_file_write(file, "text", 4));
    answer(SYS_write, -EINTR, INTERRUPTIONS_MAX);
    assert_false(os_file_write(file, "more", 4));
    assert_int_equal(gate.asked, INTERRUPTIONS_MAX);
    answer(SYS_write, -ENOSPC, 1);
    assert_false(os_file_write(file, "more", 4));
    answer(SYS_write, 0, 1);
    assert_false(os_file_write(file, "more", 4));
    os_file_close(file);
    file = os_file_open(path);
    answer(SYS_read, -EINTR, INTERRUPTIONS_MAX);
    assert_int_equal(os_file_read(file, read, sizeof read), 0);
    answer(SYS_read, -EINTR, INTERRUPTIONS_MAX - 1);
    assert_int_equal(os_file_read(file, read, sizeof read), 4);
    assert_string_equal(read, "text");
}

static void a_small_file_is_read_as_a_text(void **state)
{
    char text[8];
    const char *path = file_of("0123456789");

    (void)state;
    memset(text, 'x', sizeof text);
    assert_int_equal(linux_read_file(path, text, sizeof text - 1), 6);
    assert_string_equal(text, "012345");
    assert_int_equal(text[7], 'x');
    assert_int_equal(linux_read_file("/no/such/file", text, sizeof text), 0);
    assert_string_equal(text, "");
}

/* Such a program's next file has the number 0. */
static void files_are_read_where_standard_input_is_closed(void **state)
{
    char text[8];
    const char *path = file_of("text");

    (void)state;
    close(STDIN_FILENO);
    assert_int_equal(linux_read_file(path, text, sizeof text), 4);
    assert_string_equal(text, "text");
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1); /* it is closed again */
}

static void links_are_told_as_far_as_there_is_room(void **state)
{
    char path[] = "/tmp/prairie-linux-XXXXXX", text[8];

    (void)state;
    assert_non_null(mkdtemp(path));
    assert_false(os_link_text(path, text, sizeof text));
    assert_int_equal(rmdir(path), 0);
    assert_false(os_link_text(path, text, sizeof text));
    assert_int_equal(symlink("0123456", path), 0);
    memset(text, 'x', sizeof text);
    assert_true(os_link_text(path, text, sizeof text));
    assert_string_equal(text, "0123456");
    memset(text, 'x', sizeof text);
    assert_true(os_link_text(path, text, sizeof text - 1));
    assert_string_equal(text, "012345");
    assert_int_equal(text[7], 'x');
    assert_int_equal(unlink(path), 0);
}

/* ---- facts ---- */

static void expect_mode(const char *contents, const char *mode)
{
    char text[16];

    file_instead = file_of(contents);
    os_huge_page_mode(text, sizeof text);
    assert_string_equal(text, mode);
}

static void the_mode_of_huge_pages_is_in_brackets(void **state)
{
    char text[16];

    (void)state;
    expect_mode("always [madvise] never\n", "madvise");
    expect_mode("[always] madvise never\n", "always");
    expect_mode("always madvise [never]\n", "never");
    expect_mode("", "not supported");
    file_instead = file_of("always [madvise] never\n");
    memset(text, 'x', sizeof text);
    os_huge_page_mode(text, 5);
    assert_string_equal(text, "madv");
    assert_int_equal(text[5], 'x');
    answer(SYS_openat, -ENOENT, 1);
    os_huge_page_mode(text, sizeof text);
    assert_string_equal(text, "not supported");
}

static void pages_are_counted_from_the_file(void **state)
{
    (void)state;
    file_instead = file_of("1234 567 89 1 0 2 0\n");
    assert_int_equal(os_address_space_used(), bytes_of(1234));
    assert_int_equal(os_own_bytes(), bytes_of(567 - 89));
    file_instead = file_of("90 12 12 3\n");
    assert_int_equal(os_own_bytes(), 0);
    file_instead = file_of("90 12 13 3\n");
    assert_int_equal(os_own_bytes(), 0);
    file_instead = file_of("90");
    assert_int_equal(os_address_space_used(), bytes_of(90));
    assert_int_equal(os_own_bytes(), 0);
    answer(SYS_openat, -EACCES, 2);
    assert_int_equal(os_address_space_used(), 0);
    assert_int_equal(os_own_bytes(), 0);
}

static void the_limit_of_address_space_is_the_soft_one(void **state)
{
    struct rlimit limit;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    if (limit.rlim_cur == RLIM_INFINITY) assert_true(os_address_space_limit() == SIZE_MAX);
    answer(SYS_prlimit64, -EPERM, 1);
    assert_true(os_address_space_limit() == SIZE_MAX);
    limit.rlim_cur = 1000 * 1024 * 1024;
    if (setrlimit(RLIMIT_AS, &limit) != 0) skip(); /* shadow memory has more */
    assert_int_equal(os_address_space_limit(), limit.rlim_cur);
}

static void cores_are_those_it_may_run_on(void **state)
{
    cpu_set_t all, one;
    int core = sched_getcpu();

    (void)state;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || core < 0) skip();
    assert_int_equal(os_core_count(), CPU_COUNT(&all));
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) skip();
    assert_int_equal(os_core_count(), 1);
    assert_int_equal(os_core_current(), core);
    answer(SYS_sched_getaffinity, -EINVAL, 1);
    assert_int_equal(os_core_count(), 1);
    answer(SYS_sched_getaffinity, 0, 1);
    assert_int_equal(os_core_count(), 1);
}

static void a_core_that_is_not_told_is_no_error(void **state)
{
    (void)state;
    tells_no_core = true;
    errno = EDOM;
    (void)os_core_current();
    assert_int_equal(errno, EDOM);
}

/* As many as the kernel can know; each word counts, and each bit of it. */
static void cores_of_a_large_machine_are_counted(void **state)
{
    static unsigned long mask[16384 / (8 * sizeof(unsigned long))];
    const size_t words = sizeof mask / sizeof mask[0];

    (void)state;
    cores = mask;
    cores_bytes = sizeof mask;
    mask[0] = 1;
    mask[1] = 6;
    mask[words - 1] = ~(unsigned long)0;
    assert_int_equal(os_core_count(), 3 + 8 * sizeof mask[0]);
    cores_bytes = 2 * sizeof mask[0];
    assert_int_equal(os_core_count(), 3);
    mask[0] = mask[1] = 0;
    assert_int_equal(os_core_count(), 1);
}

static void settings_have_their_whole_name(void **state)
{
    static char longer[] = "NAME_LONGER=1", shorter[] = "NAM=2", other[] = "XAME=3",
                bare[] = "NAME", name[] = "NAME=value", again[] = "NAME=later", empty[] = "EMPTY=";
    static char *settings[] = { longer, shorter, other, bare, name, again, empty, NULL };

    (void)state;
    environ = settings;
    assert_string_equal(os_setting("NAME"), "value");
    assert_string_equal(os_setting("EMPTY"), "");
    assert_null(os_setting("NA"));
    assert_null(os_setting("NAMES"));
    settings[0] = NULL;
    assert_null(os_setting("NAME"));
    environ = NULL;
    assert_null(os_setting("NAME"));
}

static void the_process_and_its_pages_are_known(void **state)
{
    (void)state;
    assert_int_equal(os_process_id(), getpid());
    assert_int_equal(os_page_bytes(), sysconf(_SC_PAGESIZE));
    assert_int_equal(os_page_bytes(), sysconf(_SC_PAGESIZE)); /* from where it is kept, too */
    assert_non_null(os_next_symbol("strlen"));
    assert_null(os_next_symbol("no_such_function"));
    assert_false(os_other_free((void *)1));
    assert_true(os_other_bytes((void *)1) == SIZE_MAX);
}

static void pages_are_as_long_as_the_kernel_says(void **state)
{
    (void)state;
    tell(0, AT_PAGESZ, 16384);
    assert_int_equal(os_page_bytes(), 16384);
    tell(0, AT_PAGESZ, 32768);
    assert_int_equal(os_page_bytes(), 16384); /* asked once */
}

static void pages_have_a_length_of_which_nothing_is_said(void **state)
{
    (void)state;
    tell(0, AT_PAGESZ, 0);
    assert_int_equal(os_page_bytes(), 4096);
}

static void the_highest_address_is_that_of_the_programs_name(void **state)
{
    uintptr_t here = (uintptr_t)&state;

    (void)state;
    if (sizeof here == 4) {
        assert_true(os_highest_address() == UINTPTR_MAX);
        return;
    }
    assert_true(os_highest_address() >= here);
    tell(0, AT_EXECFN, 3000);
    tell(1, AT_RANDOM, 2000);
    assert_int_equal(os_highest_address(), 3000);
    tell(0, AT_EXECFN, 0);
    assert_int_equal(os_highest_address(), 2000);
    tell(1, AT_RANDOM, 0);
    assert_in_range(os_highest_address(), here - 4096, here + 4096);
}

static void programs_with_more_rights_have_no_settings(void **state)
{
    static char name[] = "NAME=value";
    static char *settings[] = { name, NULL };

    (void)state;
    environ = settings;
    assert_string_equal(os_setting("NAME"), "value");
    tell(0, AT_SECURE, 1);
    assert_null(os_setting("NAME"));
}

UNIT_MAIN(
    UNIT_TEST(memory_is_closed_open_or_readable), UNIT_TEST(only_what_is_committed_is_dumped),
    UNIT_TEST(huge_pages_are_wished_for_or_against),
    UNIT_TEST(a_first_touch_takes_the_threads_time), UNIT_TEST(what_the_kernel_refuses_is_told),
    UNIT_TEST(purging_is_tried_again_a_few_times), UNIT_TEST(what_cannot_be_unmapped_is_purged),
    UNIT_TEST(touching_keeps_contents), UNIT_TEST(a_child_has_what_is_not_kept_from_it),
    UNIT_TEST(pages_move_and_leave_zeros), UNIT_TEST(pages_move_where_the_kernel_leaves_nothing),
    UNIT_TEST(several_mappings_are_moved_by_halves), UNIT_TEST(a_second_half_that_stays_is_copied),
    UNIT_TEST(a_move_that_fails_half_way_is_made_by_copying),
    UNIT_TEST(what_the_kernel_took_away_for_good_ends_the_process),
    UNIT_TEST(pages_move_out_and_grow), UNIT_TEST(what_cannot_grow_comes_back),
    UNIT_TEST(a_mapping_shrinks_and_moves_only_if_it_may),
    UNIT_TEST(what_is_not_there_is_not_copied),
    UNIT_TEST(without_the_right_to_copy_pages_are_tried), UNIT_TEST(clocks_are_the_systems),
    UNIT_TEST(a_sleep_ends_with_its_time_or_its_word), UNIT_TEST(a_wait_lasts_until_it_is_woken),
    UNIT_TEST(handlers_are_called_around_a_fork), UNIT_TEST(nobody_else_has_the_files_in_a_fork),
    UNIT_TEST(files_are_made_anew_written_and_read), UNIT_TEST(a_file_is_moved_in_pieces),
    UNIT_TEST(interruptions_are_borne_but_not_for_ever), UNIT_TEST(a_small_file_is_read_as_a_text),
    UNIT_TEST(files_are_read_where_standard_input_is_closed),
    UNIT_TEST(links_are_told_as_far_as_there_is_room),
    UNIT_TEST(the_mode_of_huge_pages_is_in_brackets), UNIT_TEST(pages_are_counted_from_the_file),
    UNIT_TEST(the_limit_of_address_space_is_the_soft_one), UNIT_TEST(cores_are_those_it_may_run_on),
    UNIT_TEST(a_core_that_is_not_told_is_no_error), UNIT_TEST(cores_of_a_large_machine_are_counted),
    UNIT_TEST(settings_have_their_whole_name), UNIT_TEST(the_process_and_its_pages_are_known),
    UNIT_TEST(pages_are_as_long_as_the_kernel_says),
    UNIT_TEST(pages_have_a_length_of_which_nothing_is_said),
    UNIT_TEST(the_highest_address_is_that_of_the_programs_name),
    UNIT_TEST(programs_with_more_rights_have_no_settings))
