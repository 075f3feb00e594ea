/* rights_test.c - what is read of a thread's status, and whether it differs. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/linux_rights.c"

#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static const char usual[] = "Name:\tUid:\nUmask:\t0022\nState:\tS (sleeping)\nUid:\t1\t1\t1\t1\n"
                            "Gid:\t2\t2\t2\t2\nFDSize:\t64\nGroups:\t3 4 \nVmRSS:\t 100 kB\n"
                            "CapInh:\t0\nCapPrm:\t0\nCapEff:\t0\nCapBnd:\tff\nCapAmb:\t0\n"
                            "NoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\nThreads:\t2\n";

static uint64_t mixed_text(const char *text, size_t bytes)
{
    int file = memfd_create("status", 0);
    uint64_t mixed;

    assert_true(file >= 0);
    assert_int_equal(write(file, text, bytes), (ssize_t)bytes);
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
    mixed = read_status(file);
    close(file);
    return mixed;
}

/* The usual status with one piece of it replaced. */
static uint64_t mixed_with(const char *piece, const char *other)
{
    const char *at = strstr(usual, piece);
    char text[1024];

    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - usual), usual, other, at + strlen(piece));
    return mixed_text(text, strlen(text));
}

static uint64_t mixed_usual(void) { return mixed_text(usual, sizeof usual - 1); }

static void what_is_no_right_does_not_matter(void **state)
{
    (void)state;
    assert_int_not_equal(mixed_usual(), 0);
    assert_true(mixed_with("100 kB", "2 kB") == mixed_usual());
    assert_true(mixed_with("S (sleeping)", "R (running)") == mixed_usual());
    assert_true(mixed_with("Name:\tUid:", "Name:\tGroups:\t1") == mixed_usual());
    assert_true(mixed_with("Threads:\t2", "Threads:\t3") == mixed_usual());
    /* Not the start of the line behind one that matters, nor one too short for a name. */
    assert_true(mixed_with("FDSize:\t64", "VmPeak:\t64") == mixed_usual());
    assert_true(mixed_with("FDSize:\t64", "x") == mixed_usual());
}

static void every_right_matters(void **state)
{
    static const char *const piece[] = { "Uid:\t1\t1\t1\t1", "Gid:\t2\t2\t2\t2",   "Groups:\t3 4 ",
                                         "CapInh:\t0",       "CapPrm:\t0",         "CapEff:\t0",
                                         "CapBnd:\tff",      "CapAmb:\t0",         "NoNewPrivs:\t0",
                                         "Seccomp:\t0",      "Seccomp_filters:\t0" };

    (void)state;
    for (size_t i = 0; i < sizeof piece / sizeof piece[0]; i++) {
        char other[64];

        snprintf(other, sizeof other, "%s", piece[i]);
        other[strlen(other) - 1] ^= 1;
        assert_true(mixed_with(piece[i], other) != mixed_usual());
        assert_int_not_equal(mixed_with(piece[i], other), 0);
    }
    assert_true(mixed_with("Uid:\t1\t1\t1\t1", "Uid:\t1\t1\t0\t1") != mixed_usual());
}

static void a_thread_that_has_ended_has_none(void **state)
{
    (void)state;
    assert_int_equal(mixed_with("S (sleeping)", "Z (zombie)"), 0);
    assert_int_equal(mixed_with("S (sleeping)", "X (dead)"), 0);
    assert_int_equal(mixed_text("", 0), 0);
    assert_int_equal(read_status(-1), 0);
}

/* Longer than what is read at once, wherever that ends. */
static void a_long_line_matters_to_its_end(void **state)
{
    static char text[16384];
    size_t length;

    (void)state;
    length = (size_t)snprintf(text, sizeof text, "State:\tS\nGroups:\t");
    while (length < sizeof text - 64)
        length += (size_t)snprintf(text + length, sizeof text - length, "1000%zu ", length);
    for (size_t cut = 2000; cut < 2100; cut++) {
        uint64_t before = mixed_text(text, length);

        text[cut] ^= 1;
        assert_true(mixed_text(text, length) != before);
        text[cut] ^= 1;
    }
    assert_true(mixed_text(text, length) != mixed_text(text, length - 2));
}

/* The name of a line, of which one read has the start and the next one the end, is known, wherever
 * it is cut. */
static void a_name_across_two_reads_matters(void **state)
{
    enum { READ_BYTES = 2048, LABEL_BYTES = 4 };
    static char text[2 * READ_BYTES];

    (void)state;
    for (size_t before = 1; before <= LABEL_BYTES; before++) {
        size_t at = READ_BYTES - before;
        int length = snprintf(text + at, sizeof text - at, "Uid:\t1\nThreads:\t2\n");
        uint64_t mixed;

        memset(text, 'x', at - 1);
        text[at - 1] = '\n';
        mixed = mixed_text(text, at + (size_t)length);
        assert_int_not_equal(mixed, 0);
        assert_true(mixed == mixed_text(text + at, (size_t)length));
        text[at + 5] ^= 1;
        assert_true(mixed_text(text, at + (size_t)length) != mixed);
        text[at + length - 2] ^= 1;
        assert_true(mixed_text(text, at + (size_t)length) == mixed_text(text + at, (size_t)length));
    }
}

static void the_name_of_the_starter_is_its_number(void **state)
{
    char name[64];

    (void)state;
    note_starter();
    snprintf(name, sizeof name, "/proc/self/task/%ld/status", (long)syscall(SYS_gettid));
    assert_string_equal(rights_known.starter, name);
    assert_int_not_equal(rights_of(RIGHTS_OF_STARTER), 0);
    assert_true(rights_of(RIGHTS_OF_STARTER) == rights_of(RIGHTS_OF_ITSELF));
    assert_true(rights_of(RIGHTS_OF_FIRST) == rights_of(RIGHTS_OF_ITSELF));
}

UNIT_MAIN(UNIT_TEST(what_is_no_right_does_not_matter), UNIT_TEST(every_right_matters),
          UNIT_TEST(a_thread_that_has_ended_has_none), UNIT_TEST(a_long_line_matters_to_its_end),
          UNIT_TEST(a_name_across_two_reads_matters),
          UNIT_TEST(the_name_of_the_starter_is_its_number))
