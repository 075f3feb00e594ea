/* watched.c - a process with threads is counted by another one, which reads its memory while it
 * runs on: at rest the figures are those of its own statistics, under churn within what threads do
 * meanwhile, and after a fork each has its own. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/outside.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { THREADS = 4, SLOTS = 1000, SIZE_MAX_SMALL = 3000, SIZE_MAX_LARGE = 60000, LARGE_IN = 50 };
/* What a thread may have on the way between slabs and magazines, or hold there, in all classes: as
 * far apart as two figures of different moments can be. */
enum { APART_BYTES = THREADS * 4 << 20 };

extern int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));

/* What the process says of itself. */
struct told {
    uint64_t allocated, active, resident, mapped, metadata, retained;
};

static struct shared {
    volatile int wanted; /* what the threads do: 0 wait, 1 churn, 2 end */
    volatile int waiting;
    volatile uint64_t turns[THREADS];
} * shared;

/* ---- the process that is watched ---- */

static void *churn(void *of)
{
    volatile uint64_t *turns = of;
    uint64_t random = (uint64_t)(turns - shared->turns) + 1;
    static __thread void *blocks[SLOTS];

    while (shared->wanted != 2) {
        if (shared->wanted == 0) {
            (void)__atomic_fetch_add(&shared->waiting, 1, __ATOMIC_SEQ_CST);
            while (shared->wanted == 0) sleep_ms(1);
            (void)__atomic_fetch_sub(&shared->waiting, 1, __ATOMIC_SEQ_CST);
        }
        for (unsigned i = 0; i < 100; i++) {
            size_t at = random_between(&random, 0, SLOTS - 1);
            size_t most =
                random_between(&random, 1, LARGE_IN) == 1 ? SIZE_MAX_LARGE : SIZE_MAX_SMALL;

            free(blocks[at]);
            blocks[at] = malloc(random_between(&random, 1, most));
            must(blocks[at] != NULL);
        }
        ++*turns;
    }
    for (size_t i = 0; i < SLOTS; i++) free(blocks[i]);
    return NULL;
}

static size_t own_figure(const char *name)
{
    size_t figure = 0, length = sizeof figure;

    must(mallctl(name, &figure, &length, NULL, 0) == 0);
    return figure;
}

static void tell(int pipe_out)
{
    uint64_t epoch = 1;
    struct told told;

    must(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
    told = (struct told){ own_figure("stats.allocated"), own_figure("stats.active"),
                          own_figure("stats.resident"),  own_figure("stats.mapped"),
                          own_figure("stats.metadata"),  own_figure("stats.retained") };
    must(write(pipe_out, &told, sizeof told) == sizeof told);
}

/* The child of a fork has blocks of its own and its parent's, and one thread. */
static void be_forked(int pipe_out)
{
    pid_t process = getpid();

    must(malloc(3 << 20) != NULL);
    must(write(pipe_out, &process, sizeof process) == sizeof process);
    tell(pipe_out);
    tell(pipe_out);
    for (;;) pause();
}

/* For each letter that comes in: tells its figures, or has a child that does. */
static void live(int pipe_in, int pipe_out)
{
    char letter;

    tell(pipe_out); /* the snapshot's own records are there from now on */
    while (read(pipe_in, &letter, 1) == 1 && letter != 'q') {
        pid_t child = letter == 'f' ? fork() : -1;

        if (child == 0) be_forked(pipe_out);
        if (child > 0) must(waitpid(child, NULL, 0) == child);
        if (letter == 't') tell(pipe_out);
    }
}

static void be_watched(int pipe_in, int pipe_out)
{
    pthread_t threads[THREADS];
    void *more;

    for (unsigned i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, churn, (void *)&shared->turns[i]) == 0);
    more = malloc(10 << 20);
    live(pipe_in, pipe_out);
    free(more);
    shared->wanted = 2;
    for (unsigned i = 0; i < THREADS; i++) must(pthread_join(threads[i], NULL) == 0);
    _exit(0);
}

/* ---- the one that watches ---- */

static bool read_process(const struct outside *outside, uint64_t address, void *to, size_t bytes)
{
    struct iovec here = { to, bytes }, there = { (void *)(uintptr_t)address, bytes };

    return process_vm_readv(outside->process, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

static uint64_t find_note(const struct outside *outside)
{
    char path[64], line[4096];
    uint64_t note = 0;
    FILE *maps;

    snprintf(path, sizeof path, "/proc/%d/maps", outside->process);
    maps = fopen(path, "r");
    must(maps != NULL);
    while (note == 0 && fgets(line, sizeof line, maps) != NULL) {
        uint64_t base, end, offset;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " r%*s %" SCNx64, &base, &end, &offset) == 3
            && offset == 0 && strstr(line, "prairie") != NULL)
            note = outside_note_of(outside, base);
    }
    fclose(maps);
    return note;
}

static void show(const char *when, const struct told *told, const struct outside_figures *seen)
{
    printf("%s: allocated %" PRIu64 " and %" PRIu64 ", active %" PRIu64 " and %" PRIu64
           ", resident %" PRIu64 " and %" PRIu64 "\n",
           when, told->allocated, seen->small + seen->large, told->active, seen->active,
           told->resident, seen->resident);
}

/* Nothing happens there: every figure is the same. */
static void expect_same(const char *when, struct outside *outside, const struct told *told)
{
    struct outside_figures seen = outside_count(outside);

    show(when, told, &seen);
    must(outside->torn == 0);
    must(seen.small + seen.large == told->allocated);
    must(seen.active == told->active);
    must(seen.metadata == told->metadata);
    must(seen.resident == told->resident);
    must(seen.mapped == told->mapped);
    must(seen.clean == told->retained);
}

static struct told hear(int pipe_in)
{
    struct told told;

    must(read(pipe_in, &told, sizeof told) == sizeof told);
    return told;
}

static void watch_at_rest(const char *when, struct outside *outside, int pipe_out, int pipe_in)
{
    struct told told;

    shared->wanted = 0;
    while (shared->waiting != THREADS) sleep_ms(1);
    must(write(pipe_out, "t", 1) == 1);
    told = hear(pipe_in);
    expect_same(when, outside, &told);
}

static uint64_t turns(void)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < THREADS; i++) sum += shared->turns[i];
    return sum;
}

/* Each has a cache of its own then. */
static bool all_have_turned(void)
{
    for (unsigned i = 0; i < THREADS; i++)
        if (shared->turns[i] == 0) return false;
    return true;
}

static void watch_churn(struct outside *outside)
{
    const uint64_t most = (uint64_t)THREADS * SLOTS * SIZE_MAX_LARGE + (10 << 20) + APART_BYTES;
    long looks = scaled(60), torn = 0;
    uint64_t before = turns();

    shared->wanted = 1;
    while (turns() < before + 100 || !all_have_turned()) sleep_ms(1);
    before = turns();
    for (long i = 0; i < looks; i++) {
        struct outside_figures seen = outside_count(outside);

        torn += outside->torn != 0;
        outside->torn = 0;
        must(seen.small + seen.large <= most && seen.large >= 10 << 20);
        must(seen.active <= most * 2 && seen.cached <= most);
        must(seen.threads == THREADS + 1);
        sleep_ms(1);
    }
    must(turns() > before);
    printf("churn: %ld looks, %ld with a struct that did not hold still, %" PRIu64 " turns\n",
           looks, torn, turns() - before);
    must(torn <= looks / 4 + 1);
}

static void watch_fork(struct outside *parent, int pipe_out, int pipe_in)
{
    struct outside child = *parent;
    struct told told;
    pid_t process;

    must(write(pipe_out, "f", 1) == 1);
    must(read(pipe_in, &process, sizeof process) == sizeof process);
    child.process = process;
    (void)hear(pipe_in);
    told = hear(pipe_in);
    expect_same("forked", &child, &told);
    must(outside_count(&child).threads == 1);
    must(outside_count(parent).threads == THREADS + 1);
    must(kill(process, SIGKILL) == 0);
}

/* Somebody else may read nothing. */
static void expect_refusal(pid_t process)
{
    int status;
    pid_t other;
    char byte;
    struct iovec here = { &byte, 1 }, there = { shared, 1 };

    if (geteuid() != 0) return;
    other = fork();
    must(other >= 0);
    if (other == 0) {
        must(setresuid(65534, 65534, 65534) == 0);
        must(process_vm_readv(process, &here, 1, &there, 1, 0) == -1 && errno == EPERM);
        _exit(0);
    }
    must(waitpid(other, &status, 0) == other && status == 0);
}

static void require_reading(void)
{
    char byte = 1, copy = 0;
    struct iovec here = { &copy, 1 }, there = { &byte, 1 };

    if (times_slower() > 1) skip_test("an emulator's maps are not those of the program");
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 1)
        skip_test("processes cannot be read here: %s", strerror(errno));
}

int main(void)
{
    static struct outside outside = { .read = read_process };
    int to[2], from[2], status;
    pid_t process;

    require_prairie();
    require_reading();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared != MAP_FAILED && pipe(to) == 0 && pipe(from) == 0);
    alarm(patience(300));
    process = fork();
    must(process >= 0);
    if (process == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_watched(to[0], from[1]);
    }
    (void)hear(from[0]);
    outside.process = process;
    outside_take_map(&outside, find_note(&outside));
    printf("prairie %s, %u rows\n", outside.release, outside.row_count);
    watch_at_rest("at first", &outside, to[1], from[0]);
    watch_churn(&outside);
    watch_at_rest("after churn", &outside, to[1], from[0]);
    watch_fork(&outside, to[1], from[0]);
    watch_at_rest("after a fork", &outside, to[1], from[0]);
    expect_refusal(process);
    must(write(to[1], "q", 1) == 1);
    must(waitpid(process, &status, 0) == process && status == 0);
    puts("done");
    return 0;
}
