/* abandoned_test.c - caches that ended threads leave with their blocks: who gets them, and which
 * are drained. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "cache/abandoned.h"
#include "heap/hardened.h"
#include "threads.h"

#include <sys/wait.h>

enum { SIZE = 48, WIDE_SIZE = 1024, CROWD_MAX = ABANDONED_MAX + 1 };

static unsigned abandoned_seen, in_use_seen;

static void see(const struct cache *cache, void *unused)
{
    (void)unused;
    *(cache_is_abandoned(cache) ? &abandoned_seen : &in_use_seen) += 1;
}

static unsigned count_abandoned(void)
{
    abandoned_seen = in_use_seen = 0;
    (void)cache_list_visit(see, NULL);
    return abandoned_seen;
}

static uint64_t threads_counted(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    assert_true(prairie_stats_read(&stats));
    return stats.threads;
}

/* ---- a thread that ends when it is told ---- */

struct member {
    pthread_t thread;
    size_t bytes;            /* so many go to its magazines */
    struct cache *cache;     /* that it had */
    void *block;             /* that it freed last */
    uint32_t lives, may_end; /* atomic */
};

/* Blocks of a few classes, none of them in numbers that widen a magazine. */
static void hold_free(size_t bytes)
{
    void *block[64];

    while (bytes != 0) {
        size_t each = bytes >= 64 * 1024 ? 2048 : SIZE, count = min_size(bytes / each, 8);

        if (count == 0) return;
        for (size_t i = 0; i < count; i++) block[i] = prairie_malloc(each);
        for (size_t i = 0; i < count; i++) prairie_free(block[i]);
        bytes -= count * each;
    }
}

static void *live(void *argument)
{
    struct member *member = argument;

    hold_free(member->bytes);
    member->block = prairie_malloc(SIZE);
    prairie_free(member->block);
    member->cache = thread_front()->cache;
    __atomic_store_n(&member->lives, 1, __ATOMIC_RELEASE);
    wait_until_set(&member->may_end);
    return NULL;
}

static void begin_member(struct member *member)
{
    assert_int_equal(pthread_create(&member->thread, NULL, live, member), 0);
    wait_until_set(&member->lives);
}

static void end_member(struct member *member)
{
    __atomic_store_n(&member->may_end, 1, __ATOMIC_RELEASE);
    assert_int_equal(pthread_join(member->thread, NULL), 0);
}

/* So many threads live at once, and end one after the other. */
static void crowd(struct member *member, unsigned count)
{
    memset(member, 0, count * sizeof *member);
    for (unsigned i = 0; i < count; i++) begin_member(&member[i]);
    for (unsigned i = 0; i < count; i++) end_member(&member[i]);
}

static void start_alone(void)
{
    fake_cores(1);
    prairie_free(prairie_malloc(SIZE));
}

/* ---- who gets it ---- */

static void *expect_heir(void *argument)
{
    const struct member *before = argument;
    void *block = prairie_malloc(SIZE);

    assert_ptr_equal(block, before->block); /* no refill, no lock */
    assert_ptr_equal(thread_front()->cache, before->cache);
    assert_int_equal(thread_front()->cache->fixed, 0);
    assert_int_equal(count_abandoned(), 0);
    assert_int_equal(in_use_seen, 2);
    prairie_free(block);
    return NULL;
}

static void the_next_thread_goes_on_with_its_blocks(void **state)
{
    struct member member;
    uint64_t fills;

    (void)state;
    start_alone();
    crowd(&member, 1);
    assert_int_equal(count_abandoned(), 1);
    assert_int_equal(threads_counted(), 1);
    fills = arenas[0]->bin[class_of_size(SIZE)].flow.fills;
    run_thread(expect_heir, &member);
    assert_int_equal(arenas[0]->bin[class_of_size(SIZE)].flow.fills, fills);
    assert_int_equal(count_abandoned(), 1);
    prairie_check_all();
}

static void what_was_abandoned_last_is_taken_first(void **state)
{
    struct member member[3];

    (void)state;
    start_alone();
    crowd(member, 2);
    assert_int_equal(count_abandoned(), 2);
    memset(&member[2], 0, sizeof member[2]);
    begin_member(&member[2]);
    assert_ptr_equal(member[2].cache, member[1].cache);
    assert_int_equal(count_abandoned(), 1);
    end_member(&member[2]);
    prairie_check_all();
}

static void its_blocks_are_no_longer_held(void **state)
{
    struct member member;
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    (void)state;
    start_alone();
    thread_flush();
    crowd(&member, 1);
    assert_true(prairie_stats_read(&stats));
    assert_int_equal(stats.allocated, 0);
    assert_true(stats.cached >= SIZE);
}

/* ---- which are drained ---- */

static void a_few_are_kept(void **state)
{
    struct member member[CROWD_MAX];

    (void)state;
    start_alone();
    crowd(member, CROWD_MAX);
    assert_int_equal(count_abandoned(), ABANDONED_MAX);
    assert_int_equal(in_use_seen, 1);
    assert_int_equal(threads_counted(), 1);
    prairie_check_all();
}

/* Some blocks of that many classes, the largest first; what the magazines keep of them. */
static void *hold_much(void *number)
{
    size_t *classes = number;

    for (size_t i = 0; i < *classes; i++) {
        size_t bytes = class_bytes[CLASS_COUNT - 1 - i];
        void *block[2] = { prairie_malloc(bytes), prairie_malloc(bytes) };

        prairie_free(block[0]);
        prairie_free(block[1]);
    }
    *classes = abandoned_bytes(thread_front()->cache);
    return NULL;
}

static void one_with_much_is_drained(void **state)
{
    unsigned kept = 0, drained = 0;

    (void)state;
    start_alone();
    for (size_t classes = 1; classes < 30; classes++) {
        size_t bytes = classes;
        bool is_kept;

        run_thread(hold_much, &bytes);
        is_kept = count_abandoned() == 1;
        assert_int_equal(is_kept, bytes <= ABANDONED_BYTES_MAX);
        kept += is_kept;
        drained += !is_kept;
        (void)arenas_clear(CLEAR_ALL);
        assert_int_equal(count_abandoned(), 0);
    }
    assert_true(kept > 0);
    assert_true(drained > 0);
    prairie_check_all();
}

/* A cache with so many bytes in it, as far as anybody asks. */
static void abandon_bytes(size_t bytes)
{
    struct cache *cache = cache_make();

    assert_non_null(cache);
    lock_take(&threads_lock);
    assert_true(abandoned_put(cache, bytes));
    lock_give(&threads_lock);
}

static void all_together_hold_so_much_and_no_more(void **state)
{
    struct cache *cache;

    (void)state;
    start_alone();
    for (size_t bytes = 0; bytes < ALL_ABANDONED_BYTES_MAX; bytes += ABANDONED_BYTES_MAX)
        abandon_bytes(ABANDONED_BYTES_MAX);
    cache = cache_make();
    lock_take(&threads_lock);
    assert_false(abandoned_put(cache, 1));
    assert_int_equal(cache->fixed, 0);
    assert_non_null(abandoned_take());
    assert_true(abandoned_put(cache, ABANDONED_BYTES_MAX - 1)); /* its bytes are others' now */
    assert_ptr_not_equal(abandoned_take_to_drain(CLEAR_ALL), cache);
    assert_true(abandoned_put(cache_make(), ABANDONED_BYTES_MAX + 1));
    assert_false(abandoned_put(cache_make(), 1));
    lock_give(&threads_lock);
}

static void *bound(void *unused)
{
    prairie_free(prairie_malloc(SIZE));
    thread_bind(arenas[0]);
    prairie_free(prairie_malloc(SIZE));
    return unused;
}

static void *without_blocks(void *unused)
{
    prairie_free(prairie_malloc(SIZE));
    assert_true(thread_cache_off());
    return unused;
}

static void *with_few_classes(void *unused)
{
    prairie_free(prairie_malloc(SIZE));
    thread_hold_up_to(class_of_size(SIZE));
    prairie_free(prairie_malloc(SIZE));
    return unused;
}

static void *in_the_middle_of_a_call(void *unused)
{
    prairie_free(prairie_malloc(SIZE));
    (void)cache_begin_call(thread_front()->cache); /* and ends there, in a signal handler */
    return unused;
}

static void *expect_idle(void *unused)
{
    prairie_free(prairie_malloc(SIZE));
    assert_false(thread_front()->cache->is_busy);
    return unused;
}

static void *with_wide_magazines(void *unused)
{
    unsigned count =
        3 * magazine_capacity(class_of_size(WIDE_SIZE)); /* more than two have room for */
    struct cache *cache;
    void *block[WIDE_BLOCKS_MAX];

    assert_in_range(count, 1, WIDE_BLOCKS_MAX);
    for (unsigned round = 0; round < 200; round++) {
        for (unsigned i = 0; i < count; i++) block[i] = prairie_malloc(WIDE_SIZE);
        for (unsigned i = 0; i < count; i++) prairie_free(block[i]);
    }
    cache = thread_front()->cache;
    assert_true(cache_wide_bytes(cache) > 0);
    assert_true(abandoned_bytes(cache) == SIZE_MAX);
    return unused;
}

static void threads_of_their_own_kind_leave_nothing(void **state)
{
    (void)state;
    start_alone();
    run_thread(bound, NULL);
    assert_int_equal(count_abandoned(), 0);
    run_thread(without_blocks, NULL);
    assert_int_equal(count_abandoned(), 0);
    run_thread(with_few_classes, NULL);
    assert_int_equal(count_abandoned(), 0);
    run_thread(in_the_middle_of_a_call, NULL);
    assert_int_equal(count_abandoned(), 0);
    run_thread(expect_idle, NULL);
    (void)arenas_clear(CLEAR_ALL);
    run_thread(with_wide_magazines, NULL);
    assert_int_equal(count_abandoned(), 0);
    assert_int_equal(cached_wide_bytes, 0);
    prairie_check_all();
}

/* A sized free believes the size, and puts a block of a manual arena among others. */
static void *put_manual_ones(void *argument)
{
    struct arena *arena = argument;
    void *slots[3] = { NULL };

    prairie_free(prairie_malloc(SIZE));
    lock_take(&arena->lock);
    assert_int_equal(arena_fill(arena, class_of_size(SIZE), slots, 2, true), 2);
    lock_give(&arena->lock);
    cache_put(thread_front()->cache, class_of_size(SIZE), slots[1]);
    cache_put(thread_front()->cache, class_of_size(SIZE), slots[2]);
    return NULL;
}

static void blocks_of_a_manual_arena_go_home(void **state)
{
    struct arena *arena;

    (void)state;
    start_alone();
    arena = arena_create();
    assert_non_null(arena);
    run_thread(put_manual_ones, arena);
    assert_int_equal(count_abandoned(), 0);
    arenas_close_empty();
    assert_int_equal(arena->bin[class_of_size(SIZE)].slab_count, 0);
    prairie_check_all();
}

/* ---- who gives it back ---- */

static void all_go_when_memory_is_wanted(void **state)
{
    struct member member[3];

    (void)state;
    start_alone();
    crowd(member, 3);
    thread_flush();
    assert_true(arenas_clear(CLEAR_ALL));
    assert_int_equal(count_abandoned(), 0);
    assert_false(arenas_clear(CLEAR_ALL));
    (void)prairie_purge();
    assert_int_equal(page_heap_used_pages(page_heap), 0);
    prairie_check_all();
}

static void those_that_nobody_needed_go(void **state)
{
    struct member member[4];

    (void)state;
    start_alone();
    crowd(member, 3);
    assert_false(cache_list_drain_abandoned(CLEAR_UNNEEDED)); /* learns how many there are */
    assert_int_equal(count_abandoned(), 3);
    memset(&member[3], 0, sizeof member[3]);
    begin_member(&member[3]);
    end_member(&member[3]);
    assert_ptr_equal(member[3].cache, member[2].cache);
    assert_true(arenas_clear(CLEAR_UNNEEDED)); /* two were never taken; the first ones */
    assert_int_equal(count_abandoned(), 1);
    memset(&member[3], 0, sizeof member[3]);
    begin_member(&member[3]);
    assert_ptr_equal(member[3].cache, member[2].cache);
    end_member(&member[3]);
    (void)arenas_clear(CLEAR_UNNEEDED);
    assert_int_equal(count_abandoned(), 1);
    assert_true(arenas_clear(CLEAR_UNNEEDED));
    assert_int_equal(count_abandoned(), 0);
    prairie_check_all();
}

/* ---- processes that change ---- */

/* Blocks of before have no marks. */
static void a_process_that_is_hardened_has_none(void **state)
{
    struct member member;

    (void)state;
    start_alone();
    crowd(&member, 1);
    assert_true(hardened_start());
    assert_int_equal(count_abandoned(), 0);
    crowd(&member, 1);
    assert_int_equal(count_abandoned(), 0);
}

static void sampling_begins_where_some_were_abandoned(void **state)
{
    unsigned class_index = class_of_size(SIZE);
    const struct class_bin *bin;
    struct member member;

    (void)state;
    start_alone();
    crowd(&member, 1);
    assert_true(threads_sample());
    bin = &arenas[0]->bin[class_index];
    assert_int_equal(count_abandoned(), 0);
    assert_int_equal(bin->slab_free_blocks, bin->slab_count * slab_shape[class_index].block_count);
    crowd(&member, 1);
    assert_int_equal(count_abandoned(), 1); /* a sampled one, for sampled threads */
    prairie_check_all();
}

static void the_child_of_a_fork_has_them(void **state)
{
    struct member member;
    int child, status;

    (void)state;
    start_alone();
    crowd(&member, 1);
    child = fake_fork();
    if (child == 0) {
        struct member heir = { .bytes = 0 };
        bool good = count_abandoned() == 1 && in_use_seen == 1;

        begin_member(&heir);
        good &= heir.cache == member.cache && heir.block == member.block;
        end_member(&heir);
        prairie_check_all();
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

UNIT_MAIN(UNIT_TEST(the_next_thread_goes_on_with_its_blocks),
          UNIT_TEST(what_was_abandoned_last_is_taken_first),
          UNIT_TEST(its_blocks_are_no_longer_held), UNIT_TEST(a_few_are_kept),
          UNIT_TEST(one_with_much_is_drained), UNIT_TEST(all_together_hold_so_much_and_no_more),
          UNIT_TEST(threads_of_their_own_kind_leave_nothing),
          UNIT_TEST(blocks_of_a_manual_arena_go_home), UNIT_TEST(all_go_when_memory_is_wanted),
          UNIT_TEST(those_that_nobody_needed_go), UNIT_TEST(a_process_that_is_hardened_has_none),
          UNIT_TEST(sampling_begins_where_some_were_abandoned),
          UNIT_TEST(the_child_of_a_fork_has_them))
