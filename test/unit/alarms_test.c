/* alarms_test.c - tests that must fail, so that the others are known to be able to. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

static void live(void) {}
static void abort_silently(void) { abort(); }
static void abort_with_words(void) { fatal("these words"); }
static void speak(void) { printf("hello\n"); }
static void end_with_a_code(void) { _exit(3); }

static void speak_twice_and_abort(void)
{
    fprintf(stderr, "prairie: double free: 0x1\n");
    fatal_address("double free", (void *)1);
}

static void an_assertion(void **state) { assert_non_null(*state); }
static void a_signal(void **state) { *(volatile char *)*state = 1; }
static void an_abort(void **state) { (void)state, fatal("on purpose"); }
static void an_early_end(void **state) { (void)state, _exit(7); }
static void an_early_end_without_a_code(void **state) { (void)state, _exit(0); }

static void no_abort(void **state) { (void)state, expect_abort(live, ""); }
static void no_words(void **state) { (void)state, expect_abort(abort_silently, ""); }
static void other_words(void **state)
{
    (void)state, expect_abort(abort_with_words, "prairie: those");
}
static void two_lines(void **state)
{
    (void)state, expect_abort(speak_twice_and_abort, "prairie: ");
}
static void no_fault(void **state) { (void)state, expect_fault(abort_silently); }
static void no_silence(void **state) { (void)state, expect_survival(speak); }
static void no_survival(void **state) { (void)state, expect_survival(end_with_a_code); }
static void a_wrong_byte(void **state) { (void)state, assert_true(all_bytes_are("\0\0\1", 0, 3)); }
static void a_wrong_first_byte(void **state)
{
    (void)state, assert_true(all_bytes_are("\1", 0, 1));
}

static const struct unit_test alarms[] = {
    UNIT_TEST(an_assertion),
    UNIT_TEST(a_signal),
    UNIT_TEST(an_abort),
    UNIT_TEST(an_early_end),
    UNIT_TEST(an_early_end_without_a_code),
    UNIT_TEST(no_abort),
    UNIT_TEST(no_words),
    UNIT_TEST(other_words),
    UNIT_TEST(two_lines),
    UNIT_TEST(no_fault),
    UNIT_TEST(no_silence),
    UNIT_TEST(no_survival),
    UNIT_TEST(a_wrong_byte),
    UNIT_TEST(a_wrong_first_byte),
};

int main(void)
{
    int silent = 0;

    for (unsigned i = 0; i < ARRAY_COUNT(alarms); i++) {
        if (alarms[i].body == no_fault && !faults_can_be_expected()) continue;
        char *arguments[] = { "alarms", (char *)(uintptr_t)alarms[i].name, NULL };
        if (unit_run(2, arguments, alarms, ARRAY_COUNT(alarms)) != 0) continue;
        printf("%s did not fail\n", alarms[i].name);
        silent++;
    }
    fflush(NULL);
    _exit(silent != 0); /* what failing tests allocate is lost on purpose */
}
