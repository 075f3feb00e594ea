/* linux_thread.c - the one thread that prairie starts itself.
 *
 * The background thread is a bare kernel thread, unknown to the C library: free() may be called
 * while the C library holds the locks that pthread_create wants. It gets a stack and an empty block
 * where thread-local storage would be; its body may use nothing but prairie's own floors. Signals
 * are blocked in it. A process that begins as a copy of this one (clone, _Fork) need not tell us;
 * the word that says that the thread lives reads as 0 there, for the kernel wipes its page. Whether
 * the program has one thread is known by two: the C library knows of its threads, and this file of
 * the background thread.
 * SPDX-License-Identifier: MIT
 */
#include "linux.h"
#include "linux_clone.h"

#include "../base/constants.h"
#include "../base/units.h"
#include "os.h"
#include "thread_slot.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#if defined(__i386__)
#include <asm/ldt.h>
#endif

enum { STACK_BYTES = 64 * 1024, TLS_BYTES_MIN = 64 * 1024, TLS_MARGIN_BYTES = 4096 };

/* The stack, above it room for thread-local storage, whose middle the thread pointer leads to, and
 * above that a page for a word. */
static char *background_memory;
static size_t background_tls_bytes; /* constant once there is memory */
static uint32_t *background_alive;  /* the word: the kernel writes 0 when the thread is gone */
static uint32_t background_began;   /* atomic: 1, until it comes to its end; the word is not 0 */

static uint32_t alive_now(void)
{
    return background_alive != NULL ? __atomic_load_n(background_alive, __ATOMIC_ACQUIRE) : 0;
}

bool linux_background_lives(void) { return alive_now() != 0; }

/* What clone wants as the address of thread-local storage: on i386 what describes it, for the entry
 * of the segment table that all threads have it in. The C libraries call the kernel by its fifth
 * word there, abort, too. */
static void *clone_tls(char *tls)
{
#if defined(__i386__)
    static struct user_desc described;
    uint16_t selector;

    __asm__("mov %%gs, %0" : "=r"(selector));
    __asm__("mov %%gs:0x10, %0" : "=r"(((uintptr_t *)tls)[4]));
    described = (struct user_desc){ .entry_number = selector >> 3,
                                    .base_addr = (unsigned)(uintptr_t)tls,
                                    .limit = 0xfffff,
                                    .seg_32bit = 1,
                                    .limit_in_pages = 1,
                                    .useable = 1 };
    return &described;
#else
    return tls;
#endif
}

/* The C library's own way to end a thread may need what only its threads have. */
static int live_and_exit(void *body)
{
    union {
        void *object;
        void *(*function)(void *);
    } what = { body };

    (void)what.function(NULL);
    __atomic_store_n(&background_began, 0, __ATOMIC_RELEASE);
    (void)kernel(SYS_exit, 0);
    return 0;
}

static size_t distance(uintptr_t a, uintptr_t b) { return a > b ? a - b : b - a; }

/* Our word and errno lie as far from the thread pointer as the program's own thread-local variables
 * push them, the same in every thread; the C library's record of a thread is beside that
 * pointer. */
static size_t tls_bytes(void)
{
    uintptr_t record = (uintptr_t)pthread_self();
    size_t reach =
        max_size(distance(record, (uintptr_t)&thread_slot), distance(record, (uintptr_t)&errno));

    return max_size(TLS_BYTES_MIN, round_up(2 * (reach + TLS_MARGIN_BYTES), os_page_bytes()));
}

static NOINLINE bool background_memory_ready(void)
{
    size_t tls = tls_bytes(), bytes = STACK_BYTES + tls + os_page_bytes();
    struct os_range range, word;

    if (background_memory != NULL) return true;
    range = os_reserve(bytes + os_page_bytes(), os_page_bytes());
    if (range.base == NULL) return false;
    /* The lowest page stays closed: a guard below the stack. */
    if (!os_commit((struct os_range){ range.base + os_page_bytes(), bytes })) {
        os_release(range);
        return false;
    }
    background_memory = range.base + os_page_bytes();
    background_tls_bytes = tls;
    word = (struct os_range){ background_memory + STACK_BYTES + tls, os_page_bytes() };
    (void)os_keep_from_child(word, true);
    background_alive = (uint32_t *)word.base;
    return true;
}

/* ThreadSanitizer must know every thread that runs its code. */
static bool start_known_thread(void *(*body)(void *))
{
    pthread_t thread;

    return pthread_create(&thread, NULL, body, NULL) == 0 && pthread_detach(thread) == 0;
}

void os_threads_forget(void)
{
    RELAXED_STORE(background_began, 0);
    if (background_alive != NULL) RELAXED_STORE(*background_alive, 0);
}

bool os_thread_start(void *(*body)(void *))
{
    uint64_t all = ~(uint64_t)0, before;
    union {
        void *(*function)(void *);
        void *object;
    } what = { body };
    char *stack, *tls;
    bool started;

    if (UNDER_TSAN) return start_known_thread(body);
    if (alive_now() != 0 || !background_memory_ready()) return false;
    linux_rights_begin();
    stack = background_memory + STACK_BYTES;
    tls = stack + background_tls_bytes / 2;
    *(char **)tls = tls; /* both x86 find the block through its own first word */
    (void)kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof all);
    __atomic_store_n(background_alive, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&background_began, 1, __ATOMIC_RELEASE);
    started = thread_clone(live_and_exit, what.object, stack, clone_tls(tls), background_alive);
    if (!started) os_threads_forget();
    (void)kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before);
    return started;
}

/* The kernel wakes who sleeps on the word when it writes the 0, and knows no private sleepers
 * there. Each fork of a program of one thread comes here: where none lives there is no system
 * call. */
void os_thread_wait(uint64_t most_ms)
{
    uint32_t alive = alive_now();
    uint64_t now = alive != 0 ? os_now_ms() : 0, end = now + most_ms;

    while (alive != 0 && now < end) {
        struct kernel_span span = kernel_span_of(end - now);

        (void)kernel(SYS_futex, (long)background_alive, FUTEX_WAIT, alive, (long)&span);
        now = os_now_ms();
        alive = alive_now();
    }
}

/* Two may ask at once, and what had ended may have begun again meanwhile. */
bool os_threads_forget_lost(void)
{
    if (__atomic_load_n(&background_began, __ATOMIC_ACQUIRE) == 0 || alive_now() != 0) return false;
    if (__atomic_exchange_n(&background_began, 0, __ATOMIC_ACQ_REL) == 0) return false;
    if (alive_now() == 0) return true;
    __atomic_store_n(&background_began, 1, __ATOMIC_RELEASE);
    return false;
}

uint32_t os_thread_id(void) { return (uint32_t)kernel(SYS_gettid); }

/* By it the C library's fork decides whether locks matter; since 2.32. */
extern char __libc_single_threaded;
#pragma weak __libc_single_threaded

bool os_has_one_thread(void)
{
    return &__libc_single_threaded != NULL && RELAXED_LOAD(__libc_single_threaded) != 0;
}
