/* notify.h - who is called when memory runs short, and the order of calls.
 *
 * Owns the listeners, in the order of their numbers, which only grow. An event remembers numbers
 * and no listener, so that a listener may go at any moment:
 *
 *      listeners   3   5   6   9        an event that starts at 6 calls 6 9 3 5 and no later one
 *                          ^ the next event starts at 9
 *
 * N1  numbers grow along the list, and none is above `newest`
 * Every listener that is there from the begin of an event to its end is called once, by the thread
 * that met the condition, without a lock.
 * SPDX-License-Identifier: MIT
 */
#ifndef PRAIRIE_HEAP_NOTIFY_H
#define PRAIRIE_HEAP_NOTIFY_H

#include "../base/lock.h"

#include "../../include/prairie/reserve.h"

enum { CONDITION_COUNT = RESERVE_CND_FAIL + 1 };

struct notify_stats {
    uint64_t events[CONDITION_COUNT]; /* under the lock: that somebody was there to hear of */
    uint64_t calls;                   /* under the lock: of callbacks */
};

extern PRIVATE struct notify_stats notify_stats;

struct event {
    reserve_cnd_t condition;
    size_t size;
    uint64_t first;  /* the number it starts at */
    uint64_t last;   /* the number that was called last */
    uint64_t newest; /* numbers above it came later */
    bool wrapped;
};

/* False: no memory. */
bool notify_add(reserve_cb_t *call, void *context);
/* False: there is no such pair. */
bool notify_remove(reserve_cb_t *call, void *context);
bool notify_has_listeners(void);

/* Is this thread in a callback? */
bool notify_runs_here(void);
/* False: nobody listens, or this thread is in a callback and may not begin such an event. */
bool event_begin(struct event *event, reserve_cnd_t condition, size_t size);
/* Calls the next one. False: all have been called. */
bool event_next(struct event *event);
/* Begins the event and calls all. */
void notify_all(reserve_cnd_t condition, size_t size);

extern PRIVATE struct lock notify_lock;
void notify_check(void); /* under the lock */
/* In the child of a fork: other threads' calls are not there. */
void notify_forget_others(void);

#endif
