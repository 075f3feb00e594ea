/* arena_test.c - blocks between slabs and magazines, and whose arena they belong to. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "bins.h"

enum { MANY = 6000 };

static unsigned small_class(void) { return class_of_size(64); }

/* ---- the making of arenas ---- */

static void an_arena_is_made_once(void **state)
{
    (void)state;
    start_arenas(3);
    for (unsigned i = 0; i < 3; i++) {
        assert_ptr_equal(arena_at(i), arenas[i]);
        assert_int_equal(arenas[i]->index, i);
        for (unsigned j = 0; j < i; j++) assert_ptr_not_equal(arenas[i], arenas[j]);
    }
    assert_null(arenas[3]);
    check_arenas();
}

static void no_more_arenas_than_there_is_room_for(void **state)
{
    (void)state;
    arenas_start(100000);
    assert_int_equal(arena_limit, ARENA_COUNT_MAX);
}

/* Numbers go on behind those that there are: too late once there are manual arenas, or all numbers
 * are used. */
static void arenas_are_hardened_before_others_are_made(void **state)
{
    (void)state;
    start_arenas(2);
    assert_non_null(arena_create());
    assert_int_equal(arenas_end(), 3);
    assert_false(arenas_harden());
    assert_int_equal(arena_first, 0);
    assert_int_equal(arena_limit, 2);
}

static void refused_memory_makes_no_arena(void **state)
{
    (void)state;
    start_pages();
    slabs_start();
    arenas_start(2);
    fake_fail_all(true);
    assert_null(arena_at(0));
    assert_null(arena_at(0));
    fake_fail_all(false);
    assert_non_null(arena_at(0));
    check_arenas();
}

/* ---- fill ---- */

static void a_fill_hands_out_ascending_addresses(void **state)
{
    void *slots[SLOTS_MAX];
    unsigned got;

    (void)state;
    start_arenas(1);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        got = fill(0, class_index, slots, 100);
        assert_int_equal(got, min_size(100, slab_shape[class_index].block_count));
        for (unsigned i = got; i > 1; i--) /* the top is handed out first */
            assert_ptr_equal(slots[i - 1], (char *)slots[i] + class_bytes[class_index]);
        for (unsigned i = 1; i <= got; i++)
            assert_ptr_equal(slab_of(slots[i], class_index)->arena, 0);
    }
}

/* What partial slabs have is enough: a slab is opened only when they have nothing. */
static void partial_slabs_are_used_up_first(void **state)
{
    static void *slots[MANY];
    const struct class_bin *bin;
    unsigned in_slab;

    (void)state;
    start_arenas(1);
    bin = &arenas[0]->bin[small_class()];
    in_slab = slab_shape[small_class()].block_count;
    assert_int_equal(fill(0, small_class(), slots, in_slab - 3), in_slab - 3);
    assert_int_equal(bin->slab_count, 1);
    assert_int_equal(bin->slab_free_blocks, 3);
    assert_int_equal(fill(0, small_class(), slots, 10), 3);
    assert_int_equal(bin->slab_count, 1);
    assert_int_equal(bin->partial.count, 0);
    assert_int_equal(fill(0, small_class(), slots, 10), 10);
    assert_int_equal(bin->slab_count, 2);
    assert_int_equal(bin->flow.fills, 3);
}

/* One block of any arena that is used by itself. A new arena is in its place before the end moves
 * behind it: it is not looked at yet. */
static void one_block_comes_from_any_arena_before_the_end(void **state)
{
    void *slots[SLOTS_MAX];
    unsigned in_slab;

    (void)state;
    start_arenas(3);
    in_slab = slab_shape[small_class()].block_count;
    assert_null(arenas_take_one(small_class()));
    assert_int_equal(fill(0, small_class(), slots, in_slab - 1), in_slab - 1);
    assert_non_null(arenas_take_one(small_class())); /* the last one of the first arena */
    assert_null(arenas_take_one(small_class()));
    assert_int_equal(fill(2, small_class(), slots, 10), 10);
    assert_int_equal(arenas[2]->bin[small_class()].slab_free_blocks, in_slab - 10);
    assert_int_equal(arenas_end(), 3);
    __atomic_store_n(&arena_end, 2, __ATOMIC_RELEASE);
    assert_null(arenas_take_one(small_class()));
    __atomic_store_n(&arena_end, 3, __ATOMIC_RELEASE);
    assert_non_null(arenas_take_one(small_class()));
    assert_int_equal(arenas[2]->bin[small_class()].slab_free_blocks, in_slab - 11);
    check_arenas();
}

static void refused_memory_fills_nothing(void **state)
{
    void *slots[SLOTS_MAX];

    (void)state;
    start_arenas(1);
    fake_fail_all(true);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        while (fill(0, class_index, slots, 50) != 0) {}
    assert_true(fake_failures() > 0);
    fake_fail_all(false);
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        assert_true(fill(0, class_index, slots, 50) > 0);
}

/* ---- drain ---- */

/* A record without a run waits for the next try; no try costs one. */
static void refused_runs_cost_no_records(void **state)
{
    void *slots[SLOTS_MAX];
    size_t used = 0;

    (void)state;
    start_arenas(1);
    assert_int_equal(fill(0, small_class(), slots, 1), 1);
    while (run_lease(1, 1, PAGE_USED).page != 0 && space.open_bytes < 4 * MiB) {}
    (void)meta_open_ahead(256 * KiB);
    fake_fail_all(true);
    for (unsigned i = 0; i < 100; i++) {
        while (fill(0, small_class() + 1, slots, 100) != 0) {}
        if (i == 1) used = commit.record_bytes;
    }
    assert_int_equal(commit.record_bytes, used);
    assert_int_equal(arenas[0]->bin[small_class() + 1].closed.count, 1);
}

static void drained_blocks_can_be_filled_again(void **state)
{
    static void *slots[MANY + 1];
    size_t open;

    (void)state;
    start_arenas(1);
    fill_all(0, small_class(), slots, MANY);
    open = space.open_bytes;
    assert_int_equal(drain(0, small_class(), slots + 1, MANY), 0);
    assert_int_equal(arenas[0]->bin[small_class()].flow.drains, 1);
    fill_all(0, small_class(), slots, MANY);
    assert_int_equal(space.open_bytes, open);
}

/* Slabs without used blocks go back, but for one: the next fill would have to open it again. */
static void empty_slabs_are_closed_but_for_the_last(void **state)
{
    static void *slots[MANY + 1];
    const struct class_bin *bin;

    (void)state;
    start_arenas(1);
    bin = &arenas[0]->bin[small_class()];
    fill_all(0, small_class(), slots, MANY);
    assert_true(bin->slab_count > 5);
    assert_int_equal(drain(0, small_class(), slots + 1, MANY), 0);
    assert_int_equal(bin->slab_count, 1);
    assert_int_equal(bin->slab_free_blocks, slab_shape[small_class()].block_count);
    arenas_close_empty();
    check_arenas();
    assert_int_equal(bin->slab_count, 0);
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

/* Blocks of the slab that was filled as the n-th. */
static void **blocks_of_slab(void **slots, unsigned n)
{
    return slots + 1 + n * slab_shape[small_class()].block_count;
}

/* One that emptied while it was alone is kept, and stays when others get free blocks after it. */
static void the_empty_slab_is_closed_among_others(void **state)
{
    enum { SLABS_MAX = 5 };
    static void *slots[MANY + 1];
    struct class_bin *bin;
    unsigned in_slab;

    (void)state;
    start_arenas(1);
    bin = &arenas[0]->bin[small_class()];
    in_slab = slab_shape[small_class()].block_count;
    for (unsigned slabs = 1; slabs <= SLABS_MAX; slabs++) {
        fill_all(0, small_class(), slots, slabs * in_slab);
        assert_int_equal(bin->slab_count, slabs);
        (void)drain(0, small_class(), blocks_of_slab(slots, 0), in_slab);
        for (unsigned n = 1; n < slabs; n++)
            (void)drain(0, small_class(), blocks_of_slab(slots, n), n);
        check_arenas();
        assert_int_equal(bin->partial.count, slabs);
        arenas_close_empty();
        check_arenas();
        assert_int_equal(bin->partial.count, slabs - 1);
        assert_int_equal(bin->slab_count, slabs - 1);
        for (unsigned n = 1; n < slabs; n++)
            (void)drain(0, small_class(), blocks_of_slab(slots, n) + n, in_slab - n);
        assert_int_equal(bin->slab_count, slabs > 1); /* the last one to empty */
        arenas_close_empty();
        check_arenas();
        assert_int_equal(bin->slab_count, 0);
    }
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

static void each_arena_takes_its_own(void **state)
{
    void *slots[3][5], *mixed[16];

    (void)state;
    start_arenas(3);
    for (unsigned i = 0; i < 3; i++) fill_all(i, small_class(), slots[i], 4);
    for (unsigned i = 0; i < 12; i++) mixed[i] = slots[i % 3][1 + i / 3];
    mixed[12] = mixed[13] = NULL; /* M3 */
    for (unsigned i = 0; i < 12; i++)
        assert_ptr_equal(arena_of_block(small_class(), mixed[i]), arenas[i % 3]);
    assert_null(arena_of_block(small_class(), NULL));

    assert_int_equal(drain(1, small_class(), mixed, 14), 8);
    for (unsigned i = 0; i < 8; i++) /* the others, in their old order */
        assert_ptr_equal(mixed[i], slots[i % 2 ? 2 : 0][1 + i / 2]);
    assert_int_equal(drain(1, small_class(), mixed, 8), 8);
    assert_int_equal(drain(2, small_class(), mixed, 8), 4);
    assert_int_equal(drain(0, small_class(), mixed, 4), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(arenas[i]->bin[small_class()].slab_free_blocks,
                         slab_shape[small_class()].block_count);
}

static void all_arenas_drain_at_once(void **state)
{
    void *slots[3][41], *mixed[130] = { NULL };
    unsigned count = 0;

    (void)state;
    start_arenas(3);
    for (unsigned i = 0; i < 3; i++) fill_all(i, small_class(), slots[i], 40);
    for (unsigned i = 1; i <= 40; i++)
        for (unsigned j = 0; j < 3; j++) mixed[count++] = slots[(i + j) % 3][i];
    mixed[count++] = NULL;
    arenas_drain(small_class(), mixed, count);
    check_arenas();
    arenas_close_empty();
    assert_int_equal(page_heap_used_pages(page_heap), 0);
    arenas_drain(small_class(), mixed, 0);
}

/* ---- misuse that is found when draining ---- */

static void *slots_of_misuse[5];

static void prepare_misuse(void)
{
    start_arenas(2);
    fill_all(0, small_class(), slots_of_misuse, 4);
}

static void drain_twice(void)
{
    arenas_drain(small_class(), slots_of_misuse + 1, 2);
    arenas_drain(small_class(), slots_of_misuse + 1, 1);
}

static void drain_twice_at_once(void)
{
    slots_of_misuse[2] = slots_of_misuse[1];
    arenas_drain(small_class(), slots_of_misuse + 1, 2);
}

static void drain_the_inside(void)
{
    slots_of_misuse[1] = (char *)slots_of_misuse[1] + 8;
    arenas_drain(small_class(), slots_of_misuse + 1, 2);
}

static void drain_what_is_closed(void)
{
    arenas_drain(small_class(), slots_of_misuse + 1, 4);
    arenas_close_empty();
    arenas_drain(small_class(), slots_of_misuse + 1, 1);
}

static void misuse_is_told_with_its_address(void **state)
{
    (void)state;
    prepare_misuse();
    expect_abort_at(drain_twice, "double free", slots_of_misuse[1]);
    expect_abort_at(drain_twice_at_once, "double free", slots_of_misuse[1]);
    expect_abort_at(drain_what_is_closed, "double free", slots_of_misuse[1]);
    expect_abort_at(drain_the_inside, "free of an interior pointer",
                    (char *)slots_of_misuse[1] + 8);
}

/* ---- locks ---- */

static const struct lock *locks_visited[8];
static unsigned locks_visited_count;

static void note_lock(struct lock *lock)
{
    assert_true(locks_visited_count < ARRAY_COUNT(locks_visited));
    locks_visited[locks_visited_count++] = lock;
}

static void arenas_are_locked_in_order_and_given_in_reverse(void **state)
{
    enum { COUNT = 5, GAP = 2 };
    struct arena *missing;

    (void)state;
    start_arenas(COUNT);
    missing = arenas[GAP];
    arenas[GAP] = NULL; /* not made yet */
    take_arenas();
    arenas_each_lock(note_lock, WALK_TAKES);
    arenas_each_lock(note_lock, WALK_GIVES);
    give_arenas();
    arenas[GAP] = missing;
    assert_int_equal(locks_visited_count, 2 * (COUNT - 1));
    for (unsigned i = 0; i < COUNT - 1; i++) {
        assert_ptr_equal(locks_visited[i], &arenas[i < GAP ? i : i + 1]->lock);
        assert_ptr_equal(locks_visited[i], locks_visited[2 * (COUNT - 1) - 1 - i]);
    }
}

/* ---- growth that is not allowed ---- */

static unsigned fill_without_growth(void **slots, unsigned wanted)
{
    unsigned got;

    lock_take(&arenas[0]->lock);
    got = arena_fill(arenas[0], small_class(), slots, wanted, false);
    lock_give(&arenas[0]->lock);
    check_arenas();
    return got;
}

static void a_fill_may_be_kept_from_growing_the_region(void **state)
{
    void *slots[SLOTS_MAX];
    size_t open;

    (void)state;
    start_arenas(1);
    assert_int_equal(space.open_bytes, 0);
    assert_int_equal(fill_without_growth(slots, 5), 0);
    assert_int_equal(space.open_bytes, 0);
    assert_int_equal(fill(0, small_class(), slots, 5), 5);
    open = space.open_bytes;
    while (fill_without_growth(slots, 100) != 0) {} /* what is open is used */
    assert_int_equal(space.open_bytes, open);
    assert_true(
        run_lease_would_grow(page_heap, slab_shape[small_class()].bytes >> space.page_shift));
}

/* Records of closed slabs wait for the next ones, a limited number of them. */
static void records_of_closed_slabs_are_kept(void **state)
{
    static void *slots[64 * MANY + 1];
    const struct class_bin *bin;
    unsigned class_index = CLASS_COUNT - 1, count;

    (void)state;
    start_arenas(1);
    bin = &arenas[0]->bin[class_index];
    for (unsigned slabs = 1; slabs <= 100; slabs += 33) {
        count = slabs * slab_shape[class_index].block_count;
        fill_all(0, class_index, slots, count);
        assert_int_equal(drain(0, class_index, slots + 1, count), 0);
        assert_in_range(bin->closed.count, min_size(slabs, inside_closed_max) - 1,
                        inside_closed_max);
    }
    assert_int_equal(bin->closed.count, inside_closed_max);
    count = 10 * slab_shape[class_index].block_count;
    fill_all(0, class_index, slots, count);
    assert_in_range(bin->closed.count, inside_closed_max - 10, inside_closed_max - 9);
}

/* ---- random fills and drains ---- */

static void random_blocks_of_several_arenas(void **state)
{
    static struct {
        void *block;
        unsigned class_index;
    } held[2000];
    unsigned count = 0;

    (void)state;
    start_arenas(3);
    for (unsigned step = 0; step < 3000; step++) {
        void *slots[SLOTS_MAX];
        unsigned class_index = (unsigned)(1 + random_below(CLASS_COUNT - 1)), got = 0;

        if (random_below(20) == 0) fake_fail_nth(1);
        if (count < 1800 && random_below(2) == 0) {
            got = fill((unsigned)random_below(3), class_index, slots,
                       (unsigned)(1 + random_below(60)));
            for (unsigned i = 1; i <= got; i++, count++) {
                held[count].block = slots[i];
                held[count].class_index = class_index;
                memset(slots[i], (int)class_index, class_bytes[class_index]);
            }
        } else if (count > 0) {
            class_index = held[random_below(count)].class_index;
            for (unsigned i = count; i-- > 0 && got < 60;) {
                if (held[i].class_index != class_index || random_below(2) == 0) continue;
                assert_true(all_bytes_are(held[i].block, (unsigned char)class_index,
                                          class_bytes[class_index]));
                slots[got++] = held[i].block;
                held[i] = held[--count];
            }
            arenas_drain(class_index, slots, got);
            check_arenas();
        }
        fake_fail_nth(0);
    }
    while (count-- > 0) arenas_drain(held[count].class_index, &held[count].block, 1);
    arenas_close_empty();
    check_arenas();
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

UNIT_MAIN(UNIT_TEST(an_arena_is_made_once), UNIT_TEST(no_more_arenas_than_there_is_room_for),
          UNIT_TEST(arenas_are_hardened_before_others_are_made),
          UNIT_TEST(refused_memory_makes_no_arena), UNIT_TEST(a_fill_hands_out_ascending_addresses),
          UNIT_TEST(partial_slabs_are_used_up_first),
          UNIT_TEST(one_block_comes_from_any_arena_before_the_end),
          UNIT_TEST(refused_memory_fills_nothing), UNIT_TEST(refused_runs_cost_no_records),
          UNIT_TEST(drained_blocks_can_be_filled_again),
          UNIT_TEST(empty_slabs_are_closed_but_for_the_last),
          UNIT_TEST(the_empty_slab_is_closed_among_others), UNIT_TEST(each_arena_takes_its_own),
          UNIT_TEST(all_arenas_drain_at_once), UNIT_TEST(misuse_is_told_with_its_address),
          UNIT_TEST(arenas_are_locked_in_order_and_given_in_reverse),
          UNIT_TEST(a_fill_may_be_kept_from_growing_the_region),
          UNIT_TEST(records_of_closed_slabs_are_kept), UNIT_TEST(random_blocks_of_several_arenas))
