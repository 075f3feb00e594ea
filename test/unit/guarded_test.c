/* guarded_test.c - the pool of guarded blocks alone: where they lie, how long their cells rest, and
 * how they are found. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "guarded.h"
#include "harms.h"

/* ---- cells ---- */

static void it_lies_at_either_end_of_a_page(void **state)
{
    bool is_left = false, is_right = false;

    (void)state;
    start_pool(8);
    for (unsigned i = 0; i < 200; i++) {
        size_t size = 1 + random_below(page_bytes()), align = (size_t)1 << random_below(10);
        unsigned class_index = class_of_aligned(size, align);
        struct guarded_trace taken = { .depth = 0 };
        char *block = guarded_take(size, align, class_index, &taken);
        size_t at = (uintptr_t)block % page_bytes(), end = at + class_bytes[class_index];

        if (class_bytes[class_index] > page_bytes()) {
            assert_null(block);
            continue;
        }
        assert_non_null(block);
        assert_true(is_beside_guards(block));
        assert_true(is_aligned((uintptr_t)block, align));
        assert_true(at == 0 || end + align > page_bytes());
        assert_true(end <= page_bytes() && all_bytes_are(block, 0, class_bytes[class_index]));
        if (class_bytes[class_index] < page_bytes() / 2) {
            is_left |= at == 0;
            is_right |= at != 0;
        }
        __builtin_memset(block, 0xee, class_bytes[class_index]);
        give(block);
        assert_false(
            fake_is_committed((char *)round_down((uintptr_t)block, page_bytes()), page_bytes()));
        guarded_check();
    }
    assert_true(is_left && is_right);
}

static void cells_rest_as_long_as_can_be(void **state)
{
    char *page[8];

    (void)state;
    start_pool(8);
    for (unsigned i = 0; i < 8; i++) {
        char *block = take_of(i, 48, 16);
        page[i] = (char *)round_down((uintptr_t)block, page_bytes());
        for (unsigned other = 0; other < i; other++) assert_ptr_not_equal(page[i], page[other]);
        give(block);
    }
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < 8; i++) {
            char *block = take_of(i, 48, 16);
            assert_ptr_equal((char *)round_down((uintptr_t)block, page_bytes()), page[i]);
            give(block);
            guarded_check();
        }
}

static void some_cells_always_rest(void **state)
{
    unsigned held = 0;

    (void)state;
    start_pool(16);
    for (unsigned i = 0; i < 100; i++) held += take_of(i, 48, 16) != NULL;
    assert_int_equal(held, 12);
    guarded_check();
}

static void a_site_cannot_fill_the_pool(void **state)
{
    char *block[100];
    unsigned held = 0;

    (void)state;
    start_pool(64);
    for (unsigned i = 0; i < 100; i++) {
        block[held] = take_of(1, 48, 16);
        held += block[held] != NULL;
    }
    assert_int_equal(held, 8);
    assert_non_null(take_of(2, 48, 16));
    give(block[0]);
    assert_non_null(take_of(1, 48, 16));
    assert_null(take_of(1, 48, 16));
    guarded_check();
}

/* By whom they are taken: the first four callers, of more than that. */
static void a_site_is_four_callers(void **state)
{
    struct guarded_trace taken = { .thread = 1,
                                   .depth = 6,
                                   .return_address = { 4001, 4002, 4003, 4004, 4005, 4006 } };
    unsigned class_index = class_of_size(48);

    (void)state;
    start_pool(8); /* of which a site may have one */
    assert_non_null(guarded_take(48, 16, class_index, &taken));
    assert_null(guarded_take(48, 16, class_index, &taken));
    taken.return_address[4]++;
    assert_null(guarded_take(48, 16, class_index, &taken));
    for (unsigned i = 0; i < 4; i++) {
        taken.return_address[i]++;
        assert_non_null(guarded_take(48, 16, class_index, &taken));
    }
    taken.depth = 3;
    assert_non_null(guarded_take(48, 16, class_index, &taken));
    taken.return_address[3]++;
    assert_null(guarded_take(48, 16, class_index, &taken));
    guarded_check();
}

static void memory_may_be_refused(void **state)
{
    (void)state;
    start_pool(4);
    fake_fail_kind(FAKE_COMMIT, true);
    for (unsigned i = 0; i < 10; i++) assert_null(take_of(i, 48, 16));
    guarded_check();
    fake_fail_kind(FAKE_COMMIT, false);
    assert_non_null(take_of(1, 48, 16));
    guarded_check();
}

/* ---- finding ---- */

static const char *first_block; /* of 48 bytes, given back */

static void first_block_is_told_of(void)
{
    struct guarded_finding finding = guarded_find(first_block);

    assert_int_equal(finding.kind, GUARDED_GONE);
    assert_ptr_equal(finding.cell.block, first_block);
    assert_int_equal(finding.cell.size, 48);
    assert_int_equal(finding.cell.class_index, class_of_size(48));
    assert_int_equal(finding.cell.taken.return_address[0], 4097);
    assert_int_equal(finding.cell.given.return_address[0], 4711);
    guarded_check();
}

/* One cell, which has no block any more. */
static void start_pool_with_first_block(void)
{
    start_pool(1);
    first_block = take_of(1, 48, 16);
    give(first_block);
}

static void look_at_commit(enum fake_call kind)
{
    if (kind != FAKE_COMMIT) return;
    fake_beside_call(NULL);
    first_block_is_told_of();
}

/* Also while its page is opened for the next one, which nobody has yet. */
static void a_cell_tells_of_its_last_block(void **state)
{
    char *block;

    (void)state;
    start_pool_with_first_block();
    fake_beside_call(look_at_commit);
    block = take_of(2, 100, 16);
    assert_int_equal(guarded_find(block).cell.size, 100);
    assert_int_equal(guarded_find(block).cell.taken.return_address[0], 4098);
    assert_int_equal(guarded_find(block).cell.given.depth, 0);
}

static void a_refused_cell_tells_of_its_last_block(void **state)
{
    (void)state;
    start_pool_with_first_block();
    fake_fail_kind(FAKE_COMMIT, true);
    assert_null(take_of(2, 100, 16));
    fake_fail_kind(FAKE_COMMIT, false);
    first_block_is_told_of();
}

static const char *found_at(const char *address) { return guarded_find(address).cell.block; }

/* Of a guard's bytes: those nearer to one held block or the other, or to one cell or the other. */
static void a_guard_is_of_the_nearer_block(void **state)
{
    char *block[3], *guard[4];

    (void)state;
    start_pool(8);
    for (unsigned i = 0; i < 3; i++) block[i] = take_of(i, 48, 16);
    for (unsigned i = 0; i < 4; i++) guard[i] = guarded_pool.first + 2 * i * page_bytes();
    assert_int_equal(guarded_find(guard[3] + page_bytes()).kind, GUARDED_NONE); /* never used */
    for (size_t at = 0; at < page_bytes(); at++) {
        char *address = guard[1] + at;
        bool is_left = address - (block[0] + 48) < block[1] - address;

        assert_ptr_equal(found_at(address), is_left ? block[0] : block[1]);
        assert_ptr_equal(found_at(guard[0] + at), block[0]);
        assert_ptr_equal(found_at(guard[3] + at), block[2]);
    }
    give(block[1]);
    for (size_t at = 0; at < page_bytes(); at++) {
        assert_ptr_equal(found_at(guard[1] + at), block[0]);
        assert_ptr_equal(found_at(guard[2] + at), block[2]);
    }
    give(block[0]);
    give(block[2]);
    for (size_t at = 0; at < page_bytes(); at++) {
        unsigned nearer = at < page_bytes() / 2 ? 0 : 1;

        assert_ptr_equal(found_at(guard[0] + at), block[0]);
        assert_ptr_equal(found_at(guard[1] + at), block[nearer]);
        assert_ptr_equal(found_at(guard[2] + at), block[1 + nearer]);
        assert_ptr_equal(found_at(guard[3] + at), block[2]);
    }
}

static void each_byte_of_a_held_block_is_its_own(void **state)
{
    char *block;

    (void)state;
    assert_true(heap_start());
    assert_false(guarded_start(0));
    start_pool(1);
    block = take_of(1, 40, 16);
    for (size_t at = 0; at < 48; at++) assert_true(guarded_holds(block + at));
    assert_false(guarded_holds(block - 1) || guarded_holds(block + 48));
    give(block);
    assert_false(guarded_holds(block) || guarded_holds(block + 1));
    assert_true(guarded_find(block).is_watched); /* who freed it is known */
    block = take_of(1, 40, 16);
    guarded_end_watch();
    assert_false(guarded_find(block).is_watched);
}

static void around_a_block_are_its_page_and_guards(void **state)
{
    char *block, *page;

    (void)state;
    start_pool(1);
    for (;;) {
        block = take_of(1, 40, 16);
        page = (char *)round_down((uintptr_t)block, page_bytes());
        if (block != page) break;
        give(block);
    }
    assert_int_equal(guarded_find(page - page_bytes()).kind, GUARDED_BEFORE);
    assert_int_equal(guarded_find(page - 1).kind, GUARDED_BEFORE);
    assert_int_equal(guarded_find(page).kind, GUARDED_INSIDE);
    assert_int_equal(guarded_find(block).kind, GUARDED_BLOCK);
    assert_int_equal(guarded_find(page + page_bytes() - 1).kind, GUARDED_INSIDE);
    assert_int_equal(guarded_find(page + page_bytes()).kind, GUARDED_BEHIND);
    assert_int_equal(guarded_find(page + 2 * page_bytes() - 1).kind, GUARDED_BEHIND);
    assert_int_equal(guarded_find(page + 2 * page_bytes()).kind, GUARDED_NONE);
    assert_true(guarded_let_pass(block)); /* it is there */
    give(block);
    assert_int_equal(guarded_find(block).kind, GUARDED_GONE);
}

/* ---- pages that a report has opened ---- */

static void a_cell_is_closed_again_after_a_report(void **state)
{
    char *block, *page;

    (void)state;
    option_values[OPTION_GUARD_CELLS] = 1;
    option_values[OPTION_GUARD_RECOVER] = 1;
    assert_true(heap_start());
    start_pool(2);
    block = take_of(1, 48, 16);
    page = (char *)round_down((uintptr_t)block, page_bytes());
    assert_true(guarded_let_pass(page + page_bytes()) && guarded_let_pass(page - 1));
    give(block);
    assert_true(guarded_let_pass(block));
    __builtin_memset(page, 0xee, page_bytes());
    block = take_of(1, 48, 16); /* the other cell */
    give(block);
    block = take_of(1, 48, 16);
    assert_ptr_equal((char *)round_down((uintptr_t)block, page_bytes()), page);
    assert_true(is_beside_guards(block));
    assert_true(all_bytes_are(page, 0, page_bytes()));
}

/* The page between two cells is both's: who is taken first closes it. */
static void a_guard_between_two_is_closed_once(void **state)
{
    char *blocks[2];

    (void)state;
    start_pool(8);
    for (unsigned i = 0; i < 2; i++) blocks[i] = take_of(i, 48, 16);
    assert_true(
        guarded_let_pass((char *)round_down((uintptr_t)blocks[0], page_bytes()) + page_bytes()));
    for (unsigned i = 0; i < 2; i++) give(blocks[i]);
    for (unsigned i = 2; i < 10; i++) {
        blocks[0] = take_of(i, 48, 16);
        assert_true(is_beside_guards(blocks[0]));
        give(blocks[0]);
    }
    guarded_check();
}

/* A page that could not be opened is as it was: closed, whatever a report had opened. */
static void a_refused_cell_is_closed_once(void **state)
{
    char *block;

    (void)state;
    start_pool(1);
    block = take_of(1, 48, 16);
    give(block);
    assert_true(guarded_let_pass(block));
    fake_fail_kind(FAKE_COMMIT, true);
    for (unsigned i = 0; i < 3; i++) assert_null(take_of(1, 48, 16));
    fake_fail_kind(FAKE_COMMIT, false);
    block = take_of(1, 48, 16);
    assert_true(is_beside_guards(block));
    give(block);
    guarded_check();
}

/* ---- the walk ---- */

static unsigned harmed_class(void) { return class_of_size(48); }

static void u1_a_cell_too_many_in_the_queue(void) { ++*inside_pool_freed; }
static void u1_a_cell_left_out_of_the_queue(void) { --*inside_pool_freed; }
static void u1_a_held_cell_in_the_queue(void)
{
    for (unsigned i = 0; i < 8; i++)
        if (guarded_pool.block[i] != NULL) inside_pool_queue[0] = (uint16_t)i;
}
static void u1_a_cell_twice_in_the_queue(void) { inside_pool_queue[1] = inside_pool_queue[0]; }
static void u2_a_held_one_that_is_not_counted(void) { --*inside_pool_held; }
static void u2_more_held_than_may_be(void) { *inside_pool_held_max = 0; }
static void u3_a_held_block_that_is_not_there(void) { guarded_pool.block[0] = NULL; }
static void u3_a_block_that_was_given_back(void) { guarded_pool.block[1] = guarded_pool.block[0]; }
static void u4_sized_frees_that_do_not_look(void) { sized_free_look(harmed_class(), -1); }
static void u5_one_too_many_held(void) { guarded_numbers.held[harmed_class()]++; }
static void u5_one_of_another_class(void)
{
    guarded_numbers.held[harmed_class()]--;
    guarded_numbers.held[harmed_class() + 1]++;
}
static void a_page_too_many_counted(void) { commit.guarded_bytes += page_bytes(); }

static void broken_invariants_are_found(void **state)
{
    static const struct harm harms[] = {
        HARM(u1_a_cell_too_many_in_the_queue),   HARM(u1_a_cell_left_out_of_the_queue),
        HARM(u1_a_held_cell_in_the_queue),       HARM(u1_a_cell_twice_in_the_queue),
        HARM(u2_more_held_than_may_be),          HARM(u2_a_held_one_that_is_not_counted),
        HARM(u3_a_held_block_that_is_not_there), HARM(u3_a_block_that_was_given_back),
        HARM(u4_sized_frees_that_do_not_look),   HARM(u5_one_too_many_held),
        HARM(u5_one_of_another_class),           HARM(a_page_too_many_counted),
    };

    char *blocks[2];

    (void)state;
    start_pool(8);
    (void)take_of(1, 48, 16);
    for (unsigned i = 0; i < 2; i++) blocks[i] = take_of(2 + i, 48, 16);
    for (unsigned i = 0; i < 2; i++) give(blocks[i]);
    expect_harms_found(harms, ARRAY_COUNT(harms), guarded_check);
}

UNIT_MAIN(UNIT_TEST(it_lies_at_either_end_of_a_page), UNIT_TEST(cells_rest_as_long_as_can_be),
          UNIT_TEST(some_cells_always_rest), UNIT_TEST(a_site_cannot_fill_the_pool),
          UNIT_TEST(memory_may_be_refused), UNIT_TEST(a_cell_is_closed_again_after_a_report),
          UNIT_TEST(a_guard_between_two_is_closed_once), UNIT_TEST(a_refused_cell_is_closed_once),
          UNIT_TEST(a_site_is_four_callers), UNIT_TEST(around_a_block_are_its_page_and_guards),
          UNIT_TEST(a_guard_is_of_the_nearer_block),
          UNIT_TEST(each_byte_of_a_held_block_is_its_own),
          UNIT_TEST(a_cell_tells_of_its_last_block),
          UNIT_TEST(a_refused_cell_tells_of_its_last_block), UNIT_TEST(broken_invariants_are_found))
