/* contract.c - what the C library's heap functions promise on Windows, on prairie's blocks. */
/* SPDX-License-Identifier: MIT */
#include "windows_test.h"

#include <direct.h>
#include <errno.h>
#include <psapi.h>
#include <wchar.h>

/* Not all import libraries have these, nor all C libraries; NULL: not this one. */
static void *(*recalloc_call)(void *block, size_t count, size_t size);
static void *(*aligned_recalloc_call)(void *block, size_t count, size_t size, size_t align);
static void *(*offset_recalloc_call)(void *block, size_t count, size_t size, size_t align,
                                     size_t offset);
static size_t (*aligned_msize_call)(void *block, size_t align, size_t offset);

/* The C library that this program calls; zig's is the universal one. */
static HMODULE c_library(void)
{
    HMODULE universal = GetModuleHandleW(L"ucrtbase.dll");

#if defined(_UCRT)
    return universal;
#else
    return GetModuleHandleW(L"msvcrt.dll") != NULL ? GetModuleHandleW(L"msvcrt.dll") : universal;
#endif
}

static void look_up(void)
{
    recalloc_call = (void *)GetProcAddress(c_library(), "_recalloc");
    aligned_recalloc_call = (void *)GetProcAddress(c_library(), "_aligned_recalloc");
    offset_recalloc_call = (void *)GetProcAddress(c_library(), "_aligned_offset_recalloc");
    aligned_msize_call = (void *)GetProcAddress(c_library(), "_aligned_msize");
}

static const size_t sizes[] = { 0,
                                1,
                                7,
                                8,
                                15,
                                16,
                                17,
                                24,
                                31,
                                48,
                                100,
                                112,
                                113,
                                127,
                                128,
                                129,
                                255,
                                256,
                                1000,
                                1023,
                                1024,
                                1025,
                                4095,
                                4096,
                                14335,
                                14336,
                                14337,
                                65536,
                                100000,
                                1 << 20,
                                (1 << 20) + 1,
                                40 << 20 };
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void stamp(unsigned char *block, size_t bytes, unsigned key)
{
    for (size_t i = 0; i<bytes; i += bytes> 4096 ? 509 : 1) block[i] = (unsigned char)(key + i);
    if (bytes > 0) block[bytes - 1] = (unsigned char)(key + bytes - 1);
}

static bool holds(const unsigned char *block, size_t bytes, unsigned key)
{
    for (size_t i = 0; i<bytes; i += bytes> 4096 ? 509 : 1)
        if (block[i] != (unsigned char)(key + i)) return false;
    return bytes == 0 || block[bytes - 1] == (unsigned char)(key + bytes - 1);
}

static void every_size(void)
{
    for (unsigned i = 0; i < SIZES; i++) {
        unsigned char *one = malloc(sizes[i]), *two = calloc(1, sizes[i]),
                      *three = malloc(sizes[i]);

        must(one != NULL && two != NULL && three != NULL && one != three);
        must(sizes[i] < 16 || (((uintptr_t)one | (uintptr_t)two) & 15) == 0);
        must(_msize(one) >= sizes[i] && is_zero(two, _msize(two)));
        stamp(one, _msize(one), 1);
        stamp(two, _msize(two), 2);
        stamp(three, _msize(three), 3);
        must(holds(one, _msize(one), 1) && holds(two, _msize(two), 2));
        free(two);
        must(holds(three, _msize(three), 3));
        free(one);
        free(three);
    }
}

static void every_pair_of_sizes(void)
{
    for (unsigned i = 0; i < SIZES; i++)
        for (unsigned j = 0; j < SIZES; j++) {
            size_t least = sizes[i] < sizes[j] ? sizes[i] : sizes[j];
            unsigned char *block = malloc(sizes[i]);

            if (sizes[j] == 0) {
                must(realloc(block, 0) == NULL);
                continue;
            }
            /* What is stamped of a long block differs with its length. */
            if (least > 4096) least = 4096;
            stamp(block, least, 5);
            block = realloc(block, sizes[j]);
            must(block != NULL && holds(block, least, 5) && _msize(block) >= sizes[j]);
            free(block);
        }
}

static void refusals(void)
{
    volatile size_t huge = SIZE_MAX / 2, most = SIZE_MAX;
    void *block = malloc(10);

    errno = 0;
    must(malloc(huge) == NULL && errno == ENOMEM);
    errno = 0;
    must(malloc(most) == NULL && errno == ENOMEM);
    errno = 0;
    must(calloc(huge, 16) == NULL && errno == ENOMEM);
    errno = 0;
    must(realloc(block, huge) == NULL && errno == ENOMEM);
    errno = 0;
    must(recalloc_call == NULL || recalloc_call(block, huge, 16) == NULL);
    errno = 0;
    must(_aligned_malloc(huge, 64) == NULL && errno == ENOMEM);
    errno = 5;
    SetLastError(1234);
    free(block);
    free(NULL);
    must(errno == 5 && GetLastError() == 1234);
}

static void expands_in_place_only(void)
{
    char *small = malloc(100), *large = malloc(100000);

    must(_expand(small, 112) == small && _expand(small, 10) == small);
    must(_expand(small, 5000) == NULL);
    must(_expand(large, 90000) == large);
    must(_expand(large, 100000) == large || _msize(large) < 100000);
    free(small);
    free(large);
}

static void recalloc_clears_what_is_gained(void)
{
    if (recalloc_call == NULL) return;
    for (unsigned i = 0; i < SIZES; i++)
        for (unsigned j = 0; j < SIZES; j++) {
            size_t first = sizes[i], second = sizes[j];
            unsigned char *block = calloc(1, first);

            if (second == 0 || first > 1 << 20 || second > 1 << 20) {
                free(block);
                continue;
            }
            memset(block, 9, first);
            block = recalloc_call(block, 1, second);
            must(block != NULL);
            for (size_t k = 0; k < second; k++) must(block[k] == (k < first ? 9 : 0));
            memset(block, 9, second);
            block = recalloc_call(block, 2, second);
            must(block != NULL && is_zero(block + second, second));
            free(block);
        }
    free(recalloc_call(NULL, 3, 5));
}

static void aligned_ones(void)
{
    for (size_t align = 1; align <= 1 << 20; align *= 2) {
        unsigned char *block = _aligned_malloc(1000, align);

        must(block != NULL && ((uintptr_t)block & (align - 1)) == 0);
        must(aligned_msize_call == NULL || aligned_msize_call(block, align, 0) >= 1000);
        stamp(block, 1000, 1);
        block = _aligned_realloc(block, 50000, align);
        must(block != NULL && ((uintptr_t)block & (align - 1)) == 0 && holds(block, 1000, 1));
        if (aligned_recalloc_call != NULL) {
            block = aligned_recalloc_call(block, 2, 60000, align);
            must(block != NULL && ((uintptr_t)block & (align - 1)) == 0);
            must(is_zero(block + 119000, 1000));
        }
        must(_aligned_realloc(block, 0, align) == NULL);
    }
    must(_aligned_realloc(NULL, 0, 16) != (void *)1);
    _aligned_free(NULL);
}

static void large_aligned_ones_shrink_in_place(void)
{
    unsigned char *block = _aligned_malloc(32 << 20, 64);

    must(block != NULL);
    stamp(block, 4096, 1);
    must(_aligned_realloc(block, 16 << 20, 64) == block && holds(block, 4096, 1));
    errno = 0;
    must(_aligned_realloc(block, SIZE_MAX / 2, 64) == NULL && errno == ENOMEM);
    errno = 0;
    must(_aligned_realloc(block, 100, 3) == NULL && errno == EINVAL);
    _aligned_free(block);
}

static bool is_aligned_at(const void *block, size_t offset)
{
    return block != NULL && (((uintptr_t)block + offset) & 63) == 0;
}

/* Blocks that are aligned at an offset are the C library's; ours become such. */
static void offsets_are_of_the_c_library(void)
{
    unsigned char *block = _aligned_offset_malloc(1000, 64, 24);

    must(is_aligned_at(block, 24));
    stamp(block, 1000, 1);
    block = _aligned_offset_realloc(block, 2000, 64, 24);
    must(is_aligned_at(block, 24) && holds(block, 1000, 1));
    _aligned_free(block);

    block = _aligned_malloc(1000, 64);
    stamp(block, 1000, 1);
    block = _aligned_offset_realloc(block, 50000, 64, 0);
    must(is_aligned_at(block, 0) && holds(block, 1000, 1));
    block = _aligned_offset_realloc(block, 60000, 64, 24);
    must(is_aligned_at(block, 24) && holds(block, 1000, 1));
    _aligned_free(block);
    must(_aligned_offset_realloc(_aligned_malloc(1000, 64), 0, 64, 24) == NULL);

    if (offset_recalloc_call == NULL) return;
    block = _aligned_malloc(1024, 64);
    stamp(block, 1000, 1);
    block = offset_recalloc_call(block, 3, 1000, 64, 24);
    must(is_aligned_at(block, 24) && holds(block, 1000, 1) && is_zero(block + 1024, 3000 - 1024));
    _aligned_free(block);
}

static void texts(void)
{
    char *narrow = _strdup("prairie");
    wchar_t *wide = _wcsdup(L"prairie");

    must(strcmp(narrow, "prairie") == 0 && wcscmp(wide, L"prairie") == 0);
    must(_msize(narrow) == 8 && _msize(wide) == 16);
    free(narrow);
    free(wide);
}

/* What the C library takes inside of itself is its own, and free finds that out. */
static void blocks_made_inside_the_c_library(void)
{
    char *path = _fullpath(NULL, ".", 0);

    must(path != NULL && strlen(path) > 0);
    must(_msize(path) >= strlen(path) + 1);
    path = realloc(path, 5000);
    must(path != NULL && strlen(path) > 0);
    free(path);
    free(_getcwd(NULL, 0));
}

static void blocks_of_the_system(void)
{
    void *block = HeapAlloc(GetProcessHeap(), 0, 500);

    must(block != NULL && _msize(block) == 500);
    must(HeapFree(GetProcessHeap(), 0, block));
}

static void looked_up_functions(void)
{
    HMODULE library = c_library();
    void *(*take)(size_t);
    void (*give)(void *);
    void *block;

    take = (void *(*)(size_t))(void (*)(void))GetProcAddress(library, "malloc");
    give = (void (*)(void *))(void (*)(void))GetProcAddress(library, "free");
    block = take(100);
    must(_msize(block) == 112);
    give(block);
    give(malloc(100));
    free(take(100));
    must(GetProcAddress(library, "no such function") == NULL);
}

/* Run with zero_realloc:alloc. */
static void a_block_of_no_bytes_is_kept(void)
{
    char *block = realloc(malloc(100), 0);

    must(block != NULL);
    free(block);
}

/* Address space is reserved by the terabyte, where that costs nothing. */
static void little_memory_at_the_start(void)
{
    PROCESS_MEMORY_COUNTERS counters = { .cb = sizeof counters };

    must(K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters));
    must(counters.PeakWorkingSetSize < (48u << 20));
}

int main(int argc, char **argv)
{
    must(is_served());
    little_memory_at_the_start();
    if (argc > 1 && strcmp(argv[1], "zero_realloc") == 0) {
        a_block_of_no_bytes_is_kept();
        return 0;
    }
    look_up();
    every_size();
    every_pair_of_sizes();
    refusals();
    expands_in_place_only();
    recalloc_clears_what_is_gained();
    aligned_ones();
    large_aligned_ones_shrink_in_place();
    offsets_are_of_the_c_library();
    texts();
    blocks_made_inside_the_c_library();
    blocks_of_the_system();
    looked_up_functions();
    return 0;
}
