/* large_cache_test.c - the runs a thread keeps for its next large blocks. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "harms.h"
#include "pages.h"
#include "threads.h"

enum { LENGTH = 8, RUNS = 4 };

static char *take_pages(size_t pages)
{
    char *block = prairie_malloc(bytes_of(pages));

    assert_non_null(block);
    assert_int_equal(prairie_usable_size(block), bytes_of(pages));
    return block;
}

static size_t pages_kept(void)
{
    struct large_cache_numbers sum = { 0 };

    large_cache_add_numbers(thread_front()->cache, &sum);
    return sum.pages;
}

/* A thread that has asked often enough to keep runs; it keeps none yet. */
static void begin_to_keep(void)
{
    char *blocks[LARGE_CACHE_AFTER];

    prairie_free(prairie_malloc(1)); /* the page size is known from here on */
    for (unsigned i = 0; i < LARGE_CACHE_AFTER; i++) blocks[i] = take_pages(LENGTH);
    assert_non_null(thread_front()->cache->large_cache);
    for (unsigned i = 0; i < LARGE_CACHE_AFTER; i++) prairie_free(blocks[i]);
    thread_flush();
    assert_int_equal(pages_kept(), 0);
}

/* What a thread keeps is no block. */
static void a_kept_run_is_of_no_arena(void **state)
{
    char *block;

    (void)state;
    begin_to_keep();
    block = take_pages(LENGTH);
    assert_ptr_equal(arena_of_address(block), arena_at(0));
    prairie_free(block);
    assert_int_equal(pages_kept(), LENGTH);
    assert_null(arena_of_address(block));
    assert_ptr_equal(take_pages(LENGTH), block);
    assert_ptr_equal(arena_of_address(block), arena_at(0));
}

static void the_next_block_of_that_length_takes_no_lock(void **state)
{
    uint64_t taken, leases;
    char *block;

    (void)state;
    begin_to_keep();
    block = take_pages(LENGTH);
    prairie_free(block);
    assert_int_equal(pages_kept(), LENGTH);
    taken = page_heap->lock.taken;
    leases = page_heap->leases;
    for (unsigned i = 0; i < 100; i++) {
        assert_ptr_equal(take_pages(LENGTH), block);
        assert_int_equal(pages_kept(), 0);
        block[0] = block[bytes_of(LENGTH) - 1] = 1;
        prairie_free(block);
    }
    assert_int_equal(page_heap->lock.taken, taken);
    assert_int_equal(page_heap->leases, leases);
    assert_int_equal(thread_front()->cache->large_cache->takes, 100);
    assert_ptr_not_equal(take_pages(LENGTH + 1), block);
    prairie_check_all();
}

static void who_asks_seldom_keeps_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i + 1 < LARGE_CACHE_AFTER; i++)
        prairie_free(prairie_malloc(SMALL_BYTES_MAX + 1));
    assert_null(thread_front()->cache->large_cache);
    prairie_free(prairie_malloc(SMALL_BYTES_MAX + 1));
    assert_non_null(thread_front()->cache->large_cache);
}

static void nor_does_who_wants_nothing_of_that_size_held(void **state)
{
    (void)state;
    options_parse("tcache_max:1024", "test");
    heap_obey_options();
    for (unsigned i = 0; i < 4 * LARGE_CACHE_AFTER; i++)
        prairie_free(prairie_malloc(SMALL_BYTES_MAX + 1));
    assert_null(thread_front()->cache->large_cache);
}

/* A thread that holds less from now on lets go of what it kept, and keeps no more. */
static void nor_who_stops_holding_all_classes(void **state)
{
    (void)state;
    begin_to_keep();
    prairie_free(take_pages(LENGTH));
    assert_int_equal(pages_kept(), LENGTH);
    thread_hold_up_to(CLASS_COUNT - 2);
    assert_null(thread_front()->cache->large_cache);
    for (unsigned i = 0; i < 4 * LARGE_CACHE_AFTER; i++)
        prairie_free(prairie_malloc(SMALL_BYTES_MAX + 1));
    assert_null(thread_front()->cache->large_cache);
    thread_hold_up_to(CLASS_COUNT - 1);
    begin_to_keep();
    assert_non_null(thread_front()->cache->large_cache);
    prairie_check_all();
}

/* The largest of the small ones is none of these. */
static void the_largest_small_block_is_of_a_slab(void **state)
{
    char *block;

    (void)state;
    begin_to_keep();
    block = prairie_malloc(SMALL_BYTES_MAX);
    assert_int_equal(prairie_usable_size(block), SMALL_BYTES_MAX);
    assert_int_not_equal(page_record(page_at(block))->class_at, 0);
    prairie_free(block);
    block = prairie_malloc(SMALL_BYTES_MAX + 1);
    assert_int_equal(page_record(page_at(block))->class_at, 0);
    prairie_free(block);
    prairie_check_all();
}

static void of_two_runs_of_a_length_the_warm_one_stays(void **state)
{
    char *first, *second;

    (void)state;
    begin_to_keep();
    first = take_pages(LENGTH - 1);
    second = take_pages(LENGTH - 1);
    prairie_free(first);
    prairie_free(second);
    assert_int_equal(pages_kept(), LENGTH - 1);
    assert_ptr_equal(take_pages(LENGTH - 1), second);
    prairie_check_all();
}

static void burst_of_runs(unsigned count, size_t pages)
{
    char *blocks[RUNS];

    for (unsigned i = 0; i < count; i++) blocks[i] = take_pages(pages);
    for (unsigned i = 0; i < count; i++) prairie_free(blocks[i]);
    prairie_check_all();
}

/* Runs of one length that come and go together are given back once, and kept from then on. */
static void what_was_wanted_again_is_kept(void **state)
{
    size_t pages = LENGTH / 2;
    uint64_t taken, takes;

    (void)state;
    begin_to_keep();
    burst_of_runs(RUNS, pages);
    assert_int_equal(pages_kept(), pages);
    burst_of_runs(RUNS, pages);
    assert_int_equal(pages_kept(), RUNS * pages);
    taken = page_heap->leases;
    takes = thread_front()->cache->large_cache->takes;
    for (unsigned i = 0; i < 50; i++) burst_of_runs(RUNS, pages);
    assert_int_equal(page_heap->leases, taken);
    assert_int_equal(thread_front()->cache->large_cache->takes, takes + 50 * RUNS);
    thread_flush();
    assert_int_equal(pages_kept(), 0);
    prairie_check_all();
}

/* No more than may be kept of all lengths together. */
static void what_is_kept_of_one_length_is_bounded(void **state)
{
    size_t most = LARGE_CACHE_BYTES_MAX >> 12, pages = LARGE_CACHE_PAGES_MAX - 1;

    (void)state;
    begin_to_keep();
    for (unsigned i = 0; i < 20; i++) burst_of_runs(RUNS, pages);
    assert_in_range(pages_kept(), pages, most);
    burst_of_runs(1, pages - 1);
    assert_in_range(pages_kept(), pages - 1, most);
    thread_flush();
    assert_int_equal(pages_kept(), 0);
}

/* The last run for which there is room is kept beside the others, and none after it. */
static void what_is_kept_of_one_length_fills_all_room(void **state)
{
    size_t most = LARGE_CACHE_BYTES_MAX >> 12, pages = LARGE_CACHE_PAGES_MAX;
    char *blocks[LARGE_CACHE_BYTES_MAX / (4 * KiB) + 2];
    size_t fits = most / pages;

    (void)state;
    assert_int_equal(fits * pages, most);
    begin_to_keep();
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < fits + 1; i++) blocks[i] = take_pages(pages);
        for (size_t i = 0; i < fits + 1; i++) prairie_free(blocks[i]);
        prairie_check_all();
    }
    assert_int_equal(pages_kept(), most);
    assert_int_equal(large_cache_runs_max(bytes_of(pages)), fits);
}

static void what_is_kept_is_bounded(void **state)
{
    size_t most = LARGE_CACHE_BYTES_MAX >> 12, longest = LARGE_CACHE_PAGES_MAX;
    char *blocks[LARGE_CACHE_PAGES_MAX + 2];

    (void)state;
    begin_to_keep();
    for (size_t pages = LENGTH / 2; pages <= longest + 1; pages++)
        blocks[pages] = take_pages(pages);
    for (size_t pages = LENGTH / 2, sum = 0; pages <= longest; pages++) {
        prairie_free(blocks[pages]);
        sum = sum + pages > most ? pages : sum + pages;
        assert_int_equal(pages_kept(), sum);
        prairie_check_all();
    }
    thread_flush();
    prairie_free(blocks[longest + 1]);
    assert_int_equal(pages_kept(), 0);
    prairie_check_all();
}

/* Neither taken from it nor put into it, as with the caches of small blocks. */
static void uncached_blocks_pass_it_by(void **state)
{
    enum { UNCACHED = CACHE_NONE << 8 };
    const struct large_cache *large_cache;
    char *block, *kept;

    (void)state;
    begin_to_keep();
    large_cache = thread_front()->cache->large_cache;
    block = take_pages(LENGTH);
    kept = take_pages(LENGTH);
    memset(block, 0x5A, bytes_of(LENGTH));
    prairie_dallocx(block, UNCACHED);
    assert_int_equal(pages_kept(), 0);
    prairie_free(kept);
    assert_int_equal(pages_kept(), LENGTH);
    block = prairie_mallocx(bytes_of(LENGTH), UNCACHED | FLAG_ZERO);
    assert_ptr_not_equal(block, kept);
    assert_true(all_bytes_are(block, 0, bytes_of(LENGTH)));
    assert_int_equal(pages_kept(), LENGTH);
    assert_int_equal(large_cache->takes, 0);
    prairie_sdallocx(block, bytes_of(LENGTH), UNCACHED);
    assert_int_equal(pages_kept(), LENGTH);
    assert_int_equal(page_heap->large_pages, LENGTH);
    assert_ptr_equal(take_pages(LENGTH), kept);
    prairie_check_all();
}

/* Lengths that take turns: none is there yet when the next one comes, and there is no room. */
static void free_lengths_that_take_turns(void)
{
    enum { BLOCKS = 2000 };
    static char *blocks[BLOCKS];
    size_t step = LARGE_CACHE_PAGES_MAX / 8;

    begin_to_keep();
    for (size_t i = 0; i < BLOCKS; i++) blocks[i] = take_pages((5 + i % 4) * step);
    for (size_t i = 0; i < BLOCKS; i++) prairie_free(blocks[i]);
    prairie_check_all();
}

static void the_only_thread_purges_what_it_drains(void **state)
{
    size_t peak;

    (void)state;
    free_lengths_that_take_turns();
    peak = page_heap->open_pages;
    assert_true(bytes_of(peak) > 32 * PURGE_KEEP_BYTES);
    assert_in_range(page_heap->free_pages[FREE_DIRTY], 0, peak / 10);
}

/* Of several threads one asks for who gives that back later. */
static void a_thread_tells_of_what_it_drains(void **state)
{
    pthread_t thread = begin_bystander();

    (void)state;
    free_lengths_that_take_turns();
    assert_true(fake_thread_waits());
    end_bystander(thread);
}

/* Pages of 16 KiB: fewer than the lengths there are. */
static void one_that_is_too_much_alone_is_not_kept(void **state)
{
    size_t most = LARGE_CACHE_BYTES_MAX >> 14;
    char *block;

    (void)state;
    assert_true(most < LARGE_CACHE_PAGES_MAX);
    fake_page_bytes(16 * KiB);
    begin_to_keep();
    prairie_free(take_pages(most));
    assert_int_equal(pages_kept(), most);
    block = take_pages(most + 1);
    prairie_free(block);
    assert_int_equal(pages_kept(), most);
    prairie_check_all();
}

static void a_kept_block_reads_as_zero_when_that_is_asked(void **state)
{
    char *block;

    (void)state;
    begin_to_keep();
    block = take_pages(LENGTH);
    memset(block, 0x5A, bytes_of(LENGTH));
    prairie_free(block);
    assert_ptr_equal(prairie_calloc(LENGTH, bytes_of(1)), block);
    assert_true(all_bytes_are(block, 0, bytes_of(LENGTH)));
}

static void so_do_all_that_are_kept(void **state)
{
    char *blocks[RUNS];

    (void)state;
    begin_to_keep();
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < RUNS; i++) {
            blocks[i] = take_pages(LENGTH);
            memset(blocks[i], 0x5A, bytes_of(LENGTH));
        }
        for (unsigned i = 0; i < RUNS; i++) prairie_free(blocks[i]);
    }
    assert_true(pages_kept() > LENGTH);
    for (unsigned i = 0; i < RUNS; i++) {
        blocks[i] = prairie_calloc(LENGTH, bytes_of(1));
        assert_true(all_bytes_are(blocks[i], 0, bytes_of(LENGTH)));
    }
    assert_int_equal(pages_kept(), 0);
}

static void flush_and_purge_give_all_back(void **state)
{
    size_t used;

    (void)state;
    begin_to_keep();
    used = page_heap_used_pages(page_heap);
    prairie_free(take_pages(LENGTH));
    assert_int_equal(page_heap_used_pages(page_heap), used + LENGTH);
    thread_flush();
    assert_int_equal(page_heap_used_pages(page_heap), used);
    prairie_free(take_pages(LENGTH));
    (void)prairie_purge();
    assert_int_equal(pages_kept(), 0);
    prairie_check_all();
}

static void *keep_and_end(void *unused)
{
    char *blocks[2 * LARGE_CACHE_AFTER];

    for (unsigned i = 0; i < 2 * LARGE_CACHE_AFTER; i++) blocks[i] = take_pages(LENGTH / 2 + i % 4);
    for (unsigned i = 0; i < 2 * LARGE_CACHE_AFTER; i++) prairie_free(blocks[i]);
    assert_int_not_equal(pages_kept(), 0);
    return unused;
}

static void a_thread_that_ends_leaves_nothing_kept(void **state)
{
    pthread_t thread;
    size_t large;

    (void)state;
    begin_to_keep();
    large = page_heap->large_pages;
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&thread, NULL, keep_and_end, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(page_heap->large_pages, large);
    }
    prairie_check_all();
}

/* ---- staggered blocks ---- */

static size_t staggered_bytes(size_t pages) { return bytes_of(pages) - PAGE_STAGGERED; }

static char *take_staggered(size_t pages)
{
    char *block = prairie_malloc(staggered_bytes(pages));

    assert_non_null(block);
    assert_int_equal(prairie_usable_size(block), staggered_bytes(pages));
    return block;
}

/* A thread that takes ever another run until a staggered block begins behind the start of its
 * page. */
static char *take_shifted(size_t pages)
{
    for (unsigned i = 0; i < 10000; i++) {
        char *block = take_staggered(pages);

        if (!is_page_start(block)) return block;
    }
    fail();
    return NULL;
}

static size_t allocated_large(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    assert_true(prairie_stats_read(&stats));
    return stats.large_allocated;
}

static void a_staggered_block_begins_where_the_last_one_did(void **state)
{
    size_t allocated;
    char *block;

    (void)state;
    begin_to_keep();
    block = take_shifted(LENGTH);
    allocated = allocated_large();
    for (unsigned i = 0; i < 3; i++) {
        prairie_free(block);
        assert_int_equal(pages_kept(), LENGTH);
        assert_int_equal(allocated_large(), allocated - staggered_bytes(LENGTH));
        prairie_check_all();
        assert_ptr_equal(take_staggered(LENGTH), block);
        assert_int_equal(allocated_large(), allocated);
        prairie_check_all();
    }
    prairie_free(block);
    thread_flush();
    assert_int_equal(allocated_large(), allocated - staggered_bytes(LENGTH));
}

static void a_run_serves_blocks_of_both_kinds(void **state)
{
    size_t allocated;
    char *block, *plain, *aligned;

    (void)state;
    begin_to_keep();
    block = take_shifted(LENGTH);
    allocated = allocated_large() - staggered_bytes(LENGTH);
    prairie_free(block);
    plain = take_pages(LENGTH);
    assert_ptr_equal(plain, (char *)round_down((uintptr_t)block, page_bytes()));
    assert_int_equal(allocated_large(), allocated + bytes_of(LENGTH));
    prairie_free(plain);
    assert_ptr_equal(take_staggered(LENGTH), block);
    assert_int_equal(allocated_large(), allocated + staggered_bytes(LENGTH));
    prairie_free(block);
    aligned = prairie_aligned_alloc(page_bytes(), staggered_bytes(LENGTH));
    assert_ptr_equal(aligned, plain);
    assert_int_equal(prairie_usable_size(aligned), staggered_bytes(LENGTH));
    assert_int_equal(allocated_large(), allocated + staggered_bytes(LENGTH));
    prairie_free(aligned);
    prairie_check_all();
}

static void of_both_kinds_of_a_length_one_makes_room(void **state)
{
    enum { LONGEST = LARGE_CACHE_PAGES_MAX };
    size_t fit = (LARGE_CACHE_BYTES_MAX >> 12) / LONGEST;
    char *plain[8], *block;

    (void)state;
    assert_in_range(fit, 1, ARRAY_COUNT(plain));
    begin_to_keep();
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < fit; i++) plain[i] = take_pages(LONGEST);
        for (size_t i = 0; i < fit; i++) prairie_free(plain[i]);
    }
    assert_int_equal(pages_kept(), fit * LONGEST);
    block = take_staggered(LONGEST);
    prairie_free(block);
    assert_int_equal(pages_kept(), fit * LONGEST);
    block = prairie_malloc(staggered_bytes(LONGEST));
    for (size_t i = 0; i + 1 < fit; i++) plain[i] = take_pages(LONGEST);
    assert_int_equal(pages_kept(), 0);
    prairie_check_all();
}

/* Kept runs are free for the program, whatever the page heap counts. */
static void statistics_count_it_as_free(void **state)
{
    struct prairie_stats before = { .struct_bytes = sizeof before }, after = before;

    (void)state;
    begin_to_keep();
    assert_true(prairie_stats_read(&before));
    prairie_free(take_pages(LENGTH));
    assert_int_equal(pages_kept(), LENGTH);
    assert_true(prairie_stats_read(&after));
    assert_int_equal(after.large_allocated, before.large_allocated);
    assert_int_equal(after.large_count, before.large_count);
    assert_int_equal(after.allocated, before.allocated);
    assert_int_equal(after.dirty, before.dirty);
}

/* ---- misuse ---- */

static char *kept_block(void)
{
    char *block;

    begin_to_keep();
    block = take_pages(LENGTH);
    prairie_free(block);
    return block;
}

static void free_twice(void) { prairie_free(kept_block()); }
static void free_inside(void) { prairie_free(kept_block() + 4096); }
static void resize_freed(void) { (void)prairie_realloc(kept_block(), 100000); }
static void ask_freed(void) { (void)prairie_usable_size(kept_block()); }

static void freed_twice_is_told(void **state)
{
    (void)state;
    expect_abort(free_twice, "prairie: double free");
    expect_abort(free_inside, "prairie: double free");
    expect_abort(resize_freed, "prairie: realloc of a freed pointer");
    expect_abort(ask_freed, "prairie: malloc_usable_size of a freed pointer");
}

/* The mark must not outlive its time: what was kept is split, merged and leased as anything
 * else. */
static void nothing_is_left_of_the_mark(void **state)
{
    char *blocks[3 * LENGTH];

    (void)state;
    begin_to_keep();
    for (unsigned round = 0; round < 200; round++) {
        for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++)
            blocks[i] = take_pages(LENGTH / 2 + (i * 7 + round) % LENGTH);
        for (unsigned i = 0; i < ARRAY_COUNT(blocks); i++)
            prairie_free(blocks[(i * 5 + round) % ARRAY_COUNT(blocks)]);
        if (round % 16 == 0) thread_flush();
    }
    prairie_check_all();
}

/* ---- the walk ---- */

static struct large_cache *kept(void) { return thread_front()->cache->large_cache; }
static struct cached_runs *kept_list(void) { return &kept()->list[large_kind(LENGTH / 2, false)]; }
static struct page *record_at(const char *block) { return page_record(page_at(block)); }
static struct page *last_record(void) { return record_at(kept_list()->first); }

static void l1_the_last_one_is_not_marked(void) { page_end_cached(last_record()); }
static void l1_the_next_one_is_not_marked(void)
{
    page_end_cached(record_at(last_record()->cached_next));
}
static void l1_another_length(void) { last_record()->run_pages++; }
static void l1_another_kind(void) { page_mark_staggered(last_record(), 0); }
static void l1_another_block(void) { kept_list()->first += LINE_BYTES; }
static void l1_one_too_many(void) { kept_list()->count++; }
static void l1_more_than_may_be(void) { kept_list()->max = kept_list()->count - 1; }
static void l2_more_room_than_there_is(void) { kept()->room_pages++; }
static void walk_kept(void) { large_cache_check(thread_front()->cache); }

static void broken_invariants_are_found(void **state)
{
    static const struct harm harms[] = {
        HARM(l1_the_last_one_is_not_marked),
        HARM(l1_the_next_one_is_not_marked),
        HARM(l1_another_length),
        HARM(l1_another_kind),
        HARM(l1_another_block),
        HARM(l1_one_too_many),
        HARM(l1_more_than_may_be),
        HARM(l2_more_room_than_there_is),
    };

    (void)state;
    begin_to_keep();
    for (unsigned i = 0; i < 2; i++) burst_of_runs(RUNS, LENGTH / 2);
    assert_int_equal(pages_kept(), RUNS * LENGTH / 2);
    expect_harms_found(harms, ARRAY_COUNT(harms), walk_kept);
}

UNIT_MAIN(
    UNIT_TEST(a_kept_run_is_of_no_arena), UNIT_TEST(the_next_block_of_that_length_takes_no_lock),
    UNIT_TEST(who_asks_seldom_keeps_nothing),
    UNIT_TEST(nor_does_who_wants_nothing_of_that_size_held),
    UNIT_TEST(nor_who_stops_holding_all_classes), UNIT_TEST(the_largest_small_block_is_of_a_slab),
    UNIT_TEST(of_two_runs_of_a_length_the_warm_one_stays), UNIT_TEST(what_is_kept_is_bounded),
    UNIT_TEST(what_was_wanted_again_is_kept), UNIT_TEST(what_is_kept_of_one_length_is_bounded),
    UNIT_TEST(what_is_kept_of_one_length_fills_all_room), UNIT_TEST(uncached_blocks_pass_it_by),
    UNIT_TEST(a_staggered_block_begins_where_the_last_one_did),
    UNIT_TEST(a_run_serves_blocks_of_both_kinds),
    UNIT_TEST(of_both_kinds_of_a_length_one_makes_room),
    UNIT_TEST(the_only_thread_purges_what_it_drains), UNIT_TEST(a_thread_tells_of_what_it_drains),
    UNIT_TEST(one_that_is_too_much_alone_is_not_kept),
    UNIT_TEST(a_kept_block_reads_as_zero_when_that_is_asked), UNIT_TEST(so_do_all_that_are_kept),
    UNIT_TEST(flush_and_purge_give_all_back), UNIT_TEST(a_thread_that_ends_leaves_nothing_kept),
    UNIT_TEST(statistics_count_it_as_free), UNIT_TEST(freed_twice_is_told),
    UNIT_TEST(nothing_is_left_of_the_mark), UNIT_TEST(broken_invariants_are_found))
