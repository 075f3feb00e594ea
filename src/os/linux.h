/* linux.h - system calls made directly, for the files of this floor that speak to Linux.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_OS_LINUX_H
#define PRAIRIE_OS_LINUX_H

#include "../base/attrs.h"

/* One system call; the result is negative errno on failure, and errno itself is left alone. */
INLINE long kernel(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
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
#else
#error "prairie speaks to Linux on x86-64 and aarch64"
#endif
}

INLINE bool failed(long result) { return (unsigned long)result > -4096UL; }

#endif
