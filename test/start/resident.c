/* resident.c - how much of the library's file becomes resident in a process that does usual things.
 *
 * src/os/linux_layout.ld puts what usual programs call, and the constants for it, before all else.
 * Where the library lies to the kernel's 64 KiB around a fault is chance: at most all of the first
 * two segments up to the end of that part, 15 pages more, and three pages of data. On a busy
 * machine a run now and then needs one of the rarer functions (28 of 160 did), so half of the runs
 * may take more: of 20, more than a quarter do in one test of nine then. Where usual programs need
 * what lies elsewhere all runs take more. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 20, RESIDENT_KB_MAX = 208 };

static void must(bool held, const char *what)
{
    if (held) return;
    fprintf(stderr, "resident: %s\n", what);
    exit(1);
}

static void *work(void *unused)
{
    void *block[1000];

    for (size_t i = 0; i < 1000; i++) {
        block[i] = malloc(16 + i * i % 20000);
        must(block[i] != NULL, "no block");
        memset(block[i], 1, 16);
    }
    for (size_t i = 0; i < 1000; i += 2) block[i] = realloc(block[i], 16 + i * 7);
    for (size_t i = 0; i < 1000; i++) free(block[i]);
    free(calloc(100, 100));
    free(aligned_alloc(64, 640));
    return unused;
}

/* KiB in memory of the file that was preloaded. */
static int library_resident_kb(const char *library)
{
    const char *name = strrchr(library, '/') + 1;
    char line[4096];
    bool ours = false;
    int kb, sum = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");

    must(maps != NULL, "no /proc/self/smaps");
    while (fgets(line, sizeof line, maps) != NULL) {
        if (strchr(line, '-') != NULL && strchr(line, ':') > strchr(line, '-'))
            ours = strstr(line, name) != NULL;
        else if (ours && sscanf(line, "Rss: %d kB", &kb) == 1) sum += kb;
    }
    (void)fclose(maps);
    return sum;
}

static int child(const char *library)
{
    pthread_t thread;

    work(NULL);
    must(pthread_create(&thread, NULL, work, NULL) == 0, "no thread");
    must(pthread_join(thread, NULL) == 0, "no join");
    return library_resident_kb(library) / 4;
}

int main(int argc, char *argv[])
{
    const char *library = getenv("PRAIRIE_LIBRARY");
    char file[4096];
    int more = 0;

    must(library != NULL && realpath(library, file) != NULL, "PRAIRIE_LIBRARY is not a file");
    if (argc > 1 && strcmp(argv[1], "child") == 0) return child(file);
    must(setenv("LD_PRELOAD", file, 1) == 0, "no environment");
    for (int run = 0; run < RUNS; run++) {
        int status = system("exec /proc/$PPID/exe child");
        must(WIFEXITED(status) && WEXITSTATUS(status) > 8, "the child failed, or has no library");
        printf("resident: %d KiB of the library\n", WEXITSTATUS(status) * 4);
        more += WEXITSTATUS(status) * 4 > RESIDENT_KB_MAX;
    }
    must(more <= RUNS / 2, "usual programs need what lies elsewhere in the file");
    return 0;
}
