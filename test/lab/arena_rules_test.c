/* arena_rules_test.c - the lab's rules choose the arenas that they say, and what they chose is
 * counted. */
/* SPDX-License-Identifier: MIT */
#include "prairie.c"

#include "kernel/fake.h"

#include "rules.c"

#include "holder.h"

enum { CORES = 4 };

static void start(const char *name)
{
    page_heaps_start();
    assert_true(space_start());
    slabs_start();
    arenas_start(CORES);
    assert_non_null(rule_named(name));
    rule_use(rule_named(name), CORES);
}

static struct arena *choose(struct arena *last)
{
    struct arena *arena = rule_choose(last);

    assert_non_null(arena);
    assert_true(lock_is_mine(&arena->lock));
    lock_give(&arena->lock);
    return arena;
}

static uint64_t sum_of(size_t offset)
{
    uint64_t sum = 0;

    for (unsigned index = 0; index < ARENA_COUNT_MAX; index++)
        sum += *(uint64_t *)((char *)&arena_tally[index] + offset);
    return sum;
}

#define SUM_OF(field) sum_of(offsetof(struct arena_tally, field))

/* ---- another thread ---- */

static struct arena *chosen;

static void *choose_once(void *last)
{
    chosen = choose(last);
    return NULL;
}

static void choose_in_another_thread(struct arena *last)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, choose_once, last), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* What a thread that was at `last` gets while somebody holds `busy`. */
static struct arena *choose_while_held(struct arena *busy, struct arena *last)
{
    pthread_t holder = holder_of(busy);
    struct arena *arena = choose(last);

    let_go(holder);
    return arena;
}

/* ---- the rules ---- */

static void turns_binds_for_life(void **state)
{
    (void)state;
    start("turns");
    for (unsigned i = 0; i < 2 * CORES; i++) {
        struct arena *mine = choose(NULL);
        assert_int_equal(mine->index, i % CORES);
        fake_core_current(i + 1);
        assert_ptr_equal(choose(mine), mine);
    }
    assert_int_equal(SUM_OF(choices), 4 * CORES);
    assert_int_equal(SUM_OF(moved), 0);
}

static void four_has_four_times_as_many(void **state)
{
    (void)state;
    start("four");
    for (unsigned i = 0; i < 8 * CORES; i++) assert_int_equal(choose(NULL)->index, i % (4 * CORES));
}

static void core_follows_the_core(void **state)
{
    struct arena *last = NULL;

    (void)state;
    start("core");
    for (unsigned core = 0; core < 2 * CORES; core++) {
        fake_core_current(core);
        last = choose(last);
        assert_int_equal(last->index, core % CORES);
        assert_ptr_equal(choose(last), last);
    }
    assert_int_equal(SUM_OF(choices), 4 * CORES);
    assert_int_equal(SUM_OF(moved), 2 * CORES - 1);
    assert_int_equal(SUM_OF(stale), 0);
}

static void owner_stays_while_nobody_else_came(void **state)
{
    struct arena *mine;

    (void)state;
    start("owner");
    fake_core_current(3);
    mine = choose(NULL);
    assert_int_equal(mine->index, 0);
    assert_ptr_equal(choose(mine), mine);
    assert_int_equal(SUM_OF(stale), 2);

    choose_in_another_thread(mine); /* which never was the owner, and goes to its core's */
    assert_int_equal(chosen->index, 3);
    assert_ptr_equal(choose(mine), mine);
    fake_core_current(0);
    choose_in_another_thread(mine); /* whose core's it is now: it takes over */
    assert_ptr_equal(chosen, mine);
    fake_core_current(2);
    assert_int_equal(choose(mine)->index, 2);
}

static void owner_spreads_the_first_threads(void **state)
{
    (void)state;
    start("owner");
    fake_core_current(1);
    for (unsigned i = 0; i < CORES; i++) assert_int_equal(choose(NULL)->index, i);
    for (unsigned i = 0; i < 3; i++) assert_int_equal(choose(NULL)->index, 1);
}

static void owner_leaves_a_held_arena(void **state)
{
    struct arena *mine;

    (void)state;
    start("owner");
    mine = choose(NULL);
    fake_core_current(2);
    assert_int_equal(choose_while_held(mine, mine)->index, 2);
    assert_int_equal(SUM_OF(moved), 1);
}

static void hop_is_what_the_library_does(void **state)
{
    struct arena *mine;

    (void)state;
    start("hop");
    mine = choose(NULL);
    fake_core_current(3);
    assert_ptr_equal(choose(mine), mine);
    choose_in_another_thread(mine); /* unlike owner: it stays there as well */
    assert_ptr_equal(chosen, mine);
    assert_int_equal(arena_hops, 0);
    assert_int_equal(choose_while_held(mine, mine)->index, 3);
    assert_int_equal(arena_hops, 1);
}

static void neighbour_goes_one_further_than_a_held_one(void **state)
{
    (void)state;
    start("neighbour");
    fake_core_current(3);
    assert_int_equal(choose(NULL)->index, 3);
    assert_int_equal(choose_while_held(arenas[3], arenas[3])->index, 0);
    assert_int_equal(choose(arenas[0])->index, 3);
    assert_int_equal(SUM_OF(moved), 2);
    assert_int_equal(SUM_OF(stale), 1);
}

static void there_is_no_other_rule(void **state)
{
    (void)state;
    assert_null(rule_named("fastest"));
}

UNIT_MAIN(UNIT_TEST(turns_binds_for_life), UNIT_TEST(four_has_four_times_as_many),
          UNIT_TEST(core_follows_the_core), UNIT_TEST(owner_stays_while_nobody_else_came),
          UNIT_TEST(owner_spreads_the_first_threads), UNIT_TEST(owner_leaves_a_held_arena),
          UNIT_TEST(hop_is_what_the_library_does),
          UNIT_TEST(neighbour_goes_one_further_than_a_held_one), UNIT_TEST(there_is_no_other_rule))
