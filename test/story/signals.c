/* signals.c - signals sent to the process reach the program's own threads, also when prairie
 * has one of its own. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/use.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

enum { THREADS = 2, SIGNALS = 200 };

static atomic_int own_task[THREADS + 1];
static atomic_int handled, handled_elsewhere;
static pthread_barrier_t busy, finish;

static int task(void) { return (int)syscall(SYS_gettid); }

static void handler(int signal)
{
    (void)signal;
    int here = task();
    bool is_own = false;
    for (int i = 0; i <= THREADS; i++) is_own |= own_task[i] == here;
    if (!is_own) handled_elsewhere++;
    handled++;
}

/* Bursts of memory give a background thread of the heap something to do. */
static void *live(void *argument)
{
    own_task[(size_t)argument] = task();
    for (int round = 0; round < 3; round++) {
        static _Thread_local void *block[2000];
        for (int i = 0; i < 2000; i++) {
            block[i] = malloc(30000);
            must(block[i] != NULL);
            memset(block[i], 1, 30000);
        }
        for (int i = 0; i < 2000; i++) free(block[i]);
    }
    pthread_barrier_wait(&busy);
    pthread_barrier_wait(&finish);
    return NULL;
}

int main(void)
{
    require_prairie();
    pthread_t thread[THREADS];
    sigset_t set;
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    must(sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_barrier_init(&busy, NULL, THREADS + 1);
    pthread_barrier_init(&finish, NULL, THREADS + 1);
    own_task[THREADS] = task();
    for (size_t i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, live, (void *)i) == 0);
    pthread_barrier_wait(&busy);
    for (int i = 0; i < SIGNALS; i++) {
        int before = handled;
        must(kill(getpid(), SIGUSR1) == 0);
        double start_ms = now_ms();
        while (handled == before) {
            must(now_ms() - start_ms < 1000.0 * patience(5));
            sched_yield();
        }
        if (i % 20 == 0) sleep_ms(10);
    }
    must(handled_elsewhere == 0);

    /* With the signal blocked in all own threads, only sigwait may take it. */
    pthread_barrier_wait(&finish);
    for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    must(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    int before = handled;
    for (int i = 0; i < 20; i++) {
        int taken = 0;
        must(kill(getpid(), SIGUSR1) == 0);
        sleep_ms(2);
        sigset_t pending;
        must(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1);
        must(sigwait(&set, &taken) == 0 && taken == SIGUSR1);
    }
    must(handled == before);
    printf("signals: %d handled by the program's own threads\n", SIGNALS);
    return 0;
}
