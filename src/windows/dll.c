/* dll.c - what a library needs that is linked without a C library: prairie.dll alone.
 *
 * Not part of the unity file. A C library of our own would take memory while it starts, and would
 * be one of those that prairie answers for. So this file has the directory of thread-local storage,
 * errno and the entry, and dll_strings.c what is called of a C library.
 * SPDX-License-Identifier: MIT
 */
#include "../os/windows.h"
#include "names.h"

/* ---- thread-local storage ---- */

/* The linker sorts the pieces of both sections by what follows the dollar. */
__attribute__((section(".tls$AAA"), used)) static uint64_t tls_first = 0;
__attribute__((section(".tls$ZZZ"), used)) static uint64_t tls_last = 0;
__attribute__((section(".CRT$XLA"), used)) static const PIMAGE_TLS_CALLBACK before_callbacks = NULL;
__attribute__((section(".CRT$XLZ"), used)) static const PIMAGE_TLS_CALLBACK after_callbacks = NULL;

ULONG _tls_index;

/* The linker finds it by its name, and names it in the header of the library. */
__attribute__((used)) const IMAGE_TLS_DIRECTORY64 _tls_used = {
    .StartAddressOfRawData = (uintptr_t)&tls_first,
    .EndAddressOfRawData = (uintptr_t)(&tls_last + 1),
    .AddressOfIndex = (uintptr_t)&_tls_index,
    .AddressOfCallBacks = (uintptr_t)(&before_callbacks + 1),
};

/* ---- errno ---- */

/* The callers' own are set where a call of theirs is refused (crt.c). That of prairie's own doors
 * is nobody's. */
static int own_errno;

static int *errno_place(void) { return &own_errno; }

/* What the header's function is called through, as if it were in another library. */
extern int *(*const __imp__errno)(void);
int *(*const __imp__errno)(void) = errno_place;

/* ---- the entry ---- */

BOOL WINAPI prairie_entry(HINSTANCE library, DWORD reason, void *reserved);
BOOL WINAPI prairie_entry(HINSTANCE library, DWORD reason, void *reserved)
{
    HMODULE pinned;

    (void)reserved;
    if (reason != DLL_PROCESS_ATTACH) return TRUE;
    /* Blocks, threads and import tables would lead nowhere if it went. */
    (void)GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                             (const wchar_t *)library, &pinned);
    windows_start();
    return TRUE;
}
