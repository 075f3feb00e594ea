/* bsd.c - what FreeBSD and NetBSD have in common beyond unix.c.
 * SPDX-License-Identifier: MIT
 */
#include "bsd.h"
#include "os.h"
#include "unix.h"

#include "../base/port.h"
#include "../base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const int unix_map_file = -1;

extern char **environ;
char **unix_environment(void) { return environ; }

/* ---- memory ---- */

size_t os_page_bytes(void) { return (size_t)getpagesize(); }

/* No kernel here gives a program more than 48 bits. */
uintptr_t os_highest_address(void) { return ((uintptr_t)1 << 48) - 1; }

/* The pages of a mapping go with it. */
void unix_discard(struct os_range range) { (void)range; }
void unix_keep(struct os_range range) { (void)range; }

/* The kernel copies into a pipe, or says that it cannot. */
static size_t copy_piece(const int pipe_ends[2], char *to, const char *from, size_t bytes)
{
    ssize_t there = write(pipe_ends[1], from, bytes);

    return there > 0 && read(pipe_ends[0], to, (size_t)there) == there ? (size_t)there : 0;
}

size_t os_copy_checked(void *to, const void *from, size_t bytes)
{
    enum { PIECE_BYTES = 512 }; /* no pipe holds less at once */
    struct os_callout before = os_callout_begin();
    int pipe_ends[2];
    size_t done = 0, piece;

    if (pipe2(pipe_ends, O_CLOEXEC) == 0) {
        do {
            piece = copy_piece(pipe_ends, (char *)to + done, (const char *)from + done,
                               min_size(bytes - done, PIECE_BYTES));
            done += piece;
        } while (piece != 0 && done < bytes);
        (void)close(pipe_ends[0]);
        (void)close(pipe_ends[1]);
    }
    os_callout_end(before);
    return done;
}

bool os_keep_from_child(struct os_range range, bool kept)
{
    int saved_errno = errno;
    bool done = minherit(range.base, range.bytes, kept ? bsd_inherit_zero : bsd_inherit_copy) == 0;

    errno = saved_errno;
    return done;
}

/* ---- limits and facts ---- */

size_t os_address_space_used(void) { return 0; }
size_t os_own_bytes(void) { return 0; }

unsigned os_core_count(void)
{
    unsigned allowed = bsd_allowed_cores();
    long count = allowed != 0 ? (long)allowed : sysconf(_SC_NPROCESSORS_ONLN);

    return count > 0 ? (unsigned)count : 1;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now = { 0, 0 };

    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t port_now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
uint64_t os_now_ms(void) { return clock_ns(CLOCK_MONOTONIC) / 1000000; }
uint64_t os_wall_ns(void) { return clock_ns(CLOCK_REALTIME); }

struct listing {
    struct os_code *code;
    size_t most, count;
    char *paths;
    size_t paths_bytes;
};

/* The part of a loaded object that is code. */
static int list_object(struct dl_phdr_info *object, size_t bytes, void *context)
{
    struct listing *listing = context;
    size_t length = object->dlpi_name != NULL ? strlen(object->dlpi_name) + 1 : 0;
    struct os_code code = { .path = "" };

    (void)bytes;
    for (unsigned i = 0; i < object->dlpi_phnum && listing->count < listing->most; i++) {
        if (object->dlpi_phdr[i].p_type != PT_LOAD || !(object->dlpi_phdr[i].p_flags & PF_X))
            continue;
        if (length > 1 && length <= listing->paths_bytes) {
            code.path = memcpy(listing->paths, object->dlpi_name, length);
            listing->paths += length;
            listing->paths_bytes -= length;
        }
        code.start = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        code.limit = code.start + object->dlpi_phdr[i].p_memsz;
        code.offset = object->dlpi_phdr[i].p_offset;
        listing->code[listing->count++] = code;
        break;
    }
    return listing->count == listing->most;
}

size_t os_code_read(struct os_code *code, size_t most, char *paths, size_t paths_bytes)
{
    struct listing listing = { code, most, 0, paths, paths_bytes };

    (void)dl_iterate_phdr(list_object, &listing);
    for (size_t i = 1; i < listing.count; i++) unix_sort_last_in(code, i);
    return listing.count;
}

/* ---- threads ---- */

void port_wait(const uint32_t *word, uint32_t expected) { bsd_wait_on(word, expected, NULL); }

void os_sleep(const uint32_t *word, uint32_t expected, uint64_t duration_ms)
{
    struct timespec span = { .tv_sec = (time_t)(duration_ms / 1000),
                             .tv_nsec = (long)(duration_ms % 1000) * 1000000 };

    bsd_wait_on(word, expected, &span);
}

/* The C library makes a thread with blocks of malloc's, perhaps while its own locks are held, so
 * there is no background thread: memory goes back at once. */
bool os_thread_start(void *(*body)(void *))
{
    (void)body;
    return false;
}

void os_thread_wait(uint64_t most_ms) { (void)most_ms; }
void os_threads_forget(void) {}
uint32_t os_thread_id(void) { return 0; }
bool os_has_one_thread(void) { return false; }

uintptr_t port_thread_mark(void) { return (uintptr_t)pthread_self(); }

bool os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    return pthread_atfork(before, in_parent, in_child) == 0;
}
