/* windows.c - prairie's wishes as calls of Windows.
 *
 * Windows charges memory when it is committed, not when it is touched. So a region is reserved
 * once, which costs nothing since Windows 8.1; what is leased is committed, and what is purged is
 * decommitted: it must be committed again before it is used (OS_PURGE_CLOSES).
 *
 * wine keeps a byte in memory for each page that is reserved, 256 MiB for a TiB. So long
 * reservations are refused there, and the space is laid out in shorter ones.
 * SPDX-License-Identifier: MIT
 */
#include "windows.h"

#include "../base/constants.h"
#include "../base/port.h"
#include "os.h"

#include <errno.h>
#include <psapi.h>

/* ---- memory ---- */

static const SYSTEM_INFO *system_info(void)
{
    static SYSTEM_INFO info;

    /* Two threads may write it at once, and write the same; the length of a page comes last. */
    if (__atomic_load_n(&info.dwPageSize, __ATOMIC_ACQUIRE) == 0) {
        SYSTEM_INFO fresh;

        GetSystemInfo(&fresh);
        info.dwAllocationGranularity = fresh.dwAllocationGranularity;
        info.lpMaximumApplicationAddress = fresh.lpMaximumApplicationAddress;
        __atomic_store_n(&info.dwPageSize, fresh.dwPageSize, __ATOMIC_RELEASE);
    }
    return &info;
}

size_t os_page_bytes(void) { return system_info()->dwPageSize; }

uintptr_t os_highest_address(void) { return (uintptr_t)system_info()->lpMaximumApplicationAddress; }

static char *reserve_at(char *wanted, size_t bytes)
{
    const size_t wine_bytes_max = 64 * GiB;
    char *base;

    if (bytes > wine_bytes_max && windows_is_wine()) return NULL;

    KEEP_LAST_ERROR(base = VirtualAlloc(wanted, bytes, MEM_RESERVE, PAGE_NOACCESS));
    return base;
}

static void release_all(char *base) { KEEP_LAST_ERROR((void)VirtualFree(base, 0, MEM_RELEASE)); }

/* A reservation can only be given back whole. So one that is too long says where an aligned one
 * would fit, and that one is asked for; somebody else may have been faster, and then the next may
 * be. */
struct os_range os_reserve(size_t bytes, size_t align_bytes)
{
    enum { ATTEMPTS = 16 };
    char *base;

    if (bytes + align_bytes < bytes) return (struct os_range){ NULL, 0 };
    base = reserve_at(NULL, bytes);
    for (unsigned attempt = 0; base != NULL && attempt < ATTEMPTS; attempt++) {
        char *wanted;

        if (is_aligned((uintptr_t)base, align_bytes)) return (struct os_range){ base, bytes };
        release_all(base);
        base = reserve_at(NULL, bytes + align_bytes);
        if (base == NULL) break;
        wanted = (char *)round_up((uintptr_t)base, align_bytes);
        release_all(base);
        base = reserve_at(wanted, bytes);
        if (base == NULL) base = reserve_at(NULL, bytes);
    }
    if (base != NULL) release_all(base);
    return (struct os_range){ NULL, 0 };
}

struct os_range os_reserve_readable(size_t bytes)
{
    struct os_range range = os_reserve(bytes, os_page_bytes());

    if (range.base == NULL || windows_map_add(range.base, range.bytes)) return range;
    os_release(range);
    return (struct os_range){ NULL, 0 };
}

/* The whole of a reservation goes; of a part only the memory does, and the address space goes with
 * the rest. */
void os_release(struct os_range range)
{
    MEMORY_BASIC_INFORMATION info = { 0 };
    DWORD last_error = GetLastError();

    if (range.bytes == 0) return;
    if (VirtualQuery(range.base, &info, sizeof info) != 0 && info.AllocationBase == range.base) {
        windows_map_remove(range.base);
        (void)VirtualFree(range.base, 0, MEM_RELEASE);
    } else {
        (void)VirtualFree(range.base, range.bytes, MEM_DECOMMIT);
    }
    SetLastError(last_error);
}

/* What is committed already stays as it is. */
bool os_commit(struct os_range range)
{
    void *at;

    KEEP_LAST_ERROR(at = VirtualAlloc(range.base, range.bytes, MEM_COMMIT, PAGE_READWRITE));
    return at != NULL;
}

/* Nothing is sealed here (space/sealed.h). */
bool os_forbid_writes(struct os_range range)
{
    (void)range;
    return false;
}

bool os_close(struct os_range range)
{
    BOOL closed;

    KEEP_LAST_ERROR(closed = VirtualFree(range.base, range.bytes, MEM_DECOMMIT));
    return closed;
}

bool os_purge(struct os_range range) { return os_close(range); }

/* A reservation cannot be made longer. */
struct os_range os_resize(struct os_range range, size_t bytes, bool may_move)
{
    (void)range, (void)bytes, (void)may_move;
    return (struct os_range){ NULL, 0 };
}

/* How many bytes from there on lie in pages that can be read, as of a moment ago. */
static size_t readable_bytes(const char *from, size_t bytes)
{
    const char *at = from, *end = from + bytes;
    MEMORY_BASIC_INFORMATION info;

    while (at < end && VirtualQuery(at, &info, sizeof info) != 0 && info.State == MEM_COMMIT
           && (info.Protect & (PAGE_NOACCESS | PAGE_GUARD)) == 0)
        at = (const char *)info.BaseAddress + info.RegionSize;
    return at < end ? (size_t)(at - from) : bytes;
}

/* The kernel copies, or stops; but wine's copies zeros of pages that are reserved. */
size_t os_copy_checked(void *to, const void *from, size_t bytes)
{
    DWORD last_error = GetLastError();
    size_t copied = 0;

    (void)ReadProcessMemory(GetCurrentProcess(), from, to, readable_bytes(from, bytes), &copied);
    SetLastError(last_error);
    return copied;
}

/* What is committed is promised for good. */
bool os_touch(struct os_range range)
{
    (void)range;
    return true;
}

/* There is no fork. */
bool os_keep_from_child(struct os_range range, bool kept)
{
    (void)range, (void)kept;
    return true;
}

/* ---- limits and facts ---- */

size_t os_address_space_limit(void) { return SIZE_MAX; }
size_t os_address_space_used(void) { return 0; }
bool os_address_space_has_room(size_t bytes)
{
    (void)bytes;
    return true;
}

size_t os_own_bytes(void)
{
    PROCESS_MEMORY_COUNTERS counters = { .cb = sizeof counters };
    BOOL told;

    KEEP_LAST_ERROR(told =
                        K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters));
    return told ? counters.PagefileUsage : 0;
}

static void narrow(struct os_group *tightest, size_t limit_bytes, size_t room_bytes)
{
    if (room_bytes < tightest->room_bytes)
        *tightest = (struct os_group){ limit_bytes, room_bytes, false };
}

/* What all processes of the job have committed. Not told before Windows 10: then this one alone. */
static size_t job_used(void)
{
    struct {
        uint64_t now, peak;
    } usage = { 0, 0 };
    enum { JOB_MEMORY_USAGE = 28 };

    if (QueryInformationJobObject(NULL, (JOBOBJECTINFOCLASS)JOB_MEMORY_USAGE, &usage, sizeof usage,
                                  NULL))
        return usage.now;
    return os_own_bytes();
}

/* Limits of the job, and the system's of all that is committed. */
struct os_group os_group_memory(void)
{
    struct os_group tightest = { SIZE_MAX, SIZE_MAX, false };
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION job = { 0 };
    MEMORYSTATUSEX memory = { .dwLength = sizeof memory };
    DWORD last_error = GetLastError();

    if (QueryInformationJobObject(NULL, JobObjectExtendedLimitInformation, &job, sizeof job,
                                  NULL)) {
        DWORD flags = job.BasicLimitInformation.LimitFlags;

        if (flags & JOB_OBJECT_LIMIT_PROCESS_MEMORY)
            narrow(&tightest, job.ProcessMemoryLimit,
                   job.ProcessMemoryLimit - min_size(job.ProcessMemoryLimit, os_own_bytes()));
        if (flags & JOB_OBJECT_LIMIT_JOB_MEMORY)
            narrow(&tightest, job.JobMemoryLimit,
                   job.JobMemoryLimit - min_size(job.JobMemoryLimit, job_used()));
    }
    if (GlobalMemoryStatusEx(&memory))
        narrow(&tightest, memory.ullTotalPageFile, memory.ullAvailPageFile);
    SetLastError(last_error);
    return tightest;
}

unsigned os_core_count(void)
{
    DWORD_PTR mine = 0, all = 0;
    DWORD last_error = GetLastError();
    unsigned count = 0;

    /* A mask tells of one group of up to 64; a process that may run in several has none. */
    if (GetActiveProcessorGroupCount() > 1) count = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    else if (GetProcessAffinityMask(GetCurrentProcess(), &mine, &all))
        for (; mine != 0; mine &= mine - 1) count++;
    SetLastError(last_error);
    return count == 0 ? 1 : count;
}

unsigned os_core_current(void)
{
    PROCESSOR_NUMBER number;

    GetCurrentProcessorNumberEx(&number);
    return number.Group * 64u + number.Number;
}

uint64_t os_now_ms(void) { return GetTickCount64(); }

uint64_t os_wall_ns(void)
{
    const uint64_t from_1601_to_1970 = 11644473600u;
    FILETIME now;

    GetSystemTimeAsFileTime(&now);
    return (((uint64_t)now.dwHighDateTime << 32 | now.dwLowDateTime) - from_1601_to_1970 * 10000000)
         * 100;
}

uint32_t os_process_id(void) { return GetCurrentProcessId(); }

/* Values are copied out of the environment block, which moves when somebody changes it. Read before
 * main, by one thread; what does not fit is not set. */
const char *os_setting(const char *name)
{
    static char texts[16 * 1024] SPARSE;
    static size_t used;
    char *text = texts + used;
    DWORD length;

    KEEP_LAST_ERROR(length = GetEnvironmentVariableA(name, text, (DWORD)(sizeof texts - used)));
    if (length == 0 || length >= sizeof texts - used) return NULL;
    used += length + 1;
    return text;
}

bool os_link_text(const char *path, char *text, size_t room_bytes)
{
    (void)path, (void)text, (void)room_bytes;
    return false;
}

/* ---- files ---- */

/* All handles fit into 32 bits (the rule for processes of both widths that share them). */
static HANDLE kernel_file(int file) { return (HANDLE)(intptr_t)file; }

static int open_file(const char *path, DWORD access, DWORD how)
{
    HANDLE file;

    KEEP_LAST_ERROR(file = CreateFileA(path, access, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, how,
                                       FILE_ATTRIBUTE_NORMAL, NULL));
    return file == INVALID_HANDLE_VALUE ? -1 : (int)(intptr_t)file;
}

int os_file_create(const char *path) { return open_file(path, GENERIC_WRITE, CREATE_ALWAYS); }
int os_file_open(const char *path) { return open_file(path, GENERIC_READ, OPEN_EXISTING); }
int os_mappings_open(void) { return -1; }
void os_file_close(int file) { KEEP_LAST_ERROR((void)CloseHandle(kernel_file(file))); }

bool os_file_write(int file, const void *bytes, size_t count)
{
    const char *at = bytes;

    while (count > 0) {
        DWORD written = 0;
        BOOL done;

        KEEP_LAST_ERROR(done = WriteFile(kernel_file(file), at, (DWORD)min_size(count, 1 * GiB),
                                         &written, NULL));
        if (!done || written == 0) return false;
        at += written;
        count -= written;
    }
    return true;
}

size_t os_file_read(int file, void *bytes, size_t wanted)
{
    size_t count = 0;

    while (count < wanted) {
        DWORD got = 0;
        BOOL done;

        KEEP_LAST_ERROR(done = ReadFile(kernel_file(file), (char *)bytes + count,
                                        (DWORD)min_size(wanted - count, 1 * GiB), &got, NULL));
        if (!done || got == 0) break;
        count += got;
    }
    return count;
}

/* ---- messages and the end ---- */

static HANDLE kept_error;

void os_keep_error_output(void)
{
    HANDLE error = GetStdHandle(STD_ERROR_HANDLE), copy = NULL;
    BOOL done;

    /* Where there is none it may be called invalid, and that is also a name of the process. */
    if (kept_error != NULL || error == INVALID_HANDLE_VALUE) return;
    KEEP_LAST_ERROR(done = DuplicateHandle(GetCurrentProcess(), error, GetCurrentProcess(), &copy,
                                           0, FALSE, DUPLICATE_SAME_ACCESS));
    if (done) kept_error = copy;
}

void port_write_error(const char *text, size_t length_bytes)
{
    HANDLE file = kept_error != NULL ? kept_error : GetStdHandle(STD_ERROR_HANDLE);
    DWORD written;

    KEEP_LAST_ERROR((void)WriteFile(file, text, (DWORD)length_bytes, &written, NULL));
}

/* What abort of the C library ends in: the debugger or the error report see this very place, and
 * the exit code is STATUS_STACK_BUFFER_OVERRUN, which stands for all of these. */
void port_abort(void)
{
    enum { FATAL_APP_EXIT = 7 };

    __asm__ volatile("int $0x29" : : "c"(FATAL_APP_EXIT));
    (void)TerminateProcess(GetCurrentProcess(), 0xC0000409);
    __builtin_unreachable();
}

void os_exit(int code) { (void)TerminateProcess(GetCurrentProcess(), (UINT)code); }

/* Nobody is cancelled here. */
struct os_callout os_callout_begin(void) { return (struct os_callout){ errno, 0 }; }
void os_callout_end(struct os_callout before) { errno = before.error; }

/* ---- what there is none of here ---- */

bool os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    (void)before, (void)in_parent, (void)in_child;
    return true;
}

void os_threads_forget(void) {}
bool os_has_one_thread(void) { return false; }

void (*os_next_symbol(const char *name))(void)
{
    (void)name;
    return NULL;
}
