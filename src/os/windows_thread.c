/* windows_thread.c - threads of Windows: their word, their end, how they wait, and the one that
 * prairie starts itself.
 *
 * The end of a thread is told by the loader through a callback in section .CRT$XLP, which the
 * thread-local storage of the module leads to; for a library it comes right before DllMain would. A
 * thread that is killed ends without it: what it held in its magazines is lost, as are its stack
 * and its locks.
 *
 * When the process ends, Windows kills all threads but the one that ends it, wherever they are, and
 * only then tells libraries, which may free. A lock whose holder was killed is never given: who
 * waits for one then ends the process, as Windows does in its own heap and for its own locks.
 * SPDX-License-Identifier: MIT
 */
#include "windows.h"

#include "../base/fatal.h"
#include "../base/port.h"
#include "os.h"
#include "thread_slot.h"

/* ---- what is looked up ---- */

typedef LONG(NTAPI *wait_function)(const void *word, const void *expected, SIZE_T bytes,
                                   const LARGE_INTEGER *timeout);
typedef void(NTAPI *wake_function)(const void *word);
typedef BOOLEAN(NTAPI *ending_function)(void);

static struct {
    wait_function wait;
    wake_function wake_one, wake_all;
    ending_function is_ending;
    bool is_wine;
} system_calls; /* constant once the module is there */

windows_function windows_ntdll(const char *name)
{
    windows_function found;

    KEEP_LAST_ERROR(found = (windows_function)GetProcAddress(GetModuleHandleW(L"ntdll.dll"), name));
    return found;
}

/* Windows 7 cannot wait for a word. Looked up when the loader brings the module, by a thread that
 * holds the loader's lock and none of ours: a look-up takes that lock, under which others may
 * allocate. */
static void find_system_calls(void)
{
    system_calls.wait = (wait_function)windows_ntdll("RtlWaitOnAddress");
    system_calls.wake_one = (wake_function)windows_ntdll("RtlWakeAddressSingle");
    system_calls.wake_all = (wake_function)windows_ntdll("RtlWakeAddressAll");
    system_calls.is_ending = (ending_function)windows_ntdll("RtlDllShutdownInProgress");
    system_calls.is_wine = windows_ntdll("wine_get_version") != NULL;
    if (system_calls.wait == NULL || system_calls.wake_one == NULL || system_calls.wake_all == NULL)
        fatal("this Windows is too old: prairie needs Windows 10 or Server 2016");
}

bool windows_is_wine(void) { return system_calls.is_wine; }

/* ---- the word and its end ---- */

/* The value that each thread begins with. Capitals sort before the end of the section. */
__attribute__((section(".tls$PRAIRIE"), used)) struct front *thread_slot =
    (struct front *)&front_empty;

static void (*end_hook)(void); /* atomic: the same for all threads */

bool os_thread_end_hook(void (*hook)(void))
{
    RELAXED_STORE(end_hook, hook);
    return true;
}

enum { EXIT_HOOKS_MAX = 4 };
static void (*exit_hook[EXIT_HOOKS_MAX])(void);
static unsigned exit_hooks; /* atomic */

void os_at_exit(void (*last)(void))
{
    unsigned number = __atomic_fetch_add(&exit_hooks, 1, __ATOMIC_RELAXED);

    if (number < EXIT_HOOKS_MAX) exit_hook[number] = last;
}

static void run_exit_hooks(void)
{
    unsigned count = RELAXED_LOAD(exit_hooks);

    for (unsigned i = count < EXIT_HOOKS_MAX ? count : EXIT_HOOKS_MAX; i-- > 0;)
        if (exit_hook[i] != NULL) exit_hook[i]();
}

/* Is the process ending, so that only this thread is left of it? */
static bool is_ending(void) { return system_calls.is_ending != NULL && system_calls.is_ending(); }

static void NTAPI module_event(void *module, DWORD reason, void *reserved)
{
    void (*hook)(void) = RELAXED_LOAD(end_hook);

    (void)module, (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) find_system_calls();
    if (reason == DLL_THREAD_DETACH && hook != NULL) hook();
    if (reason == DLL_PROCESS_DETACH && is_ending()) run_exit_hooks();
}

__attribute__((section(".CRT$XLP"), used)) static const PIMAGE_TLS_CALLBACK event_callback =
    module_event;

/* ---- waiting ---- */

static uint32_t exit_code; /* atomic */

void windows_note_exit_code(uint32_t code) { RELAXED_STORE(exit_code, code); }

/* In hundreds of nanoseconds, negative: from now on. */
static void wait_for(const uint32_t *word, uint32_t expected, const LARGE_INTEGER *timeout)
{
    KEEP_LAST_ERROR((void)system_calls.wait(word, &expected, sizeof expected, timeout));
}

void port_wait(const uint32_t *word, uint32_t expected)
{
    if (is_ending()) (void)TerminateProcess(GetCurrentProcess(), RELAXED_LOAD(exit_code));
    wait_for(word, expected, NULL);
}

void port_wake(uint32_t *word, int count)
{
    if (count == 1) system_calls.wake_one(word);
    else system_calls.wake_all(word);
}

void os_sleep(const uint32_t *word, uint32_t expected, uint64_t duration_ms)
{
    LARGE_INTEGER timeout = { .QuadPart = -(int64_t)duration_ms * 10000 };

    wait_for(word, expected, &timeout);
}

uintptr_t port_thread_mark(void) { return GetCurrentThreadId(); }
uint32_t os_thread_id(void) { return GetCurrentThreadId(); }

uint64_t port_now_ns(void)
{
    static uint64_t ticks_per_second; /* atomic */
    uint64_t frequency = RELAXED_LOAD(ticks_per_second);
    LARGE_INTEGER now;

    if (frequency == 0) {
        (void)QueryPerformanceFrequency(&now);
        frequency = (uint64_t)now.QuadPart;
        RELAXED_STORE(ticks_per_second, frequency);
    }
    (void)QueryPerformanceCounter(&now);
    return (uint64_t)now.QuadPart / frequency * 1000000000
         + (uint64_t)now.QuadPart % frequency * 1000000000 / frequency;
}

/* What the processor makes out of noise; 0: it does not, or has none left now. */
static uint64_t random_of_processor(void)
{
    enum { FEATURES = 1, MAKES_RANDOM = 1 << 30, ATTEMPTS = 10 };
    uint32_t leaf = FEATURES, features = 0, unused, more;
    uint64_t number = 0;
    bool done = false;

    __asm__("cpuid" : "+a"(leaf), "=b"(unused), "+c"(features), "=d"(more));
    if ((features & MAKES_RANDOM) == 0) return 0;
    for (unsigned attempt = 0; attempt < ATTEMPTS && !done; attempt++)
        __asm__ volatile("rdrand %0\n\tsetc %1" : "=r"(number), "=q"(done) : : "cc");
    return done ? number : 0;
}

/* The system's own numbers are had from other libraries only. The places of code and stack are
 * chosen anew for each process. */
uint64_t os_random(void)
{
    uint64_t number = port_now_ns() ^ (uint64_t)GetTickCount64() << 40 ^ (uintptr_t)&number << 20
                    ^ (uintptr_t)os_random;

    number = (number ^ number >> 31) * 0x9e3779b97f4a7c15u;
    return number ^ number >> 29 ^ GetCurrentProcessId() ^ random_of_processor();
}

/* ---- the background thread ---- */

static uint32_t background_alive; /* atomic: 1 from its start to its end, and waited on */

static DWORD WINAPI run_background(void *body)
{
    (void)((void *(*)(void *))body)(NULL);
    __atomic_store_n(&background_alive, 0, __ATOMIC_RELEASE);
    port_wake(&background_alive, INT32_MAX);
    return 0;
}

/* It begins once nobody loads or unloads a library, whoever calls here. Its stack is as long as a
 * program's usual one, because each library of the process is told of it on that stack; what is not
 * touched is only reserved. */
bool os_thread_start(void *(*body)(void *))
{
    enum { STACK_BYTES = 1024 * 1024 };
    DWORD last_error = GetLastError();
    uint32_t none = 0;
    HANDLE thread;

    if (!__atomic_compare_exchange_n(&background_alive, &none, 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return false;
    thread = CreateThread(NULL, STACK_BYTES, run_background, (void *)body,
                          STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    if (thread != NULL) (void)CloseHandle(thread);
    else __atomic_store_n(&background_alive, 0, __ATOMIC_RELEASE);
    SetLastError(last_error);
    return thread != NULL;
}

/* For its last word, not for the thread: that ends under the loader's lock, which the caller may
 * hold. One that has not begun when the caller holds it does not begin before the time is up. When
 * the process ends, it was killed. */
void os_thread_wait(uint64_t most_ms)
{
    uint64_t end = os_now_ms() + most_ms;

    while (__atomic_load_n(&background_alive, __ATOMIC_ACQUIRE) != 0 && !is_ending()) {
        uint64_t now = os_now_ms();

        if (now >= end) return;
        os_sleep(&background_alive, 1, end - now);
    }
}
