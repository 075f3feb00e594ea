/* linux.h - system calls made directly, for the files of this floor that speak to Linux.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_OS_LINUX_H
#define PRAIRIE_OS_LINUX_H

#include "../base/attrs.h"
#include "os.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef PRAIRIE_KERNEL_GATE
long kernel_gate(long number, long a, long b, long c, long d, long e, long f);
#endif

/* One system call; the result is negative errno on failure, and errno itself is left alone. What
 * the call does not take may be left out. Where there is no way of our own the C library's serves,
 * which knows neither locks nor cancellation. The fault sweep's calls pass a gate
 * (test/fault/gate.c), which refuses some. */
#define kernel(...) kernel_padded(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define kernel_padded(number, a, b, c, d, e, f, ...) kernel_call(number, a, b, c, d, e, f)
INLINE long kernel_call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(PRAIRIE_KERNEL_GATE)
    return kernel_gate(number, a, b, c, d, e, f);
#elif defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#elif defined(__i386__)
    long result;
    __asm__ volatile("pushl %7\n\t"
                     "push %%ebp\n\t"
                     "mov 4(%%esp), %%ebp\n\t"
                     "int $0x80\n\t"
                     "pop %%ebp\n\t"
                     "add $4, %%esp"
                     : "=a"(result)
                     : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e), "g"(f)
                     : "memory");
    return result;
#else
    int saved_errno = errno;
    long result = syscall(number, a, b, c, d, e, f);

    if (result == -1) result = -errno;
    errno = saved_errno;
    return result;
#endif
}

INLINE bool failed(long result) { return (unsigned long)result > -4096UL; }

/* mmap of pages that are no file's. */
INLINE long kernel_map(const void *at, size_t bytes, int protection, int flags)
{
    flags |= MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#if defined(__s390x__)
    unsigned long arguments[6] = { (unsigned long)at,         bytes,
                                   (unsigned long)protection, (unsigned long)flags,
                                   (unsigned long)-1,         0 };

    return kernel(SYS_mmap, (long)arguments);
#elif defined(SYS_mmap2)
    return kernel(SYS_mmap2, (long)at, (long)bytes, protection, flags, -1, 0);
#else
    return kernel(SYS_mmap, (long)at, (long)bytes, protection, flags, -1, 0);
#endif
}

/* Is the background thread there, or about to be? */
bool linux_background_lives(void);
/* Notes, by the thread that starts the background thread, whose rights that one has. */
void linux_rights_begin(void);
/* The background thread, which calls this, has a table of descriptors of its own, and may open
 * files there: soon after it starts. False: not with this kernel, or a filter has come since. */
bool linux_take_own_files(void);
/* Is the caller the background thread, with descriptors of its own? */
bool linux_has_own_files(void);

/* In decimal digits. Returns where they end. */
INLINE char *linux_write_number(char *at, unsigned long number)
{
    unsigned long unit = 1;

    while (number / unit >= 10) unit *= 10;
    for (; unit > 0; unit /= 10) *at++ = (char)('0' + number / unit % 10);
    return at;
}

/* All of it, also when signals come in between, or who reads is slow. Returns 0 or the kernel's
 * error. */
long linux_write(int file, const void *bytes, size_t count);
/* The file, to be read, or the kernel's error (failed()). */
long linux_open(const char *path);
/* Reads of a file what fits, with a 0 after it, and closes it; -1: there is none. Returns the
 * length; 0: nothing could be read. */
size_t linux_read_text(int file, char *text, size_t room_bytes);
/* Where the text after the first `label` begins; NULL: it is not there. */
const char *linux_text_after(const char *label, const char *text);
/* The decimal number at `*at`, which is moved past it; 0: there is none. */
uint64_t linux_number_at(const char **at);

/* As the calls without a number in their names take it, whatever the C library's timespec is. */
struct kernel_span {
    long seconds, nanoseconds;
};

INLINE struct kernel_span kernel_span_of(uint64_t ms)
{
    return (struct kernel_span){ (long)(ms / 1000), (long)(ms % 1000) * 1000000 };
}

/* The kernel may be short of what it needs for a moment; a bounded number of tries, never a
 * loop. */
bool linux_advise(struct os_range range, int advice);

#endif
