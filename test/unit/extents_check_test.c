/* extents_check_test.c - what the walk of an arena's extents finds: Y1 and Y2, and E1, E2, K2 and
 * K3 of the page heap in them, broken by hand. */
/* SPDX-License-Identifier: MIT */
#include "library.h"
#include "page_heap/run_bins.h"

#include "harms.h"
#include "hooks.h"

static struct arena *arena;
static struct extents *extents;
static void *held; /* in an extent of its own, as is the spare one */

static void start_with_a_spare_extent(void)
{
    int flags;
    void *block;

    seen.refuse_split = true;
    arena = hooked_arena();
    flags = (int)(MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
    extents = arena->extents;
    for (unsigned i = 0; i < 2; i++) assert_non_null(held = prairie_mallocx(100000, flags));
    assert_true(extents->whole);
    assert_non_null(block = prairie_mallocx(100000, flags));
    prairie_free(block);
    assert_true(extents->spare != NULL && supplied_is_free(&extents->spare->piece));
}

static void walk_extents(void)
{
    lock_take(&arena->lock);
    lock_take(page_heap_lock(&extents->heap));
    extents_check(extents);
    lock_give(page_heap_lock(&extents->heap));
    lock_give(&arena->lock);
}

static struct page *first_spare_page(void) { return page_record(extents->spare->piece.first); }

static void y1_a_free_one_is_not_said_to_be_spare(void) { extents->spare->is_spare = false; }
static void y1_a_free_one_is_not_in_the_list(void) { extents->spare = NULL; }
static void y1_one_in_use_hides_a_free_one(void)
{
    struct extent *used = extent_of(extents, page_at(held));

    used->is_spare = true;
    used->next_spare = NULL;
    extents->spare = used;
}
static void y2_nobody_is_told_of_two(void)
{
    lock_take(&arena->lock);
    assert_true(extents_put(extents, page_at(held)));
    lock_give(&arena->lock);
    assert_true(*extents->arena_has_spare);
    walk_extents();
    *extents->arena_has_spare = false;
}
static void e1_a_page_too_many_counted(void) { extents->heap.open_pages++; }
static void e1_no_length(void) { first_spare_page()->run_pages = 0; }
static void e1_another_length_at_the_end(void)
{
    first_spare_page()[extents->spare->piece.pages - 1].run_pages--;
}
static void e2_a_run_beyond_its_piece(void)
{
    extents->spare->piece.pages--;
    extents->heap.open_pages--;
}
static void k2_a_free_run_in_no_bin(void) { bin_remove(&extents->heap, first_spare_page()); }
static void k3_a_free_page_too_many_counted(void) { extents->heap.free_pages[FREE_DIRTY]++; }

static void broken_invariants_are_found(void **state)
{
    static const struct harm harms[] = {
        HARM(y1_a_free_one_is_not_said_to_be_spare),
        HARM(y1_a_free_one_is_not_in_the_list),
        HARM(y1_one_in_use_hides_a_free_one),
        HARM(y2_nobody_is_told_of_two),
        HARM(e1_a_page_too_many_counted),
        HARM(e1_no_length),
        HARM(e1_another_length_at_the_end),
        HARM(e2_a_run_beyond_its_piece),
        HARM(k2_a_free_run_in_no_bin),
        HARM(k3_a_free_page_too_many_counted),
    };

    (void)state;
    start_with_a_spare_extent();
    expect_harms_found(harms, ARRAY_COUNT(harms), walk_extents);
}

UNIT_MAIN(UNIT_TEST(broken_invariants_are_found))
