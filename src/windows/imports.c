/* imports.c - makes every module of the process call prairie.
 *
 * A module calls a function of another library through a table of addresses, which the loader fills
 * before the module runs. Whatever entry leads to a heap function of a C library is made to lead to
 * prairie's answer. Entries are compared by address, not by name: so it does not matter under which
 * of many names a library was imported. Nothing of anybody's code is changed
 * (docs/decisions/0029).
 *
 * The loader tells of each library that it loads: in wine, and as far as is known in Windows 10,
 * after it has filled that library's table. The vendor's documentation says before; then libraries
 * that come later would not be served. It also calls it unsafe to call functions of other libraries
 * meanwhile: called are only those of kernel32.dll and ntdll.dll, which run already.
 *
 * GetProcAddress is answered as well, for those who look a function up; and ExitProcess, to know
 * the exit code.
 * SPDX-License-Identifier: MIT
 */
#include "imports.h"

#include "crt.h"

#include "../base/constants.h"

#include <psapi.h>

/* ---- two functions of the system ---- */

typedef FARPROC(WINAPI *lookup_function)(HMODULE module, LPCSTR name);
typedef void(WINAPI *exit_function)(UINT code);

/* An API set may lead to either, and each exports functions of its own. kernel32.dll's may call
 * kernelbase.dll's through its table of addresses, which leads here: so called are the latter. */
enum { KERNELBASE, KERNEL32, SYSTEM_LIBRARIES };

static lookup_function original_lookup[SYSTEM_LIBRARIES]; /* constant after start; NULL: none */
static exit_function original_exit[SYSTEM_LIBRARIES];     /* constant after start; NULL: none */

static FARPROC WINAPI answer_lookup(HMODULE module, LPCSTR name);

static void WINAPI answer_exit(UINT code)
{
    windows_note_exit_code(code);
    original_exit[original_exit[KERNELBASE] != NULL ? KERNELBASE : KERNEL32](code);
}

static windows_function answer_to(windows_function function)
{
    for (unsigned i = 0; i < SYSTEM_LIBRARIES; i++) {
        if (function == (windows_function)original_lookup[i])
            return (windows_function)answer_lookup;
        if (function == (windows_function)original_exit[i]) return (windows_function)answer_exit;
    }
    return crt_answer_to(function);
}

static FARPROC WINAPI answer_lookup(HMODULE module, LPCSTR name)
{
    FARPROC found =
        original_lookup[original_lookup[KERNELBASE] != NULL ? KERNELBASE : KERNEL32](module, name);
    windows_function answer = found != NULL ? answer_to((windows_function)found) : NULL;

    return answer != NULL ? (FARPROC)answer : found;
}

/* ---- import tables ---- */

/* A table may share its page with code, which others run meanwhile. */
static void set_entry(windows_function *entry, windows_function answer)
{
    const DWORD runs =
        PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY;
    MEMORY_BASIC_INFORMATION page;
    DWORD writable, before;

    if (VirtualQuery(entry, &page, sizeof page) == 0) return;
    writable = (page.Protect & runs) != 0 ? PAGE_EXECUTE_READWRITE : PAGE_READWRITE;
    if (!VirtualProtect(entry, sizeof *entry, writable, &before)) return;
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

static void find_system_functions(void)
{
    static const wchar_t *const names[SYSTEM_LIBRARIES] = { L"kernelbase.dll", L"kernel32.dll" };

    for (unsigned i = 0; i < SYSTEM_LIBRARIES; i++) {
        HMODULE library = GetModuleHandleW(names[i]);

        if (library == NULL) continue;
        original_lookup[i] =
            (lookup_function)(windows_function)GetProcAddress(library, "GetProcAddress");
        original_exit[i] = (exit_function)(windows_function)GetProcAddress(library, "ExitProcess");
    }
}

void imports_take_over(void)
{
    static HMODULE modules[1024] SPARSE;
    DWORD last_error = GetLastError(), bytes = 0;

    find_system_functions();
    crt_find();
    watch_loader();
    if (K32EnumProcessModules(GetCurrentProcess(), modules, sizeof modules, &bytes)) {
        size_t count = min_size(bytes, sizeof modules) / sizeof modules[0];

        for (size_t i = 0; i < count; i++) take_over_module(modules[i]);
    }
    SetLastError(last_error);
}
