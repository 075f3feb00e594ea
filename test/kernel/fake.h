/* fake.h - the controls of the kernel that unit tests run on.
 *
 * fake*.c implements os.h, the port and the thread slot on real anonymous memory, but nothing
 * happens behind a test's back: calls are counted, any of them can be told to fail, the clock
 * stands still until it is moved, the background thread runs when the test runs it, and every page
 * has a state:
 *
 *      reserved  --commit-->  committed  --purge-->  purged        (committed still, with zeros)
 *          <---------close---------+------------------+
 *
 * Where OS_PURGE_CLOSES, a purge is a close.
 *
 * A call that no kernel would survive for long aborts with one line "fake kernel: ...": a commit,
 * purge or move outside a reservation, a close, purge or move of memory that is not committed, a
 * release of part of a reservation, a range that is not whole pages. Touching what is not committed
 * is a real fault.
 *
 * The state belongs to the process and there is no way back: each test runs in a process of its
 * own. Controls may be called from any thread, but only while no other thread is inside prairie.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_TEST_KERNEL_FAKE_H
#define PRAIRIE_TEST_KERNEL_FAKE_H

#include "os/os.h"

enum fake_call {
    /* Those that can fail. */
    FAKE_RESERVE,
    FAKE_RESERVE_READABLE,
    FAKE_COMMIT,
    FAKE_CLOSE,
    FAKE_PURGE,
    FAKE_MOVE,
    FAKE_RESIZE,
    FAKE_TOUCH,
    FAKE_KEEP_FROM_CHILD,
    FAKE_THREAD_START,
    FAKE_END_HOOK,
    FAKE_FORK_HOOK,
    /* Those that cannot. */
    FAKE_RELEASE,
    FAKE_HUGE_WANT,
    FAKE_HUGE_REFUSE,
    FAKE_FIRST_TOUCH,
    FAKE_SLEEP,
    FAKE_WAIT,
    FAKE_WAKE,
    FAKE_WRITE,
    FAKE_READ_GROUP,
    FAKE_CLOCK, /* the port's, which locks are timed by */
    FAKE_CALL_COUNT
};

enum { FAKE_FAILING_COUNT = FAKE_RELEASE };

/* ---- what prairie finds; set before its first call unless it says otherwise ---- */

void fake_page_bytes(size_t bytes);           /* 4 KiB (the default), 16 or 64 KiB */
void fake_highest_address(uintptr_t address); /* the first caller's stack */
void fake_cores(unsigned count);              /* 2 */
void fake_core_current(unsigned core);        /* 0; at any time */
/* At any time. SIZE_MAX (the default): unlimited. `other_bytes` are in use by the rest of the
 * program. */
void fake_address_space(size_t limit_bytes, size_t other_bytes);
/* Where the next reservation begins, if nothing is there. At any time. */
void fake_next_place(void *base);
/* The largest reservation that works, and all that can be committed. At any time. */
void fake_reserve_bytes_max(size_t bytes);
void fake_commit_bytes_max(size_t bytes);
void fake_setting(const char *name, const char *value); /* the one setting there is */
/* At any time. SIZE_MAX (the default): the group has no limit. */
void fake_group(size_t limit_bytes, size_t used_bytes);
void fake_group_fails(bool failing);              /* its files cannot be opened */
void fake_ids(uint32_t process, uint32_t thread); /* of the process, and of each thread of it */
void fake_machine_room(size_t bytes);             /* SIZE_MAX, the default: nobody tells */
void fake_core_quota(unsigned cores);
unsigned fake_core_quota_asked(void); /* so often */
/* At any time. SIZE_MAX (the default): all that prairie may have touched is there. */
void fake_own(size_t bytes);
void fake_first_touch_us(uint64_t us); /* how long each takes from now on: 0 */
void fake_stall(uint64_t more_us);     /* somebody waited that long for memory; at any time */

/* ---- failing ---- */

/* The n-th call from now that can fail fails, once; 1 is the next, 0 none. */
void fake_fail_nth(uint64_t n);
/* The same, with the calls after it: `count` in a row, which are too many for a second try to
 * hide. */
void fake_fail_row(uint64_t n, uint64_t count);
/* Every call of a kind, or every call that can fail, fails until it is switched off. */
void fake_fail_kind(enum fake_call kind, bool failing);
void fake_fail_all(bool failing);
uint64_t fake_failures(void); /* calls refused so far, for whatever reason */

/* ---- counts ---- */

uint64_t fake_calls(enum fake_call kind);
uint64_t fake_calls_that_can_fail(void);
/* Called at the start of every call that is counted, by the caller's thread; it may only look. */
void fake_on_call(void (*hook)(enum fake_call kind));
/* Called at the end of every commit and at the start of every close and purge of pages, by the
 * caller's thread; it may do anything, a fork of another thread included. */
void fake_beside_call(void (*hook)(enum fake_call kind));

/* ---- memory ---- */

enum fake_purge { FAKE_PURGE_ZEROES, FAKE_PURGE_SCRIBBLES };
enum { FAKE_SCRIBBLE = 0xA5 };

/* A kernel that scribbles where zeros belong proves that a test looks at the bytes. */
void fake_purge_does(enum fake_purge what);
/* The program locks this: no range is purged that has a part of it. Up to eight; at any time. */
void fake_lock_memory(const void *base, size_t bytes);
/* Does the kernel build fences? Not by default. At any time. */
void fake_fences(bool allowed);
size_t fake_reserved_bytes(void);
size_t fake_committed_bytes(void);
uint64_t fake_purged_bytes(void); /* all successful purges together */
uint64_t fake_moved_bytes(void);
uint64_t fake_touched_bytes(void);
const void *fake_first_touched(void);                   /* the last page so touched; NULL: none */
bool fake_is_committed(const void *base, size_t bytes); /* all of it */

/* A block that another heap gave, once; NULL: none. */
void fake_other_block(void *block, size_t bytes);
unsigned fake_other_frees(void); /* how often such a one was given back to it */

/* The mappings with code, in order; they and their paths stay the test's. None by default. At any
 * time. */
void fake_code(const struct os_code *code, size_t count);

/* All that can be read of the stack of who did wrong; nothing by default. It stays the test's. */
void fake_stack(const void *base, size_t bytes);

/* Faults can be watched from now on. Else none can, and there are no guarded blocks. */
void fake_watch_faults(void);
bool fake_faults_are_watched(void);
/* An access to the address is refused. What the watcher says; it is there. */
bool fake_fault(const void *address);
/* The same from that instruction, with that frame. */
bool fake_fault_from(uintptr_t code, const void *frame, const void *address);

/* ---- time and the background thread ---- */

void fake_clock_ms(uint64_t forward_ms);
/* Does the thread that is looked at sleep: now, or since then? NULL: none ever does. Returns how
 * many were looked at since the last call. */
unsigned fake_naps(bool (*sleeps)(bool since));
/* May threads be started (the default), to wait until fake_thread_run? */
void fake_thread_allow(bool allowed);
bool fake_thread_waits(void);
/* This process is a copy, and nobody told: what was started is not there. */
void fake_copy(void);
/* Runs the body that was started last, to its end, on this thread. False: there is none. */
bool fake_thread_run(void);
/* The program can give up rights, and has done so from the n-th os_sleep on; 0: it cannot. */
void fake_rights_part(uint64_t sleep);
/* os_sleep moves the clock by its full length, then calls this, which may do what other threads
 * would. */
void fake_on_sleep(void (*hook)(void));

/* ---- the ends of things ---- */

/* Forks with the handlers around it; other forks go without. Returns as fork() does. */
int fake_fork(void);
/* What os_has_one_thread answers; at first that there may be others. */
void fake_one_thread(bool alone);
/* How many forks have begun and not ended. */
unsigned fake_forks_begun(void);
void fake_exit_handlers_run(void);
/* Runs the thread-end hook of this thread now, as the end of the thread would. */
void fake_thread_end(void);

/* There are no files, unless there is room for one: what is written to any goes there, until it is
 * full. */
void fake_file(void *room, size_t bytes);
size_t fake_file_bytes(void); /* written so far */
/* Nothing can be opened to be read, but for this text, which every name opens: as the file of that
 * number. */
void fake_file_to_read(int file, const char *text);

/* ---- messages ---- */

/* What went to the standard error so far; it goes there too. */
const char *fake_error_text(void);
void fake_error_clear(void);

#endif
