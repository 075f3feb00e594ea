/* contest.c - takes and gives one lock: alone a number of times, or with many threads for a while.
 * SPDX-License-Identifier: MIT
 *
 * usage: contest --kind K --pairs N [--beside]           one thread; --beside: another one sleeps
 *        contest --kind K --threads T --ms M [--hold H] [--outside O]
 * A pair takes the lock, does H steps of work and counts, gives the lock, and does O steps outside.
 * A step depends on the one before. One line of JSON on stdout; exact: whether the counts under the
 * lock add up. */
#include "../../src/prairie.c"

#include <valgrind/callgrind.h>
#include "../kit/beside.h"
#include "../kit/cores.h"
#include "kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { THREADS_MAX = 256 };

struct job {
    unsigned threads, ms;
    uint64_t pairs, hold, outside;
    bool beside;
};

static struct job job;
static uint32_t stop;                                          /* atomic */
static union any_lock contested __attribute__((aligned(256))); /* a cache line of its own */
static uint64_t sum_of_takes __attribute__((aligned(256)));    /* under the lock */
static uint64_t sink __attribute__((aligned(256)));            /* under the lock */
static pthread_barrier_t barrier;

INLINE uint64_t work(uint64_t value, uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++) {
        value = value * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(value));
    }
    return value;
}

INLINE void pair(void (*take)(union any_lock *), void (*give)(union any_lock *))
{
    take(&contested);
    sum_of_takes++;
    sink = work(sink, job.hold);
    give(&contested);
}

INLINE uint64_t pairs_for_a_while(void (*take)(union any_lock *), void (*give)(union any_lock *))
{
    uint64_t done = 0, value = 1;

    while (!RELAXED_LOAD(stop)) {
        pair(take, give);
        value = work(value, job.outside);
        done++;
    }
    return done + (value == 0);
}

INLINE void pairs_by_number(void (*take)(union any_lock *), void (*give)(union any_lock *))
{
    for (uint64_t i = 0; i < job.pairs; i++) {
        take(&contested);
        sum_of_takes++;
        give(&contested);
    }
}

/* Each kind gets loops of its own, so that its functions are compiled into them as they would be
 * anywhere. */
#define LOOPS(kind, take, give)                                                        \
    static uint64_t kind##_for_a_while(void) { return pairs_for_a_while(take, give); } \
    static NOINLINE void kind##_by_number(void) { pairs_by_number(take, give); }

LOOPS(prairie, prairie_take, prairie_give)
LOOPS(bare, bare_take, bare_give)
LOOPS(mutex, mutex_take, mutex_give)
LOOPS(spin, spin_take, spin_give)
LOOPS(none, none_take, none_give)

static const struct kind {
    const char *name;
    void (*make)(union any_lock *lock);
    uint64_t (*for_a_while)(void);
    void (*by_number)(void);
    bool counts; /* in the lock itself, as prairie's do */
} kinds[] = {
    { "prairie", prairie_make, prairie_for_a_while, prairie_by_number, true },
    { "sleeper", sleeper_make, prairie_for_a_while, prairie_by_number, true },
    { "bare", word_make, bare_for_a_while, bare_by_number, false },
    { "normal", normal_make, mutex_for_a_while, mutex_by_number, false },
    { "adaptive", adaptive_make, mutex_for_a_while, mutex_by_number, false },
    { "spin", word_make, spin_for_a_while, spin_by_number, false },
    { "none", word_make, none_for_a_while, none_by_number, false },
};

static const struct kind *kind;

/* ---- clocks ---- */

struct moment {
    uint64_t wall_ns, cpu_ns;
    long voluntary, involuntary;
};

static uint64_t ns_of(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static struct moment now(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (struct moment){ ns_of(CLOCK_MONOTONIC), ns_of(CLOCK_PROCESS_CPUTIME_ID), usage.ru_nvcsw,
                            usage.ru_nivcsw };
}

/* ---- one thread ---- */

static void run_alone(void)
{
    struct beside second;
    struct moment before, after;

    if (job.beside) beside_start(&second);
    CALLGRIND_DUMP_STATS_AT("start");
    before = now();
    CALLGRIND_ZERO_STATS;
    kind->by_number();
    CALLGRIND_DUMP_STATS_AT("pairs");
    after = now();
    printf(
        "{\"kind\": \"%s\", \"pairs\": %llu, \"exact\": %s, \"cpu_ns\": %llu, \"taken\": %lld}\n",
        kind->name, (unsigned long long)job.pairs, sum_of_takes == job.pairs ? "true" : "false",
        (unsigned long long)(after.cpu_ns - before.cpu_ns),
        kind->counts ? (long long)contested.prairie.taken : -1);
    if (job.beside) beside_end(&second);
}

/* ---- many threads ---- */

static uint64_t done_by[THREADS_MAX];

/* The threads are dealt out to the cores: left alone, a kernel may keep a few of them on one, where
 * they meet only when one is interrupted under the lock. */
static void *contend(void *done)
{
    core_stay((unsigned)((uint64_t *)done - done_by));
    pthread_barrier_wait(&barrier);
    *(uint64_t *)done = kind->for_a_while();
    return NULL;
}

static void print_contest(const struct moment *before, const struct moment *after)
{
    uint64_t sum = 0, least = UINT64_MAX, most = 0;

    for (unsigned i = 0; i < job.threads; i++) {
        sum += done_by[i];
        if (done_by[i] < least) least = done_by[i];
        if (done_by[i] > most) most = done_by[i];
    }
    printf(
        "{\"kind\": \"%s\", \"pairs\": %llu, \"exact\": %s, \"wall_ns\": %llu, \"cpu_ns\": %llu, "
        "\"voluntary\": %ld, \"involuntary\": %ld, \"least\": %llu, \"most\": %llu",
        kind->name, (unsigned long long)sum, sum_of_takes == sum ? "true" : "false",
        (unsigned long long)(after->wall_ns - before->wall_ns),
        (unsigned long long)(after->cpu_ns - before->cpu_ns), after->voluntary - before->voluntary,
        after->involuntary - before->involuntary, (unsigned long long)least,
        (unsigned long long)most);
    if (kind->counts)
        printf(", \"taken\": %llu, \"contended\": %llu, \"waits\": %llu",
               (unsigned long long)contested.prairie.taken,
               (unsigned long long)contested.prairie.contended,
               (unsigned long long)contested.prairie.waits);
    puts("}");
}

static int run_contest(void)
{
    static pthread_t thread[THREADS_MAX];
    struct moment before, after;
    struct timespec duration = { job.ms / 1000, (long)(job.ms % 1000) * 1000000 };

    if (pthread_barrier_init(&barrier, NULL, job.threads + 1) != 0) return 1;
    for (unsigned i = 0; i < job.threads; i++)
        if (pthread_create(&thread[i], NULL, contend, &done_by[i]) != 0) return 1;
    before = now();
    pthread_barrier_wait(&barrier);
    nanosleep(&duration, NULL);
    RELAXED_STORE(stop, 1);
    for (unsigned i = 0; i < job.threads; i++) pthread_join(thread[i], NULL);
    after = now();
    print_contest(&before, &after);
    return 0;
}

/* ---- arguments ---- */

static bool read_argument(const char *name, const char *value)
{
    uint64_t number = strtoull(value, NULL, 10);

    if (strcmp(name, "--kind") == 0) {
        for (unsigned i = 0; i < ARRAY_COUNT(kinds); i++)
            if (strcmp(kinds[i].name, value) == 0) kind = &kinds[i];
        return kind != NULL;
    }
    if (strcmp(name, "--pairs") == 0) job.pairs = number;
    else if (strcmp(name, "--threads") == 0) job.threads = (unsigned)number;
    else if (strcmp(name, "--ms") == 0) job.ms = (unsigned)number;
    else if (strcmp(name, "--hold") == 0) job.hold = number;
    else if (strcmp(name, "--outside") == 0) job.outside = number;
    else return false;
    return true;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--beside") == 0) job.beside = true;
        else if (i + 1 >= argc || !read_argument(argv[i], argv[i + 1])) return 2;
        else i++;
    }
    if (kind == NULL || job.threads > THREADS_MAX || (job.threads == 0) == (job.pairs == 0))
        return 2;
    if (os_core_count() == 1) lock_set_spin(0); /* as the library does */
    kind->make(&contested);
    if (job.threads != 0) return run_contest();
    run_alone();
    return 0;
}
