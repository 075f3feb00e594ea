/* burst.c - 440 MB are taken and freed, once or four times in a row, then the program idles for ten
 * seconds: nine tenths must be back with the kernel. */
/* SPDX-License-Identifier: MIT */
/* usage: burst single     one thread, which makes no call at all while it idles
 *        burst threads    four threads that stay alive and idle too
 *        burst ended      four threads that end
 *        burst forked     the child of a process with threads does it
 *        burst breathing  one thread, four times close together: it is granted a larger budget
 *        burst light      the same, and works a little while it idles
 *        burst crowd      four threads, four times close together */
#include "../blackbox/use.h"

#include <sys/wait.h>

enum { BURST_MIB = 440, THREADS = 4, BACK_PERCENT_MIN = 90, IDLE_MS = 10000 };

struct chain {
    struct chain *next;
};

/* Sizes as programs have them: many small blocks, some of a few KB, now and then a large one. */
static struct chain *take(uint64_t state, size_t total_bytes)
{
    struct chain *first = NULL;
    for (size_t taken = 0; taken < total_bytes;) {
        size_t kind = random_between(&state, 0, 99);
        size_t bytes = kind < 80 ? random_between(&state, 16, 512)
                     : kind < 97 ? random_between(&state, 512, 16000)
                                 : random_between(&state, 16000, 600000);
        struct chain *block = malloc(bytes);
        must(block != NULL);
        memset(block, 1, bytes);
        block->next = first;
        first = block;
        taken += bytes;
    }
    return first;
}

static void give(struct chain *first)
{
    while (first != NULL) {
        struct chain *next = first->next;
        free(first);
        first = next;
    }
}

/* A hundred small blocks every 50 ms. */
static void work_lightly(int duration_ms)
{
    for (int i = 0; i < duration_ms / 50; i++) {
        give(take((uint64_t)i, 10000));
        sleep_ms(50);
    }
}

static bool works_lightly;

static pthread_barrier_t taken, measured, given, finish;
static bool threads_end;

static void breathe(uint64_t state, size_t total_bytes, int times)
{
    for (int i = 0; i < times; i++) give(take(state, total_bytes));
}

static int breaths_before;

static void *live(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    breathe(state, (size_t)BURST_MIB / THREADS << 20, breaths_before);
    struct chain *chain = take(state, (size_t)BURST_MIB / THREADS << 20);
    pthread_barrier_wait(&taken);
    pthread_barrier_wait(&measured);
    give(chain);
    pthread_barrier_wait(&given);
    if (!threads_end) pthread_barrier_wait(&finish);
    return NULL;
}

/* Looks at the process every second, touching the heap a little or not at all. The result is for
 * main to judge. */
static int idle(const char *name, long before_kb, long peak_kb)
{
    long freed_kb = peak_kb - before_kb;
    long at_once_kb = resident_kb();
    printf("%s: %ld MiB taken, %ld %% back at once", name, freed_kb / 1024,
           100 * (peak_kb - at_once_kb) / freed_kb);
    fflush(stdout);
    long half_kb = 0;
    for (int i = 0; i < 10; i++) {
        if (works_lightly) work_lightly(IDLE_MS / 10);
        else sleep_ms(IDLE_MS / 10);
        if (i == 4) half_kb = resident_kb();
    }
    long after_kb = resident_kb();
    long back_percent = 100 * (peak_kb - after_kb) / freed_kb;
    printf(", %ld %% after 5 s, %ld %% after 10 s (%ld KiB still held)\n",
           100 * (peak_kb - half_kb) / freed_kb, back_percent, after_kb - before_kb);
    must(freed_kb > BURST_MIB * 1024 * 9 / 10);
    return back_percent >= BACK_PERCENT_MIN ? 0 : 1;
}

static int burst_of_one(const char *name)
{
    long before_kb = resident_kb();
    breathe(7, (size_t)BURST_MIB << 20, breaths_before);
    struct chain *chain = take(7, (size_t)BURST_MIB << 20);
    long peak_kb = resident_kb();
    give(chain);
    int result = idle(name, before_kb, peak_kb);
    must(any_allocator_will_do() || task_count() == 1);
    return result;
}

static int burst_of_threads(const char *name)
{
    pthread_t thread[THREADS];
    pthread_barrier_t *barrier[] = { &taken, &measured, &given, &finish };
    for (int i = 0; i < 4; i++) must(pthread_barrier_init(barrier[i], NULL, THREADS + 1) == 0);
    long before_kb = resident_kb();
    for (size_t i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, live, (void *)(i + 1)) == 0);
    pthread_barrier_wait(&taken);
    long peak_kb = resident_kb();
    pthread_barrier_wait(&measured);
    pthread_barrier_wait(&given);
    for (int i = 0; threads_end && i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    int result = idle(name, before_kb, peak_kb);
    if (!threads_end) pthread_barrier_wait(&finish);
    for (int i = 0; !threads_end && i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    return result;
}

static int burst_of_child(const char *name)
{
    int status = 1;
    use_heap_in_threads(4, 5);
    pid_t pid = fork();
    if (pid == 0) {
        int result = burst_of_one(name);
        fflush(stdout);
        _exit(result);
    }
    must(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status != 0;
}

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    use_heap_once(1);
    const char *way = argv[1];
    char name[32];
    snprintf(name, sizeof name, "burst %s", way);
    threads_end = strcmp(way, "ended") == 0;
    works_lightly = strcmp(way, "light") == 0;
    if (works_lightly || strcmp(way, "breathing") == 0 || strcmp(way, "crowd") == 0)
        breaths_before = 3;
    int result = strcmp(way, "forked") == 0 ? burst_of_child(name)
               : strcmp(way, "threads") == 0 || strcmp(way, "crowd") == 0 || threads_end
                   ? burst_of_threads(name)
                   : burst_of_one(name);
    walk_heap();
    return result;
}
