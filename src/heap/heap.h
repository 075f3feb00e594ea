/* heap.h - the life of the heap: its start, a thread's first call, forks, and walks of it all.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_HEAP_H
#define PRAIRIE_HEAP_HEAP_H

#include "../cache/thread.h"

#include "../../include/prairie/prairie.h"

/* Prepares the process for its first allocation. False: no memory; the next call tries again. */
bool heap_start(void);
/* The calling thread's front, once it is more than the constant of a thread before its first call.
 * While there is no memory for a cache it is served as after its end, and the next call tries
 * again. NULL: the heap could not start. */
struct front *heap_attach(void);
/* Of the floors above: guards the control tree, the snapshot that it keeps, and what can be set
 * through it. Forks take it with all others. */
extern PRIVATE struct lock control_lock;
/* Does what the options ask for that were read just now. Before main. */
void heap_obey_options(void);

/* The three of a fork, for platforms whose own library calls them: all locks are taken, unless the
 * process has one thread; given back; and made anew in the child. */
void heap_fork_begins(void);
void heap_fork_ends_in_parent(void);
void heap_fork_ends_in_child(void);
/* Is a lock held that a fork takes, by anybody? As of a moment ago. */
bool heap_is_locked(void);

/* In the audit flavour: prairie_check_all now and then. */
void heap_audit(void);

#endif
