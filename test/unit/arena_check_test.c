/* arena_check_test.c - what the walk of an arena finds: A1 to A4, X1 and the counts, broken by
 * hand. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "bins.h"
#include "harms.h"

enum { MANY = 6000 };

static unsigned small_class(void) { return class_of_size(64); }

static struct class_bin *bin_of_harm;

static struct slab *first_partial(void) { return slab_record(bin_of_harm->partial.first); }

static void a1_of_another_arena(void) { first_partial()->arena = 1; }
static void a1_of_another_class(void)
{
    first_partial()->class_index = (uint8_t)(small_class() + 1);
}
static void a1_a_link_back(void)
{
    struct slab *second = slab_record(first_partial()->next);

    second->previous = second->next;
}
static void a_slab_too_many_counted(void) { bin_of_harm->partial.count++; }
static void a_free_block_too_many_counted(void) { bin_of_harm->slab_free_blocks++; }
static void fewer_slabs_than_listed(void) { bin_of_harm->slab_count = 1; }
static void a2_an_active_page_too_many(void) { arenas[0]->active_pages++; }
static void a4_a_purged_page_too_many(void) { arenas[0]->purged_pages++; }
static void another_last_slab(void) { first_partial()->previous = bin_of_harm->partial.first; }
static void a_slab_dropped_from_the_list(void)
{
    bin_of_harm->partial.first = first_partial()->next;
}

static void broken_invariants_are_found(void **state)
{
    static const struct harm harms[] = {
        HARM(a1_of_another_arena),
        HARM(a1_of_another_class),
        HARM(a1_a_link_back),
        HARM(a_slab_too_many_counted),
        HARM(a_free_block_too_many_counted),
        HARM(fewer_slabs_than_listed),
        HARM(a_slab_dropped_from_the_list),
        HARM(a2_an_active_page_too_many),
        HARM(another_last_slab),
        HARM(a4_a_purged_page_too_many),
    };
    static void *slots[MANY + 1];
    unsigned in_slab;

    (void)state;
    start_arenas(2);
    bin_of_harm = &arenas[0]->bin[small_class()];
    in_slab = slab_shape[small_class()].block_count;
    fill_all(0, small_class(), slots,
             3 * in_slab); /* three full slabs, then a block of each back */
    for (unsigned i = 0; i < 3; i++) (void)drain(0, small_class(), slots + 1 + i * in_slab, 1);
    assert_int_equal(bin_of_harm->partial.count, 3);
    expect_harms_found(harms, ARRAY_COUNT(harms), check_arenas);
}

/* Of two slabs the other one is the first. */
static void turn_the_list_around(void)
{
    struct slab *first = first_partial(), *last = slab_record(first->previous);

    assert_int_equal(bin_of_harm->partial.count, 2);
    bin_of_harm->partial.first = slab_number(last);
    last->previous = last->next = slab_number(first);
    first->previous = slab_number(last);
    first->next = 0;
}

/* A3 */
static void an_empty_slab_before_others_is_found(void **state)
{
    static void *slots[MANY + 1];
    unsigned in_slab;

    (void)state;
    start_arenas(1);
    bin_of_harm = &arenas[0]->bin[small_class()];
    in_slab = slab_shape[small_class()].block_count;
    fill_all(0, small_class(), slots, 2 * in_slab);
    (void)drain(0, small_class(), slots + 1, in_slab);
    (void)drain(0, small_class(), slots + 1 + in_slab, 1);
    expect_harm_found(turn_the_list_around, check_arenas,
                      "prairie: broken invariant: slab->free_count < slab->block_count");
}

static void x1_a_full_one_too_many_counted(void) { bin_of_harm->full.count++; }
static void x1_a_full_one_lost(void) { bin_of_harm->full.first = 0; }
static void x1_a_free_block_of_a_full_one(void)
{
    slab_record(bin_of_harm->full.first)->free_count = 1;
}
static void x1_a_full_one_of_another_arena(void)
{
    slab_record(bin_of_harm->full.first)->arena = 0;
}

static void slabs_of_a_manual_arena_are_all_listed(void **state)
{
    static const struct harm harms[] = {
        HARM(x1_a_full_one_too_many_counted),
        HARM(x1_a_full_one_lost),
        HARM(x1_a_free_block_of_a_full_one),
        HARM(x1_a_full_one_of_another_arena),
    };
    static void *slots[MANY + 1];
    struct arena *manual;

    (void)state;
    start_arenas(1);
    manual = arena_create();
    assert_non_null(manual);
    bin_of_harm = &manual->bin[small_class()];
    fill_all(manual->index, small_class(), slots, 2 * slab_shape[small_class()].block_count + 1);
    assert_int_equal(bin_of_harm->full.count, 2);
    expect_harms_found(harms, ARRAY_COUNT(harms), check_arenas);
}

static void fill_unlocked(void)
{
    void *slots[2];
    (void)arena_fill(arenas[0], 1, slots, 1, true);
}
static void drain_unlocked(void) { (void)arena_drain(arenas[0], 1, NULL, 0); }
static void walk_unlocked(void) { arena_check(arenas[0]); }

static void calls_without_the_lock_abort(void **state)
{
    (void)state;
    start_arenas(1);
    expect_abort(fill_unlocked, "prairie: broken invariant: lock_is_mine(&arena->lock)");
    expect_abort(drain_unlocked, "prairie: broken invariant: lock_is_mine(&arena->lock)");
    expect_abort(walk_unlocked, "prairie: broken invariant: lock_is_mine(&arena->lock)");
}

UNIT_MAIN(UNIT_TEST(broken_invariants_are_found), UNIT_TEST(an_empty_slab_before_others_is_found),
          UNIT_TEST(slabs_of_a_manual_arena_are_all_listed),
          UNIT_TEST(calls_without_the_lock_abort))
