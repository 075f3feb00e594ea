/* threads.c - threads come and go, by their end and by being killed, and fibers change places. */
/* SPDX-License-Identifier: MIT */
#include "windows_test.h"

#include <process.h>
#include <psapi.h>

static size_t committed(void)
{
    PROCESS_MEMORY_COUNTERS counters;

    must(K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters));
    return counters.PagefileUsage;
}

/* ---- the end of a thread ---- */

static unsigned __stdcall leave_blocks_behind(void *argument)
{
    void *block[200];

    (void)argument;
    for (int i = 0; i < 200; i++) block[i] = malloc((size_t)i * 37);
    for (int i = 0; i < 200; i++) free(block[i]);
    return 0;
}

static void wait_for(uintptr_t thread)
{
    must(thread != 0 && WaitForSingleObject((HANDLE)thread, 60000) == WAIT_OBJECT_0);
    CloseHandle((HANDLE)thread);
}

static void ended_threads_leave_nothing(void)
{
    size_t before = 0;

    for (int i = 0; i < 1000; i++) {
        wait_for(_beginthreadex(NULL, 0, leave_blocks_behind, NULL, 0, NULL));
        if (i == 100) before = committed();
    }
    must(committed() < before + (8 << 20));
}

static void *handed[1000];

static unsigned __stdcall take_for_others(void *argument)
{
    (void)argument;
    for (int i = 0; i < 1000; i++) handed[i] = malloc((size_t)i % 500 + 1);
    return 0;
}

static void blocks_outlive_their_thread(void)
{
    wait_for(_beginthreadex(NULL, 0, take_for_others, NULL, 0, NULL));
    for (int i = 0; i < 1000; i++) {
        memset(handed[i], 1, (size_t)i % 500 + 1);
        free(handed[i]);
    }
}

/* ---- threads that are killed ---- */

static volatile LONG ready;

/* It holds blocks, and no lock: that is where programs may kill a thread. */
static unsigned __stdcall wait_to_be_killed(void *argument)
{
    (void)leave_blocks_behind(argument);
    InterlockedIncrement(&ready);
    Sleep(INFINITE);
    return 0;
}

static void killed_threads_take_only_their_own_along(void)
{
    for (int i = 0; i < 50; i++) {
        LONG before = ready;
        HANDLE thread = (HANDLE)_beginthreadex(NULL, 0, wait_to_be_killed, NULL, 0, NULL);

        must(thread != NULL);
        while (ready == before) Sleep(1);
        must(TerminateThread(thread, 0));
        must(WaitForSingleObject(thread, 60000) == WAIT_OBJECT_0);
        CloseHandle(thread);
        must(is_served());
    }
    wait_for(_beginthreadex(NULL, 0, leave_blocks_behind, NULL, 0, NULL));
}

/* ---- fibers ---- */

enum { FIBERS = 10, TURNS = 2000 };

static void *fiber[FIBERS], *main_fiber;
static void *between; /* a block that one fiber took and the next one frees */
static int turns;

static void CALLBACK run_fiber(void *number)
{
    for (;;) {
        void *mine = malloc((size_t)turns % 3000);

        free(between);
        between = malloc(100);
        memset(between, 1, 100);
        turns++;
        SwitchToFiber(turns < TURNS ? fiber[((uintptr_t)number + 1) % FIBERS] : main_fiber);
        free(mine);
    }
}

static unsigned __stdcall run_all_fibers(void *argument)
{
    (void)argument;
    main_fiber = ConvertThreadToFiber(NULL);
    must(main_fiber != NULL);
    SwitchToFiber(fiber[0]);
    for (int i = 0; i < FIBERS; i++) DeleteFiber(fiber[i]);
    must(ConvertFiberToThread());
    return 0;
}

/* Made by one thread, run by another: its blocks are whoever's thread runs it. */
static void fibers_use_the_thread_that_runs_them(void)
{
    for (int i = 0; i < FIBERS; i++) {
        fiber[i] = CreateFiber(0, run_fiber, (void *)(intptr_t)i);
        must(fiber[i] != NULL);
    }
    wait_for(_beginthreadex(NULL, 0, run_all_fibers, NULL, 0, NULL));
    free(between);
}

/* ---- many at once ---- */

enum { THREADS = 8, STEPS = 60000, BLOCKS = 300 };

static void *volatile exchange[64];

static unsigned __stdcall storm(void *number)
{
    uint64_t seed = 88172645463325252u + (uintptr_t)number;
    unsigned char *block[BLOCKS] = { NULL };
    size_t bytes[BLOCKS] = { 0 };

    for (int step = 0; step < STEPS; step++) {
        unsigned at = (unsigned)(random_word(&seed) % BLOCKS);
        size_t wanted = (size_t)1 << random_word(&seed) % 16;

        if (block[at] != NULL)
            must(block[at][0] == (unsigned char)at
                 && block[at][bytes[at] - 1] == (unsigned char)at);
        if (random_word(&seed) % 4 == 0) {
            block[at] = realloc(block[at], wanted);
        } else {
            free(block[at]);
            block[at] = malloc(wanted);
        }
        must(block[at] != NULL);
        bytes[at] = wanted;
        block[at][0] = block[at][wanted - 1] = (unsigned char)at;
        if (step % 8 == 0)
            free(InterlockedExchangePointer((void *volatile *)&exchange[random_word(&seed) % 64],
                                            malloc(wanted)));
    }
    for (int i = 0; i < BLOCKS; i++) free(block[i]);
    return 0;
}

static void many_at_once(void)
{
    uintptr_t thread[THREADS];

    for (int i = 0; i < THREADS; i++)
        thread[i] = _beginthreadex(NULL, 0, storm, (void *)(intptr_t)i, 0, NULL);
    for (int i = 0; i < THREADS; i++) wait_for(thread[i]);
    for (int i = 0; i < 64; i++) free(exchange[i]);
}

int main(void)
{
    must(is_served());
    ended_threads_leave_nothing();
    blocks_outlive_their_thread();
    killed_threads_take_only_their_own_along();
    fibers_use_the_thread_that_runs_them();
    many_at_once();
    return 0;
}
