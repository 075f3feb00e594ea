/* vast_limit_test.c - vast blocks and the hard limit, which counts those that are coming. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "vast.h"

#include <sys/wait.h>
#include <unistd.h>

static void the_hard_limit_holds(void **state)
{
    char *block;

    (void)state;
    needs_addresses(8 * VAST);
    prairie_free(prairie_malloc(1));
    block = prairie_malloc(VAST);
    limits_set_hard(3 * VAST);
    assert_null(prairie_malloc(2 * VAST));
    assert_null(prairie_realloc(block, 3 * VAST));
    expect_vast(block, VAST);
    block = prairie_realloc(block, VAST + VAST / 2);
    expect_vast(block, VAST + VAST / 2);
    prairie_free(block);
    block = prairie_malloc(2 * VAST);
    expect_vast(block, 2 * VAST);
    assert_true(commit_taken_bytes() >= 2 * VAST);
    prairie_free(block);
}

static bool seen_allowed;
static unsigned looks;

/* Is there room for another VAST bytes, as this call of the kernel sees it? */
static void look_for_room(enum fake_call kind)
{
    if (kind != FAKE_RESERVE && kind != FAKE_RESIZE && kind != FAKE_MOVE) return;
    looks++;
    seen_allowed |= commit_allows(VAST);
}

/* What a thread is at the kernel for is no other's. */
static void the_hard_limit_counts_what_is_coming(void **state)
{
    char *block, *run = prairie_malloc(REMAP_BYTES_MIN);

    (void)state;
    needs_addresses(8 * VAST);
    prairie_free(prairie_malloc(VAST)); /* the order of places is reserved */
    fake_on_call(look_for_room);
    limits_set_hard(2 * VAST);
    block = prairie_malloc(VAST + VAST / 2);
    limits_set_hard(3 * VAST);
    block = prairie_realloc(block, 2 * VAST + VAST / 2);
    expect_vast(block, 2 * VAST + VAST / 2);
    limits_set_hard(5 * VAST);
    run = prairie_realloc(run, VAST + VAST / 2 + VAST / 4);
    expect_vast(run, VAST + VAST / 2 + VAST / 4);
    assert_int_equal(looks, 3);
    assert_false(seen_allowed);
    fake_fail_kind(FAKE_RESIZE, true);
    assert_null(prairie_realloc(block, 3 * VAST));
    fake_fail_kind(FAKE_RESIZE, false);
    fake_on_call(NULL);
    assert_int_equal(commit.vast_coming, 0);
    prairie_free(block);
    prairie_free(run);
    expect_none();
}

static void leave_dirty(void)
{
    prairie_free(prairie_malloc(64 * MiB));
    if (page_heap->free_pages[FREE_DIRTY] == 0) skip();
}

/* Dirty pages make room for growth as they do for new blocks, and a move takes its own along. */
static void the_hard_limit_is_kept_by_purging(void **state)
{
    char *block = prairie_malloc(VAST), *run;

    (void)state;
    needs_addresses(8 * VAST);
    leave_dirty();
    limits_set_hard(commit_taken_bytes() + VAST - page_bytes());
    block = prairie_realloc(block, 2 * VAST);
    expect_vast(block, 2 * VAST);
    limits_set_hard(0);
    leave_dirty();
    limits_set_hard(commit_taken_bytes() + VAST - page_bytes());
    run = prairie_malloc(VAST);
    expect_vast(run, VAST);
    prairie_free(run);
    limits_set_hard(0);
    run = prairie_malloc(REMAP_BYTES_MIN);
    limits_set_hard(commit_taken_bytes() + VAST - REMAP_BYTES_MIN);
    run = prairie_realloc(run, VAST);
    expect_vast(run, VAST);
    prairie_free(run);
    prairie_free(block);
    expect_none();
}

static uint32_t on_its_way;

static void bring_back(void)
{
    if (on_its_way != 0) run_put_free(on_its_way, PAGE_CLEAN);
    on_its_way = 0;
}

/* Also by another thread, which has not come back from the kernel. */
static void the_hard_limit_waits_for_who_purges(void **state)
{
    char *block;

    (void)state;
    needs_addresses(8 * VAST);
    prairie_free(prairie_malloc(1));
    on_its_way = run_lease(16, 1, PAGE_LARGE).page;
    (void)purge_all();
    run_return(on_its_way);
    assert_int_equal(run_take_dirty(page_heap, 1, 16), on_its_way);
    limits_set_hard(commit_taken_bytes() + VAST - 8 * page_bytes());
    fake_on_sleep(bring_back);
    block = prairie_malloc(VAST);
    expect_vast(block, VAST);
    assert_int_equal(fake_calls(FAKE_SLEEP), 1);
    prairie_free(block);
}

/* A child is made while others are at the kernel, and so they never come back there. */
static void a_child_does_not_wait_for_what_comes(void **state)
{
    char *stays = prairie_malloc(VAST), *moves = prairie_malloc(2 * VAST);
    uint32_t hidden = page_at(moves);
    int child, status;

    (void)state;
    needs_addresses(8 * VAST);
    limits_set_hard(commit_taken_bytes() + 2 * VAST);
    assert_true(inside_expect_bytes(VAST));
    inside_hide_block(hidden, 2 * VAST);
    prairie_check_all();
    child = fake_fork();
    if (child == 0) {
        char *block = prairie_malloc(2 * VAST);
        bool good = block != NULL && commit.vast_coming == 0 && commit.vast_bytes == 3 * VAST;

        prairie_check_all();
        prairie_free(block);
        prairie_free(stays);
        _exit(good && commit.vast_bytes == 0 && commit.vast_count == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    inside_show_block(hidden, (struct os_range){ moves, 2 * VAST }, 2 * VAST);
    inside_give_up(VAST);
    prairie_check_all();
    prairie_free(moves);
    prairie_free(stays);
    expect_none();
}

UNIT_MAIN(UNIT_TEST(the_hard_limit_holds), UNIT_TEST(the_hard_limit_counts_what_is_coming),
          UNIT_TEST(the_hard_limit_is_kept_by_purging),
          UNIT_TEST(the_hard_limit_waits_for_who_purges),
          UNIT_TEST(a_child_does_not_wait_for_what_comes))
