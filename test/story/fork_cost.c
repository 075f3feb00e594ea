/* fork_cost.c - what prairie's handlers add to a fork, with 64 threads that allocate. */
/* SPDX-License-Identifier: MIT */
/* Handlers of this test stand on both sides of prairie's: one pair is registered before it, which
 * prepares after it and is told first, the other one after it. When the forking thread was
 * preempted in between, that tells of the machine; what is required is required of the other
 * forks. */
#include "../blackbox/use.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { THREADS = 64, FORKS_MAX = 100000 };
static const double added_ms_max = 1;

static atomic_bool stop;
static struct moment {
    double ms;
    long preemptions; /* of this thread */
} prepare_begins, prepare_ends, parent_begins, parent_ends;

static struct moment now(void)
{
    struct rusage usage;
    must(getrusage(RUSAGE_THREAD, &usage) == 0);
    return (struct moment){ now_ms(), usage.ru_nivcsw };
}

static void inner_prepare(void) { prepare_ends = now(); }
static void inner_parent(void) { parent_begins = now(); }
static void outer_prepare(void) { prepare_begins = now(); }
static void outer_parent(void) { parent_ends = now(); }

static void preinit(int argc, char **argv, char **environment)
{
    (void)argc, (void)argv, (void)environment;
    must(pthread_atfork(inner_prepare, inner_parent, NULL) == 0);
}
__attribute__((section(".preinit_array"),
               used)) static void (*const preinit_entry)(int, char **, char **) = preinit;

/* Like the threads of a service: a request, and then the next one is waited for. */
static void *serve(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    void *block[100] = { NULL };
    while (!stop) {
        for (int i = 0; i < 200; i++) {
            size_t slot = random_between(&state, 0, 99);
            free(block[slot]);
            block[slot] = malloc(random_between(&state, 0, slot % 20 == 0 ? 100000 : 2000));
            must(block[slot] != NULL);
        }
        usleep((useconds_t)random_between(&state, 5000, 15000));
    }
    for (int i = 0; i < 100; i++) free(block[i]);
    return NULL;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Returns what 99 of 100 are not above. */
static double tell(const char *what, double *times_ms, long count)
{
    qsort(times_ms, (size_t)count, sizeof times_ms[0], by_size);
    double high_ms = times_ms[(count - 1) * 99 / 100];
    printf("%24s %8.3f %8.3f %8.3f of %ld\n", what, times_ms[count / 2], high_ms,
           times_ms[count - 1], count);
    return high_ms;
}

/* Forks while others allocate. False: too much was added to more than one in a hundred, or too few
 * were not preempted. */
static bool fork_often(void)
{
    static double before_ms[FORKS_MAX], after_ms[FORKS_MAX], added_ms[FORKS_MAX];
    static double whole_ms[FORKS_MAX], calm_ms[FORKS_MAX];
    pthread_t thread[THREADS];
    long forks = scaled(1000), calm = 0;
    must(forks <= FORKS_MAX);
    stop = false;
    for (size_t i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, serve, (void *)(i + 1)) == 0);
    sleep_ms(100);
    for (long i = 0; i < forks; i++) {
        int status = 1;
        double start_ms = now_ms();
        pid_t pid = fork();
        if (pid == 0) _exit(0);
        whole_ms[i] = now_ms() - start_ms;
        must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
        before_ms[i] = prepare_ends.ms - prepare_begins.ms;
        after_ms[i] = parent_ends.ms - parent_begins.ms;
        added_ms[i] = before_ms[i] + after_ms[i];
        must(added_ms[i] >= 0 && added_ms[i] <= whole_ms[i]);
        if (prepare_begins.preemptions == prepare_ends.preemptions
            && parent_begins.preemptions == parent_ends.preemptions)
            calm_ms[calm++] = added_ms[i];
        usleep(2000);
    }
    stop = true;
    for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    printf("fork_cost: %d threads, in ms: median, 99 of 100, longest\n", THREADS);
    (void)tell("fork", whole_ms, forks);
    (void)tell("prairie before it", before_ms, forks);
    (void)tell("prairie after it", after_ms, forks);
    (void)tell("prairie in all", added_ms, forks);
    if (calm <= forks / 20) return false;
    return tell("the same, not preempted", calm_ms, calm) <= added_ms_max * patience(1);
}

/* Where the machine is busy the holder of a lock is preempted, too, which no number here tells. */
int main(void)
{
    require_prairie();
    must(pthread_atfork(outer_prepare, outer_parent, NULL) == 0);
    bool is_short = false;
    for (int tries = 0; tries < 3 && !is_short; tries++) is_short = fork_often();
    must(is_short);
    walk_heap();
    return 0;
}
