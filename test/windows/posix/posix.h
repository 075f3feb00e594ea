/* posix.h - what tests that were written for POSIX need on Windows beyond what mingw-w64 has. */
/* SPDX-License-Identifier: MIT */
/*
 * Taken in before the first line of each of them (-include), so that they stay as they are. Only
 * what can be had: there is no fork, of signals there is only what signal.h says, and tests that
 * need more are not built here (not_here.txt).
 */
#ifndef PRAIRIE_TEST_WINDOWS_POSIX_H
#define PRAIRIE_TEST_WINDOWS_POSIX_H

#define _GNU_SOURCE
#define __USE_MINGW_ANSI_STDIO 1

#include <malloc.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <pthread_time.h>

/* A weak name here does not bring along what an import library has of that name. All are there. */
#define weak

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the C library ---- */

int vdprintf(int file, const char *format, va_list arguments);
int dprintf(int file, const char *format, ...) __attribute__((format(gnu_printf, 2, 3)));
#define O_CLOEXEC 0
enum { _SC_PAGESIZE = 1, _SC_NPROCESSORS_ONLN };
long sysconf(int what);
int pause(void);
int setenv(const char *name, const char *value, int overwrite);
int unsetenv(const char *name);
/* Files of /proc/self: status has the process's own memory. */
int posix_open(const char *path, int flags, ...);
#define open posix_open

void *aligned_alloc(size_t align, size_t size);
int posix_memalign(void **block, size_t align, size_t size);
void *memalign(size_t align, size_t size);
void *valloc(size_t size);
void *pvalloc(size_t size);
void *reallocarray(void *block, size_t count, size_t size);
void cfree(void *block);
void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t align, size_t size);
size_t malloc_usable_size(void *block);
int malloc_trim(size_t pad);

#ifdef __cplusplus
}
#endif

#endif
