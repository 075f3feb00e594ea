/* linux_group.c - what control groups leave to the process of memory and of processor time, and how
 * long it waits for memory.
 *
 * Of both versions of control groups: the process's own group and all groups above it are read,
 * because each may have a limit. Files are opened, read and closed each time, so that no descriptor
 * of ours is in a program's way. What the kernel can drop at once, the inactive part of the file
 * cache, counts as room. The file name lives in static memory, so one caller at a time.
 * SPDX-License-Identifier: MIT
 */
#include "linux.h"
#include "os.h"

#include "../base/units.h"

#include <errno.h>

/* A line of /proc/self/cgroup has some 200 bytes in a container, and version 1 a dozen of them. */
enum { GROUP_NAME_BYTES = 512, GROUP_TEXT_BYTES = 8192 };

/* Where the kernel shows what we read; a test has its own tree. */
static const char *group_tree = "/sys/fs/cgroup";
static const char *group_of_process = "/proc/self/cgroup";
static const char *group_of_thread = "/proc/thread-self/cgroup";
static const char *pressure_of_machine = "/proc/pressure/memory";

static struct {
    char name[GROUP_NAME_BYTES]; /* of the group's folder; a text while a file of it is read */
    size_t tree_bytes;           /* of the part of the name that all groups share */
    size_t name_bytes;
    bool second; /* version 2 */
    bool failed; /* since the folder was looked for, a file could not be opened */
    char text[GROUP_TEXT_BYTES];
} group_reader SPARSE;

/* -1: there is none, or it cannot be opened. */
static NOINLINE int open_text(const char *path)
{
    long file = linux_open(path);

    if (!failed(file)) return (int)file;
    group_reader.failed |= file != -ENOENT && file != -ENOTDIR;
    return -1;
}

/* False: there is no such file, or nothing in it. */
static bool read_text(const char *path)
{
    return linux_read_text(open_text(path), group_reader.text, GROUP_TEXT_BYTES) > 0;
}

static NOINLINE bool can_open(const char *path)
{
    int file = open_text(path);

    if (file >= 0) os_file_close(file);
    return file >= 0;
}

/* Adds to the folder's name; false: it would not fit. */
static bool extend_name(const char *part, size_t bytes)
{
    if (group_reader.name_bytes + bytes >= GROUP_NAME_BYTES) return false;
    __builtin_memcpy(group_reader.name + group_reader.name_bytes, part, bytes);
    group_reader.name_bytes += bytes;
    group_reader.name[group_reader.name_bytes] = '\0';
    return true;
}

static NOINLINE bool visit_in_folder(const char *file, bool (*what)(const char *path))
{
    size_t folder_bytes = group_reader.name_bytes;
    bool done =
        extend_name("/", 1) && extend_name(file, __builtin_strlen(file)) && what(group_reader.name);

    group_reader.name_bytes = folder_bytes;
    return done;
}

/* Reads a file of the folder into text. */
static bool read_in_folder(const char *file) { return visit_in_folder(file, read_text); }

static const char *find_label(const char *label)
{
    return linux_text_after(label, group_reader.text);
}

/* The number after `label` in text; UINT64_MAX: there is none, or it is the word "max". */
static uint64_t number_after(const char *label)
{
    const char *at = find_label(label);

    if (at == NULL || *at < '0' || *at > '9') return UINT64_MAX;
    return linux_number_at(&at);
}

/* The same of bytes; more than an address can say are SIZE_MAX. */
static size_t bytes_after(const char *label)
{
    uint64_t number = number_after(label);

    return number == (size_t)number ? (size_t)number : SIZE_MAX;
}

static NOINLINE size_t bytes_in(const char *file)
{
    return read_in_folder(file) ? bytes_after("") : SIZE_MAX;
}

/* The part of a line of /proc/self/cgroup after `label`, up to its end. */
static const char *path_after(const char *label, size_t *bytes)
{
    const char *at = find_label(label);

    if (at == NULL) return NULL;
    for (*bytes = 0; at[*bytes] != '\0' && at[*bytes] != '\n';) ++*bytes;
    while (*bytes > 0 && at[*bytes - 1] == '/') --*bytes;
    return at;
}

enum controller { MEMORY, PROCESSOR };

/* Of a group of version 1. NULL: the controller is one of version 2, or of none. */
INLINE const char *path_of(enum controller controller, size_t *bytes)
{
    const char *path;

    if (controller == MEMORY) return path_after(":memory:", bytes);
    path = path_after(":cpu,cpuacct:", bytes);
    if (path == NULL) path = path_after(":cpuacct,cpu:", bytes);
    return path != NULL ? path : path_after(":cpu:", bytes);
}

static bool extend_by_controller(enum controller controller)
{
    return controller == MEMORY ? extend_name("/memory", 7) : extend_name("/cpu", 4);
}

/* Of the process's group, or NULL, as path_of. Once its first thread has ended, version 1 tells the
 * highest group of it, whatever the others are in. */
static const char *path_of_process(enum controller controller, size_t *bytes)
{
    const char *path = path_of(controller, bytes);

    if (path == NULL || *bytes != 0 || !read_text(group_of_thread)) return path;
    return path_of(controller, bytes);
}

/* Finds the folder of the process's own group. In a container that sees only its own groups the
 * path may not be there; its part of the tree is then the tree. */
static bool find_folder(enum controller controller)
{
    const char *path;
    size_t bytes = 0;

    group_reader.failed = false;
    group_reader.name_bytes = 0;
    if (!read_text(group_of_process)) return false;
    path = path_of_process(controller, &bytes);
    group_reader.second = path == NULL;
    if (path == NULL) path = path_after("0::", &bytes);
    if (path == NULL || !extend_name(group_tree, __builtin_strlen(group_tree))) return false;
    if (!group_reader.second && !extend_by_controller(controller)) return false;
    group_reader.tree_bytes = group_reader.name_bytes;
    if (!extend_name(path, bytes)) return false;
    /* Of a group of threads it cannot be read. */
    if (!visit_in_folder("cgroup.procs", can_open))
        group_reader.name_bytes = group_reader.tree_bytes;
    return true;
}

/* To the folder of the group above. False: this is the highest. */
static bool go_up(void)
{
    if (group_reader.name_bytes <= group_reader.tree_bytes) return false;
    do group_reader.name_bytes--;
    while (group_reader.name[group_reader.name_bytes] != '/');
    return true;
}

/* The limit of the folder's group; the first version says "none" with a number near the end of all
 * that 64 bits can say. */
static size_t limit_of_folder(void)
{
    size_t most;

    if (group_reader.second) return min_size(bytes_in("memory.max"), bytes_in("memory.high"));
    most = bytes_in("memory.limit_in_bytes");
    return sizeof most > 4 && most >= SIZE_MAX / 4 ? SIZE_MAX : most;
}

/* 0: nobody tells. SIZE_MAX: it cannot be told now. */
static size_t used_of_folder(void)
{
    size_t used = bytes_in(group_reader.second ? "memory.current" : "memory.usage_in_bytes");
    size_t droppable = SIZE_MAX;

    if (read_in_folder("memory.stat"))
        droppable =
            bytes_after(group_reader.second ? "\ninactive_file " : "\ntotal_inactive_file ");
    if (group_reader.failed && (used == SIZE_MAX || droppable == SIZE_MAX)) return SIZE_MAX;
    if (used == SIZE_MAX) return 0;
    return droppable == SIZE_MAX ? used : used - min_size(used, droppable);
}

/* One without a limit, where some file could not be opened. */
static struct os_group or_failed(struct os_group group)
{
    group.failed = group.limit_bytes == SIZE_MAX && group_reader.failed;
    return group;
}

struct os_group os_group_memory(void)
{
    struct os_group tightest = { SIZE_MAX, SIZE_MAX, false };

    if (!find_folder(MEMORY)) {
        group_reader.failed |= group_reader.text[0] == '\0'; /* /proc is gone, as after a chroot */
        return or_failed(tightest);
    }
    do {
        size_t limit = limit_of_folder(), used = limit != SIZE_MAX ? used_of_folder() : SIZE_MAX;

        if (used == SIZE_MAX && limit != SIZE_MAX) /* an outer one may leave more */
            return or_failed((struct os_group){ SIZE_MAX, SIZE_MAX, false });
        if (used != SIZE_MAX) {
            size_t room = limit - min_size(limit, used);
            if (room < tightest.room_bytes) tightest = (struct os_group){ limit, room, false };
        }
    } while (go_up());
    return or_failed(tightest);
}

/* Microseconds of processor time, and the period that they are for; "max" or -1: no limit. 0: none
 * is known. */
static unsigned cores_of_folder(void)
{
    uint64_t quota = UINT64_MAX, period = UINT64_MAX;

    if (read_in_folder(group_reader.second ? "cpu.max" : "cpu.cfs_quota_us")) {
        quota = number_after("");
        if (group_reader.second) period = number_after(" ");
        else if (read_in_folder("cpu.cfs_period_us")) period = number_after("");
    }
    if (quota == UINT64_MAX || period == UINT64_MAX || quota == 0 || period == 0) return 0;
    return quota / period < UINT16_MAX ? (unsigned)((quota - 1) / period) + 1 : 0;
}

unsigned os_core_quota(void)
{
    unsigned least = 0;

    if (!find_folder(PROCESSOR)) return 0;
    do {
        unsigned cores = cores_of_folder();

        if (cores != 0 && (least == 0 || cores < least)) least = cores;
    } while (go_up());
    return least;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS" is the first line. */
uint64_t os_stalled_us(void)
{
    bool is_told = find_folder(MEMORY) && group_reader.second && read_in_folder("memory.pressure");
    uint64_t total;

    if (!is_told && !group_reader.failed) is_told = read_text(pressure_of_machine);
    if (group_reader.failed) return UINT64_MAX;
    if (!is_told) return 0;
    total = number_after("total=");
    return total == UINT64_MAX ? 0 : total;
}
