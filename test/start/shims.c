/* shims.c - a library that stands before the C library's calls of the kernel, as profilers,
 * sandboxes and changers of the clock do: each of its functions allocates, and finds the next one
 * by dlsym. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "shims.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct shim_calls shim_calls;

static void *next_of(const char *name, const void *caller)
{
    int at = __atomic_fetch_add(&shim_calls.count, 1, __ATOMIC_RELAXED);

    if (at < SHIM_CALLERS_MAX) {
        shim_calls.caller[at] = caller;
        shim_calls.name[at] = name;
    }
    free(calloc(3, 1000));
    return dlsym(RTLD_NEXT, name);
}

#define NEXT(name) ((__typeof__(&(name)))next_of(#name, __builtin_return_address(0)))

/* Functions are told apart by what they take, and go on to the next of their name. */
#define SHIM(result, name, parameters, arguments) \
    result name parameters { return NEXT(name) arguments; }

SHIM(void *, mmap, (void *at, size_t bytes, int prot, int flags, int file, off_t offset),
     (at, bytes, prot, flags, file, offset))
SHIM(void *, mmap64, (void *at, size_t bytes, int prot, int flags, int file, off64_t offset),
     (at, bytes, prot, flags, file, offset))
SHIM(int, munmap, (void *at, size_t bytes), (at, bytes))
SHIM(int, mprotect, (void *at, size_t bytes, int prot), (at, bytes, prot))
SHIM(int, madvise, (void *at, size_t bytes, int advice), (at, bytes, advice))
SHIM(void *, sbrk, (intptr_t bytes), (bytes))
SHIM(ssize_t, read, (int file, void *bytes, size_t count), (file, bytes, count))
SHIM(ssize_t, write, (int file, const void *bytes, size_t count), (file, bytes, count))
SHIM(int, close, (int file), (file))
SHIM(ssize_t, readlink, (const char *path, char *text, size_t room), (path, text, room))
SHIM(char *, getenv, (const char *name), (name))
SHIM(char *, secure_getenv, (const char *name), (name))
SHIM(int, clock_gettime, (clockid_t clock, struct timespec *now), (clock, now))
SHIM(ssize_t, getrandom, (void *bytes, size_t count, unsigned flags), (bytes, count, flags))
SHIM(int, getrlimit, (__rlimit_resource_t what, struct rlimit *limit), (what, limit))
SHIM(pid_t, getpid, (void), ())
SHIM(long, sysconf, (int name), (name))

void *mremap(void *at, size_t bytes, size_t bytes_new, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    return NEXT(mremap)(at, bytes, bytes_new, flags, to);
}

static int mode_of(int flags, va_list more)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, int) : 0;
}

#define SHIM_OPEN(name)                        \
    int name(const char *path, int flags, ...) \
    {                                          \
        va_list more;                          \
        va_start(more, flags);                 \
        int mode = mode_of(flags, more);       \
        va_end(more);                          \
        return NEXT(name)(path, flags, mode);  \
    }

SHIM_OPEN(open)
SHIM_OPEN(open64)

int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    int mode = mode_of(flags, more);
    va_end(more);
    return NEXT(openat)(folder, path, flags, mode);
}

long syscall(long number, ...)
{
    va_list more;
    va_start(more, number);
    long word[6];
    for (int i = 0; i < 6; i++) word[i] = va_arg(more, long);
    va_end(more);
    return NEXT(syscall)(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}
