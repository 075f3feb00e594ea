/* vast.c - blocks of up to 100 TiB, of which only pages here and there are touched. */
/* SPDX-License-Identifier: MIT */
/* usage: vast: with and without the library, the same lines are to be true. */
#include "limits.h"

#include <jemalloc/jemalloc.h>

#include <dlfcn.h>
#include <sys/wait.h>

#define TIB ((size_t)1 << 40)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
enum { COUNT = 180 };

/* What is not touched has no memory: before a mistake takes all that the machine has, it ends
 * here. */
static void *watch_memory(void *unused)
{
    for (;;) {
        if (resident_kb() > 2 << 20) give_up("%ld MiB are resident", resident_kb() / 1024);
        usleep(5000);
    }
    return unused;
}

static void touch(char *block, size_t bytes, size_t key)
{
    block[0] = (char)key;
    if (key < 10) block[bytes / 2] = (char)(key + 1);
    block[bytes - 1] = (char)(key + 2);
}

static bool holds(const char *block, size_t bytes, size_t key)
{
    if (key < 10 && block[bytes / 2] != (char)(key + 1)) return false;
    return block[0] == (char)key && block[bytes - 1] == (char)(key + 2);
}

static void sum_of_many(size_t bytes, size_t count)
{
    static char *block[COUNT];

    for (size_t i = 0; i < count; i++) {
        block[i] = i % 2 == 0 ? malloc(bytes) : calloc(1, bytes);
        if (block[i] == NULL) give_up("block %zu of %zu GiB: errno %d", i, bytes / GIB, errno);
        must(malloc_usable_size(block[i]) == bytes);
        touch(block[i], bytes, i);
    }
    if (bytes >= TIB / 2) walk_heap(); /* which looks at each page that has a number */
    for (size_t i = 0; i < count; i++) {
        must(holds(block[i], bytes, i));
        free(block[i]);
    }
    printf("%zu blocks of %zu GiB\n", count, bytes / GIB);
}

static void one(size_t bytes)
{
    char *block = calloc(1, bytes), *more;

    must(block != NULL);
    must(block[0] == 0 && block[bytes - 1] == 0 && block[bytes / 3] == 0);
    touch(block, bytes, 5);
    more = realloc(block, bytes + bytes / 8);
    if (more != NULL) must(more[bytes + bytes / 8 - 1] == 0);
    else must(bytes > 60 * TIB && errno == ENOMEM); /* there is no room for it elsewhere */
    if (more == NULL) more = block;
    must(holds(more, bytes, 5));
    more = realloc(more, bytes / 2 + 1);
    must(more != NULL && more[0] == 5 && more[bytes / 2] == 6);
    must(malloc_usable_size(more) == bytes / 2 + 4096 - 512); /* it is staggered */
    more = realloc(more, 1000);
    must(more != NULL && more[0] == 5);
    free(more);
    walk_heap();
    printf("one of %zu GiB\n", bytes / GIB);
}

/* From a small block to a vast one, doubling; what is there goes along. */
static void growth(void)
{
    char *block = NULL;
    size_t old = 0;

    for (size_t bytes = MIB; bytes <= 16 * TIB; bytes *= 2) {
        block = realloc(block, bytes);
        must(block != NULL);
        if (old != 0) must(block[0] == 1 && block[old - 1] == 2);
        block[0] = 1;
        block[bytes - 1] = 2;
        old = bytes;
    }
    free(block);
}

static void aligned(void)
{
    static const size_t align[] = { 4096, 2 * GIB, 128 * GIB };

    for (size_t i = 0; i < sizeof align / sizeof *align; i++) {
        char *block = aligned_alloc(align[i], 300 * GIB);

        must(block != NULL && (size_t)block % align[i] == 0);
        touch(block, 300 * GIB, i);
        free(block);
    }
}

static void with_flags(void)
{
    void *(*take)(size_t, int) = (void *(*)(size_t, int))dlsym(RTLD_DEFAULT, "mallocx");
    void *(*again)(void *, size_t, int) =
        (void *(*)(void *, size_t, int))dlsym(RTLD_DEFAULT, "rallocx");
    size_t (*in_place)(void *, size_t, size_t, int) =
        (size_t(*)(void *, size_t, size_t, int))dlsym(RTLD_DEFAULT, "xallocx");
    size_t (*size)(const void *, int) =
        (size_t(*)(const void *, int))dlsym(RTLD_DEFAULT, "sallocx");
    size_t (*would)(size_t, int) = (size_t(*)(size_t, int))dlsym(RTLD_DEFAULT, "nallocx");
    void (*give)(void *, size_t, int) =
        (void (*)(void *, size_t, int))dlsym(RTLD_DEFAULT, "sdallocx");
    char *block;
    size_t bytes;

    must(take != NULL && again != NULL && in_place != NULL && size != NULL && give != NULL);
    must(would(20 * TIB, 0) == 20 * TIB);
    block = take(20 * TIB, MALLOCX_ZERO | MALLOCX_ALIGN(1 << 21));
    must(block != NULL && (size_t)block % (1 << 21) == 0 && size(block, 0) == 20 * TIB);
    touch(block, 20 * TIB, 9);
    bytes = in_place(block, 20 * TIB + 1, 0, 0);
    must(bytes == 20 * TIB || bytes == 20 * TIB + 4096 - 512); /* it is staggered */
    must(size(block, 0) == bytes);
    must(in_place(block, 19 * TIB, 0, 0) == 19 * TIB && size(block, 0) == 19 * TIB);
    must(block[10 * TIB] == 10);
    block = again(block, 30 * TIB, 0);
    must(block != NULL && size(block, 0) == 30 * TIB && block[0] == 9 && block[10 * TIB] == 10);
    must(block[25 * TIB] == 0);
    give(block, 30 * TIB, 0);
}

static void *free_it(void *block)
{
    free(block);
    return NULL;
}

static void elsewhere(void)
{
    char *block = malloc(3 * TIB);
    pthread_t thread;
    int status = 0;
    pid_t child;

    must(block != NULL);
    touch(block, 3 * TIB, 3);
    child = fork();
    must(child >= 0);
    if (child == 0) {
        char *more = holds(block, 3 * TIB, 3) ? malloc(2 * TIB) : NULL;
        free(block);
        free(more);
        _exit(more == NULL);
    }
    must(waitpid(child, &status, 0) == child && status == 0);
    must(holds(block, 3 * TIB, 3));
    must(pthread_create(&thread, NULL, free_it, block) == 0);
    pthread_join(thread, NULL);
    walk_heap();
}

/* Where the kernel counts what it promises, there is no such block for anybody. */
static void skip_where_promises_are_kept(void)
{
    FILE *file = fopen("/proc/sys/vm/overcommit_memory", "r");
    int mode = 0;

    if (file != NULL && fscanf(file, "%d", &mode) == 1 && mode == 2)
        skip_test("the kernel gives no more than it has");
    if (file != NULL) fclose(file);
    if (sizeof(void *) < 8 || (size_t)&mode >> 46 == 0) skip_test("addresses have fewer bits");
}

int main(void)
{
    pthread_t watcher;

    require_prairie();
    skip_where_promises_are_kept();
    must(pthread_create(&watcher, NULL, watch_memory, NULL) == 0);
    must(malloc(PTRDIFF_MAX) == NULL && errno == ENOMEM);
    must(malloc(256 * TIB) == NULL && errno == ENOMEM);
    one(100 * GIB);
    one(TIB + TIB / 2);
    one(100 * TIB);
    aligned();
    with_flags();
    elsewhere();
    sum_of_many(TIB, 100);
    sum_of_many(600 * GIB, COUNT);
    must(realloc(malloc(TIB), 0) == NULL);
    walk_heap();
    sum_of_many(50 * GIB, 60);
    growth();
    return 0;
}
