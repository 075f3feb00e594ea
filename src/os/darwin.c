/* darwin.c - what macOS has of its own: the kernel's other interface, clocks, and the lock's wait.
 *
 * Pages carry a tag of their own, by which vmmap shows them.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"
#include "unix.h"

#include "../base/port.h"

#include <crt_externs.h>
#include <errno.h>
#include <mach/mach.h>
#include <mach/vm_statistics.h>
#include <pthread.h>
#include <sys/sysctl.h>
#include <time.h>

const int unix_map_file = VM_MAKE_TAG(VM_MEMORY_APPLICATION_SPECIFIC_1);
const int unix_map_rights = 0, unix_map_undumped = 0;
char **unix_environment(void) { return *_NSGetEnviron(); }

/* ---- memory ---- */

size_t os_page_bytes(void) { return vm_page_size; }

/* Programs have 47 bits on both kinds of processor. */
uintptr_t os_highest_address(void) { return ((uintptr_t)1 << 47) - 1; }

size_t os_copy_checked(void *to, const void *from, size_t bytes)
{
    vm_size_t copied = 0;

    if (vm_read_overwrite(mach_task_self(), (vm_address_t)from, bytes, (vm_address_t)to, &copied)
        != KERN_SUCCESS)
        return 0;
    return copied;
}

/* The child can be left without the pages, but not with empty ones. */
bool os_keep_from_child(struct os_range range, bool kept)
{
    (void)range;
    return !kept;
}

/* ---- limits and facts ---- */

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

    (void)pthread_cpu_number_np(&number);
    return (unsigned)number;
}

uint64_t port_now_ns(void) { return clock_gettime_nsec_np(CLOCK_UPTIME_RAW); }
uint64_t os_now_ms(void) { return clock_gettime_nsec_np(CLOCK_UPTIME_RAW_APPROX) / 1000000; }
uint64_t os_wall_ns(void) { return clock_gettime_nsec_np(CLOCK_REALTIME); }
/* ---- locks ---- */

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

/* The system has the zone's locks taken around a fork (darwin/zone.c), with its list of zones
 * locked. Handlers, which are called before that, would take them first, and wait for a thread that
 * has the list and waits for them, as malloc_zone_pressure_relief does. */
bool os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
#ifdef PRAIRIE_OWN_NAMES /* no zone */
    return pthread_atfork(before, in_parent, in_child) == 0;
#else
    (void)before, (void)in_parent, (void)in_child;
    return true;
#endif
}
