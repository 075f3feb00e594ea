/* sparse.c - 96 MiB of small blocks, of which one in twenty lives on: what lies between goes back to
 * the kernel, and what lives stays as it was. */
/* SPDX-License-Identifier: MIT */
/* usage: sparse single     one thread, which makes no call while it idles
 *        sparse threads    one of two threads that idle
 *        sparse trim       at once, by malloc_trim
 *        sparse forked     the child of a process with threads does it
 *        sparse crowded    at once, as large blocks would not fit into the control group (128 MiB) else
 */
#include "../blackbox/use.h"

#include <malloc.h>
#include <sys/wait.h>

/* Where pages are larger, blocks are as well. */
static size_t scale;
enum { BYTES = 96 << 20, BLOCKS_MAX = BYTES / 200, KEPT_EVERY = 20, IDLE_MS = 10000 };
/* Of all that the blocks took, survivors and what shares pages with them. */
enum { HELD_PERCENT_MAX = 45 };
enum { LARGE_BYTES = 1 << 20, LARGE_BLOCKS = 80 };

static unsigned char *block[BLOCKS_MAX];
static size_t size[BLOCKS_MAX], count;

static void take_all(void)
{
    uint64_t state = 11;
    size_t taken = 0;

    for (; taken < BYTES && count < BLOCKS_MAX; count++) {
        size[count] = random_between(&state, 200, 3000) * scale;
        block[count] = malloc(size[count]);
        must(block[count] != NULL);
        stamp(block[count], size[count], count);
        taken += size[count];
    }
    must(taken >= BYTES);
}

static void give_most(void)
{
    for (size_t i = 0; i < count; i++) {
        if (i % KEPT_EVERY == 0) continue;
        free(block[i]);
        block[i] = NULL;
    }
}

static void expect_kept(void)
{
    for (size_t i = 0; i < count; i++)
        if (block[i] != NULL) must(stamp_holds(block[i], size[i], i));
}

/* What went is there again. */
static void refill(void)
{
    for (size_t i = 0; i < count; i++) {
        if (block[i] != NULL) continue;
        block[i] = malloc(size[i]);
        must(block[i] != NULL);
        stamp(block[i], size[i], i);
    }
    expect_kept();
    for (size_t i = 0; i < count; i++) free(block[i]);
}

static int shrink(const char *name, bool trims)
{
    long before_kb = resident_kb(), peak_kb, at_once_kb, after_kb;

    take_all();
    peak_kb = resident_kb();
    give_most();
    at_once_kb = resident_kb();
    if (trims) must(malloc_trim(0) == 1);
    else sleep_ms(IDLE_MS);
    after_kb = resident_kb();
    printf("sparse %s: %ld MiB taken, %ld %% held at once and %ld %% later\n", name,
           (peak_kb - before_kb) / 1024, 100 * (at_once_kb - before_kb) / (peak_kb - before_kb),
           100 * (after_kb - before_kb) / (peak_kb - before_kb));
    must(100 * (after_kb - before_kb) <= HELD_PERCENT_MAX * (peak_kb - before_kb));
    must(trims || any_allocator_will_do() || strcmp(name, "threads") == 0 || task_count() == 1);
    expect_kept();
    refill();
    return 0;
}

static pthread_barrier_t end;

static void *idle(void *unused)
{
    free(malloc(100));
    pthread_barrier_wait(&end);
    return unused;
}

static int shrink_beside_another(void)
{
    pthread_t thread;
    int result;

    must(pthread_barrier_init(&end, NULL, 2) == 0);
    must(pthread_create(&thread, NULL, idle, NULL) == 0);
    result = shrink("threads", false);
    pthread_barrier_wait(&end);
    must(pthread_join(thread, NULL) == 0);
    return result;
}

static int shrink_in_child(void)
{
    int status = 1;
    pid_t pid;

    use_heap_in_threads(4, 5);
    pid = fork();
    if (pid == 0) {
        int result = shrink("forked", false);
        fflush(stdout);
        _exit(result);
    }
    must(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status != 0;
}

static int take_large_ones(void)
{
    static void *large[LARGE_BLOCKS];

    if (scale != 1) exit(EXIT_SKIPPED); /* the group is as large as smaller pages make it */
    take_all();
    give_most();
    for (size_t i = 0; i < LARGE_BLOCKS; i++) {
        large[i] = malloc(LARGE_BYTES);
        must(large[i] != NULL);
        memset(large[i], 1, LARGE_BYTES);
    }
    printf("sparse crowded: %ld MiB held\n", resident_kb() / 1024);
    expect_kept();
    for (size_t i = 0; i < LARGE_BLOCKS; i++) free(large[i]);
    refill();
    return 0;
}

int main(int argc, char **argv)
{
    int result;

    require_prairie();
    must(argc == 2);
    scale = (size_t)sysconf(_SC_PAGESIZE) / 4096;
    if (strcmp(argv[1], "threads") == 0) result = shrink_beside_another();
    else if (strcmp(argv[1], "forked") == 0) result = shrink_in_child();
    else if (strcmp(argv[1], "crowded") == 0) result = take_large_ones();
    else result = shrink(argv[1], strcmp(argv[1], "trim") == 0);
    walk_heap();
    return result;
}
