/* guarded_children_test.c - a process forks while a guarded block is taken or given back. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "guarded.h"
#include "threads.h"

#include <sys/wait.h>

static enum fake_call forks_beside; /* which call of another thread */
static const char *kept;            /* a block that is held meanwhile */
static const char *last;            /* block of that cell; NULL: there was none */

/* The cell that another thread was at is free, and is closed until it is taken. */
static bool child_has_the_cell(void)
{
    char *block;
    bool good = guarded_find(kept).kind == GUARDED_BLOCK && kept[0] == 'k';

    if (last != NULL) {
        struct guarded_finding finding = guarded_find(last);

        good &= finding.kind == GUARDED_GONE && finding.cell.size == 48
             && finding.cell.given.depth == 1;
    }
    prairie_check_all();
    block = take_of(1, 48, 16);
    good &= block != NULL && is_beside_guards(block) && all_bytes_are(block, 0, 48);
    if (good) give(block);
    prairie_check_all();
    return good;
}

static void *fork_and_look(void *status)
{
    int child = fake_fork();

    if (child == 0) _exit(child_has_the_cell() ? 0 : 1);
    (void)waitpid(child, status, 0);
    return NULL;
}

static void fork_once(enum fake_call kind)
{
    int status = -1;

    if (kind != forks_beside) return;
    fake_beside_call(NULL);
    run_thread(fork_and_look, &status);
    assert_int_equal(status, 0);
}

/* Of two cells, of which one is held. The process has a cache, so that it minds forks. */
static void start_pool_of_two(void)
{
    char *block;

    prairie_free(prairie_malloc(1));
    start_pool(2);
    block = take_of(0, 48, 16);
    assert_non_null(block);
    block[0] = 'k';
    kept = block;
}

static void a_child_has_the_cell_that_was_being_taken(void **state)
{
    char *block;

    (void)state;
    start_pool_of_two();
    forks_beside = FAKE_COMMIT;
    fake_beside_call(fork_once);
    block = take_of(1, 48, 16);
    assert_non_null(block); /* the parent has it, too */
    give(block);
    prairie_check_all();
}

static void a_child_knows_the_last_block_of_such_a_cell(void **state)
{
    (void)state;
    start_pool_of_two();
    last = take_of(1, 48, 16);
    give(last);
    forks_beside = FAKE_COMMIT;
    fake_beside_call(fork_once);
    assert_non_null(take_of(1, 100, 16));
    prairie_check_all();
}

static void a_child_has_the_cell_that_was_being_given_back(void **state)
{
    char *block;

    (void)state;
    start_pool_of_two();
    block = take_of(1, 48, 16);
    memset(block, 'x', 48);
    forks_beside = FAKE_CLOSE;
    fake_beside_call(fork_once);
    give(block);
    assert_int_equal(guarded_find(block).kind, GUARDED_GONE);
    prairie_check_all();
}

static int forked;

static void fork_here(enum fake_call kind)
{
    if (kind != forks_beside) return;
    fake_beside_call(NULL);
    forked = fake_fork();
}

/* The parent looks at how the child ended, which has done the same. */
static void end_of_both(void)
{
    int status = -1;

    prairie_check_all();
    if (forked == 0) _exit(0);
    assert_int_equal(waitpid(forked, &status, 0), forked);
    assert_int_equal(status, 0);
}

/* The fork is a signal handler's that interrupted this thread. */
static void a_child_goes_on_taking_the_cell(void **state)
{
    char *block;

    (void)state;
    start_pool_of_two();
    forks_beside = FAKE_COMMIT;
    fake_beside_call(fork_here);
    block = take_of(1, 48, 16);
    assert_non_null(block);
    assert_true(is_beside_guards(block));
    guarded_check();
    give(block);
    end_of_both();
}

static void a_child_goes_on_giving_the_cell_back(void **state)
{
    char *block;

    (void)state;
    start_pool_of_two();
    block = take_of(1, 48, 16);
    forks_beside = FAKE_CLOSE;
    fake_beside_call(fork_here);
    give(block);
    guarded_check();
    block = take_of(1, 48, 16);
    assert_non_null(block);
    give(block);
    end_of_both();
}

UNIT_MAIN(UNIT_TEST(a_child_has_the_cell_that_was_being_taken),
          UNIT_TEST(a_child_knows_the_last_block_of_such_a_cell),
          UNIT_TEST(a_child_has_the_cell_that_was_being_given_back),
          UNIT_TEST(a_child_goes_on_taking_the_cell),
          UNIT_TEST(a_child_goes_on_giving_the_cell_back))
