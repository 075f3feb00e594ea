/* port.c - each promise of os.h, on the files that keep them on Windows. */
/* SPDX-License-Identifier: MIT */
#include "windows_test.h"

/* What is refused, which only this file can bring about. */
static volatile int refused; /* how many commits from now on */
static int refused_handlers, releases;

static LPVOID try_alloc(LPVOID at, SIZE_T bytes, DWORD type, DWORD protection)
{
    if ((type & MEM_COMMIT) != 0 && refused > 0) {
        refused--;
        SetLastError(ERROR_COMMITMENT_LIMIT);
        return NULL;
    }
    return VirtualAlloc(at, bytes, type, protection);
}

static BOOL count_free(LPVOID at, SIZE_T bytes, DWORD type)
{
    releases++;
    return VirtualFree(at, bytes, type);
}

static PVOID try_handler(ULONG first, PVECTORED_EXCEPTION_HANDLER handler)
{
    if (refused_handlers == 0) return AddVectoredExceptionHandler(first, handler);
    refused_handlers--;
    SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    return NULL;
}

static bool clocks_stand;

static ULONGLONG count_ticks(void) { return clocks_stand ? 0 : GetTickCount64(); }

static BOOL count_time(LARGE_INTEGER *now)
{
    now->QuadPart = 0;
    return clocks_stand || QueryPerformanceCounter(now);
}

#define GetTickCount64 count_ticks
#define QueryPerformanceCounter count_time
#define VirtualAlloc try_alloc
#define VirtualFree count_free
#define AddVectoredExceptionHandler try_handler
#include "base/fatal.c"
#include "os/windows.c"
#include "os/windows_code.c"
#include "os/windows_map.c"
#include "os/windows_owner.c"
#include "os/windows_thread.c"

union front_constant {
    char bytes[8];
};
const union front_constant front_empty;

static void memory_goes_through_its_states(void)
{
    size_t page = os_page_bytes();
    struct os_range all = os_reserve((size_t)1 << 35, (size_t)2 << 20), part;

    must(page == 4096 && all.base != NULL && ((uintptr_t)all.base & ((2 << 20) - 1)) == 0);
    part = (struct os_range){ all.base + 10 * page, 100 * page };
    must(os_commit(part) && is_zero(part.base, part.bytes));
    memset(part.base, 1, part.bytes);
    must(os_commit(part) && part.base[5] == 1); /* once more changes nothing */
    must(os_purge((struct os_range){ part.base, 50 * page }));
    must(part.base[50 * page] == 1);
    must(os_commit(part) && is_zero(part.base, 50 * page) && part.base[50 * page] == 1);
    must(os_close(part) && os_commit(part) && is_zero(part.base, part.bytes));
    os_release((struct os_range){ all.base + (all.bytes / 2), all.bytes / 2 });
    must(part.base[0] == 0); /* a part of the rest */
    os_release(all);
    must(os_copy_checked(&page, part.base, 1) == 0);
    must(os_reserve(SIZE_MAX / 2, 4096).base == NULL && os_reserve(SIZE_MAX, 1 << 20).base == NULL);
}

/* Costs nothing, or is refused: wine keeps a byte for each page. */
static void long_reservations_cost_nothing(void)
{
    PROCESS_MEMORY_COUNTERS before = { .cb = sizeof before }, after = { .cb = sizeof after };
    struct os_range range;

    must(K32GetProcessMemoryInfo(GetCurrentProcess(), &before, sizeof before));
    range = os_reserve((size_t)1 << 40, (size_t)2 << 20);
    must(K32GetProcessMemoryInfo(GetCurrentProcess(), &after, sizeof after));
    must(after.WorkingSetSize < before.WorkingSetSize + (1 << 20));
    must(range.base != NULL || windows_is_wine());
    if (range.base != NULL) os_release(range);
}

static void refused_memory_is_as_before(void)
{
    struct os_range range = os_reserve(1 << 20, 65536);

    must(os_commit(range));
    range.base[0] = 7;
    SetLastError(1234);
    refused = 1;
    must(!os_commit(range) && range.base[0] == 7 && GetLastError() == 1234);
    os_release(range);
}

/* It could not be read. */
static void nothing_is_reserved_without_the_handler(void)
{
    int before = releases;

    SetLastError(1234);
    refused_handlers = 1;
    must(os_reserve_readable((size_t)32 << 30).base == NULL && refused_handlers == 0);
    must(releases == before + 1 && GetLastError() == 1234);
}

/* Also when there is no memory: up to 16 times. */
static void reserved_memory_can_be_read(void)
{
    struct os_range map = os_reserve_readable((size_t)32 << 30);
    const volatile char *at = map.base;

    must(map.base != NULL && at[0] == 0 && at[5] == 0);
    for (size_t i = 0; i < 1000; i++) must(at[i * 33333333 % map.bytes] == 0);
    for (int i = 0; i < 16; i++) {
        refused = 1;
        must(at[((size_t)i + 1) << 30 | 12345] == 0 && refused == 0);
    }
    must(os_commit((struct os_range){ map.base + 65536, 65536 }));
    map.base[65536] = 3;
    must(at[65536] == 3 && at[65535] == 0 && at[131072] == 0);
    os_release(map);
}

static void what_is_not_there_is_not_copied(void)
{
    struct os_range range = os_reserve(1 << 20, 65536);
    char copy[8192] = { 0 };

    must(os_commit((struct os_range){ range.base, 4096 }));
    memset(range.base, 5, 4096);
    must(os_copy_checked(copy, range.base, 4096) == 4096 && copy[4095] == 5);
    must(os_copy_checked(copy, range.base + 4096, 100) == 0);
    must(os_copy_checked(copy, range.base + 4000, 8000) == 96);
    os_release(range);
    must(os_copy_checked(copy, range.base, 100) == 0);
    must(os_copy_checked(copy, (void *)(uintptr_t)8, 100) == 0);
}

static HANDLE library_heap; /* NULL: the library has not run yet */

static void *heap_of_test(void) { return library_heap; }

/* A private heap is not asked: only one that a C library says is its own. */
static void the_heap_of_a_library_is_found(void)
{
    HANDLE heap = HeapCreate(0, 0, 0), private = HeapCreate(HEAP_NO_SERIALIZE, 0, 0);
    static char data[64];
    char *block = HeapAlloc(heap, 0, 100), *large = HeapAlloc(heap, 0, 3 << 20);

    char *hidden_block = HeapAlloc(private, 0, 100), *usual = HeapAlloc(GetProcessHeap(), 0, 100);

    must(os_other_bytes(block) == SIZE_MAX && windows_heap_search(block) == heap);
    for (int i = 0; i < 10; i++) windows_heap_add(heap_of_test);
    must(heap_of_library[1] == NULL && os_other_bytes(block) == SIZE_MAX && !os_other_free(block));
    library_heap = heap;
    must(os_other_bytes(usual) == 100 && os_other_free(usual));
    must(os_other_bytes(hidden_block) == SIZE_MAX && !os_other_free(hidden_block));
    must(windows_heap_search(data + 16) == NULL);
    must(os_other_bytes(block) == 100 && os_other_bytes(large) == 3 << 20);
    must(os_other_bytes(block + 16) == SIZE_MAX && os_other_bytes(data + 16) == SIZE_MAX);
    must(os_other_bytes((void *)(uintptr_t)0x123456789000) == SIZE_MAX);
    must(os_other_bytes(&heap) == SIZE_MAX);
    must(os_other_free(block) && !os_other_free(data + 16) && os_other_free(large));
    library_heap = NULL;
    must(HeapDestroy(heap) && HeapDestroy(private));
}

static void facts_are_likely(void)
{
    struct os_group group = os_group_memory();
    uint64_t ms = os_now_ms(), ns = port_now_ns();

    must(os_core_count() >= 1 && os_core_current() < 100000);
    must(os_highest_address() >> 46 == 1);
    must(os_own_bytes() > 100000 && os_own_bytes() < (size_t)1 << 32);
    must(group.room_bytes <= group.limit_bytes);
    must(os_wall_ns() / 1000000000 > 1700000000 && os_wall_ns() / 1000000000 < 4000000000);
    Sleep(30);
    must(os_now_ms() - ms < 10000 && port_now_ns() - ns >= 10000000);
    must(os_process_id() == GetCurrentProcessId());
    must(port_thread_mark() != 0 && !os_has_one_thread());
    SetEnvironmentVariableA("PRAIRIE_TEST", "some words");
    SetLastError(1234);
    must(os_setting("PRAIRIE_NO_SUCH") == NULL && GetLastError() == 1234);
    must(strcmp(os_setting("PRAIRIE_TEST"), "some words") == 0);
}

/* The clocks alone could be guessed. */
static void numbers_are_not_made_of_the_clocks_alone(void)
{
    uint64_t number[2];

    clocks_stand = true;
    for (int i = 0; i < 2; i++) number[i] = os_random();
    clocks_stand = false;
    must(number[0] != number[1] || random_of_processor() == 0);
}

static void choose_path(char path[MAX_PATH + 20])
{
    must(GetTempPathA(MAX_PATH, path) != 0);
    strcat(path, "prairie_port_test");
}

static void files_keep_what_is_written(void)
{
    char path[MAX_PATH + 20], text[100] = { 0 };
    int file;

    choose_path(path);
    file = os_file_create(path);
    must(file >= 0 && os_file_write(file, "some words", 10));
    os_file_close(file);
    file = os_file_open(path);
    must(file >= 0 && os_file_read(file, text, sizeof text) == 10);
    must(strcmp(text, "some words") == 0);
    os_file_close(file);
    must(DeleteFileA(path) && os_file_open(path) == -1);
}

/* A handle that is called invalid would be the process itself, to which nothing can be written. */
static void only_a_standard_error_is_kept(void)
{
    HANDLE before = GetStdHandle(STD_ERROR_HANDLE);
    char path[MAX_PATH + 20], text[100] = { 0 };
    int file;

    choose_path(path);
    must(SetStdHandle(STD_ERROR_HANDLE, INVALID_HANDLE_VALUE));
    os_keep_error_output();
    file = os_file_create(path);
    must(file >= 0 && SetStdHandle(STD_ERROR_HANDLE, kernel_file(file)));
    port_write_error("some words", 10);
    os_keep_error_output();
    must(SetStdHandle(STD_ERROR_HANDLE, before));
    os_file_close(file);
    port_write_error(" more", 5);
    file = os_file_open(path);
    must(os_file_read(file, text, sizeof text) == 15 && strcmp(text, "some words more") == 0);
    os_file_close(file);
    must(CloseHandle(kept_error));
    kept_error = NULL;
    must(DeleteFileA(path));
}

static void code_is_found(void)
{
    static struct os_code code[500];
    static char paths[65536];
    size_t count = os_code_read(code, 500, paths, sizeof paths), found = 0;

    must(count > 2);
    for (size_t i = 0; i < count; i++) {
        must(i == 0 || code[i].start >= code[i - 1].limit);
        found +=
            (uintptr_t)code_is_found >= code[i].start && (uintptr_t)code_is_found < code[i].limit;
    }
    must(found == 1);
}

/* ---- threads ---- */

static uint32_t word;
static LONG woken, ended;

static DWORD WINAPI wait_for_word(void *unused)
{
    (void)unused;
    must(thread_word() == (struct front *)&front_empty);
    thread_front_set((struct front *)&word);
    must(thread_word() == (struct front *)&word);
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0) port_wait(&word, 0);
    InterlockedIncrement(&woken);
    return 0;
}

static void note_end(void)
{
    if (thread_word() == (struct front *)&word) InterlockedIncrement(&ended);
}

static void threads_wait_and_end(void)
{
    HANDLE thread[8];
    uint64_t before = os_now_ms();

    must(os_thread_end_hook(note_end));
    for (int i = 0; i < 8; i++) thread[i] = CreateThread(NULL, 0, wait_for_word, NULL, 0, NULL);
    Sleep(50);
    must(woken == 0);
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    port_wake(&word, INT32_MAX);
    must(WaitForMultipleObjects(8, thread, TRUE, 30000) == WAIT_OBJECT_0);
    must(woken == 8 && ended == 8);
    os_sleep(&word, 0, 10000);
    os_sleep(&word, 1, 50);
    must(os_now_ms() - before < 9000);
}

static uint32_t background_may_end;

static uint32_t background_has_begun;

static void *background_body(void *unused)
{
    (void)unused;
    __atomic_store_n(&background_has_begun, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&background_may_end, __ATOMIC_ACQUIRE) == 0)
        os_sleep(&background_may_end, 0, 1000);
    return NULL;
}

static void there_is_one_background_thread(void)
{
    must(os_thread_start(background_body));
    must(!os_thread_start(background_body));
    __atomic_store_n(&background_may_end, 1, __ATOMIC_RELEASE);
    os_thread_wait(30000);
    must(os_thread_start(background_body));
    os_thread_wait(30000);
    must(background_alive == 0);
}

/* The thread itself cannot end under the lock of who waits; its word can. */
static void it_is_waited_for_under_the_lock_of_the_loader(void)
{
    LONG(NTAPI * take)
    (ULONG, ULONG *, ULONG_PTR *) =
        (LONG(NTAPI *)(ULONG, ULONG *, ULONG_PTR *))windows_ntdll("LdrLockLoaderLock");
    LONG(NTAPI * give)
    (ULONG, ULONG_PTR) = (LONG(NTAPI *)(ULONG, ULONG_PTR))windows_ntdll("LdrUnlockLoaderLock");
    ULONG_PTR ticket;
    uint64_t before;

    background_may_end = background_has_begun = 0;
    must(os_thread_start(background_body));
    while (__atomic_load_n(&background_has_begun, __ATOMIC_ACQUIRE) == 0) Sleep(1);
    must(take(0, NULL, &ticket) == 0);
    before = os_now_ms();
    os_thread_wait(100); /* in vain */
    must(!os_thread_start(background_body));
    __atomic_store_n(&background_may_end, 1, __ATOMIC_RELEASE);
    os_thread_wait(30000);
    must(os_now_ms() - before < 20000 && os_now_ms() - before >= 80);
    must(give(0, ticket) == 0);
    must(os_thread_start(background_body));
    os_thread_wait(30000);
}

int main(void)
{
    memory_goes_through_its_states();
    long_reservations_cost_nothing();
    refused_memory_is_as_before();
    nothing_is_reserved_without_the_handler();
    reserved_memory_can_be_read();
    what_is_not_there_is_not_copied();
    the_heap_of_a_library_is_found();
    facts_are_likely();
    numbers_are_not_made_of_the_clocks_alone();
    files_keep_what_is_written();
    only_a_standard_error_is_kept();
    code_is_found();
    threads_wait_and_end();
    there_is_one_background_thread();
    it_is_waited_for_under_the_lock_of_the_loader();
    return 0;
}
