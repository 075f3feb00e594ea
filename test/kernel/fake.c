/* fake.c - a kernel for tests: it counts, it refuses on demand, and it believes nothing it is told.
 *
 * Here are its facts, files and messages, and the failures that a test asks for; memory is in
 * fake_memory.c, and what threads and forks do in fake_threads.c.
 * SPDX-License-Identifier: MIT
 */
#include "fake_inside.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ERROR_TEXT_BYTES = 16384 };

struct fake fake = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static struct {
    uintptr_t highest_address; /* 0: where the caller's stack is */
    unsigned core_count, core_current, core_quota, core_quota_asked;
    const char *setting_name, *setting_value;
    size_t group_limit_bytes, group_used_bytes, own_bytes, machine_room_bytes;
    bool group_fails, faults_watched;
    uint32_t process_id, thread_id;
    uint64_t stalled_us, now_ms;
    const struct os_code *code;
    size_t code_count;
    const char *stack;
    size_t stack_bytes;

    char error_text[ERROR_TEXT_BYTES];
    size_t error_bytes;
} facts = {
    .core_count = 2,
    .group_limit_bytes = SIZE_MAX,
    .own_bytes = SIZE_MAX,
    .machine_room_bytes = SIZE_MAX,
    .process_id = 1,
    .thread_id = 7,
    .now_ms = 1000,
};

uintptr_t os_highest_address(void)
{
    return facts.highest_address != 0 ? facts.highest_address
                                      : (uintptr_t)__builtin_frame_address(0);
}

struct os_group os_group_memory(void)
{
    struct os_group group = { facts.group_limit_bytes, SIZE_MAX, false };

    count_call(FAKE_READ_GROUP);
    if (facts.group_fails) return (struct os_group){ SIZE_MAX, SIZE_MAX, true };
    if (group.limit_bytes != SIZE_MAX)
        group.room_bytes = group.limit_bytes - min_size(group.limit_bytes, facts.group_used_bytes);
    return group;
}

size_t os_own_bytes(void) { return facts.own_bytes; }
size_t os_machine_room_bytes(void) { return facts.machine_room_bytes; }
uint64_t os_stalled_us(void) { return facts.stalled_us; }

unsigned os_core_count(void) { return facts.core_count; }
unsigned os_core_quota(void)
{
    facts.core_quota_asked++;
    return facts.core_quota;
}
unsigned os_core_current(void) { return RELAXED_LOAD(facts.core_current); }
/* Nothing of a fake reservation is ever sealed. */
bool os_forbid_writes(struct os_range range)
{
    (void)range;
    return false;
}

uint64_t os_random(void) { return 0x9e3779b97f4a7c15u; }
uint64_t os_now_ms(void) { return RELAXED_LOAD(facts.now_ms); }

const char *os_setting(const char *name)
{
    if (facts.setting_name == NULL || strcmp(facts.setting_name, name) != 0) return NULL;
    return facts.setting_value;
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

uint32_t os_process_id(void) { return facts.process_id; }
uint32_t os_thread_id(void) { return facts.thread_id; }
uint64_t os_wall_ns(void) { return os_now_ms() * 1000000; }

void (*os_next_symbol(const char *name))(void)
{
    (void)name;
    return NULL;
}

/* ---- code, stacks and faults ---- */

void fake_stack(const void *base, size_t bytes)
{
    facts.stack = base;
    facts.stack_bytes = bytes;
}

size_t os_copy_checked(void *to, const void *from, size_t bytes)
{
    size_t offset = (uintptr_t)from - (uintptr_t)facts.stack;

    if (offset >= facts.stack_bytes) return 0;
    if (bytes > facts.stack_bytes - offset) bytes = facts.stack_bytes - offset;
    memcpy(to, from, bytes);
    return bytes;
}

void fake_code(const struct os_code *code, size_t count)
{
    facts.code = code;
    facts.code_count = count;
}

size_t os_code_read(struct os_code *code, size_t most, char *paths, size_t paths_bytes)
{
    size_t count = facts.code_count < most ? facts.code_count : most;

    (void)paths;
    (void)paths_bytes;
    if (count > 0) memcpy(code, facts.code, count * sizeof *code);
    return count;
}

static bool (*fault_watcher)(const struct os_fault *fault);

bool os_watch_faults(bool (*watcher)(const struct os_fault *fault))
{
    if (facts.faults_watched) fault_watcher = watcher;
    return facts.faults_watched;
}

bool fake_faults_are_watched(void) { return fault_watcher != NULL; }
void fake_watch_faults(void) { facts.faults_watched = true; }

bool fake_fault_from(uintptr_t code, const void *frame, const void *address)
{
    struct os_fault fault = {
        .address = address, .code = code, .frame = frame, .access = OS_ACCESS_READ
    };

    return fault_watcher(&fault);
}

bool fake_fault(const void *address) { return fake_fault_from(0, NULL, address); }

/* ---- files, and another heap ---- */

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

int os_mappings_open(void) { return os_file_open("maps"); }

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
    size_t room = sizeof facts.error_text - 1 - facts.error_bytes;

    count_call(FAKE_WRITE);
    memcpy(facts.error_text + facts.error_bytes, text, min_size(length_bytes, room));
    facts.error_bytes += min_size(length_bytes, room);
    if (write(STDERR_FILENO, text, length_bytes) < 0) errno = saved_errno;
}

void port_abort(void) { abort(); }

/* ---- the controls ---- */

void fake_highest_address(uintptr_t address) { facts.highest_address = address; }
void fake_cores(unsigned count) { facts.core_count = count; }
void fake_core_current(unsigned core) { RELAXED_STORE(facts.core_current, core); }

void fake_group(size_t limit_bytes, size_t used_bytes)
{
    facts.group_limit_bytes = limit_bytes;
    facts.group_used_bytes = used_bytes;
}

void fake_group_fails(bool failing) { facts.group_fails = failing; }
void fake_ids(uint32_t process, uint32_t thread)
{
    facts.process_id = process;
    facts.thread_id = thread;
}

void fake_machine_room(size_t bytes) { facts.machine_room_bytes = bytes; }
void fake_core_quota(unsigned cores) { facts.core_quota = cores; }
unsigned fake_core_quota_asked(void) { return facts.core_quota_asked; }
void fake_own(size_t bytes) { facts.own_bytes = bytes; }
void fake_stall(uint64_t more_us) { facts.stalled_us += more_us; }

void fake_setting(const char *name, const char *value)
{
    facts.setting_name = name;
    facts.setting_value = value;
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

void fake_clock_ms(uint64_t forward_ms)
{
    (void)__atomic_add_fetch(&facts.now_ms, forward_ms, __ATOMIC_RELAXED);
}

const char *fake_error_text(void)
{
    facts.error_text[facts.error_bytes] = '\0';
    return facts.error_text;
}

void fake_error_clear(void) { facts.error_bytes = 0; }
