/* lone_background.c - a program of one thread frees much, or again and again, and a background
 * thread gives back what it left: what the rest of the process sees of that. */
/* SPDX-License-Identifier: MIT */
/* usage: lone_background count      it comes for that only, and goes when that is done
 *        lone_background fork       both sides of a fork have one thread, and little that is free
 *        lone_background copy       so has a copy by clone, of which nobody tells the heap
 *        lone_background refused    a filter without clone: memory goes back at once
 *        lone_background unshare    once it has gone the process may enter a user namespace
 *        lone_background declined   PRAIRIE_CONF=helper_thread:false: there is never one
 * What it does when the program gives up rights is in rights.c. */
#define _GNU_SOURCE
#include "../blackbox/filter.h"
#include "../blackbox/use.h"

#include <inttypes.h>
#include <linux/audit.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Nearer to the thread pointer than prairie's and the C library's. */
#ifndef THREAD_LOCAL_BYTES
#define THREAD_LOCAL_BYTES 1
#endif
static __thread char volatile thread_local_bytes[THREAD_LOCAL_BYTES];

/* As musl's since 1.2.5: no C library's clone that the program brings along makes a thread. */
#ifdef CLONE_MAKES_NO_THREADS
int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
    (void)function, (void)stack, (void)flags, (void)argument;
    errno = EINVAL;
    return -1;
}
#endif

enum {
    BREATH_MIB = 100,
    LITTLE_MIB = 12,
    BLOCKS = BREATH_MIB * 1024,
    LITTLE_KB = 30 * 1024,
    GONE_MS = 12000,
    SOON_MS = 2000 /* before it would end by itself */
};

static void breathe_by(int blocks)
{
    static void *block[BLOCKS];
    for (int i = 0; i < blocks; i++) {
        must((block[i] = malloc(1000)) != NULL);
        memset(block[i], 1, 1000);
    }
    for (int i = 0; i < blocks; i++) free(block[i]);
}

static void breathe(void) { breathe_by(BLOCKS); }

static void breathe_often(void)
{
    for (int i = 0; i < 4; i++) breathe();
}

/* How long until the process has one thread again, in ms. */
static int wait_until_alone(void)
{
    int waited_ms = 0;
    for (; task_count() != 1 && waited_ms < GONE_MS; waited_ms += 100) sleep_ms(100);
    return waited_ms;
}

static char *read_file(char *text, size_t bytes, const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, bytes - 1);
    if (file >= 0) close(file);
    if (length < 0) return NULL;
    text[length] = '\0';
    return text;
}

/* Where the other thread's stack is while it sleeps; 0: the kernel does not tell, or an emulator
 * would tell of its own. */
static uintptr_t stack_of_other(void)
{
    char path[64] = "", text[256], *at = NULL;
    struct dirent *entry;
    DIR *folder = opendir("/proc/self/task");
    must(folder != NULL);
    if (patience(1) > 1) return 0;
    while ((entry = readdir(folder)) != NULL)
        if (atoi(entry->d_name) > 0 && atoi(entry->d_name) != getpid())
            snprintf(path, sizeof path, "/proc/self/task/%d/syscall", atoi(entry->d_name));
    closedir(folder);
    for (unsigned i = 0; i < 100 && at == NULL; i++, sleep_ms(10))
        if (read_file(text, sizeof text, path) == NULL) return 0;
        else if (strncmp(text, "running", 7) != 0) at = strrchr(text, ' ');
    if (at == NULL) return 0;
    *at = '\0'; /* behind it is where its code is */
    return (uintptr_t)strtoull(strrchr(text, ' '), NULL, 16);
}

/* Below the stack of 64 KiB, of which a thread that sleeps uses little, nobody may read or
 * write. */
static void its_stack_has_a_guard(void)
{
    enum { STACK_BYTES = 64 * 1024, USED_BYTES_MAX = 4096 };
    uintptr_t stack = stack_of_other(), from, to, closed = 0;
    char line[512], rights[5];
    FILE *maps = fopen("/proc/self/maps", "r");
    must(maps != NULL);
    if (stack == 0) printf("where its stack is cannot be told\n");
    while (fgets(line, sizeof line, maps) != NULL && stack != 0) {
        must(sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) == 3);
        if (from <= stack && stack < to) break;
        if (strcmp(rights, "---p") == 0) closed = to;
    }
    fclose(maps);
    if (stack == 0) return;
    must(from <= stack && stack < to && closed == from);
    must(stack < from + STACK_BYTES && stack > from + STACK_BYTES - USED_BYTES_MAX);
}

static void count(void)
{
    long before_kb = resident_kb();
    breathe_by(LITTLE_MIB * 1024);
    must(task_count() == 1); /* so little needs none */
    breathe();
    must(task_count() == 2);
    its_stack_has_a_guard();
    int waited_ms = wait_until_alone();
    printf("alone again after %d ms, %ld KiB held\n", waited_ms, resident_kb() - before_kb);
    must(task_count() == 1 && resident_kb() - before_kb < LITTLE_KB);
    breathe_often();
    must(task_count() == 2);
}

static void fork_and_look(void)
{
    long before_kb = resident_kb();
    breathe_often();
    must(task_count() == 2);
    pid_t pid = fork();
    must(pid >= 0);
    must(pid == 0 ? task_count() == 1 : wait_until_alone() < SOON_MS);
    must(resident_kb() - before_kb < LITTLE_KB);
    if (pid == 0) {
        breathe_often();
        must(task_count() == 2);
        _exit(0);
    }
    int status = 1;
    must(waitpid(pid, &status, 0) == pid && status == 0);
    breathe_often();
    must(task_count() == 2);
}

/* It knows of the thread that it has not got, and does not wait for it. */
static void copy_and_look(void)
{
    breathe_often();
    must(task_count() == 2);
    pid_t pid = (pid_t)syscall(SYS_clone, (unsigned long)SIGCHLD, 0UL, 0UL, 0UL, 0UL);
    int status = 1;
    must(pid >= 0);
    if (pid != 0) {
        must(waitpid(pid, &status, 0) == pid && status == 0);
        return;
    }
    must(task_count() == 1);
    double begun_ms = now_ms();
    pid_t child = fork();
    if (child == 0) _exit(0);
    must(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    must(now_ms() - begun_ms < 900); /* it would wait for a second */
    breathe_often();
    must(task_count() == 2);
    _exit(0);
}

static void refused(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    filter_calls(filter, sizeof filter / sizeof filter[0]);
    long before_kb = resident_kb();
    for (int i = 0; i < 3; i++) {
        breathe_often();
        must(task_count() == 1 && resident_kb() - before_kb < LITTLE_KB);
    }
}

static void unshare_later(void)
{
    if (unshare(CLONE_NEWUTS | CLONE_NEWUSER) != 0) {
        printf("no user namespaces here\n");
        exit(77);
    }
    breathe_often();
    must(task_count() == 2);
    errno = 0;
    must(unshare(CLONE_NEWUSER) != 0 && errno == EINVAL); /* as documented */
    must(wait_until_alone() < GONE_MS);
    must(unshare(CLONE_NEWUSER) == 0 || errno != EINVAL);
    must(unshare(CLONE_FS | CLONE_FILES | CLONE_SYSVSEM) == 0);
}

static void declined(void)
{
    long before_kb = resident_kb();
    for (int i = 0; i < 3; i++) {
        breathe_often();
        must(task_count() == 1 && resident_kb() - before_kb < LITTLE_KB);
    }
}

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 2);
    thread_local_bytes[0] = 1;
    if (strcmp(argv[1], "declined") == 0 && getenv("PRAIRIE_CONF") == NULL) {
        must(setenv("PRAIRIE_CONF", "helper_thread:false", 1) == 0);
        execv("/proc/self/exe", argv);
        must(!"exec");
    }
    if (strcmp(argv[1], "count") == 0) count();
    else if (strcmp(argv[1], "fork") == 0) fork_and_look();
    else if (strcmp(argv[1], "copy") == 0) copy_and_look();
    else if (strcmp(argv[1], "refused") == 0) refused();
    else if (strcmp(argv[1], "unshare") == 0) unshare_later();
    else if (strcmp(argv[1], "declined") == 0) declined();
    else return 2;
    walk_heap();
    return 0;
}
