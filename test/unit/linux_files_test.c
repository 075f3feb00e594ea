/* linux_files_test.c - files, and what those of /proc and /sys say. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "kernel_gate.h"

#include "unit.h"

#include "real_pages.h"

#include <sys/stat.h>

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

/* The name of a profile can be guessed, and the folder be the user's. */
static void a_program_with_more_rights_writes_through_no_link(void **state)
{
    char path[] = "/tmp/prairie-linux-XXXXXX", link[64];
    int file = mkstemp(path);

    (void)state;
    assert_int_equal(write(file, "text", 4), 4);
    close(file);
    snprintf(link, sizeof link, "%s-link", path);
    assert_int_equal(symlink(path, link), 0);
    tell(0, AT_SECURE, 1);
    assert_int_equal(os_file_create(link), -1);
    expect_file(path, "text");
    file = os_file_create(path);
    assert_true(file >= 0);
    os_file_close(file);
    tell(0, AT_SECURE, 0);
    file = os_file_create(link);
    assert_true(file >= 0);
    assert_true(os_file_write(file, "more", 4));
    os_file_close(file);
    expect_file(path, "more");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(unlink(path), 0);
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

/* Who wants no waiting in its own writes does not want half a message. */
static void a_full_pipe_is_waited_for_but_not_for_ever(void **state)
{
    const char *path = file_of("");
    int file = os_file_create(path);

    (void)state;
    answer(SYS_write, -EAGAIN, 20);
    assert_true(os_file_write(file, "text", 4));
    answer(SYS_write, -EAGAIN, READER_WAITS_MAX);
    assert_false(os_file_write(file, "more", 4));
    assert_int_equal(gate.asked, READER_WAITS_MAX);
    answer(SYS_write, -EAGAIN, 2); /* no second time, until something is read */
    assert_false(os_file_write(file, "more", 4));
    assert_int_equal(gate.asked, 1);
    assert_false(os_file_write(file, "more", 4));
    assert_true(os_file_write(file, "er ", 3));
    transfer_bytes_max = 1; /* each of which is waited for anew */
    answer_some(SYS_write, -EAGAIN, 0, 2, 8);
    assert_true(os_file_write(file, "longer", 6));
    os_file_close(file);
    expect_file(path, "texter longer");
}

static void a_small_file_is_read_as_a_text(void **state)
{
    char text[8];
    const char *path = file_of("0123456789");

    (void)state;
    memset(text, 'x', sizeof text);
    assert_int_equal(read_file(path, text, sizeof text - 1), 6);
    assert_string_equal(text, "012345");
    assert_int_equal(text[7], 'x');
    assert_int_equal(read_file("/no/such/file", text, sizeof text), 0);
    assert_string_equal(text, "");
}

/* Such a program's next file has the number 0. */
static void files_are_read_where_standard_input_is_closed(void **state)
{
    char text[8];
    const char *path = file_of("text");

    (void)state;
    close(STDIN_FILENO);
    assert_int_equal(read_file(path, text, sizeof text), 4);
    assert_string_equal(text, "text");
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1); /* it is closed again */
}

/* What the program writes to a stream that it has closed is not to end in the file. */
static void files_are_not_made_as_a_standard_stream(void **state)
{
    char path[] = "/tmp/prairie-linux-XXXXXX";
    int kept = dup(STDIN_FILENO), file = mkstemp(path);

    (void)state;
    close(file);
    close(STDIN_FILENO);
    file = os_file_create(path);
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
    assert_true(file > STDERR_FILENO);
    assert_true(fcntl(file, F_GETFD) & FD_CLOEXEC);
    assert_true(os_file_write(file, "some text", 9));
    os_file_close(file);
    if (kept >= 0) assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    expect_file(path, "some text");
    assert_int_equal(unlink(path), 0);
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

/* ---- what they say ---- */

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

static void what_the_machine_has_left_is_a_line_of_the_file(void **state)
{
    (void)state;
    file_instead = file_of("MemTotal:       24561234 kB\nMemFree:          123456 kB\n"
                           "MemAvailable:   20123456 kB\nBuffers:            1234 kB\n");
    if (SIZE_MAX / KiB > 20123456) assert_int_equal(os_machine_room_bytes(), 20123456 * KiB);
    else assert_true(os_machine_room_bytes() == SIZE_MAX);
    file_instead = file_of("MemTotal: 4 kB\nMemAvailable: 3 kB\n");
    assert_int_equal(os_machine_room_bytes(), 3 * KiB);
    file_instead = file_of("MemTotal: 4 kB\nMemFree: 3 kB\n"); /* an old kernel */
    assert_true(os_machine_room_bytes() == SIZE_MAX);
    answer(SYS_openat, -EACCES, 1);
    assert_true(os_machine_room_bytes() == SIZE_MAX);
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

static void mappings_are_read_from_their_start(void **state)
{
    char text[16] = "";
    int file;

    (void)state;
    file_instead = file_of("1000-2000 r--p\n");
    file = os_mappings_open();
    assert_int_equal(os_file_read(file, text, sizeof text), 15);
    assert_string_equal(text, "1000-2000 r--p\n");
    os_file_close(file);
    answer(SYS_openat, -EACCES, 1);
    assert_int_equal(os_mappings_open(), -1);
}

static bool the_process_is_told_of(void)
{
    size_t own = os_own_bytes();
    char text[64];

    if (own == 0 || os_address_space_used() <= own) return false;
    if (!obeys_advice()) return true; /* qemu 10 ends whoever opens the mappings then */
    return os_file_read(os_mappings_open(), text, sizeof text) == sizeof text;
}

/* Then the files by its name are empty. */
static void the_first_thread_may_have_ended(void **state)
{
    (void)state;
    expect_without_first_thread(the_process_is_told_of);
}

UNIT_MAIN(UNIT_TEST(files_are_made_anew_written_and_read),
          UNIT_TEST(a_program_with_more_rights_writes_through_no_link),
          UNIT_TEST(a_file_is_moved_in_pieces), UNIT_TEST(interruptions_are_borne_but_not_for_ever),
          UNIT_TEST(a_full_pipe_is_waited_for_but_not_for_ever),
          UNIT_TEST(a_small_file_is_read_as_a_text),
          UNIT_TEST(files_are_read_where_standard_input_is_closed),
          UNIT_TEST(files_are_not_made_as_a_standard_stream),
          UNIT_TEST(links_are_told_as_far_as_there_is_room),
          UNIT_TEST(the_mode_of_huge_pages_is_in_brackets),
          UNIT_TEST(what_the_machine_has_left_is_a_line_of_the_file),
          UNIT_TEST(pages_are_counted_from_the_file), UNIT_TEST(mappings_are_read_from_their_start),
          UNIT_TEST(the_first_thread_may_have_ended))
