/* unit.h - cmocka with each test in a process of its own, and the checks that unit tests share. */
/* SPDX-License-Identifier: MIT */
/*
 * Prairie's state belongs to the process and has no way back to the start, so every test is a
 * forked child in which nothing was called before. A test program takes
 *
 *      [--seed N] [NAME...]    all tests, or those named
 *      --alone NAME            one test in this very process, for a debugger
 *
 * Include it after library.h.
 */
#ifndef PRAIRIE_TEST_UNIT_H
#define PRAIRIE_TEST_UNIT_H

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct unit_test {
    const char *name;
    CMUnitTestFunction body;
};

/* clang-format off */
#define UNIT_TEST(function) { #function, function }
/* clang-format on */
#define UNIT_MAIN(...)                                                      \
    int main(int argc, char **argv)                                         \
    {                                                                       \
        static const struct unit_test tests[] = { __VA_ARGS__ };            \
        return unit_run(argc, argv, tests, sizeof tests / sizeof tests[0]); \
    }

int unit_run(int argc, char **argv, const struct unit_test *tests, size_t count);

/* The group is told of a skip as well, so that its output has it. */
void unit_skip(const char *file, int line);
#undef skip
#define skip() unit_skip(__FILE__, __LINE__)

/* Skips the test where the process cannot have so many bytes of addresses in one piece, as under an
 * emulator: only what a test is about is a reason. */
bool addresses_can_be_had(size_t bytes);
#define needs_addresses(bytes)                    \
    do {                                          \
        if (!addresses_can_be_had(bytes)) skip(); \
    } while (0)

/* Runs `body` in a child, which must abort after writing one line that starts with `line_start`. */
void expect_abort(void (*body)(void), const char *line_start);
/* The line is "prairie: words: address". */
void expect_abort_at(void (*body)(void), const char *words, const void *address);
/* Runs `body` in a child, which must touch memory that it may not touch. Where a page of the real
 * kernel has several of the fake one's, they are closed together only: then it is not run. */
void expect_fault(void (*body)(void));
bool faults_can_be_expected(void);
/* Runs `body` in a child, which must come to its end without a word. */
void expect_survival(void (*body)(void));
/* Asks in a child whose first thread has ended, on one of the two that are left. It must hold, and
 * the child come to its end without a word. */
void expect_without_first_thread(bool (*holds)(void));

/* Until another thread stores something in it, with release. */
void wait_until_set(const uint32_t *flag);

/* Random numbers that repeat from the seed; or, after random_from, made of these bytes, as many for
 * each as its end needs, and 0 when they are over. */
uint64_t random_word(void);
uint64_t random_below(uint64_t end);
void random_from(const void *bytes, size_t count);
bool random_is_over(void);

/* The harm that does none: a checker must be content after it. */
static inline void leave_it_alone(void) {}

/* Are all bytes of it this value? Comparing beyond what is mapped is a fault, as it should be. */
bool all_bytes_are(const void *base, unsigned char value, size_t bytes);

#endif
