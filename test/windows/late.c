/* late.c - prairie comes to a process that runs already, and so do libraries after it. */
/* SPDX-License-Identifier: MIT */
#include "windows_test.h"

#include <process.h>

struct plugin {
    HMODULE library;
    void *(*take)(size_t bytes);
    void (*give)(void *block);
    size_t (*bytes)(void *block);
    char *(*text)(void);
};

static struct plugin load_plugin(void)
{
    struct plugin plugin = { .library = LoadLibraryW(L"plugin.dll") };

    must(plugin.library != NULL);
    plugin.take = (void *)GetProcAddress(plugin.library, "plugin_take");
    plugin.give = (void *)GetProcAddress(plugin.library, "plugin_give");
    plugin.bytes = (void *)GetProcAddress(plugin.library, "plugin_bytes");
    plugin.text = (void *)GetProcAddress(plugin.library, "plugin_text");
    return plugin;
}

enum { EARLY = 5000 };

static void *early[EARLY];
static HANDLE go;

static unsigned __stdcall wait_and_use(void *block)
{
    WaitForSingleObject(go, INFINITE);
    must(is_served());
    free(block); /* of before */
    free(malloc(100));
    return 0;
}

/* A thread that was there before has a word of prairie's, too. */
static void threads_of_before(HANDLE thread)
{
    SetEvent(go);
    must(WaitForSingleObject(thread, 30000) == WAIT_OBJECT_0);
    CloseHandle(thread);
}

static void blocks_of_before(void)
{
    for (int i = 0; i < EARLY; i++) must(_msize(early[i]) == (size_t)i % 3000 + 1);
    for (int i = 0; i < EARLY; i++) {
        if (i % 3 == 0) {
            early[i] = realloc(early[i], (size_t)i + 100);
            must(early[i] != NULL);
        }
        if (i % 3000 > 0) must(*(char *)early[i] == (char)i);
        free(early[i]);
    }
}

int main(void)
{
    struct plugin before = load_plugin(), after;
    void *aligned = _aligned_malloc(1000, 256), *theirs = before.take(100);
    char *path = _fullpath(NULL, ".", 0);
    uintptr_t thread;

    must(!is_served());
    go = CreateEventW(NULL, TRUE, FALSE, NULL);
    for (int i = 0; i < EARLY; i++) {
        early[i] = malloc((size_t)i % 3000 + 1);
        *(char *)early[i] = (char)i;
    }
    thread = _beginthreadex(NULL, 0, wait_and_use, malloc(50), 0, NULL);
    must(LoadLibraryW(L"prairie.dll") != NULL);
    must(is_served());

    threads_of_before((HANDLE)thread);
    blocks_of_before();
    _aligned_free(aligned);
    free(path);
    must(before.bytes(theirs) == 100);
    before.give(theirs);
    theirs = before.take(100);
    must(before.bytes(theirs) == 112);

    /* The same library goes and comes again, with blocks that outlive it. */
    must(FreeLibrary(before.library));
    must(GetModuleHandleW(L"plugin.dll") == NULL);
    free(theirs);
    for (int round = 0; round < 50; round++) {
        char *text;

        after = load_plugin();
        theirs = after.take(100);
        must(after.bytes(theirs) == 112);
        free(theirs);
        after.give(malloc(100));
        text = after.text();
        must(FreeLibrary(after.library));
        must(strcmp(text, "plugin") == 0);
        free(text);
    }

    /* prairie itself does not go. */
    must(FreeLibrary(GetModuleHandleW(L"prairie.dll")));
    must(GetModuleHandleW(L"prairie.dll") != NULL && is_served());
    return 0;
}
