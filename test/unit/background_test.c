/* background_test.c - the thread that the C library does not know: its start, its end, its
 * place. */
/* SPDX-License-Identifier: MIT */
/* Its memory is the fake kernel's, the thread is the real one's. */
#include "library.h"

#define os_thread_start start_real_thread
#define os_thread_wait wait_for_real_thread
#define os_threads_forget forget_real_thread
#define os_threads_forget_lost forget_lost_thread
#define os_has_one_thread has_one_real_thread
#define os_thread_id real_thread_id
#define os_now_ms real_now_ms
uint64_t real_now_ms(void);
#include "os/linux_thread.c"

#include "unit.h"

#include <sys/wait.h>
#include <time.h>

/* A wait for something that must come ends the test when it does not. */
enum { LONG_MS = 60 * 1000 };

static unsigned begun; /* so many rights were noted: before each start */

void linux_rights_begin(void) { begun++; }

static unsigned clock_reads;

uint64_t real_now_ms(void)
{
    struct timespec now;

    clock_reads++;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- what the thread does ---- */

static struct {
    uint32_t lives, may_end; /* atomic */
    uint64_t mask;
    char *frame, *errno_at;
    struct front *slot;
} seen;

static void *live(void *unused)
{
    char here;

    (void)unused;
    (void)kernel(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&seen.mask, sizeof seen.mask);
    seen.frame = &here;
    errno = EXDEV; /* a word of its own */
    seen.errno_at = (char *)&errno;
    seen.slot = thread_slot;
    __atomic_store_n(&seen.lives, 1, __ATOMIC_RELEASE);
    wait_until_set(&seen.may_end);
    return NULL;
}

static void start(void)
{
    __atomic_store_n(&seen.lives, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&seen.may_end, 0, __ATOMIC_RELEASE);
    assert_true(start_real_thread(live));
    wait_until_set(&seen.lives);
}

static void end(void)
{
    __atomic_store_n(&seen.may_end, 1, __ATOMIC_RELEASE);
    wait_for_real_thread(LONG_MS);
    assert_int_equal(alive_now(), 0);
}

/* ---- tests ---- */

static void a_thread_has_the_number_that_tools_show(void **state)
{
    (void)state;
    assert_int_equal(real_thread_id(), syscall(SYS_gettid));
}

static void there_is_one_at_a_time(void **state)
{
    size_t reserved = 0;

    (void)state;
    for (unsigned i = 1; i <= 3; i++) {
        start();
        assert_int_equal(begun, i);
        if (i == 1) reserved = fake_reserved_bytes();
        assert_int_equal(fake_reserved_bytes(), reserved); /* each in the same place */
        assert_false(start_real_thread(live));
        assert_int_equal(begun, i);
        assert_true(linux_background_lives());
        end();
        assert_false(linux_background_lives());
    }
}

static void it_takes_no_signals_and_the_caller_does(void **state)
{
    const uint64_t all = UINT64_MAX;
    const uint64_t unblockable = (uint64_t)1 << (SIGKILL - 1) | (uint64_t)1 << (SIGSTOP - 1);
    uint64_t blockable;
    sigset_t before, after;

    (void)state;
    /* Not SIGKILL and SIGSTOP, nor those that an emulator keeps for itself. */
    assert_int_equal(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all), 0);
    assert_int_equal(syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &blockable, sizeof blockable),
                     0);
    assert_int_equal((blockable | unblockable) & INT32_MAX, INT32_MAX);
    assert_int_equal(sigemptyset(&before), 0);
    assert_int_equal(sigaddset(&before, SIGUSR1), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    start();
    assert_true(seen.mask == blockable);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    for (int signal = 1; signal < 32; signal++)
        assert_int_equal(sigismember(&after, signal), signal == SIGUSR1);
    end();
}

/* All that it uses lies in its own memory: the stack, with a closed page below, and what is
 * thread-local. */
static void it_lives_in_its_own_memory(void **state)
{
    char *end_of_stack, *end_of_all;

    (void)state;
    errno = EDOM;
    start();
    end_of_stack = background_memory + STACK_BYTES;
    end_of_all = end_of_stack + background_tls_bytes + os_page_bytes();
    assert_true(seen.frame < end_of_stack && seen.frame > end_of_stack - 8192);
    /* As near to the middle as the program's is to the record of its thread. */
    assert_in_range(
        distance((uintptr_t)seen.errno_at, (uintptr_t)end_of_stack + background_tls_bytes / 2), 0,
        distance((uintptr_t)pthread_self(), (uintptr_t)&errno) + TLS_MARGIN_BYTES);
    assert_int_equal(*(int *)seen.errno_at, EXDEV);
    assert_int_equal(errno, EDOM);
    assert_null(seen.slot);
    assert_true(fake_is_committed(background_memory, (size_t)(end_of_all - background_memory)));
    assert_false(fake_is_committed(background_memory - os_page_bytes(), os_page_bytes()));
    assert_int_equal(fake_reserved_bytes(),
                     2 * os_page_bytes() + STACK_BYTES + background_tls_bytes);
    end();
}

/* Nearer to the thread pointer than the C library's, as a program may have. */
static __thread char volatile wide[300000];

/* As far from its middle as they are from the program's record of a thread, both ways. */
static void there_is_room_for_what_is_thread_local(void **state)
{
    uintptr_t record = (uintptr_t)pthread_self();
    size_t reach =
        max_size(distance(record, (uintptr_t)&errno), distance(record, (uintptr_t)&thread_slot));

    (void)state;
    wide[0] = 1;
    assert_int_equal(distance(10, 3), 7);
    assert_int_equal(distance(3, 10), 7);
    assert_true(reach > sizeof wide);
    assert_in_range(tls_bytes(), 2 * (reach + TLS_MARGIN_BYTES),
                    2 * (reach + TLS_MARGIN_BYTES) + os_page_bytes());
    assert_int_equal(tls_bytes() % os_page_bytes(), 0);
}

static void without_memory_there_is_none(void **state)
{
    (void)state;
    for (unsigned refused = 1; refused <= 2; refused++) {
        fake_fail_nth(refused); /* address space, or pages */
        assert_false(start_real_thread(live));
        assert_int_equal(begun, 0);
        assert_int_equal(fake_reserved_bytes(), 0);
    }
    start();
    end();
}

static void a_wait_ends_with_its_time(void **state)
{
    uint64_t from;

    (void)state;
    wait_for_real_thread(LONG_MS); /* there is none */
    assert_int_equal(clock_reads, 0);
    start();
    end();
    clock_reads = 0;
    wait_for_real_thread(LONG_MS); /* nor any more */
    assert_int_equal(clock_reads, 0);
    start();
    from = real_now_ms();
    wait_for_real_thread(30);
    assert_true(real_now_ms() - from >= 30);
    assert_int_not_equal(alive_now(), 0);
    end();
}

static uint64_t worked_ms(void)
{
    struct timespec worked;

    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &worked), 0);
    return (uint64_t)worked.tv_sec * 1000 + (uint64_t)worked.tv_nsec / 1000000;
}

static void a_wait_is_no_work(void **state)
{
    uint64_t before;

    (void)state;
    start();
    before = worked_ms();
    wait_for_real_thread(200);
    assert_in_range(worked_ms() - before, 0, 20);
    end();
}

static void start_again(void)
{
    forget_real_thread();
    start();
    end();
}

static void a_child_has_one_of_its_own(void **state)
{
    (void)state;
    start();
    expect_survival(start_again);
    end();
}

static void find_that_it_is_lost(void)
{
    if (!forget_lost_thread() || forget_lost_thread()) exit(1);
    start();
    if (forget_lost_thread()) exit(2);
    end();
}

static void a_copy_that_nobody_told_of(void **state)
{
    (void)state;
    assert_false(forget_lost_thread());
    start();
    assert_false(forget_lost_thread());
    expect_survival(find_that_it_is_lost);
    end();
    assert_false(forget_lost_thread());
}

static void *end_at_once(void *unused) { return unused; }

static void the_programs_own_threads_are_known(void **state)
{
    pthread_t thread;

    (void)state;
    if (&__libc_single_threaded == NULL) skip(); /* it cannot be told */
    assert_true(has_one_real_thread());
    start();
    assert_true(has_one_real_thread()); /* that is none of the program's */
    end();
    assert_int_equal(pthread_create(&thread, NULL, end_at_once, NULL), 0);
    assert_false(has_one_real_thread());
    assert_int_equal(pthread_join(thread, NULL), 0);
}

UNIT_MAIN(UNIT_TEST(a_thread_has_the_number_that_tools_show), UNIT_TEST(there_is_one_at_a_time),
          UNIT_TEST(it_takes_no_signals_and_the_caller_does), UNIT_TEST(it_lives_in_its_own_memory),
          UNIT_TEST(there_is_room_for_what_is_thread_local),
          UNIT_TEST(without_memory_there_is_none), UNIT_TEST(a_wait_ends_with_its_time),
          UNIT_TEST(a_wait_is_no_work), UNIT_TEST(a_child_has_one_of_its_own),
          UNIT_TEST(a_copy_that_nobody_told_of), UNIT_TEST(the_programs_own_threads_are_known))
