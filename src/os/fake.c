/* fake.c - a kernel for tests: it counts, it refuses on demand, and it believes nothing it is told.
 *
 * One mutex guards the model; the ports below the locks of prairie do without it. errno is kept, as
 * os.h wants.
 * SPDX-License-Identifier: MIT
 */
#include "fake.h"

#include "../base/port.h"
#include "../base/units.h"
#include "os.h"
#include "thread_slot.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RESERVATIONS_MAX = 256, ERROR_TEXT_BYTES = 16384 };

enum fake_page { FAKE_PAGE_RESERVED, FAKE_PAGE_COMMITTED, FAKE_PAGE_PURGED };

struct reservation {
    char *base;             /* NULL: released */
    size_t bytes;
    char *raw;              /* the mapping, with what alignment cost */
    size_t raw_bytes;
    uint8_t *page;          /* enum fake_page of each */
};

static struct {
    pthread_mutex_t mutex;

    size_t page_bytes;
    unsigned core_count, core_current;
    size_t limit_bytes, other_bytes, reserve_bytes_max, commit_bytes_max;
    const char *setting_name, *setting_value;

    uint64_t fail_in;       /* calls until the one that fails; 0: none */
    bool failing[FAKE_FAILING_COUNT];
    uint64_t failures, calls_that_can_fail;
    uint64_t calls[FAKE_CALL_COUNT];

    struct reservation reservation[RESERVATIONS_MAX];
    size_t reservation_count, reserved_bytes, committed_bytes;
    uint64_t purged_bytes, moved_bytes;
    enum fake_purge purge_does;

    uint64_t now_ms;
    bool thread_refused, thread_running;
    void *(*thread_body)(void *);
    void (*on_sleep)(void);
    void (*before_fork)(void), (*in_parent)(void), (*in_child)(void), (*at_exit)(void);

    char error_text[ERROR_TEXT_BYTES];
    size_t error_bytes;
} fake = {
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .page_bytes = 4096,
    .core_count = 2,
    .limit_bytes = SIZE_MAX,
    .reserve_bytes_max = SIZE_MAX,
    .commit_bytes_max = SIZE_MAX,
    .now_ms = 1000,
};

static void enter(void) { (void)pthread_mutex_lock(&fake.mutex); }
static void leave(void) { (void)pthread_mutex_unlock(&fake.mutex); }

static NORETURN void broken(const char *what)
{
    port_write_error("fake kernel: ", 13);
    port_write_error(what, strlen(what));
    port_write_error("\n", 1);
    abort();
}

static void count_call(enum fake_call kind)
{
    (void)__atomic_add_fetch(&fake.calls[kind], 1, __ATOMIC_RELAXED);
}

static bool refuse(void)
{
    fake.failures++;
    return false;
}

/* Counts a call that can fail; false when this one must. */
static bool admit(enum fake_call kind)
{
    count_call(kind);
    fake.calls_that_can_fail++;
    if (fake.fail_in > 0 && --fake.fail_in == 0) return refuse();
    return fake.failing[kind] ? refuse() : true;
}

/* ---- the model ---- */

static size_t pages_of(size_t bytes) { return bytes / fake.page_bytes; }

static void *map_anonymous(size_t bytes, int protection)
{
    int saved_errno = errno;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *at = mmap(NULL, bytes, protection, flags, -1, 0);

    errno = saved_errno;
    return at == MAP_FAILED ? NULL : at;
}

static void give_zeros(char *base, size_t bytes)
{
    if (madvise(base, bytes, MADV_DONTNEED) != 0) broken("the real kernel refused a purge");
}

static struct reservation *slot_for_reservation(void)
{
    for (size_t i = 0; i < fake.reservation_count; i++)
        if (fake.reservation[i].base == NULL) return &fake.reservation[i];
    if (fake.reservation_count == RESERVATIONS_MAX) broken("too many reservations");
    return &fake.reservation[fake.reservation_count++];
}

static bool fits_address_space(size_t bytes)
{
    size_t used = fake.reserved_bytes + fake.other_bytes;

    if (bytes > fake.reserve_bytes_max) return false;
    return fake.limit_bytes == SIZE_MAX
        || (used <= fake.limit_bytes && bytes <= fake.limit_bytes - used);
}

static struct os_range add_reservation(size_t bytes, size_t align_bytes, int protection)
{
    struct os_range none = { NULL, 0 };
    struct reservation *made;
    size_t align = max_size(align_bytes, fake.page_bytes), raw_bytes;

    if (!is_power_of_two(align_bytes)) broken("a reservation with an odd alignment");
    if (bytes == 0 || bytes % fake.page_bytes != 0) broken("a reservation of no whole pages");
    if (__builtin_add_overflow(bytes, align, &raw_bytes) || !fits_address_space(bytes)) {
        (void)refuse();
        return none;
    }
    made = slot_for_reservation();
    made->raw_bytes = raw_bytes;
    made->raw = map_anonymous(raw_bytes, protection);
    if (made->raw == NULL) {
        (void)refuse();
        return none;
    }
    made->base = (char *)round_up((uintptr_t)made->raw, align);
    made->bytes = bytes;
    made->page = map_anonymous(pages_of(bytes), PROT_READ | PROT_WRITE);
    if (made->page == NULL) broken("no memory for the model");
    fake.reserved_bytes += bytes;
    return (struct os_range){ made->base, bytes };
}

/* The states of the pages of a range, which must lie in one reservation. */
static uint8_t *states_of(struct os_range range, const char *complaint)
{
    for (size_t i = 0; i < fake.reservation_count; i++) {
        const struct reservation *made = &fake.reservation[i];
        size_t offset = (uintptr_t)range.base - (uintptr_t)made->base;

        if (made->base == NULL || offset >= made->bytes) continue;
        if (range.bytes == 0 || range.bytes > made->bytes - offset) break;
        if (offset % fake.page_bytes != 0 || range.bytes % fake.page_bytes != 0)
            broken("a range that is not whole pages");
        return made->page + pages_of(offset);
    }
    broken(complaint);
}

static size_t count_in_state(const uint8_t *states, size_t pages, enum fake_page state)
{
    size_t count = 0;

    for (size_t i = 0; i < pages; i++) count += states[i] == state;
    return count;
}

/* ---- os.h: memory ---- */

size_t os_page_bytes(void) { return fake.page_bytes; }

static struct os_range reserve(enum fake_call kind, size_t bytes, size_t align_bytes,
                               int protection)
{
    struct os_range range = { NULL, 0 };

    enter();
    if (admit(kind)) range = add_reservation(bytes, align_bytes, protection);
    leave();
    return range;
}

struct os_range os_reserve(size_t bytes, size_t align_bytes)
{
    return reserve(FAKE_RESERVE, bytes, align_bytes, PROT_NONE);
}

struct os_range os_reserve_readable(size_t bytes)
{
    return reserve(FAKE_RESERVE_READABLE, bytes, fake.page_bytes, PROT_READ);
}

void os_release(struct os_range range)
{
    uint8_t *states;

    enter();
    count_call(FAKE_RELEASE);
    states = states_of(range, "a release outside every reservation");
    for (size_t i = 0; i < fake.reservation_count; i++) {
        struct reservation *made = &fake.reservation[i];
        size_t pages = pages_of(made->bytes);

        if (made->page != states || made->base == NULL) continue;
        if (made->bytes != range.bytes) break;
        fake.reserved_bytes -= made->bytes;
        fake.committed_bytes -= range.bytes
                              - count_in_state(states, pages, FAKE_PAGE_RESERVED) * fake.page_bytes;
        (void)munmap(made->raw, made->raw_bytes);
        (void)munmap(made->page, pages);
        *made = (struct reservation){ 0 };
        leave();
        return;
    }
    broken("a release of a part of a reservation");
}

static bool commit(struct os_range range)
{
    uint8_t *states = states_of(range, "a commit outside every reservation");
    size_t pages = pages_of(range.bytes);
    size_t added = count_in_state(states, pages, FAKE_PAGE_RESERVED) * fake.page_bytes;
    int saved_errno = errno;

    if (added > fake.commit_bytes_max || fake.committed_bytes > fake.commit_bytes_max - added)
        return refuse();
    if (mprotect(range.base, range.bytes, PROT_READ | PROT_WRITE) != 0) {
        errno = saved_errno;
        return refuse();
    }
    for (size_t i = 0; i < pages; i++)
        if (states[i] == FAKE_PAGE_RESERVED) states[i] = FAKE_PAGE_COMMITTED;
    fake.committed_bytes += added;
    return true;
}

bool os_commit(struct os_range range)
{
    bool done;

    enter();
    done = admit(FAKE_COMMIT) && commit(range);
    leave();
    return done;
}

/* Complaints come before the planned failure: asking for the impossible is wrong in every mood. */
static uint8_t *committed_states(struct os_range range, const char *outside, const char *missing)
{
    uint8_t *states = states_of(range, outside);

    if (count_in_state(states, pages_of(range.bytes), FAKE_PAGE_RESERVED) != 0) broken(missing);
    return states;
}

bool os_purge(struct os_range range)
{
    uint8_t *states;
    bool done;

    enter();
    states = committed_states(range, "a purge outside every reservation",
                              "a purge of memory that is not committed");
    done = admit(FAKE_PURGE);
    if (done) {
        if (fake.purge_does == FAKE_PURGE_ZEROES) give_zeros(range.base, range.bytes);
        else memset(range.base, FAKE_SCRIBBLE, range.bytes);
        memset(states, FAKE_PAGE_PURGED, pages_of(range.bytes));
        fake.purged_bytes += range.bytes;
    }
    leave();
    return done;
}

bool os_move(struct os_range from, struct os_range to)
{
    bool done;

    enter();
    if (from.bytes != to.bytes) broken("a move between unequal ranges");
    if (from.base < to.base + to.bytes && to.base < from.base + from.bytes)
        broken("a move onto itself");
    (void)committed_states(from, "a move from outside every reservation",
                           "a move of memory that is not committed");
    (void)committed_states(to, "a move out of every reservation",
                           "a move to memory that is not committed");
    done = admit(FAKE_MOVE);
    if (done) {
        memcpy(to.base, from.base, from.bytes);
        give_zeros(from.base, from.bytes);
        fake.moved_bytes += from.bytes;
    }
    leave();
    return done;
}

static void wish(enum fake_call kind, struct os_range range)
{
    enter();
    count_call(kind);
    (void)states_of(range, "a wish outside every reservation");
    leave();
}

void os_want_huge_pages(struct os_range range) { wish(FAKE_HUGE_WANT, range); }
void os_refuse_huge_pages(struct os_range range) { wish(FAKE_HUGE_REFUSE, range); }

bool os_populate(struct os_range range)
{
    bool done;

    enter();
    (void)committed_states(range, "a populate outside every reservation",
                           "a populate of memory that is not committed");
    done = admit(FAKE_POPULATE);
    leave();
    return done;
}

/* ---- os.h: facts ---- */

size_t os_address_space_limit(void) { return fake.limit_bytes; }

size_t os_address_space_used(void)
{
    size_t used;

    enter();
    used = fake.other_bytes + fake.reserved_bytes;
    leave();
    return used;
}

unsigned os_core_count(void) { return fake.core_count; }
unsigned os_core_current(void) { return RELAXED_LOAD(fake.core_current); }
uint64_t os_now_ms(void) { return RELAXED_LOAD(fake.now_ms); }
uint32_t os_thread_id(void) { return (uint32_t)syscall(SYS_gettid); }

const char *os_setting(const char *name)
{
    if (fake.setting_name == NULL || strcmp(fake.setting_name, name) != 0) return NULL;
    return fake.setting_value;
}

/* ---- the port ---- */

static void futex(const uint32_t *word, int operation, uint32_t value)
{
    int saved_errno = errno;

    (void)syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
    errno = saved_errno;
}

void port_wait(const uint32_t *word, uint32_t expected)
{
    count_call(FAKE_WAIT);
    futex(word, FUTEX_WAIT_PRIVATE, expected);
}

void port_wake(uint32_t *word)
{
    count_call(FAKE_WAKE);
    futex(word, FUTEX_WAKE_PRIVATE, 1);
}

void port_write_error(const char *text, size_t length_bytes)
{
    int saved_errno = errno;
    size_t room = sizeof fake.error_text - 1 - fake.error_bytes;

    count_call(FAKE_WRITE);
    memcpy(fake.error_text + fake.error_bytes, text, min_size(length_bytes, room));
    fake.error_bytes += min_size(length_bytes, room);
    if (write(STDERR_FILENO, text, length_bytes) < 0) errno = saved_errno;
}

void port_abort(void) { abort(); }

/* ---- threads ---- */

__thread struct cache *thread_slot __attribute__((tls_model("initial-exec"))) =
    (struct cache *)&cache_empty;

static pthread_key_t end_key;
static pthread_once_t end_key_once = PTHREAD_ONCE_INIT;
static void (*end_hook)(void);

static void end_key_destructor(void *unused)
{
    (void)unused;
    end_hook();
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
    end_hook = hook;
    (void)pthread_once(&end_key_once, make_end_key);
    return pthread_setspecific(end_key, (void *)1) == 0;
}

bool os_thread_start(void *(*body)(void *))
{
    bool done;

    enter();
    done = admit(FAKE_THREAD_START);
    if (done && (fake.thread_refused || fake.thread_body != NULL || fake.thread_running))
        done = refuse();
    if (done) fake.thread_body = body;
    leave();
    return done;
}

void os_threads_forget(void)
{
    fake.thread_body = NULL;
    fake.thread_running = false;
}

void os_sleep(const uint32_t *word, uint32_t expected, uint64_t duration_ms)
{
    count_call(FAKE_SLEEP);
    if (RELAXED_LOAD(*word) != expected) return;
    fake_clock_ms(duration_ms);
    if (fake.on_sleep != NULL) fake.on_sleep();
}

void os_wake(uint32_t *word) { (void)word; }

void os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    fake.before_fork = before;
    fake.in_parent = in_parent;
    fake.in_child = in_child;
}

void os_at_exit(void (*last)(void)) { fake.at_exit = last; }

/* ---- the controls ---- */

void fake_page_bytes(size_t bytes)
{
    if (fake.reservation_count != 0) broken("the page size changes after the start");
    fake.page_bytes = bytes;
}

void fake_cores(unsigned count) { fake.core_count = count; }
void fake_core_current(unsigned core) { RELAXED_STORE(fake.core_current, core); }

void fake_address_space(size_t limit_bytes, size_t other_bytes)
{
    fake.limit_bytes = limit_bytes;
    fake.other_bytes = other_bytes;
}

void fake_reserve_bytes_max(size_t bytes) { fake.reserve_bytes_max = bytes; }
void fake_commit_bytes_max(size_t bytes) { fake.commit_bytes_max = bytes; }

void fake_setting(const char *name, const char *value)
{
    fake.setting_name = name;
    fake.setting_value = value;
}

void fake_fail_nth(uint64_t n) { fake.fail_in = n; }
void fake_fail_kind(enum fake_call kind, bool failing) { fake.failing[kind] = failing; }

void fake_fail_all(bool failing)
{
    for (unsigned kind = 0; kind < FAKE_FAILING_COUNT; kind++) fake.failing[kind] = failing;
}

uint64_t fake_failures(void) { return fake.failures; }
uint64_t fake_calls(enum fake_call kind) { return RELAXED_LOAD(fake.calls[kind]); }
uint64_t fake_calls_that_can_fail(void) { return fake.calls_that_can_fail; }

void fake_purge_does(enum fake_purge what) { fake.purge_does = what; }
size_t fake_reserved_bytes(void) { return fake.reserved_bytes; }
size_t fake_committed_bytes(void) { return fake.committed_bytes; }
uint64_t fake_purged_bytes(void) { return fake.purged_bytes; }
uint64_t fake_moved_bytes(void) { return fake.moved_bytes; }

bool fake_is_committed(const void *base, size_t bytes)
{
    struct os_range range = { (char *)(uintptr_t)base, bytes };
    const uint8_t *states = states_of(range, "a question about no reservation");

    return count_in_state(states, pages_of(bytes), FAKE_PAGE_RESERVED) == 0;
}

void fake_clock_ms(uint64_t forward_ms)
{
    (void)__atomic_add_fetch(&fake.now_ms, forward_ms, __ATOMIC_RELAXED);
}

void fake_thread_allow(bool allowed) { fake.thread_refused = !allowed; }
bool fake_thread_waits(void) { return fake.thread_body != NULL; }

bool fake_thread_run(void)
{
    void *(*body)(void *) = fake.thread_body;

    if (body == NULL) return false;
    fake.thread_body = NULL;
    fake.thread_running = true;
    (void)body(NULL);
    fake.thread_running = false;
    return true;
}

void fake_on_sleep(void (*hook)(void)) { fake.on_sleep = hook; }

int fake_fork(void)
{
    int child;

    if (fake.before_fork != NULL) fake.before_fork();
    enter();
    child = fork();
    leave();
    if (fake.before_fork == NULL) return child;
    if (child == 0) fake.in_child();
    else fake.in_parent();
    return child;
}

void fake_exit_handlers_run(void)
{
    if (fake.at_exit != NULL) fake.at_exit();
}

void fake_thread_end(void)
{
    if (end_hook == NULL) broken("the end of a thread that asked for no hook");
    end_hook();
}

const char *fake_error_text(void)
{
    fake.error_text[fake.error_bytes] = '\0';
    return fake.error_text;
}

void fake_error_clear(void) { fake.error_bytes = 0; }
