/* nth_call_test.c - a whole life on the fake kernel, with its n-th call refused, for every n.
 * SPDX-License-Identifier: MIT
 *
 * A life is the random steps of the stress test with its oracle: two lanes, the second in a thread
 * of its own; time that passes, the background thread, a fork, a purge. The walkers run after every
 * refused call and every few steps besides. Each life is a process of its own, because prairie has
 * no way back.
 *
 * One refused kernel call may cost at most one refused request, and leaves everything usable. */
#include "library.h"

#include "../stress/lane.h"
#include "../stress/ways.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum {
    STEPS_BEFORE = 700,
    STEPS_THREAD = 300,
    STEPS_CHILD = 100,
    STEPS_AFTER = 300,
    CHECK_PERIOD = 64,
    LIFE_SECONDS = 120,
    SWEEP_LEAST = 20, /* fewer calls than this mean that the life tests too little */
};

/* What a life tells its parent; in memory that they share. */
struct account {
    uint64_t failures, refusals, purged_bytes;
    bool recovered;
};

static struct account *account;
static struct lane lanes[2];

static void step(struct lane *lane)
{
    uint64_t before = fake_failures();

    lane_step(lane);
    fake_clock_ms(7);
    if (lane->step % 16 == 0) (void)fake_thread_run();
    if (fake_failures() != before || lane->step % CHECK_PERIOD == 0) prairie_check_all();
}

static void steps(struct lane *lane, unsigned count)
{
    for (unsigned i = 0; i < count; i++) step(lane);
}

static void *second_thread(void *unused)
{
    steps(&lanes[1], STEPS_THREAD);
    return unused;
}

static void in_a_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, second_thread, NULL) != 0) violation("no thread");
    pthread_join(thread, NULL);
}

static void in_a_child(void)
{
    int status = 0;
    pid_t child = fake_fork();

    if (child == 0) {
        steps(&lanes[0], STEPS_CHILD);
        prairie_check_all();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) violation("no child");
    if (status != 0) violation("the child of a fork ended with status 0x%x", (unsigned)status);
}

static void live(void)
{
    steps(&lanes[0], STEPS_BEFORE);
    in_a_thread();
    in_a_child();
    (void)prairie_purge();
    prairie_check_all();
    steps(&lanes[0], STEPS_AFTER);
}

static void start_lanes(uint64_t seed)
{
    alarm(LIFE_SECONDS);
    world = (struct world){ .seed = seed,
                            .live_bytes_max = (size_t)48 << 20,
                            .lane_count = 2,
                            .refusals_allowed = true,
                            .lanes = lanes };
    ways_start(true);
    oracle_start(seed);
    for (unsigned i = 0; i < 2; i++) lane_open(&lanes[i], i);
}

/* After the refusals have ended, everything must be had again. */
static void recover(void)
{
    static const size_t sizes[] = { 1, 48, 1000, 14336, 20000, 300000, 3 << 20 };

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *block = prairie_calloc(1, sizes[i]);
        if (block == NULL) violation("%zu bytes are refused after the refusals ended", sizes[i]);
        block[0] = block[sizes[i] - 1] = 1;
        prairie_free(block);
    }
}

static _Noreturn void end_life(void)
{
    fake_fail_nth(0);
    fake_fail_all(false);
    recover();
    for (unsigned i = 0; i < 2; i++) lane_close(&lanes[i]);
    (void)prairie_purge();
    prairie_check_all();
    *account = (struct account){ .failures = fake_failures(),
                                 .refusals = lanes[0].refusals + lanes[1].refusals,
                                 .purged_bytes = fake_purged_bytes(),
                                 .recovered = true };
    _exit(0);
}

/* ---- the ways in which the kernel fails ---- */

struct failing {
    const char *name;
    void (*live)(uint64_t n);
    bool counted; /* n counts kernel calls, else steps */
};

static void nth_call(uint64_t n)
{
    fake_fail_nth(n);
    live();
}

static void fail_from_step(enum fake_call first, enum fake_call last, uint64_t n)
{
    steps(&lanes[0], (unsigned)n - 1);
    for (unsigned kind = first; kind <= last; kind++) fake_fail_kind((enum fake_call)kind, true);
    live();
}

static void every_reserve(uint64_t n) { fail_from_step(FAKE_RESERVE, FAKE_RESERVE_READABLE, n); }
static void every_commit(uint64_t n) { fail_from_step(FAKE_COMMIT, FAKE_COMMIT, n); }
static void every_purge(uint64_t n) { fail_from_step(FAKE_PURGE, FAKE_PURGE, n); }
static void every_move(uint64_t n) { fail_from_step(FAKE_MOVE, FAKE_MOVE, n); }
static void every_thread(uint64_t n) { fail_from_step(FAKE_THREAD_START, FAKE_FORK_HOOK, n); }
static void every_call(uint64_t n) { fail_from_step(FAKE_RESERVE, FAKE_FORK_HOOK, n); }

static void little_memory(uint64_t n)
{
    fake_commit_bytes_max((size_t)n << 17);
    live();
    fake_commit_bytes_max(SIZE_MAX);
}

static void little_address_space(uint64_t n)
{
    fake_address_space((size_t)n << 24, (size_t)2 << 20);
    live();
    fake_address_space(SIZE_MAX, 0);
}

static const struct failing ways_to_fail[] = {
    { "the n-th call", nth_call, true },
    { "every reservation from step n", every_reserve, false },
    { "every commit from step n", every_commit, false },
    { "every purge from step n", every_purge, false },
    { "every move from step n", every_move, false },
    { "every thread and hook from step n", every_thread, false },
    { "every call from step n", every_call, false },
    { "n times 128 KiB of memory", little_memory, false },
    { "n times 16 MiB of address space", little_address_space, false },
};

/* ---- judging ---- */

static int run_life(const struct failing *failing, uint64_t n, uint64_t seed)
{
    int status = -1;
    pid_t life;

    *account = (struct account){ 0 };
    life = fork();
    if (life == 0) {
        start_lanes(seed);
        failing->live(n);
        end_life();
    }
    if (life < 0 || waitpid(life, &status, 0) != life) return -1;
    return status;
}

static bool is_good(const struct failing *failing, uint64_t n, uint64_t seed)
{
    int status = run_life(failing, n, seed);

    if (status == 0 && account->recovered && (!failing->counted || account->refusals <= 1))
        return true;
    printf("FAILED: %s, n = %llu, seed %llu: status 0x%x, %llu failures, %llu requests refused\n",
           failing->name, (unsigned long long)n, (unsigned long long)seed, (unsigned)status,
           (unsigned long long)account->failures, (unsigned long long)account->refusals);
    return false;
}

/* Returns the number of bad lives. */
static unsigned sweep(const struct failing *failing, uint64_t seed)
{
    unsigned bad = 0, lives = 0;
    uint64_t failures = 0, refusals = 0;

    for (uint64_t n = 1; failing->counted || n <= 1024;
         n = failing->counted ? n + 1 : n * 2, lives++) {
        bad += !is_good(failing, n, seed);
        failures += account->failures;
        refusals += account->refusals;
        if (failing->counted && account->recovered && account->failures == 0) break;
    }
    printf("%-36s %5u lives, %6llu failures, %6llu requests refused, %u bad\n", failing->name,
           lives, (unsigned long long)failures, (unsigned long long)refusals, bad);
    if (failures < (failing->counted ? SWEEP_LEAST : 1)) {
        printf("FAILED: that tests too little\n");
        bad++;
    }
    return bad;
}

/* A kernel that answers a purge with garbage must be noticed, or the lives would prove nothing. */
static unsigned expect_alarm(uint64_t seed)
{
    int status;
    pid_t life = fork();

    if (life == 0) {
        start_lanes(seed);
        fake_purge_does(FAKE_PURGE_SCRIBBLES);
        for (unsigned i = 0; i < 20; i++) live();
        end_life();
    }
    if (waitpid(life, &status, 0) == life && status != 0) {
        printf("a kernel that scribbles is noticed\n");
        return 0;
    }
    printf("FAILED: a kernel that scribbles is not noticed\n");
    return 1;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc == 3 && strcmp(argv[1], "--seed") == 0 ? strtoull(argv[2], NULL, 10) : 7;
    unsigned bad = 0;

    if (argc != 1 && argc != 3) {
        fprintf(stderr, "usage: %s [--seed N]\n", argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    account =
        mmap(NULL, sizeof *account, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (account == MAP_FAILED) return 2;
    for (unsigned i = 0; i < sizeof ways_to_fail / sizeof *ways_to_fail; i++)
        bad += sweep(&ways_to_fail[i], seed);
    bad += expect_alarm(seed);
    printf("%u bad lives\n", bad);
    return bad != 0;
}
