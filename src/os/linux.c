/* linux.c - prairie's wishes as Linux system calls.
 *
 * Memory calls are made directly, not through the C library: a program may interpose mmap or getenv
 * with functions that allocate. What remains of the C library here: getauxval, sched_getcpu,
 * pthread_atfork, atexit, dlsym, its lock of the list of files, and abort. What may allocate or
 * take a lock is called with no lock of ours held.
 * SPDX-License-Identifier: MIT
 */
#include "aligned.h"
#include "linux.h"
#include "os.h"
#include "thread_slot.h"

#include "../base/fatal.h"
#include "../base/constants.h"
#include "../base/port.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* ---- time ---- */

/* 32 bits of seconds last until 2106. */
static uint64_t clock_ns(int clock)
{
    struct kernel_span now = { 0, 0 };

    (void)kernel(SYS_clock_gettime, clock, (long)&now);
    return (uint64_t)(unsigned long)now.seconds * 1000000000 + (uint64_t)now.nanoseconds;
}

uint64_t os_now_ms(void) { return clock_ns(CLOCK_MONOTONIC_COARSE) / 1000000; }

uint64_t os_wall_ns(void) { return clock_ns(CLOCK_REALTIME); }

/* ---- memory ---- */

size_t os_page_bytes(void)
{
    static size_t page_bytes SEALED;
    size_t bytes = RELAXED_LOAD(page_bytes);

    if (bytes == 0) {
        bytes = getauxval(AT_PAGESZ);
        if (bytes == 0) bytes = 4096;
        RELAXED_STORE(page_bytes, bytes);
    }
    return bytes;
}

/* The kernel puts the program's name above the first thread's stack, at the top; the stack of a
 * call may be any memory of the program. With 32 bits the top may be anywhere, and the rest is
 * worth having: an emulator puts the stack into the middle. */
uintptr_t os_highest_address(void)
{
    unsigned long name = getauxval(AT_EXECFN), random = getauxval(AT_RANDOM);

    if (sizeof(uintptr_t) == 4) return UINTPTR_MAX;
    return name != 0 ? name : random != 0 ? random : (uintptr_t)__builtin_frame_address(0);
}

static struct os_range map_pages(size_t bytes, int protection)
{
    long at = kernel_map(NULL, bytes, protection, 0);

    if (failed(at)) return (struct os_range){ NULL, 0 };
    return (struct os_range){ (char *)at, bytes };
}

/* A kernel that cannot, as one that has no memory for the rest of a mapping, loses us the address
 * space, and not the pages. */
static void unmap_pages(char *base, size_t bytes)
{
    if (bytes != 0 && failed(kernel(SYS_munmap, (long)base, (long)bytes)))
        (void)os_purge((struct os_range){ base, bytes });
}

/* A debugger that writes a core file takes every readable byte of a reservation, and all of a
 * closed one, for contents: a terabyte. */
static void leave_out_of_dumps(struct os_range range)
{
    (void)kernel(SYS_madvise, (long)range.base, (long)range.bytes, MADV_DONTDUMP);
}

static struct os_range map_closed(size_t bytes)
{
    struct os_range range = map_pages(bytes, PROT_NONE);

    if (range.base != NULL) leave_out_of_dumps(range);
    return range;
}

struct os_range os_reserve(size_t bytes, size_t align_bytes)
{
    return reserve_aligned(map_closed, bytes, align_bytes);
}

struct os_range os_reserve_readable(size_t bytes)
{
    struct os_range range = map_pages(bytes, PROT_READ);

    if (range.base != NULL) leave_out_of_dumps(range);
    return range;
}

void os_release(struct os_range range) { unmap_pages(range.base, range.bytes); }

bool os_commit(struct os_range range)
{
    if (failed(kernel(SYS_mprotect, (long)range.base, (long)range.bytes, PROT_READ | PROT_WRITE)))
        return false;
    (void)kernel(SYS_madvise, (long)range.base, (long)range.bytes, MADV_DODUMP);
    return true;
}

/* A new closed mapping over the old one: mprotect would leave the pages counted. */
bool os_close(struct os_range range)
{
    if (failed(kernel_map(range.base, range.bytes, PROT_NONE, MAP_FIXED))) return false;
    leave_out_of_dumps(range);
    return true;
}

bool os_forbid_writes(struct os_range range)
{
    return !failed(kernel(SYS_mprotect, (long)range.base, (long)range.bytes, PROT_READ));
}

bool linux_advise(struct os_range range, int advice)
{
    for (unsigned attempt = 0; attempt < 3; attempt++) {
        long result = kernel(SYS_madvise, (long)range.base, (long)range.bytes, advice);
        if (!failed(result)) return true;
        if (result != -EAGAIN) return false;
    }
    return false;
}

bool os_purge(struct os_range range) { return linux_advise(range, MADV_DONTNEED); }

/* Fresh pages, whether something is mapped there or nothing any more. */
static bool map_anew(struct os_range range)
{
    return !failed(kernel_map(range.base, range.bytes, PROT_READ | PROT_WRITE, MAP_FIXED));
}

/* To where something is mapped. A move that fails may have taken that away already: then it is
 * mapped anew, and the bytes are copied. */
static void move_over(char *from, struct os_range to)
{
    for (unsigned attempt = 0; attempt < 3; attempt++) {
        if (!failed(kernel(SYS_mremap, (long)from, (long)to.bytes, (long)to.bytes,
                           MREMAP_MAYMOVE | MREMAP_FIXED, (long)to.base)))
            return;
        if (!map_anew(to)) continue;
        __builtin_memcpy(to.base, from, to.bytes);
        unmap_pages(from, to.bytes);
        return;
    }
    fatal_address("the kernel took memory away and has none in its place", to.base);
}

/* To a place of the kernel's choice, where failing changes nothing and success leaves one mapping.
 * NULL: no. qemu's user emulation (7.2 to 10) takes what was left for unmapped, and the program's
 * next access for wrong; mapped anew it is known. */
static char *move_anywhere(struct os_range from, long *error)
{
    long to = kernel(SYS_mremap, (long)from.base, (long)from.bytes, (long)from.bytes,
                     MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
    char first;

    *error = to;
    if (failed(to)) return NULL;
    if (os_copy_checked(&first, from.base, 1) == 0) (void)map_anew(from);
    return (char *)to;
}

/* The kernel moves one mapping at a time: what it finds to be several is moved by halves. */
static bool move_halves(struct os_range from, struct os_range to)
{
    size_t half = round_up(from.bytes / 2, os_page_bytes());
    struct os_range rest = { from.base + half, from.bytes - half };

    if (rest.bytes == 0 || rest.bytes == from.bytes
        || !os_move((struct os_range){ from.base, half }, (struct os_range){ to.base, half }))
        return false;
    if (!os_move(rest, (struct os_range){ to.base + half, rest.bytes })) {
        __builtin_memcpy(to.base + half, rest.base, rest.bytes);
        if (!os_purge(rest)) __builtin_memset(rest.base, 0, rest.bytes);
    }
    return true;
}

/* In two steps, of which only the second can leave something half done, and it moves one mapping
 * whole. */
bool os_move(struct os_range from, struct os_range to)
{
    long error;
    char *between = move_anywhere(from, &error);

    if (between == NULL) return error == -EFAULT && move_halves(from, to);
    move_over(between, to);
    return true;
}

struct os_range os_resize(struct os_range range, size_t bytes, bool may_move)
{
    long at = kernel(SYS_mremap, (long)range.base, (long)range.bytes, (long)bytes,
                     may_move ? MREMAP_MAYMOVE : 0);

    if (failed(at)) return (struct os_range){ NULL, 0 };
    return (struct os_range){ (char *)at, bytes };
}

struct os_range os_move_out(struct os_range from, size_t bytes)
{
    long error;
    struct os_range moved = { move_anywhere(from, &error), from.bytes }, grown;

    if (moved.base == NULL) return moved;
    grown = os_resize(moved, bytes, true);
    if (grown.base == NULL) move_over(moved.base, from);
    return grown;
}

void os_move_back(struct os_range from, struct os_range to) { move_over(from.base, to); }

/* The kernel copies, or says that it cannot. Where asking it so is forbidden, it is asked to read a
 * signal mask there, page by page: without success, because the operation does not exist, but it
 * reads first. */
size_t os_copy_checked(void *to, const void *from, size_t bytes)
{
    struct iovec here = { to, bytes }, there = { (void *)(uintptr_t)from, bytes };
    long got = kernel(SYS_process_vm_readv, kernel(SYS_getpid), (long)&here, 1, (long)&there, 1, 0);
    uintptr_t at = (uintptr_t)from, end = at + bytes;

    if (!failed(got)) return (size_t)got;
    if (got == -EFAULT) return 0;
    while (at < end) {
        uintptr_t next = round_down(at, os_page_bytes()) + os_page_bytes();

        if (kernel(SYS_rt_sigprocmask, -1, (long)(next - 8), 0, 8) != -EINVAL) break;
        at = next < end ? next : end;
    }
    __builtin_memcpy(to, from, at - (uintptr_t)from);
    return at - (uintptr_t)from;
}

/* Kernels before 5.14 cannot populate; writing what is there already does it page by page, and a
 * kernel that has not got the page ends the process then. */
bool os_touch(struct os_range range)
{
    long result = kernel(SYS_madvise, (long)range.base, (long)range.bytes, MADV_POPULATE_WRITE);

    if (result != -EINVAL) return !failed(result);
    for (size_t at = 0; at < range.bytes; at += os_page_bytes())
        (void)__atomic_fetch_or((uint32_t *)(range.base + at), 0, __ATOMIC_RELAXED);
    return true;
}

/* A kernel that cannot keep pages from children (before 4.14) need not take that back either. */
bool os_keep_from_child(struct os_range range, bool kept)
{
    int advice = kept ? MADV_WIPEONFORK : MADV_KEEPONFORK;
    long result = kernel(SYS_madvise, (long)range.base, (long)range.bytes, advice);

    return !failed(result) || (!kept && result == -EINVAL);
}

void os_wish_huge_pages(struct os_range range, bool wanted)
{
    (void)linux_advise(range, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

uint64_t os_first_touch_us(void *page)
{
    uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID), after;

    *(volatile char *)page = 0;
    after = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return after < before ? 0 : (after - before) / 1000;
}

/* ---- limits and facts ---- */

size_t os_address_space_limit(void)
{
    struct {
        uint64_t now, most;
    } limit = { 0, 0 };

    if (failed(kernel(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&limit))) return SIZE_MAX;
    return limit.now > SIZE_MAX ? SIZE_MAX : (size_t)limit.now; /* without one: all bits set */
}

/* By mapping them: sandboxes that let a program allocate allow that, and may end it for asking for
 * its limits. */
bool os_address_space_has_room(size_t bytes)
{
    struct os_range range = map_pages(bytes, PROT_NONE);

    if (range.base != NULL) unmap_pages(range.base, range.bytes);
    return range.base != NULL;
}

/* Early in a boot the kernel has none; what the loader was given serves then. */
uint64_t os_random(void)
{
    const uint64_t *given = (const uint64_t *)getauxval(AT_RANDOM);
    uint64_t number = 0;
    const long nonblocking = 1;

    if (!failed(kernel(SYS_getrandom, (long)&number, sizeof number, nonblocking)) && number != 0)
        return number;
    if (given != NULL) __builtin_memcpy(&number, given + 1, sizeof number);
    return number ^ (os_now_ms() << 32) ^ (uintptr_t)&number;
}

uint32_t os_process_id(void) { return (uint32_t)kernel(SYS_getpid); }

unsigned os_core_count(void)
{
    unsigned long mask[16384 / (8 * sizeof(unsigned long))] = { 0 };
    long bytes = kernel(SYS_sched_getaffinity, 0, sizeof mask, (long)mask);
    unsigned count = 0;

    if (failed(bytes)) return 1;
    /* Not by the compiler's function for it, which lies in a page of code that nothing else is
     * called in. */
    for (size_t i = 0; i < (size_t)bytes / sizeof mask[0]; i++)
        for (unsigned long left = mask[i]; left != 0; left &= left - 1) count++;
    return count == 0 ? 1 : count;
}

/* The C library answers from the thread's registered restartable-sequence area or the vdso. */
unsigned os_core_current(void)
{
    int saved_errno = errno;
    int core = sched_getcpu();

    errno = saved_errno;
    return core < 0 ? 0 : (unsigned)core;
}

const char *os_setting(const char *name)
{
    if (getauxval(AT_SECURE) != 0 || environ == NULL) return NULL;
    for (char **entry = environ; *entry != NULL; entry++) {
        const char *at = *entry;
        const char *wanted = name;

        while (*wanted != '\0' && *at == *wanted) at++, wanted++;
        if (*wanted == '\0' && *at == '=') return at + 1;
    }
    return NULL;
}

/* ---- locks and the end ---- */

void port_wait(const uint32_t *word, uint32_t expected)
{
    (void)kernel(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, expected, 0);
}

void port_wake(uint32_t *word, int count)
{
    (void)kernel(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, count);
}

uintptr_t port_thread_mark(void) { return (uintptr_t)&thread_slot; }

uint64_t port_now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

void port_abort(void) { abort(); }

void os_sleep(const uint32_t *word, uint32_t expected, uint64_t duration_ms)
{
    struct kernel_span span = kernel_span_of(duration_ms);

    (void)kernel(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, expected, (long)&span);
}

/* ---- forks ---- */

bool os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    return pthread_atfork(before, in_parent, in_child) == 0;
}

/* fork takes the C library's lock of the list of files after all handlers. Who holds it
 * (fflush(NULL), exit) may wait for the lock of one file, and who holds that one (getline) for a
 * block. The three are exported for programs that fork by other means, recursive by thread, and
 * missing in C libraries other than GNU's.
 *
 * In the child, fork has made the lock anew before the handlers when the process had threads, and
 * has left it alone when it had none: giving it would be once too often in the one case, and making
 * it anew is right in both. */
extern void _IO_list_lock(void);
extern void _IO_list_unlock(void);
extern void _IO_list_resetlock(void);
#pragma weak _IO_list_lock
#pragma weak _IO_list_unlock
#pragma weak _IO_list_resetlock

void os_fork_begins(void)
{
    if (_IO_list_lock != NULL) _IO_list_lock();
}

void os_fork_ends_in_parent(void)
{
    if (_IO_list_unlock != NULL) _IO_list_unlock();
}

void os_fork_ends_in_child(void)
{
    if (_IO_list_resetlock != NULL) _IO_list_resetlock();
}

#pragma weak dlsym

void (*os_next_symbol(const char *name))(void)
{
    union {
        void *object;
        void (*function)(void);
    } symbol = { NULL };

    if (dlsym != NULL) symbol.object = dlsym(RTLD_NEXT, name);
    return symbol.function;
}

void os_at_exit(void (*last)(void)) { (void)atexit(last); }
void os_exit(int code) { _exit(code); }
