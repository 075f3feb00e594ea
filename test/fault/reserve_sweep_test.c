/* reserve_sweep_test.c - a life with a reserve, callbacks and limits, the n-th kernel call refused, for each n. */
/* SPDX-License-Identifier: MIT */
/*
 * The script takes and frees until memory runs short, again and again; a callback drops the oldest. Whatever
 * the kernel refuses, everything that prairie knows stays whole, and when it stops refusing, the reserve fills
 * up and nothing was lost.
 *
 *      reserve_sweep N [ROW]      one life with ROW calls from N on refused, for a debugger
 */
#include <prairie/prairie.h>
#include <prairie/reserve.h>

#include "os/fake.h"
#include "pages/reserve.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEPT_MAX = 3000, TURNS = 3, LIFE_SECONDS = 60, CALLS_LEAST = 20, BAD_MOST = 10 };
enum { RESERVE_WANTED = 256 * 1024 };

static char *kept[KEPT_MAX];
static unsigned first, count;

static struct account {
    uint64_t failures;
    unsigned low, refused;
    bool ended;
} * account;

static _Noreturn void complain(const char *what, size_t number)
{
    fprintf(stderr, "%s (%zu)\n", what, number);
    _exit(1);
}

static void drop_one(void)
{
    char *block = kept[first++ % KEPT_MAX];

    count--;
    if (*block != 7) complain("a block changed", (size_t)*block);
    prairie_free(block);
}

static void drop(void *unused, reserve_cnd_t condition, size_t size)
{
    (void)unused, (void)size;
    if (condition == RESERVE_CND_FAIL) complain("nobody asked for an end", size);
    account->low++;
    for (unsigned wanted = count / 3; wanted > 0; wanted--) drop_one();
}

static void keep(size_t bytes)
{
    char *block = prairie_malloc(bytes);

    if (block == NULL) {
        account->refused++;
        return;
    }
    *block = 7;
    if (count == KEPT_MAX) drop_one();
    kept[(first + count++) % KEPT_MAX] = block;
}

static void live(void)
{
    static const size_t sizes[] = { 100, 3000, 20000, 60, 9000, 700, 40000, 16 };

    if (reserve_min_set(RESERVE_WANTED)) account->low++;
    (void)reserve_cb_register(drop, NULL);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        limit_hard_set(turn % 3 == 1 ? 3 << 20 : 0);
        limit_soft_set(turn % 3 == 2 ? 3 << 20 : 0);
        for (unsigned i = 0; i < 1500; i++) keep(sizes[(i + turn) % 8]);
        prairie_check_all();
        while (count > 100) drop_one();
        fake_clock_ms(300);
        (void)reserve_min_set(RESERVE_WANTED - turn * 8192);
    }
}

static _Noreturn void live_and_live_on(void)
{
    alarm(LIFE_SECONDS);
    live();
    fake_fail_nth(0);
    account->failures = fake_failures();
    limit_hard_set(0);
    limit_soft_set(0);
    while (count > 0) drop_one();
    fake_clock_ms(1000);
    if (reserve_min_set(RESERVE_WANTED)) complain("the reserve stays short", reserve_cur_get());
    prairie_check_all();
    if (reserve_cur_get() != RESERVE_WANTED) complain("the reserve has", reserve_cur_get());
    (void)reserve_min_set(0);
    (void)reserve_cb_unregister(drop, NULL);
    (void)prairie_purge();
    prairie_check_all();
    if (run_used_pages() != 0) complain("pages were lost", run_used_pages());
    account->ended = true;
    _exit(0);
}

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

static unsigned sweep(uint64_t row)
{
    unsigned bad = 0, lives = 0, low = 0, refused = 0;
    uint64_t call = 1;

    for (;; call += row + call / 100, lives++) { /* the late ones resemble each other */
        if (!run_life(call, row)) {
            printf("FAILED: %llu calls from call %llu on refused\n", (unsigned long long)row,
                   (unsigned long long)call);
            bad++;
        }
        low += account->low;
        refused += account->refused;
        if ((account->ended && account->failures == 0) || bad == BAD_MOST) break;
    }
    printf("%llu calls in a row refused: %u lives, %u times LOW, %u requests refused, %u bad\n",
           (unsigned long long)row, lives, low, refused, bad);
    return bad + (call < CALLS_LEAST) + (low == 0);
}

int main(int argc, char **argv)
{
    unsigned bad;

    setvbuf(stdout, NULL, _IOLBF, 0);
    account =
        mmap(NULL, sizeof *account, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (account == MAP_FAILED) return 2;
    if (argc > 1) {
        fake_fail_row(strtoull(argv[1], NULL, 10), argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
        live_and_live_on();
    }
    bad = sweep(1);
    bad += sweep(4);
    bad += sweep(25);
    return bad != 0;
}
