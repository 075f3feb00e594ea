/* linux_files.c - files, and what those of /proc and /sys say.
 * SPDX-License-Identifier: MIT
 */
#include "linux.h"
#include "os.h"

#include "../base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

enum { INTERRUPTIONS_MAX = 100 };

static long open_file(const char *path, int flags)
{
    return kernel(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, 0644);
}

static int file_or_none(long result) { return failed(result) ? -1 : (int)result; }

/* The number of a standard stream that the program has closed is one that it may still write to. */
static int beyond_streams(int file)
{
    long copy;

    if (file < 0 || file > STDERR_FILENO) return file;
    copy = kernel(SYS_fcntl, file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    os_file_close(file);
    return file_or_none(copy);
}

long linux_open(const char *path) { return open_file(path, O_RDONLY); }
int os_file_create(const char *path)
{
    int links = getauxval(AT_SECURE) != 0 ? O_NOFOLLOW : 0;

    return beyond_streams(file_or_none(open_file(path, O_WRONLY | O_CREAT | O_TRUNC | links)));
}
int os_file_open(const char *path) { return file_or_none(linux_open(path)); }
void os_file_close(int file) { (void)kernel(SYS_close, file); }

/* Signals may come in between, but not for ever. */
static bool is_interrupted(long result, unsigned *interruptions)
{
    return result == -EINTR && ++*interruptions < INTERRUPTIONS_MAX;
}

long linux_write(int file, const void *bytes, size_t count)
{
    const char *at = bytes;
    unsigned interruptions = 0, waits = 0;

    while (count > 0) {
        long written = kernel(SYS_write, file, (long)at, (long)count);

        if (is_interrupted(written, &interruptions)) continue;
        if (written == -EAGAIN && os_reader_wait(&waits)) continue;
        if (failed(written)) return written;
        if (written == 0) return -EIO;
        at += written;
        count -= (size_t)written;
        waits = 0;
        os_reader_reads();
    }
    return 0;
}

bool os_file_write(int file, const void *bytes, size_t count)
{
    return linux_write(file, bytes, count) == 0;
}

size_t os_file_read(int file, void *bytes, size_t wanted)
{
    size_t count = 0;
    unsigned interruptions = 0;

    while (count < wanted) {
        long got = kernel(SYS_read, file, (long)((char *)bytes + count), (long)(wanted - count));

        if (is_interrupted(got, &interruptions)) continue;
        if (failed(got) || got == 0) break;
        count += (size_t)got;
    }
    return count;
}

NOINLINE size_t linux_read_text(int file, char *text, size_t room_bytes)
{
    size_t length = 0;

    if (file >= 0) {
        length = os_file_read(file, text, room_bytes - 1);
        os_file_close(file);
    }
    text[length] = '\0';
    return length;
}

static size_t read_file(const char *path, char *text, size_t room_bytes)
{
    return linux_read_text(os_file_open(path), text, room_bytes);
}

/* What is mapped is told of each thread, and /proc/self is the first one. Once that has ended,
 * while others go on, it has nothing mapped: then the caller's own name serves. */

/* The first numbers of statm: pages mapped, there, and of those shared; 0: cannot be told. */
static void read_statm(size_t *pages, unsigned count)
{
    char text[64];
    const char *at = text;

    (void)read_file("/proc/self/statm", text, sizeof text);
    if (text[0] == '0') (void)read_file("/proc/thread-self/statm", text, sizeof text);
    for (unsigned i = 0; i < count; i++) {
        pages[i] = (size_t)linux_number_at(&at);
        if (*at != '\0') at++;
    }
}

size_t os_address_space_used(void)
{
    size_t pages[1];

    read_statm(pages, 1);
    return pages[0] * os_page_bytes();
}

size_t os_own_bytes(void)
{
    size_t pages[3];

    read_statm(pages, 3);
    return pages[1] > pages[2] ? (pages[1] - pages[2]) * os_page_bytes() : 0;
}

int os_mappings_open(void)
{
    int file = os_file_open("/proc/self/maps");
    char first;

    if (file < 0) return file;
    if (os_file_read(file, &first, 1) == 1 && kernel(SYS_lseek, file, 0, SEEK_SET) == 0)
        return file;
    os_file_close(file);
    return os_file_open("/proc/thread-self/maps");
}

/* One of its first lines is "MemAvailable:    1234 kB". */
size_t os_machine_room_bytes(void)
{
    char text[256];
    const char *at;
    uint64_t room;

    (void)read_file("/proc/meminfo", text, sizeof text);
    at = linux_text_after("\nMemAvailable:", text);
    if (at == NULL) return SIZE_MAX;
    while (*at == ' ') at++;
    room = linux_number_at(&at);
    return room <= SIZE_MAX / KiB ? (size_t)room * KiB : SIZE_MAX;
}

bool os_link_text(const char *path, char *text, size_t room_bytes)
{
    long length = kernel(SYS_readlinkat, AT_FDCWD, (long)path, (long)text, (long)room_bytes - 1);

    if (failed(length)) return false;
    text[length] = '\0';
    return true;
}

/* The file says "always [madvise] never". */
void os_huge_page_mode(char *text, size_t room_bytes)
{
    char line[64];
    const char *word = "not supported";
    size_t length = 0;

    (void)read_file("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line);
    for (char *at = line; *at != '\0'; at++) {
        if (*at == '[') word = at + 1;
        if (*at == ']') *at = '\0';
        if (*at == '\0') break;
    }
    while (word[length] != '\0' && length < room_bytes - 1) {
        text[length] = word[length];
        length++;
    }
    text[length] = '\0';
}
