/* system_posix.c - what the measuring program asks Linux.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "system.h"

#include "../memory.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

void *system_memory(size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return base != MAP_FAILED ? base : NULL;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct moment system_now(void)
{
    return (struct moment){ .cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
                            .wall_ns = clock_ns(CLOCK_MONOTONIC) };
}

long system_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

long system_peak_kb(void) { return memory_peak_kb(); }

const char *system_malloc_owner(void)
{
    Dl_info info;
    void *symbol = dlsym(RTLD_DEFAULT, "malloc");
    return symbol != NULL && dladdr(symbol, &info) != 0 ? info.dli_fname : "?";
}
