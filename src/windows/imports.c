/* imports.c - makes every module of the process call prairie.
 *
 * A module calls a function of another library through a table of addresses, which the loader fills
 * before the module runs. Whatever entry leads to a heap function of a C library is made to lead to
 * prairie's answer. Entries are compared by address, not by name: so it does not matter under which
 * of many names a library was imported. Nothing of anybody's code is changed
 * (docs/decisions/0029).
 *
 * The loader tells of each library that it loads, after it has filled its table. GetProcAddress is
 * answered as well, for those who look a function up; and ExitProcess, to know the exit code.
 * SPDX-License-Identifier: MIT
 */
#include "imports.h"

#include "crt.h"

#include "../base/constants.h"

#include <psapi.h>

/* ---- two functions of the system ---- */

typedef FARPROC(WINAPI *lookup_function)(HMODULE module, LPCSTR name);
typedef void(WINAPI *exit_function)(UINT code);

static lookup_function original_lookup; /* constant after start */
static exit_function original_exit;     /* constant after start */

static FARPROC WINAPI answer_lookup(HMODULE module, LPCSTR name);

static void WINAPI answer_exit(UINT code)
{
    windows_note_exit_code(code);
    original_exit(code);
}

static windows_function answer_to(windows_function function)
{
    if (function == (windows_function)original_lookup) return (windows_function)answer_lookup;
    if (function == (windows_function)original_exit) return (windows_function)answer_exit;
    return crt_answer_to(function);
}

static FARPROC WINAPI answer_lookup(HMODULE module, LPCSTR name)
{
    FARPROC found = original_lookup(module, name);
    windows_function answer = found != NULL ? answer_to((windows_function)found) : NULL;

    return answer != NULL ? (FARPROC)answer : found;
}

/* ---- import tables ---- */

static void set_entry(windows_function *entry, windows_function answer)
{
    DWORD before;

    if (!VirtualProtect(entry, sizeof *entry, PAGE_READWRITE, &before)) return;
    __atomic_store_n(entry, answer, __ATOMIC_RELEASE);
    (void)VirtualProtect(entry, sizeof *entry, before, &before);
}

/* The table of one library that the module imports from. */
static void take_over_table(windows_function *entry)
{
    for (; *entry != NULL; entry++) {
        windows_function answer = answer_to(*entry);

        if (answer != NULL) set_entry(entry, answer);
    }
}

/* Where the part of a module begins that its header names so; NULL: it has none. */
static const char *part_of(const char *module, unsigned index)
{
    const IMAGE_DOS_HEADER *dos = (const IMAGE_DOS_HEADER *)module;
    const IMAGE_NT_HEADERS *head = (const IMAGE_NT_HEADERS *)(module + dos->e_lfanew);

    if (dos->e_magic != IMAGE_DOS_SIGNATURE || head->Signature != IMAGE_NT_SIGNATURE
        || head->OptionalHeader.Magic != IMAGE_NT_OPTIONAL_HDR_MAGIC
        || head->OptionalHeader.NumberOfRvaAndSizes <= index
        || head->OptionalHeader.DataDirectory[index].VirtualAddress == 0)
        return NULL;
    return module + head->OptionalHeader.DataDirectory[index].VirtualAddress;
}

/* What the loader fills, and what the module fills by itself when a function is first called and
 * may have filled already. */
static void take_over_module(HMODULE handle)
{
    char *module = (char *)handle;
    const IMAGE_IMPORT_DESCRIPTOR *import =
        (const IMAGE_IMPORT_DESCRIPTOR *)part_of(module, IMAGE_DIRECTORY_ENTRY_IMPORT);
    const IMAGE_DELAYLOAD_DESCRIPTOR *later =
        (const IMAGE_DELAYLOAD_DESCRIPTOR *)part_of(module, IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT);

    for (; import != NULL && import->Name != 0 && import->FirstThunk != 0; import++)
        take_over_table((windows_function *)(module + import->FirstThunk));
    for (; later != NULL && later->DllNameRVA != 0 && later->Attributes.RvaBased; later++)
        take_over_table((windows_function *)(module + later->ImportAddressTableRVA));
}

/* ---- those that come later ---- */

struct loaded_library {
    ULONG flags;
    const void *path, *name;
    HMODULE base;
    ULONG bytes;
};

static void CALLBACK library_event(ULONG reason, const struct loaded_library *library,
                                   void *context)
{
    enum { IS_LOADED = 1 };

    (void)context;
    if (reason != IS_LOADED) return;
    crt_find();
    take_over_module(library->base);
}

typedef LONG(NTAPI *notify_function)(ULONG flags,
                                     void(CALLBACK *hook)(ULONG, const struct loaded_library *,
                                                          void *),
                                     void *context, void **cookie);

static void watch_loader(void)
{
    notify_function notify = (notify_function)windows_ntdll("LdrRegisterDllNotification");
    void *cookie;

    if (notify != NULL) (void)notify(0, library_event, NULL, &cookie);
}

void imports_take_over(void)
{
    static HMODULE modules[1024] SPARSE;
    HMODULE system = GetModuleHandleW(L"kernel32.dll");
    DWORD last_error = GetLastError(), bytes = 0;

    original_lookup = (lookup_function)(windows_function)GetProcAddress(system, "GetProcAddress");
    original_exit = (exit_function)(windows_function)GetProcAddress(system, "ExitProcess");
    crt_find();
    watch_loader();
    if (K32EnumProcessModules(GetCurrentProcess(), modules, sizeof modules, &bytes)) {
        size_t count = min_size(bytes, sizeof modules) / sizeof modules[0];

        for (size_t i = 0; i < count; i++) take_over_module(modules[i]);
    }
    SetLastError(last_error);
}
