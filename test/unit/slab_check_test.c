/* slab_check_test.c - S1 to S5, broken by hand: the walk must abort. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "harms.h"
#include "pages.h"

static struct slab *victim;

static void s1_count_too_high(void) { victim->free_count++; }
static void s1_bit_lost(void) { victim->free[1] &= victim->free[1] - 1; }
static void s2_bit_beyond_the_end(void)
{
    victim->free[victim->block_count / 64] |= (uint64_t)1 << 63;
    victim->free_count++;
}
static void s4_hint_too_high(void) { victim->hint++; }
static void s5_page_in_use(void) { victim->purged |= 1; }
static void another_count(void) { victim->block_count--; }
static void another_page(void) { victim->page++; }
static void another_base(void) { victim->base += 16; }

static void check_victim(void) { slab_check(victim); }

static void broken_invariants_are_found(void **state)
{
    static const struct harm harms[] = {
        HARM(s1_count_too_high), HARM(s1_bit_lost),    HARM(s2_bit_beyond_the_end),
        HARM(s4_hint_too_high),  HARM(s5_page_in_use), HARM(another_count),
        HARM(another_page),      HARM(another_base),
    };
    unsigned class_index = CLASS_COUNT - 1;
    void *taken[2];

    (void)state;
    start_pages();
    slabs_start();
    /* A class of several words, the last one not full: every kind of harm has a place. */
    while (slab_shape[class_index].block_count % 64 == 0 || slab_shape[class_index].word_count < 2)
        assert_true(--class_index > 0);
    victim = open_test_slab(class_index, 5);
    assert_non_null(victim);
    assert_int_equal(slab_fill(victim, taken + 2, 2), 2);
    expect_harms_found(harms, ARRAY_COUNT(harms), check_victim);
}

UNIT_MAIN(UNIT_TEST(broken_invariants_are_found))
