/* fork_stdio.c - forks around which other handlers open files, flush all of them, allocate and fork
 * themselves, and forks out of the middle of flushing all files. */
/* SPDX-License-Identifier: MIT */
/* usage: fork_stdio preinit|main|nested|cookie single|threads     handlers registered before main,
 * in main, before main and forking themselves; no handlers, and the fork inside of fflush(NULL) */
#include "../blackbox/use.h"

#include <gnu/libc-version.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 3, SECONDS = 20 };

static atomic_bool stop;
static bool nests, is_inside;
static int prepared, in_parent, in_child;

static void use_own_file(size_t salt)
{
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    must(file != NULL);
    while (getline(&line, &room, file) >= 0 && salt++ % 8 != 0) {}
    must(fclose(file) == 0);
    free(line);
    free(malloc(salt % 300 * 100));
}

static void use_files(size_t salt)
{
    use_own_file(salt);
    (void)fflush(NULL);
}

/* A lock that is left held, or is given once too often, shows when somebody else wants it. */
static void *use_files_in_thread(void *unused)
{
    for (size_t i = 0; i < 20; i++) use_files(i);
    return unused;
}

static void use_files_everywhere(void)
{
    pthread_t thread[THREADS];
    use_files(1);
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, use_files_in_thread, NULL) == 0);
    for (size_t i = 0; i < 20; i++) use_files(i);
    for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
}

static void *go_on(void *unused)
{
    for (size_t i = 0; !stop; i++) {
        use_files(i);
        if (i % 20 == 0) sleep_ms(1);
    }
    return unused;
}

static void wait_for(pid_t pid, const char *whose)
{
    int status = 1;
    must(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (status != 0)
        give_up("the %s ended with status %#x%s", whose, status,
                WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? ": it hung" : "");
}

static void fork_and_use_files(const char *whose)
{
    pid_t pid = fork();
    if (pid == 0) {
        alarm(patience(SECONDS));
        stop = false;
        use_files_everywhere();
        walk_heap();
        _exit(0);
    }
    wait_for(pid, whose);
}

/* The one forked inside goes its own way; or it returns into the fork around it and forks as
 * well. */
static void fork_inside(void)
{
    if (!nests || is_inside) return;
    is_inside = true;
    fork_and_use_files("child of a handler");
    pid_t around = getpid(), pid = fork();
    must(pid >= 0);
    is_inside = false;
    if (pid == 0) {
        alarm(patience(SECONDS));
        nests = false; /* and on, out of the handler */
    } else {
        wait_for(pid, "child that returned into the fork around it");
        must(getpid() == around);
    }
}

/* Handlers of before main are the last to prepare and the first afterwards: for them the heap is
 * held already, so they must not wait for what other threads hold while they allocate, such as the
 * locks of their files. */
static bool is_early;

static void prepare(void)
{
    prepared++;
    use_own_file(2);
    if (!is_early) use_files(2);
    fork_inside();
}
static void parent(void)
{
    in_parent++;
    use_own_file(3);
    if (!is_early) use_files(3);
}
static void child(void)
{
    in_child++;
    use_files(4);
}

static void preinit(int argc, char **argv, char **environment)
{
    (void)environment;
    is_early = argc == 3 && (strcmp(argv[1], "preinit") == 0 || strcmp(argv[1], "nested") == 0);
    nests = is_early && argv[1][0] == 'n';
    if (is_early) must(pthread_atfork(prepare, parent, child) == 0);
}
__attribute__((section(".preinit_array"),
               used)) static void (*const preinit_entry)(int, char **, char **) = preinit;

/* fflush(NULL) calls this with the lock of the list of files held. The child of a process with one
 * thread may return into fflush, which gives the lock; what the C library makes of its lock in the
 * child of one with threads is its own affair. */
static ssize_t fork_in_write(void *goes_on, const char *bytes, size_t size)
{
    (void)bytes;
    pid_t pid = fork();
    if (pid == 0) alarm(patience(SECONDS));
    if (pid == 0 && goes_on == NULL) {
        use_heap_once(1);
        _exit(0);
    }
    if (pid != 0) wait_for(pid, "child of a write");
    return (ssize_t)size;
}

static void flush_forking(void *goes_on)
{
    pid_t self = getpid();
    FILE *file = fopencookie(goes_on, "w", (cookie_io_functions_t){ .write = fork_in_write });
    must(file != NULL && putc('x', file) == 'x' && fflush(NULL) == 0 && fclose(file) == 0);
    if (getpid() == self) return;
    use_files_everywhere();
    _exit(0);
}

static bool library_can_nest(void)
{
    int major = 0, minor = 0;
    return sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2
        && (major > 2 || minor >= 36);
}

int main(int argc, char **argv)
{
    require_prairie();
    must(argc == 3);
    pthread_t thread[THREADS];
    bool single = strcmp(argv[2], "single") == 0;
    long count = scaled(single ? 40 : 20);
    pid_t self = getpid();
    if (nests && !single && !library_can_nest())
        skip_test("in C library %s a handler's fork waits for itself", gnu_get_libc_version());
    if (strcmp(argv[1], "main") == 0) must(pthread_atfork(prepare, parent, child) == 0);
    for (int i = 0; i < THREADS && !single; i++)
        must(pthread_create(&thread[i], NULL, go_on, NULL) == 0);
    for (long f = 0; f < count; f++) {
        bool nested = nests;
        alarm(patience(SECONDS));
        if (strcmp(argv[1], "cookie") == 0) flush_forking(single ? &nests : NULL);
        else fork_and_use_files("child");
        if (getpid() != self) _exit(0); /* the one that returned into the fork around it */
        nests = nested;
    }
    if (strcmp(argv[1], "cookie") != 0) must(prepared >= count && in_parent >= count);
    must(in_child == 0);
    stop = true;
    for (int i = 0; i < THREADS && !single; i++) must(pthread_join(thread[i], NULL) == 0);
    use_files_everywhere();
    walk_heap();
    printf("fork_stdio: %ld forks, %s, %s\n", count, argv[1], argv[2]);
    return 0;
}
