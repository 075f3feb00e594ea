/* run_check_test.c - every invariant of runs, broken by hand: the walk must abort and name it. */
/* SPDX-License-Identifier: MIT */
#include "library.h"
#include "page_heap/run_bins.h"

#include "harms.h"
#include "pages.h"

/* What lies in the address space of these tests, each piece between used pages. */
static uint32_t used, large, dirty, dirty_long, clean, slab_run;

enum { PIECE_PAGES = 9, LONG_PAGES = 70 };

static struct slab *slab;

static void start_pieces(void)
{
    start_pages();
    slabs_start();
    used = between_used(PIECE_PAGES);
    lock_take(&page_heap->lock);
    tag_as(used, PIECE_PAGES, PAGE_USED);
    page_heap->large_pages -= PIECE_PAGES;
    page_heap->large_returns++;
    lock_give(&page_heap->lock);
    large = between_used(PIECE_PAGES);
    dirty = between_used(PIECE_PAGES);
    dirty_long = between_used(LONG_PAGES);
    clean = between_used(PIECE_PAGES);
    slab = open_test_slab(CLASS_COUNT - 1, 0);
    slab_run = slab->page;
    give_back(dirty);
    give_back(clean);
    assert_int_equal(run_take_dirty(page_heap, PIECE_PAGES, PIECE_PAGES), clean);
    run_put_free(clean, PAGE_CLEAN);
    give_back(dirty_long);
    expect_run(dirty, PIECE_PAGES, PAGE_DIRTY);
    expect_run(clean, PIECE_PAGES, PAGE_CLEAN);
}

/* ---- the ways to break it ---- */

static struct page *at(uint32_t page, unsigned offset) { return page_record(page + offset); }

/* R1 */
static void length_at_the_front(void) { at(large, 0)->run_pages--; }
static void length_at_the_end(void) { at(large, PIECE_PAGES - 1)->run_pages++; }
static void no_length(void) { at(large, 0)->run_pages = 0; }
static void state_of_a_used_end(void) { at(large, PIECE_PAGES - 1)->state = PAGE_INSIDE; }
static void state_of_a_dirty_end(void) { at(dirty, PIECE_PAGES - 1)->state = PAGE_CLEAN; }
static void state_of_a_clean_end(void) { at(clean, PIECE_PAGES - 1)->state = PAGE_USED; }
static void state_of_a_first_page(void) { at(used, 0)->state = PAGE_INSIDE; }
static void state_unknown(void) { at(used, 0)->state = PAGE_CLEAN + 1; }
static void a_boundary_inside(void) { at(large, 4)->state = PAGE_USED; }
static void a_free_boundary_inside(void) { at(used, 4)->state = PAGE_DIRTY; }

/* R2 */
static void free_neighbours_of_a_kind(void)
{
    lock_take(&page_heap->lock);
    (void)split_free(page_heap, dirty, 4);
    lock_give(&page_heap->lock);
}

/* R3 */
static void class_in_a_free_page(void) { at(dirty, 0)->class_at = offset_of_class(3); }
static void class_inside_a_free_run(void) { at(dirty, 4)->class_at = offset_of_class(3); }
static void class_at_the_end_of_a_free_run(void)
{
    at(dirty, PIECE_PAGES - 1)->class_at = offset_of_class(3);
}
static void class_in_a_large_block(void) { at(large, 4)->class_at = offset_of_class(3); }
static void class_at_the_start_of_a_large_block(void)
{
    at(large, 0)->class_at = offset_of_class(3);
}
static void class_at_the_end_of_a_large_block(void)
{
    at(large, PIECE_PAGES - 1)->class_at = offset_of_class(3);
}
static uint32_t slab_run_pages(void) { return page_record(slab_run)->run_pages; }
static void class_missing_in_a_slab(void) { at(slab_run, 1)->class_at = 0; }
static void class_missing_at_the_end_of_a_slab(void)
{
    at(slab_run, slab_run_pages() - 1)->class_at = 0;
}
static void number_missing_in_a_slab(void) { at(slab_run, 1)->slab = 0; }
static void number_missing_at_the_end_of_a_slab(void)
{
    at(slab_run, slab_run_pages() - 1)->slab = 0;
}
static void number_inside_a_large_block(void) { at(large, 4)->slab = slab_number(slab); }
static void number_inside_a_free_run(void) { at(clean, 4)->slab = slab_number(slab); }
static void number_at_the_end_of_a_free_run(void)
{
    at(clean, PIECE_PAGES - 1)->slab = slab_number(slab);
}

/* K1 */
static void toggle_bit(unsigned kind, unsigned bin)
{
    page_heap->bins.bitmap[kind * BIN_WORDS + bin / 64] ^= (uint64_t)1 << (bin % 64);
}
static void bit_without_members(void) { toggle_bit(FREE_DIRTY, 200); }
static void members_without_a_bit(void) { toggle_bit(FREE_DIRTY, bin_of(PIECE_PAGES)); }
static void members_without_a_bit_far_up(void) { toggle_bit(FREE_DIRTY, bin_of(LONG_PAGES)); }

/* K2 */
static void move_to_bin(unsigned kind, uint32_t page, unsigned bin)
{
    uint32_t *head = &page_heap->bins.head[kind * BIN_COUNT];
    unsigned old = bin_of(page_record(page)->run_pages);

    assert_int_equal(page_record(page)->bin.next, 0);
    head[old] = 0;
    toggle_bit(kind, old);
    head[bin] = page;
    toggle_bit(kind, bin);
}
static void a_run_in_a_shorter_bin(void) { move_to_bin(FREE_DIRTY, dirty, PIECE_PAGES - 2); }
static void a_run_in_a_longer_bin(void) { move_to_bin(FREE_DIRTY, dirty, PIECE_PAGES); }
static void a_run_in_a_mixed_bin(void) { move_to_bin(FREE_DIRTY, dirty, bin_of(LONG_PAGES) + 3); }
static void a_long_run_in_a_wrong_bin(void)
{
    move_to_bin(FREE_DIRTY, dirty_long, bin_of(LONG_PAGES) + 1);
}
static void a_long_run_in_an_exact_bin(void) { move_to_bin(FREE_DIRTY, dirty_long, 5); }
static void a_run_among_the_other_kind(void)
{
    page_heap->bins.head[BIN_COUNT + 200] = dirty;
    toggle_bit(FREE_CLEAN, 200);
}
static void a_run_in_no_bin(void)
{
    page_heap->bins.head[bin_of(PIECE_PAGES)] = 0;
    toggle_bit(FREE_DIRTY, bin_of(PIECE_PAGES));
}
static void a_link_back_to_nowhere(void) { page_record(dirty)->bin.previous = clean; }
static void a_used_run_in_a_bin(void)
{
    page_heap->bins.head[200] = large;
    toggle_bit(FREE_DIRTY, 200);
}

/* K3 */
static void dirty_pages_miscounted(void) { page_heap->free_pages[FREE_DIRTY]++; }
static void clean_pages_miscounted(void) { page_heap->free_pages[FREE_CLEAN]--; }
static void large_pages_miscounted(void) { page_heap->large_pages++; }
static void large_blocks_miscounted(void) { page_heap->large_leases++; }

/* ---- the walk ---- */

static void expect_all_found(const struct harm *harms, size_t count)
{
    start_pieces();
    expect_harms_found(harms, count, check_runs);
}

static void r1_boundaries_tell_length_and_state(void **state)
{
    static const struct harm harms[] = {
        HARM(length_at_the_front),    HARM(length_at_the_end),    HARM(no_length),
        HARM(state_of_a_used_end),    HARM(state_of_a_dirty_end), HARM(state_of_a_clean_end),
        HARM(state_of_a_first_page),  HARM(state_unknown),        HARM(a_boundary_inside),
        HARM(a_free_boundary_inside),
    };

    (void)state;
    expect_all_found(harms, ARRAY_COUNT(harms));
}

static void r2_free_neighbours_differ(void **state)
{
    static const struct harm harms[] = { HARM(free_neighbours_of_a_kind) };

    (void)state;
    expect_all_found(harms, ARRAY_COUNT(harms));
}

static void r3_slabs_are_marked_and_nothing_else(void **state)
{
    static const struct harm harms[] = {
        HARM(class_in_a_free_page),
        HARM(class_inside_a_free_run),
        HARM(class_at_the_end_of_a_free_run),
        HARM(class_in_a_large_block),
        HARM(class_at_the_start_of_a_large_block),
        HARM(class_at_the_end_of_a_large_block),
        HARM(class_missing_in_a_slab),
        HARM(class_missing_at_the_end_of_a_slab),
        HARM(number_missing_in_a_slab),
        HARM(number_missing_at_the_end_of_a_slab),
        HARM(number_inside_a_large_block),
        HARM(number_inside_a_free_run),
        HARM(number_at_the_end_of_a_free_run),
    };

    (void)state;
    expect_all_found(harms, ARRAY_COUNT(harms));
}

static void k1_bits_are_set_exactly_with_members(void **state)
{
    static const struct harm harms[] = {
        HARM(bit_without_members),
        HARM(members_without_a_bit),
        HARM(members_without_a_bit_far_up),
    };

    (void)state;
    expect_all_found(harms, ARRAY_COUNT(harms));
}

static void k2_free_runs_are_in_their_one_bin(void **state)
{
    static const struct harm harms[] = {
        HARM(a_run_in_a_shorter_bin),
        HARM(a_run_in_a_longer_bin),
        HARM(a_run_in_a_mixed_bin),
        HARM(a_long_run_in_a_wrong_bin),
        HARM(a_long_run_in_an_exact_bin),
        HARM(a_run_among_the_other_kind),
        HARM(a_run_in_no_bin),
        HARM(a_link_back_to_nowhere),
        HARM(a_used_run_in_a_bin),
    };

    (void)state;
    expect_all_found(harms, ARRAY_COUNT(harms));
}

static void k3_pages_are_counted(void **state)
{
    static const struct harm harms[] = {
        HARM(dirty_pages_miscounted),
        HARM(clean_pages_miscounted),
        HARM(large_pages_miscounted),
        HARM(large_blocks_miscounted),
    };

    (void)state;
    expect_all_found(harms, ARRAY_COUNT(harms));
}

static void return_what_is_free(void) { run_return(dirty); }
static void return_the_inside(void) { run_return(large + 1); }
static void extend_what_is_free(void) { (void)run_extend(page_heap, dirty, PIECE_PAGES + 1); }
static void extend_to_less(void) { (void)run_extend(page_heap, large, PIECE_PAGES); }
static void trim_to_nothing(void) { run_trim(page_heap, large, 0); }
static void trim_to_more(void) { run_trim(page_heap, large, PIECE_PAGES); }
static void lease_nothing(void) { (void)run_lease(0, 1, PAGE_USED); }
static void lease_oddly_aligned(void) { (void)run_lease(1, 3, PAGE_USED); }
static void walk_without_the_lock(void) { page_heaps_check(); }

static void wrong_calls_abort(void **state)
{
    static void (*const calls[])(void) = {
        return_what_is_free, return_the_inside,   extend_what_is_free,
        extend_to_less,      trim_to_nothing,     trim_to_more,
        lease_nothing,       lease_oddly_aligned, walk_without_the_lock,
    };

    (void)state;
    start_pieces();
    for (unsigned i = 0; i < ARRAY_COUNT(calls); i++)
        expect_abort(calls[i], "prairie: broken invariant: ");
}

UNIT_MAIN(UNIT_TEST(r1_boundaries_tell_length_and_state), UNIT_TEST(r2_free_neighbours_differ),
          UNIT_TEST(r3_slabs_are_marked_and_nothing_else),
          UNIT_TEST(k1_bits_are_set_exactly_with_members),
          UNIT_TEST(k2_free_runs_are_in_their_one_bin), UNIT_TEST(k3_pages_are_counted),
          UNIT_TEST(wrong_calls_abort))
