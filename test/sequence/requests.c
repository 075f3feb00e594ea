/* requests.c - random sizes, and what is promised of the blocks that are served.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "requests.h"

#include <errno.h>
#include <string.h>

enum { KB = 1024, MB = 1024 * 1024 };
enum { JUNK_TAKEN = 0xA5 };

/* ---- what is asked for ---- */

static size_t edge_size(void)
{
    size_t base = (size_t)1 << (3 + below(15));
    return base + base / 8 * below(8) + below(3) - 1;
}

size_t any_size(void)
{
    unsigned kind = below(1000);
    if (kind < 10) return 0;
    if (kind < 500) return log_uniform(1, KB);
    if (kind < 620) return edge_size();
    if (kind < 820) return log_uniform(KB, 16 * KB);
    if (kind < 980) return log_uniform(14 * KB, 160 * KB);
    if (kind < 997) return log_uniform(128 * KB, MB);
    return log_uniform(MB, 6 * MB);
}

size_t absurd_size(void)
{
    static const size_t sizes[] = {
        SIZE_MAX,         SIZE_MAX / 2,
        SIZE_MAX / 2 + 1, sizeof(size_t) > 4 ? SIZE_MAX >> 16 : SIZE_MAX - 1,
        SIZE_MAX - 4096,  SIZE_MAX / 16 * (sizeof(size_t) > 4 ? 7 : 9)
    };
    return sizes[below(6)];
}

size_t any_align(void)
{
    if (chance(75)) return (size_t)8 << below(10);
    return (size_t)4096 << below(9);
}

int flags_of_align(size_t align) { return MALLOCX_ALIGN(align); }

/* ---- what is promised ---- */

struct request request_for(const char *door, size_t size)
{
    return (struct request){ .door = door,
                             .size = size,
                             .arena = ARENA_AUTOMATIC,
                             .other_arena = ARENA_AUTOMATIC,
                             .refused_by_hooks = me->refused_by_hooks };
}

/* A hardened one has a mark behind it. */
size_t small_bytes_max(void) { return world.hardened ? 14336 - sizeof(uint64_t) : 14336; }

bool is_small(size_t size, size_t align)
{
    return nallocx(size, align != 0 ? flags_of_align(align) : 0) <= small_bytes_max();
}

void from_thread(struct request *request)
{
    if (!is_own(me->bound)) return;
    request->arena = me->bound;
    /* Small blocks of automatic arenas that the thread freed are in its cache, too; and while hooks
     * are asked for memory, what they take comes from elsewhere. */
    if (me->depth == 0 && !is_small(request->size, request->align))
        request->other_arena = me->bound;
}

/* A limit or a hook may have refused memory meanwhile. */
static bool is_short(const struct request *request)
{
    return world.may_refuse || world.has_space_limit
        || me->refused_by_hooks != request->refused_by_hooks;
}

/* What has no bytes is no arena's, whatever was asked for. */
int arena_found(const struct request *request, const void *base)
{
    bool has_bytes = malloc_usable_size((void *)base) != 0;
    unsigned index = has_bytes ? arena_at_address(base) : 0;
    int found = index < world.automatic_arenas ? ARENA_AUTOMATIC : (int)index;

    if (!has_bytes || request->arena == ARENA_ANY || found == request->arena
        || found == request->other_arena)
        return found;
    violation("%s of %zu bytes, flags 0x%x: block %p is of arena %d, not %d or %d", request->door,
              request->size, (unsigned)request->flags, base, found, request->arena,
              request->other_arena);
}

void check_refusal(const struct request *request, const void *block, int error)
{
    if (block != NULL && request->is_absurd)
        violation("%s of %zu bytes, flags 0x%x, should be refused", request->door, request->size,
                  (unsigned)request->flags);
    if (block != NULL) return;
    me->refusals++;
    if (error != ENOMEM)
        violation("%s of %zu bytes was refused with errno %d", request->door, request->size, error);
    if (request->is_absurd || request->may_refuse || is_short(request)) return;
    violation("%s of %zu bytes, flags 0x%x, was refused without a reason", request->door,
              request->size, (unsigned)request->flags);
}

static bool is_filled(const unsigned char *base, size_t from, size_t to, unsigned char byte,
                      size_t *at)
{
    for (*at = from; *at < to && (*at & 7) != 0; ++*at)
        if (base[*at] != byte) return false;
    uint64_t pattern = byte * 0x0101010101010101ull, word;
    for (; *at + 8 <= to; *at += 8) {
        memcpy(&word, base + *at, 8);
        if (word == pattern) continue;
        while (base[*at] == byte) ++*at;
        return false;
    }
    for (; *at < to; ++*at)
        if (base[*at] != byte) return false;
    return true;
}

void require_fill(const struct request *request, const unsigned char *base, size_t from, size_t to,
                  unsigned char byte)
{
    size_t at;
    if (from >= to || is_filled(base, from, to, byte, &at)) return;
    violation(
        "%s of %zu bytes, flags 0x%x: byte %zu of block %p is 0x%02x, not 0x%02x, in %zu..%zu",
        request->door, request->size, (unsigned)request->flags, at, (const void *)base, base[at],
        byte, from, to);
}

void check_fill(const struct request *request, const unsigned char *base, size_t from,
                size_t usable)
{
    if (request->zero || world.clears) require_fill(request, base, from, usable, 0);
    else if (world.junks) require_fill(request, base, from, usable, JUNK_TAKEN);
    else if (world.hardened) require_fill(request, base, from, usable, 0);
}

void check_usable(const struct request *request, void *base, size_t usable)
{
    if (sallocx(base, 0) != usable)
        violation("block %p: sallocx says %zu, malloc_usable_size %zu", base, sallocx(base, 0),
                  usable);
    if (usable < request->size)
        violation("%s of %zu bytes: only %zu are usable", request->door, request->size, usable);
}

/* A block with pages of its own may be shorter by as many. */
enum { STAGGERED_BYTES = 512 };

bool may_be_unmarked(const void *base, const struct block *before)
{
    if (!world.hardened) return false;
    if (world.samples || me->depth > 0 || arena_at_address(base) >= world.automatic_arenas)
        return true;
    return before != NULL && before->usable_bytes >= world.page_bytes - STAGGERED_BYTES;
}

void check_size_told(const struct request *request, const void *base, size_t usable,
                     const struct block *before)
{
    size_t told = nallocx(request->size, request->align != 0 ? flags_of_align(request->align) : 0);
    if (usable > told && may_be_unmarked(base, before)) return;
    /* Size 0 has no bytes, or those of the smallest block, which is one byte with a mark. */
    if (told != usable && !(request->size == 0 && usable <= world.hardened))
        violation("%s of %zu bytes aligned to %zu: nallocx says %zu, usable are %zu", request->door,
                  request->size, request->align, told, usable);
}
