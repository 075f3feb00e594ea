/* stats_test.c - the numbers against what the test did, and the lines they are printed in. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "arenas/sparse.h"

#include "holes.h"
#include "unit.h"

#include <jemalloc/jemalloc.h>

static struct prairie_stats read_stats(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };

    assert_true(prairie_stats_read(&stats));
    assert_int_equal(stats.struct_bytes, sizeof stats);
    return stats;
}

static size_t open_bytes_of_page_heaps(void)
{
    size_t pages = 0;

    for (unsigned i = 0; i < page_heap_count(); i++) pages += page_heap[i].open_pages;
    return pages << space.page_shift;
}

/* ---- what must always hold ---- */

static void check_sums(const struct prairie_stats *stats)
{
    assert_true(stats->allocated <= stats->active);
    assert_true(stats->large_allocated <= stats->allocated);
    assert_int_equal(stats->active + stats->dirty + stats->clean + stats->reserve_cur,
                     open_bytes_of_page_heaps());
    assert_int_equal(stats->mapped, open_bytes_of_page_heaps() + stats->metadata);
    assert_true(stats->allocated + stats->cached <= stats->active);
    assert_true(stats->lock_waits <= stats->lock_contended);
    assert_true(stats->lock_contended <= stats->lock_acquired);
    assert_true(stats->run_returns <= stats->run_leases);
    assert_int_equal(stats->purged, fake_purged_bytes());
    assert_int_equal(stats->purges, fake_calls(FAKE_PURGE));
}

/* ---- the numbers ---- */

static void before_the_first_call_all_is_zero(void **state)
{
    struct prairie_stats stats = read_stats();

    (void)state;
    assert_int_equal(stats.allocated + stats.active + stats.cached + stats.dirty, 0);
    assert_int_equal(stats.threads + stats.arenas, 0);
    assert_int_equal(stats.refills + stats.overflows + stats.slab_fills + stats.run_leases, 0);
    check_sums(&stats);
}

static void an_unknown_size_is_refused(void **state)
{
    struct prairie_stats stats, before;

    (void)state;
    (void)prairie_malloc(1);
    memset(&stats, 7, sizeof stats);
    for (size_t bytes = 0; bytes < 2 * sizeof stats; bytes += 4) {
        if (bytes == sizeof stats) continue;
        stats.struct_bytes = bytes;
        before = stats;
        assert_false(prairie_stats_read(&stats));
        assert_memory_equal(&before, &stats, sizeof stats);
    }
}

/* With one thread the numbers are exact at every moment. */
static void what_the_program_holds_is_counted_exactly(void **state)
{
    enum { BLOCKS = 600 };
    static void *blocks[BLOCKS];
    size_t held = 0, large = 0, large_count = 0;

    (void)state;
    fake_cores(1);
    for (unsigned step = 0; step < 20000; step++) {
        unsigned at = (unsigned)random_below(BLOCKS);
        size_t size = random_below(16) == 0 ? random_below(300000) : random_below(2000), usable;

        if (blocks[at] != NULL) {
            usable = prairie_usable_size(blocks[at]);
            held -= usable;
            large -= usable > SMALL_BYTES_MAX ? usable : 0;
            large_count -= usable > SMALL_BYTES_MAX;
            prairie_free(blocks[at]);
            blocks[at] = NULL;
        } else {
            blocks[at] = prairie_malloc(size);
            usable = prairie_usable_size(blocks[at]);
            held += usable;
            large += usable > SMALL_BYTES_MAX ? usable : 0;
            large_count += usable > SMALL_BYTES_MAX;
        }
        if (step % 64 == 0) {
            struct prairie_stats stats = read_stats();
            assert_int_equal(stats.allocated, held);
            assert_int_equal(stats.large_allocated, large);
            assert_int_equal(stats.large_count, large_count);
            assert_int_equal(stats.threads, 1);
            assert_int_equal(stats.arenas, 1);
            check_sums(&stats);
        }
    }
}

static void cached_blocks_are_those_that_were_freed(void **state)
{
    void *blocks[64];
    struct prairie_stats before, after;
    size_t usable = 0;

    (void)state;
    for (unsigned i = 0; i < 64; i++) blocks[i] = prairie_malloc(48);
    before = read_stats();
    for (unsigned i = 0; i < 3; i++) {
        usable += prairie_usable_size(blocks[i]);
        prairie_free(blocks[i]);
    }
    after = read_stats();
    assert_int_equal(before.allocated - after.allocated, usable);
    assert_true(after.cached + after.slab_drains * 48 * 64 >= usable);
    (void)prairie_purge();
    after = read_stats();
    assert_int_equal(after.cached, 0);
    assert_int_equal(before.allocated - after.allocated, usable);
    assert_int_equal(after.dirty, 0);
}

/* Both ways to ask count the same records as prairie's own. */
static void expect_one_metadata(void)
{
    const struct snapshot *snapshot;

    (void)prairie_malloc(100000);
    lock_take(&control_lock);
    snapshot = snapshot_take();
    lock_give(&control_lock);
    assert_non_null(snapshot);
    assert_int_equal(read_stats().metadata, snapshot->all.metadata);
    assert_int_equal(snapshot->all.metadata - commit.record_bytes, snapshot->all.metadata_map);
}

static uint64_t next_epoch(void)
{
    uint64_t epoch;

    lock_take(&control_lock);
    epoch = snapshot_take()->epoch;
    lock_give(&control_lock);
    return epoch;
}

static void each_snapshot_has_the_next_number(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    for (uint64_t epoch = 1; epoch <= 3; epoch++) assert_int_equal(next_epoch(), epoch);
}

static size_t pages_with_records(void)
{
    size_t pages = 0;

    for (unsigned i = 0; i < page_heap_count(); i++) pages += page_heap_taken_most(&page_heap[i]);
    return pages;
}

static void metadata_is_records_and_maps(void **state)
{
    size_t page_bytes_each = sizeof(struct page) + 1;

    (void)state;
    expect_one_metadata();
    assert_int_equal(read_stats().metadata,
                     commit.record_bytes + pages_with_records() * page_bytes_each);
}

/* Between blocks with a wide alignment; but what was used once has its records there. */
static void records_that_nobody_used_are_no_metadata(void **state)
{
    size_t align = min_size(64 * MiB, VAST_BYTES_MIN / 4), before, most;
    void *block;

    (void)state;
    prairie_free(prairie_malloc(1));
    before = read_stats().metadata;
    assert_non_null(prairie_aligned_alloc(align, 100000));
    assert_true(space.open_bytes >= align);
    assert_in_range(read_stats().metadata, before, before + 8 * KiB);
    block = prairie_malloc(8 * MiB);
    most = read_stats().metadata;
    assert_true(most >= before + pages_for(8 * MiB) * sizeof(struct page));
    prairie_free(block);
    (void)prairie_purge();
    assert_in_range(read_stats().metadata, most - 8 * KiB, most);
    block = prairie_malloc(4 * MiB);
    assert_in_range(read_stats().metadata, most - 8 * KiB, most + 8 * KiB);
    prairie_free(block);
}

static void a_class_map_that_is_not_there_counts_nothing(void **state)
{
    (void)state;
    fake_address_space(64 * MiB, 0);
    expect_one_metadata();
    assert_int_equal(class_map.mask, 0);
    assert_int_equal(read_stats().metadata,
                     commit.record_bytes + pages_with_records() * sizeof(struct page));
}

static void events_are_counted(void **state)
{
    enum { BLOCKS = 30000 };
    static void *blocks[BLOCKS];
    struct prairie_stats stats;

    (void)state;
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = prairie_malloc(64);
        for (unsigned i = 0; i < BLOCKS; i++) prairie_free(blocks[i]);
    }
    prairie_free(prairie_malloc(100000));
    stats = read_stats();
    assert_true(stats.refills > 0 && stats.overflows > 0);
    assert_true(stats.slab_fills > 0 && stats.slab_drains > 0 && stats.depot_trades > 0);
    assert_int_equal(stats.run_leases, page_heap->leases);
    assert_int_equal(stats.run_returns, page_heap->returns);
    assert_true(stats.run_returns > 0);
    /* Far fewer locks than calls. */
    assert_true(stats.lock_acquired < 2 * 5 * BLOCKS);
    check_sums(&stats);
}

/* ---- several threads ---- */

/* One after another: who meets a busy arena may take another. */
static void *keep_and_wait(void *barriers)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    pthread_barrier_t *barrier = barriers;

    pthread_mutex_lock(&turn);
    for (unsigned i = 0; i < 100; i++) prairie_free(prairie_malloc(i * 20));
    (void)prairie_malloc(1000);
    pthread_mutex_unlock(&turn);
    pthread_barrier_wait(&barrier[0]);
    pthread_barrier_wait(&barrier[1]);
    return NULL;
}

/* The snapshot tells each thread, and what its cache holds, of the arena that it is bound to. */
static void expect_each_in_its_arena(unsigned arenas_wanted)
{
    lock_take(&control_lock);
    assert_non_null(snapshot_take());
    for (unsigned index = 0; index < arenas_wanted; index++) {
        const struct snapshot_arena *arena = snapshot_arena(index);
        uint64_t cached = 0;

        for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
            cached += arena->of_class[class_index].cached;
        assert_int_equal(arena->threads, 1);
        assert_true(cached > 0);
    }
    lock_give(&control_lock);
}

static void threads_are_counted_with_what_they_hold(void **state)
{
    pthread_barrier_t barrier[2];
    pthread_t thread[3];
    struct prairie_stats stats;
    size_t usable;

    (void)state;
    fake_cores(4);
    usable = prairie_usable_size(prairie_malloc(1000));
    prairie_free(prairie_malloc(48));
    for (unsigned i = 0; i < 2; i++) pthread_barrier_init(&barrier[i], NULL, 4);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, keep_and_wait, barrier), 0);
    pthread_barrier_wait(&barrier[0]);
    stats = read_stats();
    assert_int_equal(stats.threads, 4);
    assert_int_equal(stats.arenas, 4);
    assert_int_equal(stats.allocated, 4 * usable);
    expect_each_in_its_arena(4);
    pthread_barrier_wait(&barrier[1]);
    for (unsigned i = 0; i < 3; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    stats = read_stats();
    assert_int_equal(stats.threads, 1);
    assert_int_equal(stats.allocated, 4 * usable);
    check_sums(&stats);
}

static struct snapshot count_now(void)
{
    struct snapshot numbers = { .epoch = 0 };

    snapshot_sum(&numbers);
    return numbers;
}

static uint32_t stop;

static void *keep_busy(void *unused)
{
    while (RELAXED_LOAD(stop) == 0)
        for (unsigned i = 0; i < 50; i++) prairie_free(prairie_malloc(i * 37));
    return unused;
}

/* While others go on the numbers are of about now, and asking is safe. */
static void asking_while_others_go_on(void **state)
{
    pthread_t thread[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, keep_busy, NULL), 0);
    for (unsigned i = 0; i < 2000; i++) {
        struct prairie_stats stats = read_stats();
        assert_true(stats.allocated < 1 * MiB);
    }
    RELAXED_STORE(stop, 1);
    for (unsigned i = 0; i < 2; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(read_stats().allocated, 0);
}

/* What it took moves from one sum to another each time. */
static void *move_counts(void *unused)
{
    while (RELAXED_LOAD(stop) == 0) {
        struct arena *arena;

        for (unsigned i = 0; i < 20; i++) prairie_free(prairie_malloc(20000 + i * 4096));
        thread_flush();
        arena = arena_create();
        assert_non_null(arena);
        for (unsigned i = 0; i < 20; i++)
            (void)prairie_mallocx(100, MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE);
        assert_true(placed_destroy(arena));
    }
    return unused;
}

static void what_was_taken_never_becomes_less(void **state)
{
    struct snapshot before;
    pthread_t thread[2];

    (void)state;
    assert_true(heap_start()); /* as each call does that asks */
    before = count_now();
    RELAXED_STORE(stop, 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, move_counts, NULL), 0);
    for (unsigned i = 0; i < 5000; i++) {
        struct snapshot now = count_now();

        assert_true(now.all.large.taken >= before.all.large.taken);
        assert_true(now.all.small.taken >= before.all.small.taken);
        before = now;
    }
    RELAXED_STORE(stop, 1);
    for (unsigned i = 0; i < 2; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
}

/* ---- printing ---- */

static char printed[16384];
static size_t printed_bytes;

static void collect(void *context, const char *text)
{
    size_t length_bytes = strlen(text);

    assert_ptr_equal(context, &printed);
    assert_true(length_bytes > 0 && length_bytes <= 120);
    assert_int_equal(text[length_bytes - 1], '\n'); /* whole lines */
    assert_null(memchr(text, '\n', length_bytes - 1));
    memcpy(printed + printed_bytes, text, length_bytes);
    printed_bytes += length_bytes;
}

static void check_lines(void)
{
    for (char *line = printed; *line != '\0'; line = strchr(line, '\n') + 1)
        assert_memory_equal(line, "prairie: ", 9);
}

static void expect_number(const char *label, uint64_t value)
{
    char start[60], number[32], *line;

    snprintf(start, sizeof start, "prairie:   %s ", label);
    line = strstr(printed, start);
    assert_non_null(line);
    snprintf(number, sizeof number, " %llu ", (unsigned long long)value);
    assert_non_null(strstr(line, number));
    assert_true(strstr(line, number) < strchr(line, '\n'));
}

static void every_number_has_its_line(void **state)
{
    struct report report = { .write = collect, .context = &printed };
    struct prairie_stats stats;
    const size_t count =
        (sizeof stats - offsetof(struct prairie_stats, allocated)) / sizeof(size_t);

    (void)state;
    memset(&stats, 0, sizeof stats);
    stats.allocated = 1234567;
    stats.dirty = 7654321;
    stats.purged = 42;
    stats.threads = 17;
    stats_print_to(&stats, &report);
    check_lines();
    expect_number("allocated", 1234567);
    expect_number("dirty", 7654321);
    expect_number("purged", 42);
    expect_number("threads", 17);
    expect_number("cached", 0);
    assert_true(count > 15);
    memset(printed, 0, printed_bytes);
    printed_bytes = 0;
    memset(&stats, 0xff, sizeof stats); /* the widest numbers there are */
    stats_print_to(&stats, &report);
    check_lines();
    expect_number("allocated", SIZE_MAX);
    expect_number("threads", UINT32_MAX);
}

static void printing_allocates_nothing(void **state)
{
    struct prairie_stats before, after;

    (void)state;
    (void)prairie_malloc(100);
    before = read_stats();
    fake_fail_all(true);
    prairie_stats_print();
    after = read_stats();
    assert_int_equal(before.allocated, after.allocated);
    assert_int_equal(before.refills, after.refills);
    assert_int_equal(before.run_leases, after.run_leases);
    assert_non_null(strstr(fake_error_text(), "prairie: statistics of prairie " PRAIRIE_VERSION));
    assert_non_null(strstr(fake_error_text(), "allocated"));
    assert_true(fake_calls(FAKE_WRITE) > 10);
}

/* It is resident, and no block of the program's. */
static void a_reserve_is_resident_and_nobody_took_it(void **state)
{
    struct snapshot before, after;
    struct prairie_stats stats;

    (void)state;
    prairie_free(prairie_malloc(100000));
    before = count_now();
    assert_int_equal(before.all.large.taken, 1);
    assert_true(reserve_resize(MiB));
    after = count_now();
    assert_int_equal(after.reserve, MiB);
    assert_int_equal(after.all.large.taken, 1);
    assert_int_equal(after.all.resident + before.all.dirty + before.all.metadata,
                     before.all.resident + MiB + after.all.dirty + after.all.metadata);
    stats = read_stats();
    assert_int_equal(stats.reserve_cur, MiB);
    check_sums(&stats);
    assert_true(reserve_resize(0));
    after = count_now();
    assert_int_equal(after.all.large.taken, 1);
    assert_int_equal(after.all.large.given, 1);
}

/* What is counted of destroyed arenas begins anew with all other locks. */
static void locks_of_destroyed_arenas_count_anew_too(void **state)
{
    struct arena *arena;

    (void)state;
    prairie_free(prairie_malloc(1));
    arena = arena_create();
    lock_take(&arena->lock);
    lock_give(&arena->lock);
    assert_true(placed_destroy(arena));
    lock_take(&control_lock);
    assert_true(snapshot_past()->locks[ARENA_LOCK_OWN].taken > 0);
    snapshot_forget_locks();
    assert_int_equal(snapshot_past()->locks[ARENA_LOCK_OWN].taken, 0);
    lock_give(&control_lock);
}

/* Until somebody takes from their slab, or it is closed. */
static void pages_between_blocks_are_clean(void **state)
{
    struct prairie_stats before, after;
    size_t gone;

    (void)state;
    huge.policy = HUGE_NEVER;
    fake_cores(1);
    take_and_make_holes();
    shortage_gather();
    (void)purge_all();
    before = read_stats();
    check_sums(&before);
    gone = sparse_purge_all();
    assert_true(gone > 0);
    after = read_stats();
    check_sums(&after);
    assert_int_equal(before.active - after.active, gone);
    assert_int_equal(after.clean - before.clean, gone);
    assert_int_equal(after.allocated, before.allocated);
    assert_int_equal(after.mapped, before.mapped);
    holed[1] = prairie_malloc(HOLED_BYTES);
    assert_true(read_stats().active > after.active);
    prairie_free(holed[1]);
    for (unsigned i = 0; i < HOLED_BLOCKS; i++)
        if (!hole_is_at(i)) prairie_free(holed[i]);
    shortage_gather();
    after = read_stats();
    check_sums(&after);
    assert_int_equal(arenas[0]->purged_pages, 0);
    assert_int_equal(after.allocated, 0);
    prairie_check_all();
}

UNIT_MAIN(UNIT_TEST(a_reserve_is_resident_and_nobody_took_it),
          UNIT_TEST(locks_of_destroyed_arenas_count_anew_too),
          UNIT_TEST(before_the_first_call_all_is_zero), UNIT_TEST(an_unknown_size_is_refused),
          UNIT_TEST(what_the_program_holds_is_counted_exactly),
          UNIT_TEST(cached_blocks_are_those_that_were_freed),
          UNIT_TEST(each_snapshot_has_the_next_number), UNIT_TEST(metadata_is_records_and_maps),
          UNIT_TEST(records_that_nobody_used_are_no_metadata),
          UNIT_TEST(a_class_map_that_is_not_there_counts_nothing), UNIT_TEST(events_are_counted),
          UNIT_TEST(threads_are_counted_with_what_they_hold), UNIT_TEST(asking_while_others_go_on),
          UNIT_TEST(what_was_taken_never_becomes_less), UNIT_TEST(every_number_has_its_line),
          UNIT_TEST(printing_allocates_nothing), UNIT_TEST(pages_between_blocks_are_clean))
