/* message_test.c - where messages go: to what the standard error was, or to what it is. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "kernel_gate.h"
#include "os/linux_message.c"

#include "unit.h"

#include <sys/socket.h>

static bool has_own_files;

bool linux_has_own_files(void) { return has_own_files; }

/* ---- files ---- */

enum { COPY = COPY_FROM, LATER = 300 };

/* Those that take messages: at first the standard error, later another one, or one of the
 * program's. */
static int first, second, third;

static int file_far_up(const char *name)
{
    int low = memfd_create(name, 0), file = fcntl(low, F_DUPFD, LATER);

    assert_true(low >= 0 && file >= LATER);
    close(low);
    return file;
}

static void start_files(void)
{
    first = file_far_up("first");
    second = file_far_up("second");
    third = file_far_up("third");
    assert_int_equal(dup2(first, STDERR_FILENO), STDERR_FILENO);
}

/* Then another file is the standard error. */
static void start_copy(void)
{
    start_files();
    os_keep_error_output();
    assert_int_equal(dup2(second, STDERR_FILENO), STDERR_FILENO);
}

static bool has(int file, const char *text)
{
    char read[64] = "";

    assert_true(pread(file, read, sizeof read - 1, 0) >= 0);
    return strcmp(read, text) == 0;
}

static void expect(const char *in_first, const char *in_second, const char *in_third)
{
    assert_true(has(first, in_first));
    assert_true(has(second, in_second));
    assert_true(has(third, in_third));
}

/* No descriptor is left behind. */
static void say(void)
{
    int free_before = dup(first), free_after;

    close(free_before);
    port_write_error("words\n", 6);
    free_after = dup(first);
    close(free_after);
    assert_int_equal(free_after, free_before);
}

/* ---- without files of its own ---- */

static void without_a_copy_the_standard_error_is_told(void **state)
{
    (void)state;
    start_files();
    say();
    expect("words\n", "", "");
    assert_int_equal(dup2(second, STDERR_FILENO), STDERR_FILENO);
    say();
    expect("words\n", "words\n", "");
}

static void a_copy_is_kept_where_no_program_looks(void **state)
{
    (void)state;
    start_copy();
    assert_true(fcntl(COPY, F_GETFD) & FD_CLOEXEC);
    os_keep_error_output(); /* there is one */
    assert_int_equal(fcntl(COPY + 1, F_GETFD), -1);
    say();
    expect("words\n", "", "");
    close(STDERR_FILENO);
    say();
    expect("words\nwords\n", "", "");
}

static void with_few_descriptors_a_copy_is_kept(void **state)
{
    int low;

    (void)state;
    start_files();
    low = fcntl(first, F_DUPFD, COPY_FROM_LOW);
    close(low);
    answer(SYS_fcntl, -EINVAL, 1);
    os_keep_error_output();
    assert_int_equal(error_copy.number, low);
    assert_int_equal(dup2(second, STDERR_FILENO), STDERR_FILENO);
    say();
    expect("words\n", "", "");
}

static void without_a_copy_there_is_no_harm(void **state)
{
    (void)state;
    answer(SYS_fcntl, -EMFILE, 2);
    start_copy();
    assert_int_equal(fcntl(COPY, F_GETFD), -1);
    say();
    expect("", "words\n", "");
}

static void when_the_copy_is_closed_the_standard_error_is_told(void **state)
{
    (void)state;
    start_copy();
    close(COPY);
    say();
    expect("", "words\n", "");
}

static void a_file_of_the_programs_is_not_written_to(void **state)
{
    (void)state;
    start_copy();
    assert_int_equal(dup2(third, COPY), COPY);
    say();
    expect("", "words\n", "");
    assert_int_equal(dup2(first, COPY), COPY);
    say();
    expect("words\n", "words\n", "");
}

/* All of what it is known by must be the same. */
static void a_file_is_known_by_device_and_number(void **state)
{
    struct file_id id;

    (void)state;
    start_copy();
    id = error_copy.id;
    error_copy.id.device_minor++;
    say();
    error_copy.id = id;
    error_copy.id.device_major++;
    say();
    error_copy.id = id;
    error_copy.id.inode++;
    say();
    expect("", "words\nwords\nwords\n", "");
    error_copy.id = id;
    say();
    expect("words\n", "words\nwords\nwords\n", "");
}

/* Before 4.11: it is taken for the same, whatever it is. */
static void where_files_are_not_known_the_copy_is_trusted(void **state)
{
    (void)state;
    answer(SYS_statx, -ENOSYS, 1);
    start_copy();
    assert_int_equal(dup2(third, COPY), COPY);
    say();
    expect("", "", "words\n");
}

static void what_cannot_be_told_at_once_is_the_same(void **state)
{
    (void)state;
    start_copy();
    answer(SYS_statx, -ENOSYS, 1);
    say();
    expect("words\n", "", "");
    answer(SYS_statx, -EBADF, 1);
    say();
    expect("words\n", "words\n", "");
}

static void what_is_closed_meanwhile_is_no_copy(void **state)
{
    (void)state;
    start_copy();
    answer(SYS_write, -EBADF, 1);
    say();
    expect("", "words\n", "");
    answer(SYS_write, -EIO, 1); /* it was there */
    say();
    expect("", "words\n", "");
}

/* The one line that says why the process ends. */
static void a_message_that_signals_interrupt_is_written(void **state)
{
    (void)state;
    start_copy();
    answer(SYS_write, -EINTR, 3);
    say();
    expect("words\n", "", "");
}

/* ---- with descriptors of its own ---- */

/* The program's are asked for by their numbers. */
static void own_files_lead_to_the_programs(void **state)
{
    (void)state;
    start_copy();
    has_own_files = true;
    say();
    expect("words\n", "", "");
    assert_int_equal(dup2(third, COPY), COPY);
    say();
    expect("words\n", "words\n", "");
    close(COPY);
    close(STDERR_FILENO);
    say();
    expect("words\n", "words\n", "");
}

/* Which have no name. */
static void own_files_lead_to_sockets(void **state)
{
    int ends[2];
    char read[16] = "";

    (void)state;
    start_files();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(dup2(ends[0], STDERR_FILENO), STDERR_FILENO);
    has_own_files = true;
    if (syscall(SYS_pidfd_getfd, -1, 0, 0) < 0 && errno == ENOSYS) skip();
    say();
    assert_int_equal(recv(ends[1], read, sizeof read, MSG_DONTWAIT), 6);
    assert_string_equal(read, "words\n");
}

static void open_by_their_names(long number, long answer_of_it)
{
    start_copy();
    has_own_files = true;
    answer(number, answer_of_it, 1000);
    say();
    expect("words\n", "", "");
    say(); /* at the end of the file */
    expect("words\nwords\n", "", "");
    close(COPY);
    say();
    expect("words\nwords\n", "words\n", "");
}

static void what_may_not_be_asked_for_is_opened_by_name(void **state)
{
    (void)state;
    open_by_their_names(SYS_pidfd_getfd, -EPERM);
}

static void an_older_kernel_opens_by_name(void **state)
{
    (void)state;
    open_by_their_names(SYS_pidfd_open, -ENOSYS);
}

static bool say_and_hold(void)
{
    say();
    return true;
}

/* With its table, which is the others' as well. */
static void own_files_lead_to_the_programs_after_its_first_thread(void **state)
{
    (void)state;
    start_copy();
    has_own_files = true;
    expect_without_first_thread(say_and_hold);
    expect("words\n", "", "");
}

UNIT_MAIN(UNIT_TEST(without_a_copy_the_standard_error_is_told),
          UNIT_TEST(a_copy_is_kept_where_no_program_looks),
          UNIT_TEST(with_few_descriptors_a_copy_is_kept),
          UNIT_TEST(without_a_copy_there_is_no_harm),
          UNIT_TEST(when_the_copy_is_closed_the_standard_error_is_told),
          UNIT_TEST(a_file_of_the_programs_is_not_written_to),
          UNIT_TEST(a_file_is_known_by_device_and_number),
          UNIT_TEST(where_files_are_not_known_the_copy_is_trusted),
          UNIT_TEST(what_cannot_be_told_at_once_is_the_same),
          UNIT_TEST(what_is_closed_meanwhile_is_no_copy),
          UNIT_TEST(a_message_that_signals_interrupt_is_written),
          UNIT_TEST(own_files_lead_to_the_programs), UNIT_TEST(own_files_lead_to_sockets),
          UNIT_TEST(what_may_not_be_asked_for_is_opened_by_name),
          UNIT_TEST(an_older_kernel_opens_by_name),
          UNIT_TEST(own_files_lead_to_the_programs_after_its_first_thread))
