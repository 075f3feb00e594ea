/* notify.c - the list of listeners, and telling them one after the other.
 * SPDX-License-Identifier: MIT
 */
#include "notify.h"

#include "../base/port.h"
#include "../os/os.h"
#include "../space/meta.h"

struct listener {
    struct listener *next; /* under lock */
    reserve_cb_t *call;    /* constant */
    void *context;         /* constant */
    uint64_t number;       /* constant; N1 */
};

/* A call that is running, on the stack of the thread that makes it. */
struct calling {
    struct calling *next;
    uintptr_t thread; /* its mark */
    uint64_t listener;
    reserve_cnd_t condition;
};

struct lock notify_lock = { .state = LOCK_FREE, .rank = LOCK_NOTIFY };
static struct {
    struct listener *first;  /* under lock; atomic for those who only ask whether there is one */
    uint64_t newest;         /* under lock; N1 */
    uint64_t started_at;     /* under lock: the number the last event started at */
    struct calling *calling; /* under lock */
    uint32_t ended;   /* under lock; atomic, what notify_remove sleeps on: calls that ended */
    uint32_t waiting; /* under lock: who sleeps */
} notify;

struct notify_stats notify_stats;

bool notify_has_listeners(void) { return RELAXED_LOAD(notify.first) != NULL; }

/* ---- listeners ---- */

bool notify_add(reserve_cb_t *call, void *context)
{
    struct listener *listener = meta_take(sizeof *listener), **link = &notify.first;

    if (listener == NULL) return false;
    lock_take(&notify_lock);
    *listener = (struct listener){ NULL, call, context, ++notify.newest };
    while (*link != NULL) link = &(*link)->next;
    RELAXED_STORE(*link, listener);
    lock_give(&notify_lock);
    return true;
}

/* The place where the youngest such pair hangs; NULL: none. */
static struct listener **find_pair(reserve_cb_t *call, void *context)
{
    struct listener **found = NULL;

    for (struct listener **link = &notify.first; *link != NULL; link = &(*link)->next)
        if ((*link)->call == call && (*link)->context == context) found = link;
    return found;
}

/* Does a call run of this listener, in this thread? 0: of any, in any. */
static bool is_calling(uint64_t number, uintptr_t thread)
{
    for (const struct calling *calling = notify.calling; calling != NULL; calling = calling->next)
        if ((thread == 0 || calling->thread == thread)
            && (number == 0 || calling->listener == number))
            return true;
    return false;
}

bool notify_runs_here(void)
{
    bool here;

    if (RELAXED_LOAD(notify.calling) == NULL) return false;
    lock_take(&notify_lock);
    here = is_calling(0, port_thread_mark());
    lock_give(&notify_lock);
    return here;
}

/* Whoever waits for others in a callback could wait for somebody who waits for him. */
bool notify_remove(reserve_cb_t *call, void *context)
{
    struct listener **link, *listener = NULL;

    lock_take(&notify_lock);
    link = find_pair(call, context);
    if (link != NULL) {
        uint64_t number = (*link)->number;

        listener = *link;
        RELAXED_STORE(*link, listener->next);
        while (!is_calling(0, port_thread_mark()) && is_calling(number, 0)) {
            uint32_t ended = notify.ended;
            notify.waiting++;
            lock_give(&notify_lock);
            port_wait(&notify.ended, ended);
            lock_take(&notify_lock);
            notify.waiting--;
        }
    }
    lock_give(&notify_lock);
    if (listener != NULL) meta_give(listener, sizeof *listener);
    return listener != NULL;
}

/* ---- events ---- */

/* The listener with the least number above `number`; NULL: none. */
static const struct listener *listener_after(uint64_t number)
{
    const struct listener *listener = notify.first;

    while (listener != NULL && listener->number <= number) listener = listener->next;
    return listener;
}

/* Only an end interrupts a shortage, and nothing interrupts an end. */
static bool may_begin(reserve_cnd_t condition)
{
    for (const struct calling *calling = notify.calling; calling != NULL; calling = calling->next) {
        if (calling->thread != port_thread_mark()) continue;
        if (condition != RESERVE_CND_FAIL || calling->condition == RESERVE_CND_FAIL) return false;
    }
    return true;
}

bool event_begin(struct event *event, reserve_cnd_t condition, size_t size)
{
    const struct listener *start = NULL;

    if (!notify_has_listeners()) return false;
    lock_take(&notify_lock);
    if (may_begin(condition)) {
        start = listener_after(notify.started_at);
        if (start == NULL) start = notify.first;
    }
    if (start != NULL) {
        notify.started_at = start->number;
        *event = (struct event){ .condition = condition,
                                 .size = size,
                                 .first = start->number,
                                 .last = start->number - 1,
                                 .newest = notify.newest };
        notify_stats.events[condition]++;
    }
    lock_give(&notify_lock);
    return start != NULL;
}

/* NULL: all have been called. One that runs in this thread already is passed over: it could meet
 * itself. */
static const struct listener *next_listener(struct event *event)
{
    for (;;) {
        const struct listener *listener = listener_after(event->last);

        if (listener != NULL && listener->number > event->newest) listener = NULL;
        if (listener == NULL && !event->wrapped) {
            event->wrapped = true;
            event->last = 0;
            continue;
        }
        if (listener == NULL || (event->wrapped && listener->number >= event->first)) return NULL;
        event->last = listener->number;
        if (!is_calling(listener->number, port_thread_mark())) return listener;
    }
}

bool event_next(struct event *event)
{
    struct calling calling = { .thread = port_thread_mark(), .condition = event->condition };
    struct calling **link = &notify.calling;
    const struct listener *listener;
    reserve_cb_t *call = NULL;
    void *context = NULL;
    struct os_callout before;

    lock_take(&notify_lock);
    listener = next_listener(event);
    if (listener != NULL) {
        call = listener->call;
        context = listener->context;
        calling.listener = listener->number;
        calling.next = notify.calling;
        RELAXED_STORE(notify.calling, &calling);
        notify_stats.calls++;
    }
    lock_give(&notify_lock);
    if (call == NULL) return false;

    before = os_callout_begin();
    call(context, event->condition, event->size);
    os_callout_end(before);

    lock_take(&notify_lock);
    while (*link != &calling) link = &(*link)->next;
    RELAXED_STORE(*link, calling.next);
    (void)__atomic_add_fetch(&notify.ended, 1, __ATOMIC_RELAXED);
    if (notify.waiting != 0) port_wake(&notify.ended, INT32_MAX);
    lock_give(&notify_lock);
    return true;
}

void notify_all(reserve_cnd_t condition, size_t size)
{
    struct event event;

    if (event_begin(&event, condition, size))
        while (event_next(&event)) {}
}

/* ---- fork and walks ---- */

void notify_forget_others(void)
{
    struct calling **link = &notify.calling;

    notify.waiting = 0;
    while (*link != NULL) {
        if ((*link)->thread == port_thread_mark()) link = &(*link)->next;
        else *link = (*link)->next;
    }
}

void notify_check(void)
{
    uint64_t number = 0;

    for (const struct listener *listener = notify.first; listener != NULL;
         listener = listener->next) {
        require(listener->number > number && listener->number <= notify.newest); /* N1 */
        number = listener->number;
    }
}
