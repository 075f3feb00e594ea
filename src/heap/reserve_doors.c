/* reserve_doors.c - the doors that never return NULL, and those to the reserve, its callbacks and
 * the limits.
 *
 * They are defined under their names of 2008; include/prairie/reserve.h gives them prairie_ in the
 * library.
 * SPDX-License-Identifier: MIT
 */
#include "../base/options.h"
#include "../policy/limits.h"
#include "../policy/reserve.h"
#include "../arenas/decay.h"
#include "doors.h"
#include "heap.h"
#include "notify.h"
#include "shortage.h"

#include <errno.h>

/* ---- never NULL ---- */

/* A call of malloc, calloc, realloc or memalign. */
struct errand {
    void *block;  /* to resize; NULL: a new one */
    size_t align; /* 0: none of its own */
    size_t size;
    bool zero;
};

static void *run_errand(struct errand errand)
{
    if (errand.block != NULL) return prairie_realloc(errand.block, errand.size);
    if (errand.align != 0) return prairie_memalign(errand.align, errand.size);
    return errand.zero ? prairie_calloc(1, errand.size) : prairie_malloc(errand.size);
}

NORETURN static COLD void fail(size_t size)
{
    notify_all(RESERVE_CND_FAIL, size);
    fatal("out of memory in xmalloc, xcalloc, xrealloc or xmemalign");
}

/* With reserve_malloc the door has told CRIT already. */
static COLD void *insist(struct errand errand)
{
    struct event event;
    void *block = NULL;

    if (!option_is_set(OPTION_RESERVE_MALLOC) && event_begin(&event, RESERVE_CND_CRIT, errand.size))
        while (block == NULL && event_next(&event)) {
            shortage_gather();
            block = run_errand(errand);
        }
    if (block == NULL) fail(errand.size);
    return block;
}

static void *never_null(struct errand errand)
{
    int saved_errno = errno;
    void *block;

    if (errand.size == 0) errand.size = 1;
    block = run_errand(errand);
    if (unlikely(block == NULL)) block = insist(errand);
    errno = saved_errno;
    return block;
}

PUBLIC void *xmalloc(size_t size) { return never_null((struct errand){ .size = size }); }

PUBLIC void *xcalloc(size_t count, size_t size)
{
    size_t bytes;

    if (unlikely(__builtin_mul_overflow(count, size, &bytes)))
        fatal("xcalloc: count times size overflows");
    return never_null((struct errand){ .size = bytes, .zero = true });
}

PUBLIC void *xrealloc(void *block, size_t size)
{
    return never_null((struct errand){ .block = block, .size = size });
}

/* No callback could help with an alignment that no power of two is as large as. */
PUBLIC void *xmemalign(size_t align, size_t size)
{
    if (unlikely(align > (SIZE_MAX >> 1) + 1)) fatal("xmemalign: no alignment is as large as that");
    return never_null((struct errand){ .align = align, .size = size });
}

/* ---- callbacks ---- */

/* Another thread may take the room that was made. */
enum { ROOMS_MAX = 8 };

static bool add_listener(reserve_cb_t *cb, void *ctx)
{
    for (unsigned i = 0; !notify_add(cb, ctx); i++)
        if (i == ROOMS_MAX || !shortage_make_room()) return false;
    return true;
}

/* After a listener was added. */
static void begin_listening(void)
{
    limits_set_looks_for_stalls(true);
    decay_keep_looking();
}

PUBLIC bool reserve_cb_register(reserve_cb_t *cb, void *ctx)
{
    if (cb == NULL || heap_attach() == NULL || !add_listener(cb, ctx)) return true;
    shortage_reserve_default();
    begin_listening();
    return false;
}

PUBLIC bool reserve_cb_unregister(reserve_cb_t *cb, void *ctx)
{
    bool listens;

    if (!notify_remove(cb, ctx)) return true;
    if (!notify_has_listeners()) {
        limits_set_looks_for_stalls(false);
        decay_keep_no_longer();
        /* One that another thread adds is seen here, or its beginning comes after this end. */
        lock_take(&notify_lock);
        listens = notify_has_listeners();
        lock_give(&notify_lock);
        if (listens) begin_listening();
    }
    return false;
}

/* ---- the reserve and the limits ---- */

PUBLIC size_t reserve_cur_get(void) { return RELAXED_LOAD(reserve.pages) << space.page_shift; }

PUBLIC size_t reserve_min_get(void)
{
    return RELAXED_LOAD(reserve.wanted_pages) << space.page_shift;
}

PUBLIC size_t reserve_max_get(void) { return reserve_min_get(); }

PUBLIC bool reserve_min_set(size_t min) { return heap_attach() == NULL || !shortage_reserve(min); }

static size_t zero_if_none(size_t bytes) { return bytes == SIZE_MAX ? 0 : bytes; }

PUBLIC size_t limit_soft_get(void) { return zero_if_none(limits_soft()); }
PUBLIC size_t limit_hard_get(void) { return zero_if_none(limits_hard()); }

PUBLIC void limit_soft_set(size_t bytes)
{
    limits_set_soft(bytes);
    if (heap_attach() != NULL) shortage_set_look();
}

PUBLIC void limit_hard_set(size_t bytes)
{
    if (heap_attach() != NULL) shortage_gather();
    limits_set_hard(bytes);
}
