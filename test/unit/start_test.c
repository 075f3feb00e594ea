/* start_test.c - the first call of a process, forks, and whole heaps under limits of every kind. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "unit.h"

#include <sys/wait.h>

/* Blocks of all kinds through all doors, checked and given back. */
static bool live_a_little(void)
{
    enum { BLOCKS = 300 };
    static char *blocks[BLOCKS];
    bool good = true;

    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t size = i % 50 == 49 ? 30000 + i * 100 : i * 17;
        blocks[i] = i % 3 == 0 ? prairie_calloc(1, size)
                  : i % 3 == 1 ? prairie_malloc(size)
                               : prairie_aligned_alloc(64, size);
        good &= blocks[i] != NULL;
        if (blocks[i] != NULL && i % 3 == 0) good &= all_bytes_are(blocks[i], 0, size);
        if (blocks[i] != NULL) memset(blocks[i], (int)i, size);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t size = i % 50 == 49 ? 30000 + i * 100 : i * 17;
        if (blocks[i] != NULL) good &= all_bytes_are(blocks[i], (unsigned char)i, size);
        prairie_free(blocks[i]);
    }
    prairie_check_all();
    return good;
}

static void live_on_this_page_size(size_t page_bytes_wanted)
{
    fake_page_bytes(page_bytes_wanted);
    if (!live_a_little()) _exit(1);
    (void)prairie_purge();
    prairie_check_all();
    if (page_heap_used_pages(page_heap) != 0) _exit(2);
}

static void on_4_kib(void) { live_on_this_page_size(4 * KiB); }
static void on_16_kib(void) { live_on_this_page_size(16 * KiB); }
static void on_64_kib(void) { live_on_this_page_size(64 * KiB); }

static void every_page_size_works(void **state)
{
    (void)state;
    expect_survival(on_4_kib);
    expect_survival(on_16_kib);
    expect_survival(on_64_kib);
}

static unsigned cores_to_try;

static void live_on_these_cores(void)
{
    fake_cores(cores_to_try);
    fake_core_current(cores_to_try * 3 + 1); /* a kernel may number them as it likes */
    if (!live_a_little()) _exit(1);
}

static void every_number_of_cores_works(void **state)
{
    static const unsigned counts[] = { 1, 2, 3, 8, 255, 256, 257, 10000 };

    (void)state;
    for (unsigned i = 0; i < ARRAY_COUNT(counts); i++) {
        cores_to_try = counts[i];
        expect_survival(live_on_these_cores);
    }
}

static size_t limit_to_try;

static void live_under_a_limit(void)
{
    fake_address_space(limit_to_try, limit_to_try / 4);
    if (!live_a_little()) _exit(1);
}

static void live_on_little_memory(void)
{
    fake_commit_bytes_max(limit_to_try);
    if (!live_a_little()) _exit(1);
}

static void limits_of_32_mib_and_more_work(void **state)
{
    (void)state;
    for (limit_to_try = 32 * MiB; limit_to_try <= BY_WORD(64 * TiB, GiB); limit_to_try *= 2) {
        expect_survival(live_under_a_limit);
        expect_survival(live_on_little_memory);
    }
}

static void live_without_a_class_map(void)
{
    fake_fail_kind(FAKE_RESERVE_READABLE, true);
    if (!live_a_little()) _exit(1);
}

static void a_refused_class_map_is_done_without(void **state)
{
    (void)state;
    expect_survival(live_without_a_class_map);
}

/* ---- failures of the first call ---- */

static uint64_t call_to_fail;

static void fail_one_call_of_the_start(void)
{
    void *first;

    fake_fail_nth(call_to_fail);
    errno = 0;
    first = prairie_malloc(100);
    if (first == NULL && errno != ENOMEM) _exit(2);
    prairie_check_all();
    if (prairie_malloc(100) == NULL) _exit(3);
    if (!live_a_little()) _exit(4);
}

static void a_first_call_that_fails_is_made_again(void **state)
{
    (void)state;
    for (call_to_fail = 1; call_to_fail < 20; call_to_fail++)
        expect_survival(fail_one_call_of_the_start);
}

static void without_any_memory_nothing_works_and_nothing_breaks(void **state)
{
    void *block = &block;

    (void)state;
    fake_fail_all(true);
    assert_null(prairie_malloc(1));
    assert_null(prairie_calloc(1, 1));
    assert_null(prairie_realloc(NULL, 1));
    assert_null(prairie_aligned_alloc(4096, 1));
    assert_null(prairie_malloc(100000));
    assert_int_equal(prairie_posix_memalign(&block, 64, 1), ENOMEM);
    prairie_free(NULL);
    assert_int_equal(prairie_usable_size(NULL), 0);
    assert_int_equal(prairie_purge(), 0);
    prairie_check_all();
    prairie_stats_print();
    fake_fail_all(false);
    assert_true(live_a_little());
}

/* ---- fork ---- */

static pthread_barrier_t barrier;

static void *call_first(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < 200; i++) prairie_free(memset(prairie_malloc(i * 100), 1, i * 100));
    return NULL;
}

static void parent_and_child_go_on(void **state)
{
    void *block = prairie_malloc(5000);

    (void)state;
    memset(block, 3, 5000);
    for (unsigned i = 0; i < 10; i++) {
        int status, child = fake_fork();
        if (child == 0) {
            bool good = all_bytes_are(block, 3, 5000) && live_a_little();
            prairie_free(block);
            good &= live_a_little();
            (void)prairie_purge();
            prairie_check_all();
            _exit(good && page_heap_used_pages(page_heap) == 0 ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_true(live_a_little());
    }
    assert_true(all_bytes_are(block, 3, 5000));
}

static uint32_t running, stop; /* atomic */

static void *keep_allocating(void *unused)
{
    (void)__atomic_fetch_add(&running, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; RELAXED_LOAD(stop) == 0; i++) {
        size_t size = i * 7919 % (i % 20 == 0 ? 200000 : 3000);
        prairie_free(memset(prairie_malloc(size), 1, size));
    }
    return unused;
}

/* Other threads are in the middle of anything when the process forks. */
static void children_of_a_busy_program_work(void **state)
{
    pthread_t thread[3];

    (void)state;
    assert_true(live_a_little());
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, keep_allocating, NULL), 0);
    /* A sanitizer's own allocator, which starts threads, does not survive a fork meanwhile. */
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) < 3) usleep(100);
    for (unsigned i = 0; i < 60; i++) {
        int status, child = fake_fork();
        if (child == 0) {
            pthread_t grandchild;
            bool good = live_a_little();
            pthread_barrier_init(&barrier, NULL, 1);
            good &= pthread_create(&grandchild, NULL, call_first, NULL) == 0;
            good &= pthread_join(grandchild, NULL) == 0;
            prairie_check_all();
            _exit(good ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    RELAXED_STORE(stop, 1);
    for (unsigned i = 0; i < 3; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    prairie_check_all();
}

/* Another thread has taken pages out and is in the kernel with them when this one forks. */
static void the_child_has_what_was_on_its_way(void **state)
{
    void *block = prairie_malloc(PURGE_KEEP_BYTES / 2);
    int status, child;
    uint32_t page;

    (void)state;
    prairie_free(memset(block, 1, PURGE_KEEP_BYTES / 2));
    page = run_take_dirty(page_heap, 1, 1000);
    assert_int_not_equal(page, 0);
    child = fake_fork();
    if (child == 0) {
        prairie_check_all();
        (void)prairie_purge();
        prairie_check_all();
        _exit(page_heap_used_pages(page_heap) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    run_put_free(page, PAGE_DIRTY);
    prairie_check_all();
}

static void run_child_of_a_fork(bool (*body)(void))
{
    int status, child = fake_fork();

    if (child == 0) _exit(body() ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static bool nothing_is_held_any_more(void)
{
    return fake_forks_begun() == 0 && control_lock.state == LOCK_FREE && live_a_little();
}

static void *call_once(void *unused)
{
    prairie_free(prairie_malloc(100));
    return unused;
}

/* There was no memory for the handlers when the first thread came: the next one puts them there. */
static void refused_fork_handlers_are_put_there_later(void **state)
{
    pthread_t thread;

    (void)state;
    fake_fail_kind(FAKE_FORK_HOOK, true);
    assert_true(live_a_little());
    assert_int_equal(fake_calls(FAKE_FORK_HOOK), 1);
    fake_fail_kind(FAKE_FORK_HOOK, false);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread, NULL, call_once, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(fake_calls(FAKE_FORK_HOOK), 2);
    }
    run_child_of_a_fork(nothing_is_held_any_more);
}

/* A handler of the fork forks: its end is not that of the fork around it. */
static void a_fork_inside_of_a_fork_gives_nothing(void **state)
{
    (void)state;
    assert_true(live_a_little());
    heap_fork_begins();
    assert_int_equal(fake_forks_begun(), 1);
    for (unsigned i = 0; i < 3; i++) {
        run_child_of_a_fork(nothing_is_held_any_more);
        assert_int_equal(fake_forks_begun(), 1);
        assert_int_equal(control_lock.state, LOCK_FORKING);
        prairie_free(prairie_malloc(100000));
    }
    heap_fork_ends_in_parent();
    assert_true(nothing_is_held_any_more());
}

/* The child of such a handler may return into the fork around it, which then ends there as well. */
static bool ends_the_fork_around(void)
{
    bool good = nothing_is_held_any_more();

    run_child_of_a_fork(nothing_is_held_any_more);
    heap_fork_ends_in_parent();
    return good && nothing_is_held_any_more();
}

static void a_child_returns_into_the_fork_around(void **state)
{
    (void)state;
    assert_true(live_a_little());
    heap_fork_begins();
    run_child_of_a_fork(ends_the_fork_around);
    heap_fork_ends_in_parent();
    assert_true(nothing_is_held_any_more());
}

static const struct arena *made; /* by a handler */

static bool what_was_made_is_free(void)
{
    return made->lock.state == LOCK_FREE && made->page_heap->lock.state == LOCK_FREE
        && nothing_is_held_any_more();
}

/* Whose arena is marked fills from that of its core, which may not be there yet. */
static void what_a_handler_makes_is_held_until_the_fork_ends(void **state)
{
    (void)state;
    fake_cores(4);
    assert_true(live_a_little());
    assert_null(arenas[3]);
    heap_fork_begins();
    made = arena_at(3);
    assert_non_null(made);
    assert_int_equal(made->lock.state, LOCK_FORKING);
    assert_int_equal(made->page_heap->lock.state, LOCK_FORKING);
    assert_non_null(extents_make(NULL, NULL)); /* with a lock that nobody takes */
    run_child_of_a_fork(what_was_made_is_free);
    assert_int_equal(made->lock.state, LOCK_FORKING);
    heap_fork_ends_in_parent();
    assert_true(what_was_made_is_free());
}

static bool gives_the_lock_and_goes_on(void)
{
    bool held = page_heap->lock.state == LOCK_HELD;

    lock_give(&page_heap->lock);
    return held && nothing_is_held_any_more();
}

/* A signal handler forks in the middle of a call, whose locks are the thread's own. */
static void a_process_with_one_thread_forks_without_locks(void **state)
{
    (void)state;
    fake_one_thread(true);
    assert_true(live_a_little());
    lock_take(&page_heap->lock);
    run_child_of_a_fork(gives_the_lock_and_goes_on);
    assert_true(gives_the_lock_and_goes_on());
}

static bool has_nothing_on_its_way(void)
{
    for (unsigned i = 0; i < IN_FLIGHT_MAX; i++)
        if (page_heap->in_flight[i] != 0) return false;
    return true;
}

static bool has_all_of_it(void) { return has_nothing_on_its_way() && nothing_is_held_any_more(); }

/* A background thread is in the kernel with pages, and for so long that it cannot be waited for:
 * then it may come back at any moment. */
static void a_background_thread_that_does_not_end_is_a_thread(void **state)
{
    void *block = prairie_malloc(PURGE_KEEP_BYTES / 2);
    uint32_t page;

    (void)state;
    fake_one_thread(true);
    prairie_free(memset(block, 1, PURGE_KEEP_BYTES / 2));
    inside_set_background_runs(true);
    page = run_take_dirty(page_heap, 1, 1000);
    assert_int_not_equal(page, 0);
    heap_fork_begins();
    assert_true(lock_fork_is_mine());
    run_child_of_a_fork(has_all_of_it); /* of a handler of that fork, which has its locks */
    assert_int_equal(control_lock.state, LOCK_FORKING);
    heap_fork_ends_in_parent();
    run_put_free(page, PAGE_CLEAN);
    assert_true(has_all_of_it());
}

/* But it may wait for a lock that the signal handler which forks has interrupted. */
static void a_background_thread_that_waits_for_this_thread_is_none(void **state)
{
    (void)state;
    fake_one_thread(true);
    assert_true(live_a_little());
    inside_set_background_runs(true);
    lock_take(&making_lock);
    heap_fork_begins();
    assert_false(lock_fork_is_mine());
    heap_fork_ends_in_parent();
    lock_give(&making_lock);
    assert_true(nothing_is_held_any_more());
}

/* ---- all locks ---- */

enum { LOCKS_MAX = 64 };
static struct lock *noted_lock[LOCKS_MAX];
static unsigned noted_count;

static void note_and_take(struct lock *lock)
{
    assert_true(noted_count < LOCKS_MAX);
    noted_lock[noted_count++] = lock;
    lock_take(lock);
}

/* What was taken last goes first. */
static void give_as_noted(struct lock *lock)
{
    assert_true(noted_count > 0);
    assert_ptr_equal(lock, noted_lock[--noted_count]);
    lock_give(lock);
}

static void locks_are_taken_by_rank_and_given_in_reverse(void **state)
{
    bool met[LOCK_RANK_COUNT] = { false };
    unsigned arenas_met = 0;

    (void)state;
    fake_cores(3);
    assert_true(live_a_little());
    for (unsigned i = 0; i < 3; i++) assert_non_null(arena_at(i));
    inside_each_lock(note_and_take, WALK_TAKES);
    for (unsigned i = 0; i < noted_count; i++) {
        if (i > 0) assert_true(noted_lock[i]->rank >= noted_lock[i - 1]->rank);
        met[noted_lock[i]->rank] = true;
        if (noted_lock[i]->rank == LOCK_ARENA)
            assert_ptr_equal(noted_lock[i], &arenas[arenas_met++]->lock);
    }
    assert_int_equal(arenas_met, 3);
    for (unsigned rank = 1; rank < LOCK_RANK_COUNT; rank++) assert_true(met[rank]);
    inside_each_lock(give_as_noted, WALK_GIVES);
    assert_int_equal(noted_count, 0);
    assert_true(live_a_little());
}

/* ---- purge and walk ---- */

static void purging_gives_all_free_memory_back(void **state)
{
    size_t purged;

    (void)state;
    assert_int_equal(prairie_purge(), 0);
    assert_true(live_a_little());
    purged = prairie_purge();
    assert_true(purged > 0);
    assert_int_equal(page_heap_used_pages(page_heap), 0);
    assert_int_equal(page_heap->free_pages[FREE_DIRTY], 0);
    assert_int_equal(prairie_purge(), 0);
    assert_true(live_a_little());
}

static void break_a_run_and_walk(void)
{
    page_record(page_at(prairie_malloc(100000)))->run_pages++;
    prairie_check_all();
}

static void break_a_slab_and_walk(void)
{
    struct slab *slab = slab_of(prairie_malloc(100), class_of_size(100));
    slab->free_count++;
    prairie_check_all();
}

static void break_a_magazine_and_walk(void)
{
    prairie_free(prairie_malloc(100));
    thread_front()->cache->spare[class_of_size(100)].count = 1;
    prairie_check_all();
}

static void the_walk_reaches_every_floor(void **state)
{
    (void)state;
    prairie_check_all(); /* before there is anything */
    expect_abort(break_a_run_and_walk, "prairie: broken invariant: ");
    expect_abort(break_a_slab_and_walk, "prairie: broken invariant: ");
    expect_abort(break_a_magazine_and_walk, "prairie: broken invariant: ");
}

/* Each try finds all as the first one did. */
static void a_start_that_fails_often_counts_once(void **state)
{
    (void)state;
    fake_fail_all(true);
    for (unsigned i = 0; i < 200; i++) assert_null(prairie_malloc(10));
    fake_fail_all(false);
    assert_non_null(prairie_malloc(10));
    assert_int_equal(commit.heap_count, page_heap_count());
}

UNIT_MAIN(UNIT_TEST(a_start_that_fails_often_counts_once), UNIT_TEST(every_page_size_works),
          UNIT_TEST(every_number_of_cores_works), UNIT_TEST(limits_of_32_mib_and_more_work),
          UNIT_TEST(a_refused_class_map_is_done_without),
          UNIT_TEST(a_first_call_that_fails_is_made_again),
          UNIT_TEST(without_any_memory_nothing_works_and_nothing_breaks),
          UNIT_TEST(parent_and_child_go_on), UNIT_TEST(children_of_a_busy_program_work),
          UNIT_TEST(the_child_has_what_was_on_its_way),
          UNIT_TEST(refused_fork_handlers_are_put_there_later),
          UNIT_TEST(a_fork_inside_of_a_fork_gives_nothing),
          UNIT_TEST(a_child_returns_into_the_fork_around),
          UNIT_TEST(what_a_handler_makes_is_held_until_the_fork_ends),
          UNIT_TEST(a_process_with_one_thread_forks_without_locks),
          UNIT_TEST(a_background_thread_that_does_not_end_is_a_thread),
          UNIT_TEST(a_background_thread_that_waits_for_this_thread_is_none),
          UNIT_TEST(locks_are_taken_by_rank_and_given_in_reverse),
          UNIT_TEST(purging_gives_all_free_memory_back), UNIT_TEST(the_walk_reaches_every_floor))
