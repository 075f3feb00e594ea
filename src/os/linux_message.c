/* linux_message.c - where messages go: to the standard error, or to the copy of it that was kept.
 *
 * A program that closes all descriptors that are not its own closes the copy, too, and may get its
 * number for a file of its own. So the file is known by more than its number.
 * SPDX-License-Identifier: MIT
 */
#include "linux.h"
#include "os.h"

#include "../base/port.h"

#include <fcntl.h>
#include <linux/stat.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/* Where the copy is kept: where no program looks; with less room, where few do. */
enum { COPY_FROM = 200, COPY_FROM_LOW = 10 };

struct file_id {
    uint32_t device_major, device_minor;
    uint64_t inode; /* 0: it cannot be told, and is taken for any */
};

static struct {
    int number; /* STDERR_FILENO: there is no copy */
    struct file_id id;
} error_copy SEALED = { STDERR_FILENO, { 0, 0, 0 } };

/* Kernels before 4.11 know no such call. False: there is no such file. */
static bool read_file_id(long file, struct file_id *id)
{
    struct statx facts;
    long result = kernel(SYS_statx, file, (long)"", AT_EMPTY_PATH, STATX_INO, (long)&facts);

    *id = (struct file_id){ 0, 0, 0 };
    if (!failed(result))
        *id = (struct file_id){ facts.stx_dev_major, facts.stx_dev_minor, facts.stx_ino };
    return result != -EBADF;
}

static bool is_file(long file, struct file_id wanted)
{
    struct file_id id;

    if (wanted.inode == 0) return true;
    if (!read_file_id(file, &id)) return false;
    return id.inode == 0
        || (id.inode == wanted.inode && id.device_minor == wanted.device_minor
            && id.device_major == wanted.device_major);
}

void os_keep_error_output(void)
{
    long copy;

    if (error_copy.number != STDERR_FILENO) return;
    copy = kernel(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, COPY_FROM);
    if (failed(copy)) copy = kernel(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, COPY_FROM_LOW);
    if (failed(copy)) return;
    error_copy.number = (int)copy;
    (void)read_file_id(copy, &error_copy.id);
}

/* ---- for a caller whose descriptors are its own ---- */

/* By its name in the table of the thread that has this name in a folder. */
static long open_by_name(long folder, const char *thread, int number)
{
    static const char files[] = "/fd/";
    size_t thread_bytes = __builtin_strlen(thread);
    char name[64];

    __builtin_memcpy(name, thread, thread_bytes);
    __builtin_memcpy(name + thread_bytes, files, sizeof files);
    *linux_write_number(name + thread_bytes + sizeof files - 1, (unsigned long)number) = '\0';
    return kernel(SYS_openat, folder, (long)name, O_WRONLY | O_APPEND | O_CLOEXEC);
}

/* As the kernel lists the names in a folder. */
struct folder_entry {
    uint64_t inode, next;
    uint16_t bytes; /* to the next entry */
    uint8_t type;
    char name[];
};

/* In the table of any thread but the caller, in whose own it is not. */
static long open_of_any_thread(int number)
{
    const uint64_t own = (uint64_t)kernel(SYS_gettid);
    long folder =
        kernel(SYS_openat, AT_FDCWD, (long)"/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t entries[128];
    long file = -EBADF, got;

    if (failed(folder)) return folder;
    while (failed(file)
           && (got = kernel(SYS_getdents64, folder, (long)entries, sizeof entries)) > 0)
        for (long at = 0; at < got && failed(file);) {
            const struct folder_entry *entry = (const void *)((const char *)entries + at);
            const char *name = entry->name;
            uint64_t thread = linux_number_at(&name);

            if (thread != 0 && thread != own) file = open_by_name(folder, entry->name, number);
            at += entry->bytes;
        }
    os_file_close((int)folder);
    return file;
}

/* The program's file of that number, in the first thread's table, or, where asking for that is
 * forbidden, by its name, which sockets have not. A first thread that has ended has no table any
 * more, and all others have the same. */
static long open_programs(int number)
{
    long process = kernel(SYS_pidfd_open, kernel(SYS_getpid), 0);
    long file = failed(process) ? process : kernel(SYS_pidfd_getfd, process, number, 0);

    if (!failed(process)) os_file_close((int)process);
    if (failed(file)) file = open_by_name(AT_FDCWD, "/proc/self", number);
    return failed(file) ? open_of_any_thread(number) : file;
}

/* ---- writing ---- */

/* False: that number leads to another file, or nowhere. */
static bool write_to(int number, struct file_id id, const char *text, size_t length_bytes)
{
    bool is_own = linux_has_own_files(), is_there;
    long file = is_own ? open_programs(number) : number;

    if (failed(file)) return false;
    is_there = is_file(file, id);
    if (is_there) is_there = linux_write((int)file, text, length_bytes) != -EBADF;
    if (is_own) os_file_close((int)file);
    return is_there;
}

void port_write_error(const char *text, size_t length_bytes)
{
    static const struct file_id any = { 0, 0, 0 };

    if (error_copy.number == STDERR_FILENO
        || !write_to(error_copy.number, error_copy.id, text, length_bytes))
        (void)write_to(STDERR_FILENO, any, text, length_bytes);
}
