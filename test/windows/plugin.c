/* plugin.c - a library that comes and goes, and has blocks of its own. */
/* SPDX-License-Identifier: MIT */
#include "windows_test.h"

static void *own;

__declspec(dllexport) void *plugin_take(size_t bytes) { return malloc(bytes); }
__declspec(dllexport) void plugin_give(void *block) { free(block); }
__declspec(dllexport) size_t plugin_bytes(void *block) { return _msize(block); }
__declspec(dllexport) char *plugin_text(void) { return _strdup("plugin"); }

BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, void *reserved)
{
    (void)library, (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) own = malloc(1000);
    if (reason == DLL_THREAD_ATTACH) free(malloc(100));
    if (reason == DLL_THREAD_DETACH) free(malloc(100));
    if (reason == DLL_PROCESS_DETACH) {
        memset(own, 1, 1000);
        free(own);
    }
    return TRUE;
}
