/* gate.c - counting, refusing and the clock, for every call that the library makes.
 * SPDX-License-Identifier: MIT
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "gate.h"

#include "os/linux.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAP_NS = 200000, MS_NS = 1000000, SECOND_NS = 1000000000 };

/* Written while only one process is there, but for what is atomic. */
static struct gate {
    struct gate_rule rule;
    uint64_t nth;
    bool and_all_after;
    _Atomic uint64_t seen, refused;
    _Atomic uint64_t added_ns;
} * gate;

void gate_make(void)
{
    gate = mmap(NULL, sizeof *gate, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (gate == MAP_FAILED) {
        perror("gate");
        exit(2);
    }
}

void gate_refuse(const struct gate_rule *rule, uint64_t nth, bool and_all_after)
{
    gate->rule = *rule;
    gate->nth = nth;
    gate->and_all_after = and_all_after;
    atomic_store(&gate->seen, 0);
    atomic_store(&gate->refused, 0);
}

bool gate_refuses_for_good(void) { return gate->nth != 0 && gate->and_all_after; }
uint64_t gate_seen(void) { return atomic_load(&gate->seen); }
uint64_t gate_refused(void) { return atomic_load(&gate->refused); }
void gate_clock_ms(uint64_t forward_ms) { atomic_fetch_add(&gate->added_ns, forward_ms * MS_NS); }

/* ---- counting and refusing ---- */

static bool is_ruled(long number, long word)
{
    return number == gate->rule.number && (gate->rule.word == GATE_ANY || gate->rule.word == word);
}

static bool refuses(long number, long word)
{
    uint64_t at;

    if (!is_ruled(number, word)) return false;
    at = atomic_fetch_add(&gate->seen, 1) + 1;
    if (gate->nth == 0 || at < gate->nth || (at > gate->nth && !gate->and_all_after)) return false;
    atomic_fetch_add(&gate->refused, 1);
    return true;
}

/* Half of the bytes, whole pages of a range: what a kernel leaves behind that stopped on its
 * way. */
static long answer_half(long number, long a, long b, long c)
{
    long half = b / 2 / 4096 * 4096;

    switch (number) {
    case SYS_madvise:
    case SYS_mprotect:
        if (half != 0) (void)kernel(number, a, half, c, 0, 0, 0);
        return -ENOMEM;
    default: return kernel(number, a, b, c / 2 + 1, 0, 0, 0);
    }
}

static long answer_for(long number, long a, long b, long c)
{
    switch (gate->rule.error) {
    case GATE_HALF: return answer_half(number, a, b, c);
    case GATE_END: return 0;
    default: return -gate->rule.error;
    }
}

/* ---- time ---- */

static void add_time(struct kernel_span *now)
{
    uint64_t added = atomic_load(&gate->added_ns) + (uint64_t)now->nanoseconds;

    now->seconds += (long)(added / SECOND_NS);
    now->nanoseconds = (long)(added % SECOND_NS);
}

static long nap(const uint32_t *word, long operation, long expected, const struct kernel_span *span)
{
    const struct kernel_span moment = { 0, NAP_NS };
    long result = kernel(SYS_futex, (long)word, operation, expected, (long)&moment, 0, 0);

    if (result == -ETIMEDOUT)
        atomic_fetch_add(&gate->added_ns,
                         (uint64_t)span->seconds * SECOND_NS + (uint64_t)span->nanoseconds);
    return result;
}

/* ---- the library's way to the kernel ---- */

long kernel_gate(long number, long a, long b, long c, long d, long e, long f);

long kernel_gate(long number, long a, long b, long c, long d, long e, long f)
{
    long word = number == SYS_madvise ? c : number == SYS_futex ? b : GATE_ANY;
    long result;

    if (refuses(number, word)) return answer_for(number, a, b, c);
    if (number == SYS_futex && b == FUTEX_WAIT_PRIVATE && d != 0)
        return nap((const uint32_t *)a, b, c, (const struct kernel_span *)d);
    result = kernel(number, a, b, c, d, e, f);
    if (number == SYS_clock_gettime && result == 0) add_time((struct kernel_span *)b);
    return result;
}

/* ---- its way to the C library: the linker leads there what is called without __wrap_ ---- */

int __real_clone(int (*body)(void *), void *stack, int flags, void *argument, ...);
int __real_sigaction(int signal, const struct sigaction *action, struct sigaction *before);
int __real_pthread_key_create(pthread_key_t *key, void (*destructor)(void *));
int __real_pthread_setspecific(pthread_key_t key, const void *value);
int __real_sched_getcpu(void);

static int with_errno(int error)
{
    errno = error;
    return -1;
}

int __wrap_clone(int (*body)(void *), void *stack, int flags, void *argument, ...)
{
    va_list rest;
    void *parent, *tls, *child;

    va_start(rest, argument);
    parent = va_arg(rest, void *);
    tls = va_arg(rest, void *);
    child = va_arg(rest, void *);
    va_end(rest);
    if (refuses(SYS_clone, GATE_ANY)) return with_errno(gate->rule.error);
    return __real_clone(body, stack, flags, argument, parent, tls, child);
}

int __wrap_sigaction(int signal, const struct sigaction *action, struct sigaction *before)
{
    if (refuses(GATE_SIGACTION, GATE_ANY)) return with_errno(gate->rule.error);
    return __real_sigaction(signal, action, before);
}

int __wrap_pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    if (refuses(GATE_KEY_CREATE, GATE_ANY)) return gate->rule.error;
    return __real_pthread_key_create(key, destructor);
}

int __wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
    if (refuses(GATE_SET_SPECIFIC, GATE_ANY)) return gate->rule.error;
    return __real_pthread_setspecific(key, value);
}

int __wrap_sched_getcpu(void)
{
    if (refuses(GATE_CURRENT_CORE, GATE_ANY)) return with_errno(gate->rule.error);
    return __real_sched_getcpu();
}
