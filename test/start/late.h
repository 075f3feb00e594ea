/* late.h - loading libprairie.so with dlopen into a program that runs on another heap. */
/* SPDX-License-Identifier: MIT */
#ifndef PRAIRIE_TEST_LATE_H
#define PRAIRIE_TEST_LATE_H

#include "../blackbox/use.h"

/* Opens the flavour's library and points `heap` at prairie's own names. The handle for dlclose. */
static void *late_load(void)
{
    const char *path = getenv("PRAIRIE_LIBRARY");
    if (path == NULL) give_up("PRAIRIE_LIBRARY is not set");
    if (lies_in_prairie(dlsym(RTLD_DEFAULT, "malloc")))
        give_up("prairie is here before it was loaded");
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) give_up("dlopen: %s", dlerror());
    *(void **)&heap.malloc = dlsym(handle, "prairie_malloc");
    *(void **)&heap.calloc = dlsym(handle, "prairie_calloc");
    *(void **)&heap.realloc = dlsym(handle, "prairie_realloc");
    *(void **)&heap.aligned_alloc = dlsym(handle, "prairie_aligned_alloc");
    *(void **)&heap.free = dlsym(handle, "prairie_free");
    if (!lies_in_prairie((void *)heap.malloc) || !lies_in_prairie((void *)heap.free))
        give_up("no prairie_malloc");
    if (heap.calloc == NULL || heap.realloc == NULL || heap.aligned_alloc == NULL)
        give_up("names are missing");
    return handle;
}

#endif
