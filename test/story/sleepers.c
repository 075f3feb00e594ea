/* sleepers.c - what threads hold that have fallen asleep goes back, and they go on. */
/* SPDX-License-Identifier: MIT */
/* usage: sleepers pool               threads work, sleep, and work again
 *        sleepers pool_in_handlers   the same, but they sleep in signal handlers: what they hold stays
 *        sleepers handlers           threads sleep between calls, and in signal handlers that interrupt
 *                                    calls, on their own stacks and on others: nothing is given out twice
 *        sleepers first              the first thread works beside others that stay awake, and sleeps
 *        sleepers first_alone        the same, but it works before they begin
 *        sleepers forked             the first again, in the child of a process with one thread
 */
#define _GNU_SOURCE
#include "../blackbox/process_status.h"
#include "../blackbox/use.h"

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

int mallctl(const char *name, void *old, size_t *old_length, void *value, size_t length)
    __attribute__((weak));

enum { POOL = 50, LIVE = 600, MOVES = 20000, STACK_BYTES = 256 * 1024, IDLE_MS = 7000 };
/* Of what they held when they had just fallen asleep, with the blocks that live on. */
enum { HELD_PERCENT_MAX = 60 };
enum { INTERRUPTED = 16, HANDLERS_MS = 10000, SIGNAL_EVERY_MS = 10, NAP_MS = 250 };

struct worker {
    unsigned char *block[LIVE];
    size_t bytes[LIVE], key[LIVE];
    uint64_t random;
    pthread_t thread;
    char other_stack[64 * 1024];
};

static struct worker worker[POOL];
static pthread_barrier_t worked, may_go_on;
static volatile bool over;

static size_t random_size(struct worker *self)
{
    size_t kind = random_between(&self->random, 0, 99);

    if (kind < 80) return random_between(&self->random, 16, 256);
    return random_between(&self->random, 256, kind < 97 ? 9000 : 40000);
}

static void end_block(struct worker *self, size_t i)
{
    if (self->block[i] == NULL) return;
    must(stamp_holds(self->block[i], self->bytes[i], self->key[i]));
    free(self->block[i]);
    self->block[i] = NULL;
}

static void move(struct worker *self, size_t i)
{
    end_block(self, i);
    self->bytes[i] = random_size(self);
    self->key[i] = (size_t)self->random;
    self->block[i] = malloc(self->bytes[i]);
    must(self->block[i] != NULL);
    stamp(self->block[i], self->bytes[i], self->key[i]);
}

static void work(struct worker *self, long moves)
{
    for (long n = 0; n < moves && !over; n++)
        move(self, random_between(&self->random, 0, LIVE - 1));
}

static void end_blocks(struct worker *self, size_t kept_every)
{
    for (size_t i = 0; i < LIVE; i++)
        if (kept_every == 0 || i % kept_every != 0) end_block(self, i);
}

static void start(unsigned count, void *(*body)(void *))
{
    pthread_attr_t attributes;

    must(pthread_attr_init(&attributes) == 0);
    must(pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0);
    for (unsigned i = 0; i < count; i++) {
        worker[i].random = i + 1;
        must(pthread_create(&worker[i].thread, &attributes, body, &worker[i]) == 0);
    }
}

static void join(unsigned count)
{
    for (unsigned i = 0; i < count; i++) must(pthread_join(worker[i].thread, NULL) == 0);
}

/* ---- a pool ---- */

static void sleep_until_told(int signal)
{
    (void)signal;
    pthread_barrier_wait(&worked);
    pthread_barrier_wait(&may_go_on);
}

static bool sleeps_in_handlers;

/* Where the next calls, and the frame of a handler, will lie, nothing is left of the last ones. */
static __attribute__((noinline)) void forget_calls(void)
{
    char frames[16 * 1024];

    memset(frames, 0, sizeof frames);
    __asm__ volatile("" ::"r"(frames) : "memory");
}

static void *pool_body(void *argument)
{
    struct worker *self = argument;

    for (unsigned times = 0; times < 2; times++) {
        work(self, scaled(MOVES));
        end_blocks(self, 8);
        forget_calls();
        if (sleeps_in_handlers) must(raise(SIGUSR1) == 0);
        else sleep_until_told(0);
    }
    end_blocks(self, 0);
    return NULL;
}

static void see_what_goes(long before_kb)
{
    long at_once_kb, later_kb;

    pthread_barrier_wait(&worked);
    at_once_kb = read_status_kb("VmRSS:") - before_kb;
    sleep_ms(IDLE_MS);
    later_kb = read_status_kb("VmRSS:") - before_kb;
    printf("KB a thread: %ld, %d s later %ld\n", at_once_kb / POOL, IDLE_MS / 1000,
           later_kb / POOL);
    must((later_kb * 100 <= at_once_kb * HELD_PERCENT_MAX) != sleeps_in_handlers);
    pthread_barrier_wait(&may_go_on);
}

static void run_pool(void)
{
    struct sigaction action = { .sa_handler = sleep_until_told };
    long before_kb;

    must(sigaction(SIGUSR1, &action, NULL) == 0);
    must(pthread_barrier_init(&worked, NULL, POOL + 1) == 0);
    must(pthread_barrier_init(&may_go_on, NULL, POOL + 1) == 0);
    memset(worker, 0, sizeof worker); /* resident from here on */
    before_kb = read_status_kb("VmRSS:");
    start(POOL, pool_body);
    see_what_goes(before_kb);
    see_what_goes(before_kb);
    join(POOL);
}

/* ---- the first thread ---- */

/* What threads hold in their caches, as of now. */
static size_t cached_bytes(void)
{
    uint64_t epoch = 1;
    size_t bytes = 0, length = sizeof bytes;

    must(mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0);
    must(mallctl("stats.arenas.4096.tcache_bytes", &bytes, &length, NULL, 0) == 0);
    return bytes;
}

static void *awake_body(void *unused)
{
    while (!over) {
        free(malloc(100));
        sleep_ms(50);
    }
    return unused;
}

static void *look_later(void *unused)
{
    size_t at_once = cached_bytes(), later;

    sleep_ms(IDLE_MS);
    later = cached_bytes();
    printf("the first thread's cache: %zu KB, %d s later %zu\n", at_once >> 10, IDLE_MS / 1000,
           later >> 10);
    must(later <= at_once / 4);
    over = true;
    return unused;
}

/* It works when it is alone, or beside two that stay awake, and sleeps beside these. */
static void run_first(bool works_alone)
{
    struct worker *self = &worker[POOL - 1];
    pthread_t looking;

    self->random = 1;
    if (!works_alone) start(2, awake_body);
    for (unsigned times = 0; times < 20; times++) {
        work(self, scaled(MOVES) / 10);
        end_blocks(self, 0);
    }
    if (works_alone) start(2, awake_body);
    must(pthread_create(&looking, NULL, look_later, NULL) == 0); /* which allocates */
    forget_calls();
    must(pthread_join(looking, NULL) == 0);
    join(2);
}

/* The child's thread has another number than its parent's. */
static void run_forked(void)
{
    int status = 0;
    pid_t child;

    free(malloc(100));
    child = fork();
    must(child >= 0);
    if (child == 0) {
        run_first(false);
        exit(0);
    }
    must(waitpid(child, &status, 0) == child && status == 0);
}

/* ---- handlers ---- */

static void nap(int signal)
{
    struct timespec left = { 0, NAP_MS * 1000000L };

    (void)signal;
    while (nanosleep(&left, &left) != 0) continue;
}

static void *interrupted_body(void *argument)
{
    struct worker *self = argument;
    char inner_stack[64 * 1024];
    stack_t other = { .ss_sp = self->other_stack, .ss_size = sizeof self->other_stack };

    if (self - worker >= INTERRUPTED / 2) other.ss_sp = inner_stack;
    if ((self - worker) % 4 != 0) must(sigaltstack(&other, NULL) == 0);
    work(self, MOVES);
    while (!over) {
        work(self, (long)random_between(&self->random, 1, 20000));
        if (random_between(&self->random, 0, 9) == 0)
            sleep_ms((int)random_between(&self->random, 1, 2 * NAP_MS));
        if (random_between(&self->random, 0, 9) == 0) end_blocks(self, 8);
    }
    end_blocks(self, 0);
    return NULL;
}

static void run_handlers(void)
{
    struct sigaction action = { .sa_handler = nap, .sa_flags = SA_RESTART | SA_ONSTACK };
    uint64_t random = 5;

    must(sigaction(SIGUSR1, &action, NULL) == 0);
    start(INTERRUPTED, interrupted_body);
    for (long left_ms = scaled(HANDLERS_MS); left_ms > 0; left_ms -= SIGNAL_EVERY_MS) {
        must(pthread_kill(worker[random_between(&random, 0, INTERRUPTED - 1)].thread, SIGUSR1)
             == 0);
        sleep_ms(SIGNAL_EVERY_MS);
    }
    over = true;
    join(INTERRUPTED);
}

/* Does this kernel tell what is needed? */
static bool sleep_can_be_proven(void)
{
    return access("/proc/thread-self/schedstat", R_OK) == 0
        && access("/proc/thread-self/syscall", R_OK) == 0
        && syscall(SYS_close_range, ~0U, ~0U, 0) == 0;
}

int main(int count, char **words)
{
    require_prairie();
    must(count == 2);
    if (!sleep_can_be_proven()) return 77;
    sleeps_in_handlers = strcmp(words[1], "pool_in_handlers") == 0;
    if (strcmp(words[1], "pool") == 0 || sleeps_in_handlers) run_pool();
    else if (strcmp(words[1], "handlers") == 0) run_handlers();
    else if (strcmp(words[1], "first") == 0) run_first(false);
    else if (strcmp(words[1], "first_alone") == 0) run_first(true);
    else if (strcmp(words[1], "forked") == 0) run_forked();
    else give_up("no such way: %s", words[1]);
    walk_heap();
    return 0;
}
