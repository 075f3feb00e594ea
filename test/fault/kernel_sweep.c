/* kernel_sweep.c - every call that prairie makes of the real kernel, with every error it can give,
 * refused once and from then on, in three lives.
 * SPDX-License-Identifier: MIT
 *
 * usage: kernel_sweep [--hardened] [--faults N] [--once N] [--after N] [--seed N]
 *        kernel_sweep [--hardened] --life NAME --rule CALL:ERROR --nth N [--and-all-after]
 *                     [--seed N]
 *
 * Each row below is a call with its errors. For each life of lives.h, each call and each error,
 * some runs refuse the n-th such call and others all from the n-th on; the n's lie evenly between
 * the first and the last call that the life makes, at most so many as --once and --after say. This
 * is done with one seed after another until N calls were refused (--faults).
 *
 * After a refused call all contents are verified and everything is walked; one refused call costs
 * one refused request at most; when nothing is refused any more, everything can be had again; at
 * the end all is given back, and no more memory is left than in a life without refusals. A life
 * takes at most 2 s of the processor. A call that no life makes fails the sweep: nothing would be
 * tested. So does a sum below N. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "gate.h"
#include "lives.h"

#include "../blackbox/emulator.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
enum { MADV_INSTALL_GUARDS = 102, MADV_REMOVE_GUARDS = 103 };

enum {
    ERRORS_MAX = 10,
    PROCESSOR_SECONDS = 2,
    LIFE_SECONDS = 30,
    SAID_BYTES = 4000,
    BAD_MOST = 20
};

struct error_name {
    int error;
    const char *name;
};

static const struct error_name error_names[] = {
    { EPERM, "EPERM" },         { ENOENT, "ENOENT" },  { ESRCH, "ESRCH" },
    { EINTR, "EINTR" },         { EIO, "EIO" },        { EBADF, "EBADF" },
    { EAGAIN, "EAGAIN" },       { ENOMEM, "ENOMEM" },  { EACCES, "EACCES" },
    { EFAULT, "EFAULT" },       { EINVAL, "EINVAL" },  { ENFILE, "ENFILE" },
    { EMFILE, "EMFILE" },       { ENOSPC, "ENOSPC" },  { ESPIPE, "ESPIPE" },
    { EPIPE, "EPIPE" },         { ENOSYS, "ENOSYS" },  { EHWPOISON, "EHWPOISON" },
    { ETIMEDOUT, "ETIMEDOUT" }, { GATE_HALF, "half" }, { GATE_END, "end" },
};

struct call {
    const char *name;
    long number, word;
    int errors[ERRORS_MAX]; /* 0 after the last */
};

/* Left out: what cannot fail (getpid, gettid, getresuid, exit); waking up, which the kernel never
 * refuses while it lets others sleep; and what only messages of the background thread need
 * (pidfd_open, pidfd_getfd). */
static const struct call calls[] = {
    { "mmap", SYS_mmap, GATE_ANY, { ENOMEM, EPERM, EAGAIN, EINVAL, EACCES, ENOSYS } },
    { "munmap", SYS_munmap, GATE_ANY, { ENOMEM, EINVAL, EPERM } },
    { "mprotect", SYS_mprotect, GATE_ANY, { ENOMEM, EACCES, EINVAL, EPERM, GATE_HALF } },
    { "mremap", SYS_mremap, GATE_ANY, { ENOMEM, EFAULT, EAGAIN, EINVAL, EPERM, ENOSYS } },
    { "madvise_dontneed",
      SYS_madvise,
      MADV_DONTNEED,
      { EAGAIN, EINVAL, ENOMEM, EPERM, ENOSYS, GATE_HALF } },
    { "madvise_dontdump", SYS_madvise, MADV_DONTDUMP, { EINVAL, ENOMEM, EAGAIN } },
    { "madvise_dodump", SYS_madvise, MADV_DODUMP, { EINVAL, ENOMEM, EAGAIN } },
    { "madvise_hugepage", SYS_madvise, MADV_HUGEPAGE, { EINVAL, ENOMEM, EAGAIN } },
    { "madvise_nohugepage", SYS_madvise, MADV_NOHUGEPAGE, { EINVAL, ENOMEM, EAGAIN } },
    { "madvise_populate",
      SYS_madvise,
      MADV_POPULATE_WRITE,
      { EINVAL, ENOMEM, EFAULT, EHWPOISON, EINTR, EAGAIN, GATE_HALF } },
    { "madvise_wipeonfork", SYS_madvise, MADV_WIPEONFORK, { EINVAL, ENOMEM, EAGAIN } },
    { "madvise_keeponfork", SYS_madvise, MADV_KEEPONFORK, { EINVAL, ENOMEM, EAGAIN } },
    { "madvise_guard",
      SYS_madvise,
      MADV_INSTALL_GUARDS,
      { EINVAL, ENOMEM, EINTR, EAGAIN, EPERM, GATE_HALF } },
    { "madvise_unguard", SYS_madvise, MADV_REMOVE_GUARDS, { EINVAL, ENOMEM, EINTR, EAGAIN } },
    { "futex_wait", SYS_futex, FUTEX_WAIT_PRIVATE, { EINTR, EAGAIN, ETIMEDOUT } },
    { "clone", SYS_clone, GATE_ANY, { EAGAIN, EPERM, ENOMEM, ENOSYS } },
    { "sigaction", GATE_SIGACTION, GATE_ANY, { EINVAL, EPERM } },
    { "rt_sigprocmask", SYS_rt_sigprocmask, GATE_ANY, { EPERM, ENOSYS } },
    { "pthread_key_create", GATE_KEY_CREATE, GATE_ANY, { EAGAIN, ENOMEM } },
    { "pthread_setspecific", GATE_SET_SPECIFIC, GATE_ANY, { ENOMEM } },
    { "getcpu", GATE_CURRENT_CORE, GATE_ANY, { ENOSYS, EPERM, EFAULT } },
    { "sched_getaffinity", SYS_sched_getaffinity, GATE_ANY, { ENOSYS, EPERM, EINVAL } },
    { "clock_gettime", SYS_clock_gettime, GATE_ANY, { ENOSYS, EPERM, EINVAL } },
    { "getrandom", SYS_getrandom, GATE_ANY, { ENOSYS, EPERM, EAGAIN, EINTR } },
    { "prlimit64", SYS_prlimit64, GATE_ANY, { EPERM, ENOSYS, EINVAL } },
    { "process_vm_readv", SYS_process_vm_readv, GATE_ANY, { EPERM, ENOSYS, EFAULT, ESRCH } },
    { "capget", SYS_capget, GATE_ANY, { EPERM, ENOSYS } },
    { "openat",
      SYS_openat,
      GATE_ANY,
      { EACCES, EMFILE, ENFILE, ENOENT, ENOMEM, EPERM, EINTR, ENOSYS } },
    { "read", SYS_read, GATE_ANY, { EIO, EINTR, EAGAIN, ESRCH, GATE_HALF, GATE_END } },
    { "write", SYS_write, GATE_ANY, { EIO, EINTR, EAGAIN, ENOSPC, EPIPE, GATE_HALF, GATE_END } },
    { "close", SYS_close, GATE_ANY, { EIO, EINTR } },
    { "lseek", SYS_lseek, GATE_ANY, { ESPIPE, EINVAL } },
    { "close_range", SYS_close_range, GATE_ANY, { ENOSYS, EMFILE, ENOMEM, EINVAL } },
    { "readlinkat", SYS_readlinkat, GATE_ANY, { ENOENT, EACCES, EINVAL, ENOSYS } },
};

enum { CALL_COUNT = sizeof calls / sizeof *calls };

/* A wait that is refused for ever is a busy loop until what is waited for comes. */
static bool only_once(const struct call *call) { return call->number == SYS_futex; }
/* The one chooses a secret, the other has guarded blocks. */
static bool only_of_hardened(const struct call *call) { return call->number == SYS_getrandom; }
static bool never_of_hardened(const struct call *call) { return call->number == GATE_SIGACTION; }

/* What happened, of a sweep or of all. */
struct sum {
    uint64_t lives, once, after, requests, walks, bad;
};

/* How many n's of each rule, and what is different from run to run. */
struct pace {
    unsigned once, after;
    uint64_t seed;
};

static struct account *account;
static struct account quiet[LIFE_COUNT]; /* of lives without refusals */
static bool call_was_made[CALL_COUNT];
static char said[SAID_BYTES];

/* ---- a life ---- */

static _Noreturn void be_born(const struct life *life, uint64_t seed, int words)
{
    const rlim_t seconds = PROCESSOR_SECONDS * times_slower();
    const struct rlimit processor = { seconds, seconds };

    (void)setrlimit(RLIMIT_CPU, &processor);
    (void)alarm(LIFE_SECONDS * times_slower());
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* clearing huge pages is what takes time */
    (void)dup2(words, STDERR_FILENO);
    live_whole_life(life, seed, account);
}

static void keep_words(int words)
{
    ssize_t got = pread(words, said, sizeof said - 1, 0);

    said[got > 0 ? got : 0] = '\0';
}

/* Returns how it ended, as from waitpid. */
static int run_life(const struct life *life, uint64_t seed)
{
    int status = -1, words = memfd_create("words", MFD_CLOEXEC);
    pid_t child;

    *account = (struct account){ 0 };
    child = fork();
    if (child == 0) be_born(life, seed, words);
    if (child < 0 || waitpid(child, &status, 0) != child) status = -1;
    keep_words(words);
    close(words);
    return status;
}

/* NULL: it went well. */
static const char *what_is_wrong(int status, unsigned life, bool once)
{
    const struct account *usual = &quiet[life];

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return "it hangs";
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
        return "it takes more than 2 s";
    if (status != 0) return "it ended badly";
    if (!account->ended) return "it did not come to its end";
    if (once && account->requests > 1) return "one refused call cost several requests";
    if (usual->ended && account->resident_kb > usual->resident_kb + lives[life].left_kb)
        return "memory is lost";
    return NULL;
}

/* ---- a rule ---- */

static const char *error_name(int error)
{
    for (unsigned i = 0; i < sizeof error_names / sizeof *error_names; i++)
        if (error_names[i].error == error) return error_names[i].name;
    return "?";
}

/* Returns how many calls the life made. */
static uint64_t refuse_and_judge(unsigned life, const struct call *call, int error, uint64_t nth,
                                 bool and_all_after, uint64_t seed, struct sum *sum)
{
    const struct gate_rule rule = { call->number, call->word, error };
    const char *wrong;
    int status;

    gate_refuse(&rule, nth, and_all_after);
    status = run_life(&lives[life], seed);
    sum->lives++;
    *(and_all_after ? &sum->after : &sum->once) += account->refused;
    sum->requests += account->requests;
    sum->walks += account->walks;
    wrong = what_is_wrong(status, life, !and_all_after);
    if (wrong == NULL) return account->seen;
    sum->bad++;
    printf(
        "FAILED: %s: status 0x%x, %llu refused, %llu requests refused, %ld KiB left, usually %ld\n"
        "%srepeat: --life %s --rule %s:%s --nth %llu%s --seed %llu\n",
        wrong, (unsigned)status, (unsigned long long)account->refused,
        (unsigned long long)account->requests, account->resident_kb, quiet[life].resident_kb, said,
        lives[life].name, call->name, error_name(error), (unsigned long long)nth,
        and_all_after ? " --and-all-after" : "", (unsigned long long)seed);
    return account->seen;
}

/* The i-th of `count` numbers that lie evenly between 1 and `most`, moved a little by the seed. */
static uint64_t evenly(unsigned i, unsigned count, uint64_t most, uint64_t seed)
{
    uint64_t step;

    if (most <= count) return i + 1;
    step = most / count;
    return 1 + i * step + (i == 0 ? 0 : seed * 7919 % step);
}

static void sweep_rule(unsigned life, const struct call *call, int error, uint64_t most,
                       const struct pace *pace, struct sum *sum)
{
    for (unsigned i = 0; i < pace->once && i < most && sum->bad < BAD_MOST; i++)
        (void)refuse_and_judge(life, call, error, evenly(i, pace->once, most, pace->seed), false,
                               pace->seed, sum);
    if (only_once(call)) return;
    for (unsigned i = 0; i < pace->after && i < most && sum->bad < BAD_MOST; i++)
        (void)refuse_and_judge(life, call, error, evenly(i, pace->after, most, pace->seed), true,
                               pace->seed, sum);
}

/* ---- the sweep ---- */

static void add(struct sum *sum, const struct sum *more)
{
    sum->lives += more->lives;
    sum->once += more->once;
    sum->after += more->after;
    sum->requests += more->requests;
    sum->walks += more->walks;
    sum->bad += more->bad;
}

static void sweep_call(unsigned life, unsigned index, const struct pace *pace, struct sum *all)
{
    const struct call *call = &calls[index];
    struct sum sum = { 0 };
    unsigned errors = 0;
    uint64_t most = refuse_and_judge(life, call, EINVAL, 0, false, pace->seed, &sum);

    if (most != 0) call_was_made[index] = true;
    for (; errors < ERRORS_MAX && call->errors[errors] != 0 && most != 0; errors++)
        sweep_rule(life, call, call->errors[errors], most, pace, &sum);
    if (most != 0)
        printf("%-9s %-20s %5llu calls, %2u errors: %5llu lives, %6llu refused once, %7llu after "
               "that, %llu bad\n",
               lives[life].name, call->name, (unsigned long long)most, errors,
               (unsigned long long)sum.lives, (unsigned long long)sum.once,
               (unsigned long long)sum.after, (unsigned long long)sum.bad);
    add(all, &sum);
}

/* How a life goes, and what it leaves, when nothing is refused. */
static bool live_quietly(unsigned life, uint64_t seed)
{
    const struct gate_rule none = { GATE_ANY, GATE_ANY, 0 };
    int status;

    quiet[life].ended = false;
    gate_refuse(&none, 0, false);
    status = run_life(&lives[life], seed);
    quiet[life] = *account;
    if (what_is_wrong(status, life, true) == NULL && account->requests == 0) return true;
    printf("FAILED: %s, and nothing was refused: status 0x%x, %llu requests refused\n%s",
           lives[life].name, (unsigned)status, (unsigned long long)account->requests, said);
    return false;
}

static void sweep_all(const struct pace *pace, struct sum *all)
{
    for (unsigned life = 0; life < LIFE_COUNT; life++) {
        if (!live_quietly(life, pace->seed)) {
            all->bad++;
            continue;
        }
        for (unsigned i = 0; i < CALL_COUNT && all->bad < BAD_MOST; i++)
            sweep_call(life, i, pace, all);
    }
}

static unsigned count_calls_never_made(void)
{
    unsigned never = 0;

    for (unsigned i = 0; i < CALL_COUNT; i++) {
        if (call_was_made[i]) continue;
        if (lives_are_hardened ? never_of_hardened(&calls[i]) : only_of_hardened(&calls[i]))
            continue;
        printf("FAILED: no life makes the call %s, so nothing was tested\n", calls[i].name);
        never++;
    }
    return never;
}

static bool sweep(struct pace pace, uint64_t faults_wanted)
{
    struct sum all = { 0 };
    uint64_t before;
    unsigned never, seeds = 0;

    do {
        before = all.once + all.after;
        sweep_all(&pace, &all);
        pace.seed++;
        seeds++;
    } while (all.bad == 0 && all.once + all.after < faults_wanted && all.once + all.after > before);
    never = count_calls_never_made();
    printf("kernel_sweep: %llu calls refused (%llu once, %llu after the first) in %llu lives, %u "
           "seeds; %llu requests refused, %llu walks, %llu bad\n",
           (unsigned long long)(all.once + all.after), (unsigned long long)all.once,
           (unsigned long long)all.after, (unsigned long long)all.lives, seeds,
           (unsigned long long)all.requests, (unsigned long long)all.walks,
           (unsigned long long)all.bad);
    if (all.once + all.after < faults_wanted)
        printf("FAILED: %llu calls were to be refused\n", (unsigned long long)faults_wanted);
    return all.bad == 0 && never == 0 && all.once + all.after >= faults_wanted;
}

/* ---- one life, by hand ---- */

static _Noreturn void usage(void)
{
    fprintf(stderr,
            "usage: kernel_sweep [--hardened] [--faults N] [--once N] [--after N] [--seed N]\n"
            "       kernel_sweep [--hardened] --life NAME --rule CALL:ERROR --nth N "
            "[--and-all-after]\n"
            "                    [--seed N]\n");
    exit(2);
}

static bool repeat(const char *life_name, const char *rule, uint64_t nth, bool and_all_after,
                   uint64_t seed)
{
    const char *colon = strchr(rule, ':');
    struct sum sum = { 0 };

    for (unsigned life = 0; life < LIFE_COUNT && colon != NULL; life++)
        for (unsigned i = 0; i < CALL_COUNT; i++)
            for (unsigned e = 0; e < ERRORS_MAX && calls[i].errors[e] != 0; e++) {
                if (strcmp(lives[life].name, life_name) != 0
                    || strlen(calls[i].name) != (size_t)(colon - rule)
                    || strncmp(calls[i].name, rule, (size_t)(colon - rule)) != 0
                    || strcmp(error_name(calls[i].errors[e]), colon + 1) != 0)
                    continue;
                if (!live_quietly(life, seed)) return false;
                printf("%llu calls\n",
                       (unsigned long long)refuse_and_judge(life, &calls[i], calls[i].errors[e],
                                                            nth, and_all_after, seed, &sum));
                return sum.bad == 0;
            }
    usage();
}

int main(int argc, char **argv)
{
    struct pace pace = { .once = 3, .after = 2, .seed = 1 };
    const char *life = NULL, *rule = NULL;
    uint64_t faults = 0, nth = 0;
    bool and_all_after = false;

    for (int i = 1; i < argc; i++) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--and-all-after") == 0) and_all_after = true;
        else if (strcmp(argv[i], "--hardened") == 0) lives_are_hardened = true;
        else if (value == NULL) usage();
        else if (strcmp(argv[i], "--faults") == 0) faults = strtoull(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--once") == 0) pace.once = (unsigned)atoi(value), i++;
        else if (strcmp(argv[i], "--after") == 0) pace.after = (unsigned)atoi(value), i++;
        else if (strcmp(argv[i], "--seed") == 0) pace.seed = strtoull(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--nth") == 0) nth = strtoull(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--life") == 0) life = value, i++;
        else if (strcmp(argv[i], "--rule") == 0) rule = value, i++;
        else usage();
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    gate_make();
    account =
        mmap(NULL, sizeof *account, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (account == MAP_FAILED) return 2;
    if ((life == NULL) != (rule == NULL)) usage();
    if (life != NULL) return !repeat(life, rule, nth, and_all_after, pace.seed);
    return !sweep(pace, faults);
}
