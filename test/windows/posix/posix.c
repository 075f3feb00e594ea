/* posix.c - posix.h, signal.h and dlfcn.h on Windows' own functions, and on prairie's. */
/* SPDX-License-Identifier: MIT */
/*
 * In a program that contains prairie the names of POSIX are prairie's functions. Otherwise malloc,
 * calloc, realloc and free are the C library's, which prairie.dll answers, and the rest are those
 * of prairie.dll, which cannot set the program's errno when they refuse.
 */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <pthread.h>
#include <prairie/prairie.h>
#include <psapi.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>
#include <jemalloc/jemalloc.h>

#include "dlfcn.h"
#include "signal.h"
#include "sys/wait.h"

#undef open

/* ---- children ---- */

pid_t fork(void)
{
    errno = ENOSYS;
    return -1;
}

pid_t waitpid(pid_t child, int *status, int options)
{
    (void)child, (void)status, (void)options;
    return fork();
}

/* ---- signals ---- */

static void (*_Atomic handler)(int signal);

int sigaction(int signal, const struct sigaction *action, struct sigaction *before)
{
    (void)before;
    if (signal != SIGUSR1) return fork();
    handler = action->sa_handler;
    return 0;
}

/* What a thread allocates at its begin and end is done while the receiver runs. */
static void *deliver(void *receiver)
{
    CONTEXT context = { .ContextFlags = CONTEXT_CONTROL };

    SuspendThread(receiver);
    GetThreadContext(receiver, &context); /* answers when it does stand still */
    handler(SIGUSR1);
    ResumeThread(receiver);
    return NULL;
}

int posix_pthread_kill(pthread_t receiver, int signal)
{
    pthread_t sender;
    int error;

    if (signal != SIGUSR1) return ENOSYS;
    error = pthread_create(&sender, NULL, deliver, pthread_gethandle(receiver));
    return error != 0 ? error : pthread_detach(sender);
}

/* ---- files and settings ---- */

int vdprintf(int file, const char *format, va_list arguments)
{
    char text[4096];
    int length = vsnprintf(text, sizeof text, format, arguments);

    return length < 0 ? length : write(file, text, (unsigned)min((size_t)length, sizeof text - 1));
}

int dprintf(int file, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vdprintf(file, format, arguments);
    va_end(arguments);
    return length;
}

long sysconf(int what)
{
    SYSTEM_INFO info;

    GetSystemInfo(&info);
    return what == _SC_PAGESIZE ? (long)info.dwPageSize : (long)info.dwNumberOfProcessors;
}

int pause(void)
{
    Sleep(INFINITE);
    return -1;
}

int setenv(const char *name, const char *value, int overwrite)
{
    return overwrite || getenv(name) == NULL ? _putenv_s(name, value) : 0;
}

int unsetenv(const char *name) { return _putenv_s(name, ""); }

static int open_status(void)
{
    PROCESS_MEMORY_COUNTERS counters = { .cb = sizeof counters };
    int ends[2], length;
    char text[100];

    if (!K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters)
        || _pipe(ends, 4096, _O_BINARY) != 0)
        return -1;
    length = snprintf(text, sizeof text, "VmSize: %zu kB\nVmRSS: %zu kB\n",
                      counters.PagefileUsage / 1024, counters.WorkingSetSize / 1024);
    if (write(ends[1], text, (unsigned)length) != length) return -1;
    close(ends[1]);
    return ends[0];
}

int posix_open(const char *path, int flags, ...)
{
    int mode = 0;

    if (strcmp(path, "/proc/self/status") == 0) return open_status();
    if ((flags & O_CREAT) != 0) {
        va_list arguments;

        va_start(arguments, flags);
        mode = va_arg(arguments, int);
        va_end(arguments);
    }
    return open(path, flags, mode);
}

/* ---- functions of memory ---- */

#ifdef PRAIRIE_IN_PROGRAM
static void *checked(void *block, size_t align)
{
    (void)align;
    return block;
}
#else
static void *checked(void *block, size_t align)
{
    if (block == NULL) errno = align == 0 || (align & (align - 1)) != 0 ? EINVAL : ENOMEM;
    return block;
}
#endif

void *aligned_alloc(size_t align, size_t size)
{
    return checked(prairie_aligned_alloc(align, size), align);
}

void *memalign(size_t align, size_t size) { return checked(prairie_memalign(align, size), align); }
void *valloc(size_t size) { return checked(prairie_valloc(size), 1); }
void *pvalloc(size_t size) { return checked(prairie_pvalloc(size), 1); }

void *reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;

    if (block != NULL && !__builtin_mul_overflow(count, size, &bytes) && bytes == 0)
        return prairie_reallocarray(block, count, size);
    return checked(prairie_reallocarray(block, count, size), 1);
}

int posix_memalign(void **block, size_t align, size_t size)
{
    return prairie_posix_memalign(block, align, size);
}

void cfree(void *block) { free(block); }
void free_sized(void *block, size_t size) { prairie_free_sized(block, size); }

void free_aligned_sized(void *block, size_t align, size_t size)
{
    prairie_free_aligned_sized(block, align, size);
}

size_t malloc_usable_size(void *block) { return prairie_usable_size(block); }
int malloc_trim(size_t pad)
{
    (void)pad;
    return prairie_purge() > 0;
}

/* Found by their names they are these. */
static void *mallocx_with_errno(size_t size, int flags) { return checked(mallocx(size, flags), 1); }

static void *rallocx_with_errno(void *block, size_t size, int flags)
{
    return checked(rallocx(block, size, flags), 1);
}

/* ---- names ---- */

/* Those that <prairie/reserve.h> calls limit_hard_set and limit_soft_set. */
void prairie_limit_hard_set(size_t bytes);
void prairie_limit_soft_set(size_t bytes);

#define AS(name, function)               \
    {                                    \
        name, (void (*)(void))(function) \
    }
#define NAMED(name) AS(#name, name)
static const struct {
    const char *name;
    void (*function)(void);
} names[] = {
    NAMED(malloc),
    NAMED(calloc),
    NAMED(realloc),
    NAMED(free),
    NAMED(aligned_alloc),
    NAMED(memalign),
    NAMED(posix_memalign),
    NAMED(valloc),
    NAMED(pvalloc),
    NAMED(reallocarray),
    NAMED(cfree),
    NAMED(free_sized),
    NAMED(malloc_trim),
    NAMED(free_aligned_sized),
    NAMED(malloc_usable_size),
    AS("mallocx", mallocx_with_errno),
    AS("rallocx", rallocx_with_errno),
    NAMED(xallocx),
    NAMED(sallocx),
    NAMED(dallocx),
    NAMED(sdallocx),
    NAMED(nallocx),
    NAMED(mallctl),
    NAMED(prairie_check_all),
    NAMED(prairie_stats_read),
    NAMED(prairie_defrag_hint),
    NAMED(prairie_purge),
    NAMED(prairie_limit_hard_set),
    NAMED(prairie_limit_soft_set),
};

/* Of the table, else what prairie.dll or the program itself exports. */
void *dlsym(void *library, const char *name)
{
    HMODULE module = GetModuleHandleW(L"prairie.dll");

    (void)library;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, name) == 0) return (void *)names[i].function;
    return (void *)GetProcAddress(module != NULL ? module : GetModuleHandleW(NULL), name);
}

/* Whose malloc it is shows in what it says of a block: Windows' heaps say 100, prairie 112. */
int dladdr(const void *address, Dl_info *info)
{
    void *block = malloc(100);
    bool served = block != NULL && _msize(block) == 112;

    (void)address;
    free(block);
    info->dli_fname = served ? "libprairie" : "msvcrt.dll";
    return 1;
}

/* ---- checks that are left out ---- */

/* Names, or how they begin and a star; between them a |. */
static bool is_left_out(const char *check)
{
    const char *at = getenv("PRAIRIE_TEST_LEFT_OUT");

    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, "|");
        bool begins = length > 0 && at[length - 1] == '*';

        if (strncmp(at, check, begins ? length - 1 : length) == 0
            && (begins || check[length] == '\0'))
            return true;
        at += length + (at[length] == '|');
    }
    return false;
}

int __real__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t count,
                                   CMFixtureFunction setup, CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t count,
                                   CMFixtureFunction setup, CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t count,
                                   CMFixtureFunction setup, CMFixtureFunction teardown)
{
    struct CMUnitTest *here = calloc(count, sizeof *here);
    size_t left = 0;
    int failures;

    for (size_t i = 0; i < count; i++) {
        if (is_left_out(tests[i].name)) printf("left out here: %s\n", tests[i].name);
        else here[left++] = tests[i];
    }
    failures = __real__cmocka_run_group_tests(group, here, left, setup, teardown);
    free(here);
    return failures;
}
