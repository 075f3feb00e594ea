/* hosts.c - the hooks themselves, and the books of what they gave.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HOSTS_MAX = 4 * PLAYERS_MAX * ARENAS_OWN, EXTENTS_MAX = 4096 };
enum { ASKED_BYTES_MAX = 16 * 1024 * 1024, BORROWED_BYTES_MIN = 64 * 1024 };

enum source { SOURCE_MAP, SOURCE_BORROW, SOURCE_DEFAULT };
static const char *const source_words[] = { "maps", "borrows", "chains" };

struct host {
    extent_hooks_t hooks; /* first: what a hook gets is the host */
    bool is_used;
    enum source source;
    unsigned refuse_alloc, refuse_dalloc, refuse_purge; /* percent */
    bool splits, merges;                                /* else these refuse */
    bool commits_later, says_zero, nests;
    char words[180];
};

struct extent {
    char *base; /* NULL: no entry */
    size_t bytes;
    unsigned arena;
    enum source source;
    size_t usable_bytes; /* of the block that it is, if borrowed */
    bool was_offered;
    const struct player
        *owner; /* of the arena: its number may be another player's at once when it is destroyed */
};

static struct host hosts[HOSTS_MAX];
static struct extent books[EXTENTS_MAX];
static unsigned books_end; /* no entry at or above */
static pthread_mutex_t books_lock = PTHREAD_MUTEX_INITIALIZER;
static extent_hooks_t *defaults;
static bool consenting;

static bool refuses(unsigned percent) { return !consenting && chance(percent); }

/* ---- books ---- */

static struct extent *entry_of(const void *base)
{
    for (unsigned i = 0; i < books_end; i++)
        if (books[i].base == base) return &books[i];
    return NULL;
}

static void enter(char *base, size_t bytes, unsigned arena, enum source source, size_t usable)
{
    pthread_mutex_lock(&books_lock);
    unsigned i = 0;
    while (i < books_end && books[i].base != NULL) i++;
    if (i == EXTENTS_MAX) violation("the books of the test are full");
    if (i == books_end) books_end++;
    books[i] = (struct extent){ base, bytes, arena, source, usable, false, me };
    pthread_mutex_unlock(&books_lock);
}

/* B1 */
static struct extent take_entry(const char *hook, const void *base, size_t bytes, unsigned arena,
                                bool strike)
{
    pthread_mutex_lock(&books_lock);
    struct extent *entry = entry_of(base), copy = { 0 };
    if (entry != NULL) {
        copy = *entry;
        if (strike) entry->base = NULL;
    }
    pthread_mutex_unlock(&books_lock);
    if (copy.base == NULL) violation("%s of %p, which no hook gave", hook, base);
    if (copy.bytes != bytes)
        violation("%s of %p with %zu bytes, which has %zu", hook, base, bytes, copy.bytes);
    if (copy.arena != arena)
        violation("%s of %p for arena %u, which is of arena %u", hook, base, arena, copy.arena);
    return copy;
}

/* B2 */
static void check_nobody_in(const char *hook, const char *base, size_t bytes)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        const struct block *block = &me->slot[i].block;
        if (block->base == NULL) continue;
        if ((char *)block->base < base + bytes && (char *)block->base + block->usable_bytes > base)
            violation("%s of %p with %zu bytes, where block %p of %zu bytes lives", hook,
                      (const void *)base, bytes, (void *)block->base, block->requested_bytes);
    }
}

int books_arena_of(const void *address)
{
    int arena = ARENA_AUTOMATIC;
    pthread_mutex_lock(&books_lock);
    for (unsigned i = 0; i < books_end && arena == ARENA_AUTOMATIC; i++)
        if (books[i].base != NULL && (uintptr_t)address - (uintptr_t)books[i].base < books[i].bytes)
            arena = (int)books[i].arena;
    pthread_mutex_unlock(&books_lock);
    return arena;
}

static size_t books_bytes(bool foreign)
{
    size_t bytes = 0;
    pthread_mutex_lock(&books_lock);
    for (unsigned i = 0; i < books_end; i++)
        if (books[i].base != NULL && (books[i].source == SOURCE_MAP) == foreign)
            bytes += books[i].bytes;
    pthread_mutex_unlock(&books_lock);
    return bytes;
}

size_t books_foreign_bytes(void) { return books_bytes(true); }
size_t books_borrowed_bytes(void) { return books_bytes(false); }

static void give_up_extent(const struct extent *extent)
{
    if (extent->source == SOURCE_MAP) {
        munmap(extent->base, extent->bytes);
    } else if (extent->source == SOURCE_BORROW) {
        me->counted -= (int64_t)extent->usable_bytes;
        free(extent->base);
    }
}

void books_close(unsigned arena, bool strict)
{
    for (unsigned i = 0; i < books_end; i++) {
        struct extent extent = books[i];
        if (extent.base == NULL || extent.arena != arena || extent.owner != me) continue;
        if (strict && !extent.was_offered)
            violation("arena %u was destroyed, and extent %p of %zu bytes offered to nobody", arena,
                      (void *)extent.base, extent.bytes);
        pthread_mutex_lock(&books_lock);
        books[i].base = NULL;
        pthread_mutex_unlock(&books_lock);
        if (extent.source == SOURCE_DEFAULT)
            (void)defaults->dalloc(defaults, extent.base, extent.bytes, true, arena);
        else give_up_extent(&extent);
    }
}

/* ---- the hooks ---- */

static char *map_aligned(size_t bytes, size_t align, int rights)
{
    size_t all = bytes + align;
    char *base = mmap(NULL, all, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return NULL;
    size_t skip = (0 - (uintptr_t)base) & (align - 1);
    if (skip != 0) munmap(base, skip);
    if (all - skip > bytes) munmap(base + skip + bytes, all - skip - bytes);
    return base + skip;
}

static void nest(struct host *host)
{
    if (host->nests && !consenting && me->depth < 3 && chance(40)) step_nested();
}

static void *refuse_alloc(void)
{
    me->refused_by_hooks++;
    return NULL;
}

static void *host_alloc(extent_hooks_t *hooks, void *new_address, size_t bytes, size_t align,
                        bool *zero, bool *commit, unsigned arena)
{
    struct host *host = (struct host *)hooks;
    char *base = NULL;
    size_t usable = 0;

    if (bytes == 0 || bytes % world.page_bytes != 0 || align < world.page_bytes
        || (align & (align - 1)) != 0)
        violation("alloc of %zu bytes aligned to %zu", bytes, align);
    if (!host->is_used) violation("alloc of a host that was dropped");
    nest(host);
    if (new_address != NULL || bytes > ASKED_BYTES_MAX || refuses(host->refuse_alloc))
        return refuse_alloc();
    if (host->source == SOURCE_DEFAULT) {
        base = defaults->alloc(defaults, NULL, bytes, align, zero, commit, arena);
        if (base == NULL) return refuse_alloc();
        enter(base, bytes, arena, SOURCE_DEFAULT, 0);
        return base;
    }
    if (host->source == SOURCE_BORROW && bytes >= BORROWED_BYTES_MIN && align == world.page_bytes) {
        base = aligned_alloc(align, bytes);
        if (base == NULL) return refuse_alloc();
        usable = malloc_usable_size(base);
        me->counted += (int64_t)usable;
        enter(base, bytes, arena, SOURCE_BORROW, usable);
    } else {
        bool later = host->commits_later;
        base = map_aligned(bytes, align, later ? PROT_NONE : PROT_READ | PROT_WRITE);
        if (base == NULL) return refuse_alloc();
        *commit = !later;
        enter(base, bytes, arena, SOURCE_MAP, 0);
        if (!later && host->says_zero) {
            *zero = true;
            return base;
        }
        if (later) return base;
    }
    for (size_t at = 0; at < bytes; at += world.page_bytes) memset(base + at, 0xDB, 64);
    return base;
}

static bool host_dalloc(extent_hooks_t *hooks, void *base, size_t bytes, bool committed,
                        unsigned arena)
{
    struct host *host = (struct host *)hooks;

    if (!host->is_used) violation("dalloc of a host that was dropped");
    nest(host);
    take_entry("dalloc", base, bytes, arena, false);
    check_nobody_in("dalloc", base, bytes);
    pthread_mutex_lock(&books_lock);
    entry_of(base)->was_offered = true;
    pthread_mutex_unlock(&books_lock);
    if (refuses(host->refuse_dalloc)) return true;
    struct extent extent = take_entry("dalloc", base, bytes, arena, true);
    if (extent.source != SOURCE_DEFAULT) give_up_extent(&extent);
    else if (defaults->dalloc(defaults, base, bytes, committed, arena)) {
        enter(base, bytes, arena, SOURCE_DEFAULT, 0);
        violation("the default dalloc refuses what the default alloc gave: %p, %zu bytes", base,
                  bytes);
    }
    return false;
}

static void host_destroy(extent_hooks_t *hooks, void *base, size_t bytes, bool committed,
                         unsigned arena)
{
    struct extent extent = take_entry("destroy", base, bytes, arena, true);

    (void)hooks;
    check_nobody_in("destroy", base, bytes);
    if (extent.source != SOURCE_DEFAULT) give_up_extent(&extent);
    else defaults->destroy(defaults, base, bytes, committed, arena);
}

static bool host_commit(extent_hooks_t *hooks, void *base, size_t bytes, size_t offset,
                        size_t length, unsigned arena)
{
    struct host *host = (struct host *)hooks;

    take_entry("commit", base, bytes, arena, false);
    if (offset + length > bytes || length == 0)
        violation("commit of %zu bytes at %zu of %zu", length, offset, bytes);
    if (refuses(host->refuse_alloc)
        || mprotect((char *)base + offset, length, PROT_READ | PROT_WRITE) != 0) {
        me->refused_by_hooks++;
        return true;
    }
    return false;
}

static bool host_decommit(extent_hooks_t *hooks, void *base, size_t bytes, size_t offset,
                          size_t length, unsigned arena)
{
    (void)hooks;
    take_entry("decommit", base, bytes, arena, false);
    if (offset + length > bytes || length == 0)
        violation("decommit of %zu bytes at %zu of %zu", length, offset, bytes);
    return true;
}

static bool purge(extent_hooks_t *hooks, const char *name, char *base, size_t bytes, size_t offset,
                  size_t length, unsigned arena)
{
    struct host *host = (struct host *)hooks;

    take_entry(name, base, bytes, arena, false);
    if (offset + length > bytes || length == 0 || offset % world.page_bytes != 0
        || length % world.page_bytes != 0)
        violation("%s of %zu bytes at %zu of %zu", name, length, offset, bytes);
    check_nobody_in(name, base + offset, length);
    nest(host);
    return refuses(host->refuse_purge);
}

static bool host_purge_lazy(extent_hooks_t *hooks, void *base, size_t bytes, size_t offset,
                            size_t length, unsigned arena)
{
    if (purge(hooks, "purge_lazy", base, bytes, offset, length, arena)) return true;
    for (size_t at = 0; at < length; at += world.page_bytes)
        memset((char *)base + offset + at, 0xEE, 64);
    return false;
}

static bool host_purge_forced(extent_hooks_t *hooks, void *base, size_t bytes, size_t offset,
                              size_t length, unsigned arena)
{
    if (purge(hooks, "purge_forced", base, bytes, offset, length, arena)) return true;
    return madvise((char *)base + offset, length, MADV_DONTNEED) != 0;
}

static bool host_split(extent_hooks_t *hooks, void *base, size_t bytes, size_t bytes_a,
                       size_t bytes_b, bool committed, unsigned arena)
{
    (void)committed;
    take_entry("split", base, bytes, arena, false);
    if (bytes_a + bytes_b != bytes || bytes_a == 0 || bytes_b == 0)
        violation("split of %zu bytes into %zu and %zu", bytes, bytes_a, bytes_b);
    return !((struct host *)hooks)->splits;
}

static bool host_merge(extent_hooks_t *hooks, void *base_a, size_t bytes_a, void *base_b,
                       size_t bytes_b, bool committed, unsigned arena)
{
    (void)committed;
    take_entry("merge", base_a, bytes_a + bytes_b, arena, false);
    if ((char *)base_a + bytes_a != base_b) violation("merge of %p and %p", base_a, base_b);
    return !((struct host *)hooks)->merges;
}

/* ---- hosts ---- */

/* A child must not find a lock held by a thread that it has not got. */
static void lock_all(void)
{
    pthread_mutex_lock(&books_lock);
    for (unsigned i = 0; i < PLAYERS_MAX; i++) pthread_mutex_lock(&world.player[i].box_lock);
}

static void unlock_all(void)
{
    for (unsigned i = 0; i < PLAYERS_MAX; i++) pthread_mutex_unlock(&world.player[i].box_lock);
    pthread_mutex_unlock(&books_lock);
}

void hosts_start(void)
{
    pthread_atfork(lock_all, unlock_all, unlock_all);
    if (number_of("arena.0.extent_hooks", sizeof defaults, &defaults) != 0 || defaults == NULL)
        violation("there is no default table of hooks");
}

void hosts_consent(void) { consenting = true; }
extent_hooks_t *host_hooks(struct host *host) { return &host->hooks; }
const char *host_words(const struct host *host) { return host != NULL ? host->words : "default"; }

static void describe(struct host *host)
{
    const extent_hooks_t *hooks = &host->hooks;
    snprintf(host->words, sizeof host->words, "%s refuse:%u/%u/%u%s%s%s%s%s%s%s%s%s%s%s%s",
             source_words[host->source], host->refuse_alloc, host->refuse_dalloc,
             host->refuse_purge, host->splits ? "" : " no-split", host->merges ? "" : " no-merge",
             host->commits_later ? " commits-later" : "", host->says_zero ? " zero" : "",
             host->nests ? " nests" : "", hooks->dalloc == NULL ? " dalloc:0" : "",
             hooks->destroy == NULL ? " destroy:0" : "", hooks->commit == NULL ? " commit:0" : "",
             hooks->purge_forced == NULL ? " forced:0" : "",
             hooks->purge_lazy == NULL ? " lazy:0" : "", hooks->split == NULL ? " split:0" : "",
             hooks->merge == NULL ? " merge:0" : "");
}

struct host *host_make(void)
{
    unsigned share = HOSTS_MAX / PLAYERS_MAX, first = me->index * share;
    struct host *host = NULL;
    for (unsigned i = first; i < first + share && host == NULL; i++)
        if (!hosts[i].is_used) host = &hosts[i];
    if (host == NULL) return NULL;

    *host = (struct host){ .is_used = true };
    host->hooks = (extent_hooks_t){ host_alloc,        host_dalloc,   host_destroy,
                                    host_commit,       host_decommit, host_purge_lazy,
                                    host_purge_forced, host_split,    host_merge };
    unsigned kind = below(10);
    host->source = kind < 6 ? SOURCE_MAP : kind < 8 ? SOURCE_BORROW : SOURCE_DEFAULT;
    if (chance(50)) {
        host->refuse_alloc = below(60);
        host->refuse_dalloc = below(60);
        host->refuse_purge = below(60);
    }
    host->splits = chance(80);
    host->merges = chance(80);
    host->nests = chance(40);
    host->commits_later = host->source == SOURCE_MAP && chance(15);
    host->says_zero = chance(30);
    if (chance(40)) {
        /* What was borrowed and is lost would be a block of the program's that it does not know. */
        if (chance(30) && host->source != SOURCE_BORROW) host->hooks.dalloc = NULL;
        if (chance(30)) host->hooks.destroy = NULL;
        if (chance(30) && !host->commits_later) host->hooks.commit = NULL;
        if (chance(30)) host->hooks.decommit = NULL;
        if (chance(30)) host->hooks.purge_lazy = NULL;
        if (chance(30)) host->hooks.purge_forced = NULL;
        if (chance(20)) host->hooks.split = NULL;
        if (chance(20)) host->hooks.merge = NULL;
    }
    describe(host);
    return host;
}

void host_drop(struct host *host)
{
    if (host != NULL) host->is_used = false;
}
