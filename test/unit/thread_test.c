/* thread_test.c - how a thread gets its cache, and what becomes of it when the thread ends. */
/* SPDX-License-Identifier: MIT */
#include "library.h"

#include "threads.h"

#include <sys/wait.h>
#include <unistd.h>

static unsigned visited;
static bool mine_visited;

static void visit_one(const struct cache *cache, void *mine)
{
    if (cache_is_abandoned(cache)) return;
    visited++;
    mine_visited |= cache == mine;
}

static unsigned caches_in_use(void)
{
    visited = 0;
    mine_visited = false;
    (void)cache_list_visit(visit_one, thread_front()->cache);
    return visited;
}

/* Some blocks of every class through this thread's cache. */
static void use_every_class(void)
{
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++) {
        void *blocks[40];
        for (unsigned i = 0; i < 40; i++) blocks[i] = prairie_malloc(class_bytes[class_index]);
        for (unsigned i = 0; i < 40; i++) prairie_free(blocks[i]);
    }
}

/* ---- birth ---- */

static void the_first_call_gets_a_cache(void **state)
{
    void *block;

    (void)state;
    assert_ptr_equal(thread_front(), EMPTY_FRONT);
    block = prairie_malloc(10);
    assert_non_null(block);
    assert_true(thread_front()->kind == FRONT_CACHE);
    assert_int_equal(fake_calls(FAKE_END_HOOK), 1);
    assert_int_equal(caches_in_use(), 1);
    assert_true(mine_visited);
    prairie_free(block);
    prairie_check_all();
}

static void errno_is_kept_by_the_birth(void **state)
{
    (void)state;
    errno = 4711;
    assert_non_null(prairie_malloc(10));
    assert_int_equal(errno, 4711);
}

static void without_memory_there_is_no_cache_yet(void **state)
{
    (void)state;
    fake_fail_all(true);
    for (unsigned i = 0; i < 3; i++) {
        errno = 0;
        assert_null(prairie_malloc(10));
        assert_int_equal(errno, ENOMEM);
        assert_ptr_equal(thread_front(), EMPTY_FRONT);
    }
    fake_fail_all(false);
    assert_non_null(prairie_malloc(10));
    prairie_check_all();
}

/* The loader may write the initial value over the slot of the first thread. */
static void a_slot_that_was_reset_finds_its_cache_again(void **state)
{
    struct cache *cache;

    (void)state;
    (void)prairie_malloc(10);
    cache = thread_front()->cache;
    thread_front_set(EMPTY_FRONT);
    assert_non_null(prairie_malloc(20));
    assert_ptr_equal(thread_front()->cache, cache);
    assert_int_equal(caches_in_use(), 1);
    prairie_check_all();
}

static pthread_barrier_t barrier;

static void *call_first(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
    for (unsigned i = 1; i <= 200; i++) prairie_free(memset(prairie_malloc(i * 100), 1, i * 100));
    return NULL;
}

/* ThreadSanitizer is slow, and tells of a race by what was not ordered, not by how often it met. */
#ifdef __SANITIZE_THREAD__
enum { FIRST_CALLS = 5, BIRTHS = 300 };
#else
enum { FIRST_CALLS = 20, BIRTHS = 900 };
#endif

static void start_from_eight_threads(void)
{
    pthread_t thread[8];

    pthread_barrier_init(&barrier, NULL, 8);
    for (unsigned i = 0; i < 8; i++)
        if (pthread_create(&thread[i], NULL, call_first, NULL) != 0) _exit(1);
    for (unsigned i = 0; i < 8; i++) pthread_join(thread[i], NULL);
    prairie_check_all();
    if (fake_calls(FAKE_RESERVE) - fake_failures() != 1) _exit(2); /* TiB are refused at times */
}

static void eight_threads_may_call_first(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FIRST_CALLS; i++) expect_survival(start_from_eight_threads);
}

/* ---- the end ---- */

static void *allocate_and_end(void *cache)
{
    use_every_class();
    *(struct cache **)cache = thread_front()->cache;
    return NULL;
}

static void a_cache_waits_for_the_next_thread(void **state)
{
    struct cache *first, *second;

    (void)state;
    (void)prairie_malloc(10);
    run_thread(allocate_and_end, &first);
    assert_ptr_not_equal(first, thread_front()->cache);
    assert_int_equal(caches_in_use(), 1);
    run_thread(allocate_and_end, &second);
    assert_ptr_equal(first, second);
    prairie_check_all();
}

static void *note_arena(void *arena)
{
    use_every_class();
    *(struct arena **)arena = thread_front()->cache->arena;
    return NULL;
}

/* On many cores there are many arenas, and each thread would leave memory in another one. */
static void threads_one_after_another_fill_from_one_arena(void **state)
{
    struct arena *first, *later;

    (void)state;
    fake_cores(8);
    (void)prairie_malloc(10);
    run_thread(note_arena, &first);
    assert_non_null(first);
    for (unsigned i = 0; i < 8; i++) {
        run_thread(note_arena, &later);
        assert_ptr_equal(first, later);
    }
    assert_true(arenas_end() <= 2);
}

/* Births and ends leave nothing behind. */
static void many_threads_leave_nothing_behind(void **state)
{
    struct cache *cache;
    size_t meta_bytes = 0, open = 0;

    (void)state;
    fake_cores(1);
    (void)prairie_malloc(10);
    for (unsigned i = 0; i < BIRTHS; i++) {
        run_thread(allocate_and_end, &cache);
        if (i == BIRTHS * 5 / 9) { /* by now magazines, depots and stocks are as full as they get */
            meta_bytes = commit.record_bytes;
            open = space.open_bytes;
        }
    }
    assert_true(commit.record_bytes <= meta_bytes + 1 * KiB); /* a slab more or less */
    assert_int_equal(space.open_bytes, open);
    prairie_check_all();
}

static void *allocate_and_keep(void *blocks)
{
    for (unsigned i = 0; i < 100; i++)
        ((void **)blocks)[i] = memset(prairie_malloc(i * 100), 7, i * 100);
    return NULL;
}

static void blocks_outlive_their_thread(void **state)
{
    void *blocks[100];

    (void)state;
    run_thread(allocate_and_keep, blocks);
    for (unsigned i = 0; i < 100; i++) {
        assert_true(all_bytes_are(blocks[i], 7, i * 100));
        prairie_free(blocks[i]);
    }
    prairie_check_all();
    (void)prairie_purge();
    prairie_check_all();
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

/* Destructors that run after ours still allocate and free: slowly, and nothing is kept for them. */
static void a_thread_past_its_end_can_allocate(void **state)
{
    void *blocks[200], *early;

    (void)state;
    early = prairie_malloc(48);
    fake_thread_end();
    assert_ptr_equal(thread_front(), GONE_FRONT);
    assert_int_equal(caches_in_use(), 0);
    for (unsigned i = 0; i < 200; i++) {
        blocks[i] = prairie_malloc(i * 177);
        assert_non_null(blocks[i]);
        memset(blocks[i], (int)i, i * 177);
    }
    assert_ptr_equal(thread_front(), GONE_FRONT);
    for (unsigned i = 0; i < 200; i++) {
        blocks[i] = prairie_realloc(blocks[i], i * 177 + 500);
        assert_true(all_bytes_are(blocks[i], (unsigned char)i, i * 177));
        prairie_free(blocks[i]);
    }
    prairie_free(early);
    prairie_free(NULL);
    prairie_check_all();
    fake_thread_end(); /* a second end of the same thread is nothing */
    (void)prairie_purge();
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

static void *live_without_a_cache(void *unused)
{
    use_every_class();
    assert_true(thread_front()->kind == FRONT_GONE);
    prairie_free(prairie_malloc(20));
    return unused;
}

/* A thread that cannot hear of its end lives without a cache, which would be lost with it. */
static void a_refused_hook_costs_no_cache(void **state)
{
    unsigned before;

    (void)state;
    prairie_free(prairie_malloc(10));
    before = caches_in_use();
    fake_fail_kind(FAKE_END_HOOK, true);
    for (unsigned i = 0; i < 10; i++) run_thread(live_without_a_cache, NULL);
    fake_fail_kind(FAKE_END_HOOK, false);
    assert_int_equal(caches_in_use(), before);
    use_every_class();
    prairie_check_all();
    (void)prairie_purge();
    assert_int_equal(page_heap_used_pages(page_heap), 0);
}

/* The first thread lives as long as the process, mostly. */
static void the_first_thread_keeps_its_cache(void **state)
{
    (void)state;
    fake_fail_kind(FAKE_END_HOOK, true);
    prairie_free(prairie_malloc(10));
    assert_true(thread_front()->kind == FRONT_CACHE);
    use_every_class();
    prairie_check_all();
}

static void flushing_empties_the_magazines(void **state)
{
    (void)state;
    use_every_class();
    thread_flush();
    for (unsigned class_index = 1; class_index < CLASS_COUNT; class_index++)
        assert_int_equal(thread_front()->cache->spare[class_index].capacity, 0);
    prairie_check_all();
    use_every_class();
    prairie_check_all();
}

static void *hold_small_ones(void *unused)
{
    use_every_class();
    thread_hold_up_to(1);
    use_every_class();
    for (unsigned class_index = 2; class_index < CLASS_COUNT; class_index++)
        assert_int_equal(thread_front()->cache->spare[class_index].capacity, 0);
    assert_true(thread_front()->cache->spare[1].capacity > 0);
    return unused;
}

static void *hold_what_all_hold(void *unused)
{
    prairie_free(prairie_malloc(1));
    assert_int_equal(thread_front()->cache->class_max, cached_class_max);
    return unused;
}

/* A cache that served such a thread serves the next one as any other. */
static void a_thread_may_hold_less_than_others(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    run_thread(hold_small_ones, NULL);
    run_thread(hold_what_all_hold, NULL);
    assert_int_equal(thread_front()->cache->class_max, CLASS_COUNT - 1);
    threads_hold_up_to(5);
    assert_int_equal(thread_front()->cache->class_max, 5);
    run_thread(hold_what_all_hold, NULL);
    prairie_check_all();
}

/* Also what it holds already. */
static void the_first_thread_obeys_what_all_may_hold(void **state)
{
    const struct cache *cache;

    (void)state;
    for (unsigned i = 0; i <= LARGE_CACHE_AFTER; i++) prairie_free(prairie_malloc(20000));
    prairie_free(prairie_malloc(class_bytes[6]));
    cache = thread_front()->cache;
    assert_non_null(cache->large_cache);
    threads_hold_up_to(CLASS_COUNT - 1);
    assert_int_not_equal(cache->spare[6].capacity, 0);
    threads_hold_up_to(5);
    for (unsigned class_index = 6; class_index < CLASS_COUNT; class_index++)
        assert_int_equal(cache->spare[class_index].capacity, 0);
    assert_null(cache->large_cache);
    use_every_class();
    assert_int_equal(cache->spare[6].capacity, 0);
    assert_int_not_equal(cache->spare[5].capacity, 0);
    prairie_check_all();
}

/* ---- fork ---- */

static uint32_t may_end; /* atomic */
static struct arena *shared;

static void *wait_with_a_cache(void *unused)
{
    use_every_class();
    thread_bind(shared);
    __atomic_store_n((uint32_t *)unused, 1, __ATOMIC_RELEASE);
    wait_until_set(&may_end);
    return NULL;
}

/* In the child there is one thread, whose cache is the only one, in its arena too. */
static void the_child_of_a_fork_forgets_the_others(void **state)
{
    uint32_t ready = 0;
    pthread_t thread;
    int child, status;

    (void)state;
    use_every_class();
    shared = arena_create();
    thread_bind(shared);
    assert_int_equal(pthread_create(&thread, NULL, wait_with_a_cache, &ready), 0);
    wait_until_set(&ready);
    assert_int_equal(caches_in_use(), 2);
    child = fake_fork();
    if (child == 0) {
        bool good = caches_in_use() == 1 && mine_visited;
        good &= inside_threads_with_caches() == 1 && shared->threads == 1;
        use_every_class();
        prairie_check_all();
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(caches_in_use(), 2);
    assert_int_equal(shared->threads, 2);
    __atomic_store_n(&may_end, 1, __ATOMIC_RELEASE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(caches_in_use(), 1);
    prairie_check_all();
}

static uint32_t has_forked; /* atomic */

/* A signal handler of the thread that ends. */
static void fork_to_child(enum fake_call kind)
{
    if (kind != FAKE_WAIT || RELAXED_LOAD(has_forked)) return;
    cache_list_forget_others();
    RELAXED_STORE(has_forked, 1u);
}

static void *bind_and_end(void *arena)
{
    prairie_free(prairie_malloc(1));
    thread_bind(arena);
    use_every_class();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* No list and no count of the child knows of it. */
static void a_thread_that_forks_while_it_ends_is_forgotten(void **state)
{
    struct arena *arena;
    pthread_t thread;

    (void)state;
    prairie_free(prairie_malloc(1));
    arena = arena_create();
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, bind_and_end, arena), 0);
    pthread_barrier_wait(&barrier);
    assert_int_equal(arena->threads, 1);
    fake_on_call(fork_to_child);
    lock_take(&arena->lock); /* which its drain waits for */
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < 100000 && !RELAXED_LOAD(has_forked); i++) usleep(100);
    lock_give(&arena->lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    fake_on_call(NULL);
    assert_true(has_forked);
    assert_int_equal(arena->threads, 0);
    assert_int_equal(caches_in_use(), 0);
    assert_false(purge_mode.on_call);
}

/* What cannot be hardened as a whole is not hardened in part. */
static void without_memory_nothing_is_hardened(void **state)
{
    (void)state;
    prairie_free(prairie_malloc(1));
    fake_fail_all(true);
    while (meta_take(META_RECORD_BYTES_MAX) != NULL)
        ;
    while (meta_take(64) != NULL)
        ;
    assert_false(threads_harden());
    assert_int_equal(arena_first, 0);
    fake_fail_all(false);
    assert_non_null(prairie_malloc(10));
}

UNIT_MAIN(UNIT_TEST(the_first_call_gets_a_cache), UNIT_TEST(errno_is_kept_by_the_birth),
          UNIT_TEST(without_memory_there_is_no_cache_yet),
          UNIT_TEST(a_slot_that_was_reset_finds_its_cache_again),
          UNIT_TEST(eight_threads_may_call_first), UNIT_TEST(a_cache_waits_for_the_next_thread),
          UNIT_TEST(threads_one_after_another_fill_from_one_arena),
          UNIT_TEST(many_threads_leave_nothing_behind), UNIT_TEST(blocks_outlive_their_thread),
          UNIT_TEST(a_thread_past_its_end_can_allocate), UNIT_TEST(a_refused_hook_costs_no_cache),
          UNIT_TEST(the_first_thread_keeps_its_cache), UNIT_TEST(flushing_empties_the_magazines),
          UNIT_TEST(a_thread_may_hold_less_than_others),
          UNIT_TEST(the_first_thread_obeys_what_all_may_hold),
          UNIT_TEST(the_child_of_a_fork_forgets_the_others),
          UNIT_TEST(a_thread_that_forks_while_it_ends_is_forgotten),
          UNIT_TEST(without_memory_nothing_is_hardened))
