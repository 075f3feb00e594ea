/* stress.c - lets lanes of random allocator calls run for a while, with an oracle that checks all.
 * SPDX-License-Identifier: MIT
 *
 * The supervisor (the main thread) gives every lane a thread; a thread dies after a random number
 * of steps, takes some more steps inside a thread-specific destructor, and is replaced. With
 * --forks the supervisor also forks now and then, and the child must be able to allocate and to
 * make a thread. With --threads 1 there are no threads and no forks: the run depends on the seed
 * alone.
 *
 * Exit status: 0 passed, 1 a violation (one line on stderr says which), 2 wrong usage. */
#define _GNU_SOURCE
#include "allocator.h"
#include "drift.h"
#include "lane.h"
#include "sizes.h"
#include "ways.h"

#include "../blackbox/emulator.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LANES_MAX = 64, DESTRUCTOR_STEPS = 50, CHILD_STEPS = 3000, CHILD_SECONDS = 60 };
/* How long an emulator may take to clear up behind a thread that has ended. */
enum { CLEARED_UP_MS = 300 };
enum { EXIT_USAGE = 2 };
enum { END_BYTES_MAX = 128 * 1024 }; /* what the C library may have kept for its threads */

struct options {
    double seconds;
    uint64_t steps; /* 0: by the clock */
    unsigned forks_per_second;
    bool drift; /* whether resident memory grows is looked at */
};

/* One lane's thread, as the supervisor sees it. */
struct worker {
    pthread_t thread;
    struct lane *lane;
    uint64_t life_steps;   /* written before the thread starts */
    uint64_t random;       /* supervisor: of life lengths */
    unsigned destructions; /* of the thread-specific value so far; by the thread */
    bool alive;            /* supervisor: there is a thread to join */
    _Atomic bool finished; /* release by the thread at its end, acquire by the supervisor */
};

static struct worker workers[LANES_MAX];
static _Atomic bool stop;
static _Atomic bool nobody_ends; /* a thread whose life is over goes on */
static pthread_key_t last_steps_key;
static uint64_t threads_born, forks_made;

static const char *const sabotage_names[] = { "none",   "overlap", "scribble", "dirty", "misalign",
                                              "forget", "errno",   "refuse",   "leak" };

static void usage(void)
{
    fprintf(stderr,
            "usage: stress [--seconds S] [--percent P] [--threads N] [--max-bytes N] [--seed N]\n"
            "              [--steps N (only with --threads 1)] [--forks PER_SECOND] [--refusals] "
            "[--drift]\n"
            "              [--sabotage overlap|scribble|dirty|misalign|forget|errno|refuse|leak]\n"
            "S without the option: PRAIRIE_STRESS_SECONDS, else 30; P shortens it. --refusals: "
            "NULL is\n"
            "an answer, because something makes the kernel refuse. --drift, with threads and for "
            "minutes:\nresident memory must not grow.\n");
    exit(EXIT_USAGE);
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The allocator's own alarms end the process by a signal: say where the test was. */
static void report_signal(int number)
{
    char text[160];
    int used = snprintf(
        text, sizeof text, "stress: signal %d in lane %u, step %llu, %s; seed %llu\n", number,
        whereabouts.lane, (unsigned long long)whereabouts.step,
        whereabouts.action != NULL ? whereabouts.action : "start", (unsigned long long)world.seed);
    if (write(STDERR_FILENO, text, (size_t)used) < 0) _exit(1);
    raise(number);
}

static void catch_signals(void)
{
#ifndef PRAIRIE_OWN_NAMES /* sanitizers report signals themselves */
    static const int numbers[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP };
    struct sigaction action = { .sa_handler = report_signal,
                                .sa_flags = SA_RESETHAND | SA_NODEFER };
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
#else
    (void)report_signal;
#endif
}

/* The last steps of a thread run while its thread-specific values are destroyed, in two rounds
 * (four are allowed, but in the last one ThreadSanitizer has no record of the thread any more). */
static void take_last_steps(void *argument)
{
    struct worker *worker = argument;
    for (unsigned i = 0; i < DESTRUCTOR_STEPS; i++) lane_step(worker->lane);
    if (worker->destructions++ == 0) pthread_setspecific(last_steps_key, worker);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    worker->destructions = 0;
    pthread_setspecific(last_steps_key, worker);
    for (uint64_t i = 0; i < worker->life_steps || atomic_load(&nobody_ends); i++) {
        if (atomic_load_explicit(&stop, memory_order_relaxed)) break;
        lane_step(worker->lane);
    }
    atomic_store_explicit(&worker->finished, true, memory_order_release);
    return NULL;
}

static void give_birth(struct worker *worker)
{
    worker->life_steps = random_log_bytes(&worker->random, 1, 200000);
    atomic_store_explicit(&worker->finished, false, memory_order_relaxed);
    worker->alive = pthread_create(&worker->thread, NULL, work, worker) == 0;
    threads_born += worker->alive;
    if (!worker->alive && !world.refusals_allowed) violation("no thread could be made");
}

static void *child_thread(void *argument)
{
    struct lane *lane = argument;
    for (unsigned i = 0; i < CHILD_STEPS; i++) lane_step(lane);
    return NULL;
}

/* In the child: other threads are gone, their locks must not be. */
static _Noreturn void live_as_child(void)
{
    static struct lane lane;
    pthread_t thread;
    world.lane_count = 1;
    world.live_bytes_max = atomic_load(&world.live_bytes) + ((size_t)64 << 20);
    lane_open(&lane, LANES_MAX + (unsigned)forks_made);
    for (unsigned i = 0; i < CHILD_STEPS; i++) lane_step(&lane);
    if (pthread_create(&thread, NULL, child_thread, &lane) != 0)
        violation("no thread in the child");
    pthread_join(thread, NULL);
    lane_close(&lane);
    if (prairie_check_all != NULL) prairie_check_all();
    _exit(0);
}

static double processor_seconds(clockid_t clock)
{
    struct timespec now;
    return clock_gettime(clock, &now) == 0 ? (double)now.tv_sec + (double)now.tv_nsec * 1e-9 : 0;
}

static void lose_child(pid_t child, const char *how)
{
    (void)kill(child, SIGKILL); /* it would keep our output open */
    violation("the child of fork %llu %s", (unsigned long long)forks_made, how);
}

/* The child's status. It hangs when it works for too long, or for as long does not: on a busy
 * machine it may wait for a processor. */
static int wait_for(pid_t child)
{
    const double patience = CHILD_SECONDS * times_slower();
    clockid_t clock;
    bool has_clock = clock_getcpuclockid(child, &clock) == 0;
    double worked = 0, since = now_seconds();

    for (;;) {
        int status = 0;
        double seconds = has_clock ? processor_seconds(clock) : 0;
        pid_t ended = waitpid(child, &status, WNOHANG);

        if (ended == child) return status;
        if (ended != 0) lose_child(child, "is lost");
        if (seconds > worked) worked = seconds, since = now_seconds();
        if (worked > patience || now_seconds() - since > patience) lose_child(child, "hung");
        nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
    }
}

static void fork_once(void)
{
    forks_made++;
    pid_t child = fork();
    if (child < 0) violation("fork failed");
    if (child == 0) live_as_child();
    int status = wait_for(child);
    if (WIFSIGNALED(status))
        violation("the child of fork %llu died of signal %d", (unsigned long long)forks_made,
                  WTERMSIG(status));
    if (WEXITSTATUS(status) != 0) violation("the child found a violation");
}

static void replace_the_dead(void)
{
    for (unsigned i = 0; i < world.lane_count; i++) {
        bool finished = atomic_load_explicit(&workers[i].finished, memory_order_acquire);
        if (workers[i].alive && !finished) continue;
        if (workers[i].alive) pthread_join(workers[i].thread, NULL);
        give_birth(&workers[i]);
    }
}

/* qemu's user emulation clears up behind a thread that has ended, under a lock that it does not
 * take for a fork: a child that is forked meanwhile waits for that lock for ever. So there threads
 * work while we fork, and none ends. */
static void fork_when_possible(void)
{
    if (times_slower() > 1) {
        atomic_store(&nobody_ends, true);
        replace_the_dead();
        nanosleep(&(struct timespec){ .tv_nsec = CLEARED_UP_MS * 1000000L }, NULL);
    }
    fork_once();
    atomic_store(&nobody_ends, false);
}

static void run_threads(const struct options *options)
{
    double end = now_seconds() + options->seconds, next_check = now_seconds() + 1, next_fork = 0;
    if (pthread_key_create(&last_steps_key, take_last_steps) != 0)
        violation("no thread-specific key");
    if (options->forks_per_second > 0) next_fork = now_seconds() + 0.1;
    for (unsigned i = 0; i < world.lane_count; i++) {
        workers[i].lane = &world.lanes[i];
        workers[i].random = world.seed + i;
        give_birth(&workers[i]);
    }
    if (options->drift) drift_start(now_seconds(), options->seconds);
    while (now_seconds() < end) {
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        replace_the_dead();
        if (options->drift) drift_note(now_seconds());
        if (options->forks_per_second > 0 && now_seconds() >= next_fork) {
            fork_when_possible();
            next_fork = now_seconds() + 1.0 / options->forks_per_second;
        }
        if (prairie_check_all != NULL && now_seconds() >= next_check) {
            prairie_check_all();
            next_check = now_seconds() + 1;
        }
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < world.lane_count; i++)
        if (workers[i].alive) pthread_join(workers[i].thread, NULL);
}

static void run_alone(const struct options *options)
{
    double end = now_seconds() + options->seconds;
    struct lane *lane = &world.lanes[0];
    while (options->steps != 0 ? lane->step < options->steps : now_seconds() < end)
        for (unsigned i = 0; i < 16 && (options->steps == 0 || lane->step < options->steps); i++)
            lane_step(lane);
}

static const char *malloc_owner(void)
{
#ifdef PRAIRIE_OWN_NAMES
    return "prairie's own names";
#else
    Dl_info info;
    return dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) != 0 ? info.dli_fname : "?";
#endif
}

/* Bytes that prairie believes the program to hold; 0 when another allocator serves. */
static size_t allocated_bytes(void)
{
    struct prairie_stats stats = { .struct_bytes = sizeof stats };
    if (prairie_stats_read == NULL) return 0;
    if (!prairie_stats_read(&stats)) violation("the statistics cannot be read");
    return stats.allocated;
}

/* All blocks of the test are free: the books, the heap and the statistics must say so. */
static void check_end(size_t allocated_before)
{
    size_t left = atomic_load(&world.live_bytes), allocated = allocated_bytes();
    if (left != 0) violation("%zu bytes are still in the books: the test itself is broken", left);
    if (allocated > allocated_before + END_BYTES_MAX)
        violation("all is free, and the statistics say that %zu bytes are allocated", allocated);
    if (prairie_check_all != NULL) prairie_check_all();
}

static void run(const struct options *options)
{
    catch_signals();
    size_t allocated_before = allocated_bytes();
    ways_start(world.refusals_allowed);
    oracle_start(world.seed);
    world.lanes = oracle_memory(world.lane_count * sizeof *world.lanes);
    for (unsigned i = 0; i < world.lane_count; i++) lane_open(&world.lanes[i], i);

    if (world.lane_count == 1) run_alone(options);
    else run_threads(options);

    uint64_t operations = 0, refusals = 0;
    for (unsigned i = 0; i < world.lane_count; i++) {
        lane_close(&world.lanes[i]);
        operations += world.lanes[i].operations;
        refusals += world.lanes[i].refusals;
    }
    if (options->drift) drift_report();
    check_end(allocated_before);
    printf("stress: passed: %llu operations, %llu threads, %llu forks, %llu refusals, seed %llu\n",
           (unsigned long long)operations, (unsigned long long)threads_born,
           (unsigned long long)forks_made, (unsigned long long)refusals,
           (unsigned long long)world.seed);
}

static enum sabotage sabotage_of(const char *name)
{
    for (unsigned i = 0; i < sizeof sabotage_names / sizeof *sabotage_names; i++)
        if (strcmp(name, sabotage_names[i]) == 0) return (enum sabotage)i;
    usage();
    return SABOTAGE_NONE;
}

static void take_option(struct options *options, const char *name, const char *value)
{
    static const struct {
        const char *name;
        int letter;
    } names[] = { { "--seconds", 's' },   { "--percent", 'p' }, { "--threads", 't' },
                  { "--max-bytes", 'm' }, { "--seed", 'r' },    { "--steps", 'n' },
                  { "--forks", 'f' },     { "--sabotage", 'b' } };
    int letter = 0;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i].name) == 0) letter = names[i].letter;
    if (value == NULL) usage();
    switch (letter) {
    case 's': options->seconds = strtod(value, NULL); break;
    case 'p': options->seconds *= strtod(value, NULL) / 100; break;
    case 't': world.lane_count = (unsigned)strtoul(value, NULL, 10); break;
    case 'm': world.live_bytes_max = strtoull(value, NULL, 10); break;
    case 'r': world.seed = strtoull(value, NULL, 10); break;
    case 'n': options->steps = strtoull(value, NULL, 10) / times_slower(); break;
    case 'f': options->forks_per_second = (unsigned)strtoul(value, NULL, 10); break;
    case 'b': world.sabotage = sabotage_of(value); break;
    default: usage();
    }
}

int main(int argc, char **argv)
{
    const char *given = getenv("PRAIRIE_STRESS_SECONDS");
    struct options options = { .seconds = given != NULL ? strtod(given, NULL) : 30 };
    world.lane_count = 4;
    world.live_bytes_max = (size_t)192 << 20;
    world.seed = (uint64_t)time(NULL) * 1000 + (uint64_t)getpid() % 1000;
    world.sabotage_step = 5000;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--refusals") == 0) world.refusals_allowed = true;
        else if (strcmp(argv[i], "--drift") == 0) options.drift = true;
        else take_option(&options, argv[i], argv[i + 1]), i++;
    }
    bool alone = world.lane_count == 1;
    if (world.lane_count < 1 || world.lane_count > LANES_MAX || (options.steps != 0 && !alone)
        || (options.drift && alone))
        usage();

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("stress: seed %llu, %u threads, %.0f s, at most %zu MB, %s\n",
           (unsigned long long)world.seed, world.lane_count, options.seconds,
           world.live_bytes_max >> 20, malloc_owner());
    run(&options);
    return 0;
}
