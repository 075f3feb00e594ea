/* unix.c - prairie's wishes as calls of a C library that is the interface of its kernel: what macOS
 * and the BSDs have in common. What is called here neither allocates nor takes a lock of the
 * program's.
 * SPDX-License-Identifier: MIT
 */
#include "unix.h"

#include "aligned.h"
#include "os.h"

#include "../base/port.h"
#include "../base/units.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Signals may come in between, but not for ever. */
enum { INTERRUPTIONS_MAX = 100 };
/* Where a copy of the standard error is kept: where no program looks; with less room, where few
 * do. */
enum { COPY_FROM = 100, COPY_FROM_LOW = 10 };

/* ---- memory ---- */

static struct os_range map_pages(size_t bytes, int protection, int flags)
{
    int saved_errno = errno;
    void *at =
        mmap(NULL, bytes, protection | unix_map_rights, UNIX_MAPPING | flags, unix_map_file, 0);

    errno = saved_errno;
    return at == MAP_FAILED ? (struct os_range){ NULL, 0 } : (struct os_range){ at, bytes };
}

static void unmap_pages(char *base, size_t bytes)
{
    int saved_errno = errno;

    if (bytes == 0) return;
    unix_discard((struct os_range){ base, bytes });
    if (munmap(base, bytes) != 0) unix_keep((struct os_range){ base, bytes });
    errno = saved_errno;
}

static struct os_range map_closed(size_t bytes) { return map_pages(bytes, PROT_NONE, 0); }

struct os_range os_reserve(size_t bytes, size_t align_bytes)
{
    return reserve_aligned(map_closed, bytes, align_bytes);
}

/* What can be read would be written to a core file, zeros and all. */
struct os_range os_reserve_readable(size_t bytes)
{
    return map_pages(bytes, PROT_READ, unix_map_undumped);
}

void os_release(struct os_range range) { unmap_pages(range.base, range.bytes); }

static bool protect(struct os_range range, int protection)
{
    int saved_errno = errno;
    bool done = mprotect(range.base, range.bytes, protection) == 0;

    errno = saved_errno;
    return done;
}

bool os_commit(struct os_range range) { return protect(range, PROT_READ | PROT_WRITE); }
bool os_forbid_writes(struct os_range range) { return protect(range, PROT_READ); }

/* A new mapping over the old one. False: the old one is there; what is in it may be lost. */
static bool map_over(struct os_range range, int protection)
{
    int saved_errno = errno;
    bool done;

    unix_discard(range);
    done = mmap(range.base, range.bytes, protection | unix_map_rights, UNIX_MAPPING | MAP_FIXED,
                unix_map_file, 0)
        != MAP_FAILED;
    if (!done) unix_keep(range);
    errno = saved_errno;
    return done;
}

bool os_close(struct os_range range) { return map_over(range, PROT_NONE); }

/* MADV_FREE leaves the old contents until the kernel wants the pages, and counts them as the
 * process's own until then. Fresh pages read as zero, and the footprint falls at once. */
bool os_purge(struct os_range range) { return map_over(range, PROT_READ | PROT_WRITE); }

uint64_t os_random(void)
{
    uint64_t number = 0;

    arc4random_buf(&number, sizeof number);
    return number;
}

/* In its place only, and only when it shrinks. */
struct os_range os_resize(struct os_range range, size_t bytes, bool may_move)
{
    (void)may_move;
    if (bytes > range.bytes) return (struct os_range){ NULL, 0 };
    unmap_pages(range.base + bytes, range.bytes - bytes);
    return (struct os_range){ range.base, bytes };
}

/* Memory is promised beyond what there is; a write makes a page real. A word, because processors
 * without an instruction for bytes (riscv64) would need a library for them. */
bool os_touch(struct os_range range)
{
    for (size_t at = 0; at < range.bytes; at += os_page_bytes())
        (void)__atomic_fetch_or((uint32_t *)(range.base + at), 0, __ATOMIC_RELAXED);
    return true;
}

/* ---- limits and facts ---- */

/* There are no groups with a limit of their own. */
struct os_group os_group_memory(void) { return (struct os_group){ SIZE_MAX, SIZE_MAX, false }; }

size_t os_address_space_limit(void)
{
    struct rlimit limit = { 0, 0 };
    int saved_errno = errno;
    bool known = getrlimit(RLIMIT_AS, &limit) == 0;

    errno = saved_errno;
    return !known || limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX : (size_t)limit.rlim_cur;
}

bool os_address_space_has_room(size_t bytes)
{
    (void)bytes;
    return os_address_space_limit() == SIZE_MAX;
}

uint32_t os_process_id(void) { return (uint32_t)getpid(); }

const char *os_setting(const char *name)
{
    char **environment = unix_environment();
    size_t length = strlen(name);

    if (issetugid() != 0 || environment == NULL) return NULL;
    for (; *environment != NULL; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

void unix_sort_last_in(struct os_code *code, size_t count)
{
    struct os_code moved = code[count];

    while (count > 0 && code[count - 1].start > moved.start) {
        code[count] = code[count - 1];
        count--;
    }
    code[count] = moved;
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

/* Opening, closing, reading and writing are points of cancellation, which no call of ours is. */

static int open_file(const char *path, int flags)
{
    struct os_callout before = os_callout_begin();
    int file = open(path, flags | O_CLOEXEC, 0644);

    os_callout_end(before);
    return file;
}

/* The number of a standard stream that the program has closed is one that it may still write to. */
static int beyond_streams(int file)
{
    int saved_errno = errno, copy;

    if (file < 0 || file > STDERR_FILENO) return file;
    copy = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    errno = saved_errno;
    os_file_close(file);
    return copy;
}

int os_file_create(const char *path)
{
    int links = issetugid() != 0 ? O_NOFOLLOW : 0;

    return beyond_streams(open_file(path, O_WRONLY | O_CREAT | O_TRUNC | links));
}

int os_file_open(const char *path) { return open_file(path, O_RDONLY); }

/* NetBSD has it where /proc is mounted as on Linux. */
int os_mappings_open(void) { return os_file_open("/proc/self/maps"); }

void os_file_close(int file)
{
    struct os_callout before = os_callout_begin();

    (void)close(file);
    os_callout_end(before);
}

bool os_file_write(int file, const void *bytes, size_t count)
{
    struct os_callout before = os_callout_begin();
    const char *at = bytes;
    unsigned interruptions = 0, waits = 0;

    while (count > 0) {
        ssize_t written = write(file, at, count);

        if (written < 0 && errno == EINTR && ++interruptions < INTERRUPTIONS_MAX) continue;
        if (written < 0 && errno == EAGAIN && os_reader_wait(&waits)) continue;
        if (written <= 0) break;
        at += written;
        count -= (size_t)written;
        waits = 0;
        os_reader_reads();
    }
    os_callout_end(before);
    return count == 0;
}

size_t os_file_read(int file, void *bytes, size_t wanted)
{
    struct os_callout before = os_callout_begin();
    size_t count = 0;
    unsigned interruptions = 0;

    while (count < wanted) {
        ssize_t got = read(file, (char *)bytes + count, wanted - count);

        if (got < 0 && errno == EINTR && ++interruptions < INTERRUPTIONS_MAX) continue;
        if (got <= 0) break;
        count += (size_t)got;
    }
    os_callout_end(before);
    return count;
}

/* ---- messages and the end ---- */

/* A copy of the standard error. A program that closes all descriptors that are not its own closes
 * it, too, and may get its number for a file of its own: so it is known by more than its number. */
static struct {
    int file; /* -1: none was kept */
    struct stat facts;
} kept SEALED = { .file = -1 };

void os_keep_error_output(void)
{
    int saved_errno = errno, file;

    if (kept.file >= 0) return;
    file = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, COPY_FROM);
    if (file < 0) file = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, COPY_FROM_LOW);
    if (file >= 0 && fstat(file, &kept.facts) == 0) kept.file = file;
    else if (file >= 0) (void)close(file);
    errno = saved_errno;
}

static bool kept_is_there(void)
{
    struct stat facts;
    int saved_errno = errno;
    bool is_open = kept.file >= 0 && fstat(kept.file, &facts) == 0;

    errno = saved_errno;
    return is_open && facts.st_dev == kept.facts.st_dev && facts.st_ino == kept.facts.st_ino;
}

void port_write_error(const char *text, size_t length_bytes)
{
    (void)os_file_write(kept_is_there() ? kept.file : STDERR_FILENO, text, length_bytes);
}

void port_abort(void) { abort(); }
void os_exit(int code) { _exit(code); }
void os_at_exit(void (*last)(void)) { (void)atexit(last); }

void (*os_next_symbol(const char *name))(void)
{
    union {
        void *object;
        void (*function)(void);
    } symbol = { dlsym(RTLD_NEXT, name) };

    return symbol.function;
}
