/* fake_memory.c - the fake kernel's memory: each call is looked at, and refused on demand.
 * SPDX-License-Identifier: MIT
 */
#include "fake_inside.h"

#include "fake_model.h"

static struct {
    uint64_t purged_bytes, moved_bytes, touched_bytes, first_touch_us;
    const void *first_touched;
    enum fake_purge purge_does;
} memory;

size_t os_page_bytes(void) { return model.page_bytes; }

static struct os_range map_reservation(enum fake_call kind, size_t bytes, size_t align_bytes,
                                       int protection)
{
    struct os_range range = { NULL, 0 };

    enter();
    if (admit(kind)) {
        range = model_reserve(bytes, align_bytes, protection);
        if (range.base == NULL) (void)refuse();
    }
    leave();
    return range;
}

struct os_range os_reserve(size_t bytes, size_t align_bytes)
{
    return map_reservation(FAKE_RESERVE, bytes, align_bytes, PROT_NONE);
}

struct os_range os_reserve_readable(size_t bytes)
{
    return map_reservation(FAKE_RESERVE_READABLE, bytes, model.page_bytes, PROT_READ);
}

void os_release(struct os_range range)
{
    enter();
    count_call(FAKE_RELEASE);
    model_release(range);
    leave();
}

bool os_commit(struct os_range range)
{
    bool done;

    enter();
    done = admit(FAKE_COMMIT) && (model_commit(range) || refuse());
    leave();
    pass_beside(FAKE_COMMIT);
    return done;
}

bool os_close(struct os_range range)
{
    bool done;

    pass_beside(FAKE_CLOSE);
    enter();
    (void)committed_states(range, "a close outside every reservation",
                           "a close of memory that is not committed");
    done = admit(FAKE_CLOSE);
    if (done) model_close(range);
    leave();
    return done;
}

enum { LOCKED_MAX = 8 };

static struct {
    const char *base;
    size_t bytes;
} locked[LOCKED_MAX];
static unsigned locked_count;

void fake_lock_memory(const void *base, size_t bytes)
{
    if (locked_count == LOCKED_MAX) broken("too much locked memory");
    locked[locked_count].base = base;
    locked[locked_count++].bytes = bytes;
}

static bool has_locked_part(struct os_range range)
{
    for (unsigned i = 0; i < locked_count; i++)
        if (range.base < locked[i].base + locked[i].bytes
            && locked[i].base < range.base + range.bytes)
            return true;
    return false;
}

bool os_purge(struct os_range range)
{
    uint8_t *states;
    bool done;

    pass_beside(FAKE_PURGE);
    enter();
    states = committed_states(range, "a purge outside every reservation",
                              "a purge of memory that is not committed");
    done = admit(FAKE_PURGE) && (!has_locked_part(range) || refuse());
    if (done) {
        if (OS_PURGE_CLOSES) {
            model_close(range);
        } else {
            if (memory.purge_does == FAKE_PURGE_ZEROES) give_zeros(range.base, range.bytes);
            else memset(range.base, FAKE_SCRIBBLE, range.bytes);
            memset(states, FAKE_PAGE_PURGED, pages_of(range.bytes));
        }
        memory.purged_bytes += range.bytes;
    }
    leave();
    return done;
}

static bool fences_allowed;

void fake_fences(bool allowed) { fences_allowed = allowed; }

bool os_fence(struct os_range range)
{
    enter();
    (void)committed_states(range, "a fence outside every reservation",
                           "a fence of memory that is not committed");
    if (fences_allowed) model_close(range);
    leave();
    return fences_allowed;
}

bool os_unfence(struct os_range range)
{
    bool done;

    enter();
    done = model_commit(range);
    leave();
    return done;
}

bool os_move(struct os_range from, struct os_range to)
{
    bool done;

    enter();
    if (from.bytes != to.bytes) broken("a move between unequal ranges");
    if (!is_aligned((uintptr_t)from.base | (uintptr_t)to.base, model.page_bytes))
        broken("a move of parts of pages");
    if (from.base < to.base + to.bytes && to.base < from.base + from.bytes)
        broken("a move onto itself");
    (void)committed_states(from, "a move from outside every reservation",
                           "a move of memory that is not committed");
    (void)committed_states(to, "a move out of every reservation",
                           "a move to memory that is not committed");
    done = admit(FAKE_MOVE);
    if (done) {
        model_move(from, to);
        memory.moved_bytes += from.bytes;
    }
    leave();
    return done;
}

/* A reservation of its own each time, as the real kernel may choose. */
struct os_range os_move_out(struct os_range from, size_t bytes)
{
    struct os_range range = { NULL, 0 };

    enter();
    (void)committed_states(from, "a move from outside every reservation",
                           "a move of memory that is not committed");
    if (admit(FAKE_MOVE)) {
        range = model_reserve(bytes, model.page_bytes, PROT_NONE);
        if (range.base == NULL || !model_commit_or_release(range)) {
            range = (struct os_range){ NULL, 0 };
            (void)refuse();
        }
    }
    if (range.base != NULL) {
        model_move(from, (struct os_range){ range.base, from.bytes });
        memory.moved_bytes += from.bytes;
    }
    leave();
    return range;
}

void os_move_back(struct os_range from, struct os_range to)
{
    enter();
    model_move(from, to);
    model_cut_front(from);
    leave();
}

/* Never longer in its place: what lies behind is a matter of chance. */
struct os_range os_resize(struct os_range range, size_t bytes, bool may_move)
{
    struct os_range resized = { NULL, 0 };

    enter();
    (void)committed_states(range, "a resize outside every reservation",
                           "a resize of memory that is not committed");
    if (bytes < range.bytes) broken("a resize that shrinks");
    if (admit(FAKE_RESIZE) && may_move) {
        resized = model_reserve(bytes, model.page_bytes, PROT_NONE);
        if (resized.base != NULL && !model_commit_or_release(resized)) resized.base = NULL;
    }
    if (resized.base != NULL) {
        model_move(range, (struct os_range){ resized.base, range.bytes });
        model_release(range);
    } else {
        resized.bytes = 0;
        (void)refuse();
    }
    leave();
    return resized;
}

bool os_touch(struct os_range range)
{
    bool done;

    enter();
    (void)committed_states(range, "a touch outside every reservation",
                           "a touch of memory that is not committed");
    done = admit(FAKE_TOUCH);
    if (done) {
        for (size_t at = 0; at < range.bytes; at += model.page_bytes)
            (void)__atomic_fetch_or(range.base + at, 0, __ATOMIC_RELAXED);
        memset(states_of(range, ""), FAKE_PAGE_COMMITTED, pages_of(range.bytes));
        memory.touched_bytes += range.bytes;
    }
    leave();
    return done;
}

bool os_keep_from_child(struct os_range range, bool kept)
{
    bool done;

    enter();
    (void)committed_states(range, "a wish for a child outside every reservation",
                           "a wish for a child about memory that is not committed");
    done = admit(FAKE_KEEP_FROM_CHILD);
    if (done && madvise(range.base, range.bytes, kept ? MADV_WIPEONFORK : MADV_KEEPONFORK) != 0)
        broken("the real kernel refused a wish for a child");
    leave();
    return done;
}

void os_wish_huge_pages(struct os_range range, bool wanted)
{
    enter();
    count_call(wanted ? FAKE_HUGE_WANT : FAKE_HUGE_REFUSE);
    (void)states_of(range, "a wish outside every reservation");
    leave();
}

uint64_t os_first_touch_us(void *page)
{
    enter();
    count_call(FAKE_FIRST_TOUCH);
    (void)committed_states((struct os_range){ page, model.page_bytes },
                           "a first touch outside every reservation",
                           "a first touch of memory that is not committed");
    for (size_t at = 0; at < model.page_bytes && memory.purge_does == FAKE_PURGE_ZEROES; at++)
        if (((const char *)page)[at] != 0) broken("a first touch of a page that is not zero");
    memory.first_touched = page;
    leave();
    return RELAXED_LOAD(memory.first_touch_us);
}

size_t os_address_space_limit(void) { return model.limit_bytes; }

bool os_address_space_has_room(size_t bytes)
{
    bool has;

    enter();
    has = fits_address_space(bytes);
    leave();
    return has;
}

size_t os_address_space_used(void)
{
    size_t used;

    enter();
    used = model.other_bytes + model.reserved_bytes;
    leave();
    return used;
}

bool os_guard(struct os_range range) { return os_close(range); }
bool os_unguard(struct os_range range) { return os_commit(range); }

/* ---- the controls ---- */

void fake_page_bytes(size_t bytes)
{
    if (model.reservation_count != 0) broken("the page size changes after the start");
    model.page_bytes = bytes;
}

void fake_address_space(size_t limit_bytes, size_t other_bytes)
{
    model.limit_bytes = limit_bytes;
    model.other_bytes = other_bytes;
}

void fake_next_place(void *base) { model.next_place = base; }
void fake_reserve_bytes_max(size_t bytes) { model.reserve_bytes_max = bytes; }
void fake_commit_bytes_max(size_t bytes) { model.commit_bytes_max = bytes; }

void fake_purge_does(enum fake_purge what) { memory.purge_does = what; }
size_t fake_reserved_bytes(void) { return model.reserved_bytes; }
size_t fake_committed_bytes(void) { return model.committed_bytes; }
uint64_t fake_purged_bytes(void) { return memory.purged_bytes; }
uint64_t fake_moved_bytes(void) { return memory.moved_bytes; }
void fake_first_touch_us(uint64_t us) { RELAXED_STORE(memory.first_touch_us, us); }
const void *fake_first_touched(void) { return memory.first_touched; }
uint64_t fake_touched_bytes(void) { return memory.touched_bytes; }

bool fake_is_committed(const void *base, size_t bytes)
{
    struct os_range range = { (char *)(uintptr_t)base, bytes };
    const uint8_t *states = states_of(range, "a question about no reservation");

    return count_in_state(states, pages_of(bytes), FAKE_PAGE_RESERVED) == 0;
}
