/* sparse_test.c - pages of slabs on which no block lives: which of them go to the kernel, and
 * when. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "arenas/sparse.h"

#include "breaths.h"
#include "threads.h"

enum { BLOCKS_MAX = 4096, KEPT_EVERY = 16, WALK_LOOKS = 6 };

static void *slots[BLOCKS_MAX + 1];
static unsigned count;

/* A page each, and as many as a class of its own is worth a walk for. */
static unsigned page_class(void) { return class_of_size(page_bytes()); }

static unsigned kept(void) { return (count + KEPT_EVERY - 1) / KEPT_EVERY; }

/* Blocks of a page each, with `blocks` of them free but for each 16th. */
static void shrink_to_few(unsigned blocks)
{
    static void *given[BLOCKS_MAX];
    unsigned givens = 0;

    count = blocks;
    fill_all(0, page_class(), slots, count);
    for (unsigned i = 0; i < count; i++) memset(slots[1 + i], (int)i, page_bytes());
    for (unsigned i = 0; i < count; i++)
        if (i % KEPT_EVERY != 0) given[givens++] = slots[1 + i];
    assert_int_equal(givens, count - kept());
    assert_int_equal(drain(0, page_class(), given, givens), 0);
}

static void expect_kept(void)
{
    for (unsigned i = 0; i < count; i += KEPT_EVERY)
        assert_true(all_bytes_are(slots[1 + i], (uint8_t)i, page_bytes()));
}

/* As many looks as there are between two walks. */
static bool walk(void)
{
    for (unsigned i = 1; i < WALK_LOOKS; i++) assert_false(sparse_look(NULL, true));
    return sparse_look(NULL, true);
}

/* The same in a program of one thread. */
static void walk_alone(const uint32_t *stop)
{
    for (unsigned i = 0; i < WALK_LOOKS; i++) (void)sparse_look(stop, false);
}

static uint64_t purged_pages(void) { return fake_purged_bytes() / page_bytes(); }

/* Free blocks of open slabs: each is a page, and those of slabs that closed are none. */
static unsigned unused_pages(void)
{
    return (unsigned)arenas[0]->bin[page_class()].slab_free_blocks;
}

static void start_few(void)
{
    start_threads(2);
    shrink_to_few(256);
}

/* ---- the background thread's walks ---- */

static void what_nobody_takes_from_goes_back(void **state)
{
    (void)state;
    start_few();
    assert_false(walk());
    assert_int_equal(purged_pages(), 0); /* somebody may be about to */
    assert_true(sparse_is_pending());
    assert_true(walk());
    check_arenas();
    assert_int_equal(purged_pages(), unused_pages());
    assert_false(sparse_is_pending());
    expect_kept();
    assert_false(walk()); /* nothing is offered twice */
    assert_int_equal(purged_pages(), unused_pages());
}

static void who_takes_a_block_keeps_its_slab(void **state)
{
    void *taken[2];

    (void)state;
    start_few();
    assert_false(walk());
    assert_int_equal(fill(0, page_class(), taken, 1), 1);
    assert_true(walk());
    assert_false(
        sparse_is_pending()); /* that slab is marked again, and no thread waits for so little */
    assert_in_range(purged_pages(), unused_pages() - slab_shape[page_class()].block_count,
                    unused_pages() - 1);
    assert_true(walk());
    assert_int_equal(purged_pages(), unused_pages());
    assert_false(sparse_is_pending());
}

/* What was taken out of purged pages and came back is purged anew. */
static void what_was_touched_again_goes_back_again(void **state)
{
    void *taken[65];
    uint64_t before;

    (void)state;
    start_few();
    (void)walk();
    (void)walk();
    before = purged_pages();
    fill_all(0, page_class(), taken, 64);
    for (unsigned i = 1; i <= 64; i++) memset(taken[i], 1, page_bytes());
    assert_int_equal(drain(0, page_class(), taken + 1, 64), 0);
    assert_false(walk());
    assert_int_equal(purged_pages(), before);
    assert_true(walk());
    assert_true(purged_pages() - before >= 64);
    expect_kept();
}

/* One block, of another slab each time, so that none of them closes. */
static void give_one_of(unsigned slabs, unsigned turn)
{
    unsigned in_slab = slab_shape[page_class()].block_count;

    assert_int_equal(drain(0, page_class(), &slots[1 + turn % slabs * in_slab + turn / slabs], 1),
                     0);
}

/* With one free block less the class is left alone, however often somebody looks. */
static void expect_walked_from(unsigned slabs, unsigned free_blocks)
{
    start_threads(2);
    fill_all(0, page_class(), slots, slabs * slab_shape[page_class()].block_count);
    for (unsigned turn = 0; turn + 1 < free_blocks; turn++) give_one_of(slabs, turn);
    for (unsigned i = 0; i < 3; i++) assert_false(walk());
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
    assert_false(sparse_is_pending());
    give_one_of(slabs, free_blocks - 1);
    assert_false(walk());
    assert_true(walk());
    assert_int_equal(purged_pages(), free_blocks);
}

/* 32 blocks of 128: enough bytes either way. */
static void a_class_is_walked_from_a_fourth_on(void **state)
{
    (void)state;
    expect_walked_from(16, 32);
}

/* 16 blocks of 56: more than a fourth either way. */
static void a_class_is_walked_from_64_kib_on(void **state)
{
    (void)state;
    expect_walked_from(7, 16);
}

static void whose_pages_stay_dirty_keeps_them(void **state)
{
    const char *const settings[] = { "dirty_decay_ms:-1", "dirty_decay_ms:0", "thp:always" };

    (void)state;
    start_few();
    for (unsigned i = 0; i < ARRAY_COUNT(settings); i++) {
        options_parse("thp:default,dirty_decay_ms:10000", "MALLOC_CONF");
        options_parse(settings[i], "MALLOC_CONF");
        huge.policy = (enum huge_policy)option_value(OPTION_THP);
        RELAXED_STORE(sparse_slabs.told, true); /* by what was so before */
        RELAXED_STORE(sparse_slabs.pending, true);
        for (unsigned times = 0; times < 3; times++) assert_false(walk());
        assert_false(sparse_is_pending());
    }
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
}

/* They are the hooks' to purge. */
static void what_hooks_supplied_stays(void **state)
{
    (void)state;
    start_few();
    arenas[0]->extents = (struct extents *)&slots;
    for (unsigned i = 0; i < 3; i++) assert_false(walk());
    assert_int_equal(sparse_purge_all(), 0);
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
}

/* As all memory is locked: a few tries are enough, and no thread waits for more. */
static void a_kernel_that_takes_nothing_is_not_asked_for_long(void **state)
{
    uint64_t calls;

    (void)state;
    start_threads(2);
    shrink_to_few(BLOCKS_MAX);
    assert_false(walk());
    assert_true(sparse_is_pending());
    fake_fail_kind(FAKE_PURGE, true);
    assert_false(walk());
    calls = fake_calls(FAKE_PURGE);
    assert_in_range(calls, 64, 64 + slab_shape[page_class()].block_count);
    assert_int_equal(arenas[0]->purged_pages, 0);
    assert_false(sparse_is_pending());
    expect_kept();
    fake_fail_kind(FAKE_PURGE, false);
    assert_true(walk());
    assert_int_equal(arenas[0]->purged_pages, unused_pages());
}

/* The wish for huge pages hears of what is out, and not of each time that it went. */
static void what_comes_and_goes_is_counted_once(void **state)
{
    void *taken[65];
    size_t first_pages;

    (void)state;
    start_few();
    huge.policy = HUGE_WHEN_DENSE;
    huge.wanted = true;
    (void)walk();
    (void)walk();
    first_pages = huge.short_pages;
    assert_int_equal(first_pages, unused_pages());
    for (unsigned i = 0; i < 3; i++) {
        fill_all(0, page_class(), taken, 64);
        assert_int_equal(drain(0, page_class(), taken + 1, 64), 0);
        (void)walk();
        (void)walk();
    }
    assert_true(purged_pages() >= first_pages + 3 * 64);
    assert_in_range(huge.short_pages, first_pages, first_pages + 64);
}

/* ---- beside others ---- */

/* In a program of one thread a lock that is taken may be taken for good. */
static void an_arena_that_is_held_is_left_out(void **state)
{
    (void)state;
    start_few();
    (void)walk();
    lock_take(&arenas[0]->lock);
    walk_alone(NULL);
    lock_give(&arenas[0]->lock);
    assert_int_equal(fake_calls(FAKE_PURGE), 0);
    assert_true(sparse_is_pending());
    walk_alone(NULL);
    assert_int_equal(purged_pages(), unused_pages());
}

static uint32_t stops; /* atomic */

static void stop_it(enum fake_call kind)
{
    if (kind == FAKE_PURGE) RELAXED_STORE(stops, 1u);
}

static void a_walk_that_is_stopped_ends_behind_its_slab(void **state)
{
    (void)state;
    start_few();
    (void)walk();
    fake_on_call(stop_it);
    walk_alone(&stops);
    assert_in_range(purged_pages(), 1, slab_shape[page_class()].block_count);
    check_arenas();
}

/* A slab that leaves its list takes the walk with it to the next one. */
static void a_walk_goes_on_behind_what_leaves(void **state)
{
    struct class_bin *bin;
    const struct slab *slab;
    uint32_t next;
    void *taken[65];

    (void)state;
    start_few();
    bin = &arenas[0]->bin[page_class()];
    slab = slab_record(bin->partial.first);
    next = slab->next;
    RELAXED_STORE(sparse_slabs.next, bin->partial.first);
    assert_true(slab->free_count <= 64);
    fill_all(0, page_class(), taken, slab->free_count);
    assert_int_equal(slab->free_count, 0);
    assert_int_equal(RELAXED_LOAD(sparse_slabs.next), next);
    (void)fill(0, page_class(), taken, 1);
    assert_int_equal(RELAXED_LOAD(sparse_slabs.next), next); /* a walk, and no list, moves it */
}

static void one_walks_at_a_time(void **state)
{
    (void)state;
    start_few();
    RELAXED_STORE(sparse_slabs.walking, 1u);
    assert_int_equal(sparse_purge_all(), 0);
    assert_int_equal(fake_calls(FAKE_SLEEP), 100);
    assert_false(walk());
    assert_true(sparse_is_pending());
    RELAXED_STORE(sparse_slabs.next, arenas[0]->bin[page_class()].partial.first);
    sparse_forget_others(); /* as in the child of a fork */
    assert_false(sparse_is_pending());
    assert_int_equal(RELAXED_LOAD(sparse_slabs.next), 0); /* where its first walk begins anew */
    assert_int_equal(sparse_purge_all(), unused_pages() * page_bytes());
}

static uint32_t has_chosen; /* atomic */

static void *refill(void *arena)
{
    struct arena *chosen = arena_choose(arena);

    lock_give(&chosen->lock);
    __atomic_store_n(&has_chosen, 1, __ATOMIC_RELEASE);
    return chosen;
}

/* The arena that a thread fills from whose own one is arenas[0] and busy, while `over` is walked;
 * it runs on the core of arenas[1]. */
static void *chosen_beside_a_walk(const struct arena *over)
{
    pthread_t thread;
    void *chosen;

    fake_core_current(1);
    lock_take(&arenas[0]->lock);
    RELAXED_STORE(sparse_slabs.walking, 1u);
    RELAXED_STORE(sparse_slabs.over, over);
    assert_int_equal(pthread_create(&thread, NULL, refill, arenas[0]), 0);
    while (fake_calls(FAKE_WAIT) == 0 && !__atomic_load_n(&has_chosen, __ATOMIC_ACQUIRE))
        usleep(100);
    lock_give(&arenas[0]->lock);
    assert_int_equal(pthread_join(thread, &chosen), 0);
    return chosen;
}

/* A thread that finds its arena's lock taken moves on to another one, but not from a walk. */
static void who_meets_a_walk_stays(void **state)
{
    (void)state;
    start_few();
    assert_ptr_equal(chosen_beside_a_walk(arenas[0]), arenas[0]);
    assert_int_equal(arena_hops, 0);
}

static void who_meets_somebody_else_moves_on_beside_a_walk(void **state)
{
    (void)state;
    start_few();
    assert_ptr_equal(chosen_beside_a_walk(arenas[1]), arenas[1]);
    assert_int_equal(arena_hops, 1);
}

static const struct arena *walked_over;

static void note_walked_over(enum fake_call kind)
{
    if (kind == FAKE_PURGE) walked_over = RELAXED_LOAD(sparse_slabs.over);
}

static void a_walk_says_which_arena_it_is_over(void **state)
{
    (void)state;
    start_few();
    fake_on_call(note_walked_over);
    assert_true(sparse_purge_all() != 0);
    fake_on_call(NULL);
    assert_ptr_equal(walked_over, arenas[0]);
    assert_null(sparse_slabs.over);
}

/* ---- at once ---- */

static void all_goes_back_when_it_is_asked_for(void **state)
{
    (void)state;
    start_few();
    assert_int_equal(sparse_purge_all(), unused_pages() * page_bytes());
    check_arenas();
    expect_kept();
    assert_int_equal(sparse_purge_all(), 0);
    assert_int_equal(purge[0].purged_pages, unused_pages());
    assert_int_equal(purge[0].calls, fake_calls(FAKE_PURGE));
}

/* ---- a group's limit ---- */

/* Nobody leases a run for what is taken again, and a group is charged for it all the same. */
static void what_is_taken_again_is_taken_from_the_group(void **state)
{
    void *taken[129];
    size_t room;

    (void)state;
    start_few();
    fake_group(64 * MiB, 63 * MiB);
    RELAXED_STORE(limits.follows_group, true);
    limits.group_known = false;
    limits_know_group();
    decay_look_at_limits_from(SIZE_MAX);
    room = limits_room_bytes();
    assert_int_equal(fill(0, page_class(), taken, 1), 1); /* no page of it had gone */
    assert_int_equal(limits_room_bytes(), room);
    assert_true(sparse_purge_all() != 0);
    assert_int_equal(fill(0, page_class(), taken, 1), 1);
    assert_in_range(limits_room_bytes(), room - slab_shape[page_class()].block_count * page_bytes(),
                    room - page_bytes());
    assert_false(decay_limits_are_due(0));
    fill_all(0, page_class(), taken, 128);
    assert_true(decay_limits_are_due(0));
    (void)limits_are_clear();
    assert_int_equal(limits_room_bytes(),
                     room); /* the group is what it was, as the fake kernel has it */
}

/* ---- signs ---- */

static void note_drain(void)
{
    lock_take(&arenas[0]->lock);
    sparse_note_drain(&arenas[0]->bin[page_class()], page_class());
    lock_give(&arenas[0]->lock);
}

/* So that somebody is asked to look. */
static void shrink_a_large_heap(void)
{
    shrink_to_few(3 * RECLAIM_BYTES_MIN / page_bytes());
    (void)lease(pages_of_bytes(FALL_BYTES_MIN));
    purge_beyond_budget();
    note_drain();
    (void)decay_after_return();
}

static void a_program_that_shrank_asks_once(void **state)
{
    (void)state;
    start_threads(2);
    shrink_to_few(3 * RECLAIM_BYTES_MIN / page_bytes());
    (void)purge_is_within_budget();
    note_drain();
    assert_true(purge_is_within_budget()); /* the heap is small */
    (void)lease(pages_of_bytes(FALL_BYTES_MIN));
    note_drain();
    assert_true(sparse_is_pending());
    assert_false(purge_is_within_budget());
    note_drain();
    assert_true(purge_is_within_budget());
    (void)walk();
    (void)walk();
    assert_false(sparse_is_pending());
    note_drain();
    assert_false(purge_is_within_budget());
}

static void a_program_that_did_not_shrink_asks_for_nothing(void **state)
{
    (void)state;
    start_threads(2);
    fill_all(0, page_class(), slots, 3 * RECLAIM_BYTES_MIN / page_bytes());
    (void)lease(pages_of_bytes(FALL_BYTES_MIN));
    assert_int_equal(drain(0, page_class(), slots + 1, RECLAIM_BYTES_MIN / page_bytes()), 0);
    (void)purge_is_within_budget();
    note_drain();
    assert_true(purge_is_within_budget());
    assert_false(sparse_is_pending());
}

/* Where it goes back by itself: a program of one thread and one with two, which call no more. */
static void the_background_thread_gives_it_back(unsigned threads)
{
    start_threads(threads);
    shrink_a_large_heap();
    assert_true(fake_thread_waits());
    assert_true(fake_thread_run());
    check_arenas();
    assert_int_equal(arenas[0]->purged_pages, unused_pages());
    assert_false(inside_background_runs());
    expect_kept();
}

static void the_background_thread_of_one_thread_gives_it_back(void **state)
{
    (void)state;
    the_background_thread_gives_it_back(1);
}

/* It forks before the second walk: somebody who looks at the budget asks again. */
static void it_is_asked_for_again_after_a_fork_ended_it(void **state)
{
    (void)state;
    start_threads(1);
    shrink_a_large_heap();
    assert_true(decay_before_fork());
    assert_false(fake_thread_waits());
    (void)decay_after_return();
    assert_true(fake_thread_waits());
    assert_true(fake_thread_run());
    assert_int_equal(arenas[0]->purged_pages, unused_pages());
}

/* Nothing becomes dirty meanwhile, so that nobody else would ask. */
static void it_is_asked_for_again_after_the_kernel_refused(void **state)
{
    (void)state;
    start_threads(2);
    fake_thread_allow(false);
    shrink_a_large_heap();
    assert_false(fake_thread_waits());
    note_drain();
    assert_false(sparse_is_pending()); /* not at once */
    fake_thread_allow(true);
    fake_clock_ms(inside_background_refused_ms);
    note_drain();
    (void)decay_after_return();
    assert_true(fake_thread_waits());
    assert_true(fake_thread_run());
    assert_int_equal(arenas[0]->purged_pages, unused_pages());
}

/* Where nothing else is left to somebody. */
static void an_oversize_threshold_is_no_hindrance(void **state)
{
    (void)state;
    options_parse("oversize_threshold:8000000", "MALLOC_CONF");
    start_threads(2);
    shrink_a_large_heap();
    assert_true(fake_thread_waits());
}

static void the_background_thread_of_threads_gives_it_back(void **state)
{
    (void)state;
    the_background_thread_gives_it_back(2);
}

UNIT_MAIN(UNIT_TEST(what_nobody_takes_from_goes_back), UNIT_TEST(who_takes_a_block_keeps_its_slab),
          UNIT_TEST(what_was_touched_again_goes_back_again),
          UNIT_TEST(a_class_is_walked_from_a_fourth_on),
          UNIT_TEST(a_class_is_walked_from_64_kib_on), UNIT_TEST(whose_pages_stay_dirty_keeps_them),
          UNIT_TEST(what_hooks_supplied_stays),
          UNIT_TEST(a_kernel_that_takes_nothing_is_not_asked_for_long),
          UNIT_TEST(what_comes_and_goes_is_counted_once),
          UNIT_TEST(an_arena_that_is_held_is_left_out),
          UNIT_TEST(a_walk_that_is_stopped_ends_behind_its_slab),
          UNIT_TEST(a_walk_goes_on_behind_what_leaves), UNIT_TEST(one_walks_at_a_time),
          UNIT_TEST(who_meets_a_walk_stays),
          UNIT_TEST(who_meets_somebody_else_moves_on_beside_a_walk),
          UNIT_TEST(a_walk_says_which_arena_it_is_over),
          UNIT_TEST(what_is_taken_again_is_taken_from_the_group),
          UNIT_TEST(all_goes_back_when_it_is_asked_for), UNIT_TEST(a_program_that_shrank_asks_once),
          UNIT_TEST(a_program_that_did_not_shrink_asks_for_nothing),
          UNIT_TEST(the_background_thread_of_one_thread_gives_it_back),
          UNIT_TEST(it_is_asked_for_again_after_a_fork_ended_it),
          UNIT_TEST(it_is_asked_for_again_after_the_kernel_refused),
          UNIT_TEST(an_oversize_threshold_is_no_hindrance),
          UNIT_TEST(the_background_thread_of_threads_gives_it_back))
