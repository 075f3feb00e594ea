/* linux_test.c - time, forks and facts as Linux tells them. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "kernel_gate.h"

#include "unit.h"

#include <sys/wait.h>

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

/* Between cores it may differ by a step. */
static void steps_are_some_tenths_of_a_millisecond(void **state)
{
    const uint32_t word = 0;
    uint64_t before_ns = port_now_ns(), passed_ns;
    uint32_t before = port_step(), passed;

    (void)state;
    os_sleep(&word, 0, 30);
    passed = port_step() - before;
    passed_ns = port_now_ns() - before_ns;
    assert_in_range(passed, passed_ns / 300000 - 1, passed_ns / 50000 + 1);
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
    assert_true(os_at_fork(note_before, note_parent, note_child));
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

/* ---- facts ---- */

static void the_limit_of_address_space_is_the_soft_one(void **state)
{
    struct rlimit limit, now;
    unsigned long pages;
    FILE *file = fopen("/proc/self/statm", "r");

    (void)state;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1); /* of shadow memory, too */
    fclose(file);
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    if (limit.rlim_cur == RLIM_INFINITY) assert_true(os_address_space_limit() == SIZE_MAX);
    answer(SYS_prlimit64, -EPERM, 1);
    assert_true(os_address_space_limit() == SIZE_MAX);
    limit.rlim_cur = pages * os_page_bytes() + 1000 * 1024 * 1024;
    if (setrlimit(RLIMIT_AS, &limit) != 0) skip();
    assert_int_equal(getrlimit(RLIMIT_AS, &now), 0);
    if (now.rlim_cur != limit.rlim_cur) skip(); /* qemu's user emulation obeys none */
    assert_int_equal(os_address_space_limit(), limit.rlim_cur);
    assert_true(os_address_space_has_room(4096));
    assert_false(os_address_space_has_room(limit.rlim_cur));
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

UNIT_MAIN(UNIT_TEST(clocks_are_the_systems), UNIT_TEST(steps_are_some_tenths_of_a_millisecond),
          UNIT_TEST(a_sleep_ends_with_its_time_or_its_word),
          UNIT_TEST(a_wait_lasts_until_it_is_woken), UNIT_TEST(handlers_are_called_around_a_fork),
          UNIT_TEST(nobody_else_has_the_files_in_a_fork),
          UNIT_TEST(the_limit_of_address_space_is_the_soft_one),
          UNIT_TEST(cores_are_those_it_may_run_on), UNIT_TEST(a_core_that_is_not_told_is_no_error),
          UNIT_TEST(cores_of_a_large_machine_are_counted),
          UNIT_TEST(settings_have_their_whole_name), UNIT_TEST(the_process_and_its_pages_are_known),
          UNIT_TEST(pages_are_as_long_as_the_kernel_says),
          UNIT_TEST(pages_have_a_length_of_which_nothing_is_said),
          UNIT_TEST(the_highest_address_is_that_of_the_programs_name),
          UNIT_TEST(programs_with_more_rights_have_no_settings))
