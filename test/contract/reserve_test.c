/* reserve_test.c - the memory reserve under its names of 2008: values, sizes, limits. */
/* SPDX-License-Identifier: MIT */
#include "checks.h"

#include <jemalloc/jemalloc.h>
#include <malloc.h>
#include <prairie/prairie.h>
#include <prairie/reserve.h>
#include <pthread.h>
#include <sys/wait.h>

extern __typeof__(mallctl) mallctl __attribute__((weak));
extern __typeof__(xmalloc) xmalloc __attribute__((weak));
extern __typeof__(xcalloc) xcalloc __attribute__((weak));
extern __typeof__(xrealloc) xrealloc __attribute__((weak));
extern __typeof__(xmemalign) xmemalign __attribute__((weak));
extern __typeof__(reserve_cb_register) reserve_cb_register __attribute__((weak));
extern __typeof__(reserve_cb_unregister) reserve_cb_unregister __attribute__((weak));
extern __typeof__(reserve_cur_get) reserve_cur_get __attribute__((weak));
extern __typeof__(reserve_min_get) reserve_min_get __attribute__((weak));
extern __typeof__(reserve_max_get) reserve_max_get __attribute__((weak));
extern __typeof__(reserve_min_set) reserve_min_set __attribute__((weak));
extern __typeof__(limit_soft_get) limit_soft_get __attribute__((weak));
extern __typeof__(limit_soft_set) limit_soft_set __attribute__((weak));
extern __typeof__(limit_hard_get) limit_hard_get __attribute__((weak));
extern __typeof__(limit_hard_set) limit_hard_set __attribute__((weak));
extern __typeof__(prairie_stats_read) prairie_stats_read __attribute__((weak));

/* What happens once to a process happens in a child. */
static void in_child(void (*body)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        body();
        _exit(0);
    }
    must(waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

static unsigned low, crit;

static void hear(void *unused, reserve_cnd_t condition, size_t size)
{
    (void)unused, (void)size;
    low += condition == RESERVE_CND_LOW;
    crit += condition == RESERVE_CND_CRIT;
}

/* ---- the background thread ---- */

static size_t background_threads(void)
{
    uint64_t epoch = 1;
    size_t count = 0, length = sizeof count;

    must(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
    must(mallctl("stats.background_thread.num_threads", &count, &length, NULL, 0) == 0);
    return count;
}

static void set_background_thread(bool on)
{
    must(mallctl("background_thread", NULL, NULL, &on, sizeof on) == 0);
}

/* The call waits for its end, for a second at most. */
static void end_background_thread(void)
{
    double start_ms = now_ms();

    set_background_thread(false);
    must(now_ms() - start_ms > 900 || background_threads() == 0);
    while (background_threads() != 0) sleep_ms(10);
}

static void *wait_twice(void *barrier)
{
    free(malloc(1));
    (void)pthread_barrier_wait(barrier);
    (void)pthread_barrier_wait(barrier);
    return NULL;
}

/* With a callback there is one in a program with threads, for as long as it may. */
static void forbid_the_background_thread(void)
{
    pthread_barrier_t barrier;
    pthread_t thread;

    must(pthread_barrier_init(&barrier, NULL, 2) == 0);
    must(pthread_create(&thread, NULL, wait_twice, &barrier) == 0);
    (void)pthread_barrier_wait(&barrier);
    must(!reserve_cb_register(hear, NULL));
    must(background_threads() == 1);
    end_background_thread();
    for (int i = 0; i < 100; i++) free(memset(malloc(1 << 20), 1, 1 << 20));
    must(background_threads() == 0);
    set_background_thread(true);
    must(background_threads() == 1);
    (void)pthread_barrier_wait(&barrier);
    must(pthread_join(thread, NULL) == 0);
}

static void the_background_thread_ends_when_it_is_told_to(const struct check *check)
{
    (void)check;
    in_child(forbid_the_background_thread);
}

/* ---- doors that never return NULL ---- */

static void x_doors_serve(const struct check *check)
{
    size_t bytes = check->bytes, least = bytes == 0 ? 1 : bytes;
    char *block;
    errno = SENTINEL;
    block = xmalloc(bytes);
    assert_non_null(block);
    assert_true(is_aligned(block, align_promised(least)));
    stamp(block, bytes, 1);
    block = xrealloc(block, bytes * 2);
    assert_non_null(block);
    assert_true(stamp_holds(block, bytes, 1));
    call.free(block);
    block = xcalloc(bytes, 1);
    assert_non_null(block);
    for (size_t i = 0; i < bytes; i += 61) assert_int_equal(block[i], 0);
    call.free(block);
    block = xmemalign(256, bytes);
    assert_non_null(block);
    assert_true(is_aligned(block, 256));
    assert_true(call.malloc_usable_size(block) >= least);
    call.free(block);
    assert_int_equal(errno, SENTINEL);
}

static void odd_alignments_are_rounded_up(const struct check *check)
{
    void *block = xmemalign(check->align_bytes, 100);
    assert_non_null(block);
    assert_true(is_aligned(block, check->other));
    call.free(block);
}

static void resizing_to_nothing_keeps_a_block(const struct check *check)
{
    (void)check;
    void *block = xrealloc(xmalloc(100), 0);
    assert_non_null(block);
    call.free(block);
    assert_non_null(block = xrealloc(NULL, 10));
    call.free(block);
}

/* ---- values of 2008: false is success ---- */

static void registering_answers_false(const struct check *check)
{
    (void)check;
    assert_true(reserve_cb_unregister(hear, &low));
    assert_false(reserve_cb_register(hear, &low));
    assert_false(reserve_cb_register(hear, &low));
    assert_true(reserve_cb_unregister(hear, &crit));
    assert_false(reserve_cb_unregister(hear, &low));
    assert_false(reserve_cb_unregister(hear, &low));
    assert_true(reserve_cb_unregister(hear, &low));
}

static void sizes_are_kept(const struct check *check)
{
    long page = sysconf(_SC_PAGESIZE);
    long before_kb;
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    assert_false(reserve_min_set(0));
    assert_int_equal(reserve_cur_get(), 0);
    (void)malloc_trim(0); /* what earlier reserves left free and dirty would be taken again */
    before_kb = resident_kb();
    assert_false(reserve_min_set(check->bytes));
    size_t rounded = (check->bytes + (size_t)page - 1) / (size_t)page * (size_t)page;
    assert_int_equal(reserve_min_get(), rounded);
    assert_int_equal(reserve_max_get(), rounded);
    assert_int_equal(reserve_cur_get(), rounded);
    assert_true(prairie_stats_read(&stats));
    assert_int_equal(stats.reserve_cur, rounded);
    if (rounded >= 4 * MIB) /* the kernel counts in batches */
        assert_true((resident_kb() - before_kb) * 1024L > (long)rounded - 3 * MIB);
    assert_false(reserve_min_set(0));
    assert_int_equal(reserve_cur_get(), 0);
}

static void limits_are_kept(const struct check *check)
{
    (void)check;
    assert_int_equal(limit_soft_get(), 0);
    assert_int_equal(limit_hard_get(), 0);
    limit_soft_set(SIZE_MAX / 16);
    limit_hard_set(SIZE_MAX / 8);
    assert_int_equal(limit_soft_get(), SIZE_MAX / 16);
    assert_int_equal(limit_hard_get(), SIZE_MAX / 8);
    limit_soft_set(0);
    limit_hard_set(0);
    assert_int_equal(limit_soft_get(), 0);
    assert_int_equal(limit_hard_get(), 0);
}

/* ---- a wall, a line, and the memory before them ---- */

/* What is in use, cached or dirty: all that the hard limit bounds but for records, which have a
 * share of it. */
static size_t taken_bytes(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    must(prairie_stats_read(&stats));
    return stats.mapped - stats.clean - stats.metadata;
}

static void meet_the_wall(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    size_t had = 0, wall;
    must(!reserve_min_set(1 * MIB));
    must(!reserve_cb_register(hear, NULL));
    wall = taken_bytes() + 4 * MIB;
    limit_hard_set(wall);
    for (errno = 0; call.malloc(10000) != NULL;) had += 10000;
    must(errno == ENOMEM && had > 3 * MIB && low > 0 && crit == 0);
    must(reserve_cur_get() <= 128 * KIB); /* pieces that no slab of such blocks fits into */
    must(prairie_stats_read(&stats) && stats.reserve_uses > 0);
    must(taken_bytes() <= wall);
    must(call.realloc(call.malloc(1), 1 * MIB) == NULL && errno == ENOMEM);
    limit_hard_set(0);
    must(call.malloc(2 * MIB) != NULL);
    call.free(call.malloc(20000));
    for (int i = 0; i < 100 && reserve_cur_get() < reserve_min_get(); i++) {
        sleep_ms(20);
        call.free(call.malloc(20000));
    }
    must(reserve_cur_get() == 1 * MIB);
}

static void the_wall(const struct check *check)
{
    (void)check;
    in_child(meet_the_wall);
}

/* The reserve serves what prairie itself needs there, and is full again when that has gone. */
static void register_at_the_wall(void)
{
    enum { TIMES = 4000 };

    must(!reserve_min_set(1 * MIB));
    must(!reserve_cb_register(hear, NULL));
    limit_hard_set(taken_bytes() + 4 * MIB);
    while (reserve_cur_get() == 1 * MIB) must(call.malloc(10000) != NULL);
    low = 0;
    for (int i = 0; i < TIMES; i++) must(!reserve_cb_register(hear, &low));
    must(low == 0 && reserve_cur_get() < 1 * MIB && reserve_cur_get() > 0);
    for (int i = 0; i < TIMES; i++) must(!reserve_cb_unregister(hear, &low));
    must(reserve_cb_unregister(hear, &low));
}

static void registering_at_the_wall(const struct check *check)
{
    (void)check;
    in_child(register_at_the_wall);
}

static pthread_barrier_t all_have_called;

static void *call_first(void *size)
{
    void *block = call.malloc((size_t)size);
    (void)pthread_barrier_wait(&all_have_called); /* for an ended thread leaves its cache */
    call.free(block);
    return block;
}

static void start_threads_at_the_wall(void)
{
    enum { THREADS = 24 };
    pthread_t thread[THREADS];
    void *block;

    must(!reserve_min_set(1 * MIB));
    must(pthread_barrier_init(&all_have_called, NULL, THREADS + 1) == 0);
    limit_hard_set(taken_bytes() + 4 * MIB);
    while (reserve_cur_get() == 1 * MIB) must(call.malloc(10000) != NULL);
    for (size_t i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, call_first, (void *)(1 + i * i * 100)) == 0);
    (void)pthread_barrier_wait(&all_have_called);
    for (int i = 0; i < THREADS; i++) {
        must(pthread_join(thread[i], &block) == 0);
        must(block != NULL);
    }
    must(reserve_cur_get() > 0);
}

static void starting_threads_at_the_wall(const struct check *check)
{
    (void)check;
    in_child(start_threads_at_the_wall);
}

static void cross_the_line(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    size_t had = 0;
    must(!reserve_min_set(0));
    must(!reserve_cb_register(hear, NULL));
    must(prairie_stats_read(&stats));
    limit_soft_set(stats.mapped - stats.clean - stats.dirty + 5 * MIB);
    for (; low == 0 && had < 20 * MIB; had += 5000) must(call.malloc(5000) != NULL);
    must(low == 1 && had > 3 * MIB && had < 7 * MIB);
}

static void the_line(const struct check *check)
{
    (void)check;
    in_child(cross_the_line);
}

int main(void)
{
    static const size_t sizes[] = { 0, 1, 100, 1024, 14336, 14337, 100000, 5 * MIB };
    static const size_t reserves[] = { 1, 4096, 4097, 1 * MIB, 5 * MIB };
    static const size_t odd[][2] = { { 0, 1 }, { 3, 4 }, { 48, 64 }, { 5000, 8192 } };
    checks_begin();
    if (xmalloc == NULL) give_up("nobody serves xmalloc");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_add((struct check){ .run = x_doors_serve, .bytes = sizes[i] }, "x doors serve %zu",
                  sizes[i]);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        check_add((struct check){ .run = odd_alignments_are_rounded_up,
                                  .align_bytes = odd[i][0],
                                  .other = odd[i][1] },
                  "xmemalign rounds %zu up", odd[i][0]);
    check_add((struct check){ .run = resizing_to_nothing_keeps_a_block }, "xrealloc to nothing");
    check_add((struct check){ .run = registering_answers_false }, "registering answers false");
    for (size_t i = 0; i < sizeof reserves / sizeof reserves[0]; i++)
        check_add((struct check){ .run = sizes_are_kept, .bytes = reserves[i] },
                  "a reserve of %zu is there", reserves[i]);
    check_add((struct check){ .run = the_background_thread_ends_when_it_is_told_to },
              "background_thread:false");
    check_add((struct check){ .run = limits_are_kept }, "limits are kept");
    check_add((struct check){ .run = the_wall }, "the hard limit is a wall");
    check_add((struct check){ .run = registering_at_the_wall }, "registering at the hard limit");
    check_add((struct check){ .run = starting_threads_at_the_wall },
              "threads that start at the hard limit");
    check_add((struct check){ .run = the_line }, "the soft limit is told");
    return checks_run("contract reserve");
}
