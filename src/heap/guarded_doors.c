/* guarded_doors.c - the doors' side of guarded blocks.
 * SPDX-License-Identifier: MIT
 */
#include "guarded_doors.h"

#include "doors.h"
#include "hardened.h"

#include "../base/options.h"
#include "../base/port.h"
#include "../page_heap/page_heap.h"
#include "../space/commit.h"
#include "../guard/guarded_report.h"

enum { POOL_CLOSED, POOL_OPEN, POOL_REFUSED };

static uint32_t pool_state; /* atomic */
static uintptr_t
    pool_opener; /* atomic: the mark of the thread that opens it, or did; 0: none yet */
static uint64_t random_state; /* atomic; 0: not begun */
static uint64_t last_ms;      /* atomic: when a block was due last */

/* ---- taking ---- */

static uint64_t guarded_random(void)
{
    uint64_t seed = RELAXED_LOAD(random_state) == 0 ? os_wall_ns() ^ (uintptr_t)&seed : 0;

    return bits_mixed(
        __atomic_add_fetch(&random_state, seed + UINT64_C(0x9e3779b97f4a7c15), __ATOMIC_RELAXED));
}

/* The gaps have the mean that was asked for. In a hardened process every block is looked at anyway.
 * A thread's first gap is longer: the mean, and then a part that chance draws. It is drawn only
 * when the mean is over, because most threads never get so far. */
static bool guarded_gap(struct cache *cache)
{
    uint64_t mean = option_value(OPTION_GUARD_SAMPLE);
    bool is_drawn = mean == 1 || cache->front.guarded_from != RELAXED_LOAD(cached_guarded_from);

    if (mean == 0 || hardening.is_on || RELAXED_LOAD(pool_state) == POOL_REFUSED) {
        cache->front.guarded_from = (uint16_t)(cache->refills + GUARDED_NEVER);
        return false;
    }
    cache->front.guarded_from =
        (uint16_t)(cache->refills + 1 + guarded_random() % (is_drawn ? 2 * mean - 1 : mean));
    return is_drawn;
}

/* A named place gets none, nor an arena that a thread is bound to: they know all of their
 * blocks. Where memory is limited or short pages come from the page heap alone. */
static bool may_guard(const struct cache *cache, const struct alloc_request *request)
{
    return !request_is_placed(request) && !request->uncached && cache->fixed == 0
        && cache_may_hold(cache, request->class_index)
        && class_bytes[request->class_index] <= page_bytes() && !commit_is_limited()
        && !page_heaps_are_barred();
}

/* One thread gets it. */
static bool is_time(void)
{
    uint64_t least = option_value(OPTION_GUARD_INTERVAL), now, last = RELAXED_LOAD(last_ms);

    if (least == 0) return true;
    now = os_now_ms();
    return now - last >= least
        && __atomic_compare_exchange_n(&last_ms, &last, now, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

static bool guarded_fault(const struct os_fault *fault);

/* No lock is held: the C library's sigaction may be the program's. */
static bool pool_is_open(void)
{
    uint32_t state = RELAXED_LOAD(pool_state);
    uintptr_t nobody = 0;

    if (likely(state != POOL_CLOSED)) return state == POOL_OPEN;
    if (!__atomic_compare_exchange_n(&pool_opener, &nobody, port_thread_mark(), false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return false;
    state = class_map.mask != 0 && os_watch_faults(guarded_fault)
                 && guarded_start((unsigned)option_value(OPTION_GUARD_CELLS))
              ? POOL_OPEN
              : POOL_REFUSED;
    RELAXED_STORE(pool_state, state);
    return state == POOL_OPEN;
}

void guarded_forget_opener(void)
{
    if (RELAXED_LOAD(pool_state) != POOL_CLOSED || pool_opener == port_thread_mark()) return;
    RELAXED_STORE(pool_opener, 0);
    if (strays.first != NULL) RELAXED_STORE(pool_state, POOL_OPEN);
}

/* As the blocks of its class are in slabs. */
static size_t align_of(const struct alloc_request *request)
{
    size_t bytes = class_bytes[request->class_index];

    return max_size(request->align, bytes & (0 - bytes));
}

void *guarded_take_due(struct cache *cache, const struct alloc_request *request)
{
    struct guarded_trace taken;

    if (!guarded_gap(cache) || !may_guard(cache, request) || !is_time() || !pool_is_open())
        return NULL;
    guarded_trace_from(&taken, request->frame);
    return guarded_take(request->size, align_of(request), request->class_index, &taken);
}

/* The thread that reads the options has called already, perhaps. */
void guarded_obey_options(void)
{
    size_t mean = option_value(OPTION_GUARD_SAMPLE), from = mean == 1 ? 0 : mean;

    if (mean == 0) from = GUARDED_NEVER;
    cache_guard_from(thread_front()->cache, (uint16_t)from);
}

/* ---- giving ---- */

/* Where nothing was, it is a foreign pointer, of which nothing more is known. */
static COLD void put_none(void *block, const void *frame)
{
    enum pointer_kind kind = guarded_pointer_kind(block);
    const char *words = kind == POINTER_INTERIOR ? "free of an interior pointer" : "double free";
    bool is_told = guarded_tell_misuse(words, block, frame);

    if (kind != POINTER_FOREIGN && guarded_goes_on()) return;
    if (is_told) port_abort();
    misuse_abort(CALL_FREE, kind, block);
}

void guarded_put(void *block)
{
    struct guarded_trace given;
    const void *frame = FRAME_HERE();

    guarded_trace_from(&given, frame);
    if (unlikely(!guarded_give(block, &given))) put_none(block, frame);
    FRAME_LASTS();
}

enum pointer_kind guarded_pointer_kind(const void *pointer)
{
    switch (guarded_find(pointer).kind) {
    case GUARDED_NONE: return POINTER_FOREIGN;
    case GUARDED_BLOCK: return POINTER_GUARDED;
    case GUARDED_GONE: return POINTER_FREED;
    default: return POINTER_INTERIOR;
    }
}

/* What moves is freed at once. */
void guarded_note_size(const void *block, size_t size)
{
    size_t bytes = class_bytes[stray_class(block)];

    if (size <= SMALL_BYTES_MAX
        && (bytes == class_bytes[class_of_size(size)] || is_resized_from(size, bytes)))
        guarded_set_size(block, size);
}

/* ---- wrong-doing ---- */

bool guarded_goes_on(void) { return option_is_set(OPTION_GUARD_RECOVER); }

bool guarded_tell_misuse(const char *what, const void *pointer, const void *frame)
{
    struct guarded_finding finding = guarded_find_anywhere(pointer);
    struct guarded_deed deed = { .what = what, .how = "the address is", .address = pointer };

    guarded_trace_from(&deed.by, frame);
    if (finding.kind == GUARDED_NONE || !guarded_tell_once(&finding)) return false;
    guarded_report(&finding, &deed);
    return true;
}

static struct guarded_deed deed_of(const struct os_fault *fault, enum guarded_kind kind)
{
    static const char *const hows[] = { "an access", "a read", "a write" };
    struct guarded_deed deed = { .what = guarded_access_words(kind), .is_access = true };
    uintptr_t probe[2];

    deed.how = hows[fault->access];
    deed.address = fault->address;
    deed.by.thread = os_thread_id();
    if (fault->code != 0) deed.by.return_address[deed.by.depth++] = fault->code;
    if (is_aligned((uintptr_t)fault->frame, sizeof(uintptr_t))
        && os_copy_checked(probe, fault->frame, sizeof probe) == sizeof probe)
        deed.by.depth += unwind_from(fault->frame, deed.by.return_address + deed.by.depth,
                                     GUARDED_DEPTH - deed.by.depth);
    return deed;
}

/* In a signal handler. Where a block is held the access may be made again: another thread has
 * opened the page meanwhile; unless it would run the block as code. */
static bool guarded_fault(const struct os_fault *fault)
{
    struct guarded_finding finding = guarded_find_anywhere(fault->address);
    bool goes_on = guarded_goes_on();

    if (finding.kind == GUARDED_NONE) return false;
    if (finding.kind == GUARDED_BLOCK || finding.kind == GUARDED_INSIDE)
        return goes_on && !stray_pool_has((const void *)fault->code);
    if (guarded_tell_once(&finding)) {
        struct guarded_deed deed = deed_of(fault, finding.kind);
        guarded_report(&finding, &deed);
    }
    return goes_on && guarded_let_pass(fault->address);
}
