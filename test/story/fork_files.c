/* fork_files.c - sixteen threads that read lines, write, open and close files, flush all of them at
 * once and fork; each child allocates, frees, prints and leaves through exit(). */
/* SPDX-License-Identifier: MIT */
/*
 * Reading a line holds the file's lock while it allocates. Flushing all files holds the lock of the
 * C library's list of files while it waits for a file's. Forking takes the list's lock too, so a
 * heap whose locks are taken before that one closes a circle of three threads.
 *
 * A child that leaves through exit() may move the place in a file that it shares with its parent,
 * and writes once more what lay in the parent's buffers: what the files hold is not looked at.
 */
#include "../blackbox/use.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

enum {
    THREADS = 16,
    FILES = 4,
    OWN_FILES = 64,
    LINES = 12,
    CHILD_SECONDS = 10,
    QUIET_SECONDS = 20
};

/* In memory, so that nothing is left however a process ends; each opening has a place of its
 * own. */
static int lines_file[FILES], own_file[OWN_FILES];
static FILE *shared[FILES]; /* each used by all threads */
static long forks_each;
static atomic_long forks, steps;

static const char *path_of(char *room, size_t bytes, int file)
{
    must((size_t)snprintf(room, bytes, "/proc/self/fd/%d", file) < bytes);
    return room;
}

/* Lines of very different lengths, so that reading one often takes a larger buffer. */
static void write_lines(FILE *file, size_t salt)
{
    for (size_t i = 0; i < LINES; i++) {
        for (size_t n = (salt + i) * 37 % 41 * ((salt + i) % 5 + 1) * 8; n > 0; n--)
            putc('x', file);
        putc('\n', file);
    }
}

static void read_lines(FILE *file)
{
    char *line = NULL;
    size_t room = 0;
    for (int i = 0; i < 2 * LINES && getline(&line, &room, file) >= 0; i++) {
        if (i % 4 != 3) continue;
        free(line);
        line = NULL;
        room = 0;
    }
    free(line);
}

static void read_own_file(size_t number)
{
    char path[64];
    FILE *file = fopen(path_of(path, sizeof path, lines_file[number % FILES]), "r");
    must(file != NULL);
    if (number % 2 == 0) must(setvbuf(file, NULL, _IOFBF, 1 << 14) == 0);
    read_lines(file);
    must(fclose(file) == 0);
}

static void write_own_file(size_t number)
{
    char path[64];
    FILE *file = fopen(path_of(path, sizeof path, own_file[number % OWN_FILES]), "w");
    must(file != NULL);
    write_lines(file, number);
    must(fprintf(file, "%zu %s\n", number, path) > 0);
    must(fclose(file) == 0);
}

static void use_shared_file(size_t number)
{
    FILE *file = shared[number % FILES];
    if (number % 3 == 0) {
        flockfile(file);
        rewind(file);
        funlockfile(file);
    }
    read_lines(file);
}

static void read_command(void)
{
    FILE *words = popen("echo prairie", "r");
    must(words != NULL);
    read_lines(words);
    must(pclose(words) >= 0);
}

/* Enough of each kind of size to come to slabs, runs and the kernel, in little time. */
static void use_many_sizes(size_t number)
{
    unsigned char *block[60];
    for (size_t i = 0; i < 60; i++) {
        size_t bytes = i % 20 == 19 ? i * 4000 : i * i;
        block[i] = calloc(1, bytes);
        must(block[i] != NULL);
        stamp(block[i], bytes < 2000 ? bytes : 2000, i + number);
    }
    for (size_t i = 0; i < 60; i++) {
        size_t bytes = i % 20 == 19 ? i * 4000 : i * i;
        must(stamp_holds(block[i], bytes < 2000 ? bytes : 2000, i + number));
        free(block[i]);
    }
}

static __attribute__((noreturn)) void live_as_child(void *parents_block, size_t number)
{
    char path[64];
    (void)signal(SIGALRM, SIG_DFL);
    alarm(patience(CHILD_SECONDS));
    must(stamp_holds(parents_block, 3000, number));
    free(parents_block);
    use_many_sizes(number);
    FILE *file = fopen("/dev/null", "w");
    must(file != NULL && fprintf(file, "child %zu\n", number) > 0);
    read_own_file(number);
    printf("child %zu %s\n", number, path_of(path, sizeof path, lines_file[number % FILES]));
    if (number % 4 == 0) (void)fflush(NULL); /* may find a file that was just being closed */
    exit(0);
}

static void fork_once(size_t number)
{
    void *block = malloc(3000);
    int status = 1;
    must(block != NULL);
    stamp(block, 3000, number);
    pid_t pid = fork();
    if (pid == 0) live_as_child(block, number);
    must(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (status != 0)
        give_up("child %zu ended with status %#x%s", number, status,
                WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? ": it hung" : "");
    must(stamp_holds(block, 3000, number));
    free(block);
    forks++;
}

static void *live(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    for (long left = forks_each; left > 0;) {
        size_t number = random_next(&state) % 1000;
        switch (random_between(&state, 0, 11)) {
        case 0:
        case 1: fork_once(number), left--; break;
        case 2:
        case 3: read_own_file(number); break;
        case 4: write_own_file(number); break;
        case 5: (void)fflush(NULL); break;
        case 6:
            if (number < 30) read_command();
            break;
        case 7: must(printf("step %zu\n", number) > 0); break;
        case 8: free(malloc(number * 50)); break;
        default: use_shared_file(number); break;
        }
        steps++;
    }
    return NULL;
}

/* Once a second, in whatever thread: main may hang as well. In a process that hangs, nothing but a
 * system call is sure to return. */
static void look_for_hang(int signal)
{
    static const char words[] = "fork_files: nobody gets on any more: a fork hangs\n";
    static long before, seconds;
    long now = steps;
    (void)signal;
    seconds = now == before ? seconds + 1 : 0;
    before = now;
    if (seconds < (long)patience(QUIET_SECONDS)) return;
    if (write(2, words, sizeof words - 1) < 0) _exit(2);
    _exit(1);
}

static void watch_from_now(void)
{
    struct sigaction action = { .sa_handler = look_for_hang, .sa_flags = SA_RESTART };
    struct itimerval second = { { 1, 0 }, { 1, 0 } };
    must(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &second, NULL) == 0);
}

static int file_in_memory(void)
{
    int file = memfd_create("lines", MFD_CLOEXEC);
    must(file >= 0);
    return file;
}

static void make_files(void)
{
    char path[64];
    for (size_t i = 0; i < OWN_FILES; i++) own_file[i] = file_in_memory();
    for (size_t i = 0; i < FILES; i++) {
        lines_file[i] = file_in_memory();
        FILE *file = fopen(path_of(path, sizeof path, lines_file[i]), "w");
        must(file != NULL);
        write_lines(file, i);
        must(fclose(file) == 0);
        shared[i] = fopen(path, "r");
        must(shared[i] != NULL);
    }
}

int main(void)
{
    require_prairie();
    pthread_t thread[THREADS];
    uint64_t seed = seed_of_run();
    double start_ms = now_ms();
    int output = dup(1), nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    forks_each = scaled(10000) / THREADS;
    must(output >= 0 && nothing >= 0 && dup2(nothing, 1) == 1);
    make_files();
    watch_from_now();
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, live, (void *)(uintptr_t)(seed + (uint64_t)i)) == 0);
    for (int i = 0; i < THREADS; i++) must(pthread_join(thread[i], NULL) == 0);
    must(forks == forks_each * THREADS);
    walk_heap();
    dprintf(output, "fork_files: %ld forks beside %ld steps in %.1f s\n", forks, steps - forks,
            (now_ms() - start_ms) / 1e3);
    return 0;
}
