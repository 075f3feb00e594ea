/* linux_fault.c - the handler for accesses to memory that is not there.
 *
 * It stands before whatever handler was there and passes on what is not ours, so that the program
 * ends, or goes on, as it would have. A handler that the program sets later takes its place.
 * SPDX-License-Identifier: MIT
 */
#include "linux.h"
#include "os.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

/* Of SIGSEGV and SIGBUS. */
static struct sigaction handler_before[2] SEALED; /* constant once the handler is there */
static bool (*fault_watcher)(const struct os_fault *) SEALED; /* the same */

static struct os_fault fault_of(const siginfo_t *info, const ucontext_t *context)
{
    struct os_fault fault = { .address = info->si_addr };

#if defined(__x86_64__)
    fault.code = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    fault.frame = (const void *)context->uc_mcontext.gregs[REG_RBP];
    fault.access = context->uc_mcontext.gregs[REG_ERR] & 2 ? OS_ACCESS_WRITE : OS_ACCESS_READ;
#elif defined(__aarch64__)
    fault.code = context->uc_mcontext.pc;
    fault.frame = (const void *)context->uc_mcontext.regs[29];
#else
    (void)context;
#endif
    return fault;
}

/* A handler that the program installed twice, below ours and above it, is passed what it passes on,
 * and would pass it on again. So the frame that passes a signal on is noted behind what the kernel
 * tells of the signal, where there is only room: a call that finds a frame above its own there is
 * one of such a round. Kernels before 4.17 leave in that place what was on the stack, such as a
 * note of the same call's frame from which a handler jumped away. */
static uintptr_t *passing_frame(siginfo_t *info) { return (uintptr_t *)(void *)(info + 1) - 1; }

static void note_passing(siginfo_t *info, const void *frame)
{
    *passing_frame(info) = (uintptr_t)frame ^ (uintptr_t)&handler_before;
}

static bool is_passed_on(siginfo_t *info, const void *frame, const void *context)
{
    uintptr_t noted = *passing_frame(info) ^ (uintptr_t)&handler_before;

    return noted > (uintptr_t)frame && noted < (uintptr_t)context;
}

/* For the default action. An access that was refused is repeated, and its signal comes again; what
 * else the kernel or somebody sent does not. */
static void end_by(int signal, siginfo_t *info)
{
    struct sigaction standard = { .sa_handler = SIG_DFL };

    *passing_frame(info) = 0; /* the kernel takes only what it knows */
    (void)sigaction(signal, &standard, NULL);
    if (signal == SIGSEGV && (info->si_code == SEGV_MAPERR || info->si_code == SEGV_ACCERR)) return;
    (void)kernel(SYS_rt_tgsigqueueinfo, os_process_id(), os_thread_id(), signal, (long)info);
}

/* The kernel looks at the address alone, whatever the flags say. */
static bool is_function(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* To the handler that was there before, with the signals blocked that it asked for: the kernel
 * restores the mask when ours returns. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
    const struct sigaction *before = &handler_before[signal == SIGBUS];
    struct sigaction standard = { .sa_handler = SIG_DFL };
    sigset_t mask = before->sa_mask, own;

    if (before->sa_handler == SIG_IGN && info->si_code <= 0) return;
    if (!is_function(before)) {
        end_by(signal, info);
        return;
    }
    if (before->sa_flags & (int)SA_RESETHAND) (void)sigaction(signal, &standard, NULL);
    (void)pthread_sigmask(SIG_BLOCK, &mask, NULL);
    if (before->sa_flags & SA_NODEFER) {
        (void)sigemptyset(&own);
        (void)sigaddset(&own, signal);
        (void)pthread_sigmask(SIG_UNBLOCK, &own, NULL);
    }
    if (before->sa_flags & SA_SIGINFO) before->sa_sigaction(signal, info, context);
    else before->sa_handler(signal);
}

/* What somebody sent has no address. */
static void on_fault(int signal, siginfo_t *info, void *context)
{
    const void *frame = __builtin_frame_address(0);
    int saved_errno = errno;
    bool done = false;

    if (is_passed_on(info, frame, context)) {
        end_by(signal, info);
        return;
    }
    if (info->si_code > 0) {
        struct os_fault fault = fault_of(info, context);
        done = fault_watcher(&fault);
    }
    errno = saved_errno;
    if (done) return;
    note_passing(info, frame);
    pass_on(signal, info, context);
}

/* Whether a call that waits goes on after the signal, and which stack the handler has, are as they
 * would be without us. Before the default action ours has the stack for signals: the thread's own
 * may be used up. */
static int flags_like(const struct sigaction *before)
{
    if (is_function(before)) return before->sa_flags & (SA_RESTART | SA_ONSTACK);
    return SA_ONSTACK
         | (before->sa_handler == SIG_IGN ? SA_RESTART : before->sa_flags & SA_RESTART);
}

/* Whoever faults as soon as ours is there must find what was there before. But in between another
 * thread may have installed its own. */
static bool watch(int signal, struct sigaction *before)
{
    struct sigaction ours = { .sa_sigaction = on_fault }, found, replaced;

    if (sigaction(signal, NULL, &found) != 0) return false;
    if (found.sa_sigaction == on_fault) return true; /* of a thread that a fork left behind */
    *before = found;
    ours.sa_flags = SA_SIGINFO | flags_like(before);
    if (sigaction(signal, &ours, &replaced) != 0) return false;
    if (__builtin_memcmp(before, &replaced, sizeof replaced) != 0) *before = replaced;
    return true;
}

bool os_watch_faults(bool (*watcher)(const struct os_fault *fault))
{
    int saved_errno = errno;
    bool done;

    fault_watcher = watcher;
    done = watch(SIGSEGV, &handler_before[0]) && watch(SIGBUS, &handler_before[1]);
    errno = saved_errno;
    return done;
}
