/* fatal_test.c - the last line of a process: its wording, its length, and that it is one write. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

#include <signal.h>
#include <sys/wait.h>

static const void *address;
static const char *words = "double free";

static void die_at_address(void) { fatal_address(words, address); }
static void die(void) { fatal(words); }

static void addresses_are_in_hex_without_zeros_in_front(void **state)
{
    static const uintptr_t addresses[] = {
        0, 1, 0xf, 0x10, BY_WORD(0x7f1234567890, 0x71234567), UINTPTR_MAX
    };

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(addresses); i++) {
        address = (const void *)addresses[i];
        expect_abort_at(die_at_address, "double free", address);
    }
}

static void words_alone(void **state)
{
    (void)state;
    words = "out of luck";
    expect_abort(die, "prairie: out of luck\n");
}

/* expect_abort wants one line that ends: a text that is too long must be cut before its newline. */
static void long_words_are_cut(void **state)
{
    static char text[4000];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    words = text;
    address = text;
    expect_abort(die, "prairie: xxxxxxxx");
    expect_abort(die_at_address, "prairie: xxxxxxxx");
}

static void require_what_is_false(void) { require(1 + 1 == 3); }
static void check_what_is_false(void) { check(1 + 1 == 4); }

static void broken_statements_are_quoted(void **state)
{
    (void)state;
    expect_abort(require_what_is_false, "prairie: broken invariant: 1 + 1 == 3 at ");
    expect_abort(check_what_is_false, "prairie: broken invariant: 1 + 1 == 4 at ");
}

static void survive(void) { require(1 + 1 == 2); }

static void true_statements_say_nothing(void **state)
{
    (void)state;
    expect_survival(survive);
}

static void count_the_writes(int unused)
{
    (void)unused;
    _exit(fake_calls(FAKE_WRITE) == 1 ? 0 : 1);
}

/* One write: a line of two threads, or of two processes, must not mix. */
static void one_write_for_the_line(void **state)
{
    pid_t child = fork();
    int status;

    (void)state;
    if (child == 0) {
        signal(SIGABRT, count_the_writes);
        fatal_address("double free", state);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

UNIT_MAIN(UNIT_TEST(addresses_are_in_hex_without_zeros_in_front), UNIT_TEST(words_alone),
          UNIT_TEST(long_words_are_cut), UNIT_TEST(broken_statements_are_quoted),
          UNIT_TEST(true_statements_say_nothing), UNIT_TEST(one_write_for_the_line))
