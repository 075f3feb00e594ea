/* fault_test.c - what is told of an access that the processor refused; it leaves no trace. */
/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>

/* As by a filter: of a signal that another handler is wanted for; or all, before that is asked. */
static int refused_signal;
static bool handlers_are_refused;
static const struct sigaction *comes_between; /* of another thread, just before ours */

static int may_act(int signal, const struct sigaction *wanted, struct sigaction *before)
{
    if (wanted != NULL && comes_between != NULL) (void)sigaction(signal, comes_between, NULL);
    if (!handlers_are_refused && (wanted == NULL || signal != refused_signal))
        return sigaction(signal, wanted, before);
    errno = EPERM;
    return -1;
}

/* The real kernel's watch, beside the fake kernel's. */
#define os_watch_faults watch_real_faults
#define os_thread_id real_thread_id
#define os_process_id real_process_id
#define sigaction(signal, wanted, before) may_act(signal, wanted, before)
#include "os/linux_fault.c"
#undef sigaction

#include "unit.h"

#include <sys/mman.h>
#include <sys/wait.h>

uint32_t real_process_id(void) { return (uint32_t)getpid(); }
uint32_t real_thread_id(void) { return (uint32_t)syscall(SYS_gettid); }

#if defined(__x86_64__)
enum { TELLS_CODE = true, TELLS_ACCESS = true };
#else
enum { TELLS_CODE = sizeof(void *) > 4, TELLS_ACCESS = false };
#endif

enum { PAGE_BYTES = 64 * 1024, FUNCTION_BYTES_MAX = 400, FRAME_BYTES_MAX = 400 };

static char *page;
static struct os_fault told;

static void set_rights(int rights) { assert_int_equal(mprotect(page, PAGE_BYTES, rights), 0); }

static bool open_page(const struct os_fault *fault)
{
    told = *fault;
    set_rights(PROT_READ | PROT_WRITE);
    errno = EISDIR; /* of no concern to the program */
    return true;
}

static void watch_a_page(void)
{
    page = mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    assert_true(watch_real_faults(open_page));
}

static __attribute__((noinline, no_sanitize_address)) void write_byte(volatile char *at)
{
    *at = 1;
}
static __attribute__((noinline, no_sanitize_address)) void read_byte(volatile char *at)
{
    (void)*at;
}

static void expect_told(void (*function)(volatile char *at), char *at, enum os_access access)
{
    set_rights(PROT_NONE);
    function(at);
    assert_ptr_equal(told.address, at);
    if (TELLS_CODE)
        assert_in_range((uintptr_t)__builtin_frame_address(0) - (uintptr_t)told.frame, 0,
                        FRAME_BYTES_MAX);
    if (TELLS_ACCESS) assert_int_equal(told.access, access);
    if (TELLS_CODE) assert_in_range(told.code - (uintptr_t)function, 0, FUNCTION_BYTES_MAX);
}

static void an_access_is_told_with_its_code(void **state)
{
    (void)state;
    watch_a_page();
    expect_told(write_byte, page + 5, OS_ACCESS_WRITE);
    expect_told(read_byte, page + 77, OS_ACCESS_READ);
}

static void the_program_goes_on_as_if_nothing_was(void **state)
{
    (void)state;
    watch_a_page();
    errno = EDOM;
    write_byte(page + 5);
    assert_int_equal(errno, EDOM);
    assert_int_equal(page[5], 1);
}

static unsigned passed_on;
static int passed_code;

static void note_passed(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    passed_on++;
    passed_code = info->si_code;
}

/* Where the kernel says who sent it there is no address that a watcher could look at. */
static void what_somebody_sent_goes_to_the_handler_before(void **state)
{
    struct sigaction before = { .sa_sigaction = note_passed, .sa_flags = SA_SIGINFO };

    (void)state;
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_int_equal(sigaction(SIGBUS, &before, NULL), 0);
    watch_a_page();
    assert_int_equal(kill(getpid(), SIGSEGV), 0);
    assert_int_equal(passed_on, 1);
    assert_int_equal(passed_code, SI_USER);
    assert_int_equal(raise(SIGBUS), 0);
    assert_int_equal(passed_on, 2);
    assert_int_equal(passed_code, SI_TKILL);
    assert_null(told.address); /* nobody was asked */
    expect_told(write_byte, page + 5, OS_ACCESS_WRITE);
    assert_int_equal(passed_on, 2);
}

/* ---- what is not ours ---- */

static bool pass_by(const struct os_fault *fault)
{
    (void)fault;
    return false;
}

static sigset_t mask_in_handler;
static unsigned plain_calls;

static void note_mask(int signal)
{
    (void)signal;
    plain_calls++;
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask_in_handler), 0);
}

/* Ours comes after a handler with these flags, which asks for one more signal to be blocked. */
static void watch_after(void (*handler)(int), int flags)
{
    struct sigaction before = { .sa_handler = handler, .sa_flags = flags };

    sigaddset(&before.sa_mask, SIGUSR1);
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_int_equal(sigaction(SIGBUS, &before, NULL), 0);
    assert_true(watch_real_faults(pass_by));
}

static void expect_blocked(int signal, bool itself)
{
    assert_int_equal(sigismember(&mask_in_handler, SIGUSR1), 1);
    assert_int_equal(sigismember(&mask_in_handler, SIGUSR2), 0);
    assert_int_equal(sigismember(&mask_in_handler, signal), itself);
}

/* Afterwards the mask is as it was. */
static void expect_nothing_blocked(void)
{
    sigset_t mask;

    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    assert_int_equal(sigismember(&mask, SIGUSR1), 0);
    assert_int_equal(sigismember(&mask, SIGSEGV), 0);
    assert_int_equal(sigismember(&mask, SIGBUS), 0);
}

static void a_handler_finds_the_signals_blocked_that_it_asked_for(void **state)
{
    (void)state;
    watch_after(note_mask, 0);
    for (unsigned i = 1; i <= 2; i++) {
        assert_int_equal(raise(SIGSEGV), 0);
        assert_int_equal(plain_calls, i);
        expect_blocked(SIGSEGV, true);
        expect_nothing_blocked();
    }
    assert_int_equal(raise(SIGBUS), 0);
    expect_blocked(SIGBUS, true);
}

static void a_handler_may_be_interrupted_by_its_own_signal(void **state)
{
    (void)state;
    watch_after(note_mask, SA_NODEFER);
    assert_int_equal(raise(SIGSEGV), 0);
    expect_blocked(SIGSEGV, false);
    assert_int_equal(sigismember(&mask_in_handler, SIGBUS), 0);
    assert_int_equal(raise(SIGBUS), 0);
    expect_blocked(SIGBUS, false);
    assert_int_equal(plain_calls, 2);
    expect_nothing_blocked();
}

/* How a child ends in which this is done; 0: it goes on. */
static int end_of(void (*body)(void))
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        alarm(20);
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void raise_segv(void) { (void)raise(SIGSEGV); }
static void raise_bus(void) { (void)raise(SIGBUS); }
static void send_segv(void) { (void)kill(getpid(), SIGSEGV); }
static void touch_closed(void)
{
    char *closed = mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    *(volatile char *)closed = 1;
}
static void touch_nothing(void) { *(volatile char *)(uintptr_t)(PAGE_BYTES / 4) = 1; }

/* A page of a file that has none there. */
static char *map_behind_a_file(void)
{
    int file = memfd_create("empty", 0);

    return mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}
static void touch_behind_a_file(void) { *(volatile char *)map_behind_a_file() = 1; }

/* qemu 7.2 refuses the mapping where its pages are larger than the machine's. */
static void expect_end_behind_a_file(void)
{
    if (map_behind_a_file() != MAP_FAILED) assert_int_equal(end_of(touch_behind_a_file), SIGBUS);
    else assert_int_equal(errno, EINVAL);
}

static void expect_ends(bool when_sent)
{
    assert_int_equal(end_of(raise_segv), when_sent ? SIGSEGV : 0);
    assert_int_equal(end_of(send_segv), when_sent ? SIGSEGV : 0);
    assert_int_equal(end_of(raise_bus), when_sent ? SIGBUS : 0);
    assert_int_equal(end_of(touch_closed), SIGSEGV);
    assert_int_equal(end_of(touch_nothing), SIGSEGV);
    expect_end_behind_a_file();
}

static void without_a_handler_a_signal_ends_the_process(void **state)
{
    (void)state;
    watch_after(SIG_DFL, 0);
    expect_ends(true);
}

/* But an access that was refused ends it all the same. */
static void what_is_ignored_stays_ignored(void **state)
{
    (void)state;
    watch_after(SIG_IGN, 0);
    expect_ends(false);
}

static void raise_twice(void)
{
    (void)raise(SIGSEGV);
    if (plain_calls != 1) _exit(1);
    (void)raise(SIGSEGV);
}

static void a_handler_for_one_time_is_called_once(void **state)
{
    (void)state;
    watch_after(note_mask, (int)SA_RESETHAND);
    assert_int_equal(end_of(raise_twice), SIGSEGV);
    watch_after(note_mask, 0);
    assert_int_equal(end_of(raise_bus), 0);
}

static void each_signal_has_its_own_handler(void **state)
{
    struct sigaction other = { .sa_sigaction = note_passed, .sa_flags = SA_SIGINFO };

    (void)state;
    watch_after(note_mask, 0);
    assert_int_equal(sigaction(SIGSEGV, &other, NULL), 0);
    assert_true(watch_real_faults(pass_by));
    assert_int_equal(raise(SIGBUS), 0);
    assert_int_equal(plain_calls, 1);
    assert_int_equal(passed_on, 0);
    assert_int_equal(raise(SIGSEGV), 0);
    assert_int_equal(plain_calls, 1);
    assert_int_equal(passed_on, 1);
}

/* Of a code that no kernel knows; what it does not know must be zero, or it sends nothing on. */
static void send_unknown_code(void)
{
    siginfo_t info;

    memset(&info, 0, sizeof info);
    info.si_signo = SIGSEGV;
    info.si_code = 77;
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGSEGV, &info) != 0) raise_segv();
}

static void a_signal_of_an_unknown_code_ends_the_process(void **state)
{
    (void)state;
    watch_after(SIG_DFL, 0);
    assert_int_equal(end_of(send_unknown_code), SIGSEGV);
}

/* ---- called by hand ---- */

static sigjmp_buf before_the_signal;

static void jump_away(int signal)
{
    (void)signal;
    plain_calls++;
    siglongjmp(before_the_signal, 1);
}

/* As if somebody had sent it; the frame is the same each time. */
static __attribute__((noinline)) void call_by_hand(siginfo_t *info, void *context)
{
    if (sigsetjmp(before_the_signal, 1) == 0) on_fault(SIGSEGV, info, context);
}

/* Only where the kernel has room behind what it tells. */
static void nothing_is_noted_beside_what_the_kernel_tells(void **state)
{
    struct {
        siginfo_t info[3];
        ucontext_t context;
    } told_here, before;

    (void)state;
    watch_after(jump_away, 0);
    memset(&told_here, 'x', sizeof told_here);
    told_here.info[1].si_code = SI_USER;
    before = told_here;
    call_by_hand(&told_here.info[1], &told_here.context);
    assert_int_equal(plain_calls, 1);
    assert_memory_equal(&told_here.info[0], &before.info[0], sizeof before.info[0]);
    assert_memory_equal(&told_here.info[1], &before.info[1], sizeof before.info[1] / 2);
    assert_memory_equal(&told_here.info[2], &before.info[2], sizeof before.info[2]);
    assert_memory_equal(&told_here.context, &before.context, sizeof before.context);
}

/* Whose note is still there when the next signal comes: it is no round. */
static void a_handler_may_jump_away_each_time(void **state)
{
    struct {
        siginfo_t info;
        ucontext_t context;
    } told_here = { .info = { .si_code = SI_USER } };

    (void)state;
    watch_after(jump_away, 0);
    for (unsigned i = 1; i <= 3; i++) {
        call_by_hand(&told_here.info, &told_here.context);
        assert_int_equal(plain_calls, i);
    }
}

/* ---- a handler below ours and above it ---- */

static struct sigaction passes_to;

static void pass_to_the_one_before(int signal, siginfo_t *info, void *context)
{
    if (++passed_on > 10) _exit(1); /* round and round */
    passes_to.sa_sigaction(signal, info, context);
}

/* The default action follows, as if it had passed on to that. */
static void a_round_of_handlers_comes_to_an_end(void **state)
{
    struct sigaction twice = { .sa_sigaction = pass_to_the_one_before, .sa_flags = SA_SIGINFO };

    (void)state;
    assert_int_equal(sigaction(SIGSEGV, &twice, NULL), 0);
    assert_int_equal(sigaction(SIGBUS, &twice, NULL), 0);
    assert_true(watch_real_faults(pass_by));
    assert_int_equal(sigaction(SIGBUS, &twice, NULL), 0);
    assert_int_equal(sigaction(SIGSEGV, &twice, &passes_to), 0);
    assert_int_equal(end_of(raise_segv), SIGSEGV);
    assert_int_equal(end_of(touch_closed), SIGSEGV);
    assert_int_equal(end_of(raise_bus), SIGBUS);
    expect_end_behind_a_file();
}

/* ---- ours in the place of another one ---- */

static int flags_of_ours(int signal)
{
    struct sigaction ours;

    assert_int_equal(sigaction(signal, NULL, &ours), 0);
    assert_true(ours.sa_sigaction == on_fault);
    return ours.sa_flags & (SA_SIGINFO | SA_ONSTACK | SA_RESTART);
}

static int flags_after(void (*handler)(int), int flags)
{
    watch_after(handler, flags);
    assert_int_equal(flags_of_ours(SIGBUS), flags_of_ours(SIGSEGV));
    return flags_of_ours(SIGSEGV);
}

/* Calls that wait go on after it, or do not, as they did. */
static void waiting_calls_go_on_as_before(void **state)
{
    const int standard = SA_SIGINFO | SA_ONSTACK;

    (void)state;
    assert_int_equal(flags_after(note_mask, 0), SA_SIGINFO);
    assert_int_equal(flags_after(note_mask, SA_RESTART), SA_SIGINFO | SA_RESTART);
    assert_int_equal(flags_after(note_mask, SA_SIGINFO), SA_SIGINFO);
    assert_int_equal(flags_after(SIG_IGN, 0), standard | SA_RESTART);
    assert_int_equal(flags_after(SIG_IGN, SA_SIGINFO), standard | SA_RESTART);
    assert_int_equal(flags_after(SIG_DFL, 0), standard);
    assert_int_equal(flags_after(SIG_DFL, SA_RESTART), standard | SA_RESTART);
}

static char stack_for_signals[32 * 1024];
static bool was_on_it;

static void note_stack(int signal)
{
    const char *here = __builtin_frame_address(0);

    (void)signal;
    plain_calls++;
    was_on_it = here >= stack_for_signals && here < stack_for_signals + sizeof stack_for_signals;
}

/* What it needs may be more than the stack for signals has. */
static void the_handler_before_has_the_stack_that_it_asked_for(void **state)
{
    const stack_t stack = { .ss_sp = stack_for_signals, .ss_size = sizeof stack_for_signals };

    (void)state;
    assert_int_equal(sigaltstack(&stack, NULL), 0);
    watch_after(note_stack, 0);
    assert_int_equal(raise(SIGSEGV), 0);
    assert_int_equal(plain_calls, 1);
    assert_false(was_on_it);
}

static void on_the_stack_for_signals_if_it_asked_for_that(void **state)
{
    const stack_t stack = { .ss_sp = stack_for_signals, .ss_size = sizeof stack_for_signals };

    (void)state;
    assert_int_equal(sigaltstack(&stack, NULL), 0);
    watch_after(note_stack, SA_ONSTACK);
    assert_int_equal(raise(SIGSEGV), 0);
    assert_int_equal(plain_calls, 1);
    assert_true(was_on_it);
}

/* Flags that speak of a function make none of it. */
static void an_ignored_signal_is_ignored_whatever_its_flags(void **state)
{
    (void)state;
    watch_after(SIG_IGN, SA_SIGINFO);
    assert_int_equal(end_of(raise_segv), 0);
    watch_after(SIG_DFL, SA_SIGINFO);
    assert_int_equal(end_of(raise_bus), SIGBUS);
}

/* Whatever was there when ours took its place is called. */
static void a_handler_that_comes_between_is_known(void **state)
{
    static const struct sigaction other = { .sa_sigaction = note_passed, .sa_flags = SA_SIGINFO };

    (void)state;
    comes_between = &other;
    watch_after(note_mask, 0);
    assert_int_equal(raise(SIGSEGV), 0);
    assert_int_equal(raise(SIGBUS), 0);
    assert_int_equal(plain_calls, 0);
    assert_int_equal(passed_on, 2);
}

/* By a thread that a fork left behind, say: what was there before that is still known. */
static void watching_once_more_changes_nothing(void **state)
{
    (void)state;
    watch_after(note_mask, 0);
    assert_true(watch_real_faults(pass_by));
    assert_int_equal(raise(SIGSEGV), 0);
    assert_int_equal(plain_calls, 1);
}

static void a_thread_has_its_number(void **state)
{
    (void)state;
    assert_int_equal(real_thread_id(), syscall(SYS_gettid));
}

static bool exit_with_access(const struct os_fault *fault) { _exit(10 + (int)fault->access); }

/* What is the kernel's own is there, as far as the processor tells. */
static void read_the_kernels(void) { read_byte((char *)(uintptr_t)0xffff800000000000); }
static void write_the_kernels(void) { write_byte((char *)(uintptr_t)0xffff800000000000); }

static void reading_what_is_protected_is_no_write(void **state)
{
    (void)state;
    if (!TELLS_ACCESS) skip();
    assert_true(watch_real_faults(exit_with_access));
    assert_int_equal(end_of(read_the_kernels), 10 + OS_ACCESS_READ);
    assert_int_equal(end_of(write_the_kernels), 10 + OS_ACCESS_WRITE);
}

static void a_refused_watch_is_told_and_forgotten(void **state)
{
    const struct sigaction standard = { .sa_handler = SIG_DFL };

    (void)state;
    handlers_are_refused = true;
    errno = EDOM;
    assert_false(watch_real_faults(open_page));
    assert_int_equal(errno, EDOM);
    handlers_are_refused = false;
    refused_signal = SIGBUS;
    assert_false(watch_real_faults(open_page));
    refused_signal = SIGSEGV;
    assert_true(sigaction(SIGSEGV, &standard, NULL) == 0);
    assert_false(watch_real_faults(open_page));
    refused_signal = 0;
    watch_a_page();
    expect_told(write_byte, page, OS_ACCESS_WRITE);
}

UNIT_MAIN(
    UNIT_TEST(an_access_is_told_with_its_code), UNIT_TEST(the_program_goes_on_as_if_nothing_was),
    UNIT_TEST(what_somebody_sent_goes_to_the_handler_before),
    UNIT_TEST(a_handler_finds_the_signals_blocked_that_it_asked_for),
    UNIT_TEST(a_handler_may_be_interrupted_by_its_own_signal),
    UNIT_TEST(without_a_handler_a_signal_ends_the_process),
    UNIT_TEST(what_is_ignored_stays_ignored), UNIT_TEST(a_handler_for_one_time_is_called_once),
    UNIT_TEST(a_round_of_handlers_comes_to_an_end), UNIT_TEST(waiting_calls_go_on_as_before),
    UNIT_TEST(the_handler_before_has_the_stack_that_it_asked_for),
    UNIT_TEST(on_the_stack_for_signals_if_it_asked_for_that),
    UNIT_TEST(an_ignored_signal_is_ignored_whatever_its_flags),
    UNIT_TEST(a_handler_that_comes_between_is_known), UNIT_TEST(watching_once_more_changes_nothing),
    UNIT_TEST(a_thread_has_its_number), UNIT_TEST(each_signal_has_its_own_handler),
    UNIT_TEST(a_signal_of_an_unknown_code_ends_the_process),
    UNIT_TEST(nothing_is_noted_beside_what_the_kernel_tells),
    UNIT_TEST(a_handler_may_jump_away_each_time), UNIT_TEST(reading_what_is_protected_is_no_write),
    UNIT_TEST(a_refused_watch_is_told_and_forgotten))
