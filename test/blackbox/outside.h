/* outside.h - counts the heap of a process by the map that the library carries
 * (src/view/outside.h). */
/* SPDX-License-Identifier: MIT */
/*
 * It knows names only, no struct of the library: what is here is what any reader has to do. Memory
 * is read through a function, so that a test can read itself or another process. Manual arenas'
 * large blocks are counted in bytes, and guarded blocks that wait to be noted count as held.
 */
#ifndef PRAIRIE_TEST_OUTSIDE_H
#define PRAIRIE_TEST_OUTSIDE_H

#include "blackbox.h"

#include <elf.h>
#include <link.h>

enum {
    OUTSIDE_ROWS_MAX = 256,
    OUTSIDE_ROOTS_MAX = 64,
    OUTSIDE_BYTES_MAX = 65536,
    OUTSIDE_TRIES = 1000
};

struct outside_name {
    char name[27];
    char kind;
    uint32_t offset;
    uint16_t bytes, count;
};

struct outside {
    bool (*read)(const struct outside *outside, uint64_t address, void *to, size_t bytes);
    int process;
    uint64_t root[OUTSIDE_ROOTS_MAX];
    struct outside_name row[OUTSIDE_ROWS_MAX];
    uint32_t version, row_count, root_count;
    char release[16];
    unsigned torn; /* structs that would not hold still */
};

/* All in bytes but the last ones. */
struct outside_figures {
    uint64_t small, large, active, dirty, clean, cached, metadata, resident, mapped, purged;
    uint64_t large_count, threads, arenas, leases, returns, refills, overflows, fills, drains;
};

/* ---- names ---- */

SHARED const struct outside_name *outside_row(const struct outside *outside, const char *name)
{
    for (uint32_t i = 0; i < outside->row_count; i++)
        if (strncmp(outside->row[i].name, name, sizeof outside->row[i].name) == 0)
            return &outside->row[i];
    give_up("the map has no %s", name);
}

SHARED uint64_t outside_number(const void *at, size_t bytes)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    switch (bytes) {
    case sizeof one: return memcpy(&one, at, bytes), one;
    case sizeof two: return memcpy(&two, at, bytes), two;
    case sizeof four: return memcpy(&four, at, bytes), four;
    case sizeof eight: return memcpy(&eight, at, bytes), eight;
    default: give_up("no number has %zu bytes", bytes);
    }
}

/* Where the index-th element of a member is in a struct that begins at `at`. */
SHARED const char *outside_at(const struct outside *outside, const char *at, const char *name,
                              unsigned index)
{
    const struct outside_name *row = outside_row(outside, name);

    must(row->kind == 'm' && index < row->count);
    return at + row->offset + (size_t)index * row->bytes;
}

SHARED uint64_t outside_member(const struct outside *outside, const char *at, const char *name,
                               unsigned index)
{
    const struct outside_name *row = outside_row(outside, name);

    return outside_number(outside_at(outside, at, name, index), row->bytes);
}

SHARED uint64_t outside_constant(const struct outside *outside, const char *name)
{
    must(outside_row(outside, name)->kind == 'c');
    return outside_row(outside, name)->offset;
}

SHARED uint64_t outside_root(const struct outside *outside, const char *name)
{
    must(outside_row(outside, name)->kind == 'r');
    return outside->root[outside_row(outside, name)->offset];
}

SHARED uint64_t outside_value_at(const struct outside *outside, uint64_t address, size_t bytes)
{
    char number[sizeof(uint64_t)];

    must(bytes <= sizeof number && outside->read(outside, address, number, bytes));
    return outside_number(number, bytes);
}

SHARED uint64_t outside_root_value(const struct outside *outside, const char *name, unsigned index)
{
    size_t bytes = outside_row(outside, name)->bytes;

    return outside_value_at(outside, outside_root(outside, name) + index * bytes, bytes);
}

/* ---- the note ---- */

/* The note at `note`, a struct of type Elf_Nhdr. */
SHARED void outside_take_map(struct outside *outside, uint64_t note)
{
    struct {
        uint32_t name_bytes, bytes, type;
        char name[8];
    } head;
    struct {
        uint32_t version, row_bytes, row_count, root_count;
        char release[16];
    } layout;
    uint64_t at = note + sizeof head;
    int32_t distance[OUTSIDE_ROOTS_MAX + 1];

    must(outside->read(outside, note, &head, sizeof head));
    must(head.name_bytes == 8 && head.type == 1 && strcmp(head.name, "prairie") == 0);
    must(head.bytes <= sizeof distance && outside->read(outside, at, distance, head.bytes));
    at += (uint64_t)(int64_t)distance[0];
    must(outside->read(outside, at, &layout, sizeof layout));
    must(layout.version == 1 && layout.row_bytes == sizeof(struct outside_name));
    must(layout.root_count + 1 == head.bytes / 4 && layout.row_count <= OUTSIDE_ROWS_MAX);
    for (unsigned i = 0; i < layout.root_count; i++)
        outside->root[i] = note + sizeof head + 4 * (i + 1) + (uint64_t)(int64_t)distance[i + 1];
    must(outside->read(outside, at + sizeof layout, outside->row,
                       layout.row_count * sizeof(struct outside_name)));
    outside->version = layout.version;
    outside->row_count = layout.row_count;
    outside->root_count = layout.root_count;
    memcpy(outside->release, layout.release, sizeof outside->release);
}

/* The address of prairie's note among those of a segment; 0: it is not there. */
SHARED uint64_t outside_note_in(const struct outside *outside, uint64_t at, uint64_t bytes)
{
    while (bytes >= 12) {
        struct {
            uint32_t name_bytes, bytes, type;
            char name[8];
        } head = { 0 };
        uint64_t whole;

        must(outside->read(outside, at, &head, bytes < sizeof head ? bytes : sizeof head));
        if (head.name_bytes == 8 && memcmp(head.name, "prairie", 8) == 0) return at;
        whole = 12 + (head.name_bytes + 3) / 4 * 4 + (head.bytes + 3) / 4 * 4;
        if (whole >= bytes) return 0;
        at += whole;
        bytes -= whole;
    }
    return 0;
}

/* That of the file that is loaded there; 0: it has none. */
SHARED uint64_t outside_note_of(const struct outside *outside, uint64_t base)
{
    ElfW(Ehdr) head;
    ElfW(Phdr) part;
    uint64_t found = 0, bias = base;

    if (!outside->read(outside, base, &head, sizeof head)
        || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return 0;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        if (!outside->read(outside, base + head.e_phoff + i * sizeof part, &part, sizeof part))
            return 0;
        if (part.p_type == PT_LOAD && part.p_offset == 0) bias = base - part.p_vaddr;
    }
    for (unsigned i = 0; i < head.e_phnum && found == 0; i++) {
        must(outside->read(outside, base + head.e_phoff + i * sizeof part, &part, sizeof part));
        if (part.p_type == PT_NOTE)
            found = outside_note_in(outside, bias + part.p_vaddr, part.p_memsz);
    }
    return found;
}

/* ---- counting ---- */

/* A copy of one moment: `lock` says where in the struct its lock is. */
SHARED void outside_copy_locked(struct outside *outside, uint64_t from, char *to, size_t bytes,
                                size_t lock)
{
    static char later[OUTSIDE_BYTES_MAX];
    unsigned tries = 0;
    bool held;

    must(bytes <= sizeof later);
    do {
        if (tries > 3) sleep_ms(1); /* who holds it waits for a processor */
        must(outside->read(outside, from, to, bytes));
        must(outside->read(outside, from, later, bytes));
        held = outside_member(outside, to + lock, "lock.state", 0) != 0
            || outside_member(outside, to + lock, "lock.taken", 0)
                   != outside_member(outside, later + lock, "lock.taken", 0);
    } while (held && ++tries < OUTSIDE_TRIES);
    outside->torn += held;
}

SHARED unsigned outside_classes(const struct outside *outside)
{
    return outside_row(outside, "slab_shape")->count;
}

SHARED uint64_t outside_shape(const struct outside *outside, unsigned class_index, const char *name)
{
    const struct outside_name *row = outside_row(outside, name);

    return outside_value_at(outside,
                            outside_root(outside, "slab_shape")
                                + class_index * outside_row(outside, "slab_shape")->bytes
                                + row->offset,
                            row->bytes);
}

SHARED uint64_t outside_capacity(const struct outside *outside, uint64_t block_bytes)
{
    uint64_t blocks = outside_constant(outside, "MAGAZINE_BYTES_MAX") / block_bytes;
    uint64_t most = outside_constant(outside, "MAGAZINE_BLOCKS_MAX");

    return blocks < 2 ? 2 : blocks < most ? blocks : most;
}

struct outside_count {
    struct outside_figures *figures;
    uint64_t shift, cached_pages, cached_runs, waiting_pages, waiting_runs, takes, staggered;
    uint64_t blocks[256], cached[256];
};

SHARED void outside_count_arena(struct outside *outside, struct outside_count *count, uint64_t at)
{
    static char arena[OUTSIDE_BYTES_MAX];
    uint64_t slab_bytes = 0, purged_bytes, extents;

    outside_copy_locked(outside, at, arena, outside_row(outside, "arena")->bytes,
                        outside_row(outside, "arena.lock")->offset);
    for (unsigned i = 1; i < outside_classes(outside); i++) {
        const char *bin = outside_at(outside, arena, "arena.bin", i);
        const char *flow = outside_at(outside, bin, "class_bin.flow", 0);
        const char *depot = outside_at(outside, bin, "class_bin.depot", 0);
        uint64_t slabs = outside_member(outside, bin, "class_bin.slab_count", 0);
        uint64_t bytes = outside_shape(outside, i, "slab_shape.block_bytes");

        count->blocks[i] += slabs * outside_shape(outside, i, "slab_shape.block_count")
                          - outside_member(outside, bin, "class_bin.slab_free_blocks", 0);
        count->cached[i] += outside_member(outside, outside_at(outside, depot, "depot.full", 0),
                                           "magazine_list.count", 0)
                              * outside_capacity(outside, bytes)
                          + outside_member(outside, depot, "depot.opened_count", 0);
        slab_bytes += slabs * outside_shape(outside, i, "slab_shape.bytes");
        count->figures->fills += outside_member(outside, flow, "class_flow.fills", 0);
        count->figures->drains += outside_member(outside, flow, "class_flow.drains", 0);
    }
    for (unsigned pages = 1; pages < outside_row(outside, "arena.stock")->count; pages++) {
        const char *stock = outside_at(outside, arena, "arena.stock", pages);

        count->figures->dirty += outside_member(outside, stock, "stock.count", 0) * pages
                              << count->shift;
    }
    purged_bytes = outside_member(outside, arena, "arena.purged_pages", 0) << count->shift;
    count->figures->active += slab_bytes - purged_bytes;
    count->figures->clean += purged_bytes;
    count->figures->large +=
        (outside_member(outside, arena, "arena.active_pages", 0) << count->shift) + purged_bytes
        - slab_bytes;
    count->staggered += outside_member(outside, arena, "arena.staggered", 0);
    extents = outside_member(outside, arena, "arena.extents", 0);
    for (unsigned kind = 0; extents != 0 && kind < 2; kind++) {
        const struct outside_name *pages = outside_row(outside, "page_heap.free_pages");
        uint64_t bytes = outside_value_at(outside,
                                          extents + outside_row(outside, "extents.heap")->offset
                                              + pages->offset + kind * pages->bytes,
                                          pages->bytes)
                      << count->shift;

        *(kind == 0 ? &count->figures->dirty : &count->figures->clean) += bytes;
    }
    count->figures->arenas++;
}

SHARED uint64_t outside_least(uint64_t a, uint64_t b) { return a < b ? a : b; }
SHARED uint64_t outside_most(uint64_t a, uint64_t b) { return a > b ? a : b; }

SHARED void outside_count_quarantine(struct outside *outside, struct outside_count *count,
                                     uint64_t number)
{
    static char record[OUTSIDE_BYTES_MAX];
    uint64_t zone_end = outside_value_at(
        outside, outside_root(outside, "meta") + outside_row(outside, "meta.zone_end")->offset,
        outside_row(outside, "meta.zone_end")->bytes);
    uint64_t pages, open_pages;

    if (number == 0) return;
    must(outside->read(outside, zone_end - number * outside_constant(outside, "META_UNIT_BYTES"),
                       record, outside_row(outside, "quarantine")->bytes));
    for (unsigned i = 1; i < outside_classes(outside); i++) {
        const char *held = outside_at(outside, record, "quarantine.held", i);

        count->cached[i] +=
            outside_least(outside_member(outside, held, "held_class.waiting_count", 0),
                          outside_constant(outside, "WAITING_BLOCKS_MAX"));
    }
    pages = outside_member(outside, record, "quarantine.run_pages", 0);
    open_pages =
        outside_least(outside_member(outside, record, "quarantine.all_open_pages", 0), pages);
    count->cached_pages += open_pages;
    count->waiting_pages += pages - open_pages;
    count->waiting_runs += outside_least(outside_member(outside, record, "quarantine.run_count", 0),
                                         outside_constant(outside, "WAITING_RUNS"));
}

SHARED void outside_count_runs(struct outside *outside, struct outside_count *count, uint64_t at)
{
    static char runs[OUTSIDE_BYTES_MAX];

    if (at == 0) return;
    must(outside->read(outside, at, runs, outside_row(outside, "large_cache")->bytes));
    count->cached_pages += (outside_constant(outside, "LARGE_CACHE_BYTES_MAX") >> count->shift)
                         - outside_member(outside, runs, "large_cache.room_pages", 0);
    count->takes += outside_member(outside, runs, "large_cache.takes", 0);
    for (unsigned kind = 0; kind < outside_row(outside, "large_cache.list")->count; kind++) {
        uint64_t kept = outside_member(outside, outside_at(outside, runs, "large_cache.list", kind),
                                       "cached_runs.count", 0);

        count->cached_runs += kept;
        if (kind % 2 != 0) count->staggered -= kept;
    }
}

/* Returns the next one's address. */
SHARED uint64_t outside_count_cache(struct outside *outside, struct outside_count *count,
                                    uint64_t at, bool of_thread)
{
    static char cache[OUTSIDE_BYTES_MAX];
    uint64_t abandoned = outside_constant(outside, "CACHE_ABANDONED");
    const char *front;
    size_t word = outside_row(outside, "magazine.top")->bytes;

    must(outside->read(outside, at, cache, outside_row(outside, "cache")->bytes));
    if (of_thread && (outside_member(outside, cache, "cache.fixed", 0) & abandoned) == 0)
        count->figures->threads++;
    front = outside_at(outside, cache, "cache.front", 0);
    for (unsigned i = 1; i < outside_classes(outside); i++) {
        const char *magazine = outside_at(outside, front, "front.magazine", i);
        const char *spare = outside_at(outside, cache, "cache.spare", i);
        uint64_t top = outside_member(outside, magazine, "magazine.top", 0);
        uint64_t limit = outside_member(outside, magazine, "magazine.limit", 0);
        uint64_t capacity = outside_member(outside, spare, "spare.capacity", 0);
        uint64_t room = (limit - top) / word + outside_member(outside, spare, "spare.closed", 0);

        count->cached[i] += outside_member(outside, spare, "spare.count", 0);
        if (top <= limit && room <= capacity) count->cached[i] += capacity - room;
    }
    count->staggered += outside_member(outside, cache, "cache.staggered", 0);
    outside_count_runs(outside, count, outside_member(outside, cache, "cache.large_cache", 0));
    outside_count_quarantine(outside, count, outside_member(outside, front, "front.quarantine", 0));
    count->figures->refills += outside_member(outside, cache, "cache.refills", 0);
    count->figures->overflows += outside_member(outside, cache, "cache.overflows", 0);
    return outside_member(outside, cache, "cache.next", 0);
}

SHARED void outside_count_caches(struct outside *outside, struct outside_count *count)
{
    struct outside_count before = *count;
    struct outside_figures figures = *count->figures;
    char lock[256], later[256];
    size_t lock_bytes = outside_row(outside, "lock")->bytes;
    unsigned tries = 0;
    bool held;

    must(lock_bytes <= sizeof lock);
    do {
        uint64_t at;

        if (tries > 3) sleep_ms(1);
        *count = before;
        *count->figures = figures;
        must(outside->read(outside, outside_root(outside, "threads_lock"), lock, lock_bytes));
        at = outside_root_value(outside, "first_cache", 0);
        for (unsigned caches = 0; at != 0 && caches < 1000000; caches++)
            at = outside_count_cache(outside, count, at, true);
        must(outside->read(outside, outside_root(outside, "threads_lock"), later, lock_bytes));
        held = outside_member(outside, lock, "lock.state", 0) != 0
            || outside_member(outside, lock, "lock.taken", 0)
                   != outside_member(outside, later, "lock.taken", 0);
    } while (held && ++tries < OUTSIDE_TRIES);
    outside->torn += held;
    for (unsigned i = 0; i < outside_root_value(outside, "explicit_cache_end", 0); i++) {
        uint64_t at = outside_root_value(outside, "explicit_caches", i);

        if (at != 0) (void)outside_count_cache(outside, count, at, false);
    }
}

SHARED void outside_count_pages(struct outside *outside, struct outside_count *count)
{
    static char heap[OUTSIDE_BYTES_MAX], part[OUTSIDE_BYTES_MAX];
    const struct outside_name *root = outside_row(outside, "page_heap");
    struct outside_figures *figures = count->figures;
    uint64_t large_pages = 0, large_count = 0, gone, open_bytes, opened, records;
    uint64_t open_pages, clean_pages, taken_most = 0, page_bytes, map_bytes;

    for (unsigned i = 0; i < root->count; i++) {
        outside_copy_locked(outside, outside_root(outside, "page_heap") + i * root->bytes, heap,
                            root->bytes, outside_row(outside, "page_heap.lock")->offset);
        figures->dirty += outside_member(outside, heap, "page_heap.free_pages", 0) << count->shift;
        figures->clean += outside_member(outside, heap, "page_heap.free_pages", 1) << count->shift;
        large_pages += outside_member(outside, heap, "page_heap.large_pages", 0);
        large_count += outside_member(outside, heap, "page_heap.large_leases", 0)
                     - outside_member(outside, heap, "page_heap.large_returns", 0);
        figures->leases += outside_member(outside, heap, "page_heap.leases", 0);
        figures->returns += outside_member(outside, heap, "page_heap.returns", 0);
        open_pages = outside_member(outside, heap, "page_heap.open_pages", 0);
        clean_pages = outside_member(outside, heap, "page_heap.free_pages", 1);
        taken_most += outside_most(outside_member(outside, heap, "page_heap.taken_most", 0),
                                   open_pages - outside_least(clean_pages, open_pages));
    }
    figures->dirty += count->cached_pages << count->shift;
    gone = outside_least(count->cached_pages + count->waiting_pages, large_pages);
    figures->clean += outside_least(count->waiting_pages, gone) << count->shift;
    figures->large += (large_pages - gone) << count->shift;
    figures->large_count +=
        large_count - outside_least(count->cached_runs + count->waiting_runs, large_count);

    must(outside->read(outside, outside_root(outside, "space"), part,
                       outside_row(outside, "space")->bytes));
    open_bytes = outside_member(outside, part, "space.open_bytes", 0);
    must(outside->read(outside, outside_root(outside, "class_map"), part,
                       outside_row(outside, "class_map")->bytes));
    page_bytes = (uint64_t)1 << count->shift;
    map_bytes = outside_row(outside, "page")->bytes;
    if (outside_member(outside, part, "class_map.mask", 0) != 0)
        map_bytes += page_bytes >> outside_constant(outside, "CLASS_MAP_SHIFT");
    figures->metadata = taken_most * map_bytes;
    figures->mapped =
        outside_most(open_bytes >> count->shift, taken_most) * map_bytes - figures->metadata;
    must(outside->read(outside, outside_root(outside, "commit"), part,
                       outside_row(outside, "commit")->bytes));
    records = outside_member(outside, part, "commit.record_bytes", 0);
    figures->metadata += records;
    must(outside->read(outside, outside_root(outside, "meta"), part,
                       outside_row(outside, "meta")->bytes));
    opened = outside_member(outside, part, "meta.zone_end", 0)
           - outside_member(outside, part, "meta.open_base", 0);
    figures->mapped += opened - records;
    root = outside_row(outside, "purge");
    figures->purged = 0;
    for (uint32_t i = 0; i < root->count; i++) {
        must(outside->read(outside, outside_root(outside, "purge") + i * root->bytes, part,
                           root->bytes));
        figures->purged += outside_member(outside, part, "purge.purged_pages", 0) << count->shift;
    }
}

/* Blocks that are held between guards, which are of no arena. */
SHARED void outside_count_guarded(struct outside *outside, struct outside_count *count)
{
    static char numbers[OUTSIDE_BYTES_MAX];

    must(outside->read(outside, outside_root(outside, "guarded_numbers"), numbers,
                       outside_row(outside, "guarded_numbers")->bytes));
    for (unsigned i = 1; i < outside_classes(outside); i++) {
        uint64_t held = outside_member(outside, numbers, "guarded_numbers.held", i);

        count->blocks[i] += held;
        count->figures->active += held << count->shift;
    }
}

/* Bytes that are kept for when memory is short. */
SHARED uint64_t outside_reserve(struct outside *outside, uint64_t shift)
{
    const struct outside_name *pages = outside_row(outside, "reserve.pages");

    return outside_value_at(outside, outside_root(outside, "reserve") + pages->offset, pages->bytes)
        << shift;
}

SHARED struct outside_figures outside_count(struct outside *outside)
{
    static struct outside_count count;
    struct outside_figures figures = { 0 };

    count = (struct outside_count){ .figures = &figures };
    count.shift = outside_value_at(
        outside, outside_root(outside, "space") + outside_row(outside, "space.page_shift")->offset,
        outside_row(outside, "space.page_shift")->bytes);
    if (count.shift == 0) return figures; /* nobody has called yet */
    must(outside_classes(outside) <= 256);
    for (unsigned i = 0; i < outside_root_value(outside, "arena_end", 0); i++) {
        uint64_t at = outside_root_value(outside, "arenas", i);

        if (at != 0) outside_count_arena(outside, &count, at);
    }
    outside_count_caches(outside, &count);
    outside_count_pages(outside, &count);
    outside_count_guarded(outside, &count);
    for (unsigned i = 1; i < outside_classes(outside); i++) {
        uint64_t bytes = outside_shape(outside, i, "slab_shape.block_bytes");

        figures.small +=
            (count.blocks[i] - outside_least(count.cached[i], count.blocks[i])) * bytes;
        figures.cached += count.cached[i] * bytes;
    }
    figures.active += figures.large;
    count.staggered += outside_root_value(outside, "large_staggered_before", 0);
    figures.large -= (uint32_t)count.staggered * outside_constant(outside, "PAGE_STAGGERED");
    figures.resident =
        figures.active + figures.dirty + outside_reserve(outside, count.shift) + figures.metadata;
    figures.mapped += figures.resident;
    return figures;
}

#endif
