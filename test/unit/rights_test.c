/* rights_test.c - what is read of a thread's status, and whether it differs. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#define PRAIRIE_KERNEL_GATE
#include "os/linux_rights.c"

#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* ---- a kernel of the test's own, which stands before the real one when it is asked to ---- */

static struct {
    bool stands;
    bool has_table;            /* it makes a table of descriptors */
    int file[RIGHTS_OF_COUNT]; /* what it says of each thread; -1: nothing */
    bool knows_capabilities;
    uint32_t permitted[2], user[3], group[3];
    unsigned files_open; /* by the one that looks */
    bool has_ended;      /* the background thread */
} given;

bool linux_background_lives(void) { return !given.has_ended; }

static long give_ids(const uint32_t *id, long a, long b, long c)
{
    *(uint32_t *)a = id[0];
    *(uint32_t *)b = id[1];
    *(uint32_t *)c = id[2];
    return 0;
}

static long give_status(const char *path, long flags)
{
    char name[64];
    enum rights_of whose = RIGHTS_OF_ITSELF;
    long file;

    if (strcmp(path, "/proc/self/status") == 0) whose = RIGHTS_OF_FIRST;
    else if (strncmp(path, "/proc/self/task/", 16) == 0) whose = RIGHTS_OF_STARTER;
    else assert_string_equal(path, "/proc/thread-self/status");
    if (given.file[whose] < 0) return -ENOENT;
    snprintf(name, sizeof name, "/proc/self/fd/%d", given.file[whose]);
    file = open(name, (int)flags);
    assert_true(fcntl((int)file, F_GETFD)
                & FD_CLOEXEC); /* no program gets it that is started meanwhile */
    given.files_open++;
    return file;
}

/* With none of the program's files in it. The kernel takes unsigned numbers, whatever a long
 * holds. */
static long give_table(long first, long last, long flags)
{
    assert_int_equal(first, 0);
    assert_int_equal((uint32_t)last, UINT32_MAX);
    assert_int_equal(flags, CLOSE_RANGE_UNSHARE);
    return given.has_table ? 0 : -ENOSYS;
}

static long give_capabilities(const struct __user_cap_header_struct *header,
                              struct __user_cap_data_struct *data)
{
    assert_int_equal(header->pid, 0); /* of the thread that asks */
    data[0].permitted = given.permitted[0];
    data[1].permitted = given.permitted[1];
    return given.knows_capabilities ? 0 : -EPERM;
}

long kernel_gate(long number, long a, long b, long c, long d, long e, long f)
{
    long result;

    if (given.stands) {
        if (number == SYS_openat) return give_status((const char *)b, c);
        if (number == SYS_close_range) return give_table(a, b, c);
        if (number == SYS_capget) return give_capabilities((void *)a, (void *)b);
        if (number == SYS_close) given.files_open--;
#if defined(SYS_getresuid32)
        if (number == SYS_getresuid32) return give_ids(given.user, a, b, c);
        if (number == SYS_getresgid32) return give_ids(given.group, a, b, c);
#else
        if (number == SYS_getresuid) return give_ids(given.user, a, b, c);
        if (number == SYS_getresgid) return give_ids(given.group, a, b, c);
#endif
    }
    result = syscall(number, a, b, c, d, e, f);
    return result == -1 ? -errno : result;
}

/* ---- what is read ---- */

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

/* Nor are two of a thousand taken for the same. */
static void other_ids_are_other_rights(void **state)
{
    enum { COUNT = 1000 };
    uint64_t mixed[COUNT];

    (void)state;
    for (unsigned i = 0; i < COUNT; i++) {
        char text[64];

        snprintf(text, sizeof text, "State:\tS\nUid:\t%u\t0\t0\t0\n", 1000 + i);
        mixed[i] = mixed_text(text, strlen(text));
        for (unsigned j = 0; j < i; j++) assert_true(mixed[j] != mixed[i]);
    }
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
    assert_true(mixed_text(text, 2049) != mixed_text(text, 2048)); /* read by itself */
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

/* ---- could it lose rights? ---- */

static bool could_lose(void)
{
    linux_rights_begin();
    assert_true(os_thread_rights_may_part(true));
    return os_thread_rights_may_part(false);
}

static void start_without_rights(void)
{
    given.stands = true;
    given.knows_capabilities = true;
    for (unsigned i = 0; i < 3; i++) given.user[i] = 1000, given.group[i] = 100;
}

static void whoever_has_rights_could_lose_them(void **state)
{
    (void)state;
    start_without_rights();
    assert_false(could_lose());
    for (unsigned i = 0; i < 2; i++) {
        given.permitted[i] = 1;
        assert_true(could_lose());
        given.permitted[i] = 0;
    }
    for (unsigned i = 0; i < 3; i++) {
        given.user[i]++;
        assert_true(could_lose());
        given.user[i]--;
        given.group[i]++;
        assert_true(could_lose());
        given.group[i]--;
    }
    assert_false(could_lose());
    given.knows_capabilities = false;
    assert_true(could_lose());
}

/* ---- do they differ? ---- */

static void set_status(enum rights_of whose, const char *text)
{
    assert_int_equal(ftruncate(given.file[whose], 0), 0);
    assert_int_equal(pwrite(given.file[whose], text, strlen(text), 0), (ssize_t)strlen(text));
}

static const char many[] = "State:\tS\nUid:\t0\n", few[] = "State:\tS\nUid:\t1\n",
                  fewer[] = "State:\tS\nUid:\t2\n", ended[] = "State:\tZ\nUid:\t0\n";

static void set_statuses(const char *itself, const char *first, const char *starter)
{
    set_status(RIGHTS_OF_ITSELF, itself);
    set_status(RIGHTS_OF_FIRST, first);
    set_status(RIGHTS_OF_STARTER, starter);
}

/* All threads have many rights at first; the thread knows them when it has looked once. */
static void start_with_many(bool has_table, bool could)
{
    start_without_rights();
    given.has_table = has_table;
    given.permitted[0] = could;
    for (unsigned i = 0; i < RIGHTS_OF_COUNT; i++) given.file[i] = memfd_create("status", 0);
    set_statuses(many, many, many);
    linux_rights_begin();
}

static void expect_parted(const char *itself, const char *first, const char *starter, bool parted)
{
    set_statuses(itself, first, starter);
    assert_int_equal(os_thread_rights_parted(), parted);
    /* A table's files stay open, others do not. */
    assert_int_equal(given.files_open, given.has_table ? RIGHTS_OF_COUNT : 0);
}

static void rights_part_when_nobody_has_them_any_more(bool has_table)
{
    start_with_many(has_table, true);
    expect_parted(many, many, many, false);
    expect_parted(many, few, many, false);
    expect_parted(many, many, few, false);
    expect_parted(many, ended, many, false);
    expect_parted(many, many, ended, false);
    expect_parted(many, few, few, true);
    expect_parted(many, few, fewer, true);
    expect_parted(many, ended, ended, true);
    expect_parted(few, few, few, false); /* a filter for all threads */
    expect_parted(few, many, many, true);
    expect_parted(many, few, many, false); /* it has other ones by now, too */
    expect_parted(few, fewer, few, false);
    expect_parted(few, few, fewer, false);
    /* Its own have changed since it looked, and are still somebody's. */
    expect_parted(many, many, many, false);
    expect_parted(few, few, fewer, false);
    expect_parted(many, many, many, false);
    expect_parted(few, fewer, few, false);
}

static void rights_are_compared_in_files_that_stay_open(void **state)
{
    (void)state;
    rights_part_when_nobody_has_them_any_more(true);
}

static void rights_are_compared_in_files_opened_each_time(void **state)
{
    (void)state;
    rights_part_when_nobody_has_them_any_more(false);
}

/* Then it matters whether the program could have given some up. */
static void rights_that_cannot_be_told(bool could)
{
    start_with_many(false, could);
    expect_parted("", many, many, could);
    linux_rights_begin();
    expect_parted(many, many, many, false);
    expect_parted("", few, few, could);
    linux_rights_begin();
    expect_parted("", "", "", could);
    linux_rights_begin();
    given.file[RIGHTS_OF_ITSELF] = -1;
    assert_int_equal(os_thread_rights_parted(), could);
}

static void rights_that_cannot_be_told_have_parted_if_they_could(void **state)
{
    (void)state;
    rights_that_cannot_be_told(false);
    rights_that_cannot_be_told(true);
}

static void *ask_for_own_files(void *unused)
{
    (void)unused;
    return linux_has_own_files() ? &given : NULL;
}

static void only_the_thread_with_a_table_has_own_files(void **state)
{
    pthread_t other;
    void *has = &given;

    (void)state;
    start_with_many(true, true);
    assert_false(linux_has_own_files());
    (void)os_thread_rights_parted();
    assert_true(linux_has_own_files());
    assert_int_equal(pthread_create(&other, NULL, ask_for_own_files, NULL), 0);
    assert_int_equal(pthread_join(other, &has), 0);
    assert_null(has);
    given.has_ended = true; /* another one may have its number */
    assert_false(linux_has_own_files());
    given.has_ended = false;
    linux_rights_begin(); /* likewise before the next one has looked */
    assert_false(linux_has_own_files());
    given.has_table = false;
    (void)os_thread_rights_parted();
    assert_false(linux_has_own_files());
}

static void numbers_have_all_their_digits(void **state)
{
    static const unsigned long numbers[] = { 0, 1, 9, 10, 11, 99, 100, 109, 4000000000 };

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char text[32], wanted[32];

        *linux_write_number(text, numbers[i]) = '\0';
        snprintf(wanted, sizeof wanted, "%lu", numbers[i]);
        assert_string_equal(text, wanted);
    }
}

UNIT_MAIN(UNIT_TEST(what_is_no_right_does_not_matter), UNIT_TEST(every_right_matters),
          UNIT_TEST(other_ids_are_other_rights), UNIT_TEST(a_thread_that_has_ended_has_none),
          UNIT_TEST(a_long_line_matters_to_its_end), UNIT_TEST(a_name_across_two_reads_matters),
          UNIT_TEST(the_name_of_the_starter_is_its_number),
          UNIT_TEST(whoever_has_rights_could_lose_them),
          UNIT_TEST(rights_are_compared_in_files_that_stay_open),
          UNIT_TEST(rights_are_compared_in_files_opened_each_time),
          UNIT_TEST(rights_that_cannot_be_told_have_parted_if_they_could),
          UNIT_TEST(only_the_thread_with_a_table_has_own_files),
          UNIT_TEST(numbers_have_all_their_digits))
