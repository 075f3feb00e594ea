/* calls.c - the calls that make count counts: hits of the usual functions, each marked five times.
 * SPDX-License-Identifier: MIT
 *
 * A hit is made certain by what went before: a block of the size was just freed, so malloc finds
 * it; a block was just taken, so free finds its place. Functions are called through the address
 * that their symbol has, as a program does whose references are bound. */
#define _GNU_SOURCE
#include "mark.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 5, WARM_UP = 100 };

static void *(*call_malloc)(size_t bytes);
static void *(*call_calloc)(size_t count, size_t bytes);
static void *(*call_realloc)(void *block, size_t bytes);
static void *(*call_aligned_alloc)(size_t align_bytes, size_t bytes);
static void *(*call_new)(size_t bytes);
static void (*call_free)(void *block);
static void (*call_delete_sized)(void *block, size_t bytes);
static size_t (*call_usable_size)(void *block);
static void *(*call_mallocx)(size_t bytes, int flags);
static void (*call_sdallocx)(void *block, size_t bytes, int flags);

static void *symbol(const char *name) { return dlsym(RTLD_DEFAULT, name); }

/* Makes the thread's cache hold blocks of the size, and the pages of all involved be touched. */
static void warm_up(size_t bytes)
{
    void *blocks[WARM_UP];
    for (unsigned round = 0; round < 3; round++) {
        unsigned count = bytes > 16384 ? 4 : WARM_UP;
        for (unsigned i = 0; i < count; i++) blocks[i] = call_malloc(bytes);
        for (unsigned i = 0; i < count; i++) call_free(blocks[i]);
    }
}

static void count_pair(const char *malloc_name, const char *free_name, size_t bytes)
{
    warm_up(bytes);
    for (unsigned i = 0; i < SAMPLES; i++) {
        call_free(call_malloc(bytes));
        mark_next_call(malloc_name, (const void *)call_malloc);
        void *block = call_malloc(bytes);
        mark_next_call(free_name, (const void *)call_free);
        call_free(block);
    }
}

static void count_calloc(void)
{
    warm_up(64);
    for (unsigned i = 0; i < SAMPLES; i++) {
        call_free(call_calloc(1, 64));
        mark_next_call("calloc(64)", (const void *)call_calloc);
        void *block = call_calloc(1, 64);
        call_free(block);
    }
}

static void count_new(void)
{
    if (call_new == NULL || call_delete_sized == NULL) return;
    warm_up(48);
    for (unsigned i = 0; i < SAMPLES; i++) {
        call_delete_sized(call_new(48), 48);
        mark_next_call("operator new(48)", (const void *)call_new);
        void *block = call_new(48);
        mark_next_call("sized delete(48)", (const void *)call_delete_sized);
        call_delete_sized(block, 48);
    }
}

static void count_with_flags(const char *take_name, const char *give_name, int flags)
{
    warm_up(48);
    for (unsigned i = 0; i < SAMPLES; i++) {
        call_sdallocx(call_mallocx(48, flags), 48, flags);
        mark_next_call(take_name, (const void *)call_mallocx);
        void *block = call_mallocx(48, flags);
        mark_next_call(give_name, (const void *)call_sdallocx);
        call_sdallocx(block, 48, flags);
    }
}

static void count_others(void)
{
    warm_up(64);
    for (unsigned i = 0; i < SAMPLES; i++) {
        void *block = call_malloc(64);
        mark_next_call("malloc_usable_size", (const void *)call_usable_size);
        call_usable_size(block);
        block = call_realloc(block, 64);
        mark_next_call("realloc to the same size", (const void *)call_realloc);
        block = call_realloc(block, 64);
        call_free(block);

        call_free(call_aligned_alloc(64, 1000));
        mark_next_call("aligned_alloc(64, 1000)", (const void *)call_aligned_alloc);
        block = call_aligned_alloc(64, 1000);
        call_free(block);
    }
}

int main(void)
{
    call_malloc = symbol("malloc");
    call_calloc = symbol("calloc");
    call_realloc = symbol("realloc");
    call_aligned_alloc = symbol("aligned_alloc");
    call_free = symbol("free");
    call_usable_size = symbol("malloc_usable_size");
    call_new = symbol("_Znwm");
    call_delete_sized = symbol("_ZdlPvm");
    call_mallocx = symbol("mallocx");
    call_sdallocx = symbol("sdallocx");

    Dl_info info;
    if (dladdr(symbol("malloc"), &info) == 0) return 1;
    printf("{\"served_by\": \"%s\"}\n", info.dli_fname);
    fflush(stdout);

    count_pair("malloc(16)", "free(16)", 16);
    count_pair("malloc(48)", "free(48)", 48);
    count_pair("malloc(1024)", "free(1024)", 1024);
    count_new();
    if (call_mallocx != NULL && call_sdallocx != NULL) {
        count_with_flags("mallocx(48, 0)", "sdallocx(48, 0)", 0);
        count_with_flags("mallocx(48, ALIGN(16))", "sdallocx(48, ALIGN(16))", 4);
    }
    count_calloc();
    count_others();
    count_pair("malloc(16 KiB)", "free(16 KiB)", 16 << 10);
    count_pair("malloc(18,000)", "free(18,000)", 18000); /* staggered */
    count_pair("malloc(128 KiB)", "free(128 KiB)", 128 << 10);
    call_free(call_malloc(2 << 20)); /* whatever is kept of the shorter ones, there is room */
    count_pair("malloc(1 MiB)", "free(1 MiB)", 1 << 20);
    return 0;
}
