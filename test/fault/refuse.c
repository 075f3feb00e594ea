/* refuse.c - runs a program again and again, and makes the kernel refuse its allocator's n-th call.
 * SPDX-License-Identifier: MIT
 *
 * usage: refuse [--library FILE] [--seconds S] [--rule CALL:ERROR] [--every] [--nth N]
 *               [--and-all-after] -- PROGRAM ARGUMENTS...
 *
 * Each rule below names a system call and an error. For every rule the program runs with the first
 * such call refused, then with the second, and so on, until a run ends in which fewer were made;
 * then with all of them refused from the n-th on, for n = 1, 2, 4, 8 ... Where the library does the
 * same whatever the error, one error of a call stands for the others, of which the first half, too,
 * tries n = 1, 2, 4, 8 ... only, unless --every is given. With --and-all-after there is only the
 * second half; with --nth one run alone. Only calls made from the code of the library
 * (PRAIRIE_LIBRARY) count: those of the loader and of the program itself go through. A run must end
 * with status 0 within the seconds. The program checks its own memory; the stress test does.
 *
 * A seccomp filter stops the program at the calls in question only, and ptrace then answers for the
 * kernel, so the program runs at full speed otherwise. Its threads and children are followed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_SKIPPED = 77, NTH_MAX = 100000, SAID_BYTES = 2000 };

struct rule {
    const char *name;
    int call;
    int error;
    bool expected; /* in every program: a sweep that sees no such call tests nothing, and fails */
    /* Only moves to a fixed place, whose old mapping is gone when they are refused. Another
     * thread's mapping may come to lie in such a hole, and nobody could tell: for programs of one
     * thread, by name. */
    bool hole;
    bool alike; /* the library does what it does for another error of this call */
};

static const struct rule rules[] = {
    { "mmap:ENOMEM", SYS_mmap, ENOMEM, true, false, false },
    { "mmap:EPERM", SYS_mmap, EPERM, true, false, true },
    { "mmap:EAGAIN", SYS_mmap, EAGAIN, true, false, true },
    { "mprotect:ENOMEM", SYS_mprotect, ENOMEM, true, false, false },
    { "mprotect:EACCES", SYS_mprotect, EACCES, true, false, true },
    { "madvise:EAGAIN", SYS_madvise, EAGAIN, true, false, false },
    { "madvise:EINVAL", SYS_madvise, EINVAL, true, false, false },
    { "madvise:ENOMEM", SYS_madvise, ENOMEM, true, false, true },
    { "madvise:EPERM", SYS_madvise, EPERM, true, false, true },
    { "mremap:ENOMEM", SYS_mremap, ENOMEM, false, false, false },
    { "mremap:hole", SYS_mremap, ENOMEM, false, true, false },
    { "mremap:EFAULT", SYS_mremap, EFAULT, false, false, false },
    { "munmap:ENOMEM", SYS_munmap, ENOMEM, false, false, false },
    { "munmap:EINVAL", SYS_munmap, EINVAL, false, false, true },
    { "clone:EAGAIN", SYS_clone, EAGAIN, false, false, false },
    { "clone:EPERM", SYS_clone, EPERM, false, false, true },
    { "prlimit64:EPERM", SYS_prlimit64, EPERM, false, false, false },
    { "sched_getaffinity:ENOSYS", SYS_sched_getaffinity, ENOSYS, false, false, false },
    { "openat:EACCES", SYS_openat, EACCES, false, false, false },
    { "openat:EMFILE", SYS_openat, EMFILE, false, false, true },
    { "openat:ENOENT", SYS_openat, ENOENT, false, false, true },
    { "read:EIO", SYS_read, EIO, false, false, false },
    { "getrandom:ENOSYS", SYS_getrandom, ENOSYS, false, false, false },
    { "membarrier:ENOSYS", SYS_membarrier, ENOSYS, false, false, false },
};
enum { RULE_COUNT = sizeof rules / sizeof *rules };

/* One run of the program. */
struct run {
    const struct rule *rule;
    unsigned long nth;
    bool and_all_after;
    unsigned long seen;            /* calls of the rule made by the library */
    unsigned long refused;         /* of them */
    uint64_t code_start, code_end; /* of the library in the program; 0: not loaded yet */
    int status;                    /* as from waitpid */
    bool too_long;
    char said[SAID_BYTES]; /* the end of what it wrote to stderr */
};

static const char *library;
static char **command;
static unsigned seconds_max = 20;
static bool every;
static volatile sig_atomic_t time_is_up;
static unsigned long calls_seen, calls_refused; /* of all rules and runs */

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "refuse: %s: %s\n", what, strerror(errno));
    exit(EXIT_USAGE);
}

static void note_time(int number)
{
    (void)number;
    time_is_up = 1;
}

static void install_filter(int call)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) die("no_new_privs");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) die("seccomp");
}

static _Noreturn void become_program(const struct run *run, int said)
{
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    dup2(said, STDERR_FILENO);
    setenv("LD_PRELOAD", library, 1);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) die("cannot be traced");
    raise(SIGSTOP);
    install_filter(run->rule->call);
    execvp(command[0], command);
    die(command[0]);
}

/* Some machines, and filters around containers, forbid it. */
static bool may_trace(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? 0 : errno);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) die("fork");
    return WEXITSTATUS(status) != EPERM && WEXITSTATUS(status) != ENOSYS;
}

/* Finds the library's code in the program, once it is there. */
static void find_library(struct run *run, pid_t pid)
{
    char path[64], line[512];
    const char *slash = strrchr(library, '/');
    const char *name = slash != NULL ? slash + 1 : library;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "r");
    if (maps == NULL) return;
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end;
        char access[8];
        const char *file = strrchr(line, '/');
        if (sscanf(line, "%lx-%lx %7s", &start, &end, access) != 3 || access[2] != 'x') continue;
        if (file == NULL || strncmp(file + 1, name, strlen(name)) != 0) continue;
        run->code_start = start;
        run->code_end = end;
    }
    fclose(maps);
}

/* Lets the call take away what is mapped at the fixed place where it would move pages to, and
 * nothing else. */
static void make_hole(pid_t pid, struct user_regs_struct registers)
{
    struct user_regs_struct instead = registers;
    int status;

    instead.orig_rax = SYS_munmap;
    instead.rdi = registers.r8;
    instead.rsi = registers.rdx;
    if (ptrace(PTRACE_SETREGS, pid, NULL, &instead) != 0) die("cannot change a call");
    ptrace(PTRACE_SYSCALL, pid, NULL, 0);
    if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status)) die("no end of a call");
    if (ptrace(PTRACE_GETREGS, pid, NULL, &instead) != 0 || instead.rax != 0) die("no hole");
}

/* At a call of the rule, before the kernel sees it: counts it, and answers in its place if it is
 * time. */
static void answer_call(struct run *run, pid_t pid)
{
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0) return; /* killed meanwhile */
    if (run->code_end == 0) find_library(run, pid);
    if (registers.rip < run->code_start || registers.rip >= run->code_end) return;
    if (run->rule->hole && (registers.r10 & MREMAP_FIXED) == 0) return;
    run->seen++;
    if (run->seen != run->nth && !(run->and_all_after && run->seen > run->nth)) return;
    if (run->rule->hole) make_hole(pid, registers);
    registers.orig_rax = (unsigned long long)-1;
    registers.rax = (unsigned long long)-run->rule->error;
    /* The program may end meanwhile, and takes a background thread that stands here along. */
    if (ptrace(PTRACE_SETREGS, pid, NULL, &registers) == 0) run->refused++;
    else if (errno != ESRCH) die("cannot answer a call");
}

/* 0: no more. Else time is up each second from then on, for the first signal may come just before
 * the wait that it is to end. */
static void set_clock(unsigned seconds)
{
    struct itimerval clock = { { seconds != 0, 0 }, { seconds, 0 } };

    time_is_up = 0;
    if (setitimer(ITIMER_REAL, &clock, NULL) != 0) die("no clock");
}

/* Follows the program, its threads and its children to their ends. */
static void follow(struct run *run, pid_t first)
{
    int status;
    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (time_is_up && !run->too_long) {
            run->too_long = true;
            kill(first, SIGKILL);
        }
        if (pid < 0 && errno == EINTR) continue;
        if (pid < 0) return;
        if (!WIFSTOPPED(status)) {
            if (pid == first) run->status = status;
            continue;
        }
        int number = WSTOPSIG(status), event = status >> 16;
        if (event == PTRACE_EVENT_SECCOMP) answer_call(run, pid);
        bool own_stop = event != 0 || number == SIGSTOP || number == SIGTRAP;
        ptrace(PTRACE_CONT, pid, NULL, own_stop ? 0 : number);
    }
}

static void keep_end_of(int said, char *text)
{
    off_t bytes = lseek(said, 0, SEEK_END);
    off_t from = bytes > SAID_BYTES - 1 ? bytes - (SAID_BYTES - 1) : 0;
    ssize_t got = pread(said, text, SAID_BYTES - 1, from);
    text[got > 0 ? got : 0] = '\0';
}

static void run_program(struct run *run)
{
    int said = memfd_create("said", 0);
    pid_t pid = fork();
    if (pid < 0) die("fork");
    if (pid == 0) become_program(run, said);
    int status;
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) die("the program did not start");
    long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK
                 | PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, pid, NULL, options) != 0) die("cannot set options");
    set_clock(seconds_max);
    ptrace(PTRACE_CONT, pid, NULL, 0);
    follow(run, pid);
    set_clock(0);
    keep_end_of(said, run->said);
    close(said);
}

/* True when the run ended well; else says how it ended and how to repeat it. */
static bool judge(const struct run *run)
{
    if (!run->too_long && WIFEXITED(run->status) && WEXITSTATUS(run->status) == 0) return true;
    printf("FAILED: %s, call %lu%s refused: ", run->rule->name, run->nth,
           run->and_all_after ? " and all after it" : "");
    if (run->too_long) printf("no end after %u s\n", seconds_max);
    else if (WIFSIGNALED(run->status)) printf("signal %d\n", WTERMSIG(run->status));
    else printf("exit %d\n", WEXITSTATUS(run->status));
    printf("%s", run->said);
    printf("repeat: refuse --rule %s --nth %lu%s --\n", run->rule->name, run->nth,
           run->and_all_after ? " --and-all-after" : "");
    return false;
}

/* Returns the number of failed runs. With only_all_after the first half is left out: for programs
 * whose calls come in another order each time, so that n means nothing. */
static unsigned sweep(const struct rule *rule, bool only_all_after)
{
    unsigned failed = 0, runs = 0;
    unsigned long most = 0, refused = 0;
    bool sparse = rule->alike && !every;
    for (unsigned long nth = 1; nth < NTH_MAX && !only_all_after; nth += sparse ? nth : 1, runs++) {
        struct run run = { .rule = rule, .nth = nth };
        run_program(&run);
        if (run.seen > most) most = run.seen;
        failed += !judge(&run);
        refused += run.refused;
        if (run.seen < nth) break;
    }
    for (unsigned long nth = 1; nth < NTH_MAX; nth *= 2, runs++) {
        struct run run = { .rule = rule, .nth = nth, .and_all_after = true };
        run_program(&run);
        if (run.seen > most) most = run.seen;
        failed += !judge(&run);
        refused += run.refused;
        if (run.seen < nth) break;
    }
    printf("%-26s %4lu calls, %4u runs, %6lu refused, %u failed\n", rule->name, most, runs, refused,
           failed);
    calls_seen += most;
    calls_refused += refused;
    if (most == 0 && rule->expected && !only_all_after) {
        printf("FAILED: the library made no such call, so nothing was tested\n");
        failed++;
    }
    return failed;
}

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: refuse [--library FILE] [--seconds S] [--rule CALL:ERROR] [--every] "
                    "[--nth N [--and-all-after]] -- PROGRAM ARGUMENTS...\n");
    exit(EXIT_USAGE);
}

static unsigned repeat_one(const char *rule_name, unsigned long nth, bool and_all_after)
{
    for (unsigned i = 0; i < RULE_COUNT; i++) {
        if (rule_name == NULL || strcmp(rules[i].name, rule_name) != 0) continue;
        struct run run = { .rule = &rules[i], .nth = nth, .and_all_after = and_all_after };
        run_program(&run);
        printf("%lu calls\n%s", run.seen, run.said);
        return !judge(&run);
    }
    usage();
}

int main(int argc, char **argv)
{
    const char *rule_name = NULL;
    unsigned long nth = 0;
    unsigned failed = 0, at = 1, swept = 0;
    bool and_all_after = false;

    library = getenv("PRAIRIE_LIBRARY");
    for (; at < (unsigned)argc && strcmp(argv[at], "--") != 0; at++) {
        const char *value = argv[at + 1];
        if (strcmp(argv[at], "--and-all-after") == 0) and_all_after = true;
        else if (strcmp(argv[at], "--every") == 0) every = true;
        else if (value == NULL) usage();
        else if (strcmp(argv[at], "--library") == 0) library = value, at++;
        else if (strcmp(argv[at], "--seconds") == 0) seconds_max = (unsigned)atoi(value), at++;
        else if (strcmp(argv[at], "--rule") == 0) rule_name = value, at++;
        else if (strcmp(argv[at], "--nth") == 0) nth = strtoul(value, NULL, 10), at++;
        else usage();
    }
    command = argv + at + 1;
    if (library == NULL || at + 1 >= (unsigned)argc) usage();
    sigaction(SIGALRM, &(struct sigaction){ .sa_handler = note_time }, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!may_trace()) {
        printf("skipped: no program may be traced here\n");
        return EXIT_SKIPPED;
    }

    if (nth != 0) return repeat_one(rule_name, nth, and_all_after) != 0;
    for (unsigned i = 0; i < RULE_COUNT; i++) {
        bool named = rule_name != NULL && strcmp(rules[i].name, rule_name) == 0;

        if (!named && (rule_name != NULL || rules[i].hole)) continue;
        failed += sweep(&rules[i], and_all_after);
        swept++;
    }
    if (swept == 0) usage();
    if (calls_seen == 0) {
        printf("FAILED: the library made no such call, so nothing was tested\n");
        failed++;
    }
    printf("refuse: %lu calls were refused, %u of the rules' runs failed\n", calls_refused, failed);
    return failed != 0;
}
