/* rights.c - a program gives up rights while prairie's background thread is there: soon no thread
 * of the process has them any more. */
/* SPDX-License-Identifier: MIT */
/* usage: rights setuid|setresuid|setgid|setgroups|capset|filter|chroot   the way it gives them up
 *        rights all-threads   a filter for all threads that forbids to open files kills nobody
 *        rights unseen        where rights cannot be compared the background thread does not stay
 * Each with one thread, which breathes, and with two. */
#define _GNU_SOURCE
#include "../blackbox/use.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { BREATH_MIB = 24, BLOCKS = BREATH_MIB * 1024, ROUNDS = 5, NOBODY = 65534 };
/* What is promised, and what a machine that does something else may make of it. */
enum { PROMISED_MS = 100, MOST_MS = 20000 };

static const char *way;
static int tasks; /* the folder of the process's threads, which a chroot hides */
static pthread_barrier_t meeting;

static void breathe(int times)
{
    static void *block[BLOCKS];
    while (times-- > 0) {
        for (int i = 0; i < BLOCKS; i++) {
            must((block[i] = malloc(1000)) != NULL);
            memset(block[i], 1, 1000);
        }
        for (int i = 0; i < BLOCKS; i++) free(block[i]);
    }
}

/* ---- what the kernel says ---- */

/* The lines of a status that are about rights. False: the thread is not there. */
static bool rights_of(const char *task, char *lines, size_t room)
{
    static const char *const label[] = {
        "Uid:", "Gid:", "Groups:", "Cap", "NoNewPrivs:", "Seccomp"
    };
    char name[64], text[8192];
    snprintf(name, sizeof name, "%s/status", task);
    int file = openat(tasks, name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    if (got <= 0) return false;
    text[got] = '\0';
    lines[0] = '\0';
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        for (size_t i = 0; i < sizeof label / sizeof label[0]; i++)
            if (strncmp(line, label[i], strlen(label[i])) == 0)
                must(strlen(strncat(lines, line, room - strlen(lines) - 1)) + 1 < room);
    return true;
}

/* How many threads have other rights than the calling one; and how many there are. */
static int others_with_rights(int *count)
{
    char own[4096], other[4096], self[32];
    int different = 0;
    snprintf(self, sizeof self, "%ld", syscall(SYS_gettid));
    must(rights_of(self, own, sizeof own));
    DIR *folder = fdopendir(dup(tasks));
    must(folder != NULL);
    rewinddir(folder);
    *count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.' || !rights_of(entry->d_name, other, sizeof other)) continue;
        ++*count;
        different += strcmp(own, other) != 0;
    }
    closedir(folder);
    return different;
}

/* How many files of status the threads have open. The background thread's table is its own. */
static int status_files(void)
{
    char path[320], target[64];
    int files = 0;
    DIR *folder = fdopendir(dup(tasks));
    must(folder != NULL);
    rewinddir(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        for (int file = 0; entry->d_name[0] != '.' && file < 16; file++) {
            snprintf(path, sizeof path, "/proc/self/task/%s/fd/%d", entry->d_name, file);
            ssize_t length = readlink(path, target, sizeof target);
            files += length > 7 && memcmp(target + length - 7, "/status", 7) == 0;
        }
    closedir(folder);
    return files;
}

/* ---- the ways ---- */

/* Everything is allowed but what a program does not do here, or kills. */
static void filter(int call, unsigned answer, unsigned flags)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof code / sizeof code[0], code };
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0) return;
    dprintf(1, "skipped: no seccomp filters here\n");
    _exit(EXIT_SKIPPED);
}

static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct none[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
    must(syscall(SYS_capset, &header, none) == 0);
}

static bool way_is(const char *name) { return strcmp(way, name) == 0; }

/* What concerns the calling thread alone is done by each thread of the program. */
static void give_up_in_one(void)
{
    if (way_is("capset")) drop_capabilities();
    if (way_is("filter")) filter(SYS_acct, SECCOMP_RET_ERRNO | EPERM, 0);
}

static void give_up_in_all(void)
{
    if (way_is("setuid")) must(setuid(NOBODY) == 0);
    if (way_is("setresuid")) must(setresuid(NOBODY, NOBODY, 0) == 0);
    if (way_is("setgid")) must(setgid(NOBODY) == 0);
    if (way_is("setgroups")) must(setgroups(0, NULL) == 0);
    if (way_is("chroot"))
        must(chroot("/sys/kernel") == 0 && chdir("/") == 0 && setuid(NOBODY) == 0);
}

/* ---- the story ---- */

static void *second_thread(void *unused)
{
    free(malloc(100));
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    give_up_in_one();
    pthread_barrier_wait(&meeting);
    return unused;
}

/* How long until nobody had the old rights, in ms. */
static int live(int threads, bool goes_on)
{
    pthread_t thread;
    int count;
    must((tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0);
    if (way_is("setgroups")) must(setgroups(2, (gid_t[]){ 10, 20 }) == 0);
    if (way_is("unseen")) must(chroot("/sys/kernel") == 0 && chdir("/") == 0);
    must(pthread_barrier_init(&meeting, NULL, 2) == 0);
    if (threads == 2) {
        must(pthread_create(&thread, NULL, second_thread, NULL) == 0);
        pthread_barrier_wait(&meeting);
    }
    breathe(4);
    must(others_with_rights(&count) == 0);
    if (!way_is("unseen")) must(count == threads + 1); /* it is there */

    if (way_is("all-threads")) {
        double start_ms = now_ms();
        if (syscall(SYS_close_range, ~0u, ~0u, CLOSE_RANGE_UNSHARE) != 0)
            skip_test("no thread has files of its own here");
        while (status_files() < 3) { /* its own, its starter's and the first one's */
            must(now_ms() - start_ms < patience(MOST_MS));
            sleep_ms(1);
        }
        filter(SYS_openat, SECCOMP_RET_KILL_PROCESS, SECCOMP_FILTER_FLAG_TSYNC);
        sleep_ms(300);
        _exit(0);
    }
    if (threads == 2) pthread_barrier_wait(&meeting);
    double start_ms = now_ms(), lasted_ms;
    give_up_in_one();
    give_up_in_all();
    if (threads == 2) pthread_barrier_wait(&meeting);
    while (others_with_rights(&count) != 0 || (way_is("unseen") && count > threads)) {
        must(now_ms() - start_ms < patience(MOST_MS));
        sleep_ms(1);
    }
    lasted_ms = now_ms() - start_ms;
    if (threads == 2) must(pthread_join(thread, NULL) == 0);

    /* The heap lives on, and who comes later has the new rights. */
    if (goes_on) {
        sleep_ms(1100);
        breathe(3);
        must(others_with_rights(&count) == 0);
        if (!way_is("unseen") && !way_is("chroot")) must(count == 2);
    }
    walk_heap();
    return (int)lasted_ms;
}

/* In a process of its own, for rights do not come back. */
static int live_apart(int threads, bool goes_on)
{
    int status = 1, lasted_ms = -1, ends[2];
    must(pipe(ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        lasted_ms = live(threads, goes_on);
        must(write(ends[1], &lasted_ms, sizeof lasted_ms) == sizeof lasted_ms);
        _exit(0);
    }
    must(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED) _exit(EXIT_SKIPPED);
    if (status != 0) give_up("with %d threads: ended with status %#x", threads, status);
    close(ends[1]);
    if (read(ends[0], &lasted_ms, sizeof lasted_ms) != sizeof lasted_ms) lasted_ms = 0;
    close(ends[0]);
    return lasted_ms;
}

static int by_number(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

/* Whether most lost the old rights in the time that is promised. */
static bool live_often(int threads)
{
    int lasted_ms[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) lasted_ms[i] = live_apart(threads, i == 0);
    qsort(lasted_ms, ROUNDS, sizeof lasted_ms[0], by_number);
    printf("rights: %s with %d thread%s: the old rights were gone after %d ms, at most %d\n", way,
           threads, threads == 1 ? "" : "s", lasted_ms[ROUNDS / 2], lasted_ms[ROUNDS - 1]);
    return lasted_ms[ROUNDS / 2] <= (int)patience(PROMISED_MS);
}

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    way = argv[1];
    if (getuid() != 0) skip_test("not root");
    for (int threads = 1; threads <= 2; threads++) {
        bool in_time = false;
        for (int tries = 0; tries < 3 && !in_time; tries++) in_time = live_often(threads);
        must(in_time);
    }
    return 0;
}
