/* blackbox.h - for tests of whole processes: who serves malloc, memory held, time and chance. */
/* SPDX-License-Identifier: MIT */
/*
 * Such a test is an ordinary program that runs with a flavour's library preloaded, or linked in.
 * main calls require_prairie() first, so that no test passes because the library was not there.
 * Environment: PRAIRIE_TEST_ANY=1 lets another allocator serve (to check the test itself),
 * PRAIRIE_TEST_PERCENT scales iteration counts, PRAIRIE_TEST_SEED repeats a run.
 * PRAIRIE_TEST_SLOWER says how many times slower than the processor an emulator is: fewer
 * iterations, more patience. Nothing here allocates, so that observing does not disturb.
 */
#ifndef PRAIRIE_TEST_BLACKBOX_H
#define PRAIRIE_TEST_BLACKBOX_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emulator.h"
#include "process_status.h"

/* A function that every test has and not every test needs. */
#define SHARED static __attribute__((unused))

#ifdef __cplusplus
extern "C" {
#endif

extern const char *prairie_version(void) __attribute__((weak));
extern void prairie_check_all(void) __attribute__((weak));

/* ctest reads this exit code as "skipped"; the reason is on the last line of output. */
enum { EXIT_SKIPPED = 77 };

/* Ends the test as failed, past stdio's buffers and without allocating. */
SHARED __attribute__((format(printf, 1, 2), noreturn)) void give_up(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vdprintf(2, format, arguments);
    va_end(arguments);
    dprintf(2, "\n");
    _exit(1);
}

#define must(condition) \
    ((condition)        \
         ? (void)0      \
         : give_up("%s:%d: not true: %s (errno %d)", __FILE__, __LINE__, #condition, errno))

SHARED __attribute__((format(printf, 1, 2), noreturn)) void skip_test(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    dprintf(1, "skipped: ");
    vdprintf(1, format, arguments);
    va_end(arguments);
    dprintf(1, "\n");
    _exit(EXIT_SKIPPED);
}

SHARED bool any_allocator_will_do(void)
{
    const char *any = getenv("PRAIRIE_TEST_ANY");
    return any != NULL && any[0] == '1';
}

#ifndef PRAIRIE_INSIDE
/* True when the code at `address` lies in libprairie.so. */
SHARED bool lies_in_prairie(const void *address)
{
    Dl_info info;
    return address != NULL && dladdr(address, &info) != 0 && info.dli_fname != NULL
        && strstr(info.dli_fname, "libprairie") != NULL;
}
#endif

/* Fails the test unless prairie answers malloc and free in this process. A program that holds
 * prairie itself (statically linked, PRAIRIE_INSIDE defined) proves it by the version symbol
 * instead. */
SHARED void require_prairie(void)
{
    /* Lines that were printed must not be lost when give_up ends the process. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (any_allocator_will_do()) return;
#ifdef PRAIRIE_INSIDE
    if (prairie_version == NULL) give_up("prairie is not linked into this program");
#else
    if (!lies_in_prairie(dlsym(RTLD_DEFAULT, "malloc"))) give_up("malloc is not prairie's");
    if (!lies_in_prairie(dlsym(RTLD_DEFAULT, "free"))) give_up("free is not prairie's");
#endif
}

/* Has prairie walk its own records, where it offers that; it aborts when one of them is broken. */
SHARED void walk_heap(void)
{
#ifdef PRAIRIE_INSIDE
    if (prairie_check_all != NULL) prairie_check_all();
#else
    void (*walk)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "prairie_check_all");
    if (walk != NULL) walk();
#endif
}

SHARED long environment_number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? strtol(text, NULL, 0) : otherwise;
}

/* An iteration count, scaled by PRAIRIE_TEST_PERCENT and PRAIRIE_TEST_SLOWER; at least 1. */
SHARED long scaled(long count)
{
    long result =
        count * environment_number("PRAIRIE_TEST_PERCENT", 100) / 100 / (long)times_slower();
    return result > 0 ? result : 1;
}

/* Seconds after which something hangs. */
SHARED unsigned patience(unsigned seconds) { return seconds * times_slower(); }

SHARED uint64_t seed_of_run(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    long seed = environment_number("PRAIRIE_TEST_SEED", now.tv_nsec + now.tv_sec % 1000);
    printf("seed %ld (repeat with PRAIRIE_TEST_SEED=%ld)\n", seed, seed);
    fflush(stdout);
    return (uint64_t)seed;
}

/* splitmix64: the next number of the sequence that `state` stands in. */
SHARED uint64_t random_next(uint64_t *state)
{
    uint64_t word = *state += UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

/* A number in [low, high]. */
SHARED size_t random_between(uint64_t *state, size_t low, size_t high)
{
    return low + (size_t)(random_next(state) % (high - low + 1));
}

SHARED double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

SHARED void sleep_ms(long ms)
{
    struct timespec left = { ms / 1000, ms % 1000 * 1000000 };
    while (nanosleep(&left, &left) != 0) {}
}

SHARED long status_kb(const char *field)
{
    long kb = read_status_kb(field);
    if (kb < 0) give_up("/proc/self/status has no %s", field);
    return kb;
}

SHARED long resident_kb(void) { return status_kb("VmRSS:"); }

/* Threads of this process, those that the C library does not know among them. */
SHARED int task_count(void)
{
    DIR *folder = opendir("/proc/self/task");
    must(folder != NULL);
    int count = -2;
    if (times_slower() > 1) count--; /* an emulator has one itself */
    while (readdir(folder) != NULL) count++;
    closedir(folder);
    return count;
}

SHARED bool bytes_are(const void *base, unsigned char value, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)base;
    return bytes == 0 || (at[0] == value && memcmp(at, at + 1, bytes - 1) == 0);
}

/* Fills a block so that every byte depends on `key` and its place. */
SHARED void stamp(void *block, size_t bytes, uint64_t key)
{
    unsigned char *byte = (unsigned char *)block;
    for (size_t i = 0; i < bytes; i++) byte[i] = (unsigned char)(key * 31 + i * 7 + (i >> 8));
}

SHARED bool stamp_holds(const void *block, size_t bytes, uint64_t key)
{
    const unsigned char *byte = (const unsigned char *)block;
    for (size_t i = 0; i < bytes; i++)
        if (byte[i] != (unsigned char)(key * 31 + i * 7 + (i >> 8))) return false;
    return true;
}

#ifdef __cplusplus
}
#endif

#endif
