/* interpose.c - a program that brings a malloc of its own: prairie is in the process, answers
 * nothing, and disturbs nothing. */
/* SPDX-License-Identifier: MIT */
#include "../blackbox/blackbox.h"

#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { ROOM_BYTES = 64 << 20, HEADER_BYTES = 32 };

/* Blocks from one stretch, never used again; the header says that a block is ours, and how long. */
static _Alignas(64) unsigned char room[ROOM_BYTES];
static atomic_size_t used;
static atomic_long taken, given;

struct header {
    size_t bytes;
    uint64_t mark;
};

static struct header *header_of(void *block)
{
    return (struct header *)((unsigned char *)block - sizeof(struct header));
}

static uint64_t mark_of(const void *block)
{
    return (uintptr_t)block ^ UINT64_C(0x5061697261697265);
}

static void *take(size_t align, size_t bytes)
{
    size_t step = bytes + HEADER_BYTES + align, at;
    if (bytes > ROOM_BYTES / 4 || (at = atomic_fetch_add(&used, step)) + step > ROOM_BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t start = ((uintptr_t)room + at + HEADER_BYTES + align - 1) & ~(uintptr_t)(align - 1);
    *header_of((void *)start) = (struct header){ bytes, mark_of((void *)start) };
    taken++;
    return (void *)start;
}

static size_t bytes_of(void *block)
{
    if (header_of(block)->mark != mark_of(block)) give_up("a block that is not the program's own");
    return header_of(block)->bytes;
}

void *malloc(size_t bytes) { return take(16, bytes); }
void *calloc(size_t count, size_t bytes)
{
    size_t all;
    return __builtin_mul_overflow(count, bytes, &all) ? NULL : take(16, all);
}
void free(void *block)
{
    if (block == NULL) return;
    (void)bytes_of(block);
    header_of(block)->mark = 0;
    given++;
}
void *realloc(void *block, size_t bytes)
{
    void *other = take(16, bytes);
    if (block == NULL || other == NULL) return other;
    memcpy(other, block, bytes < bytes_of(block) ? bytes : bytes_of(block));
    free(block);
    return other;
}
void *memalign(size_t align, size_t bytes) { return take(align < 16 ? 16 : align, bytes); }
void *aligned_alloc(size_t align, size_t bytes) { return memalign(align, bytes); }
void *valloc(size_t bytes) { return memalign(4096, bytes); }
void *pvalloc(size_t bytes) { return memalign(4096, (bytes + 4095) & ~(size_t)4095); }
int posix_memalign(void **block, size_t align, size_t bytes)
{
    *block = memalign(align, bytes);
    return *block == NULL ? ENOMEM : 0;
}
size_t malloc_usable_size(void *block) { return block == NULL ? 0 : bytes_of(block); }

static void *live(void *unused)
{
    char *text = NULL, *line = NULL;
    size_t room_bytes = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    must(file != NULL);
    while (getline(&line, &room_bytes, file) >= 0) {}
    must(fclose(file) == 0);
    free(line);
    must(asprintf(&text, "%s %d", "words", 5) == 7);
    free(text);
    free(strdup("copy"));
    free(aligned_alloc(256, 1000));
    free(realloc(malloc(10), 100000));
    return unused;
}

static void live_in_threads(void)
{
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) must(pthread_create(&thread[i], NULL, live, NULL) == 0);
    for (int i = 0; i < 4; i++) must(pthread_join(thread[i], NULL) == 0);
}

int main(void)
{
    if (!any_allocator_will_do()) must(dlsym(RTLD_DEFAULT, "prairie_version") != NULL);
    must(!lies_in_prairie(dlsym(RTLD_DEFAULT, "malloc")));
    (void)live(NULL);
    live_in_threads();
    for (int i = 0; i < 20; i++) {
        int status = 1;
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            live_in_threads();
            _exit(0);
        }
        must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    }
    void *library = dlopen("libm.so.6", RTLD_NOW);
    must(library != NULL && dlclose(library) == 0);
    (void)setlocale(LC_ALL, "C.UTF-8");
    must(taken > 100 && given > 100);
    printf("interpose: %ld blocks taken, %ld given\n", (long)taken, (long)given);
    return 0;
}
