/* signal_storm.c - signals come a thousand times a second, into the heap and beside it; handlers
 * that interrupt no call into the heap allocate and free themselves. */
/* SPDX-License-Identifier: MIT */
/* Six seconds; PRAIRIE_TEST_PERCENT=10000 for ten minutes. */
#define _GNU_SOURCE
#include "../blackbox/use.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

enum { KINDS = 3, EACH = 2, THREADS = KINDS * EACH, SLOTS = 64, SHARED_SLOTS = 32 };
enum { PERIOD_NS = 1000000, ALTERNATE_BYTES = 16 * 1024 };

/* INSIDE: a thread that is in the heap all the time; its handler only looks. OUTSIDE: one that
 * never is while signals may come; its handler allocates. MASKED: one that is in the heap while the
 * signal is blocked, and lets it in between; its handler allocates. */
enum kind { INSIDE, OUTSIDE, MASKED };

struct held {
    unsigned char *block;
    size_t bytes;
};

static struct owner {
    enum kind kind;
    uint64_t state, state_of_handler;
    struct held held[SLOTS], held_by_handler[SLOTS];
    atomic_long handled;
} owner[THREADS];

static _Thread_local struct owner *self;
static atomic_bool stop;
/* Blocks on their way from handlers to others, and from others to handlers. */
static _Atomic(unsigned char *) shared[SHARED_SLOTS];
static atomic_long exchanged;

static size_t stamped_bytes(size_t bytes) { return bytes < 256 ? bytes : 256; }

/* In a table of one's own. */
static void replace(struct held *held, uint64_t *state)
{
    struct held *one = &held[random_between(state, 0, SLOTS - 1)];
    size_t kind = random_between(state, 0, 99);
    if (one->block != NULL) must(stamp_holds(one->block, stamped_bytes(one->bytes), one->bytes));
    size_t bytes = random_between(state, 1, kind == 0 ? 500000 : kind < 10 ? 30000 : 2000);
    if (kind % 3 == 0 && one->block != NULL) {
        must((one->block = realloc(one->block, bytes)) != NULL);
    } else {
        free(one->block);
        must((one->block = kind % 3 == 1 ? calloc(1, bytes) : malloc(bytes)) != NULL);
    }
    one->bytes = bytes;
    stamp(one->block, stamped_bytes(bytes), bytes);
}

/* With whoever comes by next. */
static void exchange(uint64_t *state)
{
    unsigned char *mine = malloc(200);
    must(mine != NULL);
    stamp(mine, 200, 5);
    unsigned char *other =
        atomic_exchange(&shared[random_between(state, 0, SHARED_SLOTS - 1)], mine);
    if (other == NULL) return;
    must(stamp_holds(other, 200, 5));
    free(other);
    exchanged++;
}

static void handler(int signal, siginfo_t *info, void *context)
{
    int before = errno;
    (void)signal, (void)info, (void)context;
    self->handled++;
    if (self->kind == INSIDE) {
        errno = EBADF;
    } else {
        for (int i = 0; i < 8; i++) replace(self->held_by_handler, &self->state_of_handler);
        exchange(&self->state_of_handler);
    }
    errno = before;
}

static void live_inside(void)
{
    for (int i = 0; i < 1000; i++) {
        errno = 0;
        replace(self->held, &self->state);
        must(errno == 0);
    }
    exchange(&self->state);
}

static void live_outside(void)
{
    for (volatile int turn = 0; turn < 100000; turn++) {}
}

static void live_masked(const sigset_t *set)
{
    must(pthread_sigmask(SIG_BLOCK, set, NULL) == 0);
    live_inside();
    must(pthread_sigmask(SIG_UNBLOCK, set, NULL) == 0);
}

static void start_timer(timer_t *timer)
{
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };
    struct itimerspec often = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    must(timer_create(CLOCK_MONOTONIC, &event, timer) == 0);
    must(timer_settime(*timer, 0, &often, NULL) == 0);
}

static void *live(void *argument)
{
    static _Thread_local char alternate[ALTERNATE_BYTES];
    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
    sigset_t set;
    timer_t timer;
    self = argument;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    must(sigaltstack(&stack, NULL) == 0);
    must(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    start_timer(&timer);
    if (self->kind != MASKED) must(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    while (!stop) {
        if (self->kind == INSIDE) live_inside();
        else if (self->kind == OUTSIDE) live_outside();
        else live_masked(&set);
    }
    must(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    must(timer_delete(timer) == 0);
    for (int i = 0; i < SLOTS; i++) free(self->held[i].block);
    for (int i = 0; i < SLOTS; i++) free(self->held_by_handler[i].block);
    return NULL;
}

int main(void)
{
    require_prairie();
    pthread_t thread[THREADS];
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    uint64_t seed = seed_of_run();
    long seconds = scaled(6), last[THREADS] = { 0 };
    must(sigaction(SIGRTMIN, &action, NULL) == 0);
    for (size_t i = 0; i < THREADS; i++) {
        owner[i].kind = (enum kind)(i % KINDS);
        owner[i].state = random_next(&seed);
        owner[i].state_of_handler = random_next(&seed);
        must(pthread_create(&thread[i], NULL, live, &owner[i]) == 0);
    }
    /* Each thread goes on being interrupted: none of them hangs. */
    for (long s = 0; s < seconds; s++) {
        double start_ms = now_ms();
        sleep_ms(1000);
        for (int i = 0; i < THREADS; i++) {
            while (owner[i].handled == last[i]) {
                must(now_ms() - start_ms < patience(20) * 1e3);
                sleep_ms(10);
            }
            last[i] = owner[i].handled;
        }
    }
    stop = true;
    for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    for (int i = 0; i < SHARED_SLOTS; i++) free(shared[i]);
    walk_heap();
    long handled[KINDS] = { 0 };
    for (int i = 0; i < THREADS; i++) handled[owner[i].kind] += owner[i].handled;
    printf("signal_storm: %ld s, %ld signals into the heap, %ld beside it, %ld between calls, %ld "
           "blocks exchanged\n",
           seconds, handled[INSIDE], handled[OUTSIDE], handled[MASKED], exchanged);
    must(exchanged > 0);
    return 0;
}
