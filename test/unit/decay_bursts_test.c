/* decay_bursts_test.c - what is done before growth, and what whole bursts leave. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "breaths.h"
#include "threads.h"

/* ---- before growth ---- */

/* A magazine of these blocks for the depot of arena 0. */
static void bring(unsigned class_index, void *const *blocks)
{
    unsigned capacity = magazine_capacity(class_index);
    void **full = meta_take(magazine_bytes(capacity));
    bool drain;

    memcpy(full + 1, blocks, capacity * sizeof *full);
    lock_take(&arenas[0]->lock);
    full = depot_trade_full(arenas[0], class_index, full, false, &drain);
    lock_give(&arenas[0]->lock);
    if (drain) arenas_drain(class_index, full + 1, capacity);
}

/* Slabs of which all blocks but one are free; some of these lie in a depot, the program holds the
 * others. */
static void hold_slabs_open(unsigned class_index, size_t bytes)
{
    enum { BLOCKS_MAX = 20000 };
    static void *slots[BLOCKS_MAX + 1], *kept[BLOCKS_MAX];
    unsigned in_slab = slab_shape[class_index].block_count;
    unsigned capacity = magazine_capacity(class_index);
    unsigned slabs = (unsigned)(bytes / slab_shape[class_index].bytes);

    assert_true(slabs * in_slab <= BLOCKS_MAX);
    fill_all(0, class_index, slots, slabs * in_slab);
    for (unsigned i = 0; i < slabs; i++) kept[i] = slots[1 + i * in_slab];
    assert_true(slabs >= 2 * capacity);
    bring(class_index, kept);
    bring(class_index, kept + capacity);
    for (unsigned i = 0; i < slabs; i++)
        arenas_drain(class_index, slots + 2 + i * in_slab, in_slab - 1);
    check_arenas();
}

static void sparse_slabs_are_reclaimed_before_growth(void **state)
{
    unsigned class_index = class_of_size(500);

    (void)state;
    start_threads(1);
    assert_false(decay_reclaim());
    hold_slabs_open(class_index, 4 * RECLAIM_BYTES_MIN);
    assert_true(arenas[0]->bin[class_index].depot.full.count > 0);
    if (!decay_could_reclaim()) (void)lease(pages_of_bytes(2 * RECLAIM_BYTES_MIN));
    assert_true(decay_could_reclaim());
    assert_true(decay_reclaim());
    check_arenas();
    assert_int_equal(arenas[0]->bin[class_index].depot.full.count, 0);
    assert_false(decay_could_reclaim()); /* not again until it has grown */
    assert_false(decay_reclaim());
}

/* On 32 bits. */
static void the_whole_address_space_is_looked_at_once(void **state)
{
    size_t open_bytes;

    (void)state;
    start_threads(1);
    open_bytes = space.open_bytes;
    space.open_bytes = SIZE_MAX - MiB;
    assert_false(decay_reclaim());
    space.open_bytes = open_bytes;
    assert_true(decay_reclaim_at_bytes == SIZE_MAX);
}

static void dense_slabs_are_left_alone(void **state)
{
    unsigned class_index = class_of_size(500);

    (void)state;
    start_threads(1);
    fill_depot(class_index);
    (void)lease(pages_of_bytes(4 * RECLAIM_BYTES_MIN));
    assert_true(decay_could_reclaim());
    assert_false(decay_reclaim()); /* little is free */
    assert_int_equal(arenas[0]->bin[class_index].depot.full.count, 1);
}

/* ---- whole bursts, through the doors ---- */

/* Small blocks of many sizes, some MiB of them, freed in the order they came. */
static size_t burst_of_small_blocks(void)
{
    enum { BLOCKS = 60000 };
    static void *blocks[BLOCKS];
    size_t peak;

    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t size = random_below(2000);
        blocks[i] = prairie_malloc(size);
        memset(blocks[i], 1, size);
    }
    peak = held_pages();
    for (unsigned i = 0; i < BLOCKS; i++) prairie_free(blocks[i]);
    prairie_check_all();
    return peak;
}

/* Its depots and magazines, which hold slabs open, it has emptied itself by then. */
static void a_burst_of_the_only_thread_goes_back_in_ten_seconds(void **state)
{
    size_t peak = burst_of_small_blocks();

    (void)state;
    assert_true(peak > pages_of_bytes(40 * MiB));
    assert_true(held_pages() - dirty_pages() <= peak / 10);
    assert_true(dirty_pages() > peak / 2);
    assert_true(fake_thread_waits());
    fake_on_sleep(note_pages);
    assert_true(fake_thread_run());
    assert_true(looks < 20);
    assert_true(held_pages() <= peak / 10);
}

static void a_burst_without_background_thread_goes_back_at_once(void **state)
{
    size_t peak;

    (void)state;
    options_parse("helper_thread:false", "MALLOC_CONF");
    peak = burst_of_small_blocks();
    assert_false(fake_thread_waits());
    assert_true(held_pages() <= peak / 10);
}

static void a_burst_of_a_threaded_program_goes_back_in_ten_seconds(void **state)
{
    pthread_t thread = begin_bystander();
    size_t peak;

    (void)state;
    peak = burst_of_small_blocks();
    assert_true(fake_thread_waits());
    fake_on_sleep(note_pages);
    assert_true(fake_thread_run());
    assert_true(looks > 20);
    assert_true(held_at_look[20] <= peak / 10);
    end_bystander(thread);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(sparse_slabs_are_reclaimed_before_growth),
          UNIT_TEST(the_whole_address_space_is_looked_at_once),
          UNIT_TEST(dense_slabs_are_left_alone),
          UNIT_TEST(a_burst_of_the_only_thread_goes_back_in_ten_seconds),
          UNIT_TEST(a_burst_without_background_thread_goes_back_at_once),
          UNIT_TEST(a_burst_of_a_threaded_program_goes_back_in_ten_seconds))
