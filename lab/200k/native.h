/* native.h - instructions of this thread in user mode, as the processor counts them.
 * SPDX-License-Identifier: MIT
 *
 * A second opinion beside callgrind: for allocators that do not run under it, or run another way
 * there. Not every kernel lets us. Off by a few hundred from run to run. */
#ifndef PRAIRIE_LAB_NATIVE_H
#define PRAIRIE_LAB_NATIVE_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A handle for native_read; -1: the kernel or the processor does not count for us. */
static inline int native_open(void)
{
    struct perf_event_attr attr;

    memset(&attr, 0, sizeof attr);
    attr.type = PERF_TYPE_HARDWARE;
    attr.size = sizeof attr;
    attr.config = PERF_COUNT_HW_INSTRUCTIONS;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

/* So far; -1: cannot be told. */
static inline int64_t native_read(int handle)
{
    int64_t count;

    return handle >= 0 && read(handle, &count, sizeof count) == sizeof count ? count : -1;
}

#endif
