/* not_linux.c - what only Linux is asked for, above every other kernel: it cannot be had, and
 * nothing happens.
 * SPDX-License-Identifier: MIT
 */
#include "os.h"

#include "../base/units.h"

/* ---- memory ---- */

/* None has a call that moves pages and leaves their place. */
bool os_move(struct os_range from, struct os_range to)
{
    (void)from;
    (void)to;
    return false;
}

struct os_range os_move_out(struct os_range from, size_t bytes)
{
    (void)from;
    (void)bytes;
    return (struct os_range){ NULL, 0 };
}

void os_move_back(struct os_range from, struct os_range to)
{
    (void)from;
    (void)to;
}

/* There are none that a program could ask for later: Windows never takes them away, and wants a
 * right for them that few users have. */
void os_wish_huge_pages(struct os_range range, bool wanted)
{
    (void)range;
    (void)wanted;
}

uint64_t os_first_touch_us(void *page)
{
    (void)page;
    return 0;
}

void os_huge_page_mode(char *text, size_t room_bytes)
{
    static const char words[] = "not supported";

    __builtin_memcpy(text, words, min_size(sizeof words, room_bytes));
    text[room_bytes - 1] = '\0';
}

/* Without guards pages are closed, which is another mapping; so there are no fences. */
bool os_guard(struct os_range range) { return os_close(range); }
bool os_unguard(struct os_range range) { return os_commit(range); }

bool os_fence(struct os_range range)
{
    (void)range;
    return false;
}

bool os_unfence(struct os_range range)
{
    (void)range;
    return false;
}

/* Guarded blocks are not given out. */
bool os_watch_faults(bool (*watcher)(const struct os_fault *fault))
{
    (void)watcher;
    return false;
}

/* ---- groups, and the machine ---- */

/* Windows refuses what is not there; the others are not asked. */
size_t os_machine_room_bytes(void) { return SIZE_MAX; }

unsigned os_core_quota(void) { return 0; } /* rates of Windows' jobs are not looked at */
uint64_t os_stalled_us(void) { return 0; }

/* ---- threads and forks ---- */

/* Rights are the process's. */
bool os_thread_rights_may_part(bool alone)
{
    (void)alone;
    return false;
}

bool os_thread_rights_parted(void) { return false; }

bool os_threads_forget_lost(void) { return false; }

void os_fork_begins(void) {}
void os_fork_ends_in_parent(void) {}
void os_fork_ends_in_child(void) {}
