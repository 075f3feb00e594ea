/* jemalloc_probes_test.cpp - how C++ programs find out at run time that jemalloc serves them, and what they do then:
 * weak functions, counters that move, an arena whose memory is kept out of core files, chained hooks. */
/* SPDX-License-Identifier: MIT */
#include <cerrno>
#include <cstdint>

#include "checks.h"

#include <jemalloc/jemalloc.h>
#include <sys/mman.h>

#include <atomic>
#include <vector>

/* Declared once more, as weak, with the macros of the header in the places that jemalloc has them in. */
#define WEAK JEMALLOC_ATTR(weak)
extern "C" {
JEMALLOC_EXPORT void *JEMALLOC_NOTHROW mallocx(size_t, int) JEMALLOC_ALLOC_SIZE(1) WEAK;
JEMALLOC_EXPORT void *JEMALLOC_NOTHROW rallocx(void *, size_t, int) JEMALLOC_ALLOC_SIZE(2) WEAK;
JEMALLOC_EXPORT size_t JEMALLOC_NOTHROW xallocx(void *, size_t, size_t, int) WEAK;
JEMALLOC_EXPORT size_t JEMALLOC_NOTHROW sallocx(const void *, int) JEMALLOC_ATTR(pure) WEAK;
JEMALLOC_EXPORT void JEMALLOC_NOTHROW dallocx(void *, int) WEAK;
JEMALLOC_EXPORT void JEMALLOC_NOTHROW sdallocx(void *, size_t, int) WEAK;
JEMALLOC_EXPORT size_t JEMALLOC_NOTHROW nallocx(size_t, int) JEMALLOC_ATTR(pure) WEAK;
JEMALLOC_EXPORT int JEMALLOC_NOTHROW mallctl(const char *, void *, size_t *, void *, size_t) WEAK;
JEMALLOC_EXPORT int JEMALLOC_NOTHROW mallctlnametomib(const char *, size_t *, size_t *) WEAK;
JEMALLOC_EXPORT int JEMALLOC_NOTHROW mallctlbymib(const size_t *, size_t, void *, size_t *, void *,
                                                  size_t) WEAK;
JEMALLOC_EXPORT void JEMALLOC_NOTHROW malloc_stats_print(void (*)(void *, const char *), void *,
                                                         const char *) WEAK;
JEMALLOC_EXPORT size_t JEMALLOC_NOTHROW malloc_usable_size(JEMALLOC_USABLE_SIZE_CONST void *)
    JEMALLOC_CXX_THROW WEAK;
}

static void all_functions_are_there(const struct check *)
{
    assert_true(mallocx && rallocx && xallocx && sallocx && dallocx && sdallocx && nallocx);
    assert_true(mallctl && mallctlnametomib && mallctlbymib && malloc_stats_print);
    assert_non_null(dlsym(RTLD_DEFAULT, "malloc_conf"));
    assert_non_null(dlsym(RTLD_DEFAULT, "malloc_message"));
    assert_non_null(dlsym(RTLD_DEFAULT, "malloc_usable_size"));
}

/* A counter that moves with each call proves that malloc itself is jemalloc's. */
static void a_counter_moves(const struct check *)
{
    uint64_t *counter = nullptr;
    size_t length = sizeof counter;
    assert_int_equal(mallctl("thread.allocatedp", &counter, &length, nullptr, 0), 0);
    assert_non_null(counter);
    assert_int_equal(length, sizeof counter);
    for (int i = 0; i < 3; i++) {
        uint64_t before = *counter;
        void *block = call.malloc(1);
        assert_true(*counter > before);
        call.free(block);
    }
}

static void version_looks_like_jemalloc(const struct check *)
{
    const char *version = nullptr;
    size_t length = sizeof version;
    assert_int_equal(mallctl("version", &version, &length, nullptr, 0), 0);
    assert_int_equal(strncmp(version, "5.3.", 4), 0);
}

static void sizes_are_good(const struct check *)
{
    std::vector<char> vector;
    for (size_t bytes = 1; bytes < 100000; bytes += 37) {
        size_t good = nallocx(bytes, 0);
        vector.reserve(good);
        assert_true(good >= bytes);
    }
    void *block = mallocx(8192, 0);
    assert_true(xallocx(block, 8192, 0, 0) >= 8192);
    sdallocx(block, 8192, 0);
}

/* ---- an arena whose memory is left out of core files ---- */

static extent_alloc_t *original_alloc;
static std::atomic<unsigned> advised;
static extent_hooks_t nodump_hooks;

static void *nodump_alloc(extent_hooks_t *hooks, void *new_address, size_t size, size_t align,
                          bool *zero, bool *commit, unsigned arena)
{
    void *base = original_alloc(hooks, new_address, size, align, zero, commit, arena);
    if (base != nullptr && madvise(base, size, MADV_DONTDUMP) == 0) advised++;
    return base;
}

static unsigned create_arena()
{
    unsigned arena = 0;
    size_t length = sizeof arena;
    assert_int_equal(mallctl("arenas.create", &arena, &length, nullptr, 0), 0);
    return arena;
}

static std::string of_arena(unsigned arena, const char *leaf)
{
    return "arena." + std::to_string(arena) + "." + leaf;
}

static extent_hooks_t *hooks_of(unsigned arena)
{
    extent_hooks_t *hooks = nullptr;
    size_t length = sizeof hooks;
    std::string name = of_arena(arena, "extent_hooks");
    assert_int_equal(mallctl(name.c_str(), &hooks, &length, nullptr, 0), 0);
    return hooks;
}

static void hooks_are_chained(const struct check *)
{
    unsigned arena = create_arena(), cache = 0;
    size_t length = sizeof cache;
    extent_hooks_t *hooks = hooks_of(arena), *replacement = &nodump_hooks, *before = nullptr;
    std::string name = of_arena(arena, "extent_hooks");
    std::vector<void *> blocks;

    assert_ptr_equal(hooks_of(0), hooks); /* one default table for all */
    assert_non_null(hooks->alloc);
    original_alloc = hooks->alloc;
    nodump_hooks = *hooks;
    nodump_hooks.alloc = nodump_alloc;
    length = sizeof before;
    assert_int_equal(mallctl(name.c_str(), &before, &length, &replacement, sizeof replacement), 0);
    assert_ptr_equal(before, hooks);
    assert_ptr_equal(hooks_of(arena), &nodump_hooks);
    length = sizeof cache;
    assert_int_equal(mallctl("tcache.create", &cache, &length, nullptr, 0), 0);
    int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE(cache);
    for (size_t bytes = 16; bytes < 200000; bytes = bytes * 5 / 4) {
        void *block = mallocx(bytes, flags);
        assert_non_null(block);
        memset(block, 1, bytes);
        blocks.push_back(block);
    }
    assert_true(advised > 0);
    for (void *block : blocks) dallocx(block, MALLOCX_TCACHE(cache));
    assert_int_equal(mallctl("tcache.destroy", nullptr, nullptr, &cache, sizeof cache), 0);
    assert_int_equal(mallctl(of_arena(arena, "destroy").c_str(), nullptr, nullptr, nullptr, 0), 0);
}

/* ---- an arena in memory of the program's own ---- */

static struct {
    char *base;
    size_t used, bytes;
} pool;

static void *pool_alloc(extent_hooks_t *, void *new_address, size_t size, size_t align, bool *zero,
                        bool *commit, unsigned)
{
    size_t at = (pool.used + align - 1) / align * align;
    if (new_address != nullptr || at + size > pool.bytes) return nullptr;
    pool.used = at + size;
    *zero = *commit = true;
    return pool.base + at;
}

static void hooks_are_replaced(const struct check *)
{
    extent_hooks_t hooks = *hooks_of(0), *table = &hooks;
    unsigned arena = 0;
    size_t length = sizeof arena;

    pool.bytes = 64 << 20;
    pool.base = static_cast<char *>(mmap(nullptr, pool.bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    assert_true(pool.base != MAP_FAILED);
    hooks.alloc = pool_alloc;
    assert_int_equal(mallctl("arenas.create", &arena, &length, &table, sizeof table), 0);
    for (int round = 0; round < 3; round++) {
        for (size_t bytes = 8; bytes < 1000000; bytes = bytes * 3 / 2) {
            char *block = static_cast<char *>(
                mallocx(bytes, MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE | MALLOCX_ZERO));
            assert_true(block >= pool.base && block < pool.base + pool.bytes);
            for (size_t at = 0; at < bytes; at += 64) assert_int_equal(block[at], 0);
            memset(block, 0x55, bytes);
            call.free(block);
        }
    }
    assert_null(mallocx(100 << 20, MALLOCX_ARENA(arena)));
    assert_int_equal(mallctl(of_arena(arena, "reset").c_str(), nullptr, nullptr, nullptr, 0), 0);
    assert_int_equal(mallctl(of_arena(arena, "destroy").c_str(), nullptr, nullptr, nullptr, 0), 0);
    munmap(pool.base, pool.bytes);
}

static void automatic_arenas_take_hooks(const struct check *)
{
    static extent_hooks_t hooks;
    extent_hooks_t *usual = hooks_of(0), *table = usual; /* what a program read and left alone */

    hooks = *usual;
    assert_int_equal(mallctl("arena.0.extent_hooks", nullptr, nullptr, &table, sizeof table), 0);
    assert_ptr_equal(hooks_of(0), usual);
    table = &hooks;
    assert_int_equal(mallctl("arena.0.extent_hooks", nullptr, nullptr, &table, sizeof table), 0);
    assert_ptr_equal(hooks_of(0), &hooks);
    call.free(memset(mallocx(100000, MALLOCX_ARENA(0)), 1, 100000));
    assert_int_equal(mallctl("arena.0.extent_hooks", nullptr, nullptr, &usual, sizeof usual), 0);
    assert_ptr_equal(hooks_of(0), usual);
}

static void add(void (*run)(const struct check *), const char *name)
{
    struct check check = {};
    check.run = run;
    check_add(check, "%s", name);
}

int main()
{
    checks_begin();
    add(all_functions_are_there, "all functions are there");
    add(a_counter_moves, "thread.allocatedp moves with each call");
    add(version_looks_like_jemalloc, "the version is one of jemalloc's");
    add(sizes_are_good, "good sizes for containers");
    add(hooks_are_chained, "extent hooks are chained");
    add(hooks_are_replaced, "extent hooks are replaced");
    add(automatic_arenas_take_hooks, "automatic arenas take hooks");
    return checks_run("contract jemalloc_probes");
}
