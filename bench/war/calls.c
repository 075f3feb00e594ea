// calls.c - stands before an allocator, counts what a program asks of it, and passes it on.
// SPDX-License-Identifier: MIT
//
//   LD_PRELOAD="libcalls.so /path/to/allocator.so" PRAIRIE_FIGURES=file program
//
// At the end it appends `calls`, the calls of malloc's family, and `live_peak`, the most memory that was
// in use at once, to the file of figures. Sizes are those of malloc_usable_size. An allocator's own
// operators new and delete do not pass here; those of the C++ library do.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

// What dlsym itself asks for before the allocator is known.
enum { EARLY_SIZE = 1 << 16, EARLY_ALIGNMENT = 16 };
static _Alignas(EARLY_ALIGNMENT) char early[EARLY_SIZE];
static _Atomic size_t early_used;

static struct {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    size_t (*usable_size)(void *);
} next;

static _Atomic bool is_ready;
static _Atomic uint64_t calls;
static _Atomic uint64_t usable_size_calls;
static _Atomic int64_t live;
static _Atomic int64_t live_peak;

static void find_next(void)
{
    static _Thread_local bool is_inside;
    if (is_ready || is_inside) return;
    is_inside = true;
    // POSIX lets an object pointer of dlsym stand for a function; ISO C has no cast for that.
#define FIND(field, name) (*(void **)&next.field = dlsym(RTLD_NEXT, name))
    FIND(malloc, "malloc");
    FIND(free, "free");
    FIND(calloc, "calloc");
    FIND(realloc, "realloc");
    FIND(memalign, "memalign");
    FIND(aligned_alloc, "aligned_alloc");
    FIND(posix_memalign, "posix_memalign");
    FIND(usable_size, "malloc_usable_size");
    is_ready = true;
    is_inside = false;
}

static bool is_early(const void *block)
{
    return (const char *)block >= early && (const char *)block < early + EARLY_SIZE;
}

static void *early_block(size_t size)
{
    size_t need = (size + EARLY_ALIGNMENT - 1) / EARLY_ALIGNMENT * EARLY_ALIGNMENT;
    size_t start = atomic_fetch_add(&early_used, need);
    return start + need <= EARLY_SIZE ? early + start : NULL;
}

static void count_call(void) { atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed); }

static void add_live(int64_t bytes)
{
    int64_t now = atomic_fetch_add_explicit(&live, bytes, memory_order_relaxed) + bytes;
    int64_t peak = atomic_load_explicit(&live_peak, memory_order_relaxed);
    while (now > peak
           && !atomic_compare_exchange_weak_explicit(&live_peak, &peak, now, memory_order_relaxed,
                                                     memory_order_relaxed)) {}
}

static void *gained(void *block)
{
    if (block) add_live((int64_t)next.usable_size(block));
    return block;
}

EXPORT void *malloc(size_t size)
{
    find_next();
    if (!is_ready) return early_block(size);
    count_call();
    return gained(next.malloc(size));
}

EXPORT void free(void *block)
{
    if (!block || is_early(block)) return;
    find_next();
    count_call();
    add_live(-(int64_t)next.usable_size(block));
    next.free(block);
}

EXPORT void *calloc(size_t count, size_t size)
{
    find_next();
    if (!is_ready) return early_block(count * size);
    count_call();
    return gained(next.calloc(count, size));
}

EXPORT void *realloc(void *block, size_t size)
{
    find_next();
    if (is_early(block)) {
        void *moved = malloc(size);
        size_t known = (size_t)(early + EARLY_SIZE - (char *)block);
        if (moved) memcpy(moved, block, size < known ? size : known);
        return moved;
    }
    count_call();
    int64_t before = block ? (int64_t)next.usable_size(block) : 0;
    void *moved = next.realloc(block, size);
    if (moved) {
        add_live((int64_t)next.usable_size(moved) - before);
    } else if (size == 0) {
        add_live(-before);
    }
    return moved;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    find_next();
    count_call();
    return gained(next.memalign(alignment, size));
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    find_next();
    count_call();
    return gained(next.aligned_alloc(alignment, size));
}

// An allocator may lack these three: they are passed on as what they stand for.

EXPORT void *reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, bytes);
}

EXPORT void *valloc(size_t size) { return memalign((size_t)sysconf(_SC_PAGESIZE), size); }

EXPORT void *pvalloc(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes;
    if (__builtin_add_overflow(size, page - 1, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return memalign(page, bytes / page * page);
}

EXPORT int posix_memalign(void **place, size_t alignment, size_t size)
{
    find_next();
    count_call();
    int error = next.posix_memalign(place, alignment, size);
    if (!error) (void)gained(*place);
    return error;
}

EXPORT size_t malloc_usable_size(void *block)
{
    if (!block || is_early(block)) return 0;
    find_next();
    atomic_fetch_add_explicit(&usable_size_calls, 1, memory_order_relaxed);
    return next.usable_size(block);
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("PRAIRIE_FIGURES");
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (file < 0) return;
    char text[200];
    int length = snprintf(
        text, sizeof text, "calls %llu\nusable_size_calls %llu\nlive_peak %lld bytes\n",
        (unsigned long long)calls, (unsigned long long)usable_size_calls, (long long)live_peak);
    if (write(file, text, (size_t)length) != length) perror("PRAIRIE_FIGURES");
    close(file);
}
