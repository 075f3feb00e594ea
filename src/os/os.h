/* os.h - what prairie asks of a kernel, in states rather than flags.
 *
 * Address space is reserved (nothing may touch it), committed (reads as zero, may be written),
 * purged (stays committed, contents gone, reads as zero again) and released. posix.c and the files
 * that port.c takes in implement this header, or test/kernel/fake*.c, which count the calls, fail
 * the n-th and move their clock by hand. Nothing here allocates, takes a lock or changes errno, but
 * for what says so: the three of a fork take the platform's locks.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_OS_OS_H
#define PRAIRIE_OS_OS_H

#include "../base/attrs.h"
#include "port_facts.h"

struct os_range {
    char *base;
    size_t bytes;
}; /* base == NULL: the kernel said no */

size_t os_page_bytes(void);
/* One of the highest addresses that the kernel gives to programs without being asked for more. */
uintptr_t os_highest_address(void);

/* Address space at a multiple of align_bytes (a power of two), neither readable nor counted. */
struct os_range os_reserve(size_t bytes, size_t align_bytes);
/* The same, but readable as zeros; never written before it is committed. */
struct os_range os_reserve_readable(size_t bytes);
/* Gives address space back. */
void os_release(struct os_range range);
/* Makes part of a reservation usable. False: no memory, and the range is as before. */
bool os_commit(struct os_range range);
/* Undoes a commit: the contents and the right to use them go back. False: the right is still there,
 * and what is in the pages may be lost. */
bool os_close(struct os_range range);
/* Pages that may be read and no longer written, until they are committed again. False: could not be
 * changed, nothing happened. */
bool os_forbid_writes(struct os_range range);
/* Gives the pages back to the kernel; they read as zero when next touched, after another commit
 * where OS_PURGE_CLOSES. False: the pages are still there; what is in them may be lost. */
bool os_purge(struct os_range range);
/* Pages that end a program which touches them; their contents go back to the kernel. False: not
 * possible; the pages can be used as before, what is in them may be lost. */
bool os_guard(struct os_range range);
/* Pages that os_guard took may be used again, and read as zero. False: no memory, nothing
 * happened. */
bool os_unguard(struct os_range range);
/* Pages that end a program which touches them, without a mapping more: their contents are lost.
 * False: not possible; the pages can be used as before, what is in them may be lost. */
bool os_fence(struct os_range range);
/* They may be used again, and read as zero. False: nothing happened. */
bool os_unfence(struct os_range range);
/* Moves the pages of `from` to `to` (equal bytes, both committed), leaving zeros in `from`.
 * False: not possible, nothing happened. The pages may be of several mappings, and are so
 * afterwards. */
bool os_move(struct os_range from, struct os_range to);
/* Moves the pages of `from`, committed, to a new place of at least as many `bytes`, all committed,
 * leaving zeros in `from`. base == NULL: not possible, nothing happened. */
struct os_range os_move_out(struct os_range from, size_t bytes);
/* Gives the pages back that os_move_out moved; `from` is no address of ours then. */
void os_move_back(struct os_range from, struct os_range to);
/* A mapping of its own, all committed, gets another length, and when it may move another place.
 * base == NULL: not possible, nothing happened. */
struct os_range os_resize(struct os_range range, size_t bytes, bool may_move);
/* Copies up to `bytes` from memory that may not be there. Returns how many it could, from the
 * start; on macOS all or none. */
size_t os_copy_checked(void *to, const void *from, size_t bytes);
/* Makes pages real: they are there when they are next written, whatever the kernel promised before.
 * False: the kernel has not got them; some may be there. The contents stay. */
bool os_touch(struct os_range range);
/* Kept from a fork's child, pages read as zero there, and stay the parent's own instead of being
 * shared until one of them writes. False: could not be changed, nothing happened. */
bool os_keep_from_child(struct os_range range, bool kept);
/* A wish, for huge pages or against them, which the kernel may ignore. */
void os_wish_huge_pages(struct os_range range, bool wanted);
/* Writes a zero to a page that reads as zero. Returns the microseconds that the thread's processor
 * worked on it; 0: less than one, or it cannot be told, and perhaps nothing was written. */
uint64_t os_first_touch_us(void *page);

/* Bytes of address space that the process may still grow to; SIZE_MAX when unlimited. */
size_t os_address_space_limit(void);
/* May the process map so many bytes more? Where that cannot be told by trying: is there no
 * limit? */
bool os_address_space_has_room(size_t bytes);
/* Bytes of address space in use now; 0 when it cannot be told. */
size_t os_address_space_used(void);
/* The tightest of the groups of processes that this one belongs to, whose memory is limited
 * together. */
struct os_group {
    size_t limit_bytes; /* SIZE_MAX: there is no such limit */
    size_t room_bytes;  /* what the group has left, counting what the kernel can drop as left */
    bool failed;        /* no limit was found, but a file that tells of one could not be opened */
};
/* As of now; reads files. One caller at a time. */
struct os_group os_group_memory(void);
/* Bytes of memory that belong to this process alone and are there; 0 when it cannot be told. */
size_t os_own_bytes(void);
/* What the machine has left for all processes without swapping, counting what the kernel can drop
 * as left; SIZE_MAX when it cannot be told, or when memory that is not there is refused. */
size_t os_machine_room_bytes(void);
/* Microseconds that some process (of the group, where that is known) has waited for memory so far;
 * 0 when nobody tells, UINT64_MAX when it cannot be told now. One caller at a time. */
uint64_t os_stalled_us(void);
/* That nobody outside can know; on Windows with a processor that makes no such numbers only of the
 * clocks, the process' number and addresses. */
uint64_t os_random(void);
unsigned os_core_count(void); /* that this process may run on; at least 1 */
/* So many cores' time, rounded up, is what control groups leave to the process; 0: all, or it
 * cannot be told. One caller at a time, as for os_group_memory. */
unsigned os_core_quota(void);
unsigned os_core_current(void); /* any number; the caller reduces it */
uint64_t os_now_ms(void);       /* since some fixed moment; never goes back */
/* NULL when unset, or when the program runs with more rights than its user. */
const char *os_setting(const char *name);

/* The text that a symbolic link leads to, cut at the room there is. False: there is no such
 * link. */
bool os_link_text(const char *path, char *text, size_t room_bytes);
uint32_t os_process_id(void);
uint64_t os_wall_ns(void); /* since 1970 */

/* Files are written by the profiler, and read also to learn what /proc says. -1: it cannot be
 * opened. Where the program runs with more rights than its user, who may have laid it there, a name
 * that is a symbolic link is refused; links among the folders are followed. A file that is created
 * has no number of a standard stream. */
int os_file_create(const char *path);
int os_file_open(const char *path);
bool os_file_write(int file, const void *bytes, size_t count);
/* Fewer than wanted: the file is at its end, or cannot be read further. */
size_t os_file_read(int file, void *bytes, size_t wanted);
void os_file_close(int file);

/* A block that another heap of the process gave, which was there before prairie. Only for pointers
 * that are nobody's of ours. */
bool os_other_free(void *block);          /* false: nobody's, nothing happened */
size_t os_other_bytes(const void *block); /* that can be used; SIZE_MAX: nobody's */

/* The system's own list of what is mapped, as a file to be read; -1: there is none. */
int os_mappings_open(void);

/* A stretch of code in the address space. */
enum { OS_BUILD_ID_MAX = 32 };
struct os_code {
    uintptr_t start, limit, offset;
    const char *path; /* in the caller's room for paths */
    uint8_t build_id[OS_BUILD_ID_MAX];
    uint32_t build_id_bytes;
};
/* All of them, in order of address, at most `most`. Returns how many. */
size_t os_code_read(struct os_code *code, size_t most, char *paths, size_t paths_bytes);

/* An access that the processor refused. */
enum os_access { OS_ACCESS_UNKNOWN, OS_ACCESS_READ, OS_ACCESS_WRITE };
struct os_fault {
    const void *address;
    uintptr_t code;    /* of the access; 0: cannot be told */
    const void *frame; /* the frame pointer then, perhaps; it may lead anywhere */
    enum os_access access;
};
/* Has every such access of the process looked at, in a signal handler, until the program sets a
 * handler of its own. The watcher says whether the access is to be made again; else it goes to the
 * handler that was there before, or ends the process. Once. False: cannot be watched. */
bool os_watch_faults(bool (*watcher)(const struct os_fault *fault));

/* The system's setting for huge pages: always, madvise, never; "not supported" when it has none. */
void os_huge_page_mode(char *text, size_t room_bytes);

/* Starts a thread that takes no signals. Above this floor it may call only what takes no memory.
 * One at a time. False: it could not be started, or the last one has not quite ended. */
bool os_thread_start(void *(*body)(void *));
/* Waits until it has ended, or the time is up. */
void os_thread_wait(uint64_t most_ms);
/* Could the background thread come to have rights that the program has given up? Where each thread
 * has its own, nothing takes them from this one. `alone`: the program has one thread. */
bool os_thread_rights_may_part(bool alone);
/* For its body: does no thread of the program have its rights any more? Also when that cannot be
 * told and the program could have given up some. */
bool os_thread_rights_parted(void);
/* For the child of a fork: the thread is not there. */
void os_threads_forget(void);
/* The same in a process that began as a copy of another one, when nobody told. False: it did not,
 * or that was found out before, or the system cannot tell. */
bool os_threads_forget_lost(void);
/* Of the calling thread, as the system's tools show it; 0: cannot be told. */
uint32_t os_thread_id(void);
/* Another thread of this process that sleeps in the kernel. For the background thread. */
struct os_nap {
    uint32_t thread;
    uintptr_t stack, stack_end; /* the stack pointer, and where its stack ends */
    uint64_t turns;
    long call_file, turns_file;
};
/* Can that be told? Asked before each round; first soon after the background thread began, for
 * files are opened then. */
bool os_naps_are_told(void);
/* Does the thread of that number sleep in a system call, outside of this library's code, on the
 * stack at whose end its `word` lies? The first thread's may lie elsewhere. False: no, or it cannot
 * be told. Either way os_nap_end follows. */
bool os_nap_begin(struct os_nap *nap, uint32_t thread, const void *word);
/* Has it slept without a break since, and does nothing on its stack lead into this library's code
 * or into the range? Then it is in the middle of none of our functions. */
bool os_nap_lasts(const struct os_nap *nap, struct os_range range);
void os_nap_end(struct os_nap *nap);
/* Sleeps until *word != expected, the time is up, or a signal handler has run. */
void os_sleep(const uint32_t *word, uint32_t expected, uint64_t duration_ms);
/* For so long, or until a signal handler has run. */
INLINE void os_pause(uint64_t duration_ms)
{
    const uint32_t nobody_wakes = 0;

    os_sleep(&nobody_wakes, 0, duration_ms);
}
/* Where the kernel does not wait for who reads what is written (O_NONBLOCK on a pipe or a
 * terminal), which is not ours to change, we do, as long as something is read every second. `waits`
 * is how many waits there were since something was; false: no more. */
bool os_reader_wait(unsigned *waits);
/* Something was written. */
void os_reader_reads(void);
/* While functions of the program or of its C library run inside of ours: the thread cannot be
 * cancelled, and what they leave in errno is not seen. Ends where it began. */
struct os_callout {
    int error, cancel;
};
struct os_callout os_callout_begin(void);
void os_callout_end(struct os_callout before);
/* Calls the three around every fork of the process. May allocate: no lock may be held. False: no
 * memory; the next call may try again. */
bool os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));
/* No other thread of the program's is there, nor was one since the process began, or since it was
 * forked off. False also when that cannot be told. */
bool os_has_one_thread(void);
/* The platform's own locks that a fork waits for after the handlers, and whose holders may
 * allocate: they are taken before any lock above this floor, and given after the last. For the
 * three of os_at_fork; a fork inside of a fork takes them once more. In the child they are free,
 * however often they were taken. */
void os_fork_begins(void);
void os_fork_ends_in_parent(void);
void os_fork_ends_in_child(void);
/* The function of that name that the program would have without prairie; NULL: none, or a static
 * program. May allocate: no lock may be held. */
void (*os_next_symbol(const char *name))(void);
/* Messages go to what is the standard error now, even after the program closes it. */
void os_keep_error_output(void);
void os_at_exit(void (*last)(void)); /* may allocate, as os_at_fork */
/* Ends the process here and now. */
void os_exit(int code);

#endif
