/* fake_threads.c - threads, forks and ends in the fake kernel: all wait until the test says so.
 * SPDX-License-Identifier: MIT
 */
#include "fake_inside.h"

#include "os/thread_slot.h"

#include <unistd.h>

static struct {
    bool thread_refused, thread_running, copied, one_thread;
    uint64_t rights_at_sleep;
    void *(*thread_body)(void *);
    void (*on_sleep)(void);
    void (*before_fork)(void), (*in_parent)(void), (*in_child)(void), (*at_exit)(void);
    unsigned forks; /* begun and not ended */
} threads;

__thread struct front *thread_slot __attribute__((tls_model("initial-exec"))) =
    (struct front *)&front_empty;

uintptr_t port_thread_mark(void) { return (uintptr_t)&thread_slot; }

static pthread_key_t end_key;
static pthread_once_t end_key_once = PTHREAD_ONCE_INIT;
static void (*end_hook)(void);

static void end_key_destructor(void *unused)
{
    (void)unused;
    RELAXED_LOAD(end_hook)();
}

static void make_end_key(void)
{
    if (pthread_key_create(&end_key, end_key_destructor) != 0) broken("no thread key");
}

bool os_thread_end_hook(void (*hook)(void))
{
    bool admitted;

    enter();
    admitted = admit(FAKE_END_HOOK);
    leave();
    if (!admitted) return false;
    RELAXED_STORE(end_hook, hook); /* the same for all threads */
    (void)pthread_once(&end_key_once, make_end_key);
    return pthread_setspecific(end_key, (void *)1) == 0;
}

bool os_thread_start(void *(*body)(void *))
{
    bool done;

    enter();
    done = admit(FAKE_THREAD_START);
    if (done && (threads.thread_refused || threads.thread_body != NULL || threads.thread_running))
        done = refuse();
    if (done) threads.thread_body = body;
    leave();
    return done;
}

void os_thread_wait(uint64_t most_ms)
{
    (void)most_ms;
    (void)fake_thread_run();
}

void os_threads_forget(void)
{
    threads.thread_body = NULL;
    threads.thread_running = false;
}

void fake_copy(void) { threads.copied = true; }

bool os_threads_forget_lost(void)
{
    bool lost = threads.copied && threads.thread_body != NULL;

    if (lost) os_threads_forget();
    threads.copied = false;
    return lost;
}

static bool (*nap_sleeps)(bool since);
static unsigned naps_begun;

unsigned fake_naps(bool (*sleeps)(bool since))
{
    unsigned begun = naps_begun;

    nap_sleeps = sleeps;
    naps_begun = 0;
    return begun;
}

bool os_naps_are_told(void) { return true; }

bool os_nap_begin(struct os_nap *nap, uint32_t thread, const void *word)
{
    (void)nap;
    (void)thread;
    (void)word;
    naps_begun += nap_sleeps != NULL;
    return nap_sleeps != NULL && nap_sleeps(false);
}

bool os_nap_lasts(const struct os_nap *nap, struct os_range range)
{
    (void)nap;
    (void)range;
    return nap_sleeps(true);
}

void os_nap_end(struct os_nap *nap) { (void)nap; }

bool os_thread_rights_may_part(bool alone)
{
    (void)alone;
    return threads.rights_at_sleep != 0;
}

bool os_thread_rights_parted(void)
{
    return threads.rights_at_sleep != 0 && fake_calls(FAKE_SLEEP) >= threads.rights_at_sleep;
}

void os_sleep(const uint32_t *word, uint32_t expected, uint64_t duration_ms)
{
    count_call(FAKE_SLEEP);
    if (RELAXED_LOAD(*word) != expected) return;
    fake_clock_ms(duration_ms);
    if (threads.on_sleep != NULL) threads.on_sleep();
}

/* ---- forks and the end ---- */

bool os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    bool done;

    enter();
    done = admit(FAKE_FORK_HOOK);
    leave();
    if (!done) return false;
    threads.before_fork = before;
    threads.in_parent = in_parent;
    threads.in_child = in_child;
    return true;
}

bool os_has_one_thread(void) { return threads.one_thread; }

void os_fork_begins(void) { threads.forks++; }

void os_fork_ends_in_parent(void)
{
    if (threads.forks-- == 0) broken("a fork ends that has not begun");
}

void os_fork_ends_in_child(void)
{
    if (threads.forks == 0) broken("a fork ends that has not begun");
    threads.forks = 0;
}

void os_at_exit(void (*last)(void)) { threads.at_exit = last; }

/* ---- the controls ---- */

void fake_thread_allow(bool allowed) { threads.thread_refused = !allowed; }
bool fake_thread_waits(void) { return threads.thread_body != NULL; }

bool fake_thread_run(void)
{
    void *(*body)(void *) = threads.thread_body;

    if (body == NULL) return false;
    threads.thread_body = NULL;
    threads.thread_running = true;
    (void)body(NULL);
    threads.thread_running = false;
    return true;
}

void fake_rights_part(uint64_t sleep) { threads.rights_at_sleep = sleep; }
void fake_on_sleep(void (*hook)(void)) { threads.on_sleep = hook; }

int fake_fork(void)
{
    int child;

    if (threads.before_fork != NULL) threads.before_fork();
    enter();
    child = fork();
    leave();
    if (threads.before_fork == NULL) return child;
    if (child == 0) threads.in_child();
    else threads.in_parent();
    return child;
}

void fake_one_thread(bool alone) { threads.one_thread = alone; }
unsigned fake_forks_begun(void) { return threads.forks; }

void fake_exit_handlers_run(void)
{
    if (threads.at_exit != NULL) threads.at_exit();
}

void fake_thread_end(void)
{
    if (end_hook == NULL) broken("the end of a thread that asked for no hook");
    end_hook();
}
