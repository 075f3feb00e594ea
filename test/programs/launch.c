/* launch.c - runs one program and reports what its whole tree of processes used.
 * SPDX-License-Identifier: MIT
 *
 * Why the drivers do not do it themselves: a program inherits, as its peak memory, the peak of
 * the process that starts it. This starter is about 1 MB, so that peaks of small programs are
 * their own.
 *
 *   launch REPORT_FD [NAME=VALUE...] -- PROGRAM [ARGUMENT...]
 *
 * The variables are for the program alone: this process is neither preloaded nor does its loader
 * report look-ups. One line goes to REPORT_FD:
 *   ran STATUS USER_US SYSTEM_US WALL_US PEAK_KB MINOR_FAULTS MAJOR_FAULTS      STATUS as in wait
 *   refused ERRNO                                             the program could not be started
 * Orphans are adopted and counted when they end in time; the rest is not waited for. When the
 * driver is killed, this process and the program are killed with it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct use {
    long long user_us;
    long long system_us;
    long peak_kb; /* of the largest process, not a sum */
    long minor_faults;
    long major_faults;
};

static long long us_of(struct timeval time) { return time.tv_sec * 1000000LL + time.tv_usec; }

static long long now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/* A child's rusage contains that of the children it waited for. */
static void add(struct use *use, const struct rusage *rusage)
{
    use->user_us += us_of(rusage->ru_utime);
    use->system_us += us_of(rusage->ru_stime);
    if (rusage->ru_maxrss > use->peak_kb) use->peak_kb = rusage->ru_maxrss;
    use->minor_faults += rusage->ru_minflt;
    use->major_faults += rusage->ru_majflt;
}

/* Waits for `program`, then takes the orphans that have already ended. Gives wait's status. */
static int wait_for_tree(pid_t program, struct use *use)
{
    int program_status = 0;
    bool ended = false;

    for (;;) {
        int status;
        struct rusage rusage;
        pid_t child = wait4(-1, &status, ended ? WNOHANG : 0, &rusage);
        if (child < 0 && errno == EINTR) continue;
        if (child <= 0) return program_status;
        add(use, &rusage);
        if (child == program) {
            program_status = status;
            ended = true;
        }
    }
}

int main(int argc, char **argv)
{
    char **word = argv + 1;
    int report_fd = argc > 1 ? atoi(*word++) : -1;
    for (; *word && strcmp(*word, "--") != 0; word++) putenv(*word);
    if (report_fd < 0 || *word == NULL || word[1] == NULL) {
        fprintf(stderr, "usage: launch REPORT_FD [NAME=VALUE...] -- PROGRAM [ARGUMENT...]\n");
        return 125;
    }
    char **command = word + 1;
    fcntl(report_fd, F_SETFD, FD_CLOEXEC);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);

    volatile int refusal = 0; /* written by the child, which shares our memory after vfork */
    long long start_us = now_us();
    pid_t program = vfork();
    if (program == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        execvp(command[0], command);
        refusal = errno;
        _exit(126);
    }
    if (program < 0) refusal = errno;
    if (refusal != 0) {
        dprintf(report_fd, "refused %d\n", refusal);
        return 126;
    }

    struct use use = { 0 };
    int status = wait_for_tree(program, &use);
    dprintf(report_fd, "ran %d %lld %lld %lld %ld %ld %ld\n", status, use.user_us, use.system_us,
            now_us() - start_us, use.peak_kb, use.minor_faults, use.major_faults);
    return 0;
}
