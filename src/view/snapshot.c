/* snapshot.c - the control tree's snapshot, and who asks for one.
 * SPDX-License-Identifier: MIT
 */
#include "snapshot.h"

#include "../arenas/decay.h"
#include "../arenas/manual.h"
#include "../guard/sample.h"

static struct {
    struct snapshot *numbers; /* under control_lock, as all of it */
    struct snapshot_arena *arenas[ARENA_INDEX_END];
    struct snapshot_arena *past;
    uint64_t epoch;
} room SPARSE;

_Static_assert(sizeof(struct snapshot) <= META_RECORD_BYTES_MAX, "a record");

/* ---- room ---- */

/* Arena 0 also has what is nobody's, and so a place before it is made. */
static unsigned room_end(void) { return (unsigned)max_size(arenas_end(), 1); }

/* A record for the numbers of each arena, all 0. False: no memory, and the old numbers stay. */
static bool room_ready(void)
{
    unsigned end = room_end();

    if (room.numbers == NULL) room.numbers = meta_take(sizeof *room.numbers);
    if (room.numbers == NULL) return false;
    for (unsigned index = 0; index < end; index++) {
        struct snapshot_arena **place = &room.arenas[index];

        if (*place == NULL && (index == 0 || RELAXED_LOAD(arenas[index]) != NULL)) {
            *place = meta_take(sizeof **place);
            if (*place == NULL) return false;
        }
    }
    for (unsigned index = 0; index < end; index++)
        if (room.arenas[index] != NULL)
            *room.arenas[index] = (struct snapshot_arena){ .threads = 0 };
    return true;
}

/* ---- who asks ---- */

void snapshot_sum(struct snapshot *numbers)
{
    *numbers = (struct snapshot){ .epoch = 0 };
    snapshot_count(numbers, NULL, 0);
}

const struct snapshot *snapshot_take(void)
{
    check(lock_is_mine(&control_lock));
    if (!room_ready()) return NULL;
    *room.numbers = (struct snapshot){ .epoch = ++room.epoch, .arena_count = arena_limit };
    snapshot_count(room.numbers, room.arenas, room_end());
    return room.numbers;
}

static void forget_lock(struct lock *lock)
{
    lock_take(lock);
    lock_forget_numbers(lock);
    lock_give(lock);
}

void snapshot_forget_locks(void)
{
    check(lock_is_mine(&control_lock));
    lock_forget_numbers(&control_lock);
    forget_lock(&threads_lock);
    forget_lock(&decay_lock);
    for (struct arena *arena = arena_from(0); arena != NULL; arena = arena_from(arena->index + 1))
        forget_lock(&arena->lock);
    page_heaps_each_lock(forget_lock, WALK_TAKES);
    forget_lock(&space.lock);
    forget_lock(&samples_lock);
    forget_lock(&meta.lock);
}

const struct snapshot *snapshot_get(void)
{
    check(lock_is_mine(&control_lock));
    return room.numbers != NULL && room.epoch != 0 ? room.numbers : snapshot_take();
}

const struct snapshot_arena *snapshot_past(void)
{
    check(lock_is_mine(&control_lock));
    if (RELAXED_LOAD(past_arenas.count) == 0) return NULL;
    if (room.past == NULL) room.past = meta_take(sizeof *room.past);
    if (room.past == NULL) return NULL;
    *room.past = (struct snapshot_arena){ .threads = 0 };
    snapshot_count_past(room.past);
    return room.past;
}

const struct snapshot_arena *snapshot_arena(unsigned index)
{
    check(lock_is_mine(&control_lock));
    return index < ARENA_INDEX_END ? room.arenas[index] : NULL;
}
