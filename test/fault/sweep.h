/* sweep.h - a scripted life in a process of its own, with kernel calls refused from each one on. */
/* SPDX-License-Identifier: MIT */
/*
 * The program that includes it says what a life does and what must hold after it:
 *
 *      live        the script; calls are refused meanwhile
 *      live_on     the kernel refuses nothing any more; complains and exits if anything is wrong
 *      sweep_all   all sweeps; returns how many things were bad
 *
 * and is started without arguments, or for a debugger as
 *
 *      PROGRAM N [ROW]      one life with ROW calls from N on refused
 */
#ifndef PRAIRIE_TEST_FAULT_SWEEP_H
#define PRAIRIE_TEST_FAULT_SWEEP_H

#include "kernel/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIFE_SECONDS = 100, BAD_MOST = 10 };

/* What a life tells the sweep; in memory that they share. */
static struct account {
    uint64_t failures;
    unsigned refusals, low, steps;
    bool ended;
} * account;

static void live(void);
static void live_on(void);
static unsigned sweep_all(void);

static _Noreturn void live_and_live_on(void)
{
    alarm(LIFE_SECONDS);
    live();
    fake_fail_nth(0);
    fake_fail_all(false);
    account->failures = fake_failures();
    live_on();
    account->ended = true;
    _exit(0);
}

/* True: the life came to a good end. */
static bool run_life(uint64_t call, uint64_t row)
{
    int status = -1;
    pid_t life;

    *account = (struct account){ 0 };
    life = fork();
    if (life == 0) {
        fake_fail_row(call, row);
        live_and_live_on();
    }
    return life > 0 && waitpid(life, &status, 0) == life && status == 0 && account->ended;
}

struct swept {
    uint64_t call; /* from which on nothing was left to refuse */
    unsigned lives, refusals, low, bad;
};

/* Lives with `row` calls in a row refused, which may cost each of them so many requests at most. Of
 * the calls behind the first `dense_calls`, more and more are stepped over. */
static struct swept sweep_calls(uint64_t row, uint64_t dense_calls, unsigned refusals_most)
{
    struct swept swept = { .call = 1 };

    for (;; swept.call += row + swept.call / dense_calls, swept.lives++) {
        if (!run_life(swept.call, row) || account->refusals > refusals_most) {
            printf("FAILED: %llu calls from call %llu on refused: %u requests refused\n",
                   (unsigned long long)row, (unsigned long long)swept.call, account->refusals);
            swept.bad++;
        }
        swept.refusals += account->refusals;
        swept.low += account->low;
        if ((account->ended && account->failures == 0) || swept.bad == BAD_MOST) break;
    }
    printf("%llu calls in a row refused: %u lives, %u times LOW, %u requests refused, %u bad\n",
           (unsigned long long)row, swept.lives, swept.low, swept.refusals, swept.bad);
    return swept;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    account =
        mmap(NULL, sizeof *account, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (account == MAP_FAILED) return 2;
    if (argc > 1) {
        fake_fail_row(strtoull(argv[1], NULL, 10), argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
        live_and_live_on();
    }
    return sweep_all() != 0;
}

#endif
