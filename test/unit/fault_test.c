/* fault_test.c - what is told of an access that the processor refused; it leaves no trace. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>

static bool handlers_are_refused; /* as by a filter */

static int may_act(int signal, const struct sigaction *wanted, struct sigaction *before)
{
    if (!handlers_are_refused) return sigaction(signal, wanted, before);
    errno = EPERM;
    return -1;
}

/* The real kernel's watch, beside the fake kernel's. */
#define os_watch_faults watch_real_faults
#define os_thread_id real_thread_id
#define sigaction(signal, wanted, before) may_act(signal, wanted, before)
#include "os/linux_fault.c"
#undef sigaction

#include "unit.h"

#include <sys/mman.h>

#if defined(__x86_64__)
enum { TELLS_CODE = true, TELLS_ACCESS = true };
#else
enum { TELLS_CODE = sizeof(void *) > 4, TELLS_ACCESS = false };
#endif

enum { PAGE_BYTES = 64 * 1024, FUNCTION_BYTES_MAX = 400 };

static char *page;
static struct os_fault told;

static void set_rights(int rights) { assert_int_equal(mprotect(page, PAGE_BYTES, rights), 0); }

static bool open_page(const struct os_fault *fault)
{
    told = *fault;
    set_rights(PROT_READ | PROT_WRITE);
    errno = EISDIR; /* of no concern to the program */
    return true;
}

static void watch_a_page(void)
{
    page = mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    assert_true(watch_real_faults(open_page));
}

static __attribute__((noinline)) void write_byte(volatile char *at) { *at = 1; }
static __attribute__((noinline)) void read_byte(volatile char *at) { (void)*at; }

static void expect_told(void (*function)(volatile char *at), char *at, enum os_access access)
{
    set_rights(PROT_NONE);
    function(at);
    assert_ptr_equal(told.address, at);
    if (TELLS_ACCESS) assert_int_equal(told.access, access);
    if (TELLS_CODE) assert_in_range(told.code - (uintptr_t)function, 0, FUNCTION_BYTES_MAX);
}

static void an_access_is_told_with_its_code(void **state)
{
    (void)state;
    watch_a_page();
    expect_told(write_byte, page + 5, OS_ACCESS_WRITE);
    expect_told(read_byte, page + 77, OS_ACCESS_READ);
}

static void the_program_goes_on_as_if_nothing_was(void **state)
{
    (void)state;
    watch_a_page();
    errno = EDOM;
    write_byte(page + 5);
    assert_int_equal(errno, EDOM);
    assert_int_equal(page[5], 1);
}

static unsigned passed_on;
static int passed_code;

static void note_passed(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    passed_on++;
    passed_code = info->si_code;
}

/* Where the kernel says who sent it there is no address that a watcher could look at. */
static void what_somebody_sent_goes_to_the_handler_before(void **state)
{
    struct sigaction before = { .sa_sigaction = note_passed, .sa_flags = SA_SIGINFO };

    (void)state;
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_int_equal(sigaction(SIGBUS, &before, NULL), 0);
    watch_a_page();
    assert_int_equal(kill(getpid(), SIGSEGV), 0);
    assert_int_equal(passed_on, 1);
    assert_int_equal(passed_code, SI_USER);
    assert_int_equal(raise(SIGBUS), 0);
    assert_int_equal(passed_on, 2);
    assert_int_equal(passed_code, SI_TKILL);
    assert_null(told.address); /* nobody was asked */
    expect_told(write_byte, page + 5, OS_ACCESS_WRITE);
    assert_int_equal(passed_on, 2);
}

static void a_refused_watch_is_told_and_forgotten(void **state)
{
    (void)state;
    handlers_are_refused = true;
    errno = EDOM;
    assert_false(watch_real_faults(open_page));
    assert_int_equal(errno, EDOM);
    handlers_are_refused = false;
    watch_a_page();
    expect_told(write_byte, page, OS_ACCESS_WRITE);
}

UNIT_MAIN(UNIT_TEST(an_access_is_told_with_its_code),
          UNIT_TEST(the_program_goes_on_as_if_nothing_was),
          UNIT_TEST(what_somebody_sent_goes_to_the_handler_before),
          UNIT_TEST(a_refused_watch_is_told_and_forgotten))
