/* kernel_gate.h - stands between linux.c and the real kernel, and answers some calls in its place:
 * as one that is older, short of memory, interrupted, or that forbids them. */
/* SPDX-License-Identifier: MIT */
/*
 * Before anything else: it includes linux.c, linux_files.c, linux_text.c and posix.c themselves.
 */
#ifndef PRAIRIE_TEST_KERNEL_GATE_H
#define PRAIRIE_TEST_KERNEL_GATE_H

#define PRAIRIE_KERNEL_GATE
#include <string.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

static unsigned long told_at_start(unsigned long what);
static int core_of_thread(void);
#define getauxval(what) told_at_start(what)
#define sched_getcpu core_of_thread
#include "os/linux.c"
#include "os/posix.c"
#include "os/no_owner.c"
#include "os/step.c"
#include "os/linux_files.c"
#include "os/linux_text.c"
#undef getauxval
#undef sched_getcpu

/* ---- what it tells a program at its start ---- */

static struct {
    unsigned long what, word;
} told[4]; /* instead of what is true; what 0: no more of them */

static unsigned long told_at_start(unsigned long what)
{
    for (unsigned i = 0; i < 4 && told[i].what != 0; i++)
        if (told[i].what == what) return told[i].word;
    return getauxval(what);
}

static inline void tell(unsigned i, unsigned long what, unsigned long word)
{
    told[i].what = what;
    told[i].word = word;
}

/* ---- its calls ---- */

static bool tells_no_core;

static int core_of_thread(void)
{
    if (!tells_no_core) return sched_getcpu();
    errno = ENOSYS;
    return -1;
}

#if defined(__s390x__)
enum { SYS_MAP = SYS_mmap };
static long map_flags(long a, long d) { return (void)d, ((const long *)a)[3]; }
#elif defined(SYS_mmap2)
enum { SYS_MAP = SYS_mmap2 };
static long map_flags(long a, long d) { return (void)a, d; }
#else
enum { SYS_MAP = SYS_mmap };
static long map_flags(long a, long d) { return (void)a, d; }
#endif

/* The calls of one kind: after some that pass, each n-th one gets this answer, so often. */
static struct {
    long number, answer;
    unsigned passing, each, times;
    unsigned asked; /* so far */
    long third;     /* word of the last one */
} gate = { .number = -1 };
static size_t transfer_bytes_max = SIZE_MAX; /* of one read or write */
static const char *file_instead;             /* what is opened, whatever its name */
static long refused_advice = -1, also_refused_advice = -1;
static bool never_mapped;     /* no pages in the place of others */
static bool leaves_nothing;   /* where pages moved away, as qemu's */
static size_t unmapped_bytes; /* so far */
static uint64_t thread_us
    [2]; /* the thread's processor worked so long at one look, and at the next; 0: as it did */

static inline void answer_some(long number, long answer, unsigned passing, unsigned each,
                               unsigned times)
{
    gate.number = number;
    gate.answer = answer;
    gate.passing = passing;
    gate.each = each;
    gate.times = times;
    gate.asked = 0;
}

static inline void answer(long number, long answer, unsigned times)
{
    answer_some(number, answer, 0, 1, times);
}

static bool is_answered(long number)
{
    unsigned before;

    if (number != gate.number) return false;
    before = gate.asked++;
    if (before < gate.passing || (before - gate.passing) % gate.each != 0 || gate.times == 0)
        return false;
    gate.times--;
    return true;
}

/* qemu's user emulation says yes to all and does nothing. */
static inline bool obeys_advice(void) { return madvise(NULL, 0, 0x7fffffff) != 0; }

static const unsigned long *cores; /* it may run on, in such words; NULL: as it may */
static size_t cores_bytes;

static void tell_time(struct kernel_span *span)
{
    *span = (struct kernel_span){ (long)(thread_us[0] / 1000000),
                                  (long)(thread_us[0] % 1000000) * 1000 };
    thread_us[0] = thread_us[1];
}

long kernel_gate(long number, long a, long b, long c, long d, long e, long f)
{
    int saved_errno = errno;
    long result;

    if (number == gate.number) gate.third = c;
    if (is_answered(number)) return gate.answer;
    if ((number == SYS_read || number == SYS_write) && (size_t)c > transfer_bytes_max)
        c = (long)transfer_bytes_max;
    if (number == SYS_clock_gettime && a == CLOCK_THREAD_CPUTIME_ID && thread_us[0] != 0) {
        tell_time((struct kernel_span *)b);
        return 0;
    }
    if (number == SYS_sched_getaffinity && cores != NULL) {
        memcpy((void *)c, cores, cores_bytes);
        return (long)cores_bytes;
    }
    if (number == SYS_madvise && (c == refused_advice || c == also_refused_advice)) return -EINVAL;
    if (number == SYS_MAP && (map_flags(a, d) & MAP_FIXED) && never_mapped) return -ENOMEM;
    if (number == SYS_openat && file_instead != NULL) b = (long)file_instead;
    result = syscall(number, a, b, c, d, e, f);
    if (result == -1) result = -errno;
    if (number == SYS_munmap && result == 0) unmapped_bytes += (size_t)b;
    if (number == SYS_mremap && !failed(result) && (d & MREMAP_DONTUNMAP) && leaves_nothing)
        (void)munmap((void *)a, (size_t)b);
    errno = saved_errno;
    return result;
}

/* ---- what else it stands on ---- */

__thread struct front *thread_slot;

void fatal_address(const char *what, const void *address)
{
    (void)address;
    fprintf(stderr, "%s, as %u calls said\n", what, gate.asked);
    abort();
}

#endif
