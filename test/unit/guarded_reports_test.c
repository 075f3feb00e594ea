/* guarded_reports_test.c - what is said of whoever does wrong with a guarded block. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "guarded.h"

static void recover_from_now(void)
{
    option_values[OPTION_GUARD_RECOVER] = 1;
    guard_from_now();
}

static void expect_words(const char *words)
{
    if (strstr(fake_error_text(), words) == NULL)
        fail_msg("'%s' is not in\n%s", words, fake_error_text());
}

static char *guarded_right(size_t size)
{
    char *block;

    while (is_aligned((uintptr_t)(block = guarded_block(size)), page_bytes())) prairie_free(block);
    return block;
}

static char *guarded_left(size_t size)
{
    char *block;

    while (!is_aligned((uintptr_t)(block = guarded_block(size)), page_bytes())) prairie_free(block);
    return block;
}

/* ---- what was done ---- */

static void an_overflow_is_named(void **state)
{
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_right(1000);
    assert_false(fake_fault(block + 1024));
    expect_words("prairie: overflow of a block: 0x");
    expect_words("a read 24 bytes beyond the end of a block of 1000 bytes at 0x");
    expect_words("prairie:   taken by thread 7:\n");
    assert_null(strstr(fake_error_text(), "freed"));
}

static void an_underflow_is_named(void **state)
{
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_left(1000);
    assert_false(fake_fault(block - 1));
    expect_words("prairie: underflow of a block: 0x");
    expect_words("1 byte before the start of a block of 1000 bytes at 0x");
}

static void a_use_after_free_is_named(void **state)
{
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_block(1000);
    prairie_free(block);
    assert_false(fake_fault(block + 999));
    expect_words("prairie: use after free: 0x");
    expect_words("999 bytes into a freed block of 1000 bytes at 0x");
    expect_words("prairie:   freed by thread 7:\n");
}

/* No code lies where the callers are: their traces are empty. */
static void hide_callers(void)
{
    static const struct os_code code = { .start = 0x40000, .limit = 0x41000, .path = "code" };

    fake_code(&code, 1);
}

static void expect_report(const char *head, const char *where, const char *rest,
                          const char *address, const char *block)
{
    char text[1000];

    snprintf(text, sizeof text,
             "prairie: %s: 0x%llx\nprairie:   %s of 1000 bytes at 0x%llx\n"
             "prairie:   done by thread 7:\n%s",
             head, (unsigned long long)(uintptr_t)address, where,
             (unsigned long long)(uintptr_t)block, rest);
    assert_string_equal(fake_error_text(), text);
}

static void reports_are_whole(void **state)
{
    char *block;
    void *drained;

    (void)state;
    recover_from_now();
    hide_callers();
    block = guarded_right(1000);
    (void)fake_fault(block + 1024);
    expect_report("overflow of a block", "a read 24 bytes beyond the end of a block",
                  "prairie:   taken by thread 7:\n", block + 1024, block);
    prairie_free(block);
    fake_error_clear();
    block = guarded_right(1000);
    prairie_free(block);
    prairie_free(block);
    expect_report("double free", "the address is at the start of a freed block",
                  "prairie:   taken by thread 7:\nprairie:   freed by thread 7:\n", block, block);
    fake_error_clear();
    block = guarded_right(1000);
    guarded_end_watch();
    (void)fake_fault(block + 1024);
    expect_report("overflow of a block", "a read 24 bytes beyond the end of a block",
                  "prairie:   if it is freed with its size: it may have been taken again since:\n"
                  "prairie:   taken by thread 7:\n",
                  block + 1024, block);
    fake_error_clear();
    block = guarded_right(1000);
    guarded_end_watch();
    drained = block;
    thread_flush();
    arenas_drain(class_of_size(1000), &drained, 1);
    (void)held_of(1000);
    (void)fake_fault(block + 1000);
    expect_report("use after free", "a read at the end of a freed block",
                  "prairie:   if it is freed with its size: it may have been taken again since:\n"
                  "prairie:   taken by thread 7:\n"
                  "prairie:   freed with its size, which nobody saw\n",
                  block + 1000, block);
}

static void a_new_size_is_reported(void **state)
{
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_right(1000);
    assert_ptr_equal(prairie_realloc(block, 1010), block);
    (void)fake_fault(block + 1024);
    expect_words("14 bytes beyond the end of a block of 1010 bytes at 0x");
    fake_error_clear();
    block = guarded_right(1000);
    assert_ptr_equal(prairie_rallocx(block, 1020, 0), block);
    (void)fake_fault(block + 1024);
    expect_words("4 bytes beyond the end of a block of 1020 bytes at 0x");
}

/* The one that moves away was never that long. */
static void the_size_of_what_moved_is_not_reported(void **state)
{
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_right(1000);
    assert_ptr_not_equal(prairie_realloc(block, 3000), block);
    (void)fake_fault(block);
    expect_words("a read at the start of a freed block of 1000 bytes at 0x");
}

/* Where pages are long enough for it. */
static void the_largest_new_size_is_reported(void **state)
{
    char *block, *end;

    (void)state;
    fake_page_bytes(64 * KiB);
    guard_from_now();
    block = guarded_right(SMALL_BYTES_MAX - 500);
    end = (char *)round_up((uintptr_t)block, page_bytes());
    assert_ptr_equal(prairie_realloc(block, SMALL_BYTES_MAX), block);
    (void)fake_fault(end);
    expect_words(" a block of 14336 bytes at 0x");
}

/* ---- who did it ---- */

/* It is looked up as it is: the byte before it, as of a return address, may be no code. */
static void the_instruction_of_an_access_is_named(void **state)
{
    enum { CODE = 0x40000 };
    static const struct os_code code = { .start = CODE, .limit = CODE + 0x1000, .path = "code" };
    char *block;

    (void)state;
    guard_from_now();
    fake_code(&code, 1);
    block = guarded_right(1000);
    (void)fake_fault_from(CODE, NULL, block + 1024);
    expect_words("prairie:   done by thread 7:\nprairie:     0x40000 code+0x0\n");
}

/* They are where they return to, which may be behind all code, and end where there is none. */
static void the_callers_of_an_access_are_named(void **state)
{
    enum { CODE = 0x40000, END = CODE + 0x1000 };
    static const struct os_code code = { .start = CODE, .limit = END, .path = "code" };
    static uintptr_t stack[8] = { 0, CODE + 0x10, 0, END, 0, END + 0x1000, 0, CODE + 0x20 };
    char *block;

    (void)state;
    for (unsigned i = 0; i < 6; i += 2) stack[i] = (uintptr_t)&stack[i + 2];
    fake_stack(stack, sizeof stack);
    guard_from_now();
    fake_code(&code, 1);
    block = guarded_right(1000);
    (void)fake_fault_from(CODE, stack, block + 1024);
    expect_words("prairie:   done by thread 7:\nprairie:     0x40000 code+0x0\n"
                 "prairie:     0x40010 code+0x10\nprairie:     0x41000 code+0x1000\n"
                 "prairie:   taken by thread 7:\n");
    assert_null(strstr(fake_error_text(), "0x40020"));
}

static unsigned lines_with(const char *words)
{
    unsigned count = 0;

    for (const char *at = fake_error_text(); (at = strstr(at, words)) != NULL; at++) count++;
    return count;
}

/* As many as there is room for, with the instruction. */
static void callers_beyond_the_depth_are_left_out(void **state)
{
    enum { CODE = 0x40000, FRAMES = GUARDED_DEPTH + 10 };
    static const struct os_code code = { .start = CODE, .limit = CODE + 0x1000, .path = "code" };
    static uintptr_t stack[2 * FRAMES];
    char *block;

    (void)state;
    for (unsigned i = 0; i < FRAMES; i++) {
        stack[2 * i] = (uintptr_t)&stack[2 * i + 2];
        stack[2 * i + 1] = CODE + 0x10;
    }
    fake_stack(stack, sizeof stack);
    guard_from_now();
    fake_code(&code, 1);
    block = guarded_right(1000);
    (void)fake_fault_from(CODE, stack, block + 1024);
    assert_int_equal(lines_with(" code+0x0\n"), 1);
    assert_int_equal(lines_with(" code+0x10\n"), GUARDED_DEPTH - 1);
    fake_error_clear();
    block = guarded_right(1000);
    (void)fake_fault_from(0, stack, block + 1024);
    assert_int_equal(lines_with(" code+0x10\n"), GUARDED_DEPTH);
}

/* The outermost frame may be the last that can be read. */
static void one_caller_is_named(void **state)
{
    enum { CODE = 0x40000, END = CODE + 0x1000 };
    static const struct os_code code = { .start = CODE, .limit = END, .path = "code" };
    static uintptr_t stack[2] = { 0, CODE + 0x10 };
    char *block;

    (void)state;
    fake_stack(stack, sizeof stack);
    guard_from_now();
    fake_code(&code, 1);
    block = guarded_right(1000);
    (void)fake_fault_from(0, stack, block + 1024);
    expect_words("prairie:   done by thread 7:\nprairie:     0x40010 code+0x10\n"
                 "prairie:   taken by thread 7:\n");
    fake_error_clear();
    block = guarded_right(1000);
    (void)fake_fault_from(CODE, (char *)stack + 1, block + 1024); /* no frame */
    expect_words("prairie:   done by thread 7:\nprairie:     0x40000 code+0x0\n"
                 "prairie:   taken by thread 7:\n");
}

/* ---- whether and when it is said ---- */

/* Another thread has opened the page meanwhile: the access is made again, but no block is run. */
static void an_access_to_a_held_block_is_made_again(void **state)
{
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_block(1000);
    assert_false(fake_fault(block) || fake_fault(block + 999));
    option_values[OPTION_GUARD_RECOVER] = 1;
    assert_true(fake_fault(block) && fake_fault(block + 999));
    assert_false(fake_fault_from((uintptr_t)block, NULL, block));
    assert_string_equal(fake_error_text(), "");
}

static uint64_t sleeps_left;

static void leave_pool(void)
{
    if (sleeps_left > 0 && --sleeps_left == 0) lock_give(&guarded_lock);
}

/* A signal may have interrupted who holds the lock: it is waited for, and not for ever. */
static void a_fault_waits_for_the_pool(void **state)
{
    uint64_t before;
    char *block;

    (void)state;
    guard_from_now();
    block = guarded_right(1000);
    lock_take(&guarded_lock);
    before = os_now_ms();
    sleeps_left = 3;
    fake_on_sleep(leave_pool);
    assert_int_equal(guarded_find_anywhere(block).kind, GUARDED_BLOCK);
    assert_int_equal(fake_calls(FAKE_SLEEP), 3);
    assert_int_equal(os_now_ms() - before, 3);
    assert_int_equal(guarded_find(block).kind, GUARDED_BLOCK); /* it is free again */
    lock_take(&guarded_lock);
    before = os_now_ms();
    assert_int_equal(guarded_find_anywhere(block).kind, GUARDED_BLOCK);
    assert_int_equal(os_now_ms() - before, inside_lock_waits_max);
    lock_give(&guarded_lock);
}

static void end_report(void)
{
    if (sleeps_left > 0 && --sleeps_left == 0) *inside_report_turn() = 0;
}

/* And for a report that another thread writes, which may have ended meanwhile. */
static void reports_take_turns(void **state)
{
    uint64_t before;

    (void)state;
    guard_from_now();
    *inside_report_turn() = 1;
    before = os_now_ms();
    sleeps_left = 3;
    fake_on_sleep(end_report);
    (void)fake_fault(guarded_right(1000) + 1024);
    expect_words("prairie: overflow of a block: 0x");
    assert_int_equal(os_now_ms() - before, 3 * inside_turn_wait_ms);
    assert_int_equal(*inside_report_turn(), 0);
    fake_error_clear();
    *inside_report_turn() = 1;
    before = os_now_ms();
    (void)fake_fault(guarded_right(1000) + 1024);
    expect_words("prairie: overflow of a block: 0x");
    assert_int_equal(os_now_ms() - before, inside_turn_waits_max * inside_turn_wait_ms);
    assert_int_equal(*inside_report_turn(), 0);
}

static void other_faults_are_not_ours(void **state)
{
    (void)state;
    guard_from_now();
    (void)guarded_block(100);
    assert_false(fake_fault(NULL));
    assert_false(fake_fault(state));
    assert_string_equal(fake_error_text(), "");
}

static void one_report_for_each_block(void **state)
{
    char *block;

    (void)state;
    recover_from_now();
    block = guarded_right(1000);
    assert_true(fake_fault(block + 1024));
    assert_non_null(strstr(fake_error_text(), "overflow"));
    fake_error_clear();
    assert_true(fake_fault(block + 2048));
    assert_string_equal(fake_error_text(), "");
    block[1024] = 1; /* the page is there */
    prairie_free(block);
    assert_true(fake_fault(block));
    block[0] = 1;
    assert_string_equal(fake_error_text(), "");
    prairie_check_all();
}

/* Also where the cell had others of which there was a report. */
static void each_new_block_has_its_report(void **state)
{
    (void)state;
    option_values[OPTION_GUARD_CELLS] = 1;
    recover_from_now();
    for (unsigned i = 0; i < 3; i++) {
        char *block = guarded_right(1000);

        fake_error_clear();
        assert_true(fake_fault(block + 1024));
        expect_words("prairie: overflow of a block: 0x");
        prairie_free(block);
    }
}

/* ---- bad frees ---- */

static void bad_frees_are_reported(void **state)
{
    char *block;

    (void)state;
    recover_from_now();
    block = guarded_block(1000);
    prairie_free(block + 16);
    expect_words("prairie: free of an interior pointer: 0x");
    expect_words("the address is 16 bytes into a block of 1000 bytes at 0x");
    prairie_free(block);
    block = guarded_block(1000);
    fake_error_clear();
    prairie_free(block);
    prairie_free(block);
    expect_words("prairie: double free: 0x");
    expect_words("the address is at the start of a freed block of 1000 bytes at 0x");
    fake_error_clear();
    prairie_free(block);
    assert_string_equal(fake_error_text(), "");
    block = guarded_block(1000);
    prairie_free(block);
    assert_non_null(prairie_realloc(block, 10));
    expect_words("prairie: realloc of a freed pointer: 0x");
    block = guarded_block(1000);
    prairie_free(block);
    assert_int_equal(prairie_usable_size(block), 0);
    expect_words("prairie: malloc_usable_size of a freed pointer: 0x");
    prairie_check_all();
}

/* Told of or not, the block is freed. */
static void wrong_sizes_are_reported(void **state)
{
    static const size_t told[] = { 0, 100, 2000, 50000 };

    (void)state;
    recover_from_now();
    for (unsigned i = 0; i < ARRAY_COUNT(told); i++) {
        char *block = guarded_block(1000);

        fake_error_clear();
        prairie_free_sized(block, told[i]);
        expect_words("prairie: wrong size in sized delete: 0x");
        expect_words("the address is at the start of a block of 1000 bytes at 0x");
        assert_int_equal(guarded_find(block).kind, GUARDED_GONE);
    }
    prairie_check_all();
}

static char *never_used;

static void free_never_used(void) { prairie_free(never_used); }
static void realloc_never_used(void) { (void)prairie_realloc(never_used, 10); }

/* Where no block ever was there is nothing to report. */
static void what_was_never_a_block_is_foreign(void **state)
{
    (void)state;
    guard_from_now();
    (void)guarded_block(1000);
    never_used = guarded_pool.first + guarded_pool.bytes - 2 * page_bytes();
    expect_abort(free_never_used, "prairie: free of a foreign pointer: 0x");
    expect_abort(realloc_never_used, "prairie: realloc of a foreign pointer: 0x");
    assert_false(fake_fault(never_used));
}

UNIT_MAIN(UNIT_TEST(an_overflow_is_named), UNIT_TEST(an_underflow_is_named),
          UNIT_TEST(a_use_after_free_is_named), UNIT_TEST(a_new_size_is_reported),
          UNIT_TEST(the_instruction_of_an_access_is_named), UNIT_TEST(other_faults_are_not_ours),
          UNIT_TEST(one_report_for_each_block), UNIT_TEST(bad_frees_are_reported),
          UNIT_TEST(wrong_sizes_are_reported), UNIT_TEST(the_largest_new_size_is_reported),
          UNIT_TEST(the_callers_of_an_access_are_named), UNIT_TEST(a_fault_waits_for_the_pool),
          UNIT_TEST(reports_take_turns), UNIT_TEST(one_caller_is_named),
          UNIT_TEST(each_new_block_has_its_report),
          UNIT_TEST(callers_beyond_the_depth_are_left_out),
          UNIT_TEST(an_access_to_a_held_block_is_made_again),
          UNIT_TEST(the_size_of_what_moved_is_not_reported), UNIT_TEST(reports_are_whole),
          UNIT_TEST(what_was_never_a_block_is_foreign))
