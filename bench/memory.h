/* memory.h - how much memory this process has, told by Linux without an allocation.
 * SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_BENCH_MEMORY_H
#define PRAIRIE_BENCH_MEMORY_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number behind a key, which begins with the line break before it, in KB; -1: there is no such
 * file, or no such key. */
static inline long memory_kb_in(const char *path, const char *key)
{
    char text[4096];
    size_t count = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    for (ssize_t got; (got = read(file, text + count, sizeof text - 1 - count)) > 0;)
        count += (size_t)got;
    close(file);
    text[count] = '\0';
    const char *found = strstr(text, key);
    return found != NULL ? strtol(found + strlen(key), NULL, 10) : -1;
}

/* Resident now. The kernel walks the page tables for it, so it is exact. VmRSS is not where the
 * kernel is older than 6.2: each thread may keep 64 pages that are not added up yet. */
static inline long memory_resident_kb(void)
{
    long kb = memory_kb_in("/proc/self/smaps_rollup", "\nRss:");
    return kb >= 0 ? kb : memory_kb_in("/proc/self/status", "\nVmRSS:");
}

/* The most that was resident since exec; getrusage tells that of the program before it, too. Within
 * the same 64 pages of each thread: no other count of a peak is to be had. */
static inline long memory_peak_kb(void) { return memory_kb_in("/proc/self/status", "\nVmHWM:"); }

#endif
