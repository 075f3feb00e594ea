/* linux_thread.c - the one thread that prairie starts itself.
 *
 * The background thread is a bare kernel thread, unknown to the C library: free() may be called
 * while the C library holds the locks that pthread_create wants. It gets a stack and an empty block
 * where thread-local storage would be; its body may use nothing but prairie's own floors. Signals
 * are blocked in it. Whether the program has one thread is known by two: the C library knows of its
 * threads, and this file of the background thread.
 * SPDX-License-Identifier: MIT
 */
#include "linux.h"

#include "../base/constants.h"
#include "os.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

enum { BACKGROUND_STACK_BYTES = 64 * 1024, BACKGROUND_TLS_BYTES = 64 * 1024 };

static char *background_memory;
static uint32_t background_alive; /* the kernel writes 0 when the thread is gone */

#if defined(__x86_64__)
static long clone_thread(unsigned long flags, char *stack, uint32_t *alive, char *tls,
                         void *(*body)(void *))
{
    register uint32_t *r10 __asm__("r10") = alive;
    register char *r8 __asm__("r8") = tls;
    register void *(*r9)(void *)__asm__("r9") = body;
    long result;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "xor %%edi, %%edi\n\t"
                     "call *%%r9\n\t"
                     "mov %[exit], %%eax\n\t"
                     "xor %%edi, %%edi\n\t"
                     "syscall\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(result)
                     : "a"((long)SYS_clone), "D"(flags), "S"(stack), "d"(alive), "r"(r10), "r"(r8),
                       "r"(r9), [exit] "i"(SYS_exit)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static long clone_thread(unsigned long flags, char *stack, uint32_t *alive, char *tls,
                         void *(*body)(void *))
{
    register long x8 __asm__("x8") = SYS_clone;
    register long x0 __asm__("x0") = (long)flags;
    register char *x1 __asm__("x1") = stack;
    register uint32_t *x2 __asm__("x2") = alive;
    register char *x3 __asm__("x3") = tls;
    register uint32_t *x4 __asm__("x4") = alive;
    register void *(*x9)(void *)__asm__("x9") = body;
    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "mov x30, xzr\n\t"
                     "blr x9\n\t"
                     "mov x8, %[exit]\n\t"
                     "mov x0, xzr\n\t"
                     "svc 0\n\t"
                     "brk 1\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x9), [exit] "i"(SYS_exit)
                     : "memory", "x30");
    return x0;
}
#endif

static bool background_memory_ready(void)
{
    size_t bytes = BACKGROUND_STACK_BYTES + BACKGROUND_TLS_BYTES;
    struct os_range range;

    if (background_memory != NULL) return true;
    range = os_reserve(bytes + os_page_bytes(), os_page_bytes());
    if (range.base == NULL) return false;
    /* The lowest page stays closed: a guard below the stack. */
    if (!os_commit((struct os_range){ range.base + os_page_bytes(), bytes })) {
        os_release(range);
        return false;
    }
    background_memory = range.base + os_page_bytes();
    return true;
}

/* ThreadSanitizer must know every thread that runs its code. */
static bool start_known_thread(void *(*body)(void *))
{
    pthread_t thread;

    return pthread_create(&thread, NULL, body, NULL) == 0 && pthread_detach(thread) == 0;
}

bool os_thread_start(void *(*body)(void *))
{
    enum {
        FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM
              | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID
    };
    uint64_t all = ~(uint64_t)0, before;
    char *stack, *tls;
    long result;

    if (THREADS_ARE_COUNTED) return start_known_thread(body);
    if (__atomic_load_n(&background_alive, __ATOMIC_ACQUIRE) != 0) return false;
    if (!background_memory_ready()) return false;
    stack = background_memory + BACKGROUND_STACK_BYTES;
    tls = stack + BACKGROUND_TLS_BYTES / 2;
    *(char **)tls = tls; /* x86-64 finds the block through its own first word */
    (void)kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof all, 0, 0);
    result = clone_thread(FLAGS, stack, &background_alive, tls, body);
    (void)kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0, 0);
    return !failed(result);
}

/* The kernel wakes who sleeps on the word when it writes the 0, and knows no private sleepers
 * there. */
void os_thread_wait(uint64_t most_ms)
{
    uint64_t end = os_now_ms() + most_ms, now = os_now_ms();
    uint32_t alive;

    while ((alive = __atomic_load_n(&background_alive, __ATOMIC_ACQUIRE)) != 0 && now < end) {
        struct timespec span = { .tv_sec = (time_t)((end - now) / 1000),
                                 .tv_nsec = (long)((end - now) % 1000) * 1000000 };

        (void)kernel(SYS_futex, (long)&background_alive, FUTEX_WAIT, alive, (long)&span, 0, 0);
        now = os_now_ms();
    }
}

void os_threads_forget(void) { background_alive = 0; }

/* By it the C library's fork decides whether locks matter; since 2.32. */
extern char __libc_single_threaded;
#pragma weak __libc_single_threaded

bool os_has_one_thread(void)
{
    return &__libc_single_threaded != NULL && RELAXED_LOAD(__libc_single_threaded) != 0;
}
