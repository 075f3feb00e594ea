/* blocks.c - steps that take, resize and give blocks, through every door there is.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "requests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KB = 1024, MB = 1024 * 1024 };

/* ---- slots ---- */

void slot_verify(const struct slot *slot, const char *when)
{
    oracle_verify(&slot->block, slot->block.stamped_bytes, when);
}

static void settle_in(struct slot *slot, const struct request *request, void *base, int arena)
{
    size_t usable = malloc_usable_size(base);

    check_usable(request, base, usable);
    slot->block = (struct block){ .base = base,
                                  .requested_bytes = request->size,
                                  .usable_bytes = usable,
                                  .stamped_bytes = usable,
                                  .align_bytes = request->align };
    slot->arena = arena;
    oracle_claim(&slot->block);
    int owner = books_arena_of(base);
    if (owner != ARENA_AUTOMATIC && owner != arena)
        violation("block %p is of arena %d, and in an extent of arena %d", base, arena, owner);
    for (unsigned i = 0; i < ARENAS_OWN; i++)
        if (me->arena[i].is_made && (int)me->arena[i].index == arena && me->arena[i].always_hooked
            && owner != arena)
            violation("block %p is of arena %d, but in none of the extents of its hooks", base,
                      arena);
    oracle_stamp(&slot->block, me->step);
    me->live_bytes += usable;
    me->taken_slots++;
}

/* The block is on its way out, or to another place. */
static struct block move_out(struct slot *slot)
{
    struct block block = slot->block;
    oracle_release(&block);
    me->live_bytes -= block.usable_bytes;
    me->taken_slots--;
    slot->block.base = NULL;
    return block;
}

static void move_back(struct slot *slot, const struct block *block)
{
    slot->block = *block;
    oracle_claim(block);
    me->live_bytes += block->usable_bytes;
    me->taken_slots++;
}

void slots_forget(unsigned arena)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *slot = &me->slot[i];
        if (slot->block.base == NULL || slot->arena != (int)arena) continue;
        slot_verify(slot, "before its arena is reset");
        move_out(slot);
    }
}

/* ---- taking ---- */

/* Names a cache, an arena, zeros and an alignment by chance. */
static void choose_flags(struct request *request)
{
    struct own_tcache *tcache = NULL;
    struct own_arena *arena = NULL;

    if (chance(25)) {
        request->align = any_align();
        request->flags |= flags_of_align(request->align);
    }
    if (chance(25)) {
        request->zero = true;
        request->flags |= MALLOCX_ZERO;
    }
    if (chance(25)) request->flags |= MALLOCX_TCACHE_NONE;
    else if (chance(35)) tcache = &me->tcache[below(TCACHES_OWN)];
    if (tcache != NULL && tcache->is_made) request->flags |= MALLOCX_TCACHE(tcache->index);
    else tcache = NULL;

    if (chance(55)) arena = &me->arena[below(ARENAS_OWN)];
    if (arena != NULL && arena->is_made) {
        request->flags |= MALLOCX_ARENA(arena->index);
        request->arena = request->other_arena = (int)arena->index;
        request->names_for = tcache;
        request->named = (int)arena->index;
        return;
    }
    if (chance(20)) {
        request->flags |= MALLOCX_ARENA(below(world.automatic_arenas));
        request->names_for = tcache;
        request->named = ARENA_AUTOMATIC;
        return;
    }
    from_thread(request);
    if (tcache == NULL) return;
    /* It fills from where it did last, or from where the thread does. */
    if (tcache->arena == ARENA_ANY || (tcache->arena >= 0 && request->arena >= 0))
        request->arena = ARENA_ANY;
    else if (tcache->arena >= 0) request->other_arena = tcache->arena;
}

/* A call named an arena for a cache, which fills from there since then if it came to that. */
static void note_naming(const struct request *request, const void *block, bool is_new)
{
    if (request->names_for == NULL || !request->names_for->is_made) return;
    if (request->names_for->arena == request->named) return;
    if (block != NULL && malloc_usable_size((void *)(uintptr_t)block) == 0)
        return; /* from nowhere */
    if (block == NULL || world.samples || request->align != 0)
        request->names_for->arena = ARENA_ANY;
    else if (is_new && malloc_usable_size((void *)(uintptr_t)block) <= small_bytes_max())
        request->names_for->arena = request->named;
}

/* A number that no arena, or no cache, has. */
static void choose_nobody(struct request *request)
{
    request->flags &= 0xff;
    request->names_for = NULL;
    request->arena = request->other_arena = ARENA_AUTOMATIC;
    from_thread(request);
    if (chance(50)) request->flags |= MALLOCX_ARENA(4000 + below(90));
    else request->flags |= MALLOCX_TCACHE(4000 + below(90));
    request->is_absurd = true;
}

enum door {
    DOOR_MALLOC,
    DOOR_CALLOC,
    DOOR_REALLOC,
    DOOR_ALIGNED,
    DOOR_POSIX,
    DOOR_MALLOCX,
    DOOR_RALLOCX
};

static enum door any_door(void)
{
    unsigned kind = below(100);
    return kind < 26 ? DOOR_MALLOC
         : kind < 36 ? DOOR_CALLOC
         : kind < 39 ? DOOR_REALLOC
         : kind < 44 ? DOOR_ALIGNED
         : kind < 49 ? DOOR_POSIX
         : kind < 52 ? DOOR_RALLOCX
                     : DOOR_MALLOCX;
}

static void *call_door(enum door door, const struct request *request)
{
    void *block = NULL;

    switch (door) {
    case DOOR_MALLOC: return malloc(request->size);
    case DOOR_CALLOC: return calloc(1, request->size);
    case DOOR_REALLOC: return realloc(NULL, request->size);
    case DOOR_ALIGNED: return aligned_alloc(request->align, request->size);
    case DOOR_POSIX: errno = posix_memalign(&block, request->align, request->size); return block;
    case DOOR_RALLOCX: return rallocx(NULL, request->size, request->flags);
    default: return mallocx(request->size, request->flags);
    }
}

static void take_through(struct slot *slot, enum door door, size_t size)
{
    static const char *const names[] = { "malloc",         "calloc",  "realloc", "aligned_alloc",
                                         "posix_memalign", "mallocx", "rallocx" };
    struct request request = request_for(names[door], size);

    if (door == DOOR_MALLOCX || door == DOOR_RALLOCX) {
        choose_flags(&request);
        if (chance(1)) choose_nobody(&request);
    } else {
        from_thread(&request);
        request.zero = door == DOOR_CALLOC;
        if (door == DOOR_ALIGNED || door == DOOR_POSIX) request.align = any_align();
    }
    if (size > SIZE_MAX / 8) request.is_absurd = true;
    add("s%u=%s(%zu align %zu flags 0x%x)", (unsigned)(slot - me->slot), request.door, size,
        request.align, (unsigned)request.flags);
    slot->is_busy = true;
    me->calls++;
    errno = 0;
    void *base = call_door(door, &request);
    int error = errno;
    slot->is_busy = false;
    add(" %p", base);
    check_refusal(&request, base, error);
    note_naming(&request, base, true);
    if (base == NULL) return;

    size_t usable = malloc_usable_size(base);
    check_size_told(&request, base, usable, NULL);
    check_fill(&request, base, 0, usable);
    settle_in(slot, &request, base, arena_found(&request, base));
    me->counted += (int64_t)usable;
}

static void step_take(struct slot *slot)
{
    size_t size = chance(1) && chance(30) ? absurd_size() : any_size();

    if (me->live_bytes + size > LIVE_BYTES_MAX && size <= SIZE_MAX / 8) size = below(KB);
    take_through(slot, any_door(), size);
}

/* ---- giving ---- */

enum exit { EXIT_FREE, EXIT_FREE_SIZED, EXIT_DALLOCX, EXIT_SDALLOCX, EXIT_REALLOC };

/* The size of a sized free: what was asked for, or more, up to the usable one. */
static size_t any_true_size(const struct block *block)
{
    size_t more = block->usable_bytes - block->requested_bytes;
    if (chance(70) || more == 0) return block->requested_bytes;
    return block->requested_bytes + below((uint32_t)more + 1);
}

static void leave_through(enum exit exit, const struct block *block, int arena)
{
    size_t size = block->requested_bytes, align = block->align_bytes;
    int flags = align != 0 ? flags_of_align(align) : 0;

    switch (exit) {
    case EXIT_FREE: free(block->base); return;
    case EXIT_FREE_SIZED:
        if (align != 0) free_aligned_sized(block->base, align, size);
        else free_sized(block->base, size);
        return;
    case EXIT_REALLOC:
        if (realloc(block->base, 0) != NULL) violation("realloc to 0 gives a block");
        return;
    default: break;
    }
    if (chance(35)) flags |= MALLOCX_TCACHE_NONE;
    else if (chance(40)) {
        const struct own_tcache *tcache = &me->tcache[below(TCACHES_OWN)];
        if (tcache->is_made) flags |= MALLOCX_TCACHE(tcache->index);
    }
    if (arena >= 0) flags |= MALLOCX_ARENA((unsigned)arena);
    add(" flags 0x%x", (unsigned)flags);
    if (exit == EXIT_DALLOCX) dallocx(block->base, flags);
    else sdallocx(block->base, any_true_size(block), flags);
}

static enum exit any_exit(const struct slot *slot)
{
    unsigned kind = below(100);
    enum exit exit = kind < 45 ? EXIT_FREE
                   : kind < 57 ? EXIT_FREE_SIZED
                   : kind < 80 ? EXIT_DALLOCX
                   : kind < 96 ? EXIT_SDALLOCX
                               : EXIT_REALLOC;
    /* A sized free without flags leaves a manual arena's block in the thread's cache, as
     * documented. */
    if (exit == EXIT_FREE_SIZED && slot->arena >= 0 && slot->arena != me->bound) return EXIT_FREE;
    return exit;
}

void slot_free(struct slot *slot)
{
    static const char *const names[] = { "free", "free_sized", "dallocx", "sdallocx", "realloc0" };
    enum exit exit = any_exit(slot);
    int arena = slot->arena;

    slot_verify(slot, "when it is freed");
    add("%s(s%u %p, %zu of %zu, arena %d)", names[exit], (unsigned)(slot - me->slot),
        (void *)slot->block.base, slot->block.requested_bytes, slot->block.usable_bytes, arena);
    struct block block = move_out(slot);
    slot->is_busy = true;
    me->calls++;
    errno = 77;
    leave_through(exit, &block, arena);
    if (errno != 77) violation("%s changed errno to %d", names[exit], errno);
    slot->is_busy = false;
    me->counted -= (int64_t)block.usable_bytes;
}

/* ---- resizing ---- */

static size_t any_new_size(const struct block *block)
{
    size_t bytes = block->usable_bytes, wanted;

    switch (below(7)) {
    case 0: wanted = bytes + below(64); break;
    case 1: wanted = bytes / 2; break;
    case 2: wanted = bytes + bytes / 2; break;
    case 3: wanted = bytes * 2; break;
    case 4: wanted = bytes - below((uint32_t)(bytes / 4 + 1)); break;
    case 5: wanted = bytes + below(8) * world.page_bytes; break;
    default: wanted = any_size();
    }
    if (wanted > 6 * MB) wanted = 6 * MB;
    if (me->live_bytes + wanted > LIVE_BYTES_MAX) wanted = below(KB);
    return wanted == 0 ? 1 : wanted;
}

/* The first bytes of the block are what they were. */
static void check_kept(const struct request *request, const struct block *old, void *base,
                       size_t bytes)
{
    struct block moved = *old;
    moved.base = base;
    oracle_verify(&moved, bytes, request->door);
}

/* The block of a slot has another size, or place, or arena. */
static void resettle(struct slot *slot, const struct request *request, const struct block *old,
                     void *base, int arena)
{
    size_t usable = malloc_usable_size(base);
    size_t kept = old->usable_bytes < usable ? old->usable_bytes : usable;
    bool flagged = request->door[1] == 'a'; /* rallocx, xallocx */

    check_kept(request, old, base, kept);
    check_fill(request, base, kept, usable);
    if (flagged && request->zero && request->size > old->usable_bytes)
        require_fill(request, base, old->usable_bytes, request->size, 0);
    settle_in(slot, request, base, arena);
    me->counted += (int64_t)usable - (int64_t)old->usable_bytes;
}

static void step_realloc(struct slot *slot)
{
    struct request request = request_for("realloc", any_new_size(&slot->block));
    int arena = slot->arena;

    if (chance(1) && chance(30)) {
        request.size = absurd_size();
        request.is_absurd = true;
    }
    from_thread(&request);
    add("s%u=realloc(%p, %zu of %zu, arena %d: %zu)", (unsigned)(slot - me->slot),
        (void *)slot->block.base, slot->block.requested_bytes, slot->block.usable_bytes, arena,
        request.size);
    struct block old = move_out(slot);
    slot->is_busy = true;
    me->calls++;
    errno = 0;
    void *base = realloc(old.base, request.size);
    int error = errno;
    slot->is_busy = false;
    add(" %p", base);
    check_refusal(&request, base, error);
    if (base == NULL) move_back(slot, &old);
    else
        resettle(slot, &request, &old, base,
                 base == old.base ? arena : arena_found(&request, base));
}

static void step_rallocx(struct slot *slot)
{
    struct request request = request_for("rallocx", any_new_size(&slot->block));
    int arena = slot->arena;

    choose_flags(&request);
    add("s%u=rallocx(%p, %zu of %zu, arena %d: %zu flags 0x%x)", (unsigned)(slot - me->slot),
        (void *)slot->block.base, slot->block.requested_bytes, slot->block.usable_bytes, arena,
        request.size, (unsigned)request.flags);
    struct block old = move_out(slot);
    slot->is_busy = true;
    me->calls++;
    errno = 0;
    void *base = rallocx(old.base, request.size, request.flags);
    int error = errno;
    slot->is_busy = false;
    add(" %p", base);
    check_refusal(&request, base, error);
    note_naming(&request, base, base != old.base);
    if (base == NULL) {
        move_back(slot, &old);
        return;
    }
    size_t usable = malloc_usable_size(base);
    /* Where hooks, or a want of records, keep it from being cut, a large block stays as long as it
     * was. */
    bool stays = base == old.base && usable == old.usable_bytes && usable > request.size;
    if (!stays) check_size_told(&request, base, usable, &old);
    resettle(slot, &request, &old, base, base == old.base ? arena : arena_found(&request, base));
}

static void step_xallocx(struct slot *slot)
{
    struct request request = request_for("xallocx", any_new_size(&slot->block));
    size_t extra = chance(50) ? below(1 << 18) : 0;
    size_t align = slot->block.align_bytes;

    request.zero = chance(30);
    request.flags = request.zero ? MALLOCX_ZERO : 0;
    if (align != 0) request.flags |= flags_of_align(align);
    request.align = align;
    add("s%u xallocx(%p, %zu of %zu, arena %d: %zu+%zu flags 0x%x)", (unsigned)(slot - me->slot),
        (void *)slot->block.base, slot->block.requested_bytes, slot->block.usable_bytes,
        slot->arena, request.size, extra, (unsigned)request.flags);
    struct block old = move_out(slot);
    slot->is_busy = true;
    me->calls++;
    size_t told = xallocx(old.base, request.size, extra, request.flags);
    slot->is_busy = false;
    add(" %zu", told);
    if (told != malloc_usable_size(old.base))
        violation("xallocx says %zu, malloc_usable_size %zu", told, malloc_usable_size(old.base));
    size_t most = nallocx(request.size + extra, 0);
    if (told > old.usable_bytes && told > most && !may_be_unmarked(old.base, &old))
        violation("xallocx to %zu+%zu bytes gives %zu, nallocx says %zu", request.size, extra, told,
                  most);
    if (told < old.usable_bytes && told < request.size)
        violation("xallocx to %zu bytes shrinks to %zu", request.size, told);
    request.size = told != old.usable_bytes || told < request.size ? told : old.requested_bytes;
    resettle(slot, &request, &old, old.base, slot->arena);
}

/* ---- steps ---- */

static void step_look(const struct slot *slot)
{
    size_t usable = slot->block.usable_bytes;
    size_t in_page = world.page_bytes - (uintptr_t)slot->block.base % world.page_bytes;
    size_t inside = usable < in_page ? usable : in_page;
    int arena = slot->arena;

    if (usable != 0) arena = (int)arena_at_address(slot->block.base + below((uint32_t)inside));
    if (arena < (int)world.automatic_arenas) arena = ARENA_AUTOMATIC;
    add("look at s%u", (unsigned)(slot - me->slot));
    slot_verify(slot, "when it is looked at");
    if (arena != slot->arena)
        violation("block %p is of arena %d, and was of %d", (void *)slot->block.base, arena,
                  slot->arena);
    if (malloc_usable_size(slot->block.base) != slot->block.usable_bytes)
        violation("block %p has %zu usable bytes, and had %zu", (void *)slot->block.base,
                  malloc_usable_size(slot->block.base), slot->block.usable_bytes);
}

void step_blocks(void)
{
    struct slot *slot = &me->slot[below(SLOTS)];

    if (slot->is_busy) return;
    if (slot->block.base == NULL) {
        step_take(slot);
        return;
    }
    unsigned kind = below(100);
    if (kind < 45) slot_free(slot);
    else if (kind < 60) step_realloc(slot);
    else if (kind < 75) step_rallocx(slot);
    else if (kind < 88) step_xallocx(slot);
    else step_look(slot);
}

void step_nested(void)
{
    struct slot *slot = &me->slot[below(SLOTS)];

    if (slot->is_busy) return;
    me->depth++;
    me->nested++;
    add(" {");
    if (slot->block.base == NULL)
        take_through(slot, chance(80) ? DOOR_MALLOC : DOOR_CALLOC, log_uniform(1, 64 * KB));
    else slot_free(slot);
    add("}");
    me->depth--;
}

/* ---- between players ---- */

/* Blocks of a manual arena as well, which then stays as it is. */
bool blocks_hand_over(void)
{
    struct slot *slot = &me->slot[below(SLOTS)];
    struct player *to = &world.player[below(world.players)];
    struct own_arena *home = own_of(slot->arena);
    bool done = false;

    if (to == me || slot->block.base == NULL || slot->is_busy) return false;
    if (home != NULL && !home->is_shared && !chance(3)) return false;
    pthread_mutex_lock(&to->box_lock);
    if (to->box_count < BOX_BLOCKS) {
        add("s%u to player %u", (unsigned)(slot - me->slot), to->index);
        if (home != NULL) home->is_shared = true;
        me->live_bytes -= slot->block.usable_bytes;
        me->taken_slots--;
        to->box[to->box_count++] = *slot;
        slot->block.base = NULL;
        done = true;
    }
    pthread_mutex_unlock(&to->box_lock);
    return done;
}

void blocks_take_over(void)
{
    struct slot *slot = &me->slot[below(SLOTS)];

    if (slot->block.base != NULL || slot->is_busy) return;
    pthread_mutex_lock(&me->box_lock);
    if (me->box_count > 0) {
        *slot = me->box[--me->box_count];
        me->live_bytes += slot->block.usable_bytes;
        me->taken_slots++;
        add("s%u=%p from the box, arena %d", (unsigned)(slot - me->slot), (void *)slot->block.base,
            slot->arena);
    }
    pthread_mutex_unlock(&me->box_lock);
}
