/* slow_huge.c - huge pages that the kernel is slow to find are not asked for, and later again. */
/* SPDX-License-Identifier: MIT */
/* The clock of the thread's processor is the test's: each look at it finds it `step_us` later. */
#include "../blackbox/filter.h"
#include "../blackbox/use.h"

#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

enum { BLOCK_BYTES = 1 << 20, BLOCKS_MAX = 400 };
enum { QUICK_US = 300, SLOW_US = 5000 };

static volatile long step_us = QUICK_US, looks;

static void tell_time(int number, siginfo_t *info, void *context)
{
    static long now_us;
    struct timespec *into;

    (void)number, (void)info;
#if defined(__x86_64__)
    into = (struct timespec *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RSI];
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 0;
#elif defined(__aarch64__)
    into = (struct timespec *)((ucontext_t *)context)->uc_mcontext.regs[1];
    ((ucontext_t *)context)->uc_mcontext.regs[0] = 0;
#else
    (void)context;
    return;
#endif
    looks++;
    now_us += step_us;
    *into = (struct timespec){ now_us / 1000000, now_us % 1000000 * 1000 };
}

static void take_the_clock(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_THREAD_CPUTIME_ID, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sigaction action = { .sa_sigaction = tell_time, .sa_flags = SA_SIGINFO };
    struct timespec now;

    must(sigaction(SIGSYS, &action, NULL) == 0);
    filter_calls(filter, sizeof filter / sizeof filter[0]);
    (void)syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    if (looks == 0) skip_test("calls that are filtered cannot be answered here");
}

static char *blocks[BLOCKS_MAX];
static unsigned block_count;

static void grow_by(unsigned count)
{
    for (; count > 0; count--) {
        must(block_count < BLOCKS_MAX);
        blocks[block_count] = malloc(BLOCK_BYTES);
        must(blocks[block_count] != NULL);
        blocks[block_count][0] = 1;
        block_count++;
    }
}

/* Does the mapping of the last block ask the kernel for huge pages ("hg"), or refuse them
 * ("nh")? */
static bool asks_for_huge_pages(void)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    uintptr_t at = (uintptr_t)blocks[block_count - 1];
    bool inside = false, asks = false, refuses = false;
    unsigned long start, end;
    char line[512];

    must(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) inside = at >= start && at < end;
        if (!inside || strncmp(line, "VmFlags:", 8) != 0) continue;
        asks = strstr(line, " hg") != NULL;
        refuses = strstr(line, " nh") != NULL;
    }
    (void)fclose(file);
    must(!(asks && refuses));
    if (!asks && !refuses) skip_test("the kernel has no huge pages");
    return asks;
}

int main(void)
{
    unsigned before;

    require_prairie();
    take_the_clock();
    grow_by(64);
    must(asks_for_huge_pages());
    must(looks > 1);
    step_us = SLOW_US;
    grow_by(64);
    for (unsigned i = 0; i < 8 && asks_for_huge_pages(); i++) grow_by(1); /* again, for a moment */
    must(!asks_for_huge_pages());
    step_us = QUICK_US;
    for (before = block_count; !asks_for_huge_pages();) grow_by(1);
    printf("asked for again after %u MiB more\n", block_count - before);
    while (block_count > 0) free(blocks[--block_count]);
    walk_heap();
    return 0;
}
