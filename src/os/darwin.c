/* darwin.c - prairie's wishes as calls of the macOS system library.
 *
 * There the C library is the interface of the kernel; what is called here neither allocates nor
 * takes a lock of the program's. Pages carry a tag of their own, by which vmmap shows them.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"
#include "thread_slot.h"

#include "../base/constants.h"
#include "../base/port.h"

#include <crt_externs.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mach/mach.h>
#include <mach/mach_time.h>
#include <mach/vm_statistics.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysctl.h>
#include <time.h>
#include <unistd.h>

enum { MEMORY_TAG = VM_MAKE_TAG(VM_MEMORY_APPLICATION_SPECIFIC_1) };
enum { MAPPING = MAP_PRIVATE | MAP_ANON | MAP_NORESERVE };

/* ---- memory ---- */

size_t os_page_bytes(void) { return vm_page_size; }

/* Programs have 47 bits on both kinds of processor. */
uintptr_t os_highest_address(void) { return ((uintptr_t)1 << 47) - 1; }

static struct os_range map_pages(size_t bytes, int protection)
{
    int saved_errno = errno;
    void *at = mmap(NULL, bytes, protection, MAPPING, MEMORY_TAG, 0);

    errno = saved_errno;
    return at == MAP_FAILED ? (struct os_range){ NULL, 0 } : (struct os_range){ at, bytes };
}

static void unmap_pages(char *base, size_t bytes)
{
    int saved_errno = errno;

    if (bytes != 0) (void)munmap(base, bytes);
    errno = saved_errno;
}

struct os_range os_reserve(size_t bytes, size_t align_bytes)
{
    size_t slack = align_bytes > os_page_bytes() ? align_bytes : 0;
    struct os_range raw;
    char *base;

    if (bytes + slack < bytes) return (struct os_range){ NULL, 0 };
    raw = map_pages(bytes + slack, PROT_NONE);
    if (raw.base == NULL || slack == 0) return raw;
    base = (char *)round_up((uintptr_t)raw.base, align_bytes);
    unmap_pages(raw.base, (size_t)(base - raw.base));
    unmap_pages(base + bytes, (size_t)(raw.base + raw.bytes - (base + bytes)));
    return (struct os_range){ base, bytes };
}

struct os_range os_reserve_readable(size_t bytes) { return map_pages(bytes, PROT_READ); }
void os_release(struct os_range range) { unmap_pages(range.base, range.bytes); }

bool os_commit(struct os_range range)
{
    int saved_errno = errno;
    bool done = mprotect(range.base, range.bytes, PROT_READ | PROT_WRITE) == 0;

    errno = saved_errno;
    return done;
}

/* A new mapping over the old one. */
static bool map_over(struct os_range range, int protection)
{
    int saved_errno = errno;
    void *at = mmap(range.base, range.bytes, protection, MAPPING | MAP_FIXED, MEMORY_TAG, 0);

    errno = saved_errno;
    return at != MAP_FAILED;
}

bool os_close(struct os_range range) { return map_over(range, PROT_NONE); }

/* MADV_FREE leaves the old contents until the kernel wants the pages, and counts them as the
 * process's own until then. Fresh pages read as zero, and the footprint falls at once. */
bool os_purge(struct os_range range) { return map_over(range, PROT_READ | PROT_WRITE); }

/* The kernel has no call that moves pages and leaves their place. */
bool os_move(struct os_range from, struct os_range to)
{
    (void)from;
    (void)to;
    return false;
}

struct os_range os_move_out(struct os_range from, size_t bytes)
{
    (void)from;
    (void)bytes;
    return (struct os_range){ NULL, 0 };
}

void os_move_back(struct os_range from, struct os_range to)
{
    (void)from;
    (void)to;
}

/* In its place only, and only when it shrinks. */
struct os_range os_resize(struct os_range range, size_t bytes, bool may_move)
{
    (void)may_move;
    if (bytes > range.bytes) return (struct os_range){ NULL, 0 };
    unmap_pages(range.base + bytes, range.bytes - bytes);
    return (struct os_range){ range.base, bytes };
}

size_t os_copy_checked(void *to, const void *from, size_t bytes)
{
    vm_size_t copied = 0;

    if (vm_read_overwrite(mach_task_self(), (vm_address_t)from, bytes, (vm_address_t)to, &copied)
        != KERN_SUCCESS)
        return 0;
    return copied;
}

/* Memory is promised beyond what there is; a write makes a page real. */
bool os_touch(struct os_range range)
{
    for (size_t at = 0; at < range.bytes; at += os_page_bytes())
        (void)__atomic_fetch_or(range.base + at, 0, __ATOMIC_RELAXED);
    return true;
}

bool os_keep_from_child(struct os_range range, bool kept)
{
    int saved_errno = errno;
    bool done = minherit(range.base, range.bytes, kept ? VM_INHERIT_NONE : VM_INHERIT_COPY) == 0;

    errno = saved_errno;
    return done;
}

/* There are none that a program could ask for later. */
void os_wish_huge_pages(struct os_range range, bool wanted)
{
    (void)range;
    (void)wanted;
}

/* ---- limits and facts ---- */

size_t os_address_space_limit(void)
{
    struct rlimit limit = { 0, 0 };
    int saved_errno = errno;
    bool known = getrlimit(RLIMIT_AS, &limit) == 0;

    errno = saved_errno;
    return !known || limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX : (size_t)limit.rlim_cur;
}

static bool read_task(task_vm_info_data_t *info)
{
    mach_msg_type_number_t count = TASK_VM_INFO_COUNT;

    return task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)info, &count) == KERN_SUCCESS;
}

size_t os_address_space_used(void)
{
    task_vm_info_data_t info;

    return read_task(&info) ? (size_t)info.virtual_size : 0;
}

size_t os_own_bytes(void)
{
    task_vm_info_data_t info;

    return read_task(&info) ? (size_t)info.phys_footprint : 0;
}

/* There are no groups with a limit of their own. */
struct os_group os_group_memory(void) { return (struct os_group){ SIZE_MAX, SIZE_MAX }; }
uint64_t os_stalled_us(void) { return 0; }

unsigned os_core_count(void)
{
    int count = 0, saved_errno = errno;
    size_t bytes = sizeof count;

    if (sysctlbyname("hw.logicalcpu", &count, &bytes, NULL, 0) != 0) count = 1;
    errno = saved_errno;
    return count > 0 ? (unsigned)count : 1;
}

unsigned os_core_current(void)
{
    size_t number = 0;

    if (__builtin_available(macOS 11.0, *)) (void)pthread_cpu_number_np(&number);
    return (unsigned)number;
}

uint64_t port_now_ns(void) { return clock_gettime_nsec_np(CLOCK_UPTIME_RAW); }
uint64_t os_now_ms(void) { return clock_gettime_nsec_np(CLOCK_UPTIME_RAW_APPROX) / 1000000; }
uint64_t os_wall_ns(void) { return clock_gettime_nsec_np(CLOCK_REALTIME); }
uint32_t os_process_id(void) { return (uint32_t)getpid(); }

const char *os_setting(const char *name)
{
    char **environment = *_NSGetEnviron();
    size_t length = strlen(name);

    if (issetugid() != 0 || environment == NULL) return NULL;
    for (; *environment != NULL; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

/* ---- files ---- */

bool os_link_text(const char *path, char *text, size_t room_bytes)
{
    int saved_errno = errno;
    ssize_t length = readlink(path, text, room_bytes - 1);

    errno = saved_errno;
    if (length < 0) return false;
    text[length] = '\0';
    return true;
}

static int open_file(const char *path, int flags)
{
    int saved_errno = errno, file = open(path, flags | O_CLOEXEC, 0644);

    errno = saved_errno;
    return file;
}

int os_file_create(const char *path) { return open_file(path, O_WRONLY | O_CREAT | O_TRUNC); }
int os_file_open(const char *path) { return open_file(path, O_RDONLY); }

void os_file_close(int file)
{
    int saved_errno = errno;

    (void)close(file);
    errno = saved_errno;
}

bool os_file_write(int file, const void *bytes, size_t count)
{
    int saved_errno = errno;
    const char *at = bytes;

    while (count > 0) {
        ssize_t written = write(file, at, count);

        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) break;
        at += written;
        count -= (size_t)written;
    }
    errno = saved_errno;
    return count == 0;
}

size_t os_file_read(int file, void *bytes, size_t wanted)
{
    int saved_errno = errno;
    size_t count = 0;

    while (count < wanted) {
        ssize_t got = read(file, (char *)bytes + count, wanted - count);

        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        count += (size_t)got;
    }
    errno = saved_errno;
    return count;
}

void os_huge_page_mode(char *text, size_t room_bytes)
{
    (void)strlcpy(text, "not supported", room_bytes);
}

/* ---- locks and messages ---- */

/* The system's own locks sleep by these; they are no documented interface, but every release since
 * 10.12 has them, and what is documented (os_sync_wait_on_address) came with 14.4. */
int __ulock_wait(uint32_t operation, void *address, uint64_t value, uint32_t timeout_us);
int __ulock_wake(uint32_t operation, void *address, uint64_t value);
enum { ULOCK_COMPARE_AND_WAIT = 1, ULOCK_WAKE_ALL = 0x100, ULOCK_NO_ERRNO = 0x1000000 };

void port_wait(const uint32_t *word, uint32_t expected)
{
    (void)__ulock_wait(ULOCK_COMPARE_AND_WAIT | ULOCK_NO_ERRNO, (void *)(uintptr_t)word, expected,
                       0);
}

void port_wake(uint32_t *word, int count)
{
    (void)__ulock_wake(ULOCK_COMPARE_AND_WAIT | ULOCK_NO_ERRNO | (count > 1 ? ULOCK_WAKE_ALL : 0),
                       word, 0);
}

void os_sleep(const uint32_t *word, uint32_t expected, uint64_t duration_ms)
{
    uint64_t most_us = duration_ms < 4000000 ? duration_ms * 1000 : 4000000000;

    if (most_us != 0)
        (void)__ulock_wait(ULOCK_COMPARE_AND_WAIT | ULOCK_NO_ERRNO, (void *)(uintptr_t)word,
                           expected, (uint32_t)most_us);
}

uintptr_t port_thread_mark(void) { return (uintptr_t)pthread_self(); }

static int error_file = STDERR_FILENO;

void os_keep_error_output(void)
{
    int saved_errno = errno, file = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);

    if (file >= 0) error_file = file;
    errno = saved_errno;
}

void port_write_error(const char *text, size_t length_bytes)
{
    (void)os_file_write(error_file, text, length_bytes);
}

void port_abort(void) { abort(); }
void os_exit(int code) { _exit(code); }
void os_at_exit(void (*last)(void)) { (void)atexit(last); }
