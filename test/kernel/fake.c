/* fake.c - a kernel for tests: it counts, it refuses on demand, and it believes nothing it is told.
 *
 * One mutex guards the model; the ports below the locks of prairie do without it. errno is kept, as
 * os.h wants.
 * SPDX-License-Identifier: MIT
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fake.h"

#include "fake_model.h"
#include "os/thread_slot.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ERROR_TEXT_BYTES = 16384 };

static struct {
    pthread_mutex_t mutex;

    uintptr_t highest_address; /* 0: where the caller's stack is */
    unsigned core_count, core_current;
    const char *setting_name, *setting_value;

    uint64_t fail_in;  /* calls until the one that fails; 0: none */
    uint64_t fail_row; /* how many fail then, one after the other */
    bool failing[FAKE_FAILING_COUNT];
    uint64_t failures, calls_that_can_fail;
    uint64_t calls[FAKE_CALL_COUNT];
    void (*on_call)(enum fake_call kind), (*beside_call)(enum fake_call kind);

    uint64_t purged_bytes, moved_bytes, touched_bytes;
    size_t group_limit_bytes, group_used_bytes, own_bytes;
    bool group_fails, copied;
    unsigned core_quota, core_quota_asked;
    uint64_t stalled_us, first_touch_us;
    const void *first_touched;
    enum fake_purge purge_does;

    uint64_t now_ms;
    bool thread_refused, thread_running;
    uint64_t rights_at_sleep;
    void *(*thread_body)(void *);
    void (*on_sleep)(void);
    void (*before_fork)(void), (*in_parent)(void), (*in_child)(void), (*at_exit)(void);
    bool one_thread;
    bool faults_watched;
    const struct os_code *code;
    size_t code_count;
    const char *stack;
    size_t stack_bytes;
    unsigned forks; /* begun and not ended */

    char error_text[ERROR_TEXT_BYTES];
    size_t error_bytes;
} fake = {
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .core_count = 2,
    .group_limit_bytes = SIZE_MAX,
    .own_bytes = SIZE_MAX,
    .now_ms = 1000,
};

static void enter(void) { (void)pthread_mutex_lock(&fake.mutex); }
static void leave(void) { (void)pthread_mutex_unlock(&fake.mutex); }

static void count_call(enum fake_call kind)
{
    (void)__atomic_add_fetch(&fake.calls[kind], 1, __ATOMIC_RELAXED);
    if (fake.on_call != NULL) fake.on_call(kind);
}

/* Nobody holds the fake's lock. */
static void pass_beside(enum fake_call kind)
{
    if (fake.beside_call != NULL) fake.beside_call(kind);
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
    if (fake.fail_in > 0 && --fake.fail_in == 0) {
        if (--fake.fail_row > 0) fake.fail_in = 1;
        return refuse();
    }
    return fake.failing[kind] ? refuse() : true;
}

/* ---- os.h: memory ---- */

size_t os_page_bytes(void) { return model.page_bytes; }

uintptr_t os_highest_address(void)
{
    return fake.highest_address != 0 ? fake.highest_address : (uintptr_t)__builtin_frame_address(0);
}

static struct os_range map_reservation(enum fake_call kind, size_t bytes, size_t align_bytes,
                                       int protection)
{
    struct os_range range = { NULL, 0 };

    enter();
    if (admit(kind)) {
        range = model_reserve(bytes, align_bytes, protection);
        if (range.base == NULL) (void)refuse();
    }
    leave();
    return range;
}

struct os_range os_reserve(size_t bytes, size_t align_bytes)
{
    return map_reservation(FAKE_RESERVE, bytes, align_bytes, PROT_NONE);
}

struct os_range os_reserve_readable(size_t bytes)
{
    return map_reservation(FAKE_RESERVE_READABLE, bytes, model.page_bytes, PROT_READ);
}

void os_release(struct os_range range)
{
    enter();
    count_call(FAKE_RELEASE);
    model_release(range);
    leave();
}

bool os_commit(struct os_range range)
{
    bool done;

    enter();
    done = admit(FAKE_COMMIT) && (model_commit(range) || refuse());
    leave();
    pass_beside(FAKE_COMMIT);
    return done;
}

bool os_close(struct os_range range)
{
    bool done;

    pass_beside(FAKE_CLOSE);
    enter();
    (void)committed_states(range, "a close outside every reservation",
                           "a close of memory that is not committed");
    done = admit(FAKE_CLOSE);
    if (done) model_close(range);
    leave();
    return done;
}

enum { LOCKED_MAX = 8 };

static struct {
    const char *base;
    size_t bytes;
} locked[LOCKED_MAX];
static unsigned locked_count;

void fake_lock_memory(const void *base, size_t bytes)
{
    if (locked_count == LOCKED_MAX) broken("too much locked memory");
    locked[locked_count].base = base;
    locked[locked_count++].bytes = bytes;
}

static bool has_locked_part(struct os_range range)
{
    for (unsigned i = 0; i < locked_count; i++)
        if (range.base < locked[i].base + locked[i].bytes
            && locked[i].base < range.base + range.bytes)
            return true;
    return false;
}

bool os_purge(struct os_range range)
{
    uint8_t *states;
    bool done;

    pass_beside(FAKE_PURGE);
    enter();
    states = committed_states(range, "a purge outside every reservation",
                              "a purge of memory that is not committed");
    done = admit(FAKE_PURGE) && (!has_locked_part(range) || refuse());
    if (done) {
        if (OS_PURGE_CLOSES) {
            model_close(range);
        } else {
            if (fake.purge_does == FAKE_PURGE_ZEROES) give_zeros(range.base, range.bytes);
            else memset(range.base, FAKE_SCRIBBLE, range.bytes);
            memset(states, FAKE_PAGE_PURGED, pages_of(range.bytes));
        }
        fake.purged_bytes += range.bytes;
    }
    leave();
    return done;
}

static bool fences_allowed;

void fake_fences(bool allowed) { fences_allowed = allowed; }

bool os_fence(struct os_range range)
{
    enter();
    (void)committed_states(range, "a fence outside every reservation",
                           "a fence of memory that is not committed");
    if (fences_allowed) model_close(range);
    leave();
    return fences_allowed;
}

bool os_unfence(struct os_range range)
{
    bool done;

    enter();
    done = model_commit(range);
    leave();
    return done;
}

bool os_move(struct os_range from, struct os_range to)
{
    bool done;

    enter();
    if (from.bytes != to.bytes) broken("a move between unequal ranges");
    if (!is_aligned((uintptr_t)from.base | (uintptr_t)to.base, model.page_bytes))
        broken("a move of parts of pages");
    if (from.base < to.base + to.bytes && to.base < from.base + from.bytes)
        broken("a move onto itself");
    (void)committed_states(from, "a move from outside every reservation",
                           "a move of memory that is not committed");
    (void)committed_states(to, "a move out of every reservation",
                           "a move to memory that is not committed");
    done = admit(FAKE_MOVE);
    if (done) {
        model_move(from, to);
        fake.moved_bytes += from.bytes;
    }
    leave();
    return done;
}

/* A reservation of its own each time, as the real kernel may choose. */
struct os_range os_move_out(struct os_range from, size_t bytes)
{
    struct os_range range = { NULL, 0 };

    enter();
    (void)committed_states(from, "a move from outside every reservation",
                           "a move of memory that is not committed");
    if (admit(FAKE_MOVE)) {
        range = model_reserve(bytes, model.page_bytes, PROT_NONE);
        if (range.base == NULL || !model_commit_or_release(range)) {
            range = (struct os_range){ NULL, 0 };
            (void)refuse();
        }
    }
    if (range.base != NULL) {
        model_move(from, (struct os_range){ range.base, from.bytes });
        fake.moved_bytes += from.bytes;
    }
    leave();
    return range;
}

void os_move_back(struct os_range from, struct os_range to)
{
    enter();
    model_move(from, to);
    model_cut_front(from);
    leave();
}

/* Never longer in its place: what lies behind is a matter of chance. */
struct os_range os_resize(struct os_range range, size_t bytes, bool may_move)
{
    struct os_range resized = { NULL, 0 };

    enter();
    (void)committed_states(range, "a resize outside every reservation",
                           "a resize of memory that is not committed");
    if (bytes < range.bytes) broken("a resize that shrinks");
    if (admit(FAKE_RESIZE) && may_move) {
        resized = model_reserve(bytes, model.page_bytes, PROT_NONE);
        if (resized.base != NULL && !model_commit_or_release(resized)) resized.base = NULL;
    }
    if (resized.base != NULL) {
        model_move(range, (struct os_range){ resized.base, range.bytes });
        model_release(range);
    } else {
        resized.bytes = 0;
        (void)refuse();
    }
    leave();
    return resized;
}

void fake_stack(const void *base, size_t bytes)
{
    fake.stack = base;
    fake.stack_bytes = bytes;
}

size_t os_copy_checked(void *to, const void *from, size_t bytes)
{
    size_t offset = (uintptr_t)from - (uintptr_t)fake.stack;

    if (offset >= fake.stack_bytes) return 0;
    if (bytes > fake.stack_bytes - offset) bytes = fake.stack_bytes - offset;
    memcpy(to, from, bytes);
    return bytes;
}

void fake_code(const struct os_code *code, size_t count)
{
    fake.code = code;
    fake.code_count = count;
}

size_t os_code_read(struct os_code *code, size_t most, char *paths, size_t paths_bytes)
{
    size_t count = fake.code_count < most ? fake.code_count : most;

    (void)paths;
    (void)paths_bytes;
    if (count > 0) memcpy(code, fake.code, count * sizeof *code);
    return count;
}

uint32_t os_process_id(void) { return 1; }

static bool (*fault_watcher)(const struct os_fault *fault);

bool os_watch_faults(bool (*watcher)(const struct os_fault *fault))
{
    if (fake.faults_watched) fault_watcher = watcher;
    return fake.faults_watched;
}

bool fake_faults_are_watched(void) { return fault_watcher != NULL; }
void fake_watch_faults(void) { fake.faults_watched = true; }

bool fake_fault_from(uintptr_t code, const void *frame, const void *address)
{
    struct os_fault fault = {
        .address = address, .code = code, .frame = frame, .access = OS_ACCESS_READ
    };

    return fault_watcher(&fault);
}

bool fake_fault(const void *address) { return fake_fault_from(0, NULL, address); }

uint32_t os_thread_id(void) { return 7; }
uint64_t os_wall_ns(void) { return os_now_ms() * 1000000; }

static struct {
    char *room;
    size_t bytes, written;
} file_made;

void fake_file(void *room, size_t bytes)
{
    file_made.room = room;
    file_made.bytes = bytes;
    file_made.written = 0;
}

size_t fake_file_bytes(void) { return file_made.written; }

int os_file_create(const char *path)
{
    (void)path;
    return file_made.room != NULL ? 1 : -1;
}

static struct {
    const char *rest; /* what was not read yet; NULL: there is no such file */
    int file;
} file_to_read;

void fake_file_to_read(int file, const char *text)
{
    file_to_read.file = file;
    file_to_read.rest = text;
}

int os_file_open(const char *path)
{
    (void)path;
    return file_to_read.rest != NULL ? file_to_read.file : -1;
}

bool os_file_write(int file, const void *bytes, size_t count)
{
    (void)file;
    if (count > file_made.bytes - file_made.written) return false;
    memcpy(file_made.room + file_made.written, bytes, count);
    file_made.written += count;
    return true;
}

size_t os_file_read(int file, void *bytes, size_t wanted)
{
    size_t count = 0;

    if (file_to_read.rest == NULL || file != file_to_read.file) return 0;
    while (count < wanted && file_to_read.rest[count] != '\0') count++;
    memcpy(bytes, file_to_read.rest, count);
    file_to_read.rest += count;
    return count;
}

void os_file_close(int file)
{
    if (file == file_to_read.file) file_to_read.rest = NULL;
}
void os_exit(int code) { (void)code; }

static struct {
    void *block;
    size_t bytes;
    unsigned frees;
} other;

void fake_other_block(void *block, size_t bytes)
{
    other.block = block;
    other.bytes = bytes;
}

unsigned fake_other_frees(void) { return other.frees; }

bool os_other_free(void *block)
{
    if (block == NULL || block != other.block) return false;
    other.block = NULL;
    other.frees++;
    return true;
}

size_t os_other_bytes(const void *block)
{
    return block != NULL && block == other.block ? other.bytes : SIZE_MAX;
}

bool os_touch(struct os_range range)
{
    bool done;

    enter();
    (void)committed_states(range, "a touch outside every reservation",
                           "a touch of memory that is not committed");
    done = admit(FAKE_TOUCH);
    if (done) {
        for (size_t at = 0; at < range.bytes; at += model.page_bytes)
            (void)__atomic_fetch_or(range.base + at, 0, __ATOMIC_RELAXED);
        memset(states_of(range, ""), FAKE_PAGE_COMMITTED, pages_of(range.bytes));
        fake.touched_bytes += range.bytes;
    }
    leave();
    return done;
}

bool os_keep_from_child(struct os_range range, bool kept)
{
    bool done;

    enter();
    (void)committed_states(range, "a wish for a child outside every reservation",
                           "a wish for a child about memory that is not committed");
    done = admit(FAKE_KEEP_FROM_CHILD);
    if (done && madvise(range.base, range.bytes, kept ? MADV_WIPEONFORK : MADV_KEEPONFORK) != 0)
        broken("the real kernel refused a wish for a child");
    leave();
    return done;
}

void os_wish_huge_pages(struct os_range range, bool wanted)
{
    enter();
    count_call(wanted ? FAKE_HUGE_WANT : FAKE_HUGE_REFUSE);
    (void)states_of(range, "a wish outside every reservation");
    leave();
}

uint64_t os_first_touch_us(void *page)
{
    enter();
    count_call(FAKE_FIRST_TOUCH);
    (void)committed_states((struct os_range){ page, model.page_bytes },
                           "a first touch outside every reservation",
                           "a first touch of memory that is not committed");
    for (size_t at = 0; at < model.page_bytes && fake.purge_does == FAKE_PURGE_ZEROES; at++)
        if (((const char *)page)[at] != 0) broken("a first touch of a page that is not zero");
    fake.first_touched = page;
    leave();
    return RELAXED_LOAD(fake.first_touch_us);
}

/* ---- os.h: facts ---- */

size_t os_address_space_limit(void) { return model.limit_bytes; }

size_t os_address_space_used(void)
{
    size_t used;

    enter();
    used = model.other_bytes + model.reserved_bytes;
    leave();
    return used;
}

struct os_group os_group_memory(void)
{
    struct os_group group = { fake.group_limit_bytes, SIZE_MAX, false };

    count_call(FAKE_READ_GROUP);
    if (fake.group_fails) return (struct os_group){ SIZE_MAX, SIZE_MAX, true };
    if (group.limit_bytes != SIZE_MAX)
        group.room_bytes = group.limit_bytes - min_size(group.limit_bytes, fake.group_used_bytes);
    return group;
}

size_t os_own_bytes(void) { return fake.own_bytes; }
uint64_t os_stalled_us(void) { return fake.stalled_us; }

unsigned os_core_count(void) { return fake.core_count; }
unsigned os_core_quota(void)
{
    fake.core_quota_asked++;
    return fake.core_quota;
}
unsigned os_core_current(void) { return RELAXED_LOAD(fake.core_current); }
/* Nothing of a fake reservation is ever sealed. */
bool os_forbid_writes(struct os_range range)
{
    (void)range;
    return false;
}

bool os_guard(struct os_range range) { return os_close(range); }
bool os_unguard(struct os_range range) { return os_commit(range); }
uint64_t os_random(void) { return 0x9e3779b97f4a7c15u; }
uint64_t os_now_ms(void) { return RELAXED_LOAD(fake.now_ms); }

const char *os_setting(const char *name)
{
    if (fake.setting_name == NULL || strcmp(fake.setting_name, name) != 0) return NULL;
    return fake.setting_value;
}

bool os_link_text(const char *path, char *text, size_t room_bytes)
{
    (void)path, (void)text, (void)room_bytes;
    return false;
}

void os_huge_page_mode(char *text, size_t room_bytes)
{
    memcpy(text, "madvise", room_bytes < 8 ? room_bytes : 8);
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

void port_wake(uint32_t *word, int count)
{
    count_call(FAKE_WAKE);
    futex(word, FUTEX_WAKE_PRIVATE, (uint32_t)count);
}

uintptr_t port_thread_mark(void) { return (uintptr_t)&thread_slot; }
uint32_t port_step(void) { return (uint32_t)(os_now_ms() * 10); }

uint64_t port_now_ns(void)
{
    count_call(FAKE_CLOCK);
    return os_now_ms() * 1000000;
}

void os_keep_error_output(void) {}

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

__thread struct front *thread_slot __attribute__((tls_model("initial-exec"))) =
    (struct front *)&front_empty;

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
    if (done && (fake.thread_refused || fake.thread_body != NULL || fake.thread_running))
        done = refuse();
    if (done) fake.thread_body = body;
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
    fake.thread_body = NULL;
    fake.thread_running = false;
}

void fake_copy(void) { fake.copied = true; }

bool os_threads_forget_lost(void)
{
    bool lost = fake.copied && fake.thread_body != NULL;

    if (lost) os_threads_forget();
    fake.copied = false;
    return lost;
}

bool os_thread_rights_may_part(bool alone)
{
    (void)alone;
    return fake.rights_at_sleep != 0;
}

bool os_thread_rights_parted(void)
{
    return fake.rights_at_sleep != 0 && fake_calls(FAKE_SLEEP) >= fake.rights_at_sleep;
}

void os_sleep(const uint32_t *word, uint32_t expected, uint64_t duration_ms)
{
    count_call(FAKE_SLEEP);
    if (RELAXED_LOAD(*word) != expected) return;
    fake_clock_ms(duration_ms);
    if (fake.on_sleep != NULL) fake.on_sleep();
}

bool os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    bool done;

    enter();
    done = admit(FAKE_FORK_HOOK);
    leave();
    if (!done) return false;
    fake.before_fork = before;
    fake.in_parent = in_parent;
    fake.in_child = in_child;
    return true;
}

bool os_has_one_thread(void) { return fake.one_thread; }

void os_fork_begins(void) { fake.forks++; }

void os_fork_ends_in_parent(void)
{
    if (fake.forks-- == 0) broken("a fork ends that has not begun");
}

void os_fork_ends_in_child(void)
{
    if (fake.forks == 0) broken("a fork ends that has not begun");
    fake.forks = 0;
}

void os_at_exit(void (*last)(void)) { fake.at_exit = last; }

void (*os_next_symbol(const char *name))(void)
{
    (void)name;
    return NULL;
}

/* ---- the controls ---- */

void fake_page_bytes(size_t bytes)
{
    if (model.reservation_count != 0) broken("the page size changes after the start");
    model.page_bytes = bytes;
}

void fake_highest_address(uintptr_t address) { fake.highest_address = address; }
void fake_cores(unsigned count) { fake.core_count = count; }
void fake_core_current(unsigned core) { RELAXED_STORE(fake.core_current, core); }

void fake_address_space(size_t limit_bytes, size_t other_bytes)
{
    model.limit_bytes = limit_bytes;
    model.other_bytes = other_bytes;
}

void fake_group(size_t limit_bytes, size_t used_bytes)
{
    fake.group_limit_bytes = limit_bytes;
    fake.group_used_bytes = used_bytes;
}

void fake_group_fails(bool failing) { fake.group_fails = failing; }
void fake_core_quota(unsigned cores) { fake.core_quota = cores; }
unsigned fake_core_quota_asked(void) { return fake.core_quota_asked; }
void fake_own(size_t bytes) { fake.own_bytes = bytes; }
void fake_stall(uint64_t more_us) { fake.stalled_us += more_us; }

void fake_next_place(void *base) { model.next_place = base; }
void fake_reserve_bytes_max(size_t bytes) { model.reserve_bytes_max = bytes; }
void fake_commit_bytes_max(size_t bytes) { model.commit_bytes_max = bytes; }

void fake_setting(const char *name, const char *value)
{
    fake.setting_name = name;
    fake.setting_value = value;
}

void fake_fail_nth(uint64_t n) { fake_fail_row(n, 1); }

void fake_fail_row(uint64_t n, uint64_t count)
{
    fake.fail_in = n;
    fake.fail_row = count;
}

void fake_fail_kind(enum fake_call kind, bool failing) { fake.failing[kind] = failing; }

void fake_fail_all(bool failing)
{
    for (unsigned kind = 0; kind < FAKE_FAILING_COUNT; kind++) fake.failing[kind] = failing;
}

uint64_t fake_failures(void) { return fake.failures; }
uint64_t fake_calls(enum fake_call kind) { return RELAXED_LOAD(fake.calls[kind]); }
uint64_t fake_calls_that_can_fail(void) { return fake.calls_that_can_fail; }
void fake_on_call(void (*hook)(enum fake_call kind)) { fake.on_call = hook; }
void fake_beside_call(void (*hook)(enum fake_call kind)) { fake.beside_call = hook; }

void fake_purge_does(enum fake_purge what) { fake.purge_does = what; }
size_t fake_reserved_bytes(void) { return model.reserved_bytes; }
size_t fake_committed_bytes(void) { return model.committed_bytes; }
uint64_t fake_purged_bytes(void) { return fake.purged_bytes; }
uint64_t fake_moved_bytes(void) { return fake.moved_bytes; }
void fake_first_touch_us(uint64_t us) { RELAXED_STORE(fake.first_touch_us, us); }
const void *fake_first_touched(void) { return fake.first_touched; }
uint64_t fake_touched_bytes(void) { return fake.touched_bytes; }

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

void fake_rights_part(uint64_t sleep) { fake.rights_at_sleep = sleep; }
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

void fake_one_thread(bool alone) { fake.one_thread = alone; }
unsigned fake_forks_begun(void) { return fake.forks; }

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
