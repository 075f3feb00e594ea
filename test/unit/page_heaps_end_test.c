/* page_heaps_end_test.c - several page heaps that open one address space: limits, refusals of the
 * kernel, and whose the end is. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "page_heaps.h"

/* The hard limit counts what all have. A page heap that may not grow takes what another has. */
static void the_hard_limit_is_of_the_process(void **state)
{
    uint32_t first, second;

    (void)state;
    fake_cores(4);
    assert_true(heap_start());
    first = lease_from(1, RUN_PAGES);
    second = lease_from(2, RUN_PAGES);
    limits_set_hard(commit_taken_bytes() + (RUN_PAGES << space.page_shift) / 2);
    assert_int_equal(lease_of(1, RUN_PAGES, PAGE_USED), 0);
    assert_int_equal(lease_of(3, RUN_PAGES, PAGE_USED), 0);
    run_return(first);
    assert_int_equal(lease_from(3, RUN_PAGES), first);
    assert_ptr_equal(page_heap_of(first), &page_heap[1]);
    limits_set_hard(0);
    run_return(first);
    run_return(second);
    prairie_check_all();
}

/* The seam before what opens for it is nobody's, and not counted. */
static void a_seam_takes_nothing_of_the_limit(void **state)
{
    (void)state;
    fake_cores(4);
    assert_true(heap_start());
    (void)lease_from(1, 1);
    limits_set_hard(commit_taken_bytes() + bytes_with_records(RUN_PAGES));
    assert_ptr_equal(page_heap_of(lease_from(2, RUN_PAGES)), &page_heap[2]);
    assert_int_equal(lease_of(2, 1, PAGE_USED), 0);
    limits_set_hard(0);
    prairie_check_all();
}

/* Right behind a seam nothing before it tells whose a free run is. */
static void clean_pages_behind_a_seam_are_found(void **state)
{
    uint32_t at = 0, page, edge;

    (void)state;
    start_heaps();
    (void)lease_from(0, 1);
    page = lease_from(1, 3);
    (void)lease_from(1, 1);
    assert_int_equal(page_record(page - 1)->bin_index, PAGE_SEAM);
    run_return_clean(page);
    check_runs();
    while ((edge = run_take_clean_edge(&at)) != 0 && edge != page) run_put_free(edge, PAGE_CLEAN);
    assert_int_equal(edge, page);
    run_put_free(edge, PAGE_CLEAN);
    check_runs();
}

/* How often the kernel is asked for memory before a lease is refused. */
static uint64_t asked_in_vain(size_t align_pages)
{
    uintptr_t purpose = purpose_of(&page_heap[1], PAGE_USED);
    uint64_t asked = fake_calls(FAKE_COMMIT);

    fake_fail_kind(FAKE_COMMIT, true);
    assert_int_equal(run_lease_for(500, align_pages, purpose).page, 0);
    fake_fail_kind(FAKE_COMMIT, false);
    check_runs();
    return fake_calls(FAKE_COMMIT) - asked;
}

/* However many page heaps there are. */
static void the_kernel_refuses_once_for_all(void **state)
{
    uint64_t asked, asked_aligned;

    (void)state;
    huge.policy = HUGE_NEVER;
    start_pages();
    (void)page_heap_for(1, PAGE_HEAPS);
    (void)lease_from(1, 1);
    (void)lease_from(0, 1);
    asked = asked_in_vain(1);
    asked_aligned = asked_in_vain(16);
    (void)lease_from(3, 1);
    (void)lease_from(2, 1);
    assert_int_equal(page_heap_count(), PAGE_HEAPS);
    assert_in_range(asked_in_vain(1), 1, asked);
    assert_in_range(asked_in_vain(16), 1, asked_aligned);
    assert_true(asked > asked_aligned); /* what lies at the end may need less */
}

/* Another one grows when it lacks little, and does not where it would lack as much. */
static void what_lies_at_the_end_serves_another(void **state)
{
    uint32_t page;
    size_t free;

    (void)state;
    start_heaps();
    (void)lease_from(1, 1);
    (void)lease_from(2, 1);
    free = page_heap[2].free_pages[FREE_CLEAN];
    fake_commit_bytes_max(fake_committed_bytes() + bytes_of(free / 2));
    page = lease_from(1, free + free / 4);
    assert_ptr_equal(page_heap_of(page), &page_heap[2]);
    check_runs();
}

/* Dirty pages of its own go first there, too. */
static void under_a_hard_limit_own_pages_go_first(void **state)
{
    uint32_t own, others, page;

    (void)state;
    fake_cores(4);
    assert_true(heap_start());
    own = lease_from(2, 100);
    others = lease_from(1, pages_for(PURGE_UNATTENDED_BYTES) + 100);
    (void)lease_from(2, 1);
    (void)lease_from(1, 1);
    give_back(own);
    give_back(others);
    limits_set_hard(commit_taken_bytes() + (RUN_PAGES << space.page_shift));
    assert_false(page_heap[2].clean_is_free);
    page = lease_from(2, 10);
    assert_ptr_equal(page_heap_of(page), &page_heap[2]);
    assert_int_equal(page, own);
    limits_set_hard(0);
    give_back(page);
    prairie_check_all();
}

/* Pages end at one place: who has them there closes them. */
static void the_end_is_closed_by_whose_it_is(void **state)
{
    size_t open;

    (void)state;
    start_heaps();
    (void)lease_from(0, 1);
    give_back(lease_from(3, RUN_PAGES));
    open = space.open_bytes;
    assert_true(page_heaps_close_tail(true));
    check_runs();
    assert_int_equal(page_heap[3].open_pages, 0);
    assert_true(space.open_bytes < open);
    assert_int_not_equal(page_heap[0].open_pages, 0);
    (void)lease_from(3, RUN_PAGES);
}

/* A used run before it is no seam, and stays. */
static void no_used_page_is_closed_with_the_end(void **state)
{
    uint32_t page;

    (void)state;
    start_heaps();
    page = lease_from(2, RUN_PAGES);
    stain(page, RUN_PAGES, 7);
    give_back(lease_from(2, RUN_PAGES));
    assert_true(page_heaps_close_tail(true));
    check_runs();
    assert_int_equal(space_open_end(), page + RUN_PAGES);
    assert_int_equal(page_heap[2].end, page + RUN_PAGES);
    assert_true(all_bytes_are(page_address(page), 7, bytes_of(RUN_PAGES)));
}

static uint32_t lease_growing(unsigned arena_index)
{
    uint64_t grows = page_heap[arena_index].grows;
    uint32_t page =
        lease_from(arena_index, page_heap[arena_index].free_pages[FREE_CLEAN] + RUN_PAGES);

    assert_true(page_heap[arena_index].grows > grows);
    return page;
}

/* Bursts of three page heaps, in turn; then all of it is free, and clean. */
static void burst_in_turn(void)
{
    uint32_t page[RUN_COUNT];

    for (unsigned i = 0; i < RUN_COUNT; i++) page[i] = lease_growing(i % 3);
    for (unsigned i = 0; i < RUN_COUNT; i++) give_back(page[i]);
    (void)purge_all();
    check_runs();
}

/* Whoever opened what lies before the end, and however often they took turns. */
static void all_of_the_end_is_closed(void **state)
{
    size_t open;

    (void)state;
    start_heaps();
    burst_in_turn();
    assert_true(page_heaps_close_tail(true));
    assert_false(page_heaps_close_tail(true));
    check_runs();
    assert_int_equal(space.open_bytes, 0);
    (void)lease_growing(0);
    (void)lease_growing(1);
    open = space.open_bytes;
    for (unsigned i = 0; i < 100; i++) {
        burst_in_turn();
        assert_true(page_heaps_close_tail(true));
        check_runs();
        assert_in_range(space.open_bytes, 1, open);
    }
    assert_in_range(commit_taken_bytes(), 1, open + bytes_of(1));
}

/* Where a used page stays, its page heap ends there; what that opens next follows without a
 * seam. */
static void pages_end_where_they_did_before(void **state)
{
    uint32_t first, second;

    (void)state;
    start_heaps();
    first = lease_growing(1);
    second = lease_growing(2);
    give_back(lease_growing(1));
    assert_true(page_heaps_close_tail(true));
    check_runs();
    give_back(second);
    assert_true(page_heaps_close_tail(true));
    check_runs();
    assert_int_equal(page_heap[2].end, 0);
    assert_int_equal(page_heap[1].end, space_open_end());
    second = lease_growing(1);
    assert_int_not_equal(page_record(second - 1)->bin_index, PAGE_SEAM);
    give_back(second);
    give_back(first);
    check_runs();
}

UNIT_MAIN(UNIT_TEST(the_hard_limit_is_of_the_process), UNIT_TEST(a_seam_takes_nothing_of_the_limit),
          UNIT_TEST(clean_pages_behind_a_seam_are_found),
          UNIT_TEST(the_kernel_refuses_once_for_all),
          UNIT_TEST(what_lies_at_the_end_serves_another),
          UNIT_TEST(under_a_hard_limit_own_pages_go_first),
          UNIT_TEST(the_end_is_closed_by_whose_it_is),
          UNIT_TEST(no_used_page_is_closed_with_the_end), UNIT_TEST(all_of_the_end_is_closed),
          UNIT_TEST(pages_end_where_they_did_before))
