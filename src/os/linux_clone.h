/* linux_clone.h - starts a thread that the C library does not know.
 *
 * By a way of our own on the processors that most programs run on: musl's clone makes no threads
 * since 1.2.5. Elsewhere by the C library's, and in the fault sweep, which can refuse that one.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_OS_LINUX_CLONE_H
#define PRAIRIE_OS_LINUX_CLONE_H

#include "linux.h"

#include <sched.h>

/* Those of the C library's own threads, which sandboxes know. */
enum {
    THREAD_FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM
                 | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID
};

typedef int thread_entry(void *argument);

/* Runs entry(argument), which must not return, below `stack`. The kernel writes the thread's number
 * into `alive` before this returns, and 0 when the thread is gone. */
static bool thread_clone(thread_entry *entry, void *argument, char *stack, void *tls,
                         uint32_t *alive);

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(PRAIRIE_KERNEL_GATE)

/* At the top of the new stack: the thread takes them off it in this order. */
struct thread_start {
    thread_entry *entry;
    void *argument;
};

/* What the kernel answers the caller. The new thread begins with `start` and does not return. */
static long clone_to(struct thread_start *start, void *tls, uint32_t *alive)
{
#if defined(__x86_64__)
    register void *tls_argument __asm__("r8") = tls;
    register void *alive_argument __asm__("r10") = alive;
    long result;

    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "pop %%rax\n\t"
                     "pop %%rdi\n\t"
                     "call *%%rax\n\t"
                     "ud2\n"
                     "1:"
                     : "=a"(result)
                     : "a"((long)SYS_clone), "D"((long)THREAD_FLAGS), "S"(start), "d"(alive),
                       "r"(tls_argument), "r"(alive_argument)
                     : "rcx", "r11", "memory");
#else
    register long number __asm__("x8") = SYS_clone;
    register long result __asm__("x0") = THREAD_FLAGS;
    register void *x1 __asm__("x1") = start;
    register void *x2 __asm__("x2") = alive;
    register void *x3 __asm__("x3") = tls;
    register void *x4 __asm__("x4") = alive;

    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "ldp x1, x0, [sp], 16\n\t"
                     "blr x1\n\t"
                     "brk 1\n"
                     "1:"
                     : "+r"(result)
                     : "r"(number), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
                     : "memory");
#endif
    return result;
}

static bool thread_clone(thread_entry *entry, void *argument, char *stack, void *tls,
                         uint32_t *alive)
{
    struct thread_start *start = (void *)(stack - sizeof *start);

    *start = (struct thread_start){ entry, argument };
    return !failed(clone_to(start, tls, alive));
}

#else

static bool thread_clone(thread_entry *entry, void *argument, char *stack, void *tls,
                         uint32_t *alive)
{
    int saved_errno = errno;
    bool started = clone(entry, stack, THREAD_FLAGS, argument, alive, tls, alive) != -1;

    errno = saved_errno;
    return started;
}

#endif

#endif
